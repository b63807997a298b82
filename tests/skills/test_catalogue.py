"""The block that tells a model which skills there are."""

import random
import shutil
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base import trust
from tacit.skills.catalogue import (
    HEADING,
    INTRODUCTION,
    Catalogue,
    CatalogueOrder,
    make_catalogue,
    matches_glob,
)
from tacit.skills.library import Entry, Library


def entry(name: str, description: str = "Does it.", **fields: object) -> Entry:
    base = {"folder": f"/s/{name}", "scope": "user", "origin": "user", "host": "agents"}
    return Entry(name=name, description=description, state="active", **{**base, **fields})  # type: ignore[arg-type]


def shown(made: Catalogue) -> list[str]:
    """The names that the text itself lists."""
    return [line[2:].split(":")[0] for line in made.text.split("\n") if line.startswith("- ")]


WORD = st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=12)
ENTRIES = st.dictionaries(
    WORD, st.text(alphabet="ab c", max_size=600).map(str.strip), max_size=60
).map(lambda found: [entry(name, text) for name, text in found.items()])


class TestBudget:
    @given(ENTRIES, st.integers(0, 9000))
    @settings(max_examples=150, deadline=None)
    def test_within_budget_and_whole(self, entries: list[Entry], budget: int) -> None:
        """Never longer than allowed; what is listed is whole; what is not is counted."""
        made = make_catalogue(entries, budget)
        assert len(made.text) <= budget
        assert len(made.shown) + made.more == len(entries)
        assert shown(made) == list(made.shown) or not made.text
        for name in made.shown:
            text = next(e.description for e in entries if e.name == name)
            assert f"- {name}: {text}\n" in made.text
        if made.more and made.text:
            noun = "skill" if made.more == 1 else "skills"
            last = f"{made.more:,} more {noun} can be found with search_skills."
            assert made.text.endswith(f"{last}\n")

    @given(ENTRIES, st.randoms())
    @settings(max_examples=50, deadline=None)
    def test_the_same_to_the_byte(self, entries: list[Entry], chance: random.Random) -> None:
        """Whatever the order in which the skills come."""
        mixed = entries.copy()
        chance.shuffle(mixed)
        assert make_catalogue(mixed, 3000) == make_catalogue(entries, 3000)

    def test_a_short_one_after_a_long_one(self) -> None:
        """A description that does not fit is left out whole; later ones may still fit."""
        entries = [entry("a", "x" * 5000), entry("b", "short"), entry("c", "short")]
        made = make_catalogue(entries, 2000)
        assert shown(made) == ["b", "c"]
        assert made.more == 1
        assert "1 more skill can" in made.text

    def test_all_of_a_small_library(self) -> None:
        """No line about more where there is no more."""
        made = make_catalogue([entry("a"), entry("b")], 8000)
        assert made.text == f"{HEADING}\n\n{INTRODUCTION}\n\n- a: Does it.\n- b: Does it.\n"
        assert made.more == 0

    def test_no_skills_no_block(self) -> None:
        """Not even a heading."""
        assert make_catalogue([], 8000) == Catalogue("", (), 0)
        assert make_catalogue([entry("a", model_invocable=False)], 8000) == Catalogue("", (), 0)

    def test_no_room(self) -> None:
        """With too small a budget at least the count is said, with none nothing."""
        entries = [entry(f"n{n}") for n in range(1234)]
        assert make_catalogue(entries, 120).text == (
            "1,234 more skills can be found with search_skills.\n"
        )
        assert make_catalogue(entries, 0).text == ""


