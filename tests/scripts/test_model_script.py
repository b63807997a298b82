"""scripts/test-model counts right: library, search and the three ways, with a scripted model."""

from pathlib import Path
from typing import Any

import pytest

import model_library
import model_questions
import test_model
from tacit.skills.library import Library
from tacit.skills.open_standard import check_standard
from tacit.skills.skill_lint import meets_standard
from tacit.testing import ModelServer


@pytest.fixture
def scripts() -> Any:
    """The three modules, as the program itself imports them."""
    return model_library, model_questions, test_model


def test_the_library_is_the_same_each_time_and_valid(scripts: Any, tmp_path: Path) -> None:
    """From one seed comes one valid library; each answer stands in one skill of it."""
    made, _, _ = scripts
    for folder in ("a", "b"):
        made.write(tmp_path / folder, 60)
    texts = [
        {str(path.relative_to(tmp_path / folder)): path.read_text() for path in sorted(all_of)}
        for folder in ("a", "b")
        if (all_of := list((tmp_path / folder).rglob("SKILL.md")))
    ]
    assert texts[0] == texts[1]
    assert len(made._TOOLS) * len(made._TASKS) >= 1000
    assert len(texts[0]) == 60 + len(made.questions())
    for path, text in texts[0].items():
        assert meets_standard(check_standard(text, path.split("/")[0])), path
    for question in made.questions():
        holding = [path for path, text in texts[0].items() if question.answer in text]
        assert holding == [f"{question.skill}/SKILL.md"]
        assert question.answer not in question.text


def test_what_is_retrieved_delivered_and_used_is_counted(scripts: Any, home: Path) -> None:
    """A model that repeats the answer only where it can read it: each figure is what happened."""
    made, asking, program = scripts
    asked = made.questions()
    named = [question for question in asked if question.manner == "names the program"]

    def parrot(request: Any) -> str:
        text = request.user_texts[-1]
        right = next(q for q in asked if q.text in text)
        return f"`{right.answer}`" if right.answer in text else "ls -la"

    with ModelServer(parrot) as server:
        answers = program.measure(named, server.url, home / "m", 60, 30)
    counted = {way: asking.count(rows) for way, rows in answers.items()}
    of = len(named)
    assert counted["without a skill"] == {
        "questions": of,
        "retrieved": 0,
        "in the first five": 0,
        "delivered": 0,
        "used": 0,
        "right": 0,
    }
    for way in ("by Tacit", "the right skill given"):
        assert counted[way]["retrieved"] == counted[way]["used"] == counted[way]["right"] == of
    assert f"| by Tacit |{f' {of} of {of} |' * 4}" in program.table(answers)
    assert '<skill name="' in server.requests[1].user_texts[-1]
    assert program.by_manner(answers["by Tacit"]).endswith(
        f"| names the program | {of} of {of} | {of} of {of} | {of} of {of} |"
    )


def test_the_wrong_skill_counts_as_not_retrieved(scripts: Any, home: Path) -> None:
    """Where the search finds another skill first, nothing counts as retrieved or delivered."""
    made, asking, _ = scripts
    made.write(home / ".agents" / "skills", 60)
    library = Library(str(home))
    question = made.questions()[0]._replace(text="how do I upgrade kafka", skill="nowhere")
    answer = asking.by_tacit(question, library, lambda messages: question.answer)
    assert answer.found not in ("", "nowhere")
    assert (answer.rank, answer.delivered, answer.right) == (0, False, True)


@pytest.mark.parametrize(
    ("text", "right", "used"),
    [
        ("`brindle purge --all-trays`", True, True),
        ("Run: brindle  purge\n--all-trays", True, True),
        ("$ brindle purge --all-trays.", True, True),
        ("brindle purge -all-trays", False, True),
        ("brindle purge all-trays", False, False),
        ("brindle purge --all", False, False),
        ("brindle purge --all-trays-too", False, False),
        ("mybrindle purge --all-trays", False, False),
        ("purge --all-trays with brindle", False, False),
        ("", False, False),
    ],
)
def test_an_answer_is_the_whole_command(scripts: Any, text: str, right: bool, used: bool) -> None:
    """Half a command, or one that only looks alike, is not an answer; a hyphen short, it was used
    and is not right."""
    _, asking, _ = scripts
    assert asking.says(text, "brindle purge --all-trays") is right
    assert asking.says(text, "brindle purge --all-trays", exactly=False) is used
