"""What a skill may be called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.skills.skill import MAX_NAME, name_faults, normal_name, suggest_name


@pytest.mark.parametrize("name", ["a", "code-review", "a1", "数据库", "été", "1", "a-b-c"])
def test_good_names_have_no_fault(name: str) -> None:
    """Letters and digits of any script, and single hyphens between them."""
    assert name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "word"),
    [("Code", "capital"), ("-a", "begins or ends"), ("a-", "begins or ends"), ("a--b", "in a row"),
     ("a_b", "other than"), ("a b", "other than"), ("a/b", "other than"), ("a.b", "other than"),
     ("😀", "other than"), ("a\u200bb", "other than"), ("a\nb", "other than")],
)  # fmt: skip
def test_each_fault_is_said(name: str, word: str) -> None:
    """One fault, one sentence."""
    assert [word in fault for fault in name_faults(name)] == [True]


def test_several_faults_are_all_said() -> None:
    """Nothing is left for a second try."""
    assert len(name_faults("-My Skill--x-")) == 4


@pytest.mark.parametrize(
    ("name", "near"),
    [("My Skill", "my-skill"), ("a__b", "a-b"), ("--x--", "x"), ("", "my-skill"), ("!", "my-skill"),
     ("Ｆｕｌｌ", "full"), ("a" * 99, "a" * 64), ("a" * 63 + "-b", "a" * 63),
     ("数据 库", "数据-库")],
)  # fmt: skip
def test_suggestions(name: str, near: str) -> None:
    """As near to what was written as can be."""
    assert suggest_name(name) == near


@given(st.text(max_size=100))
def test_a_suggestion_is_always_valid(name: str) -> None:
    """Whatever the name was, the mend is one that passes."""
    near = suggest_name(name)
    assert name_faults(near) == []
    assert 0 < len(near) <= MAX_NAME
    assert suggest_name(near) == near
    assert normal_name(near) == near


@given(st.text(max_size=50))
def test_normal_is_stable(name: str) -> None:
    """A name in its one spelling stays in it."""
    assert normal_name(normal_name(name)) == normal_name(name)
