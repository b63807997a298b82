"""Finding the right skill."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base import trust
from tacit.base.atomic_files import locked
from tacit.base.marshal_cache import stamp, write_cache
from tacit.skills import search_index, skill_search
from tacit.skills.library import Library
from tacit.skills.search_index import SearchIndex
from tacit.skills.skill_search import Hit, Search

SKILLS = {
    "git-rebase": ("Rebase a branch and resolve merge conflicts.", "Run `git rebase -i` first.\n"),
    "pdf-forms": ("Fill in PDF forms.", "Use pypdf to list AcroForm fields.\n\nThen flatten.\n"),
    "k8s-deploy": ("Deploy services to Kubernetes with Helm.", "Run helm upgrade --install.\n"),
    "csv-report": ("Turn CSV files into charts and reports.", "Read it with pandas.read_csv.\n"),
    "数据库迁移": ("编写和执行数据库迁移脚本。", "先备份，再执行 alembic upgrade head。\n"),
    "react-hooks": ("Write React hooks.", "Call useEffectEvent, never setStateInRender.\n"),
    "snake": ("Configure the thing.", "Set max_retry_count and the RETRY_BACKOFF_SECONDS.\n"),
}


@pytest.fixture
def skills(user_skills: Path, put) -> Path:
    for name, (description, body) in SKILLS.items():
        put(user_skills / name, description=description, body=f"# Title\n\n{body}")
    return user_skills


def names(query: str, limit: int = 10) -> list[str]:
    return [hit.entry.name for hit in Library().search(query, limit)]


def search_folder() -> Path:
    return Path(Library().cache) / "search"


def swap(file: Path, data: bytes) -> None:
    """Other bytes in a file of the index; not in place, where this process may have it mapped."""
    file.unlink()
    file.write_bytes(data)


class TestRanking:
    def test_what_it_is_asked_in_decides_between_skills_that_fit(self, user_skills, put) -> None:
        """The project's words put the right one first, and bring in none that does not fit."""
        for tool in ("cargo", "pytest", "vitest"):
            put(user_skills / f"tests-{tool}", description=f"Write tests with {tool}.")
        put(user_skills / "brew", description="Make tea, not with cargo, pytest or vitest.")
        for tool in ("cargo", "pytest", "vitest"):
            hits = Library().search("write the tests", about=f"{tool} zzz")
            found = [hit.entry.name for hit in hits]
            assert (found[0], "brew" in found) == (f"tests-{tool}", False)

    @pytest.mark.parametrize(
        ("query", "first"),
        [
            ("resolve a merge conflict", "git-rebase"),
            ("fill a form in a pdf", "pdf-forms"),
            ("deploying to kubernetes", "k8s-deploy"),
            ("make a chart from a csv file", "csv-report"),
            ("数据库 迁移", "数据库迁移"),
            ("怎么迁移数据库", "数据库迁移"),
            ("备份", "数据库迁移"),
            ("pandas", "csv-report"),
            ("acroform", "pdf-forms"),
            ("useEffectEvent", "react-hooks"),
            ("setStateInRender", "react-hooks"),
            ("max_retry_count", "snake"),
            ("retry backoff", "snake"),
            ("RETRY_BACKOFF_SECONDS", "snake"),
            ("k8s-deploy", "k8s-deploy"),
            ("GIT-REBASE", "git-rebase"),
        ],
    )
    def test_the_right_skill_comes_first(self, skills: Path, query: str, first: str) -> None:
        """By words of the name, the description and the body; Chinese and code words too."""
        assert names(query)[0] == first

    def test_parts_of_code_words(self, user_skills: Path, put) -> None:
        """A camelCase word in a description is found by its parts."""
        put(user_skills / "one", description="Explains the parseHttpRequest function.")
        put(user_skills / "two", description="Something else.")
        assert names("parse an http request")[0] == "one"
        assert names("parseHttpRequest")[0] == "one"

    def test_the_alias_is_searched(self, user_skills: Path, put) -> None:
        """A skill is found by the name of its folder as well."""
        put(user_skills / "zebra-folder", name="other")
        assert names("zebra") == ["other"]

    def test_when_to_use_is_searched(self, user_skills: Path, put) -> None:
        """What a peer's key says counts as text."""
        put(user_skills / "one", head="when_to_use: the flux capacitor hums\n")
        assert names("capacitor") == ["one"]

    @pytest.mark.parametrize("query", ["", "   ", "!?", "…", "-- ++", "\x00", "\n\n"])
    def test_queries_that_say_nothing(self, skills: Path, query: str) -> None:
        """Blanks and punctuation find nothing; nothing raises."""
        assert names(query) == []

    @pytest.mark.parametrize(
        "query", ["a AND b OR", "name:x", '"', "(", "*", "git~2", "+git -rebase", "\\", "\udcff x"]
    )
    def test_no_query_language(self, skills: Path, query: str) -> None:
        """Characters with a meaning to search engines are only characters."""
        names(query)

    @given(st.text(max_size=80))
    @settings(max_examples=60, deadline=None)
    def test_any_query_is_survived(self, skills: Path, query: str) -> None:
        """Whatever is asked, there is an answer."""
        assert len(names(query, 3)) <= 3

    def test_a_page_long_query(self, skills: Path) -> None:
        """A whole task description finds the skill that it speaks of."""
        filler = "We met on Monday and talked about the plan for the quarter. " * 200
        query = f"{filler} Please rebase the branch; there are merge conflicts. {filler}"
        assert names(query)[0] == "git-rebase"
        assert names("word" * 20_000) == []

    def test_the_limit(self, skills: Path) -> None:
        """No more than asked for; none for none."""
        assert len(names("the title of a file", 2)) <= 2
        assert names("git", 0) == names("git", -1) == []


