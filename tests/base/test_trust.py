"""Which folders are trusted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base import trust
from tacit.base.errors import Refused, Unwritable


def test_nothing_is_trusted_at_first(home: Path) -> None:
    """No file, no trust; asking creates none."""
    assert not trust.is_trusted(str(home))
    assert trust.trusted() == []
    assert not (home / ".local").exists()


def test_trust_holds_for_the_project(home: Path) -> None:
    """From anywhere in it; not for what lies above or beside, even with the same beginning."""
    for name in ("a/.git", "a/b/c", "ab"):
        (home / name).mkdir(parents=True)
    assert trust.add(str(home / "a"))
    assert trust.is_trusted(str(home / "a"))
    assert trust.is_trusted(str(home / "a" / "b" / "c"))
    assert trust.is_trusted(str(home / "a" / "not-there-yet"))
    assert not trust.is_trusted(str(home))
    assert not trust.is_trusted(str(home / "ab"))
    assert not trust.is_trusted(str(home / "a" / ".." / "ab"))


@pytest.mark.parametrize("mark", [".git", ".tacit", ".agents"])
@pytest.mark.parametrize("top", [".git", ""])
def test_a_clone_below_a_trusted_folder_is_not_trusted_by_that(
    home: Path, mark: str, top: str
) -> None:
    """Neither in a folder of projects, nor in a project; nor does an unpacked archive count."""
    (home / "all" / "evil" / mark).mkdir(parents=True)
    if top:
        (home / "all" / top).mkdir()
    trust.add(str(home / "all"))
    assert trust.is_trusted(str(home / "all"))
    if mark != ".agents" or not top:  # without a mark it is a folder of the project around it
        assert not trust.is_trusted(str(home / "all" / "evil"))


def test_a_server_is_allowed_for_the_file_as_it_is(home: Path) -> None:
    """Another file, other bytes or another name are not allowed by that."""
    one, two = str(home / "one.toml"), str(home / "two.toml")
    trust.allow_server(one, "aa", "files")
    trust.allow_server(one, "aa", "mail")
    assert trust.allowed_servers(one, "aa") == {"files", "mail"}
    assert not trust.allowed_servers(one, "bb")
    assert not trust.allowed_servers(two, "aa")
    trust.allow_server(one, "bb", "files")
    assert not trust.allowed_servers(one, "aa")
    Path(trust.trust_file()).with_name("allowed-servers.json").write_text('{"x": [')
    assert not trust.allowed_servers(one, "bb")


def test_trust_is_by_real_path(home: Path) -> None:
    """A link to a trusted folder is trusted; a link in it to the outside is not."""
    for name in ("real", "outside"):
        (home / name).mkdir()
    (home / "link").symlink_to("real")
    (home / "real" / "out").symlink_to(home / "outside")
    trust.add(str(home / "link"))
    assert trust.trusted() == [str(home / "real")]
    assert trust.is_trusted(str(home / "link"))
    assert not trust.is_trusted(str(home / "real" / "out"))


def test_a_moved_link_takes_no_trust_with_it(home: Path) -> None:
    """Trust was given to the folder, not to the name that led to it."""
    for name in ("one", "two"):
        (home / name).mkdir()
    (home / "link").symlink_to("one")
    trust.add(str(home / "link"))
    (home / "link").unlink()
    (home / "link").symlink_to("two")
    assert not trust.is_trusted(str(home / "link"))


def test_adding_and_removing_twice(home: Path) -> None:
    """The second time says that nothing changed."""
    assert trust.add(str(home)) is True
    assert trust.add(str(home)) is False
    assert trust.remove(str(home)) is True
    assert trust.remove(str(home)) is False
    assert trust.trusted() == []


def test_removing_what_lies_below_changes_nothing(home: Path) -> None:
    """Only the exact folder can be taken off the list."""
    (home / "p" / ".git").mkdir(parents=True)
    (home / "p" / "a").mkdir()
    trust.add(str(home / "p"))
    assert trust.remove(str(home / "p" / "a")) is False
    assert trust.is_trusted(str(home / "p" / "a"))


def test_a_folder_that_became_a_link_can_be_removed(home: Path) -> None:
    """What stands in the list can always be taken off it."""
    (home / "a" / "b").mkdir(parents=True)
    trust.add(str(home / "a" / "b"))
    (home / "a").rename(home / "moved")
    (home / "a").symlink_to("moved")
    assert not trust.is_trusted(str(home / "a" / "b"))
    assert trust.remove(str(home / "a" / "b"))
    assert trust.trusted() == []


@pytest.mark.parametrize(
    "name", ["a b", "字x", "a'\"$b", "#x", "\\x", "a\rb", "a\u2028b", "a\x85b"]
)
def test_odd_names_are_kept_exactly(home: Path, name: str) -> None:
    """A name with any character is trusted as it is, and no other folder with it."""
    (home / name).mkdir()
    trust.add(str(home / name))
    assert trust.trusted() == [str(home / name)]
    assert trust.is_trusted(str(home / name))
    assert not trust.is_trusted(str(home / name[0]))


def test_names_that_are_no_utf8(home: Path) -> None:
    """Bytes survive the way through the file."""
    name = os.fsdecode(os.fsencode(home) + b"/\xff\xfe")
    os.mkdir(name)
    trust.add(name)
    assert trust.is_trusted(name)


def test_a_line_end_in_a_name_is_refused(home: Path) -> None:
    """It would trust another folder."""
    (home / "a\nb").mkdir()
    with pytest.raises(Refused, match="line end"):
        trust.add(str(home / "a\nb"))
    assert trust.trusted() == []


def test_a_file_full_of_rubbish_trusts_nothing(home: Path) -> None:
    """Lines that are no absolute paths are passed over, good ones kept."""
    file = Path(trust.trust_file())
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00\xff\n\nrelative/path\n..\n~\n" + os.fsencode(home / "a") + b"\n")
    assert trust.trusted() == [str(home / "a")]
    assert not trust.is_trusted(str(home))
    assert not trust.is_trusted("relative/path")


def test_a_file_that_cannot_be_read_trusts_nothing(home: Path) -> None:
    """A folder in its place is no reason to raise, until something must be written."""
    Path(trust.trust_file()).mkdir(parents=True)
    assert trust.trusted() == []
    with pytest.raises(Unwritable):
        trust.add(str(home))


def test_where_no_lock_can_be_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder that is a file gives an error that names it."""
    (home / "file").write_text("")
    monkeypatch.setenv("TACIT_HOME", str(home / "file"))
    with pytest.raises(Unwritable, match="cannot lock"):
        trust.add(str(home))


def test_the_file_is_private(home: Path) -> None:
    """Nobody else can read or add to it."""
    trust.add(str(home))
    assert os.stat(trust.trust_file()).st_mode & 0o777 == 0o600


def test_many_processes_add_at_once(home: Path) -> None:
    """No addition is lost."""
    code = "import sys; from tacit.base import trust; [trust.add(p) for p in sys.argv[1:]]"
    folders = [[str(home / f"{worker}-{n}") for n in range(5)] for worker in range(6)]
    running = [subprocess.Popen([sys.executable, "-c", code, *part]) for part in folders]
    assert [process.wait(120) for process in running] == [0] * 6
    assert sorted(trust.trusted()) == sorted(path for part in folders for path in part)
