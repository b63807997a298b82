"""The block that tells a model which skills there are."""

import random
import shutil
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base import trust
from tacit.base.setting_sections import Settings
from tacit.skills.catalogue import (
    BUDGET,
    HEADING,
    INTRODUCTION,
    Catalogue,
    CatalogueOrder,
    make_catalogue,
)
from tacit.skills.library import Entry, Library
from tacit.ui.cli import fast


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


class TestProject:
    """Of more skills than fit, those that speak of what the project is made of."""

    FILLER = tuple(entry(f"a-{n:03}", "About nothing in particular. " * 8) for n in range(60))

    def test_what_fits_the_project_comes_before_the_alphabet(self) -> None:
        """A name says more than a description, and several words more than one."""
        chosen = [
            entry("zebra-docker", "Images."),
            entry("images", "Builds images with Docker."),
            entry("zz-react-docker", "Pages in containers."),
            entry("dockerless", "Reaction times."),
        ]
        order = CatalogueOrder(terms=("docker", "react"))
        made = make_catalogue([*self.FILLER, *chosen], 3000, order)
        assert made.shown[:3] == ("zz-react-docker", "zebra-docker", "images")
        assert "dockerless" not in made.shown

    def test_pinned_own_and_used_ones_come_first_all_the_same(self) -> None:
        """What somebody chose is worth more than what fits."""
        listed = [
            *self.FILLER,
            entry("docker"),
            entry("zz-pinned"),
            entry("zz-used"),
            entry("zz-own", scope="project"),
        ]
        order = CatalogueOrder(("zz-pinned",), ("zz-used",), terms=("docker",))
        made = make_catalogue(listed, 3000, order)
        assert made.shown[:4] == ("zz-pinned", "zz-own", "zz-used", "docker")

    def test_a_short_word_counts_in_a_name_alone(self) -> None:
        """`go` is a language in a name, and a verb elsewhere."""
        listed = [*self.FILLER, entry("zz-go-tests"), entry("zz-walk", "Go for a walk.")]
        made = make_catalogue(listed, 3000, CatalogueOrder(terms=("go",)))
        assert made.shown[0] == "zz-go-tests"
        assert "zz-walk" not in made.shown

    def test_everyday_work_fills_the_room_that_is_left(self) -> None:
        """Where the project says nothing, or little, names that speak of it come before others."""
        listed = [*self.FILLER, entry("zz-git-commit"), entry("zz-mold", "Tests."), entry("zz-go")]
        assert make_catalogue(listed, 3000).shown[0] == "zz-git-commit"
        made = make_catalogue(listed, 3000, CatalogueOrder(terms=("go",)))
        assert made.shown[:2] == ("zz-go", "zz-git-commit")
        assert "zz-mold" not in made.shown

    def test_where_all_fit_the_order_is_by_name(self) -> None:
        """Then there is nothing to choose, and a new file in the project changes nothing."""
        listed = [entry("b-docker"), entry("a")]
        made = make_catalogue(listed, 8000, CatalogueOrder(terms=("docker",)))
        assert made.shown == ("a", "b-docker")

    def test_in_a_project(self, home: Path, user_skills: Path, put, monkeypatch) -> None:
        """As the library makes it, and as the command prints it before it loads anything."""
        for n in range(60):
            put(user_skills / f"a-{n:03}", description="About nothing in particular. " * 8)
        put(user_skills / "zz-terraform", description="Plan and apply.")
        project = home / "code"
        (project / ".git").mkdir(parents=True)
        monkeypatch.chdir(project)
        assert "zz-terraform" not in Library().catalogue().shown
        for n in range(3):
            (project / f"{n}.tf").write_text("")
        assert Library().catalogue().shown[0] == "zz-terraform"
        printed: list[str] = []
        monkeypatch.setattr(fast, "write_parts", lambda parts: printed.extend(parts) or 0)
        fast._print_catalogue(str(project))
        assert printed == [Library().catalogue().text]

    def test_the_quick_way_knows_the_default_budget(self) -> None:
        """Without loading the settings."""
        assert Settings().catalogue.budget == BUDGET


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