class TestLines:
    def hit(self, query: str) -> Hit:
        return Library().search(query, 1)[0]

    def test_the_line_that_fits(self, skills: Path) -> None:
        """The number is the file's, the text the line's."""
        hit = self.hit("list acroform fields with pypdf")
        lines = (skills / "pdf-forms" / "SKILL.md").read_text().split("\n")
        assert hit.text == "Use pypdf to list AcroForm fields."
        assert lines[hit.line - 1] == hit.text

    def test_only_in_the_head(self, user_skills: Path, put) -> None:
        """Where no line of the body fits, none is named."""
        put(user_skills / "zebra", body="Nothing here.\n")
        assert (self.hit("zebra").line, self.hit("zebra").text) == (0, "")

    def test_a_hostile_line_is_harmless(self, user_skills: Path, put) -> None:
        """The text that is shown has no control characters."""
        put(user_skills / "one", body="zebra \x1b]0;owned\x07 stripes\n")
        assert "\x1b" not in self.hit("zebra").text

    def test_with_odd_line_ends(self, user_skills: Path, put) -> None:
        """Lines are counted as an editor does."""
        put(user_skills / "one", text="---\r\nname: one\r\ndescription: d\r\n---\r\na\r\nzebra\r\n")
        assert self.hit("zebra").line == 6


