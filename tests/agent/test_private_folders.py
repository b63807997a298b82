"""What a command sees of people's folders: the project, and what a build needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent.off_limits import CommandRules
from tacit.agent.private_folders import private_folders, shown_paths
from tacit.base.errors import Refused

needs_bubblewrap = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")

SECRET = (
    "other/.env", "other/src/main.py", ".claude/projects/x/s.jsonl", ".codex/sessions/a/b.jsonl",
    ".local/share/opencode/opencode.db", ".config/sops/age/keys.txt", ".databrickscfg",
    ".cache/huggingface/token", ".huggingface/token", ".config/containers/auth.json",
    ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".cargo/credentials.toml",
    ".m2/settings.xml", ".gem/credentials", "Documents/letter.txt", ".config/whatever/token",
    ".tool-of-tomorrow", ".npmrc", ".ssh/id_rsa", ".local/share/uv/credentials/credentials.toml",
    ".stack/upload/credentials.json",
)  # fmt: skip
NEEDED = (
    ".pyenv/versions/3.12/bin/python", ".nvm/versions/node/v24/bin/node", ".cargo/bin/cargo",
    ".cargo/registry/index/x", ".cargo/config.toml", ".rustup/toolchains/x", "go/pkg/mod/x",
    ".cache/pip/x", ".cache/uv/x", ".cache/go-build/x", ".npm/_cacache/x", ".m2/repository/x",
    ".gradle/caches/x", ".gradle/wrapper/x", ".local/share/uv/python/x", ".local/bin/tool",
    ".gitconfig", ".agents/skills/s/SKILL.md", ".claude/skills/t/SKILL.md",
)  # fmt: skip


def _fill(home: Path, names: tuple[str, ...], text: str) -> None:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


@needs_bubblewrap
@pytest.mark.parametrize("name", SECRET)
def test_the_home_is_hidden(box: Box, name: str) -> None:
    """Other projects, transcripts, tokens, histories and whatever comes tomorrow are not there."""
    _fill(box.home, SECRET, "TOPSECRET")
    (box.project / "way").symlink_to(box.home / name)
    done = box.run(f"cat {box.home}/{name} way ~/{name} /proc/1/root{box.home}/{name}; true")
    assert "TOPSECRET" not in done.output


@needs_bubblewrap
def test_what_a_build_needs_is_there(box: Box) -> None:
    """Toolchains, caches of packages, harmless settings and the user's skills can be read only."""
    _fill(box.home, NEEDED, "fine\n")
    names = " ".join(f"~/{name}" for name in NEEDED)
    done = box.run(f"cat {names}; echo x > ~/.cargo/registry/index/x || echo ro")
    assert done.output.count("fine") == len(NEEDED), done.output
    assert "Read-only" in done.output


@needs_bubblewrap
def test_settings_of_tools_with_a_secret_are_hidden(box: Box) -> None:
    """A token in the address of a package index keeps the whole file away."""
    conf = box.home / ".config" / "pip" / "pip.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("[global]\nindex-url = https://me:s3cr3tT0ken9Qx@pypi.example.com/simple\n")
    assert "s3cr3t" not in box.run(f"cat {conf}").output
    conf.write_text("[global]\nindex-url = https://pypi.example.com/simple\n")
    assert "pypi.example.com" in box.run(f"cat {conf}").output


def test_a_program_on_the_path_shows_no_tokens_beside_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the hidden folder in the home that a program made, only parts made for programs."""
    _fill(home, (".pulumi/bin/p", ".pulumi/lib/p", ".pulumi/credentials.json", "sdk9/bin/j"), "")
    _fill(home, (".local/bin/p", ".local/share/agent/transcript"), "")
    monkeypatch.setenv("PATH", f"{home}/.pulumi/bin:{home}/sdk9/bin:{home}/.local/bin:/bin")
    shown = shown_paths(CommandRules(str(home / "work"), str(home / "t")))
    assert {f"{home}/.pulumi/bin", f"{home}/.pulumi/lib", f"{home}/sdk9"} <= set(shown)
    assert not {f"{home}/{name}" for name in (".pulumi", ".local", ".local/share")} & set(shown)


@needs_bubblewrap
def test_a_setting_shows_more(box: Box) -> None:
    """A folder that the user names can be read, also through a link, and not written."""
    real = box.home / "big" / "data"
    real.mkdir(parents=True)
    (real / "rows").write_text("rows")
    (box.home / "data").symlink_to(real)
    command = "cat ~/data/rows; echo x > ~/data/rows"
    assert "rows" not in box.run("cat ~/data/rows 2>/dev/null").output
    done = box.run(command, show=(str(box.home / "data"),))
    assert done.output.startswith("rows")
    assert (real / "rows").read_text() == "rows"


def test_whatever_is_no_part_of_the_system_is_private(home: Path) -> None:
    """Every folder at the top of the disk is the system's, or hidden, or holds the project."""
    found = private_folders(CommandRules(str(home / "work"), str(home / "t")))
    for name in os.listdir("/"):
        path = f"/{name}"
        if name in ("home", "root", "mnt", "media", "srv", "work", "data", "workspace"):
            assert not os.path.isdir(path) or os.path.realpath(path) in found
        if name in ("usr", "etc", "bin", "opt", "tmp", "dev"):
            assert path not in found
    assert "/usr" not in private_folders(CommandRules("/usr/src", "/t"))


