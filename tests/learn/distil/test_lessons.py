"""What lessons claim, when they agree and contradict, and quotes held against the session."""

import pytest

from tacit.learn.distil.lessons import (
    Lesson,
    LessonQuote,
    check_quotes,
    claim_of,
    contradiction,
    may_join,
    same,
    steps_of,
)
from tacit.testing.sample_sessions import made, ran


def line(text: str, kind: str = "do", **more: str) -> Lesson:
    return Lesson(kind=kind, text=text, **more)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (
            line("Run `make gen` before `go build`."),
            line("Before `go build`, run `make gen`"),
            True,
        ),
        (
            line("Run `make gen` before `go build`."),
            line("Run `go build` before `make gen`"),
            False,
        ),
        (line("Use `pnpm test`"), line("Do not use `pnpm test`"), False),
        (line("Use `pnpm test` here"), line("Use `pnpm test`", when="on macOS"), False),
        (line("Keep the changelog sorted by date"), line("keep changelogs sorted by dates"), True),
        (line("Keep the changelog sorted by date"), line("Write tests for every exporter"), False),
    ],
)
def test_lessons_that_say_the_same(one: Lesson, other: Lesson, agree: bool) -> None:
    """The same direction, code, order and condition, in other words; nothing less."""
    assert same(claim_of(one), claim_of(other)) is agree


@pytest.mark.parametrize(
    ("one", "other", "about"),
    [
        (line("Run `make gen` before `go build`"), line("`go build` before `make gen`"), "order"),
        (line("Use `pnpm test`"), line("Never call `pnpm test`", "avoid"), "pnpm test"),
        (line("Run `pytest -n 4`"), line("Run `pytest -n 0`"), "-n of pytest"),
        (line("Run `tox --pre`"), line("Run `tox --no-pre`"), "--pre of tox"),
        (
            line("Start the server on port `8080`", about="server"),
            line("Start the server on port `9090`", about="server"),
            "which of",
        ),
    ],
)
def test_contradictions(one: Lesson, other: Lesson, about: str) -> None:
    """Order against order, do against do not, one option against another; found both ways."""
    assert about in contradiction(claim_of(one), claim_of(other))
    assert contradiction(claim_of(other), claim_of(one))
    assert not may_join(claim_of(one), claim_of(other)), "a reader cannot make them one"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (line("Run `pytest -q`", about="pytest"), line("Run `ruff check`", about="ruff")),
        (line("Run `pytest -n 4`"), line("Run `pytest -x`")),
        (line("Use `pnpm test`"), line("Avoid `npm test`", "avoid")),
    ],
)
def test_what_does_not_contradict(one: Lesson, other: Lesson) -> None:
    """Other commands, and options that can both be given."""
    assert contradiction(claim_of(one), claim_of(other)) == ""


TRACE = made(
    ["Deploy it, and always pass the region", ran("deploy prod", "no region given", failed=True)],
    ["no, use --eu", ran("deploy prod --eu", "done"), "I deployed it as it should be."],
)


def check(*quotes: tuple[str, str]) -> Lesson | None:
    given = tuple(LessonQuote(step, text) for step, text in quotes)
    return check_quotes(line("Pass `--eu` to `deploy`", quotes=given, wrong="0.1"), steps_of(TRACE))


def test_quotes_are_held_against_the_session() -> None:
    """What stands in its step is kept with whose words it is; what stands nowhere is not."""
    lesson = check(("0.1", "no region given"), ("1.1", "deploy staging"), ("1", "use --eu"))
    assert lesson is not None
    held = [(quote.step, quote.by, quote.first) for quote in lesson.quotes]
    assert held == [("0.1", "output", True), ("1", "user", False)]


def test_a_wrong_step_is_put_right() -> None:
    """A quote that stands in one other step only is moved there; parts are found in their order."""
    lesson = check(("0", "deploy … --eu"))
    assert lesson is not None
    assert [(q.step, q.by) for q in lesson.quotes] == [("1.1", "call")]


@pytest.mark.parametrize(
    "quote",
    [
        ("0.1", "the region must be set in the file"),
        ("1.2", "I deployed it as it should be"),
        ("0", "it"),
    ],
)
def test_a_lesson_that_nothing_shows(quote: tuple[str, str]) -> None:
    """Invented words, the agent's claim, and a scrap are worth nothing."""
    assert check(quote) is None
