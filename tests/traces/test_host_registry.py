"""Which hosts there are, and how another package adds one."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import trace_samples

from tacit import hook
from tacit.agent.off_limits import is_secret_path
from tacit.base.errors import NotFound
from tacit.skills.scopes import skill_roots
from tacit.testing import HOST_CHECKS, Expected, HostCase
from tacit.traces import connection, hook_events, host_registry, hosts
from tacit.traces.assembler import read_trace
from tacit.traces.connector import Hook
from tacit.traces.host_folders import host_folders

BUILT_IN = (
    "claude-code", "codex", "gemini", "qwen", "copilot", "opencode", "pi", "hermes", "tacit",
    "openhands", "atif", "tau-bench", "swe-agent", "openinference", "otel", "langfuse", "langsmith",
    "cursor", "sharegpt", "openai",
)  # fmt: skip
PACKAGE = Path(__file__).parents[1] / "fixtures" / "host-package"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example package as an installer leaves it, by what its pyproject.toml says."""
    folder = tmp_path / "site-packages"
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    shutil.copytree(PACKAGE / "tacit_example_host", folder / "tacit_example_host")
    info = folder / f"tacit_example_host-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in groups
        )
    )
    monkeypatch.syspath_prepend(str(folder))
    return folder


def broken(folder: Path, value: str) -> None:
    """An installed package whose entry point is wrong."""
    (folder / "broken_host-1.dist-info").mkdir(parents=True)
    (folder / "broken_host-1.dist-info" / "METADATA").write_text("Name: broken-host\nVersion: 1\n")
    (folder / "broken_host-1.dist-info" / "entry_points.txt").write_text(
        f"[tacit.hosts]\nbroken = {value}\n"
    )


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
def test_a_host_of_another_package_keeps_the_contract(check, example: Path, tmp_path: Path) -> None:
    """An installed package adds a host by its entry point, and the public suite holds for it."""
    assert "example" in host_registry.names()
    expected = Expected(
        session="e1",
        project="/home/dev/demo",
        prompts=("Build it.", "No, with clang."),
        kinds=("shell", "shell"),
        failures=1,
        texts=2,
        output_tokens=12,
        error="No rule to make target",
    )
    path = str(PACKAGE / "session.jsonl")
    check(HostCase(host_registry.get("example"), path, expected, str(tmp_path / "s")))


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
def test_a_reader_of_another_package_keeps_the_contract(
    check, example: Path, tmp_path: Path
) -> None:
    """Ten lines that read files of one's own form are a host like any other."""
    expected = Expected("diary#doc0", "", ("Build it.",), (), 0, 1, 0)
    path = str(PACKAGE / "diary.json")
    (source,) = host_registry.recognise(path)
    assert source.host == "diary"
    check(HostCase(host_registry.get("diary"), path, expected, str(tmp_path / "s")))


def test_its_sessions_are_found_like_all_others(example: Path, home: Path) -> None:
    """They are found at home and recognised by form."""
    folder = home / ".example" / "sessions"
    folder.mkdir(parents=True)
    shutil.copyfile(PACKAGE / "session.jsonl", folder / "one.jsonl")
    (source,) = host_registry.get("example").find()
    assert host_registry.recognise(str(folder)) == [source]


