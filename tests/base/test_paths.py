"""Where Tacit keeps its files, and where a project begins."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from tacit.base import paths


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the short cut is Linux's")
@pytest.mark.parametrize("value", [None, "", "  ", "/srv/xdg", "/srv/xdg/", "/srv/x y", "/字"])
def test_folders_are_those_of_platformdirs(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without importing it, the same answer for each XDG variable."""
    for kind in ("CONFIG", "DATA", "CACHE"):
        if value is not None:
            monkeypatch.setenv(f"XDG_{kind}_HOME", value)
    own = paths.folders()
    assert own.config == platformdirs.user_config_dir("tacit", appauthor=False)
    assert own.data == platformdirs.user_data_dir("tacit", appauthor=False)
    assert own.cache == platformdirs.user_cache_dir("tacit", appauthor=False)


def test_tacit_home_moves_everything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Config, data and cache all go below it; a tilde and a relative path are understood."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    for value, base in (("~/t", home / "t"), ("rel", home / "work" / "rel"), ("/t", Path("/t"))):
        monkeypatch.setenv("TACIT_HOME", value)
        own = paths.folders()
        assert (own.config, own.data, own.cache) == tuple(
            str(base / part) for part in ("config", "data", "cache")
        )
        assert own.config_file == str(base / "config" / "config.toml")


def test_asking_creates_nothing(home: Path) -> None:
    """Folders are only named, not made."""
    paths.folders()
    paths.config_files(str(home))
    assert [entry.name for entry in home.iterdir()] == ["work"]


