"""Which failures in a use of a skill speak against the skill.

A step failed when its host said so: a non-zero exit, an error, a refused call. What was clearly not
the skill's doing does not count: no network, a full disk, a call that the user did not allow. What
the agent got over soon does not either. Reads a `Run` and nothing else.
"""

import hashlib
import os
import re

import msgspec

from tacit.base.sections import ImproveSettings
from tacit.learn.shell import simple_commands
from tacit.learn.usage import Run, Step

# What a failed step says when the cause lies around it. Only what leaves no doubt: a refused
# connection may be a server that the skill forgot to start.
_ENVIRONMENT = (
    ("no network", re.compile(
        r"(?i)could ?n[o']t resolve (host|proxy)|name or service not known"
        r"|temporary failure in name resolution|nodename nor servname|network is (unreachable|down)"
        r"|no route to host|getaddrinfo|\b(ENETUNREACH|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)\b"
        r"|dial tcp: lookup|failed to resolve|tls handshake timeout|err_internet_disconnected"
    )),
    ("a service that was not there", re.compile(
        r"(?i)\b429\b.{0,20}too many requests|rate limit(ed)?\b.{0,20}exceeded"
        r"|\b50[234]\b.{0,20}(bad gateway|service unavailable|gateway time-?out)"
    )),
    ("a full disk", re.compile(
        r"(?i)no space left on device|\bENOSPC\b|disk quota exceeded|\bEDQUOT\b"
    )),
    ("no memory", re.compile(
        r"(?i)cannot allocate memory|out of memory|\bENOMEM\b|oom-kill"
    )),
    ("no sandbox for commands", re.compile(r"commands run only in a sandbox, and there is none")),
    ("an interrupt", re.compile(
        r"\[(not run: |stopped while it ran: )?(interrupted|the limit on)|\[interrupted by the user"
        r"|\[no result: the session ended"
    )),
)  # fmt: skip
_RUNNERS = {
    "bash", "sh", "zsh", "python", "python3", "node", "ruby", "perl", "npx", "npm", "pnpm", "yarn",
    "uv", "uvx", "run", "poetry", "cargo", "go", "make", "git", "docker", "exec", "env", "sudo",
}  # fmt: skip
_LOOKED_AT = 2_000


class Failure(msgspec.Struct, frozen=True):
    """One failed step that counts."""

    step: Step
    mark: str
    """The same for the same failure, whatever the numbers and folders in it."""
    cost: int
    """Calls until it was got over; 0 when it never was."""


def counted(run: Run, settings: ImproveSettings) -> tuple[Failure, ...]:
    """The failures for which the skill is to be looked at; none when there are too few."""
    found = []
    for place, step in enumerate(run.governed):
        if not step.failed or environment(step):
            continue
        cost = _cost(run.governed, place)
        short = cost and (not settings.recovered_calls or cost < settings.recovered_calls)
        if not short:
            found.append(Failure(step, mark(step), cost))
    return tuple(found) if len(found) >= settings.failures else ()


def environment(step: Step) -> str:
    """What around the step made it fail; empty when that is not clear."""
    if step.refused:
        return "the user did not allow it"
    text = f"{step.error}\n{step.result[-_LOOKED_AT:]}"
    return next((why for why, pattern in _ENVIRONMENT if pattern.search(text)), "")


def mark(step: Step) -> str:
    """The same for two steps that failed alike."""
    said = _plain(" ".join(step.said.split("\n")[-2:]))
    return hashlib.sha256(f"{step.kind}\0{subject(step)}\0{said}".encode()).hexdigest()[:16]


def subject(step: Step) -> str:
    """What a step is about: the program and script of a command, the file, else the tool."""
    if step.kind == "shell":
        return _program(command_of(step)) or step.tool
    for key in ("path", "file_path", "filePath", "absolute_path", "pattern", "name", "skill"):
        if isinstance(value := step.arguments.get(key), str) and value:
            return os.path.basename(value.rstrip("/"))
    return step.tool


def command_of(step: Step) -> str:
    """The command of a shell step; empty for another."""
    if step.kind != "shell":
        return ""
    for key in ("command", "cmd", "script", "input"):
        value = step.arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            words = [str(word) for word in value]
            is_shell = len(words) == 3 and words[1] in ("-c", "-lc")
            return words[2] if is_shell else " ".join(words)
    return ""


def _cost(steps: tuple[Step, ...], place: int) -> int:
    """Calls from the failed step up to the one that did the same and worked; 0 for none."""
    failed = steps[place]
    about = subject(failed)
    for later in range(place + 1, len(steps)):
        step = steps[later]
        if not step.failed and step.kind == failed.kind and subject(step) == about:
            return later - place
    return 0


def _program(command: str) -> str:
    """The last command's program, and what it runs."""
    commands = [words for words in simple_commands(command) if words[0] not in ("cd", "export")]
    if not commands:
        return ""
    found: list[str] = []
    for word in commands[-1]:
        if word.startswith("-") or "=" in word:
            continue
        name = os.path.basename(word)
        found.append(name)
        if name not in _RUNNERS:
            break
    return " ".join(found)


def _plain(text: str) -> str:
    text = re.sub(r"(?:[A-Za-z]:)?(?:[\w.~$-]*/)+", "", text[-500:])
    text = re.sub(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{7,}\b|\d+", "#", text.lower())
    return " ".join(text.split())