@pytest.mark.parametrize("value", ["no_such_module:Host", "json:loads", "json:JSONDecoder"])
def test_a_package_that_is_broken_stops_nobody(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not load is named with its package; all others work."""
    broken(tmp_path, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "broken" in host_registry.names()
    with pytest.raises(NotFound, match="broken-host"):
        host_registry.get("broken")
    assert len(host_registry.problems()) == 1
    assert [host.name for host in host_registry.each()] == list(BUILT_IN)


def test_a_package_cannot_take_the_name_of_a_built_in_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point called `pi` does not replace pi."""
    broken(tmp_path, "json:loads")
    entry = tmp_path / "broken_host-1.dist-info" / "entry_points.txt"
    entry.write_text("[tacit.hosts]\npi = json:loads\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert host_registry.get("pi").title == "pi"
    assert host_registry.names().count("pi") == 1


def test_an_unknown_host_is_not_found() -> None:
    """The error lists the hosts that there are."""
    with pytest.raises(NotFound, match="no host 'nobody'") as caught:
        host_registry.get("nobody")
    assert "claude-code" in caught.value.hint


def test_a_file_is_known_though_its_first_line_says_little(tmp_path: Path) -> None:
    """Claude Code begins most files with a snapshot of files, or a summary of an older session."""
    first = '{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}\n'
    path = tmp_path / "x.jsonl"
    path.write_text(first + trace_samples.file_of("claude-code").read_text())
    assert [source.host for source in host_registry.recognise(str(tmp_path))] == ["claude-code"]


def test_a_path_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """Naming a file that does not exist is an error, not an empty answer."""
    with pytest.raises(NotFound):
        host_registry.recognise(str(tmp_path / "none"))


def test_the_folder_of_hosts_is_the_list() -> None:
    """Every module in hosts/ gives its hosts; the particular are asked before the general."""
    assert [host.name for host in host_registry.each()] == list(BUILT_IN)
    assert host_registry.names() == list(BUILT_IN)
    modules = {type(host).__module__.rpartition(".")[2] for host in host_registry.each()}
    files = {path.stem for path in Path(hosts.__path__[0]).glob("*.py")}
    assert modules == files - {"__init__"}


def test_a_host_of_another_package_brings_its_skills_and_keys(
    example: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders are read like all others, learned skills are linked there, keys are masked."""
    (home / ".git").mkdir()
    for folder in (home / "work/.example/skills", home / "moved/skills"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("EXAMPLE_HOME", str(home / "moved"))
    (home / "work/.git").mkdir()
    found = [root.path for root in skill_roots(str(home / "work")) if root.host == "example"]
    assert found == [str(home / "work/.example/skills"), str(home / "moved/skills")]
    assert [p.host for p in host_folders() if p.linked] == ["claude-code", "example"]
    for file in (".example/token", "moved/token"):
        assert is_secret_path(str(home / file), str(home))
    assert not is_secret_path(str(home / ".example/other"), str(home))


def test_a_host_of_another_package_can_be_connected(example: Path, home: Path) -> None:
    """By its name and by what people call it; its file comes back to the byte."""
    connector = connection.find_connector("ex")
    assert connector is not None
    assert connector.host.name == "example"
    assert "example" in {status.host for status in connection.statuses()}
    file = home / ".example" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"mine": 1}')
    (plan,) = connection.plan_connecting([connector], Hook(("/x/tacit-hook",)))
    connection.connect(plan)
    assert connector.calls() == {"AnswerDone": "/x/tacit-hook example AnswerDone"}
    (plan,) = connection.plan_disconnecting([connector])
    connection.disconnect(plan)
    assert file.read_text() == '{"mine": 1}'


def test_a_host_of_another_package_is_known_by_its_signs(
    example: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the plugin's hook does not say who called, its variables and its transcripts do."""
    monkeypatch.setenv("TACIT_HOME", str(home / "tacit"))
    monkeypatch.setenv("EXAMPLE_CLI", "1")
    monkeypatch.setenv("EXAMPLE_SESSION_ID", "e1")
    hook.record(str(home / "tacit/data"), hook.head([hook_events.ANY_HOST, "answer-done"], 0), b"")
    (event,) = hook_events.pending()
    assert (event.host, event.session, event.kind) == ("example", "e1", "turn-ended")
    asked = hook_events.Callers().calling_host
    assert asked("plugin", {}, "/elsewhere/sessions/example-1.jsonl", {}) == "example"


def test_the_list_follows_installed_packages(example: Path, home: Path) -> None:
    """`tacit list` shows the skills of a host as long as its package is installed."""
    folder = home / ".example/skills/greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Says hello.\n---\n")
    assert "greet" in listed(example)
    assert "greet" in listed(example)
    shutil.rmtree(next(example.glob("*.dist-info")))
    assert "greet" not in listed(example)


def listed(folder: Path) -> str:
    """What `tacit list` prints where packages are found in `folder` too."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tacit", "list"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_table_of_places_costs_nothing_to_import() -> None:
    """Importing the skill folders loads no msgspec, typing, pathlib, re or sqlite3."""
    heavy = "{'msgspec', 'typing', 'pathlib', 're', 'sqlite3', 'datetime'}"
    program = f"import sys, tacit.traces.host_folders; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {_source()!r})\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def _source() -> str:
    import tacit

    return str(Path(tacit.__file__).parents[1])


def test_reading_by_recognised_form(example: Path, tmp_path: Path) -> None:
    """What `recognise` gives can be read with the host that it names."""
    (source,) = host_registry.recognise(str(PACKAGE / "session.jsonl"))
    assert read_trace(host_registry.get(source.host), source).session == "e1"


def test_a_file_that_no_agent_keeps_is_handed_in(home: Path, tmp_path: Path) -> None:
    """A transcript where its agent keeps them is the user's; the same bytes elsewhere, and what
    other programs send or export, may be anybody's."""
    line = {"type": "user", "sessionId": "s1", "uuid": "u", "cwd": "/w",
            "message": {"role": "user", "content": "Hello."}}  # fmt: skip
    kept = home / ".claude" / "projects" / "-w" / "s1.jsonl"
    kept.parent.mkdir(parents=True)
    given = tmp_path / "s1.jsonl"
    chat = tmp_path / "chat.json"
    for path in (kept, given):
        path.write_text(json.dumps(line) + "\n")
    chat.write_text(json.dumps({"messages": [{"role": "user", "content": "Hello."}]}))
    for path, handed in ((kept, False), (given, True), (chat, True)):
        (source,) = host_registry.recognise(str(path))
        trace = read_trace(host_registry.get(source.host), source)
        assert (source.handed, trace.head.handed) == (handed, handed), path
