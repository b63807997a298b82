"""From what hosts say to turns: order, pairing, limits, counting."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tacit.traces import assembler, values
from tacit.traces.assembler import Assembler
from tacit.traces.trace import Head, Subagent, Text, ToolCall, Turn, Usage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def into() -> Assembler:
    return Assembler(Head("test"))


def test_a_prompt_begins_a_turn(into: Assembler) -> None:
    """What is said and done goes to the prompt before it, in order."""
    into.prompt("one", NOON)
    into.said("a")
    into.called("1", "Bash", {"command": "ls"})
    into.returned("1", "x")
    into.said("b")
    into.prompt("two")
    first, second = into.finish()
    assert [type(step) for step in first.steps] == [Text, ToolCall, Text]
    assert (first.prompt, first.texts, second.prompt) == ("one", ("a", "b"), "two")
    assert (first.number, second.number) == (0, 1)


def test_the_last_word_on_the_version_counts_also_when_it_was_the_first(into: Assembler) -> None:
    """The same facts again say nothing new, unless others were told in between."""
    for told in ({"version": "1"}, {"version": "2", "branch": "b"}, {"version": "1"}):
        into.about(**told)
        into.about(**told)
        assert into.head().version == told["version"]
    into.about(version="2", branch="c")
    assert (into.head().version, into.head().branch) == ("2", "b")


def test_what_comes_before_any_prompt_is_a_turn_without_one(into: Assembler) -> None:
    """A session may begin in the middle."""
    into.said("hello")
    into.prompt("one")
    assert [turn.prompt for turn in into.finish()] == ["", "one"]


def test_empty_words_are_nothing(into: Assembler) -> None:
    """Blank prompts and texts leave no turn and no step."""
    into.prompt("  \n")
    into.said(" ")
    assert into.finish() == []


def test_the_same_key_replaces(into: Assembler) -> None:
    """A text written again under its key replaces the first; usage likewise."""
    into.prompt("one")
    into.said("half", key="m1")
    into.used(Usage(output=1), "m1")
    into.said("the whole", key="m1")
    into.used(Usage(output=20), "m1")
    into.used(Usage(output=5))
    into.used(Usage(output=5))
    (turn,) = into.finish()
    assert turn.texts == ("the whole",)
    assert turn.usage.output == 30
    assert into.head().usage.output == 30


def test_results_find_their_calls(into: Assembler) -> None:
    """Results in any order go to the call with their id; without one, to the latest call."""
    into.prompt("one")
    into.called("a", "Read", {})
    into.called("b", "Read", {})
    into.returned("b", "of b")
    into.returned("a", "of a")
    into.called("", "Read", {})
    into.returned("", "of the last")
    into.returned("zzz", "of nobody")
    (turn,) = into.finish()
    assert [call.result for call in turn.calls] == ["of a", "of b", "of the last"]
    assert into.head().skipped == {"lone-result": 1}


def test_a_failure_told_twice_stays_one(into: Assembler) -> None:
    """An outcome before the output: the output counts as result, the failure stays."""
    into.prompt("one")
    into.called("a", "Bash", {"command": "x"})
    into.returned("a", failed=True)
    into.returned("a", "line\nKeyError: 'X'\nExit code 1")
    (turn,) = into.finish()
    assert turn.calls[0].failed
    assert turn.calls[0].result.startswith("line")


def test_a_call_without_a_result_is_unfinished(into: Assembler) -> None:
    """It did not fail, and it is marked."""
    into.prompt("one")
    into.called("a", "Bash", {"command": "sleep 99"})
    (turn,) = into.finish()
    assert (turn.calls[0].finished, turn.calls[0].failed) == (False, False)


def test_clocks_that_go_backwards_are_counted(into: Assembler) -> None:
    """No duration is negative, start comes before end, and each step back is counted."""
    into.prompt("one", NOON)
    into.called("a", "Bash", {}, NOON)
    into.returned("a", "x", at=NOON - timedelta(hours=1))
    into.said("later", NOON + timedelta(seconds=5))
    (turn,) = into.finish()
    head = into.head()
    assert turn.calls[0].duration is None
    assert head.started == NOON - timedelta(hours=1)
    assert head.ended == NOON + timedelta(seconds=5)
    assert head.skipped == {"clock": 1}


def test_long_texts_keep_their_ends(into: Assembler) -> None:
    """A long result keeps its beginning and end, is counted, and no word is cut in two."""
    into.prompt("one")
    into.called("a", "Bash", {"command": "x " * 30_000, "deep": [{"er": "y " * 30_000}]})
    into.returned("a", "first " + "some words here " * 5000 + " last")
    (turn,) = into.finish()
    result = turn.calls[0].result
    assert len(result) < values.MAX_TEXT + 100
    assert result.startswith("first")
    assert result.endswith("last")
    assert set(result.split("[…")[0].split()) == {"first", "some", "words", "here"}
    assert len(turn.calls[0].arguments["deep"][0]["er"]) < values.MAX_TEXT + 100
    assert into.head().skipped == {"shortened": 3}


def test_arguments_nest_only_so_deep(into: Assembler) -> None:
    """A thousand levels become text; nothing raises, and what is kept can be encoded."""
    deep: Any = "x"
    for _ in range(1000):
        deep = {"a": [deep]}
    into.prompt("one")
    into.called("a", "X", deep)
    (turn,) = into.finish()
    assert turn.calls[0].arguments["a"]


def test_a_very_long_turn_is_split(into: Assembler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the limit of steps a turn goes on in the next, without a prompt; no call is split."""
    monkeypatch.setattr(assembler, "MAX_STEPS", 10)
    into.prompt("one")
    for number in range(40):
        into.begin(number)
        into.called(str(number), "Bash", {"command": "x"})
        into.begin(number)
        into.returned(str(number), "y")
    turns = into.finish()
    assert [turn.prompt for turn in turns] == ["one", "", "", ""]
    assert sum(len(turn.calls) for turn in turns) == 40
    assert all(call.finished for turn in turns for call in turn.calls)


