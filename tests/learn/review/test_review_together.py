"""Two reviews that change one skill at the same time: both are kept, or it is said what is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reviews import LEARNED, look, put_skill, store

from tacit.changes.gate import Gate
from tacit.learn.review import review_broker
from tacit.testing import ToolUse
from tacit.testing.sample_sessions import made, ran
from tacit.traces.trace import Trace

BODY = """1. `make check`
2. `make build`
3. `make ship`

## What fails

- `make build` without `make check`: the check writes its stamp.
"""


def session_of(project: Path, name: str, command: str) -> Trace:
    trace = made(
        [f"Always run `{command}` too.", ran(command, "ok"), "Done."],
        session=name,
        project=str(project),
    )
    store(trace)
    return trace


def editor(
    old: str, new: str, meanwhile: Callable[[], Any] | None = None, *, again: bool = True
) -> Callable[..., Any]:
    """A reviewer that makes one edit; before its end `meanwhile` happens, once.

    Told that its edit does not fit any more, it makes it `again`.
    """
    edit = ToolUse("edit", {"path": "shipping/SKILL.md", "old": old, "new": new})
    waiting = [meanwhile] if meanwhile is not None else []

    def answer(request: Any) -> Any:
        if request.turn == 0:
            return edit
        if waiting:
            waiting.pop()()
        told = request.user_texts[-1] if len(request.user_texts) > 1 else ""
        if again and "shipping" in told and request.turn == 2:
            return edit
        return "Kept it."

    return answer


# What each of the two does: where it adds its line.
PLACES = {
    "apart": ("1. `make check`\n", "3. `make ship`\n"),
    "the same line": ("2. `make build`\n", "2. `make build`\n"),
    "next lines": ("1. `make check`\n", "2. `make build`\n"),
}


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("place", PLACES)
def test_two_reviews_of_one_skill_are_both_kept(place: str, project: Path, serve: Any) -> None:
    """One lands while the other is at work: apart, they are merged; on the same lines the second is
    told, reads the skill as it is now and edits that. Neither is refused for the other's sake."""
    folder = put_skill(project, "shipping", BODY, head=LEARNED)
    first, second = PLACES[place]
    one = session_of(project, "one", "make stamp")
    two = session_of(project, "two", "make sign")
    results = []

    def script(request: Any) -> Any:
        about_two = "make sign" in request.user_texts[0]
        return theirs(request) if about_two else mine(request)

    theirs = editor(second, f"{second}   Always run `make sign` too.\n")

    def meanwhile() -> None:
        results.append(look(two, job="review-2"))

    mine = editor(first, f"{first}   Always run `make stamp` too.\n", meanwhile)
    serve(script)
    results.append(look(one))
    assert [done.outcome for done in results] == ["edited", "edited"]
    text = (folder / "SKILL.md").read_text()
    assert "make stamp" in text
    assert "make sign" in text
    assert "sessions: codex:old, claude-code:two, claude-code:one" in text
    assert Gate().inbox.waiting() == []


@pytest.mark.usefixtures("inside")
def test_an_edit_that_is_not_made_again_waits_with_both_sides(project: Path, serve: Any) -> None:
    """A reviewer that is told of the conflict and leaves it loses nothing: the user is asked."""
    folder = put_skill(project, "shipping", BODY, head=LEARNED)
    one = session_of(project, "one", "make stamp")
    serve(
        editor(
            "1. `make check`\n",
            "1. `make stamp`\n",
            lambda: (folder / "SKILL.md").write_text(
                (folder / "SKILL.md").read_text().replace("1. `make check`", "1. `make all`")
            ),
            again=False,
        )
    )
    done = look(one)
    assert done.outcome == "proposed"
    assert "it changes lines that were changed meanwhile, in SKILL.md" in done.reason
    assert "1. `make all`" in (folder / "SKILL.md").read_text()
    assert [p.change.skill for p in Gate().inbox.waiting()] == ["shipping"]


@pytest.mark.usefixtures("inside")
def test_one_that_is_overtaken_while_it_lands_is_brought_onto_it(
    project: Path, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the signing and the gate another review lands: it is signed anew and lands too."""
    folder = put_skill(project, "shipping", BODY, head=LEARNED)
    one = session_of(project, "one", "make stamp")
    two = session_of(project, "two", "make sign")
    real, waiting = Gate.propose, [True]

    def propose(self: Gate, change: Any, **how: Any) -> Any:
        if waiting and waiting.pop():
            serve(editor("3. `make ship`\n", "3. `make ship`\n   Always run `make sign` too.\n"))
            assert look(two, job="review-2").outcome == "edited"
        return real(self, change, **how)

    monkeypatch.setattr(Gate, "propose", propose)
    monkeypatch.setattr(review_broker, "_LONGEST_TURN", 0.1)  # nobody gives it up here
    serve(editor("1. `make check`\n", "1. `make check`\n   Always run `make stamp` too.\n"))
    assert look(one).outcome == "edited"
    text = (folder / "SKILL.md").read_text()
    assert "make stamp" in text
    assert "make sign" in text
