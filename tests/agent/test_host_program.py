"""The user's own programs as models: what all of them keep, and what becomes of their faults.

Stand-ins play the programs: each prints what the real one printed, or what a fault looks like.
"""

import json
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import host_program, models
from tacit.agent.budget import Limits, Meter
from tacit.agent.host_program import OutOfTime
from tacit.agent.model_client import ModelClient, RequestFailed
from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.learn.review.review_triggers import is_background_work
from tacit.traces import host_registry
from tacit.traces.trace import Head
from waiting import FOREVER, LONG, until

PRINTED = Path(__file__).parents[1] / "fixtures" / "programs"
WORDS = ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "pi")
LEAVING = {"gemini", "copilot", "opencode"}
StandIn = Callable[..., Path]

# What a stand-in begins with; `note` keeps what it was given.
_HEAD = f"""\
#!{sys.executable} -SE
import json, os, signal, subprocess, sys, time
here = os.path.dirname(os.path.abspath(sys.argv[0]))
def note(name, value):
    with open(os.path.join(here, name + ".new"), "w") as file:
        file.write(json.dumps(value))
    os.rename(os.path.join(here, name + ".new"), os.path.join(here, name))
"""
_GOOD = """\
text = sys.stdin.read()
files = {}
for folder, _, names in os.walk(os.getcwd()):
    for name in names:
        with open(os.path.join(folder, name)) as file:
            files[name] = file.read()
note("asked", {"words": sys.argv[1:], "stdin": text, "cwd": os.getcwd(), "files": files,
    "variables": dict(os.environ)})
if "--usage-output-file" in sys.argv:
    with open(sys.argv[sys.argv.index("--usage-output-file") + 1], "w") as file:
        file.write(open(USAGE).read())
sys.stdout.write(open(PRINTED).read())
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Puts a program on the PATH that does what its text says; gives the folder it lies in."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.delenv("TACIT_WORKER", raising=False)

    def put(word: str, does: str = _GOOD) -> Path:
        shown = f"PRINTED = {str(PRINTED / f'{word}.out')!r}\n"
        shown += f"USAGE = {str(PRINTED / 'copilot-usage.json')!r}\n"
        file = tmp_path / word
        file.write_text(_HEAD + shown + textwrap.dedent(does))
        file.chmod(0o755)
        return tmp_path

    return put


def kept(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_seven_programs_are_known() -> None:
    """Every program stands beside its host; a name that is none is answered with those that are."""
    assert {found.program.word for found in host_program.host_programs()} == set(WORDS)
    with pytest.raises(NotFound, match="no program is known as 'cli:cloude'"):
        host_program.find("cli:cloude")


@pytest.mark.parametrize("word", WORDS)
def test_a_program_is_asked_for_words_alone(stand_in: StandIn, word: str) -> None:
    """It gets the whole question on stdin and none of it on its command line, runs in a folder of
    ours, with the guard for our hook; its answer and its figures are read as the real one has them.
    """
    folder = stand_in(word)
    question = "Where do the zebras sleep? " * 12_000
    said = host_program.ask(f"cli:{word}:some-model", "RULES-OF-REVIEW", question)
    asked = kept(folder, "asked")
    assert said.text == "The answer is READY-42."
    assert (said.input_tokens, said.output_tokens) == (100, 20)
    assert question in asked["stdin"]
    assert not any("zebras" in text for text in asked["words"])
    assert "some-model" in asked["words"]
    everywhere = [asked["stdin"], *asked["words"], *asked["files"].values()]
    assert any("RULES-OF-REVIEW" in t for t in (*everywhere, *asked["variables"].values()))
    assert asked["variables"]["TACIT_WORKER"] == "1"
    assert os.path.realpath(paths.folders().data) in os.path.realpath(asked["cwd"])


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("begins", ["/login", "  /init it", "!rm -rf ~", "#remember", "@~/.ssh/id"])
def test_a_question_is_no_command(stand_in: StandIn, word: str, begins: str) -> None:
    """What is quoted at its beginning cannot be taken for a command to the program itself."""
    folder = stand_in(word)
    host_program.ask(f"cli:{word}", "", begins)
    told = kept(folder, "asked")["stdin"]
    assert begins in told
    assert told.lstrip()[0].isalnum()


def test_claude_reads_no_file_that_a_question_names(stand_in: StandIn) -> None:
    """It would put what @path names into the request; the variable by which it does not is set."""
    folder = stand_in("claude")
    host_program.ask("cli:claude", "", "see @~/.ssh/id_rsa")
    assert kept(folder, "asked")["variables"]["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


@pytest.mark.parametrize("word", WORDS)
def test_what_it_leaves_is_never_learned_from(stand_in: StandIn, word: str) -> None:
    """A session in the folder that it runs in counts as Tacit's own work."""
    folder = stand_in(word)
    host_program.ask(f"cli:{word}", "", "hello")
    asked = kept(folder, "asked")
    assert is_background_work(Head(session="s", host="x", project=asked["cwd"]))
    assert asked["variables"]["PWD"] == asked["cwd"]  # opencode keeps this one
    (host,) = [h for h in host_registry.each() if h.program and h.program.word == word]
    assert host.program is not None
    assert host.program.leaves == (word in LEAVING)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    ("prints", "code", "says", "may_pass"),
    [
        ("Not logged in. Please run /login", 1, "is not logged in: Not logged in.", False),
        ("429 Too Many Requests: usage limit reached", 1, "is at its limit: 429", True),
        ("one\nerror: unknown option '--quiet'\ntwo", 2, "its options: error: unknown", False),
        ("", 1, "failed with code 1", True),
        ("Segmentation fault", -11, "failed with code", True),
    ],
)
def test_what_it_says_on_stderr_becomes_one_line(
    stand_in: StandIn, word: str, prints: str, code: int, says: str, may_pass: bool
) -> None:
    """A login, a limit, an option and a crash are told apart, the same for all programs."""
    end = f"sys.exit({code})" if code >= 0 else f"os.kill(os.getpid(), {-code})"
    stand_in(word, f"sys.stderr.write({prints!r})\nsys.stderr.flush()\n{end}\n")
    with pytest.raises(RequestFailed) as failed:
        host_program.ask(f"cli:{word}", "be short", "hello")
    assert says in str(failed.value)
    assert str(failed.value).startswith(word)
    assert "\n" not in str(failed.value)
    assert failed.value.hint
    assert failed.value.may_pass == may_pass


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "prints", ["", "hello there", "{", "[]", "{}", '{"type": "x"}', "[1, null]", "\\xff\\xfe\\x00"]
)
def test_garbage_is_no_answer(stand_in: StandIn, word: str, prints: str) -> None:
    """What is not in the program's form is said to be so, and is tried again later at most."""
    stand_in(word, f"sys.stdout.buffer.write(b'{prints}')\n")
    with pytest.raises(RequestFailed, match=f"{word} answered with something else") as failed:
        host_program.ask(f"cli:{word}", "", "hello")
    assert failed.value.may_pass
    assert failed.value.retry_after