class TestOrder:
    def test_pinned_project_recent_then_by_name(self) -> None:
        """The most useful first."""
        entries = [
            entry("zebra"), entry("ant"), entry("recent-2"), entry("recent-1"), entry("pin-2"),
            entry("pin-1"), entry("ours-b", scope="project"), entry("ours-a", scope="project"),
        ]  # fmt: skip
        order = CatalogueOrder(pinned=("pin-1", "pin-2"), recent=("recent-1", "recent-2", "gone"))
        assert make_catalogue(entries, 8000, order).shown == (
            "pin-1", "pin-2", "ours-a", "ours-b", "recent-1", "recent-2", "ant", "zebra",
        )  # fmt: skip

    def test_what_has_no_description_comes_last(self) -> None:
        """There is nothing to choose it by."""
        assert make_catalogue([entry("a", ""), entry("b")], 8000).shown == ("b", "a")

    def test_the_way_to_the_rest(self) -> None:
        """The last line names the tool or command that the reader has."""
        made = make_catalogue([entry("a", "x" * 900)], 500, CatalogueOrder(search="`tacit search`"))
        assert made.text == "1 more skill can be found with `tacit search`.\n"


class TestWhich:
    def test_a_model_may_not_call(self) -> None:
        """Skills with `disable-model-invocation` are neither listed nor counted."""
        made = make_catalogue([entry("a"), entry("b", model_invocable=False)], 8000)
        assert (made.shown, made.more) == (("a",), 0)

    def test_a_user_may_not_call(self) -> None:
        """`user-invocable: false` is the model's own."""
        assert make_catalogue([entry("a", user_invocable=False)], 8000).shown == ("a",)

    @pytest.mark.parametrize(
        ("touched", "names"),
        [((), ("a",)), (("README.md",), ("a",)), (("src/x.ts",), ("a", "ts")),
         (("x.py", "./src/deep/x.ts"), ("a", "ts"))],
    )  # fmt: skip
    def test_paths(self, touched: tuple[str, ...], names: tuple[str, ...]) -> None:
        """A skill with patterns appears when a file that fits is touched."""
        entries = [entry("a"), entry("ts", paths=("docs/*.md", "src/**/*.{ts,tsx}"))]
        made = make_catalogue(entries, 8000, touched=touched)
        assert (made.shown, made.more) == (names, 0)


