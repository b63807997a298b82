"""What a name means, and every skill that can be reached."""

import os
from pathlib import Path

import pytest

from tacit.base import trust
from tacit.base.config_file import set_values
from tacit.base.errors import NotFound
from tacit.base.setting_sections import Settings, SkillSettings
from tacit.skills.library import Entry, KeptLibrary, Library, at_hand, library_here


def own(library: Library) -> list[Entry]:
    return [entry for entry in library.entries if entry.scope != "bundled"]


def states(library: Library) -> dict[str, str]:
    """State by path relative to home."""
    home = os.path.expanduser("~")
    return {os.path.relpath(entry.folder, home): entry.state for entry in own(library)}


@pytest.fixture
def places(home: Path, project: Path) -> dict[str, Path]:
    """The shared skills folder of each scope; the project is trusted."""
    trust.add(str(project))
    return {
        "project": project / ".agents" / "skills",
        "user": home / ".agents" / "skills",
        "extra": home / "more",
    }


def load() -> Library:
    return Library(settings=Settings(skills=SkillSettings(paths=("~/more",))))


class TestPrecedence:
    def test_the_nearest_scope_wins(self, places: dict[str, Path], put) -> None:
        """Project over user over extra; the others are shown as shadowed, by whom and of what."""
        for scope, place in places.items():
            put(place / "same", description=f"from {scope}")
        library = load()
        assert [(e.scope, e.state) for e in own(library)] == [
            ("project", "active"), ("user", "shadowed"), ("extra", "shadowed"),
        ]  # fmt: skip
        winner = library.get("same")
        assert winner.description == "from project"
        assert [e.scope for e in library.shadowed(winner)] == ["user", "extra"]
        assert [library.shadowing(e) for e in own(library)] == [None, winner, winner]
        assert [e.name for e in library.active()].count("same") == 1

    def test_bundled_comes_last(self, places: dict[str, Path], put) -> None:
        """A skill of the user's with the name of a bundled one wins."""
        put(places["user"] / "using-tacit")
        library = load()
        assert library.get("using-tacit").scope == "user"
        bundled = {e.name: e.state for e in library.entries if e.scope == "bundled"}
        assert bundled["using-tacit"] == "shadowed"

    def test_nested_packages_nearest_first(
        self, project: Path, places: dict[str, Path], put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A package's own skill wins over the project's."""
        put(project / ".agents" / "skills" / "same", description="outer")
        put(project / "pkg" / ".agents" / "skills" / "same", description="inner")
        monkeypatch.chdir(project / "pkg")
        assert load().get("same").description == "inner"
        monkeypatch.chdir(project)
        assert load().get("same").description == "outer"

    def test_the_shared_folder_before_a_hosts(self, home: Path, put) -> None:
        """Within one scope `.agents/skills` wins."""
        put(home / ".claude" / "skills" / "same", description="claude")
        put(home / ".agents" / "skills" / "same", description="agents")
        library = Library()
        assert library.get("same").description == "agents"
        assert [e.host for e in own(library)] == ["agents", "claude-code"]

    def test_within_one_root_the_folder_that_bears_the_name_wins(self, user_skills, put) -> None:
        """Then the less deep, then by path with numbers as numbers."""
        for folder in ("cat/deep", "skill-10", "skill-2", "target"):
            put(user_skills / folder, name="target")
        assert [e.folder.removeprefix(f"{user_skills}/") for e in own(Library())] == [
            "target", "skill-2", "skill-10", "cat/deep",
        ]  # fmt: skip

    def test_skills_are_listed_by_name(self, user_skills, put) -> None:
        """Whatever the order of their making."""
        for name in ("zebra", "ant", "mouse"):
            put(user_skills / name)
        assert [e.name for e in own(Library())] == ["ant", "mouse", "zebra"]


class TestTrust:
    def test_untrusted_skills_are_listed_and_mean_nothing(self, project: Path, put) -> None:
        """Neither active nor in the catalogue, until the project is trusted."""
        put(project / ".agents" / "skills" / "theirs")
        library = Library()
        assert states(library) == {"project/.agents/skills/theirs": "untrusted"}
        assert "theirs" not in [e.name for e in library.active()]
        assert "theirs" not in library.catalogue().text
        trust.add(str(project))
        library.refresh()
        assert "theirs" in [e.name for e in library.active()]

    def test_an_untrusted_skill_takes_no_name(self, project: Path, user_skills, put) -> None:
        """Not by its name, not by its folder's name, and shadows nobody."""
        put(user_skills / "deploy", description="mine")
        put(project / ".agents" / "skills" / "deploy", description="theirs")
        put(project / ".agents" / "skills" / "other", name="deploy", description="theirs")
        library = Library()
        assert library.get("deploy").description == "mine"
        assert library.get("deploy").state == "active"
        assert library.shadowed(library.get("deploy")) == []

    def test_an_untrusted_alias_takes_no_name(self, project: Path, user_skills, put) -> None:
        """A folder named like a trusted skill is only an alias."""
        put(user_skills / "deploy")
        put(project / ".agents" / "skills" / "deploy", name="evil")
        assert Library().get("deploy").scope == "user"

    def test_a_trusted_alias_before_an_untrusted_name(self, project, user_skills, put) -> None:
        """What the user has is meant, even if only by its folder's name."""
        put(user_skills / "deploy", name="roll-out")
        put(project / ".agents" / "skills" / "deploy")
        assert Library().get("deploy").scope == "user"

    def test_a_link_to_the_users_skill_does_not_untrust_it(self, project, user_skills, put) -> None:
        """A clone that links to ~/.agents/skills cannot switch the user's skills off."""
        put(user_skills / "mine")
        (project / ".agents").mkdir()
        (project / ".agents" / "skills").symlink_to(user_skills)
        (project / ".claude" / "skills").mkdir(parents=True)
        (project / ".claude" / "skills" / "mine").symlink_to(user_skills / "mine")
        library = Library()
        assert [(e.scope, e.state) for e in own(library)] == [("user", "active")]
        assert len(library.get("mine").also) == 2


class TestLinks:
    def test_one_real_skill_is_listed_once(self, home: Path, user_skills, put) -> None:
        """However many folders link to it; the other ways are named."""
        put(user_skills / "one")
        for host in (".claude", ".codex"):
            (home / host / "skills").mkdir(parents=True)
            (home / host / "skills" / "one").symlink_to(user_skills / "one")
        (entry,) = own(Library())
        assert entry.folder == str(user_skills / "one")
        assert entry.also == (
            str(home / ".claude" / "skills" / "one"), str(home / ".codex" / "skills" / "one"),
        )  # fmt: skip

    def test_a_link_to_the_outside_has_its_real_path(self, home: Path, user_skills, put) -> None:
        """The folder is the link's, the real path the target's."""
        put(home / "elsewhere" / "one")
        (user_skills / "one").symlink_to(home / "elsewhere" / "one")
        entry = Library().get("one")
        assert (entry.folder, entry.real) == (
            str(user_skills / "one"), str(home / "elsewhere" / "one"),
        )  # fmt: skip


class TestNames:
    def test_both_names_find_a_skill(self, user_skills, put) -> None:
        """The name in the file, and the folder's; the name is the identity."""
        put(user_skills / "folder-name", name="real-name")
        library = Library()
        assert library.get("real-name") == library.get("folder-name")
        assert library.get("folder-name").name == "real-name"
        assert library.get("folder-name").aliases == ("folder-name",)

    def test_finding_one_makes_but_one(self, home: Path, user_skills, put) -> None:
        """By name, by folder and by path, with what it shadows; as the list of all has it."""
        for name in ("one", "two", "three"):
            put(user_skills / name)
        put(home / ".claude" / "skills" / "two")
        put(user_skills / "folder-name", name="real-name")
        library = Library()
        path = str(user_skills / "three")
        found = [library.get(name) for name in ("one", "two", "real-name", "folder-name", path)]
        shadowed = library.shadowed(library.get("two"))
        assert [library.shadowing(entry) for entry in shadowed] == [library.get("two")]
        assert [entry.folder for entry in library.known_as("folder-name")] == [
            str(user_skills / "folder-name")
        ]
        assert "entries" not in vars(library)
        assert all(entry in library.entries for entry in (*found, *shadowed))

    def test_a_name_before_an_alias(self, user_skills, put) -> None:
        """A folder never hides the skill that bears the name."""
        put(user_skills / "b", name="a")
        put(user_skills / "x", name="b")
        assert Library().get("b").folder == str(user_skills / "x")

    @pytest.mark.parametrize("asked", ["数据库", "Code-Review", "code-review ", "ｃｏｄｅ-review"])
    def test_spellings(self, asked: str, user_skills, put) -> None:
        """Case, blanks and width of letters do not matter to one who asks."""
        put(user_skills / "数据库")
        put(user_skills / "code-review")
        assert Library().get(asked).name in ("数据库", "code-review")

    def test_paths(self, project: Path, user_skills, put, monkeypatch) -> None:
        """Relative, absolute, with a tilde, to the file, and the working directory itself."""
        put(user_skills / "one")
        monkeypatch.chdir(user_skills)
        library = Library()
        for path in (
            "./one", "one/", f"{user_skills}/one", "~/.agents/skills/one", "one/SKILL.md",
            "../skills/one",
        ):  # fmt: skip
            assert library.get(path).name == "one", path
        monkeypatch.chdir(user_skills / "one")
        assert Library().get(".").name == "one"

    def test_a_name_with_a_slash(self, user_skills, put) -> None:
        """Some people write namespaces into the name; it is still a name."""
        put(user_skills / "x", name="team/deploy")
        assert Library().get("team/deploy").folder == str(user_skills / "x")

    def test_what_is_not_there_is_suggested(self, user_skills, put) -> None:
        """Near names and aliases, else a search."""
        put(user_skills / "code-review")
        put(user_skills / "deployment", name="roll-out")
        library = Library()
        for asked, hint in (
            ("code-reviw", "did you mean code-review"),
            ("CODE-REVIEWS", "did you mean code-review"),
            ("deploymnt", "did you mean deployment"),
            ("zzzzzz", 'tacit search "zzzzzz"'),
            ("./nowhere", "tacit search"),
        ):
            with pytest.raises(NotFound) as caught:
                library.get(asked)
            assert hint in caught.value.hint
            assert asked in caught.value.message
        assert library.find("zzzzzz") is None

    def test_reading_by_name(self, user_skills, put) -> None:
        """The whole skill, also from a file with small letters."""
        put(user_skills / "one", body="Body.\n", file="skill.md")
        skill = Library().read("one")
        assert skill.body.strip() == "Body."
        assert skill.folder == user_skills / "one"


class TestEntries:
    def test_origin(self, home: Path, places, put) -> None:
        """Learned by its source, installed in an extra folder, bundled, else the user's."""
        put(places["user"] / "mine")
        put(places["user"] / "learned", head="metadata:\n  source: auto-skill\n")
        put(places["user"] / "learned-too", head="source: auto-skill\n")
        put(places["extra"] / "brought")
        found = {entry.name: entry.origin for entry in load().entries}
        assert found == {
            "mine": "user", "learned": "learned", "learned-too": "learned",
            "brought": "installed", "using-tacit": "bundled", "schedule-creator": "bundled",
            "learn-from-sessions": "bundled",
        }  # fmt: skip

    def test_a_description_is_one_harmless_line(self, user_skills, put) -> None:
        """Line ends become blanks, control characters are shown."""
        text = '---\nname: one\ndescription: "a\\n\\tb\\e[31mc\\u202Ed"\n---\nx\n'
        put(user_skills / "one", text=text)
        assert Library().get("one").description == "a b�[31mc�d"

    def test_a_broken_skill_is_still_listed(self, user_skills, put) -> None:
        """Unreadable, empty and binary ones, each with the gravest of its problems."""
        put(user_skills / "empty", text="")
        put(user_skills / "binary", text=bytes(range(256)))
        (user_skills / "gone").mkdir()
        (user_skills / "gone" / "SKILL.md").symlink_to("nowhere")
        (user_skills / "pipe").mkdir()
        os.mkfifo(user_skills / "pipe" / "SKILL.md")
        entries = own(Library())
        assert [e.name for e in entries] == ["binary", "empty", "gone", "pipe"]
        assert {e.worst for e in entries} == {"error"}

    def test_a_file_with_small_letters(self, user_skills, put) -> None:
        """It is listed like any other."""
        put(user_skills / "one", file="skill.md")
        assert Library().get("one").file == "skill.md"

    def test_the_bundled_skill_is_without_fault(self) -> None:
        """What Tacit ships passes its own check, to the letter."""
        from tacit.skills.skill_lint import lint

        for entry in Library().entries:
            assert lint(entry.folder, strict=True) == []

    def test_hosts_may_be_left_out(self, home: Path, put) -> None:
        """`skills.hosts = false` reads the shared folders only."""
        put(home / ".claude" / "skills" / "one")
        assert Library(settings=Settings(skills=SkillSettings(hosts=False))).find("one") is None
        assert Library().find("one") is not None


@pytest.mark.parametrize("what", ["the file", "the folder", "all skills"])
def test_a_link_out_of_a_trusted_project_is_not_followed(
    home: Path, project: Path, what: str
) -> None:
    """A SKILL.md that leads to a file of the user's is listed and not loaded, nor offered."""
    trust.add(str(project))
    secret = home / "private" / "stolen"
    secret.mkdir(parents=True)
    (secret / "SKILL.md").write_text("machine example.com login me password TOPSECRET\n")
    skills = project / ".agents" / "skills"
    if what == "all skills":
        skills.parent.mkdir()
        skills.symlink_to(home / "private")
    elif what == "the folder":
        skills.mkdir(parents=True)
        (skills / "stolen").symlink_to(secret)
    else:
        (skills / "stolen").mkdir(parents=True)
        (skills / "stolen" / "SKILL.md").symlink_to(secret / "SKILL.md")
    library = load()
    assert [entry.state for entry in own(library)] == ["untrusted"]
    assert "TOPSECRET" not in library.catalogue().text
    assert not [entry for entry in library.active() if entry.name == "stolen"]


def test_a_link_that_is_exchanged_after_the_listing_is_refused(home: Path, project: Path) -> None:
    """The file is looked at again when it is read."""
    trust.add(str(project))
    folder = project / ".agents" / "skills" / "mine"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: mine\ndescription: d\n---\nbody\n")
    (home / ".netrc").write_text("TOPSECRET")
    library = load()
    assert library.read("mine").name == "mine"
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(home / ".netrc")
    for looked_again in (library, load()):
        with pytest.raises(NotFound, match="leads out"):
            looked_again.read("mine")
    (project / ".agents" / "skills" / "away").symlink_to(home / "away")
    (home / "away").mkdir()
    (home / "away" / "SKILL.md").write_text("---\nname: away\ndescription: d\n---\nTOPSECRET\n")
    with pytest.raises(NotFound, match="leads out"):
        load().read("away")


def test_a_link_of_a_project_to_the_users_own_skill_keeps_that_skill(
    home: Path, project: Path
) -> None:
    """What it leads to is the user's and stays active by itself."""
    trust.add(str(project))
    own_skill = home / ".agents" / "skills" / "mine"
    own_skill.mkdir(parents=True)
    (own_skill / "SKILL.md").write_text("---\nname: mine\ndescription: d\n---\nbody\n")
    (project / ".agents" / "skills").mkdir(parents=True)
    (project / ".agents" / "skills" / "mine").symlink_to(own_skill)
    assert states(load()) == {".agents/skills/mine": "active"}


class TestKept:
    def test_it_is_the_same_while_nothing_changes(self, user_skills, put, later) -> None:
        """And another one after any change: of a skill, of the settings, of trust."""
        put(user_skills / "one")
        later()
        kept = KeptLibrary(os.getcwd(), fresh=0.0)
        first = kept.now()
        assert kept.now() is first
        put(user_skills / "one", description="Changed.")
        assert [e.description for e in own(kept.now())] == ["Changed."]
        assert [e.description for e in own(first)] != ["Changed."]

    def test_what_settings_and_trust_change_is_seen(self, home, project: Path, put) -> None:
        put(project / ".agents" / "skills" / "theirs")
        put(home / "more" / "mine")
        kept = KeptLibrary(str(project), fresh=0.0)
        assert states(kept.now()) == {"project/.agents/skills/theirs": "untrusted"}
        trust.add(str(project))
        assert states(kept.now()) == {"project/.agents/skills/theirs": "active"}
        set_values({"skills.paths": ["~/more"]})
        assert "more/mine" in states(kept.now())

    def test_within_its_time_the_disk_is_left_alone(self, user_skills, put) -> None:
        """Unless somebody says that something was changed."""
        kept = KeptLibrary(os.getcwd(), fresh=3600.0)
        kept.now()
        put(user_skills / "one")
        assert own(kept.now()) == []
        kept.put_back()
        assert [e.name for e in own(kept.now())] == ["one"]

    def test_what_is_at_hand_is_looked_at_once(self, user_skills, put) -> None:
        with at_hand(KeptLibrary(os.getcwd(), fresh=0.0)):
            put(user_skills / "one")
            assert [e.name for e in own(library_here())] == ["one"]
            put(user_skills / "two")
            assert [e.name for e in own(library_here())] == ["one"]
        assert [e.name for e in own(library_here())] == ["one", "two"]


class TestKeptForOneName:
    """A request about one skill looks at few files, and all that it says of that skill holds."""

    @pytest.fixture
    def kept(self, user_skills, project: Path, put, later) -> KeptLibrary:
        for n in range(20):
            put(user_skills / f"other-{n}")
        put(user_skills / "one")
        put(user_skills / "folder", name="called")
        later()
        kept = KeptLibrary(str(project), fresh=0.0)
        kept.now()
        return kept

    def test_only_its_files_are_looked_at(self, kept: KeptLibrary, monkeypatch) -> None:
        looked: list[str] = []
        stat = os.stat
        monkeypatch.setattr(
            os, "stat", lambda path, **more: looked.append(str(path)) or stat(path, **more)
        )
        kept.now("")
        assert [path for path in looked if path.endswith("SKILL.md")] == []
        kept.now("one")
        assert [path for path in looked if path.endswith("SKILL.md")] == ["one/SKILL.md"]
        kept.now()
        assert len([path for path in looked if path.endswith("SKILL.md")]) > 20

    def test_what_was_just_edited_is_seen(self, kept: KeptLibrary, user_skills, put) -> None:
        """By the name that it has, by its folder's, and when it has another now, or none."""
        put(user_skills / "one", description="Edited.")
        assert kept.now("one").get("one").description == "Edited."
        put(user_skills / "folder", name="called", description="This too.")
        assert kept.now("folder").get("folder").description == "This too."
        put(user_skills / "one", name="renamed")
        assert kept.now("one").get("one").name == "renamed"
        (user_skills / "one" / "SKILL.md").unlink()
        assert kept.now("one").find("one") is None

    def test_what_shadows_what_stays_right(
        self, kept: KeptLibrary, project: Path, user_skills, put
    ) -> None:
        """A skill that comes, one that goes, and a project that is trusted."""
        theirs = project / ".agents" / "skills" / "one"
        put(theirs)
        assert len(kept.now("").named("one")) == 2
        assert kept.now("one").get("one").folder == str(user_skills / "one")
        trust.add(str(project))
        library = kept.now("one")
        assert library.get("one").folder == str(theirs)
        assert [e.folder for e in library.shadowed(library.get("one"))] == [
            str(user_skills / "one")
        ]
        put(theirs, name="something-else")
        assert kept.now("one").get("one").folder == str(user_skills / "one")

    def test_the_others_are_looked_at_now_and_then(
        self, kept: KeptLibrary, user_skills, put, monkeypatch
    ) -> None:
        """So a file elsewhere that took on the name is seen, if not at once."""
        put(user_skills / "other-3", name="new-name")
        assert kept.now("new-name").find("new-name") is None
        monkeypatch.setattr("tacit.skills.library._OTHERS_FRESH", 0.0)
        kept.now("new-name")
        assert kept._others is not None
        kept._others.join()
        assert kept.now("new-name").get("new-name").folder.endswith("other-3")
        kept._others.join()
