"""The child process: it confines itself, then holds the conversation with the model.

`python -m tacit.learn.background.child OUT`, started by `child_process` alone. It reads its task
from standard input, speaks on the descriptor OUT, and holds one conversation, whose log lies in
the staging folder and is removed with it. Nobody is asked for consent: the tools of the task may
be used, and there are no others.
"""

import asyncio
import functools
import gc
import importlib
import ipaddress
import os
import resource
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tacit.agent import process_rights
from tacit.base import paths
from tacit.base.errors import Refused, TacitError
from tacit.base.paths import is_inside
from tacit.changes.change import acting_as
from tacit.learn.background import task as wire
from tacit.learn.background.confinement import Confinement, lock
from tacit.learn.background.task import MOST_SHOWN, Call, Task, TaskContext
from tacit.learn.background.toolset import MOST_BYTES, StagedSkills

if TYPE_CHECKING:
    from tacit.agent import agent_events
    from tacit.agent.budget import Meter
    from tacit.agent.loop import Agent
    from tacit.agent.tool import Result, Tool
    from tacit.traces.program import Said

_LARGEST_FILE = 16 * MOST_BYTES
MOST_MEMORY = 512 * MOST_BYTES
"""Bytes that the process may have. A review takes 80 MB; a server may send lines without end."""
_NEARLY = 0.75
"""The share of a limit from which the agent is told to come to its end."""
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/bin", "/nix/store", "/proc/self", "/sys/devices/system/cpu",
    "/dev/urandom", "/dev/random", "/dev/zero", "/run/systemd/resolve", "/run/resolvconf",
    *(
        f"/etc/{name}"
        for name in (
            "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust",
            "ca-certificates", "crypto-policies", "resolv.conf", "hosts", "nsswitch.conf",
            "gai.conf", "host.conf", "localtime", "timezone", "passwd", "group", "ld.so.cache",
            "ld.so.conf", "ld.so.conf.d", "os-release", "lsb-release", "mime.types", "services",
            "protocols",
        )
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the task that comes in. Ends by itself when the parent is gone."""
    # Most of its time is the import of the client library, a tenth of that the search for garbage.
    gc.set_threshold(100_000, 50, 50)
    out = os.fdopen(int(arguments[0]), "wb", 0)
    line = sys.stdin.buffer.readline(wire.LONGEST_LINE)
    start = msgspec.json.decode(line, type=wire.Start)
    process_rights.end_with_parent(start.parent)
    os.umask(0o077)  # what it writes is the user's alone, and no mode can be changed later
    ended = _run(start, Link(sys.stdin.buffer, out))
    out.write(wire.encode_message(ended))
    # Not by the usual way: a thread may still be waiting for an answer that will not come.
    os._exit(0)


class Link:
    """The child's ends of the pipes. One question at a time, from whichever thread."""

    def __init__(self, incoming: BinaryIO, outgoing: "BinaryIO | Any") -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._asking = threading.Lock()
        self._telling = threading.Lock()

    def tell(self, message: wire.Up) -> None:
        left = memoryview(wire.encode_message(message))
        with self._telling:
            while left:
                left = left[self._outgoing.write(left) :]

    async def serve(self, name: str, arguments: dict[str, Any]) -> "Result":
        """Have the parent's broker do it."""
        line = await asyncio.to_thread(self._ask, wire.Ask(name, arguments))
        return msgspec.json.decode(line, type=wire.Answer).result()

    async def finished(self, text: str) -> str | None:
        """Ask whether that is the end; else what to tell the model."""
        line = await asyncio.to_thread(self._ask, wire.Finished(text))
        return msgspec.json.decode(line, type=wire.GoOn).message

    def addresses(self, host: str) -> tuple[str, ...]:
        """The addresses of `host`, by the parent: no name can be asked for from in here."""
        return msgspec.json.decode(self._ask(wire.Lookup(host)), type=wire.Addresses).found

    async def ask_program(self, instructions: str, text: str) -> "Said":
        """Have the parent run the program that is the model: nothing can be started in here."""
        from tacit.agent.model_client import RequestFailed

        line = await asyncio.to_thread(self._ask, wire.Question(instructions, text))
        told = msgspec.json.decode(line, type=wire.Told)
        if told.fault:
            # Not in this run again: the parent says when.
            later = float("inf") if told.may_pass else 0.0
            raise RequestFailed(told.fault, told.hint, may_pass=told.may_pass, retry_after=later)
        return told.said

    def _ask(self, question: wire.Up) -> bytes:
        with self._asking:
            self.tell(question)
            line = self._incoming.readline()
        if not line:
            os._exit(1)  # the parent is gone
        return line


def resolve_by(link: Link) -> None:
    """Have names resolved by the parent from now on, in all of this process."""

    def lookup(host: str) -> tuple[str, ...]:
        try:
            return (str(ipaddress.ip_address(host)),)
        except ValueError:
            return link.addresses(host)

    known = functools.cache(lookup)

    def getaddrinfo(
        host: Any, port: Any, family: int = 0, *rest: int, **named: int
    ) -> list[tuple[Any, ...]]:
        name = host.decode("ascii") if isinstance(host, bytes) else str(host or "127.0.0.1")
        rows = []
        for address in known(name.partition("%")[0]):
            is_6 = ":" in address
            place = (address, int(port or 0), 0, 0) if is_6 else (address, int(port or 0))
            mine = socket.AF_INET6 if is_6 else socket.AF_INET
            if family in (0, mine):
                rows.append((mine, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place))
        if not rows:
            raise socket.gaierror(socket.EAI_NONAME, f"no address of {name} is known here")
        return rows

    socket.getaddrinfo = getaddrinfo


def _run(start: wire.Start, link: Link) -> wire.Ended:
    try:
        link.tell(wire.Locked(confine(start)))
        resolve_by(link)
        with acting_as(start.task.actor):
            return asyncio.run(_converse(start, link))
    except TacitError as error:
        return wire.Ended("refused", error=error.explain())
    except Exception as error:  # the parent must hear of it, whatever it is
        if isinstance(error, MemoryError) or "new thread" in str(error):
            return wire.Ended(
                "error", error=f"it needed more than {MOST_MEMORY >> 20} MB of memory"
            )
        return wire.Ended("error", error=f"{type(error).__name__}: {error}"[:2000])


def confine(start: wire.Start) -> Confinement:
    """Give up all rights but those that the task needs. Raises `Refused` when that goes wrong."""
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, _LARGEST_FILE),
        (resource.RLIMIT_DATA, MOST_MEMORY),
    ):
        resource.setrlimit(limit, (most, most))
    return lock(start.task.staging, (*start.read, *python_folders()), start.ports)


