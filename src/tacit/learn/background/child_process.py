"""A background agent's child process, from its parent's side: started, heard, ended in time.

The parent keeps what the child must not have: the gate, the history, the database, the commands.
It enforces the time limit whatever the child does, ends the child's whole group of processes, and
records the cost of each request as it is reported, so that a run that is killed is accounted for
as well. Also says which ports lead to the model and which variables the child gets. The messages
are those of `task`.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from tacit.agent import budget, host_program, models
from tacit.agent.agent_events import Usage
from tacit.agent.budget import Limits, Reservation
from tacit.agent.host_program import end_group, has_ended
from tacit.agent.model_client import RequestFailed
from tacit.agent.models import ModelChoice
from tacit.agent.tool import Failed, Result
from tacit.base import paths, secrets, trust
from tacit.base.display import dollars, shorten
from tacit.base.errors import TacitError
from tacit.base.job import cancelled
from tacit.base.paths import is_inside
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import acting_as
from tacit.learn.background import task as wire
from tacit.learn.background.confinement import Confinement
from tacit.learn.background.task import MOST_SHOWN, Call, Reason, RunReport, Task
from tacit.skills.scopes import skill_roots

_SECRET = re.compile(
    r"(?i)(key|token|secret|passw(or)?d|passphrase|pwd|credential|auth|cookie|session|private"
    r"|signing|salt|dsn|pat|_pass|webhook|cert_data)(_|$|s$|s_|file|id)|_sock$|database_url|_uri$"
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def model_ports(choice: ModelChoice, variables: Mapping[str, str]) -> tuple[int, ...]:
    """The TCP ports through which the model is reached: its server's, or a proxy's."""
    found = {port for address in model_addresses(choice, variables) if (port := _port(address))}
    return tuple(sorted(found))


def model_addresses(choice: ModelChoice, variables: Mapping[str, str]) -> list[str]:
    """The addresses of the model's server, as far as they are known, and of proxies."""
    if choice.is_program:
        return []
    if choice.base_url:
        addresses = [choice.base_url]
    else:
        mine = choice.provider.prefixes
        named = (name for name in variables if name.startswith(mine))
        addresses = ["https://provider"]
        addresses += [variables[n] for n in named if n.endswith(("_URL", "_ENDPOINT", "_HOST"))]
    return addresses + [value for name, value in variables.items() if name.lower() in _PROXIES]


def is_model_host(host: str, choice: ModelChoice, variables: Mapping[str, str]) -> bool:
    """Whether the child may ask for the addresses of `host`: to reach the model, and no other.

    A name that is asked for goes out to whoever answers for it, and could carry something along.
    """
    named = model_addresses(choice, variables)
    own = {urlsplit(each if "://" in each else f"http://{each}").hostname for each in named}
    if host.lower() in own:
        return True
    if choice.base_url:
        return False
    ends = choice.provider.domains
    return ends is None or any(f".{host.lower()}".endswith(end) for end in ends)


