"""Commands that try to get out of the sandbox. Each asks a real shell in a real bubblewrap."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent import sandbox
from tacit.agent.off_limits import is_obeyed_path
from tacit.agent.process_rights import landlock_version
from tacit.agent.sandbox import Bubblewrap, CommandRules

_PYTHON = os.path.realpath(sys.executable)
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")


def test_the_project_can_be_written_and_the_rest_cannot(box: Box) -> None:
    """A file lands in the project and in /tmp; home, the disk and the skills folder refuse."""
    skills = box.home / ".agents" / "skills" / "s"
    skills.mkdir(parents=True)
    done = box.run(
        f"echo a > here && echo b > /tmp/there; for f in {box.home}/x {skills}/SKILL.md /etc/x"
        f" /usr/x /var/tmp/x /x {box.project}/../y; do echo c > $f; done; echo end"
    )
    assert "end" in done.output
    assert (box.project / "here").read_text() == "a\n"
    assert (box.temporary / "there").read_text() == "b\n"
    assert not (box.home / "x").exists()
    assert not (skills / "SKILL.md").exists()
    assert not (box.home / "y").exists()
    assert done.output.count("Read-only file system") == 7


@pytest.mark.parametrize(
    "command",
    [
        "echo evil > .git/hooks/post-checkout",
        "echo evil > .git/config",
        "git config core.fsmonitor evil",
        "rm -rf .git/hooks; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout",
        "mv .git/hooks .git/h; mkdir .git/hooks; echo evil > .git/hooks/post-checkout",
        "mv .git g; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout",
        "mv .git g; cp -r g .git; echo evil > .git/config; rm -rf g",
        "echo ../evil > .git/commondir",
        "mkdir -p .husky; echo evil > .husky/pre-commit",
        "mkdir -p .tacit; echo evil > .tacit/config.toml",
        "mkdir -p .agents/skills/evil; echo evil > .agents/skills/evil/SKILL.md",
        "mkdir -p .agents/memory/evil; echo evil > .agents/memory/evil/FACT.md",
        "mkdir -p evil/skills/evil; echo evil > evil/skills/evil/SKILL.md; ln -s evil .claude",
        "ln -s /tmp .agents; mkdir -p /tmp/skills/evil; echo evil > /tmp/skills/evil/SKILL.md",
    ],
)
def test_what_would_run_or_be_read_later_cannot_be_planted(box: Box, command: str) -> None:
    """Neither git's hooks and settings nor skill folders hold anything new afterwards."""
    before = (box.project / ".git" / "config").read_bytes()
    box.run(command)
    assert (box.project / ".git" / "config").read_bytes() == before
    hooks = box.project / ".git" / "hooks"
    assert not hooks.exists() or not [f for f in hooks.iterdir() if f.suffix != ".sample"]
    assert not (box.project / ".git" / "commondir").exists()
    for name in (".husky", ".tacit", ".agents/skills", ".agents/memory", ".claude/skills"):
        assert not (box.project / name).exists(), name


@pytest.mark.parametrize("kind", ["a folder", "inside a link"])
def test_a_skill_folder_that_exists_is_read_only(box: Box, kind: str) -> None:
    """Skills of the project can be read by commands, and not changed, moved or replaced."""
    real = box.project / (".agents" if kind == "a folder" else "elsewhere")
    (real / "skills" / "mine").mkdir(parents=True)
    text = real / "skills" / "mine" / "SKILL.md"
    text.write_text("mine")
    if kind == "inside a link":
        (box.project / ".agents").symlink_to("elsewhere")
    done = box.run(
        "cat .agents/skills/mine/SKILL.md; echo evil > .agents/skills/mine/SKILL.md;"
        f"mv {real.name} gone; rm -rf .agents/skills/mine; mkdir .agents/skills/evil; true"
    )
    assert done.output.startswith("mine")
    assert text.read_text() == "mine"
    assert [path.name for path in (real / "skills").iterdir()] == ["mine"]