def python_folders() -> tuple[str, ...]:
    """What the interpreter, its packages and the system's libraries read."""
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(None, sys.path))
    real = dict.fromkeys(os.path.realpath(path) for path in (*own, *_SYSTEM))
    home = os.path.realpath(paths.user_home())
    # A variable can put all of the home on Python's path; that does not open it.
    return tuple(path for path in real if path != os.sep and not is_inside(home, path))


async def _converse(start: wire.Start, link: Link) -> wire.Ended:
    from tacit.agent.budget import Meter

    meter = Meter(start.task.limits)  # of the whole task
    warnings = _Warnings(meter)
    agent = _agent(start, link, warnings)
    message: str | None = start.task.message
    while message is not None:
        if over := meter.over():
            return wire.Ended(over, agent.conversation.last_text())
        ended = await _respond(agent, message, link, meter)
        if ended.reason != "done":
            return ended
        message = await link.finished(ended.text)
        if message is not None:
            message += warnings.next_text()
    return ended


class _Warnings:
    """What the agent is told, behind what it reads next, when one of its limits is near."""

    def __init__(self, meter: "Meter") -> None:
        self._meter = meter
        self._told: set[str] = set()

    def next_text(self) -> str:
        """A paragraph about a limit that it was not told of yet; empty where there is none."""
        limits, meter = self._meter.limits, self._meter
        if limits.turns and meter.turns == limits.turns - 1:
            return self._once("turns", "your next answer is the last: end with it")
        left = meter.left()
        shares = {
            "time": 1 - left / limits.seconds if left is not None else 0.0,
            "tokens": meter.tokens / limits.tokens if limits.tokens else 0.0,
            "money": meter.money / limits.money if limits.money else 0.0,
        }
        near = [name for name, share in shares.items() if share >= _NEARLY]
        return self._once(near[0], f"most of the {near[0]} is used up: end now") if near else ""

    def _once(self, about: str, text: str) -> str:
        if about in self._told:
            return ""
        self._told.add(about)
        return f"\n\n[{text}. What you have made so far is not lost.]"


