"""Fetching agents once, with an npm of a few lines in place of the real one."""

from pathlib import Path

import pytest

from tacit.base.errors import NotFound
from tacit.testing.agents import PI
from tacit.testing.installing import InstallFailed, default_cache, forget, install, is_there

NPM = r"""#!/bin/sh
# npm install --prefix FOLDER --no-audit --no-fund PACKAGE@VERSION
echo "$6" >> "$NPM_LOG"
if [ -n "$NPM_FAILS" ]; then
  echo "npm warn of no interest" >&2
  echo "npm error notarget No matching version found" >&2
  exit 1
fi
name=${6%@*}; version=${6##*@}
mkdir -p "$3/node_modules/.bin" "$3/node_modules/$name/bin"
echo "{\"version\": \"$version\"}" > "$3/node_modules/$name/package.json"
touch "$3/node_modules/$name/bin/node"
[ -n "$NPM_FORGETS" ] || touch "$3/node_modules/.bin/pi"
"""
NODE, PACKAGE = "node@24", f"{PI.package}@{PI.version}"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of an npm that makes the right files, or fails when told to."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(NPM)
    program.chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("NPM_LOG", str(log))
    return log


def asked(log: Path) -> list[str]:
    return log.read_text().split()


def test_fetched_once(npm, tmp_path) -> None:
    """Node and the agent are fetched the first time and not the second."""
    cache = tmp_path / "cache"
    assert not is_there(PI, cache)
    first = install(PI, cache)
    assert asked(npm) == [NODE, PACKAGE]
    assert install(PI, cache) == first
    assert asked(npm) == [NODE, PACKAGE]
    assert is_there(PI, cache)
    assert first.version == PI.version
    assert first.program.name == "pi"
    assert first.program.exists()
    assert (first.path[0] / "node").exists()


def test_versions_lie_side_by_side(npm, tmp_path) -> None:
    """Another version is another folder, and `forget` makes the next install look again."""
    cache = tmp_path / "cache"
    known, newest = install(PI, cache), install(PI, cache, version="latest")
    assert known.program != newest.program
    forget(PI, cache, version="latest")
    install(PI, cache, version="latest")
    assert asked(npm) == [NODE, PACKAGE, f"{PI.package}@latest", f"{PI.package}@latest"]


def test_a_failure_says_npms_reason_and_is_tried_again(npm, tmp_path, monkeypatch) -> None:
    """npm's own error is in the message, and the broken folder does not count as there."""
    cache = tmp_path / "cache"
    install(PI, cache, version="0.1.0")
    with monkeypatch.context() as broken:
        broken.setenv("NPM_FAILS", "1")
        with pytest.raises(InstallFailed, match="No matching version found"):
            install(PI, cache)
    assert not is_there(PI, cache)
    assert install(PI, cache).version == PI.version


def test_an_install_without_the_program_is_a_failure(npm, tmp_path, monkeypatch) -> None:
    """npm may end well and leave no program: that is said, not found out later."""
    monkeypatch.setenv("NPM_FORGETS", "1")
    with pytest.raises(InstallFailed, match="there is no"):
        install(PI, tmp_path / "cache")
    assert not is_there(PI, tmp_path / "cache")


def test_without_npm(tmp_path, monkeypatch) -> None:
    """A machine without npm is told so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="npm is not on the PATH"):
        install(PI, tmp_path / "cache")


def test_the_cache_can_be_moved(home, monkeypatch) -> None:
    """The cache lies in the user's cache folder, or where TACIT_HOSTS_CACHE says."""
    assert default_cache() == home / ".cache" / "tacit-test-hosts"
    monkeypatch.setenv("TACIT_HOSTS_CACHE", "/elsewhere")
    assert default_cache() == Path("/elsewhere")