def test_a_repository_made_by_a_command_stays_if_nothing_in_it_runs(far: Path) -> None:
    """`git init` with a commit works; one with a hook or an alias is taken away again."""
    as_n = "git -c user.name=n -c user.email=e"
    made = f"git init -q . && echo a > a && git add a && {as_n} commit -qm a"
    box = Box(far, far / "work")
    assert not box.run(made).failed
    assert (far / "work" / ".git" / "HEAD").exists()
    for number, evil in enumerate(
        ["git config alias.st '!evil'", "echo x > .git/hooks/pre-commit"]
    ):
        other = far / f"other{number}"
        other.mkdir()
        done = Box(far, other).run(f"{made} && {evil}")
        assert done.removed == (".git",)
        assert done.failed
        assert not (other / ".git").exists()


def test_a_commit_can_be_made(box: Box) -> None:
    """Guarding git's settings leaves git usable."""
    done = box.run("echo a > a && git add a && git -c user.name=n -c user.email=e commit -qm one")
    assert done.exit_code == 0, done.output
    log = subprocess.run(
        ["git", "-C", str(box.project), "log", "--format=%s"], capture_output=True, text=True
    )
    assert log.stdout == "one\n"


@pytest.mark.parametrize(
    "place",
    [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".claude.json"],
)
def test_secrets_in_home_are_not_there(box: Box, place: str) -> None:
    """A key in a usual place cannot be read by its path, by a link, or through /proc."""
    secret = box.home / place
    secret.parent.mkdir(parents=True, exist_ok=True)
    secret.write_text("TOPSECRET")
    (box.project / "link").symlink_to(secret)
    (box.project / "up").symlink_to(box.home)
    done = box.run(
        f"cat {secret}; cat link; cat up/{place}; cat /proc/1/root{secret};"
        f"cat /proc/self/root{secret};"
        f"cat /proc/1/cwd/link; cp -r {secret} copy; tar cf - {secret} | strings;"
        f"ln {secret} hard && cat hard; true"
    )
    assert "TOPSECRET" not in done.output


def test_a_linked_folder_of_secrets_is_hidden_where_it_really_is(box: Box) -> None:
    """~/.ssh may be a link to another folder; that one is hidden."""
    real = box.home / "dotfiles" / "ssh"
    real.mkdir(parents=True)
    (real / "id_rsa").write_text("TOPSECRET")
    (box.home / ".ssh").symlink_to(real)
    done = box.run(f"cat ~/.ssh/id_rsa {real}/id_rsa; ls -la {real}")
    assert "TOPSECRET" not in done.output


def test_files_of_keys_in_the_project_are_empty_inside(box: Box) -> None:
    """.env and keys, at any depth and through links, are empty, unless the user shows them."""
    deep = box.project / "packages" / "app"
    deep.mkdir(parents=True)
    (box.project / ".env").write_text("KEY=TOPSECRET")
    (deep / ".env.local").write_text("KEY=TOPSECRET")
    (deep / "real.txt").write_text("TOPSECRET")
    (box.project / ".env.prod").symlink_to("packages/app/real.txt")
    (box.project / "innocent").symlink_to(".env")
    (box.project / ".env.example").write_text("EXAMPLE")
    command = "cat .env .env.prod innocent packages/app/* packages/app/.env.local .env.example;"
    command += "mv .env x; cat x"
    done = box.run(command)
    assert "TOPSECRET" not in done.output
    assert "EXAMPLE" in done.output
    assert "TOPSECRET" in box.run(command, show_secrets=True).output


def test_system_secrets_are_hidden_even_from_root(box: Box) -> None:
    """/etc/shadow and host keys cannot be read, whoever runs this; nor Tacit's own data."""
    data = box.home / ".local" / "share" / "tacit"
    data.mkdir(parents=True)
    (data / "tacit.db").write_text("TOPSECRET")
    done = box.run(f"wc -c < /etc/shadow; ls /etc/ssh | wc -l; cat {data}/tacit.db; id -u")
    assert "TOPSECRET" not in done.output
    if os.path.exists("/etc/shadow"):
        assert done.output.split()[0] == "0" or "denied" in done.output