async def _respond(agent: "Agent", message: str, link: Link, meter: "Meter") -> wire.Ended:
    """One message to the model and all that follows; the parent hears of it as it happens."""
    from tacit.agent import agent_events

    calls: dict[str, agent_events.Call] = {}
    error = agent_events.Error("")
    began = time.monotonic()
    async for event in agent.respond(message, meter=meter):
        if isinstance(event, agent_events.Usage):
            link.tell(wire.Used(event, time.monotonic() - began))
        elif isinstance(event, agent_events.Call):
            calls[event.id] = event
        elif isinstance(event, agent_events.Return):
            link.tell(_called(event, calls.get(event.id)))
            began = time.monotonic()
        elif isinstance(event, agent_events.Error):
            error = event
        elif isinstance(event, agent_events.End):
            why = f"{error.why}; {error.hint}" if error.hint else error.why
            return wire.Ended(_reason(event, error), event.text, why)
    raise AssertionError("the agent ended without saying so")


def _reason(end: "agent_events.End", error: "agent_events.Error") -> wire.Reason:
    """How it ended: what may pass is an error, and what the provider will not take is refused."""
    if error.why:
        return "error" if error.passing else "refused"
    return "error" if end.reason == "interrupted" else end.reason


def _called(event: "agent_events.Return", call: "agent_events.Call | None") -> wire.Called:
    arguments = call.arguments if call is not None else {}
    return wire.Called(Call(event.name, arguments, event.failed, event.text[:MOST_SHOWN]))


def _agent(start: wire.Start, link: Link, warnings: _Warnings) -> "Agent":
    """The agent of the chat, with the task's tools and a conversation that nobody resumes."""
    from tacit.agent import models
    from tacit.agent.conversation import Conversation
    from tacit.agent.loop import Agent
    from tacit.agent.tool import Context, ToolOptions
    from tacit.agent.tool_approval import Approver
    from tacit.skills.library import Library
    from tacit.traces.hosts.tacit import SessionWriter

    task = start.task
    tools = _tools(TaskContext(task, start.settings, StagedSkills(task.staging), link.serve), task)
    choice = models.ModelChoice(start.model, start.base_url)
    if tools and choice.is_program:
        raise Refused(
            f"{choice.name} answers in words and calls no tools, and this work needs tools",
            "set one that does as agent.model: it is turned to then",
        )
    project = task.project or task.staging
    name = "conversation"
    writer = SessionWriter(name, folder=os.path.join(task.staging, "log"), project=project)
    context = Context(
        project,
        os.path.join(task.staging, "tmp"),
        library=Library(project, start.settings),
        sandbox=_no_sandbox,
        ask=_nobody,
        options=ToolOptions(read_only_project=True),
    )
    return Agent(
        models.build(choice, link.ask_program if choice.is_program else None),
        Conversation(task.instructions, writer, name),
        tools,
        context,
        Approver(yes=True),
        limits=task.limits,
        window=start.settings.agent.window,
        footnote=warnings.next_text,
    )


def _tools(context: TaskContext, task: Task) -> "tuple[Tool, ...]":
    module, _, function = task.toolset.partition(":")
    found: tuple[Tool, ...] = getattr(importlib.import_module(module), function)(context)
    return found


def _no_sandbox() -> Any:
    raise Refused("no command is run here", "leave it to the parent: context.serve")


async def _nobody(asked: object) -> None:
    return None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
