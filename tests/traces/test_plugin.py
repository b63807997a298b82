"""The plugin folder, and its small programs run by the engine that agents run them with."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tacit import __version__
from tacit.base import briefing, prompt_line
from tacit.traces import hook_events, host_registry
from tacit.traces.connector import Hook, find_hook
from tacit.traces.plugin import files, shim, shim_calls, shown_folder
from waiting import until

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
SESSION = "01a1ddf2-d0b0-77d1-b9e6-8efee60932b5"


@pytest.fixture
def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which a worker is already being started."""
    monkeypatch.setenv("TACIT_HOME", str(home / "tacit"))
    folder = home / "tacit" / "data"
    folder.mkdir(parents=True)
    (folder / "worker.starting").touch()
    return folder


def heard(number: int) -> list[hook_events.Event]:
    """The events, once there are `number` of them."""
    until(lambda: len(hook_events.pending()) >= number)
    return hook_events.pending()


def play(folder: Path, name: str, words: tuple[str, ...], script: str) -> str:
    """Run a program of the plugin in node, as the agent would; what the script prints."""
    assert NODE
    program = folder / (Path(name).stem + ".mjs")
    host = host_registry.get(Path(name).parts[0])
    program.write_text(shim(name, Hook(words).calls(host, {})))
    (folder / "agent.mjs").write_text(script)
    done = subprocess.run([NODE, folder / "agent.mjs"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


PI = f"""
import extension from "./tacit.mjs";
const handlers = {{}};
extension({{ on: (name, handler) => (handlers[name] = handler) }});
const file = "/home/dev/.pi/agent/sessions/--home-dev-demo--/2026-11-15_{SESSION}.jsonl";
const ctx = {{ cwd: "/home/dev/demo", sessionManager: {{ getSessionFile: () => file }} }};
await handlers.agent_end({{ type: "agent_end", messages: [] }}, ctx);
await handlers.session_shutdown({{ type: "session_shutdown" }}, ctx);
await handlers.session_shutdown({{}}, null);
process.exit(0);
"""
OPENCODE = """
import * as plugin from "./tacit.mjs";
for (const make of Object.values(plugin)) {
  const hooks = await make({ directory: "/home/dev/demo" });
  await hooks.event({ event: { type: "session.updated", properties: {} } });
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_e220" } } });
  await hooks.event({});
}
process.exit(0);
"""


@needs_node
def test_the_extension_for_pi_tells_both_ends(data: Path, tmp_path: Path) -> None:
    """Run by node as pi runs it: turn and session are told, even if pi is gone at once."""
    assert play(tmp_path, "pi/tacit.ts", find_hook().words, PI) == ""
    found = heard(2)
    assert sorted(event.kind for event in found) == ["session-ended", "turn-ended"]
    assert {(e.host, e.session, e.cwd) for e in found} == {("pi", SESSION, "/home/dev/demo")}
    assert all(event.transcript.endswith(f"_{SESSION}.jsonl") for event in found)


@needs_node
def test_the_plugin_for_opencode_tells_when_it_is_idle(data: Path, tmp_path: Path) -> None:
    """Run by node as opencode runs it: only session.idle is told, with id and folder."""
    assert play(tmp_path, "opencode/tacit.js", find_hook().words, OPENCODE) == ""
    (event,) = heard(1)
    assert (event.host, event.session, event.kind) == ("opencode", "ses_e220", "turn-ended")
    assert event.cwd == "/home/dev/demo"


PI_DRAWS = """
import extension from "./tacit.mjs";
const handlers = {};
extension({ on: (name, handler) => (handlers[name] = handler) });
const at = (id) => ({ cwd: process.cwd(), sessionManager: { getSessionId: () => id } });
await handlers.session_start({}, at("s0"));
for (let n = 0; n < 400; n++) {
  for (const again of [0, 1]) {
    const options = { skills: [{ name: "learned" }, { name: "constructor" }, { name: "mine" }] };
    await handlers.before_agent_start({ systemPromptOptions: options }, at(`s${n}`));
    console.log(options.skills.map((skill) => skill.name).join());
  }
}
await handlers.agent_end({}, at("s1"));
process.exit(0);
"""
OPENCODE_DRAWS = """
import { Tacit } from "./tacit.mjs";
const hooks = await Tacit({ directory: process.cwd() });
const skill = (n) =>
  `  <skill>\\n    <name>${n}</name>\\n    <description>x</description>\\n  </skill>\\n`;
const all = ["learned", "constructor", "mine"].map(skill).join("");
const info = { id: "child", parentID: "s1" };
await hooks.event({ event: { type: "session.created", properties: { info } } });
async function asked(sessionID) {
  const system = [`Hello.\\n<available_skills>\\n${all}</available_skills>\\nBye.`];
  await hooks["experimental.chat.system.transform"]({ sessionID }, { system });
  console.log([...system[0].matchAll(/<name>(.*)<.name>/g)].map((found) => found[1]).join());
  if (!system[0].endsWith("</available_skills>\\nBye.")) throw system[0];
}
for (let n = 0; n < 400; n++) for (const again of [0, 1]) await asked(`s${n}`);
await asked("child");
const properties = { sessionID: "s1" };
await hooks.event({ event: { type: "session.idle", properties } });
process.exit(0);
"""


@needs_node
@pytest.mark.parametrize(
    ("name", "script"), [("pi/tacit.ts", PI_DRAWS), ("opencode/tacit.js", OPENCODE_DRAWS)]
)
def test_a_session_goes_without_a_learned_skill_by_lot(
    data: Path, tmp_path: Path, name: str, script: str
) -> None:
    """By about the share of sessions, the same each time; what it drew is told with its turn."""
    lots = {"share": 0.1, "skills": {"learned": "d1", "elsewhere": "d2"}}
    briefing.put(str(data), briefing.EVERYWHERE, json.dumps(lots), briefing.LOTS)
    said = play(tmp_path, name, find_hook().words, script).split()
    first, again, *helper = said[0:800:2], said[1:800:2], *said[800:]
    assert first == again
    assert set(first) == {"learned,constructor,mine", "constructor,mine"}
    assert 20 <= first.count("constructor,mine") <= 62  # of 400, five in a million beyond
    assert helper in ([], [first[1]])
    side = "offered" if first[1].startswith("learned") else "held"
    (event,) = heard(1)
    assert event.drawn == {"offered": {}, "held": {}} | {side: {"learned": "d1"}}


@needs_node
@pytest.mark.parametrize(("name", "script"), [("pi/tacit.ts", PI), ("opencode/tacit.js", OPENCODE)])
def test_a_missing_program_disturbs_nobody(
    data: Path, tmp_path: Path, name: str, script: str
) -> None:
    """Without tacit-hook the agent goes on as if nothing were there."""
    script = script.replace("process.exit(0);", "")
    assert play(tmp_path, name, ("/no/such/tacit-hook",), script) == ""
    assert hook_events.pending() == []


def test_the_folder_holds_what_each_agent_needs() -> None:
    """Every manifest is valid JSON with the version; every hook of both vocabularies is there."""
    found = files("1.2.3")
    manifests = (
        ".claude-plugin/plugin.json", "gemini-extension.json", "package.json",
    )  # fmt: skip
    for name in manifests:
        assert json.loads(found[name])["version"] == "1.2.3"
    market = json.loads(found[".claude-plugin/marketplace.json"])
    assert [plugin["source"] for plugin in market["plugins"]] == ["./"]
    hooks = json.loads(found["hooks/hooks.json"])["hooks"]
    assert set(hooks) == {"Stop", "AfterAgent", "SessionEnd"}
    assert b"timeout" not in found["hooks/hooks.json"]  # seconds in one agent, milliseconds here
    package = json.loads(found["package.json"])
    for path in [*package["pi"]["extensions"], package["main"]]:
        assert path.removeprefix("./") in found
    assert not [name for name, data in found.items() if b"@HOOK" in data or b"@VERSION@" in data]


def test_the_command_for_hermes_shows_what_tacit_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default the inbox; words that cannot be read and a missing program are told."""
    found = files("1.2.3")
    assert b'version: "1.2.3"' in found["hermes/plugin.yaml"]
    plugin: dict[str, Any] = {}
    exec(found["hermes/__init__.py"], plugin)
    registered: dict[str, Any] = {}
    plugin["register"](
        SimpleNamespace(register_command=lambda n, h, **_: registered.update({n: h}))
    )
    assert registered["tacit"]("'") == "tacit: No closing quotation"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "tacit" in registered["tacit"]("inbox")
    (tmp_path / "tacit").write_text('#!/bin/sh\necho "did: $*"; echo aside >&2; exit 3\n')
    (tmp_path / "tacit").chmod(0o755)
    assert registered["tacit"]("") == "did: inbox\naside"
    assert registered["tacit"]("show 'a b'") == "did: show a b\naside"


@pytest.mark.parametrize("event", ["Stop", "AfterAgent", "SessionEnd"])
def test_a_hook_of_the_folder_works_in_a_shell(
    data: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    """With the program on the PATH it is called; without, the shell says nothing and exits 0."""
    command = json.loads(files("1")["hooks/hooks.json"])["hooks"][event][0]["hooks"][0]["command"]
    payload = b'{"session_id": "abc", "transcript_path": "/h/.claude/projects/p/abc.jsonl"}'
    for path, count in (("/usr/bin:/bin", 0), (f"{Path(sys.executable).parent}:/usr/bin:/bin", 1)):
        monkeypatch.setenv("PATH", path)
        done = subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert [e.host for e in hook_events.pending()] == ["claude-code"] * count


def test_programs_tell_what_they_call() -> None:
    """The command is read back out of the program, however odd the path."""
    calls = {"agent_end": "'/a b/python' '/a \"b\"/tacit-hook' pi agent_end"}
    assert shim_calls(shim("pi/tacit.ts", calls)) == calls
    assert shim_calls("const HOOKS = broken") == {}
    assert shim_calls("const HOOKS = []") == {}
    assert shim_calls("") == {}


PI_OPENS = """
import extension from "./tacit.mjs";
const handlers = {}, notes = [];
const commands = {};
extension({
  on: (name, handler) => (handlers[name] = handler),
  registerCommand: (name, { handler }) => (commands[name] = handler),
});
const ui = { notify: (text) => notes.push(text) };
const ctx = { cwd: process.cwd(), hasUI: true, ui, sessionManager: { getEntries: () => [] } };
await handlers.session_start({}, ctx);
const first = await handlers.before_agent_start({}, ctx);
const second = await handlers.before_agent_start({}, ctx);
const { skillPaths } = await handlers.resources_discover({}, ctx);
await commands.tacit("--version", ctx);
console.log(JSON.stringify([first?.message.content, second ?? null, notes, skillPaths]));
"""
OPENCODE_OPENS = """
import { Tacit } from "./tacit.mjs";
const notes = [], output = { system: [] };
const client = { tui: { showToast: async ({ body }) => notes.push(body.message) } };
const hooks = await Tacit({ client, directory: process.cwd() });
await hooks.event({ event: { type: "session.created" } });
await hooks.event({ event: { type: "session.created" } });
await hooks["experimental.chat.system.transform"]({}, output);
const config = { command: { mine: {} } };
await hooks.config(config);
const runs = config.command.tacit.template.includes("tacit $ARGUMENTS");
notes.push(`tacit ${runs && Object.keys(config.command)}`);
console.log(JSON.stringify([output.system[0], null, notes, []]));
"""


@needs_node
@pytest.mark.parametrize(
    ("name", "script"), [("pi/tacit.ts", PI_OPENS), ("opencode/tacit.js", OPENCODE_OPENS)]
)
def test_as_a_session_begins_it_is_told_what_was_prepared(
    data: Path, tmp_path: Path, name: str, script: str
) -> None:
    """The facts go to the model once a conversation, the news to the user, skills to the list."""
    assert NODE
    project = tmp_path / "project"
    shown = Path(shown_folder(str(project)))
    for folder in (project / ".git", shown):
        folder.mkdir(parents=True)
    briefing.put(str(data), str(project), 'Noted: "so" \\ it is.\nAnd more.')
    prompt_line.put(str(data), ["tacit: learned a thing", "1"], prompt_line.AGENT_FILE)
    host = host_registry.get(Path(name).parts[0])
    calls = Hook(find_hook().words, facts=True).calls(host, {})
    (project / "tacit.mjs").write_text(shim(name, calls, shown_folder("\0").split("\0")))
    (project / "agent.mjs").write_text(script)
    done = subprocess.run(
        [NODE, "agent.mjs"], cwd=project, capture_output=True, text=True, check=True
    )
    context, second, notes, paths = json.loads(done.stdout)
    assert context == 'Noted: "so" \\ it is.\nAnd more.'
    assert (second, notes[0]) == (None, "tacit: learned a thing")
    assert notes[1] == (f"tacit {__version__}" if host.name == "pi" else "tacit tacit,mine")
    assert paths == ([str(shown)] if host.name == "pi" else [])
    assert hook_events.pending() == []