class TestOrder:
    def test_ties_are_in_the_order_of_names(self, user_skills: Path, put) -> None:
        """Whatever the order of their making, also when there are more than are looked at."""
        many = [f"skill-{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(130)]
        found = []
        for seed in (1, 2):
            shutil.rmtree(user_skills)
            shutil.rmtree(search_folder(), ignore_errors=True)
            order = many.copy()
            random.Random(seed).shuffle(order)
            for start in (0, 50, 100):  # each batch is put into the index on its own
                for name in order[start : start + 50]:
                    put(user_skills / name, description="Paints zebras.")
                names("zebras")
            found.append(names("zebras", 20))
        assert found[0] == found[1]
        assert found[0] == sorted(many)[:20]

    def test_of_copies_in_several_folders_the_winner_is_shown(
        self, home: Path, project: Path, put
    ) -> None:
        """Even when the shadowed one fits better: the name does not mean that one."""
        trust.add(str(project))
        put(project / ".agents" / "skills" / "paint", description="Paints. Also zebras.")
        put(home / ".agents" / "skills" / "paint", description="Zebras, zebras, zebra zebras.")
        hits = Library().search("zebras")
        assert [(h.entry.name, h.entry.state) for h in hits] == [("paint", "active")]

    def test_of_copies_in_one_folder_the_one_that_fits_is_shown(
        self, user_skills: Path, put
    ) -> None:
        """Not the first by its path; where they fit alike, the newest."""
        put(user_skills / "1", name="paint", description="Paints walls.")
        put(user_skills / "2", name="paint", description="Paints walls and zebras.")
        put(user_skills / "3", name="paint", description="Paints walls.")
        os.utime(user_skills / "1" / "SKILL.md", (1, 1))
        assert [os.path.basename(h.entry.folder) for h in Library().search("zebras")] == ["2"]
        assert [os.path.basename(h.entry.folder) for h in Library().search("walls")] == ["3"]

    def test_untrusted_ones_are_marked(self, project: Path, put) -> None:
        """They are found, so that the user knows, and say what they are."""
        put(project / ".agents" / "skills" / "paint", description="Zebras.")
        assert [h.entry.state for h in Library().search("zebras")] == ["untrusted"]

    def test_skills_of_other_projects_are_never_found(
        self, home: Path, put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One index for all, but each library sees its own."""
        for name in ("one", "two"):
            (home / name / ".git").mkdir(parents=True)
            put(home / name / ".agents" / "skills" / f"zebra-{name}", description="Zebras.")
        for name in ("one", "two", "one"):
            monkeypatch.chdir(home / name)
            assert names("zebras") == [f"zebra-{name}"]
        monkeypatch.chdir(home)
        assert names("zebras") == []

    def test_a_skill_reached_twice_is_found_once(self, home: Path, user_skills, put) -> None:
        """Links make no second result."""
        put(user_skills / "one", description="Zebras.")
        (home / ".claude" / "skills").mkdir(parents=True)
        (home / ".claude" / "skills" / "one").symlink_to(user_skills / "one")
        assert names("zebras") == ["one"]


class TestChanges:
    def test_the_next_search_sees_them(self, skills: Path, put) -> None:
        """A new skill, an edit in the body, a rename, a removal."""
        assert names("zebra") == []
        put(skills / "new", description="Zebras.")
        assert names("zebras") == ["new"]
        put(skills / "new", description="Lions.", body="Feed the giraffe.\n")
        assert names("zebras") == []
        assert names("giraffe") == ["new"]
        (skills / "new").rename(skills / "newer")
        assert names("giraffe") == ["new"]
        assert Library().search("giraffe")[0].entry.folder == str(skills / "newer")
        shutil.rmtree(skills / "newer")
        assert names("giraffe") == []

    def test_a_kill_between_index_and_manifest(
        self, skills: Path, put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was put in but not written down is found once, not twice."""
        names("git")
        put(skills / "zebra-one", description="Zebras.")
        shutil.rmtree(skills / "snake")
        with monkeypatch.context() as patch:

            def killed(*_: object, **__: object) -> None:
                raise KeyboardInterrupt

            patch.setattr(search_index, "write_cache", killed)
            with pytest.raises(KeyboardInterrupt):
                names("git")
        assert names("zebras") == ["zebra-one"]
        assert names("max_retry_count") == []

    def test_names_that_are_no_utf8(self, user_skills: Path, put) -> None:
        """A folder with odd bytes is indexed and found."""
        put(user_skills / os.fsdecode(b"\xff-x"), name="odd", description="Zebras.")
        assert names("zebras") == ["odd"]


class TestSoon:
    """Where many skills are not in the index, an answer does not wait for them."""

    @pytest.fixture
    def many(self, skills: Path, put, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """More skills than are waited for; the folders for which the rest was asked for."""
        for number in range(12):
            put(skills / f"heap-{number:02}", description=f"Piles up heap {number}.")
        put(skills / "zebra", description="Zebras.", body="Count the stripes.")
        monkeypatch.setattr(skill_search, "_MANY", 5)
        monkeypatch.setattr(skill_search, "_SOON_SKILLS", 3)
        monkeypatch.setattr(skill_search, "_PART", 4)
        asked: list[str] = []
        monkeypatch.setattr(skill_search, "_go_on", asked.append)
        return asked

    def test_what_fits_by_its_head_is_put_in_first(self, many: list[str]) -> None:
        """The right one is found; of the rest it is known that it is missing."""
        library = Library()
        search = Search(library, soon="count zebras")
        assert [hit.entry.name for hit in search.find("count zebras")] == ["zebra"]
        assert search.behind == len(library) - 3
        assert many == [library.cwd]
        again = Search(Library(), soon="pile up heap 11")
        assert again.find("pile up heap 11")[0].entry.name == "heap-11"
        assert again.behind < search.behind

    def test_the_rest_follows_part_by_part(self, many: list[str]) -> None:
        """Then the index is as if it had been built at once."""
        Search(Library(), soon="count zebras")
        skill_search.finish_index(Library().cwd)
        after = Search(Library(), soon="heap")
        assert after.behind == 0
        assert {hit.entry.name for hit in after.find("heap", 20)} == {
            f"heap-{number:02}" for number in range(12)
        }
        assert SearchIndex(Library().cache).is_sound()

    def test_who_needs_all_waits_for_all(self, many: list[str]) -> None:
        """A search without a query to be answered soon is over everything."""
        search = Search(Library())
        assert (search.behind, many) == (0, [])
        assert search.find("count the stripes")[0].entry.name == "zebra"

    def test_nobody_is_waited_for(self, many: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """While another process writes the index, what fits is searched in memory."""
        monkeypatch.setattr(search_index, "_SOON", 0.05)
        library = Library()
        with locked(SearchIndex(library.cache).folder + ".lock"):
            search = Search(library, soon="count zebras")
        assert search.find("count zebras")[0].entry.name == "zebra"
        assert search.behind


class TestDamage:
    @given(data=st.data())
    @settings(max_examples=25, deadline=None)
    def test_damaged_files_are_built_again(self, skills: Path, data: st.DataObject) -> None:
        """Any file of the index cut short, emptied or gone: the answer is right all the same."""
        expected = names("merge conflicts")
        folder = search_folder()
        files = sorted(p.name for p in folder.iterdir() if "lock" not in p.name)
        file = folder / files[data.draw(st.integers(0, 1_000)) % len(files)]
        good = file.read_bytes()
        kind = data.draw(st.sampled_from(["cut", "gone", "empty", "noise"]))
        if kind == "gone":
            file.unlink()
        else:
            cut = good[: data.draw(st.integers(0, 1_000_000)) % (len(good) + 1)]
            swap(file, {"cut": cut, "empty": b"", "noise": b"\xa5" * len(good)}[kind])
        assert names("merge conflicts") == expected

    @pytest.mark.parametrize("suffix", [".store", ".idx", ".term", ".fieldnorm", "meta.json"])
    def test_one_wrong_byte_is_found_and_mended(self, skills: Path, suffix: str) -> None:
        """The engine would crash or lie on some of them: none gets that far."""
        expected = names("merge conflicts in kubernetes")
        (file,) = search_folder().glob(f"*{suffix}")
        good = file.read_bytes()
        for at in range(0, len(good), max(len(good) // 6, 1)):
            (file,) = search_folder().glob(f"*{suffix}")
            good = file.read_bytes()
            bad = bytearray(good)
            bad[min(at, len(good) - 1)] ^= 0x55
            swap(file, bytes(bad))
            assert not SearchIndex(Library().cache).is_sound()
            assert names("merge conflicts in kubernetes") == expected
            assert SearchIndex(Library().cache).is_sound()

    def test_a_rotten_byte_is_known_to_the_doctor(self, skills: Path) -> None:
        """A byte that changed on the disk without any stamp is found by looking at all of them."""
        names("git")
        index = SearchIndex(Library().cache)
        assert index.is_sound()
        (file,) = search_folder().glob("*.store")
        good = file.read_bytes()
        swap(file, bytes([good[0] ^ 0x55]) + good[1:])
        marks, files, packed = search_index._read_manifest(str(search_folder() / "manifest"))  # type: ignore[misc]
        files = search_index._checksums(str(search_folder()), files) | {
            file.name: (files[file.name][0], stamp(file.stat()))
        }
        write_cache(str(search_folder() / "manifest"), search_index._HEAD, (marks, files, packed))
        assert not index.is_sound()
        index.discard()
        assert names("merge conflict")[0] == "git-rebase"

    def test_the_manifest_gone_or_damaged(self, skills: Path) -> None:
        """The whole index is built again, and holds each skill once."""
        expected = names("git branch")
        manifest = search_folder() / "manifest"
        manifest.unlink()
        assert names("git branch") == expected
        manifest.write_bytes(manifest.read_bytes()[:-1] + b"x")
        assert names("git branch") == expected

    def test_an_unwritable_cache_still_answers(
        self, skills: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where no index can be kept, one is made in memory; twice in one process."""
        (home / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
        assert names("merge conflict")[0] == "git-rebase"
        assert names("merge conflict")[0] == "git-rebase"

    def test_a_file_in_place_of_the_index(self, skills: Path) -> None:
        """Nothing can be written there, and the answer comes all the same."""
        folder = search_folder()
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("")
        assert names("merge conflict")[0] == "git-rebase"


SEARCH = """
import sys
from tacit.skills.library import Library
for _ in range(int(sys.argv[2])):
    found = [hit.entry.name for hit in Library().search(sys.argv[1], 50)]
    assert found and len(found) == len(set(found)), found
    assert "git-rebase" in found, found
print(len(found))
"""


class TestManyProcesses:
    def test_all_at_once_on_a_first_run(self, skills: Path) -> None:
        """Eight processes that find no index build one, and each gets the right answer."""
        run = [sys.executable, "-c", SEARCH, "merge conflicts", "1"]
        running = [subprocess.Popen(run, stderr=subprocess.PIPE) for _ in range(8)]
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert (process.returncode, errors) == (0, b"")

    def test_searches_while_another_adds(self, skills: Path, put) -> None:
        """Every search sees the library as it was at some moment, and the last sees all."""
        run = [sys.executable, "-c", SEARCH, "merge conflicts zebras", "4"]
        running = [subprocess.Popen(run, stderr=subprocess.PIPE) for _ in range(4)]
        for number in range(12):
            put(skills / f"zebra-{number}", description="Zebras.")
            names("zebras")
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert (process.returncode, errors) == (0, b"")
        assert len(names("zebras", 50)) == 12
