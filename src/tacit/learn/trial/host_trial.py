"""A run of a trial by a host's own program, headless, with its tools, in a home of its own.

The program runs inside the sandbox with a network, which it needs for its model: it writes the
task's folder and its temporary home, in which the skills of one side are all that there is. Nothing
of the user's settings, hooks, servers or login is there; a key must be in the environment. How each
program is started for a task is its host's (`traces/program.py`). Its session is read from the
temporary home and stored.
"""

import asyncio
import os
import shlex
import shutil
import time

import msgspec

from tacit.agent import host_program
from tacit.agent.command_limits import limits_of
from tacit.agent.off_limits import CommandRules
from tacit.agent.sandbox import CommandOutcome, find_sandbox, run_sandboxed
from tacit.base.display import shorten, shorten_middle
from tacit.base.errors import NotFound, TacitError, did_you_mean
from tacit.base.setting_sections import AgentSettings, Settings
from tacit.learn.trial.trial_run import MOST_KEPT, Ran
from tacit.learn.trial.trial_tasks import Task
from tacit.learn.trial.verifier import lay_out_texts, placed
from tacit.traces.host import Host
from tacit.traces.host_folders import SHARED_FOLDERS
from tacit.traces.program import Question, Said, Start
from tacit.traces.store import Store
from tacit.traces.trace import Trace, Usage

_KEYS = (
    "_API_KEY", "_TOKEN", "_BASE_URL", "_PROXY", "_proxy", "_CERTS", "_CERT_FILE", "_OFFLINE",
)  # fmt: skip
"""How the names of variables end that a program is given: its key, its server, the way there."""
_MODULES = "node_modules"


class HostAgent:
    """A host's program as the agent of a trial."""

    def __init__(self, settings: Settings, word: str, model: str = "") -> None:
        """Raises `NotFound` and `Refused` where it cannot do tasks here."""
        able = {p.program.word: p for p in host_program.host_programs(tasks=True)}
        found = able.get(word) or next((p for p in able.values() if p.host.name == word), None)
        if found is None:
            hint = did_you_mean(word, able, f"take one of: {', '.join(able)}")
            raise NotFound(f"no agent is known as '{word}'", hint)
        if not found.path:
            raise NotFound(f"{word} is not on the PATH", f"install {found.host.title}")
        self._found = found
        self._model = model
        self._settings: AgentSettings = settings.agent
        self._box = find_sandbox(allow_none=settings.agent.sandbox == "none")
        self.title = f"{found.program.word} {model or 'its own model'}"

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        host, above = self._found.host, os.path.dirname(skills)
        home = os.path.join(above, "home")
        target = os.path.join(home, skills_folder(host))
        shutil.copytree(skills, target, symlinks=True)
        question = Question(
            placed(task.prompt, {task.root: work}), "", self._model, work, _server()
        )
        start = self._found.program.work(question)
        began = time.monotonic()
        done = self._started(start, work, home, above, skills, task.seconds)
        ran = self._understood(done, question)
        ran = msgspec.structs.replace(ran, seconds=time.monotonic() - began)
        return self._with_session(ran, host, home)

    def _started(
        self, start: Start, work: str, home: str, above: str, skills: str, seconds: float
    ) -> CommandOutcome:
        """Run the program to its end, or the end of its time."""
        script, told = os.path.join(home, ".start"), os.path.join(home, ".prompt")
        variables = _variables(home) | start.variables
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        lines.append(f"exec {shlex.join([self._found.path, *start.words])} < {shlex.quote(told)}")
        texts = start.files | {".start": "\n".join(lines), ".prompt": start.stdin}
        written = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
        lay_out_texts(home, written, {})
        shown = map(os.path.expanduser, self._settings.show_paths)
        linked = [os.path.join(skills, name) for name in os.listdir(skills)]
        temporary = os.path.join(above, "tmp")
        os.mkdir(temporary)
        rules = CommandRules(
            project=work,
            temporary=temporary,
            writable=(home,),
            network=True,
            show=(_installed(self._found.path), *shown, *map(os.path.realpath, linked)),
            limits=limits_of(self._settings),
        )
        return asyncio.run(run_sandboxed(f". {shlex.quote(script)}", self._box, rules, seconds))

    def _understood(self, done: CommandOutcome, question: Question) -> Ran:
        """What the program said, or why the run does not count."""
        if done.timed_out or done.excess:
            return Ran(void=done.excess or "it took too long")
        try:
            said: Said = self._found.program.said(done.output, question)
        except ValueError as error:
            words = shorten(" ".join(done.output.split()), 200)
            return Ran(void=f"its answer cannot be read ({error}): {words}")
        if not said.text.strip() and said.error:
            return Ran(void=said.error)
        tokens = (said.input_tokens or 0) + (said.output_tokens or 0)
        return Ran(answer=shorten_middle(said.text, MOST_KEPT), tokens=tokens, cost=said.cost)

    def _with_session(self, ran: Ran, host: Host, home: str) -> Ran:
        """What the session that it left says: skills that were read, calls, tokens."""
        trace = _taken_in(host, home)
        if trace is None:
            return ran
        used: Usage = trace.usage  # of all requests; what it printed may be of the last one
        sent = used.input + used.cache_read + used.cache_write
        return msgspec.structs.replace(
            ran,
            session=trace.id,
            skills=trace.skills,
            calls=len(trace.calls),
            tokens=sent + used.output or ran.tokens,
            cost=used.cost or ran.cost,  # 0: not known
        )


def skills_folder(host: Host) -> str:
    """Where `host` finds the user's skills, below a home."""
    own = host.folders().user if host.skills.shared != "read" else SHARED_FOLDERS.user
    return own[0].path


def _taken_in(host: Host, home: str) -> Trace | None:
    """The session that a program left in a home, stored."""
    try:
        with Store.open() as store:
            for source in host.inside(os.path.join(home, host.home.path)):
                if (written := store.take_in(host, source)).id:
                    return store.whole(written.id)
    except TacitError:
        pass
    return None


def _variables(home: str) -> dict[str, str]:
    """What a program is given of the environment: its key and the way to its model."""
    kept = {name: value for name, value in os.environ.items() if name.endswith(_KEYS)}
    return kept | {"HOME": home, "TACIT_WORKER": "1", "NO_COLOR": "1"}


def _server() -> str:
    """A server of one's own with OpenAI's API, for programs that know it by settings alone."""
    return os.environ.get("OPENAI_BASE_URL", "")


def _installed(program: str) -> str:
    """The folder that holds all of a program."""
    real = os.path.realpath(program)
    if f"/{_MODULES}/" in real:
        return real[: real.index(f"/{_MODULES}/") + len(_MODULES) + 1]
    return os.path.dirname(real)