def without_secrets(choice: ModelChoice, variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` without the secrets, but for those by which the model is reached."""
    mine = choice.provider.prefixes
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(mine) or name.lower() in _PROXIES or not _looks_secret(name, value)
    }


def _looks_secret(name: str, value: str) -> bool:
    if _SECRET.search(name):
        return True
    address = urlsplit(value) if "://" in value and "@" in value else None
    return bool(secrets.find(f"{name}={value}")) or (address is not None and "@" in address.netloc)


def _port(address: str) -> int | None:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 1080)
    except ValueError:
        return None


def child_environment(choice: ModelChoice) -> dict[str, str]:
    """The variables of this process, fit for the child."""
    return without_secrets(choice, os.environ)


LONGEST_RUN = 3600.0
"""Seconds that a run may take when its task sets no limit."""
_POLL_SECONDS = 1.0
"""Seconds between checks whether the child is still there."""
_MOST_CALLS = 1_000
_MOST_LOOKUPS = 50
_LONGEST_CALL = 65_536
_MOST_FINISHES = 30
"""How often an agent may say that it is done and be told to go on."""
_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


class Broker(Protocol):
    """The parent's side of a task. Called in the thread of `run`, one call at a time.

    What is raised here ends the child and comes out of `run`.
    """

    def finished(self, text: str) -> str | None:
        """The agent says that it is done: None lets it end, a text is what it is told next.

        Here the staged edits go through the gate, and a refusal goes back to the agent.
        """
        ...

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        """Do what cannot be done inside. May raise `Failed`, which the agent reads."""
        ...


def run(task: Task, broker: Broker, settings: Settings) -> RunReport:
    """Have the task done in a confined child process, and leave no process behind.

    Whatever becomes of the child there is a report; what the broker raises is raised.
    """
    began = time.monotonic()
    try:
        choice = models.for_learning(settings)
    except TacitError as error:
        return RunReport(reason="refused", error=error.explain())
    held = budget.reserve(settings.learn, task.limits)
    if held.refusal:
        return RunReport(reason="budget", error=held.refusal, model=choice.name)
    try:
        narrowed = msgspec.structs.replace(task, limits=held.limits)
        with acting_as(task.actor):
            report = _Run(narrowed, broker, settings, choice, held, began).run()
            for other in models.alternatives(settings.agent, choice) if _no_use(report) else ():
                report = _Run(narrowed, broker, settings, other, held, began).run()
                if not _no_use(report):
                    break
        return _by_the_day(report, task.limits, held.limits, settings.learn)
    finally:
        budget.settle(held)


def _no_use(report: RunReport) -> bool:
    """Whether nothing was had of a model, and will not be: another one may do it."""
    return report.reason == "refused" and not report.turns


class _Run:
    """One child, from its start to its end."""

    def __init__(
        self,
        task: Task,
        broker: Broker,
        settings: Settings,
        choice: ModelChoice,
        held: Reservation,
        began: float,
    ) -> None:
        self._task = task
        self._broker = broker
        self._settings = settings
        self._choice = choice
        self._held = held
        self._began = began
        self._until = began + (task.limits.seconds or LONGEST_RUN)
        self._confinement = Confinement()
        self._tally = _Tally()
        self._calls: list[Call] = []
        self._text = ""
        self._finishes = 0
        self._lookups = 0

    def run(self) -> RunReport:
        try:
            process, channel = self._start()
        except OSError as error:
            return self._report("error", f"the agent could not be started: {error.strerror}")
        try:
            channel.send(self._order())
            return self._listen(process, channel)
        except wire.Garbled as garbled:
            return self._report("error", f"the agent's process said {garbled}")
        finally:
            end_group(process)
            channel.close()

    def _start(self) -> "tuple[subprocess.Popen[bytes], wire.Channel]":
        pipes = [os.pipe() for _ in range(3)]  # its orders, its words, what it prints
        (orders, to_child), (from_child, words), (printed, prints) = pipes
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tacit.learn.background.child", str(words)],
                stdin=orders,
                stdout=prints,
                stderr=prints,
                pass_fds=(words,),
                cwd=self._task.staging,
                env=self._environment(),
                start_new_session=True,
            )
        except BaseException:
            for descriptor in (to_child, from_child, printed):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (orders, words, prints):
                os.close(descriptor)
        return process, wire.Channel(to_child, from_child, printed)

    def _environment(self) -> dict[str, str]:
        temporary = os.path.join(self._task.staging, "tmp")
        return child_environment(self._choice) | {
            "TMPDIR": temporary,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYDANTIC_DISABLE_PLUGINS": "__all__",  # others' programs, found by a search of all
        }

    def _order(self) -> wire.Start:
        """What the child is told. Its own limit strikes a little before ours, so it can say so."""
        limits = self._task.limits
        seconds = self._until - time.monotonic()
        own = msgspec.structs.replace(limits, seconds=max(seconds - min(1.0, seconds / 20), 0.01))
        return wire.Start(
            task=msgspec.structs.replace(self._task, limits=own),
            settings=_without_servers(self._settings),
            model=self._choice.name,
            base_url=self._choice.base_url,
            parent=os.getpid(),
            read=self._readable(),
            ports=model_ports(self._choice, os.environ),
        )

    def _readable(self) -> tuple[str, ...]:
        """The project, the library with its index, and files that the model's library needs."""
        task, chosen = self._task, self._settings.skills
        wanted = [readable_project(task.project), *task.read]
        where = task.project or task.staging
        wanted += [root.path for root in skill_roots(where, hosts=chosen.hosts, extra=chosen.paths)]
        wanted += [trust.trust_file(), paths.folders().cache]
        variables = child_environment(self._choice)
        wanted += [variables[name] for name in _FILES if name in variables]
        wanted += [variables.get("GOOGLE_APPLICATION_CREDENTIALS", "")]
        return tuple(os.path.realpath(path) for path in wanted if os.path.isabs(path))

    def _listen(self, process: "subprocess.Popen[bytes]", channel: wire.Channel) -> RunReport:
        while True:
            try:
                line = channel.line(min(self._until, time.monotonic() + _POLL_SECONDS))
            except EOFError:
                return self._child_ended(channel)
            if line is not None:
                message = wire.decode_message(line)
                if isinstance(message, wire.Called):
                    self._keep_call(message.call, len(line))
                elif (report := self._handle(message, channel)) is not None:
                    return report
            elif has_ended(process.pid):
                return self._child_ended(channel)
            elif cancelled():
                return self._report("killed", "the job was cancelled")
            if time.monotonic() >= self._until:
                return self._report("seconds", "the time was up, and the agent was stopped")

    def _keep_call(self, call: Call, size: int) -> None:
        """Keep a call for the report; not more of it, nor more of them, than a report can hold."""
        if len(self._calls) < _MOST_CALLS:
            kept = call.arguments if size <= _LONGEST_CALL else {"left out": f"{size:,} bytes"}
            shown = Call(call.name[:200], kept, call.failed, call.result[:MOST_SHOWN])
            self._calls.append(shown)

    def _handle(self, message: wire.Up, channel: wire.Channel) -> RunReport | None:
        match message:
            case wire.Locked():
                self._confinement = message.confinement
            case wire.Used():
                return self._record_spending(message)
            case wire.Ask():
                channel.send(self._serve(message))
            case wire.Lookup():
                channel.send(wire.Addresses(self._resolve(message.host)))
            case wire.Question():
                channel.send(self._ask_program(message))
                if cancelled():
                    return self._report("killed", "the job was cancelled")
            case wire.Finished():
                self._text = message.text
                if cancelled():  # what it made must not land any more
                    return self._report("killed", "the job was cancelled")
                self._finishes += 1
                if self._finishes > _MOST_FINISHES:
                    return self._report("turns", "it came to an end too often")
                told = self._broker.finished(message.text)
                if told is None:  # also where that took all the time: it was done before
                    return self._report("done")
                channel.send(wire.GoOn(told))
            case wire.Ended():
                self._text = message.text or self._text
                return self._report(message.reason, message.error)
        return None

    def _record_spending(self, used: wire.Used) -> RunReport | None:
        """Record what a request cost; the day's budget and the limits hold here too."""
        task = self._task
        self._tally.add(used)
        key = task.session or task.job
        trouble = budget.record_spending(
            task.kind, key, used.usage, seconds=used.seconds, reserved=self._held
        )
        if trouble:  # what is not on the account cannot be held to a budget
            return self._report("budget", f"what it takes cannot be noted: {trouble}")
        over = self._tally.over(task.limits)
        return self._report(over, f"the limit on {over} was passed") if over else None

    def _ask_program(self, asked: wire.Question) -> wire.Told:
        """Run the program that is the model: the child may not, and no other is run for it."""
        if not self._choice.is_program:
            return wire.Told(fault="the model is no program")
        try:
            said = host_program.ask(
                self._choice.name, asked.instructions, asked.text, until=self._until, stop=cancelled
            )
        except host_program.OutOfTime as late:  # it took something, and did not come to report it
            sent = (len(asked.instructions) + len(asked.text)) // 4
            cost = host_program.assumed_cost(sent, 0)
            usage = Usage(sent, 0, 0, cost, self._choice.name, estimated=True)
            key = self._task.session or self._task.job
            budget.record_spending(self._task.kind, key, usage, reserved=self._held)
            return wire.Told(fault=str(late), hint=late.hint, may_pass=True)
        except RequestFailed as fault:
            return wire.Told(fault=str(fault), hint=fault.hint, may_pass=fault.may_pass)
        except TacitError as error:
            return wire.Told(fault=error.message, hint=error.hint)
        return wire.Told(said)

    def _resolve(self, host: str) -> tuple[str, ...]:
        self._lookups += 1
        if self._lookups > _MOST_LOOKUPS or not is_model_host(host, self._choice, os.environ):
            return ()
        try:
            rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return ()
        return tuple(dict.fromkeys(str(row[4][0]) for row in rows))

    def _serve(self, asked: wire.Ask) -> wire.Answer:
        try:
            result = self._broker.serve(asked.name, asked.arguments)
        except Failed as failed:
            return wire.Answer(str(failed), failed=True)
        return wire.Answer(result.text, result.failed, result.diff)

    def _child_ended(self, channel: wire.Channel) -> RunReport:
        """The child ended without its last word."""
        with contextlib.suppress(EOFError, wire.Garbled):  # what it printed may say why
            channel.line(time.monotonic() + 0.05)
        printed = channel.printed.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
        why = f": {shorten(printed, 500)}" if printed else ""
        return self._report("killed", f"the agent's process ended of a sudden{why}")

    def _report(self, reason: Reason, error: str = "") -> RunReport:
        tally = self._tally
        return RunReport(
            reason=reason,
            text=self._text,
            error=error,
            turns=tally.requests,
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            cached_tokens=tally.cached_tokens,
            cost=tally.cost,
            seconds=time.monotonic() - self._began,
            model=tally.model or self._choice.name,
            calls=tuple(self._calls),
            confinement=self._confinement,
        )


class _Tally:
    """The requests so far. Figures that cannot be are not believed."""

    def __init__(self) -> None:
        self.requests = self.input_tokens = self.output_tokens = self.cached_tokens = 0
        self.cost: float | None = None
        self.model = ""

    def add(self, used: wire.Used) -> None:
        usage = used.usage
        self.requests += 1
        self.input_tokens += max(usage.input_tokens, 0)
        self.output_tokens += max(usage.output_tokens, 0)
        self.cached_tokens += max(usage.cached_tokens, 0)
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + max(usage.cost, 0.0)
        self.model = usage.model[:200]

    def over(self, limits: Limits) -> Reason | None:
        """The limit that was passed. At one, the child ends by itself: it has more to say."""
        if limits.turns and self.requests > limits.turns:
            return "turns"
        if limits.tokens and self.input_tokens + self.output_tokens > 2 * limits.tokens:
            return "tokens"
        if limits.money and (self.cost or 0.0) > 2 * limits.money:
            return "money"
        return None


def _by_the_day(
    report: RunReport, asked: Limits, granted: Limits, learn: LearnSettings
) -> RunReport:
    """The report, which says so where it was not the task's own limit that cut it off.

    Where it had the whole day's budget and more was needed, another day would not help.
    """
    given: float
    whole: float
    if report.reason == "tokens" and granted.tokens != asked.tokens:
        given, whole = granted.tokens, learn.daily_tokens
        left, a_day = f"{given:,} tokens", f"{whole:,} tokens a day (learn.daily_tokens)"
    elif report.reason == "money" and granted.money != asked.money:
        given, whole = granted.money, learn.daily_money
        left, a_day = dollars(given), f"{dollars(whole)} a day (learn.daily_money)"
    else:
        return report
    requests = "1 request" if report.turns == 1 else f"{report.turns} requests"
    why = f"the day's budget cut it off after {requests}: it had {left} of {a_day}"
    if given < whole:
        return msgspec.structs.replace(report, reason="budget", error=why, day="rest")
    return msgspec.structs.replace(report, error=f"{why}, and needs more", day="whole")


def readable_project(project: str) -> str:
    """The project's folder, where it is one: neither gone, nor the home or what holds it.

    A session may have begun anywhere; that does not open all that lies there.
    """
    home = os.path.realpath(paths.user_home())
    holds_home = is_inside(home, os.path.realpath(project))
    return "" if holds_home else paths.existing_folder(project)


def _without_servers(settings: Settings) -> Settings:
    """The settings that the child needs: what MCP servers are started with is none of that."""
    return msgspec.structs.replace(settings, mcp=type(settings.mcp)())