@pytest.mark.parametrize(
    ("name", "arguments", "skills"),
    [
        ("Skill", {"skill": "pdf"}, ["pdf"]),
        ("activate_skill", {"name": "pdf"}, ["pdf"]),
        ("skill_view", {"name": "pdf"}, ["pdf"]),
        ("Read", {"file_path": "/h/.claude/skills/pdf/SKILL.md"}, ["pdf"]),
        ("exec_command", {"cmd": "cd x && sed -n 1,99p .agents/skills/pdf/SKILL.md"}, ["pdf"]),
        ("Bash", {"command": "cat a/one/SKILL.md b/two/SKILL.md"}, ["one", "two"]),
        ("Bash", {"command": "cat > skills/pdf/SKILL.md <<EOF"}, []),
        ("Bash", {"command": "git add skills/pdf/SKILL.md"}, []),
        ("Write", {"file_path": "skills/pdf/SKILL.md"}, []),
        ("Read", {"file_path": "README.md"}, []),
    ],
)
def test_skills_that_a_call_loads(
    name: str, arguments: dict[str, Any], skills: list[str], into: Assembler
) -> None:
    """By a skill tool, or by showing a SKILL.md; writing or listing one loads nothing."""
    into.prompt("one")
    into.called("a", name, arguments)
    into.returned("a", "x")
    (turn,) = into.finish()
    assert list(turn.skills) == skills


def test_a_skill_that_failed_to_load_was_not_loaded(into: Assembler) -> None:
    """And one loaded twice in a turn counts once."""
    into.prompt("one")
    into.called("a", "Skill", {"skill": "gone"})
    into.returned("a", "no such skill", failed=True)
    for _ in range(2):
        into.activated("pdf")
        into.called("", "Skill", {"skill": "pdf"})
        into.returned("", "ok")
    (turn,) = into.finish()
    assert turn.skills == ("pdf",)


def test_work_handed_over_is_seen(into: Assembler) -> None:
    """A call that starts another agent gives a subagent with its task."""
    into.prompt("one")
    into.called("a", "Task", {"subagent_type": "Explore", "prompt": "find it"})
    (turn,) = into.finish()
    assert turn.subagents == (Subagent("Explore", "find it"),)


def test_the_first_word_on_the_project_counts_and_the_last_on_the_model(into: Assembler) -> None:
    """A session stays where it began, whatever the folder later is; models may change."""
    into.about(session="s", project="/a", model="m1")
    into.about(session="t", project="/b", model="m2", branch="")
    head = into.head()
    assert (head.session, head.project, head.model) == ("s", "/a", "m2")


def test_a_total_wins_over_the_sum(into: Assembler) -> None:
    """The host's own total is taken as it is; its cost too."""
    into.prompt("one")
    into.used(Usage(output=5, cost=0.5))
    into.used_in_all(Usage(output=7))
    into.cost_in_all(0.25)
    assert into.head().usage == Usage(output=7, cost=0.25)


def test_a_mark_is_enough_to_go_on(into: Assembler) -> None:
    """From the mark, the last turn told again gives the same turn and the same head."""

    def tell(to: Assembler) -> list[Turn]:
        to.begin(50)
        to.prompt("two " + "long " * 9000, NOON)
        to.used(Usage(output=3), "k")
        to.returned("late", "of the turn before")
        return to.finish()

    into.begin(10)
    into.prompt("one", NOON - timedelta(hours=1))
    into.used(Usage(output=2))
    into.passed("not-json")
    turns = tell(into)
    mark = into.mark
    assert (mark.position, mark.number) == (50, 1)
    again = Assembler(mark.head, mark.number, mark.state, mark.position)
    assert tell(again) == turns[1:]
    assert again.head() == into.head()
