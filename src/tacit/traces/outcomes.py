"""How calls ended, each with the reason that says so; tasks and sessions are `task_outcomes.py`'s.

Owns the one table of signs by which runners, linters, compilers, package managers, git and HTTP say
in their output how it went, and the rule when an exit code speaks for a command: never behind a
pipe that hides it, never for a search that found nothing. What cannot be known is `unclear`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.patterns import Alternatives, late_pattern
from tacit.traces import values
from tacit.traces.command_line import joined_commands
from tacit.traces.command_purposes import WorkClass, program_of, purpose_of, work_class
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import REFUSED, ToolCall

State = Literal["worked", "failed", "refused", "cancelled", "timed out", "unfinished", "unclear"]
Reason = Literal[
    "exit code", "output", "tool", "user", "nothing found", "sibling", "verdict", "hidden", "none"
]


class Outcome(msgspec.Struct, frozen=True):
    """How something ended, by what that is known, and the line that shows it."""

    state: State = "unclear"
    reason: Reason = "none"
    evidence: str = ""

    @property
    def failed(self) -> bool:
        """Whether it went wrong by itself; what the user or the host stopped did not."""
        return self.state in ("failed", "timed out")


class Sign(NamedTuple):
    """How a kind of program says in a line that it failed or worked; `work` is its class."""

    work: WorkClass | None
    failed: str
    worked: str = ""


_TAG = r"^(?:\[[^\]\n]{1,40}\][ \t]+)?"
SIGNS: tuple[Sign, ...] = (
    # pytest, unittest
    Sign("test", r"^(?:=+ )?.*\b[1-9]\d* (?:failed|errors?)\b.* in [\d.]+ ?m?s|^FAILED \S+::"
         r"|^FAILED \((?:failures|errors)=|^=+ no tests ran"
         r"|^ERROR: (?:file or directory not found|not found)",
         r"^(?:=+ )?[1-9]\d* passed\b.* in [\d.]+ ?m?s|^OK(?: \([\w =,]*\))?$"),
    # jest, vitest, bun, mocha, node, playwright
    Sign("test", r"^\s*(?:Tests|Test Files|Test Suites):?\s+.*\b[1-9]\d* failed"
         r"|^\s*[1-9]\d* fail(?:ing|ed)?$"
         r"|^. fail [1-9]|^\s*[1-9]\d* failed$|^(?: FAIL |\(fail\) )",
         r"^\s*(?:Tests|Test Files|Test Suites):?\s+(?:\d+ \w+ \| )?\d+ passed|^\s*0 fail\b"
         r"|^. fail 0$"
         r"|^\s*\d+ passing\b|^\s*\d+ passed \([\d.]+m?s\)"),
    # go, cargo, rspec, phpunit, ctest
    Sign("test", _TAG + r"(?:--- FAIL:|FAIL\b|panic: )|^test result: FAILED"
         r"|\d examples?, [1-9]\d* failures?"
         r"|^(?:FAILURES|ERRORS)!|^[1-9]\d* tests? failed",
         _TAG + r"(?:ok[ \t]+\S+[ \t]+(?:\(cached\)|[\d.]+s)(?!.*\[no test)|--- PASS: "
         r"|PASS$(?!\nok.*\[no test))|^test result: ok(?!\. 0 passed)"
         r"|\d examples?, 0 failures|^OK \(\d+ tests?|^100% tests passed"),
    # dotnet, xcodebuild, swift, mix, flutter, deno
    Sign("test", r"^Failed! +- Failed:|^\*\* TEST FAILED \*\*|Executed \d+ tests?, with [1-9]"
         r"|^\d+ (?:\w+, \d+ )?tests?, [1-9]\d* failures?|^Some tests failed"
         r"|^FAILED \| \d+ passed",
         r"^Passed! +- Failed: +0|^\*\* TEST SUCCEEDED \*\*|Executed \d+ tests?, with 0 failures"
         r"|^[1-9]\d* (?:\w+, \d+ )?tests?, 0 failures|All tests passed!|^ok \| [1-9]\d* passed"),
    # golangci-lint, eslint, ruff, biome, flake8, shellcheck, prettier, black, tasks of a linter
    Sign("lint", _TAG + r"[1-9]\d* issues?:|^✖ [1-9]\d* problems? \([1-9]"
         r"|^Found [1-9]\d* (?:errors?|diagnostics?)"
         r"(?!.*\b0 remaining)|^\s{1,4}× |^\[?lint[^\]\n]*\] ERROR|^\S+:\d+:\d+:? [EWF]\d{3} "
         r"|^Summary: [1-9]\d* error",
         _TAG + r"0 issues\.|^All checks passed!|\b0 remaining\)"
              r"|^Checked \d+ files? in [^\n]*(?:No fixes|Fixed \d)"
         r"|^✖ \d+ problems? \(0 errors|^Summary: 0 error"),
    Sign("format", r"^\d+ files? would be reformatted|^\[warn\] Code style issues"
         r"|^\[?fmt[^\]\n]*\] ERROR",
         r"^All done! |^All matched files use|^\d+ files? (?:left unchanged|already formatted"
         r"|reformatted)"),
    # mypy, pyright, tsc
    Sign("types", r"^Found [1-9]\d* errors? in \d|^[1-9]\d* errors?, \d+ warn|\berror TS\d+:",
         r"^Success: no issues found|^0 errors, "),
    # astro
    Sign("check", r"^- [1-9]\d* errors?$", r"^- 0 errors$"),
    # compilers and build tools
    Sign("build", r"^error(?:\[E\d+\])?: |could not compile"
         r"|^\S+\.\w+:\d+(?::\d+)?: (?:fatal )?error: "
         r"|^\S+\.go:\d+:\d+: |^make(?:\[\d+\])?: \*\*\* |BUILD FAIL|^ERROR: failed to "
         r"|\[build failed\]"
         r"|^(?:error during build|Build failed|Failed to compile)",
         r"^\s*Finished `?(?:dev|release|test)|BUILD SUCCESS|^✓ built in|Successfully (?:built"
         r"|tagged)"
         r"|Compiled successfully|^webpack \S+ compiled successfully"),
    Sign("build", r"^Build FAILED\.|^\*\* BUILD FAILED \*\*|: error CS\d{4}:|^\* What went wrong:"
         r"|^== Compilation error",
         r"^Build succeeded\.|^\*\* BUILD SUCCEEDED \*\*|^Build complete!"),
    # terraform, kubectl, helm
    Sign(None, r"^[│╷ ]*Error: |^Error from server|^The connection to the server",
         r"^Apply complete!|^Success! The configuration is valid"),
    # package managers and task runners
    Sign(None, r"^npm (?:ERR!|error)|ERR_PNPM|ELIFECYCLE|^error Command failed"
         r"|^ERROR: (?:Could not|No matching)"
         r"|^error: (?:script|Script|Module|unrecognized)|ERROR task failed|^mise ERROR"
         r"|^E: Unable|^No module named|^the input device is not a TTY"
         r"|^Error response from daemon:",
         r"^added \d+ packages|^up to date,|^Successfully installed|^\d+ packages? installed"),
    # git, gh
    Sign(None, r"^(?:fatal|error): |^ ?! \[(?:remote )?rejected\]|^CONFLICT "
         r"|^Automatic merge failed"
         r"|^husky - .* (?:exited|failed)|hook declined|^GraphQL: |^nothing (?:added )?to commit",
         r"^\[[^\]\n]+ [0-9a-f]{7,}\] |^ ?\* \[new |^ *[+ ]? ?[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,} "
         r"|^Everything up-to-date"
         r"|^Already up to date|^Successfully rebased|^Switched to"
         r"|https://github\.com/\S+/pull/\d+$"),
    # HTTP
    Sign(None, r"^(?:< )?HTTP/[\d.]+ [45]\d\d|^curl: \(\d+\)|^gh: .* \(HTTP [45]\d\d\)",
         r"^(?:< )?HTTP/[\d.]+ 2\d\d"),
    # what any program says when it breaks
    Sign(None, r"^Traceback \(most recent call last\):|^(?:Uncaught )?\w*(?:Error|Exception): "
         r"|^thread '.*' panicked"
         r"|command not found|^(?:\S*/)?(?:ba|z|da)?sh: .*(?:not found|No such file"
         r"|Permission denied)|^Segmentation fault"),
)  # fmt: skip
_FAILED = [(s.work, Alternatives(s.failed, re.MULTILINE)) for s in SIGNS]
_WORKED = [(s.work, Alternatives(s.worked, re.MULTILINE)) for s in SIGNS if s.worked]
_SIGNS: tuple[tuple[State, list[tuple[WorkClass | None, Alternatives]]], ...] = (
    ("failed", _FAILED), ("worked", _WORKED),
)  # fmt: skip

_TIMED_OUT = Alternatives(
    r"^.{0,80}\b(?:timed out|timeout) after\b|\bcommand timed out\b", re.I | re.M
)
_SIBLING = Alternatives(
    r"sibling tool call|parallel tool call|^<tool_use_error>Cancelled", re.I | re.M
)
_STOPPED = Alternatives(r"\[Request interrupted by user|^(?:Operation )?(?:cancelled"
     r"|aborted) by (?:the )?user", re.I | re.M)  # fmt: skip
_TOOL_ERROR = late_pattern(r'^\s*(?:<tool_use_error>|Error\b[:.]?|\{"error":|\[?Error(?:Code)?\])')
_OWN_EXIT = late_pattern(r"\b(?:exit|rc|status|ret|code)\w*\s*[:=]?\s*(\d{1,3})\s*$", re.I | re.M)
_STARTED = Alternatives(
    r"running in (?:the )?background|^Command running in|^(?:Process|Script) running with ", re.I
)
_CODE_UNSEEN = "Script completed\n"
"""Before what a script printed of a command, which is seldom its exit code."""
_OF_PROFILE = late_pattern(
    r"\A(?:\S*(?:shellenv\.sh|/\.?(?:ba|z)?sh(?:rc|env)|/\.?(?:bash_|z)?profile)"
    r"(?:: line |:)\d+: .*(?:\n|\Z))+"
)
"""What the files say that a shell reads as it begins, whatever it then runs."""
# Programs whose exit code 1 says that something is not there, or differs.
_SEARCHES = {"grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which"}
_NO_OUTPUT = late_pattern(
    r"\(?Bash completed with no output\)?|\(no output\)|^Exit code \d+$|^[$>] .*$"
    r"|^Shell cwd was reset.*$",
    re.M,
)
"""What a host, or a runner that repeats its command, prints for nothing."""
_FOR_FAILURES = Alternatives(r"fail|error|panic|✗|✖|not ok|warn", re.IGNORECASE)
_ERROR_LINE = Alternatives(
    r"^\W*(?:error|fatal|failed|failure|cannot|unable|usage|unknown)\b", re.I | re.M
)
# They say nothing when all is well.
_QUIET = {"go build", "go vet", "tsc", "gofmt", "git add", "git checkout", "git push", "git stash"}
_QUIET_CLASSES = ("types", "format", "build")
_ASKS = {"gh pr checks", "gh run watch", "gh run view"}
_ASKING = {"--check", "--exit-code", "--exit-status"}
_FILTERS = {"grep", "egrep", "fgrep", "rg", "awk", "sed"}
_LOOKED_AT = 4000
"""Characters at the start and at the end of an output in which signs are looked for."""


_WORST_FIRST = {"failed": 0, "unclear": 1, "worked": 2}


def call_outcome(call: ToolCall) -> Outcome:
    """How a call ended."""
    stopped = stopped_early(call)
    if stopped is not None:
        return stopped
    if call.kind != "shell" or not (command := command_of(call).strip()):
        return _of_tool(call)
    return _shell_outcomes(command, call.result, call.failed, call.error)[0]


def purpose_outcomes(call: ToolCall) -> list[tuple[str, Outcome]]:
    """How each purpose of a shell call ended; nothing of one that only looked around."""
    if call.kind != "shell" or not (command := command_of(call).strip()):
        return []
    each = _shell_outcomes(command, call.result, call.failed, call.error)[1]
    stopped = stopped_early(call) if each else None
    return [(name, stopped or outcome) for name, outcome in each]


@lru_cache(maxsize=1024)
def _shell_outcomes(
    command: str, result: str, failed: bool, error: str
) -> tuple[Outcome, tuple[tuple[str, Outcome], ...]]:
    """How a command ended, and each of its purposes; of one session this is asked several times."""
    call = ToolCall("", "", "shell", {"command": command}, result, failed, error)
    shell = _Shell(call, command)
    each = tuple(shell.each())
    found = [outcome for _, outcome in each] or [shell.of_looking()]
    worst = min(found, key=lambda outcome: _WORST_FIRST.get(outcome.state, 1))
    if worst.state == "unclear" and failed and not shell.is_search:
        worst = Outcome("failed", "exit code", telling_line(error or result))
    return worst, each


def failed_check(call: ToolCall) -> WorkClass | None:
    """The class of the check that failed, by what a call printed; None where none did."""
    ends = f"{call.result[:_LOOKED_AT]}\n{call.result[-_LOOKED_AT:]}"
    return next((work for work, sign in _FAILED if work and sign.search(ends)), None)


def says_well(work: WorkClass | None, line: str) -> bool:
    """Whether by `line` a program of that class of work says that all is well."""
    return any(work == own and sign.search(line) for own, sign in _WORKED)


_ABSENT = Alternatives(
    r"command not found: ([\w.+-]+)|([\w.+-]+): (?:command not found(?!:)|not found$)"
    r"|(?:the term |^)'([\w.+-]+)' is not recognized as|\(([\w.+-]+):String\) \[\], CommandNotFound"
    r"|^fish: Unknown command:? ([\w.+-]+)|exec: \"([\w.+-]+)\": executable file not found"
    r"|^\S*sh: (?:\D{1,8}\d+: )?([\w.+-]+): ?(?:orden no encontrada|no se encontró la orden"
    r"|comando não encontrado|commande introuvable|Befehl nicht gefunden|Kommando nicht gefunden"
    r"|comando non trovato|команда не найдена|未找到命令"
    r"|コマンドが見つかりません|명령어를 찾을 수 없음)"
    r"|^([\w.+-]+): (?:Exit code (?:49|9009)$|Python was not found)"
    r"|término '([\w.+-]+)' no se reconoce",
    re.I | re.M,
)
# How programs say that they were called wrongly, or are not there.
CALLED_WRONGLY = Alternatives(
    r"command not found|not found\b|no such (?:file|option|command|task)|unrecogni[sz]ed"
    r"|unknown (?:option|flag|command|subcommand"
    r"|argument|task|script)|unexpected argument|invalid (?:option|choice|argument)|^usage:"
    r"|no module named|cannot find module"
    r"|missing script|script not found|no task|not trusted|permission denied|not installed"
    r"|not a git repository|is not recognized"
    r"|no rule to make target|could not find|does not exist|not logged in|authentication"
    r"|is required|must be set|expected a"
    r"|can't open file|cannot open|no_script|does not contain main module|required node version"
    r"|unsupported (?:engine|environment)|^The following paths are ignored by|can't create"
    r"|operation not permitted"
    r"|cannot find main module|not a tty|no such container|must (?:now )?be run as"
    r"|failed to spawn|ImproperlyConfigured|no such command|could not locate|cannot find package"
    r"|no plugin found for prefix|there is no POM|specify a project or solution"
    r"|(?-i:[A-Z]+_[A-Z_]+) is not set"
    r"|unable to (?:locate|find a (?:destination|device))|requires Xcode|could not open input file"
    r"|cannot connect to the docker daemon|scripts is disabled on this system"
    r"|cannot be loaded because"
    r"|externally-managed|no virtual environment|please run\W{1,4}terraform init"
    r"|connection to the server .* refused",
    re.IGNORECASE,
)
SANDBOXED = Alternatives(
    r"\bEPERM\b|operation not permitted|could not resolve host|error connecting to|EAI_AGAIN"
    r"|read-only file system|network is unreachable|ENOTFOUND|token in \S+ is invalid",
    re.IGNORECASE,
)
"""How it shows that a sandbox let something not listen, write or reach the network."""
_NOT_FOUND = (
    "not found",
    "not recognized",
    "CommandNotFound",
    "Unknown command",
    "Exit code ",
    "no encontrad",
    "não encontrado",
    "introuvable",
    "nicht gefunden",
    "non trovato",
    "не найдена",
    "未找到",
    "見つかりません",
    "찾을 수 없",
    "no se reconoce",
)


@lru_cache(maxsize=1024)
def absent_program(said: str) -> str:
    """The program that a shell did not find; of one session this is asked several times."""
    found = _ABSENT.search(said) if any(sign in said for sign in _NOT_FOUND) else None
    return str(found[found.lastindex or 0]) if found else ""


def says_nothing(said: str) -> bool:
    """Whether what was printed of a command is nothing but what a host says for nothing."""
    lines = (line for line in said.split("\n") if line and not line.isspace())
    return all(not _NO_OUTPUT.sub("", line).strip() for line in lines)  # mostly the first tells


def stopped_early(call: ToolCall) -> Outcome | None:
    """Where a call did not come to its own end."""
    if not call.finished:
        return Outcome("unfinished")
    if call.error == REFUSED:
        return Outcome("refused", "user", telling_line(call.result))
    ends = f"{call.result[:400]}\n{call.result[-400:]}\n{call.error}"
    if call.failed and _SIBLING.search(ends):
        return Outcome("cancelled", "sibling", telling_line(ends))
    if "user" in ends.lower() and _STOPPED.search(ends):
        return Outcome("cancelled", "user", telling_line(ends))
    if call.failed and (found := _TIMED_OUT.search(ends)):
        return Outcome("timed out", "tool", telling_line(found[0]))
    return None


def _of_tool(call: ToolCall) -> Outcome:
    if call.failed:
        return Outcome("failed", "tool", telling_line(call.error or call.result))
    if _TOOL_ERROR.match(call.result) and call.kind == "other":
        return Outcome("failed", "output", telling_line(call.result))
    return Outcome("worked", "tool")


class _Shell:
    """One shell call: its simple commands, what it printed, and the code it ended with."""

    def __init__(self, call: ToolCall, command: str) -> None:
        self.call = call
        self.parts = joined_commands(command)
        self.pipefail = "pipefail" in command
        self.unseen = call.result.startswith(_CODE_UNSEEN)
        result = _OF_PROFILE.sub("", uncoloured(call.result.removeprefix(_CODE_UNSEEN)))
        if len(result) > 2 * _LOOKED_AT:
            result = f"{result[:_LOOKED_AT]}\n{result[-_LOOKED_AT:]}"
        self.output = result
        self.purposes = [purpose_of(part.words) for part in self.parts]
        asked = "$?" in command or "PIPESTATUS" in command
        told = _OWN_EXIT.search(result[-200:]) if asked else None
        self.told = int(told[1]) if told else None
        """The code that the command itself printed of what it ran."""

    @property
    def named(self) -> list[str]:
        return [name for name in self.purposes if name]

    def each(self) -> Iterator[tuple[str, Outcome]]:
        """How each part that has a purpose ended; of one purpose the last."""
        found: dict[str, Outcome] = {}
        stopped = False
        for at, name in enumerate(self.purposes):
            if name and stopped:
                found.setdefault(name, Outcome())
            elif name:
                found[name] = self._of_part(at, name)
                stopped = found[name].state == "failed"
            stopped = stopped and self.parts[at].joined == "&&"
        yield from found.items()

    def _of_part(self, at: int, name: str) -> Outcome:
        if by_shell := self._of_shell(at):
            return by_shell
        if self.call.failed and (by_git := self._of_commit(at, name)):
            return by_git
        if _STARTED.search(self.output[:300]):
            return Outcome("unclear", "hidden", "it went on in the background")
        if self.told is not None and name == self.named[-1]:
            state: State = "failed" if self.told else "worked"
            return Outcome(state, "output", f"exit code {self.told}")
        if not self.call.failed and self._speaks(at):
            return Outcome("worked", "exit code")
        by_output = self._by_signs(name)
        if by_output is not None and (by_output.state == "failed" or not self.call.failed):
            return by_output
        if self.call.failed and self._tells_by_code(at, name):
            return Outcome("worked", "output", telling_line(self.output))
        if self.call.failed and not self.is_search:
            return self._failed(name)
        return self._silent(name) or self._shown(name) or Outcome("unclear", "hidden")

    def _tells_by_code(self, at: int, name: str) -> bool:
        """Whether the code answers a question, such as whether checks elsewhere are done."""
        asks = name in _ASKS or (work_class(name) is None and _ASKING & set(self.parts[at].words))
        return bool(asks) and not _ERROR_LINE.search(self.output)

    def _of_shell(self, at: int) -> Outcome | None:
        """What it means for a part that the shell did not find the folder or the program of
        another: what stands before that in a chain worked, and the rest did not run."""
        gone = absent_program(self.output)
        firsts = [part.words[0].rpartition("/")[2] for part in self.parts]
        if not gone and "cd:" in self.output and _NO_FOLDER.search(self.output):
            gone = "cd"
        if gone not in firsts or gone == firsts[at]:
            return None
        chain = all(part.joined == "&&" for part in self.parts[at : firsts.index(gone)])
        before = at < firsts.index(gone) and chain
        return Outcome("worked", "output") if before else Outcome("unclear", "hidden")

    def _of_commit(self, at: int, name: str) -> Outcome | None:
        """Who stopped a chain that leads to a commit: staging has its own words for it and is
        silent else, and a commit that was made is told, so all else is a hook's or git's."""
        before = set(self.purposes[:at]) - {"", "git add"}
        chained = all(part.joined == "&&" for part in self.parts[:at])
        if name not in ("git add", "git commit") or before or not chained:
            return None
        if says_nothing(self.output):
            return None
        if unstaged := _UNSTAGED.search(self.output):
            return (
                Outcome("failed", "output", telling_line(unstaged[0]))
                if name == "git add"
                else None
            )
        if name == "git add":
            follows = self.parts[at].joined == "&&" and "git commit" in self.purposes[at:]
            return Outcome("worked", "output", "nothing was printed") if follows else None
        if _COMMITTED.search(self.output):
            return Outcome("worked", "output")
        return Outcome("failed", "output", complaint(self.output))

    def _speaks(self, at: int) -> bool:
        """Whether the code 0 of the whole says that part `at` worked: nothing hides its own."""
        if self.unseen or self._piped(at):
            return False
        return all(part.joined in ("&&", "", ")", "|", "|&") for part in self.parts[at:])

    def _piped(self, at: int) -> bool:
        return self.parts[at].joined in ("|", "|&") and not self.pipefail

    @property
    def is_search(self) -> bool:
        """Whether the code of the whole is that of a search at its end, which found nothing."""
        last = program_of(self.parts[-1].words) if self.parts else ""
        code = values.exit_code(self.call.result[:200])
        return last in _SEARCHES and len(self.parts) > 1 and code in (None, 1)

    def _failed(self, name: str) -> Outcome:
        """The whole ended with another code than 0: whether that is because of `name`."""
        if len(set(self.named)) > 1 and (name != self.named[-1] or not self._by_signs(name)):
            return Outcome("unclear", "hidden")  # of several, nobody knows which
        return Outcome("failed", "exit code", telling_line(self.call.error or self.output))

    def _by_signs(self, name: str) -> Outcome | None:
        """What the output says of the purpose `name`: first in the words of its own class, since
        what is under test may print any error; then in those of other programs."""
        own = work_class(name)
        classes = {work_class(other) for other in self.named}
        alone = len(self.named) == 1
        last = name == self.named[-1]
        for others in (False, True):
            for state, signs in _SIGNS:
                for work, sign in signs:
                    fits = alone or (last and work not in classes) if others else work == own
                    if fits and (found := sign.search(self.output)):
                        line = self.output[found.start() :].partition("\n")[0]
                        if line.startswith("Traceback"):
                            line = self.output.strip().rpartition("\n")[2]
                        echoed = state == "worked" and line.strip() in command_of(self.call)
                        return Outcome(state, "output", "" if echoed else telling_line(line))
        return None

    def _silent(self, name: str) -> Outcome | None:
        """What it means that nothing was printed: by a program that is quiet when all is well, or
        through a filter that lets failures pass."""
        if not says_nothing(self.output):
            return None
        filters = [part.words for part in self.parts if program_of(part.words) in _FILTERS]
        if filters and all(_FOR_FAILURES.search(" ".join(words)) for words in filters):
            return Outcome("worked", "nothing found", "no line of a failure")
        if not filters and (name in _QUIET or work_class(name) in _QUIET_CLASSES):
            return Outcome("worked", "output", "nothing was printed")
        return None

    def _shown(self, name: str) -> Outcome | None:
        """Something was asked for, and it was printed; a check has to say more than that."""
        if work_class(name) is not None:
            return None
        said = _NO_OUTPUT.sub("", self.output).strip()
        if said and not _ERROR_LINE.search(said):
            return Outcome("worked", "output", telling_line(said))
        return None

    def of_looking(self) -> Outcome:
        """How a command ended that only looked around."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        programs = {program_of(part.words) for part in self.parts}
        if self.call.failed:
            last = program_of(self.parts[-1].words) if self.parts else ""
            code = values.exit_code(self.call.result[:200]) or 1
            said = [line for line in lines if not values.exit_code(line)]
            searched = last in _SEARCHES or bool(programs & _SEARCHES)
            if code == 1 and searched and not _complains(said, programs):
                return Outcome("worked", "nothing found")
            return Outcome("failed", "exit code", telling_line(self.call.error or self.output))
        if lines and len(lines) <= _SHORT_COMPLAINT and _complains(lines[:1], programs):
            return Outcome("failed", "output", telling_line(lines[0]))
        if not self.parts:  # a comment
            return Outcome()
        hidden = self.unseen or self._piped(0)
        return Outcome("worked", "output" if hidden else "exit code")