_PI_FAILED = json.dumps(
    {
        "type": "message_end",
        "message": {"role": "assistant", "stopReason": "error", "errorMessage": "401 unauthorized"},
    }
)


@pytest.mark.parametrize(
    ("word", "out"),
    [
        (
            "claude",
            '{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}',
        ),
        ("codex", '{"type":"turn.failed","error":{"message":"status 401 Unauthorized"}}'),
        ("gemini", '{"error":{"message":"Please set an Auth method"}}'),
        ("qwen", '[{"type":"result","is_error":true,"error":{"message":"No auth type"}}]'),
        ("copilot", '{"type":"session.error","data":{"message":"please sign in"}}'),
        ("opencode", '{"type":"error","error":{"data":{"message":"invalid api key"}}}'),
        (
            "pi",
            _PI_FAILED,
        ),
    ],
)
def test_a_failure_in_its_own_form_is_read(stand_in: StandIn, word: str, out: str) -> None:
    """A program that reports its failure as JSON is understood too."""
    stand_in(word, f"print({out!r})\n")
    with pytest.raises(RequestFailed, match=f"{word} is not logged in: ") as failed:
        host_program.ask(f"cli:{word}", "", "hello")
    assert "log in: " in failed.value.hint


def test_one_that_is_not_there_is_named(stand_in: StandIn, tmp_path: Path) -> None:
    """Missing, and there but not to be started: one line each."""
    with pytest.raises(RequestFailed, match="claude is not on the PATH"):
        host_program.ask("cli:claude", "", "hello")
    (tmp_path / "claude").write_text("#!/no/such/interpreter\n")
    (tmp_path / "claude").chmod(0o755)
    with pytest.raises(RequestFailed, match="claude could not be started"):
        host_program.ask("cli:claude", "", "hello")