def test_the_environment_has_no_keys(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and sockets in the user's variables reach neither the command nor bubblewrap."""
    for name in ("ANTHROPIC_API_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "MY_PASSWORD"):
        monkeypatch.setenv(name, "TOPSECRET")
    done = box.run("env; cat /proc/*/environ | tr '\\0' '\\n'; set")
    assert "PATH=" in done.output
    assert "TOPSECRET" not in done.output


def test_there_is_no_network_unless_it_is_allowed(box: Box) -> None:
    """A server on loopback cannot be reached; with the setting it can."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 3); print(1)"
    command = f'{_PYTHON} -c "{code}"'
    try:
        refused = box.run(command)
        assert refused.exit_code == 1
        assert "Error" in refused.output
        reached = box.run(command, network=True)
        assert (reached.exit_code, reached.output) == (0, "1\n")
    finally:
        listener.close()


@pytest.mark.skipif(landlock_version() < 6, reason="this kernel cannot keep them apart")
def test_the_network_brings_no_sockets_without_a_file(box: Box) -> None:
    """Abstract ones belong to the network: by one, a display takes keystrokes. Its own work."""
    name = f"tacit-{os.getpid()}"
    own = (
        "import socket, sys; there = socket.socket(1); there.bind(chr(0) + 'own'); there.listen();"
        "socket.socket(1).connect(chr(0) + 'own'); print('own');"
        f"socket.socket(1).connect(chr(0) + '{name}'); print('other')"
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        done = box.run(f'{_PYTHON} -c "{own}" 2>&1', network=True)
    assert "own\n" in done.output
    assert "other\n" not in done.output
    assert "not permitted" in done.output


def test_a_socket_in_the_project_cannot_be_called(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's list of sockets has a relative name as it was given, as by `nvim --listen x`."""
    monkeypatch.chdir(box.project)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x")
        listener.listen()
        code = "import socket; socket.socket(socket.AF_UNIX).connect('x')"
        assert box.run(f'{sys.executable} -c "{code}"').failed


def test_other_programs_sockets_cannot_be_called(box: Box) -> None:
    """A socket file under home or /run, where an agent of keys may listen, is not there."""
    path = box.home / "agent.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{path}')"
    try:
        for network in (False, True):
            refused = box.run(f'{_PYTHON} -c "{code}"', network=network)
            assert refused.exit_code == 1
            assert "Error" in refused.output
        assert box.run("ls -A /run").output == ""
    finally:
        listener.close()


def test_processes_outside_cannot_be_seen_or_signalled(box: Box) -> None:
    """Inside, there are only the command's own processes, and no new powers to be had."""
    outside = subprocess.Popen(["sleep", "60"])
    try:
        done = box.run(
            f"kill -9 {outside.pid}; ls /proc | grep -c '^[0-9]'; cat /proc/{outside.pid}/cmdline;"
            "mount -t tmpfs x /mnt; unshare -m true; chroot / true; mknod d b 8 0; true"
        )
        assert outside.poll() is None
        assert "sleep" not in done.output
        assert not (box.project / "d").exists()
    finally:
        outside.kill()
        outside.wait()


def test_the_kernels_switches_cannot_be_written(box: Box) -> None:
    """Nothing in /proc but one's own processes, and nothing in /sys, is writable, even for root.

    Asked by access(2), which knows of read-only mounts: trying it out would change the machine.
    """
    done = box.run(
        "find /proc -maxdepth 1 -mindepth 1 -not -name '[0-9]*' -not -type l -writable;"
        "find /proc/sys /proc/irq /proc/bus /proc/fs /sys -writable -not -type l 2>/dev/null;"
        "find /proc/sys/kernel | wc -l"
    )
    assert int(done.output) > 10, done.output


@pytest.mark.parametrize(
    "name", ["with space", 'it\'s "quoted"', "ünï-côdé-日本", "$(touch x)", "a\nb"]
)
def test_odd_project_paths(far: Path, name: str) -> None:
    """Spaces, quotes, other alphabets and shell signs in the project's path change nothing."""
    project = far / name
    project.mkdir()
    done = Box(far, project).run("echo hello > file && cat file && pwd")
    assert done.output == f"hello\n{project}\n"
    assert (project / "file").read_text() == "hello\n"


def test_a_project_that_is_a_link(far: Path) -> None:
    """The real folder is written, and its neighbours are not."""
    real = far / "real"
    real.mkdir()
    (far / "linked").symlink_to(real)
    done = Box(far, far / "linked").run("echo a > a; echo b > ../b; pwd")
    assert (real / "a").exists()
    assert not (far / "b").exists()
    assert str(real) in done.output


def test_home_and_project_in_the_temporary_folder(home: Path) -> None:
    """With all of it under /tmp, as in these tests, home stays hidden and the project works."""
    if not str(home).startswith("/tmp/"):
        pytest.skip("the tests' own folder lies elsewhere")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("TOPSECRET")
    box = Box(home, home / "work")
    done = box.run(f"echo a > a; cat ~/.ssh/id_rsa; ls -A {home}; ls -A /tmp")
    assert "TOPSECRET" not in done.output
    assert "\nwork\n" in done.output
    assert (home / "work" / "a").exists()


def test_working_in_home_itself_hides_its_secrets(home: Path) -> None:
    """When the project is the home folder, the folders of secrets in it are still hidden."""
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("TOPSECRET")
    temporary = home / "t"
    temporary.mkdir()
    rules = CommandRules(str(home), str(temporary))
    done = asyncio.run(
        sandbox.run_sandboxed("cat .ssh/id_rsa; echo a > a", Bubblewrap(), rules, 20)
    )
    assert "TOPSECRET" not in done.output
    assert (home / "a").exists()


def test_a_read_only_project(box: Box) -> None:
    """With that rule, the project can be read and not written, a staged folder can."""
    staged = box.home / "staged"
    staged.mkdir()
    (box.project / "f").write_text("text")
    rules = box.rules(read_only_project=True, writable=(str(staged),))
    command = f"cat f; echo x > g; echo y > {staged}/h"
    done = asyncio.run(sandbox.run_sandboxed(command, Bubblewrap(), rules, 20))
    assert done.output.startswith("text")
    assert not (box.project / "g").exists()
    assert (staged / "h").read_text() == "y\n"


def test_tacit_s_own_folders_in_the_project_are_not_replaced(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody works in their home: no session, event or setting there is a command's."""
    own = box.project / "mine" / "tacit"
    monkeypatch.setenv("TACIT_HOME", str(own))
    (own / "data" / "events").mkdir(parents=True)
    (own / "data" / "trusted").write_text("")
    done = box.run(
        "mv mine gone; mv mine/tacit gone; mv mine/tacit/data gone; mkdir -p mine/tacit/config;"
        " echo 'sandbox = \"none\"' > mine/tacit/config/config.toml; rm -rf mine;"
        " mkdir -p mine/tacit/data/events; echo forged > mine/tacit/data/events/1.event;"
        " mkdir -p mine/tacit/config; echo x > mine/tacit/config/config.toml"
    )
    assert done.removed == ("mine/tacit/config",)
    assert {path.name for path in (own / "data").iterdir()} == {"events", "trusted"}
    assert not list((own / "data" / "events").iterdir())
    assert not (own / "config").exists()


def test_skill_folders_by_the_settings_and_of_the_user_stay_as_they_are(box: Box) -> None:
    """There or not, whatever their names are."""
    team = box.project / "team"
    team.mkdir()
    inside = Box(box.home, box.home)
    inside.run("mkdir -p .config/opencode/skills/evil; touch .config/opencode/skills/evil/SKILL.md")
    make = "mkdir -p team/evil later/evil; touch team/evil/SKILL.md later/evil/SKILL.md"
    box.run(make, skills=(str(team), str(box.project / "later")))
    left = (path for path in box.home.rglob("SKILL.md") if box.temporary not in path.parents)
    assert not list(left)


def test_what_tacit_is_made_of_stays_as_it_is(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed in the project's own environment, it is not changed by what it runs, unless the
    user allows it."""
    code = box.project / ".venv" / "lib" / "tacit.py"
    code.parent.mkdir(parents=True)
    code.write_text("ours")
    monkeypatch.setattr(sys, "prefix", str(box.project / ".venv"))
    change = "echo evil > .venv/lib/tacit.py; mv .venv v; ls"
    box.run(change)
    assert code.read_text() == "ours"
    assert is_obeyed_path(str(code), box.rules())
    box.run(change, allow_write=(".venv",))
    assert not code.exists()