_NO_FOLDER = Alternatives(r"\bcd: .*(?:no such file|not a directory|too many)", re.IGNORECASE)
_MAY_COMPLAIN = late_pattern(r".*(?:: |command not found|error)", re.IGNORECASE)
_SHORT_COMPLAINT = 8
"""Lines up to which an output that begins with a complaint is nothing else."""


def _complains(lines: list[str], programs: set[str]) -> bool:
    """Whether a program names itself and an error: `cat: x: No such file or directory`."""
    lines = [line for line in lines if _MAY_COMPLAIN.match(line)]
    if not lines:
        return False  # mostly, and soon
    begins = "|".join(re.escape(name) for name in sorted(programs) if name)
    wanted = re.compile(
        rf"^(?:(?:\S*/)?(?:{begins or 'sh'}|(?:ba|z|da)?sh)\S*: .*|fatal: |error: "
        rf"|.*command not found|.*\b(?:parse|syntax) error)",
        re.I,
    )
    return any(wanted.match(line) for line in lines)


_UNSTAGED = Alternatives(
    r"^fatal: (?:pathspec|not a git|Unable to create|in unpopulated|'?\S+'? is outside).*"
    r"|^error: (?:open\(|unable to index|insufficient permission|pathspec).*"
    r"|^The following paths are ignored by .*|.*\bcd:.*",
    re.MULTILINE,
)
"""How staging fails, or going to the folder before it."""
_COMMITTED = late_pattern(r"^\[[^\]\n]+ [0-9a-f]{7,}\] ", re.MULTILINE)
_CHECK_PASSED = late_pattern(r"\.{3,}.*(?:Passed|Skipped)$|^hint: |^\s*$")
_COMPLAINS = late_pattern(
    r"^\W*(?:error|fatal|bug|failed|failure|cannot|unable|nothing (?:added )?to commit)\b|^[✖✗×]\s"
    r"|\.{3,}Failed$|\bhook\b.* (?:failed|exited|declined)",
    re.IGNORECASE,
)


def complaint(output: str) -> str:
    """The line by which a hook or a program says what is wrong: not that another check passed."""
    lines = [line for line in uncoloured(output).splitlines() if not _CHECK_PASSED.search(line)]
    told = [line for line in lines if not values.exit_code(line)]
    found = next((line for line in told if _COMPLAINS.search(line)), "") or "".join(told[-1:])
    return re.sub(r"\.{4,}", " … ", shorten(one_line(found), 200))


_COLOURS = late_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\n]{0,200}(?:\x07|\x1b\\)")


def uncoloured(text: str) -> str:
    """What a program printed, without what steers a terminal."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def telling_line(text: str) -> str:
    """The line of `text` that tells something, short."""
    text = uncoloured(text)
    for line in text.splitlines():
        if line.strip() and not values.exit_code(line) and not line.startswith("<"):
            return shorten(one_line(line), 200)
    return shorten(one_line(text), 200)