_STALLS = """\
child = subprocess.Popen([sys.executable, "-c", "import signal, time; "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write('{"type": "half')
sys.stdout.flush()
note("pids", [os.getpid(), child.pid])
"""


def test_the_time_limit_ends_all_of_its_processes(stand_in: StandIn) -> None:
    """It stalls in mid-answer, ignores SIGTERM and has a child that does: nothing is left."""
    folder = stand_in("claude", _STALLS + "time.sleep(3600)\n")
    with pytest.raises(RequestFailed, match="claude was stopped"):
        host_program.ask("cli:claude", "", "hello", stop=(folder / "pids").exists)
    for pid in kept(folder, "pids"):
        until(lambda pid=pid: not is_alive(pid), "the end of a process")
    with pytest.raises(OutOfTime, match="claude gave no answer within"):
        host_program.ask("cli:claude", "", "hello", until=time.monotonic() + 0.5)


def test_one_that_never_reads_is_ended_too(stand_in: StandIn) -> None:
    """A question that it does not take from its stdin does not hold us up."""
    folder = stand_in("pi", "note('pids', [os.getpid()])\ntime.sleep(3600)\n")
    with pytest.raises(RequestFailed, match="pi was stopped"):
        host_program.ask("cli:pi", "", "x" * 1_000_000, stop=(folder / "pids").exists)