def test_a_project_that_is_the_home_stays_open(home: Path) -> None:
    """What must be written is not hidden whole, nor is what it lies in shown."""
    rules = CommandRules(str(home), str(home / "t"))
    assert str(home) not in private_folders(rules)
    above = CommandRules(str(home / "work"), "/t", show=(str(home), str(home.parent), "/"))
    assert not {str(home), str(home.parent), "/"} & set(shown_paths(above))


@needs_bubblewrap
def test_env_files_are_hidden_at_any_depth(box: Box) -> None:
    """Neither many files nor a deep place lets one through, nor others' packages around it."""
    many = box.project / "a-many"
    many.mkdir()
    for n in range(25_000):
        os.mknod(f"{many}/f{n}")
    deep = box.project / "z" / Path(*["d"] * 40)
    deep.mkdir(parents=True)
    inside = box.project / "node_modules" / "x"
    inside.mkdir(parents=True)
    obeyed = box.project / ".claude" / "skills" / "s"
    obeyed.mkdir(parents=True)
    for folder in (deep, inside, obeyed, box.project / "z"):
        (folder / ".env").write_text("TOPSECRET")
    assert "TOPSECRET" not in box.run("find . -name .env | xargs cat").output
    (deep / ".env.local").write_text("TOPSECRET")
    assert "TOPSECRET" not in box.run("find . -name '.env*' | xargs cat").output


@needs_bubblewrap
def test_many_decoys_hide_no_key(box: Box) -> None:
    """A thousand files that look like keys do not use up the room for a real one."""
    for n in range(1_000):
        (box.project / f"decoy{n}.key").touch()
    (box.project / "zz.env").write_text("TOPSECRET")
    assert "TOPSECRET" not in box.run("cat zz.env").output
    for n in range(2_000):
        (box.project / f"more{n}.key").touch()
    with pytest.raises(Refused, match="more than the sandbox can hold"):
        box.run("cat zz.env")


@needs_bubblewrap
def test_python_builds_work(box: Box) -> None:
    """A virtual environment is made and used, and a package of the project is installed into it."""
    (box.project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "demo"\nversion = "1"\n'
    )
    (box.project / "backend.py").write_text(
        "import zipfile\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        "    name = 'demo-1-py3-none-any.whl'\n"
        "    with zipfile.ZipFile(f'{folder}/{name}', 'w') as z:\n"
        "        z.writestr('demo.py', 'print(42)')\n"
        "        z.writestr('demo-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\n'\n"
        "                   'Version: 1\\n')\n"
        "        z.writestr('demo-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\n'\n"
        "                   'Root-Is-Purelib: true\\nTag: py3-none-any\\n')\n"
        "        z.writestr('demo-1.dist-info/RECORD', '')\n"
        "    return name\n"
    )
    python = os.path.realpath(sys.executable)
    probe = subprocess.run([python, "-c", "import ensurepip"], capture_output=True)
    if probe.returncode:
        pytest.skip("this Python makes no virtual environments")
    done = box.run(
        f"{python} -m venv .venv && .venv/bin/pip install -q --no-index --no-build-isolation ."
        " && .venv/bin/python -c 'import demo'",
        seconds=120,
    )
    assert done.output.endswith("42\n"), done.output


@needs_bubblewrap
def test_in_the_home_itself_transcripts_and_tokens_are_hidden(far: Path) -> None:
    """Where the project is the home, what is known to be secret in it still is."""
    names = (
        ".claude/projects/x/s.jsonl", ".codex/sessions/a.jsonl", ".gemini/tmp/x/chats/a.json",
        ".local/share/opencode/opencode.db", ".hermes/state.db", ".pi/agent/sessions/x.jsonl",
        ".copilot/session-state/x/events.jsonl", ".config/sops/age/keys.txt", ".databrickscfg",
        ".cache/huggingface/token", ".config/containers/auth.json", ".zsh_history",
        ".local/share/fish/fish_history",
    )  # fmt: skip
    _fill(far, names, "TOPSECRET")
    done = Box(far, far).run(f"cat {' '.join(names)}; true")
    assert "TOPSECRET" not in done.output