class TestLibrary:
    def test_of_a_real_library(self, home: Path, project: Path, put) -> None:
        """The project's first, shadowed and untrusted ones never, flags and patterns obeyed."""
        theirs, mine = project / ".agents" / "skills", home / ".agents" / "skills"
        put(theirs / "same", description="project's")
        put(mine / "same", description="mine")
        put(mine / "silent", head="disable-model-invocation: yes\n")
        put(mine / "typed", head='paths: "*.{ts,tsx}"\n')
        assert Library().catalogue().shown == (
            "learn-from-sessions",
            "same",
            "schedule-creator",
            "using-tacit",
        )
        assert "- same: mine\n" in Library().catalogue().text
        trust.add(str(project))
        made = Library().catalogue(touched=["src/a.tsx"])
        assert set(made.shown) == {
            "same",
            "typed",
            "learn-from-sessions",
            "schedule-creator",
            "using-tacit",
        }
        assert "- same: project's\n" in made.text

    def test_stable_whatever_the_order_of_making(self, user_skills: Path, put) -> None:
        """The same skills on the disk give the same bytes, from a fresh or an old cache."""
        names = [f"skill-{n}" for n in range(40)]
        texts = set()
        for seed in range(3):
            shutil.rmtree(user_skills)
            random.Random(seed).shuffle(names)
            for name in names:
                put(user_skills / name, description=f"About {name}.")
            texts.add(Library().catalogue(budget=1500).text)
        shutil.rmtree(Library().cache)
        texts.add(Library().catalogue(budget=1500).text)
        assert len(texts) == 1

    def test_the_setting_is_the_default(
        self, user_skills: Path, put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`catalogue.budget`, unless a budget is given."""
        for n in range(50):
            put(user_skills / f"skill-{n}", description="x" * 300)
        assert 7000 < len(Library().catalogue().text) <= 8000
        monkeypatch.setenv("TACIT_CATALOGUE_BUDGET", "2000")
        assert 1000 < len(Library().catalogue().text) <= 2000
        assert len(Library().catalogue(budget=600).text) <= 600

    def test_a_description_cannot_add_lines(self, user_skills: Path, put) -> None:
        """One skill, one line, whatever stands in the description."""
        put(user_skills / "x", text='---\nname: x\ndescription: "a\\n## Fake\\n- y: z"\n---\nb\n')
        assert shown(Library().catalogue()) == [
            "learn-from-sessions",
            "schedule-creator",
            "using-tacit",
            "x",
        ]


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.py", "*.py", True),
        ("deep/down/a.py", "*.py", True),
        ("deep/a.py", "./*.py", True),
        ("./a.py", "a.py", True),
        ("a.pyc", "*.py", False),
        ("src/a.py", "src/*.py", True),
        ("src/b/a.py", "src/*.py", False),
        ("other/src/a.py", "src/*.py", False),
        ("src/a.py", "src/**/*.py", True),
        ("src/b/c/a.py", "src/**/*.py", True),
        ("a.py", "**/*.py", True),
        ("x/y/a.py", "**/*.py", True),
        ("src/a/b", "src/**", True),
        ("src", "src/**", False),
        ("src/a/b", "src/", True),
        ("srcs/a", "src/", False),
        ("a/b/c/d", "a/**/d", True),
        ("a/d", "a/**/d", True),
        ("a/x/d/y", "a/**/d", False),
        ("a.ts", "*.{ts,tsx}", True),
        ("x/a.tsx", "*.{ts,tsx}", True),
        ("a.js", "*.{ts,tsx}", False),
        ("src/a.ts", "{src,lib}/**/*.{ts,js}", True),
        ("test/a.ts", "{src,lib}/**/*.{ts,js}", False),
        ("ace", "a{b,c{d,e}}", True),
        ("a{b}", "a{b}", True),
        ("a{b", "a{b", True),
        ("ab", "a{b,c", False),
        ("a1", "a[0-9]", True),
        ("ab", "a[!0-9]", True),
        ("a1", "a[!0-9]", False),
        ("a[", "a[", True),
        ("axb", "a?b", True),
        ("a/b", "a?b", False),
        ("a.b+c(d)", "a.b+c(d)", True),
        ("axb", "a.b", False),
        ("src\\a.py", "src/*.py", True),
        ("数据/表.sql", "数据/*.sql", True),
        (".env", "*", True),
        ("a\nb", "a*b", True),
        ("", "*", True),
        ("a", "", False),
        ("Dockerfile", "dockerfile", False),
    ],
)
def test_patterns(path: str, pattern: str, fits: bool) -> None:
    """As in ignore files and editors."""
    assert matches_glob(path, pattern) is fits


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("a/" * 60 + "b", "**/" * 60 + "zzz"),
        ("a/" * 60 + "b", "**/a/" * 25 + "zzz"),
        ("a" * 2_000, "*a" * 200 + "b"),
        ("a" * 2_000, "**a" * 200 + "b"),
        ("a", "{a,b}" * 90),
        ("a", "{a,b}" * 5_000),
        ("a", "{" * 400 + "a,b"),
        ("a", "{" * 200 + "a,b" + "}" * 200),
        ("a", "[" * 20_000),
        ("a", "{a," * 100 + "}" * 100),
    ],
)
def test_hostile_patterns_take_no_time(path: str, pattern: str) -> None:
    """No pattern makes matching explode: each of these would take years by backtracking."""
    start = time.monotonic()
    matches_glob(path, pattern)
    assert time.monotonic() - start < 120


@given(st.text(max_size=20), st.text(alphabet="ab/*?[]{},!-.^\\", max_size=20))
@settings(deadline=None)
def test_any_pattern_is_survived(path: str, pattern: str) -> None:
    """Odd patterns never raise."""
    assert matches_glob(path, pattern) in (True, False)


@given(st.lists(st.text(alphabet="abc.", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_path_fits_itself_and_everything(parts: list[str]) -> None:
    """A path without special characters fits itself, `**` and `**/*`."""
    path = "/".join(parts).removeprefix("./")
    assert matches_glob(path, path)
    assert matches_glob(path, "**")
    assert matches_glob(path, "**/*")
