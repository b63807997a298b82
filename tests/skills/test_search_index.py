"""How text becomes words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.skills import search_index


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
        ("dotted.names/and paths", ["dotted", "names", "and", "paths"]),
        ("UPPER", ["upper"]),
        ("数据库", ["数据", "据库"]),
        ("库", ["库"]),
        ("用Python写", ["用", "python", "写"]),
        ("データ", ["デー", "ータ"]),
        ("데이터", ["데이", "이터"]),
        ("café", ["café"]),
        ("x" * 61, []),
    ],
)
def test_words(text: str, parts: list[str]) -> None:
    """Runs of letters and digits, small; pairs where nothing separates words."""
    assert search_index.EXACT_WORDS.analyze(search_index.split_cjk(text)) == parts


def test_singles_are_added_to_pairs() -> None:
    """A name is found by one character as well."""
    assert search_index.split_cjk("数据库", singles=True).split() == [
        "数据",
        "据库",
        "数",
        "据",
        "库",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [("parseHttpRequest", "parse Http Request"), ("HTTPServer", ""),
     ("useHTTPServer", "use HTTP Server"),
     ("getV2Data", "get 2 Data"), ("lower UPPER Title", "")],
)  # fmt: skip
def test_parts_of_camel_case(text: str, parts: str) -> None:
    """They are added after the text, which stays whole."""
    assert search_index.with_camel_parts(text) == (f"{text} {parts}" if parts else text)


def test_headings_outside_code() -> None:
    """A comment in a shell script is no heading."""
    body = "# One\n\n```sh\n# not\n```\n\n## Two ##\n#not\n~~~\n# never\n"
    assert search_index.headings(body) == "One\nTwo ##"


def test_stop_words() -> None:
    """Words that say nothing are left out, unless there are no others."""
    from collections import Counter

    assert search_index.without_stop_words(Counter(["the", "zebra"])) == Counter(["zebra"])
    assert search_index.without_stop_words(Counter(["the", "of"])) == Counter(["the", "of"])
    assert search_index.content_stems("using the skills for zebras") == ["zebra"]


@given(st.text())
def test_any_text(text: str) -> None:
    """Nothing raises, also with halves of characters."""
    search_index.EXACT_WORDS.analyze(
        search_index.split_cjk(search_index.with_camel_parts(search_index.as_utf8(text + "\udcff")))
    )
    search_index.headings(text)