class TestProjectRoot:
    @pytest.mark.parametrize("mark", [".git", ".hg", ".jj", ".tacit"])
    def test_the_nearest_mark_above_counts(self, home: Path, mark: str) -> None:
        """A folder with a mark is the root for all below it, up to a nearer one."""
        inner = home / "p" / "packages" / "one"
        (inner / "src").mkdir(parents=True)
        (home / "p" / mark).mkdir()
        assert paths.project_root(str(inner / "src")) == str(home / "p")
        (inner / mark).mkdir()
        assert paths.project_root(str(inner / "src")) == str(inner)
        assert paths.project_root(str(home / "p" / "packages")) == str(home / "p")

    def test_a_mark_may_be_a_file(self, home: Path) -> None:
        """In a worktree `.git` is a file, in a broken one a link to nothing."""
        (home / "a").mkdir()
        (home / "a" / ".git").write_text("gitdir: x")
        assert paths.project_root(str(home / "a")) == str(home / "a")
        (home / "b" / "c").mkdir(parents=True)
        (home / "b" / ".git").symlink_to("nowhere")
        assert paths.project_root(str(home / "b" / "c")) == str(home / "b")

    def test_without_a_mark_the_folder_itself(self, home: Path) -> None:
        """Nothing above is taken for a project by chance."""
        (home / "a" / "b").mkdir(parents=True)
        assert paths.project_root(str(home / "a" / "b")) == str(home / "a" / "b")

    def test_home_is_never_a_project(self, home: Path) -> None:
        """A repository of dotfiles in the home folder does not make it one."""
        (home / ".git").mkdir()
        (home / "a").mkdir()
        assert paths.project_root(str(home / "a")) == str(home / "a")
        assert paths.project_root(str(home)) == str(home)

    def test_home_by_a_link_is_home(
        self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """HOME may be a link, while the working directory is always a real path."""
        link = tmp_path / "link"
        link.symlink_to(home)
        monkeypatch.setenv("HOME", str(link))
        (home / ".git").mkdir()
        (home / "a").mkdir()
        assert paths.project_root(str(home / "a")) == str(home / "a")
        assert paths.is_home(str(home))
        assert paths.is_home(str(link))
        assert not paths.is_home(str(home / "a"))

    def test_a_mark_above_home_does_not_reach_into_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A repository that holds the home folder is not the project of what lies in it."""
        (tmp_path / ".git").mkdir()
        (tmp_path / "home" / "a").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert paths.project_root(str(tmp_path / "home" / "a")) == str(tmp_path / "home" / "a")
        assert paths.project_root(str(tmp_path)) == str(tmp_path)

    def test_the_root_of_the_disk(self) -> None:
        """Walking up ends."""
        assert paths.project_root("/") == "/"


def test_upwards_is_nearest_first_and_ends_at_the_root() -> None:
    """Nothing above the project is looked at."""
    assert paths.upwards("/a/b/c", "/a") == ["/a/b/c", "/a/b", "/a"]
    assert paths.upwards("/a", "/a") == ["/a"]
    assert paths.upwards("/a/b", "/elsewhere") == ["/a/b", "/a", "/"]


def test_shorten(home: Path) -> None:
    """Home is a tilde; a neighbour with the same beginning is not home."""
    assert paths.with_tilde(str(home)) == "~"
    assert paths.with_tilde(str(home / "a")) == "~/a"
    assert paths.with_tilde(str(home) + "-two/a") == str(home) + "-two/a"


def test_importing_stays_light() -> None:
    """The module is on the way of every command: neither pathlib nor platformdirs is loaded."""
    code = "import sys; from tacit.base import paths; paths.folders(); print(*sys.modules)"
    out = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code],
        env={**os.environ, "PYTHONPATH": ""},
        cwd=Path(paths.__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"pathlib", "platformdirs", "msgspec", "re", "typing"} & set(out)


@pytest.mark.parametrize("first", ["locks", "deep/er", ""])
def test_our_folders_are_private_whatever_is_made_first(home: Path, first: str) -> None:
    """Not only the last of them; and one that was open before is closed."""
    os.umask(0)
    own = paths.folders()
    for top in (own.data, own.cache, own.config):
        paths.make_private(os.path.join(top, first) if first else top)
        assert os.stat(top).st_mode & 0o777 == 0o700
        os.chmod(top, 0o755)
        paths.make_private(os.path.join(top, "other"))
        assert os.stat(top).st_mode & 0o777 == 0o700


def test_folders_of_our_own_are_made_in_one_way() -> None:
    """`os.makedirs` gives its mode to the last folder alone, so nothing of ours is made with it."""
    source = Path(paths.__file__).parent.parent
    using = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if "os.makedirs(" in path.read_text("utf-8") and "testing" not in path.parts
    }
    assert using == {
        "base/paths.py",
        "hook.py",  # it imports nothing, and makes the data folder itself
         # the project
        "changes/containment.py", "work/host_links.py",  # folders of skills
        "learn/curate/curation_scope.py", "learn/improve/verification.py",  # copies elsewhere
        "learn/trial/verifier.py",  # and these
        "work/backup.py",  # what is put back, made aside and then moved into place
    }  # fmt: skip


def _repository(folder: Path) -> None:
    folder.mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True, env=_git_environment())


def _git_environment() -> dict[str, str]:
    names = {
        f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    return {**os.environ, **names}


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, env=_git_environment())


@pytest.mark.parametrize("relative", ["false", "true"])
def test_the_checkouts_of_a_repository_know_each_other(home: Path, relative: str) -> None:
    """From each one all others are found, the main one first, also below its root."""
    _repository(home / "main")
    _git(home / "main", "config", "worktree.useRelativePaths", relative)
    for name in ("b", "c"):
        _git(home / "main", "worktree", "add", "-q", f"../{name}")
    (home / "b" / "sub").mkdir()
    main, b, c = (str(home / name) for name in ("main", "b", "c"))
    assert paths.checkouts(main) == [main, b, c]
    assert paths.checkouts(c) == [c, main, b]
    assert paths.checkouts(f"{b}/sub") == [f"{b}/sub", main, c]


def test_a_folder_that_claims_to_be_a_checkout_is_none(home: Path) -> None:
    """Neither a forged file, nor a forged repository, nor a link to one joins a repository."""
    _repository(home / "main")
    _git(home / "main", "worktree", "add", "-q", "../b")
    forged = home / "forged"
    forged.mkdir()
    (forged / ".git").write_text(f"gitdir: {home}/main/.git/worktrees/b\n")
    assert paths.checkouts(str(forged)) == [str(forged)]
    shipped = home / "shipped"
    for name, leads in (("b", "b"), ("m", "main")):
        entry = shipped / ".git" / "worktrees" / name
        entry.mkdir(parents=True)
        (entry / "gitdir").write_text(f"{home}/{leads}/.git\n")
    assert paths.checkouts(str(shipped)) == [str(shipped)]
    linked = home / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to("../main/.git")
    assert paths.checkouts(str(linked)) == [str(linked)]
    assert paths.checkouts(str(home / "main")) == [str(home / "main"), str(home / "b")]


def test_what_stands_in_the_place_of_a_folder_is_named(home: Path) -> None:
    """A disk that is not mounted leaves a link that leads nowhere."""
    data = Path(paths.folders().data)
    data.parent.mkdir(parents=True)
    data.symlink_to(home / "away")
    with pytest.raises(NotADirectoryError, match=f"{data} is a link to {home}/away, where none is"):
        paths.make_private(str(data / "locks"))
    assert not (home / "away").exists()
    data.unlink()
    data.write_text("")
    with pytest.raises(NotADirectoryError, match=f"{data} is a file"):
        paths.make_private(str(data / "locks"))


def test_a_walk_is_that_of_the_system_at_any_depth(tmp_path: Path) -> None:
    """The same order, what is taken off the list is passed over, and links are not followed."""
    for name in ("b/x", "a/y/z", "c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "c" / "link").symlink_to(tmp_path / "a")

    def seen(walk: "Callable[[str], Iterator[tuple[str, list[str], list[str]]]]") -> list[object]:
        found: list[object] = []
        for here, folders, names in walk(str(tmp_path)):
            folders[:] = sorted(name for name in folders if name != "z")
            found.append((here, folders, sorted(names)))
        return found

    assert seen(paths.walk_folders) == seen(os.walk)
    errors: list[OSError] = []
    assert not list(paths.walk_folders(str(tmp_path / "none"), errors.append))
    assert isinstance(errors[0], FileNotFoundError)
    os.makedirs(tmp_path / "/".join("d" * 90))
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 50)
    try:
        assert sum(1 for _ in paths.walk_folders(str(tmp_path / "d"))) == 90
    finally:
        sys.setrecursionlimit(most)


def test_every_walk_is_this_one() -> None:
    """A clone with a thousand nested folders ended commands and backups."""
    source = Path(paths.__file__).parents[1]
    assert [f for f in source.rglob("*.py") if "os.walk(" in f.read_text("utf-8")] == []
