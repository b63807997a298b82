"""Text on its way to a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.display import (
    can_colour,
    columns,
    fit,
    one_line,
    pad,
    plain,
    shorten,
    shorten_middle,
    shorten_start,
    width,
)

HOSTILE = [
    "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x9b31m", "\x90q\x9c", "\x08",
    "\x7f", "\x00", "\x0e", "\u202e", "\u2066", "\u200f", "\u061c", "\x85", "\u2028",
    "\u2029",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_steers_the_terminal(text: str) -> None:
    """Escape sequences, C1 codes, backspaces and marks of direction come out as text."""
    shown = plain(f"a{text}b")
    steering = "\u202e\u2066\u200f\u061c\u2028\u2029"
    assert not any(unicodedata.category(c) == "Cc" or c in steering for c in shown)
    assert shown.startswith("a")
    assert shown.endswith("b")


def test_ordinary_text_is_left_alone() -> None:
    """Tabs, line ends, accents, emoji and other scripts stay."""
    text = "a\tb\nc é 数据 😀 עברית"
    assert plain(text) == text


def test_a_carriage_return_cannot_overwrite() -> None:
    """What stands before it stays visible."""
    assert plain("safe\rrm -rf\r\n") == "saferm -rf\n"


@given(st.text())
def test_any_text_becomes_harmless(text: str) -> None:
    """Whatever comes in, no control character but tab and line end goes out."""
    assert not [c for c in plain(text) if unicodedata.category(c) == "Cc" and c not in "\t\n"]
    line = one_line(text)
    assert not [c for c in line if unicodedata.category(c) == "Cc"]
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "columns_taken"),
    [("", 0), ("abc", 3), ("数据", 4), ("é", 1), ("e\u0301", 1), ("😀", 2), ("ｱ", 1), ("Ａ", 2),
     ("\u200b", 0)],
)  # fmt: skip
def test_width(text: str, columns_taken: int) -> None:
    """Wide characters take two columns, marks none."""
    assert width(text) == columns_taken


@pytest.mark.parametrize(
    ("text", "space", "cut"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("数据库", 6, "数据库"), ("数据库", 5, "数据…"),
     ("数据库", 4, "数…"), ("数据库", 2, "…"), ("abc", 1, "…"), ("abc", 0, ""), ("ab cd", 4, "ab…"),
     ("e\u0301e\u0301", 2, "e\u0301e\u0301")],
)  # fmt: skip
def test_fit(text: str, space: int, cut: str) -> None:
    """A cut text fits, never splits a wide character, and says that it was cut."""
    assert fit(text, space) == cut


@given(st.text(max_size=30), st.integers(0, 20))
def test_fit_and_pad_hold_their_width(text: str, space: int) -> None:
    """Fitted text is never wider than allowed, padded text exactly as wide."""
    text = one_line(text)
    assert width(fit(text, space)) <= space
    assert width(pad(text, space)) == space


class TestColumns:
    @pytest.mark.parametrize(("value", "wide"), [("40", 40), ("0", 100), ("x", 100), ("-3", 100)])
    def test_the_variable(self, value: str, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """COLUMNS counts when it is a number; rubbish is passed over."""
        monkeypatch.setenv("COLUMNS", value)
        with open("/dev/null") as nothing:
            assert columns(nothing) == wide


class TestColour:
    class Terminal:
        def isatty(self) -> bool:
            return True

    def test_a_terminal_is_coloured_and_a_pipe_is_not(self) -> None:
        """As everywhere."""
        assert can_colour(self.Terminal())
        assert not can_colour(object())

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_the_user_may_say_no(
        self, name: str, value: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """NO_COLOR and a dumb terminal win over all else."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv(name, value)
        assert not can_colour(self.Terminal())

    def test_an_empty_no_color_does_not_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By its convention only a value that is not empty does."""
        monkeypatch.setenv("NO_COLOR", "")
        assert can_colour(self.Terminal())

    def test_force(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """FORCE_COLOR colours a pipe."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert can_colour(object())


def test_a_long_text_is_cut_at_its_end() -> None:
    """What fits stays as it is; else the ellipsis is within the limit, and no space before it."""
    assert shorten("four words stand here", 21) == "four words stand here"
    assert shorten("four words stand here", 12) == "four words…"
    assert len(shorten("x" * 50, 10)) == 10
    assert shorten("first\nsecond and more", 14, "\n[… cut]") == "first\n[… cut]"


def test_a_long_text_is_cut_at_its_start() -> None:
    """What fits stays as it is; else the ellipsis is within the limit, and no space after it."""
    assert shorten_start("/home/me/work", 13) == "/home/me/work"
    assert shorten_start("/home/me/work", 6) == "…/work"
    assert shorten_start("four words stand here", 6) == "…here"
    assert shorten_start("four", 1) == "…"


def test_a_long_text_is_cut_in_its_middle() -> None:
    """Start and end stay, with how much is missing, and no word is cut in two."""
    text = " ".join(f"word{n}" for n in range(200))
    assert shorten_middle(text, len(text)) == text
    head, note, end = shorten_middle(text, 400).split("\n")
    assert text.startswith(head + " ")
    assert text.endswith(end)
    assert end.startswith(" ")
    assert note == f"[… {len(text) - len(head) - len(end):,} characters left out …]"
    assert 2 * len(end) < len(head) < 300
    halves = shorten_middle(text, 400, tail=0.5, more="; see page 2").split("\n")
    assert abs(len(halves[0]) - len(halves[2])) < 10
    assert halves[1].endswith("left out; see page 2 …]")


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    """Where no word ends within reach, the cut is made at the limit."""
    cut = shorten_middle("x" * 10_000, 100)
    assert cut == "x" * 75 + "\n[… 9,900 characters left out …]\n" + "x" * 25
    far = shorten_middle(f"a {'x' * 10_000} z", 100)
    assert far.count("x") > 90


def test_a_middle_is_cut_within_a_line() -> None:
    """The note stands between spaces, for texts that must stay on one line."""
    cut = shorten_middle("one two three four five six seven eight", 24, inline=True)
    assert cut == "one two three four [… 15 characters left out …] eight"


def test_only_the_start_of_a_text() -> None:
    """Without a tail the note is the end."""
    assert shorten_middle("x" * 20, 8, tail=0) == "xxxxxxxx\n[… 12 characters left out …]"