def test_a_flood_is_stopped(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output without end fills no memory and takes no time limit to end."""
    monkeypatch.setattr(host_program, "_MOST_OUTPUT", 1 << 20)
    stand_in("claude", "while True: sys.stdout.write('x' * 65536)\n")
    with pytest.raises(RequestFailed, match="claude printed more than 1 MB and was stopped"):
        host_program.ask("cli:claude", "", "hello", until=time.monotonic() + LONG)


def test_what_it_leaves_running_neither_holds_the_answer_nor_stays(stand_in: StandIn) -> None:
    """A child that keeps the pipes open after the program's end is not waited for, and ended."""
    lingers = f'child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({FOREVER})'
    folder = stand_in("claude", f'{_GOOD}{lingers}"])\nnote("pids", [child.pid])\n')
    assert host_program.ask("cli:claude", "", "hello").text == "The answer is READY-42."
    for pid in kept(folder, "pids"):
        until(lambda pid=pid: not is_alive(pid), "the end of the child")


def test_one_question_at_a_time(stand_in: StandIn) -> None:
    """While one is being answered another waits, and says so when it may wait no longer."""
    folder = stand_in("claude", f"note('here', 1)\nwhile not os.path.exists(here + '/go'): "
                      f"time.sleep(0.02)\n{_GOOD}")  # fmt: skip
    answers: list[str] = []
    first = threading.Thread(
        target=lambda: answers.append(host_program.ask("cli:claude", "", "hello").text)
    )
    first.start()
    until((folder / "here").exists, "the first question")
    with pytest.raises(RequestFailed, match="claude is busy with another request") as failed:
        host_program.ask("cli:claude", "", "hello", until=time.monotonic() + 0.1)
    assert failed.value.may_pass
    (folder / "go").touch()
    first.join()
    assert host_program.ask("cli:claude", "", "again").text == answers[0]


async def _request(choice: models.ModelChoice, *messages: Any) -> tuple[Any, Meter]:
    from pydantic_ai.messages import ModelResponse

    meter, found = Meter(Limits(seconds=LONG)), None
    async with ModelClient([models.build(choice)], None, (), retries=2) as client:
        async for item in client.request(list(messages), meter):
            found = item if isinstance(item, ModelResponse) else found
    return found, meter


def test_it_is_a_model_like_any_other(stand_in: StandIn) -> None:
    """A name in the settings leads to it, whatever address is set; it is asked in the usual way,
    has no tools, and what it reports is counted, its dollars too."""
    import asyncio

    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart

    from tacit.agent.model_client import usage_of
    from tacit.base.setting_sections import AgentSettings

    folder = stand_in("claude")
    chosen = AgentSettings("cli:claude:haiku", base_url="http://127.0.0.1:9/v1")
    choice = models.require(chosen)
    assert (choice.name, choice.base_url, choice.is_program) == ("cli:claude:haiku", "", True)
    model = models.build(choice)
    assert not model.profile["supports_tools"]
    asked = [
        ModelRequest.user_text_prompt("first", instructions="RULES"),
        ModelResponse(parts=[TextPart("an answer")]),
        ModelRequest.user_text_prompt("second", instructions="RULES"),
    ]
    response, _ = asyncio.run(_request(choice, *asked))
    usage = usage_of(response)
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (100, 20, False)
    assert usage.cost == pytest.approx(0.0006)
    assert usage.model == "cli:claude:haiku"
    said = kept(folder, "asked")["stdin"]
    assert said.index("first") < said.index("an answer") < said.index("second")
    assert "RULES" not in said


def test_tokens_that_nobody_reports_are_an_estimate_and_say_so(
    stand_in: StandIn,
) -> None:
    """They are counted by characters, and marked in what is on the account."""
    import asyncio

    from pydantic_ai.messages import ModelRequest

    from tacit.agent import budget
    from tacit.agent.model_client import usage_of

    stand_in("gemini", 'sys.stdin.read()\nprint(\'{"response": "a zebra sleeps"}\')\n')
    choice = models.ModelChoice("cli:gemini")
    response, _ = asyncio.run(_request(choice, ModelRequest.user_text_prompt("x" * 400)))
    usage = usage_of(response)
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (100, 3, True)
    assert usage.cost == pytest.approx(100 * 3e-6 + 3 * 15e-6)  # so that a budget holds
    assert budget.record_spending("review", "s", usage) == ""
    assert budget.today().estimated == 1
    assert "(estimated)" in budget.today().shown()


def test_a_fault_of_it_costs_one_try(stand_in: StandIn) -> None:
    """A program that fails is not asked again at once: each try may take from a plan's limits."""
    import asyncio

    from pydantic_ai.messages import ModelRequest

    counts = "with open(here + '/tries', 'a') as file: file.write('x')\nsys.exit(3)\n"
    folder = stand_in("codex", counts)
    with pytest.raises(RequestFailed, match="codex failed with code 3"):
        asyncio.run(_request(models.ModelChoice("cli:codex"), ModelRequest.user_text_prompt("hi")))
    assert (folder / "tries").read_text() == "x"


def test_a_request_that_nobody_waits_for_ends_its_program(stand_in: StandIn) -> None:
    """Cancelling the request, as a chat does, ends the program with its children."""
    import asyncio

    from pydantic_ai.messages import ModelRequest

    folder = stand_in("claude", _STALLS + "time.sleep(3600)\n")

    async def leave() -> None:
        choice = models.ModelChoice("cli:claude")
        task = asyncio.create_task(_request(choice, ModelRequest.user_text_prompt("hi")))
        while not (folder / "pids").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    for pid in kept(folder, "pids"):
        until(lambda pid=pid: not is_alive(pid), "the end of a process")
