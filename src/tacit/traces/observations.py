"""What a Trace shows by itself: counted, not guessed, and without a model.

Counts, corrections by the user, failures that were got over, commands, files, and the skills that
the session itself changed. Each is a hint to whoever reviews the session, so each names the turn
and the call that it stands on.

A session that changed skills has done what a review would do. What counts is a call that succeeded
and that writes where agents look for skills: a SKILL.md anywhere, or any file in a skills folder of
an agent. Reading, and a program's own `skills` package, do not count.
"""

import difflib
import os
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from tacit.base.patterns import Alternatives, late_pattern
from tacit.traces import values
from tacit.traces.command_line import SimpleCommand, joined_commands
from tacit.traces.command_purposes import program_of, purpose_of, purposes, work_class
from tacit.traces.outcomes import call_outcome
from tacit.traces.tool_calls import command_of, our_tool
from tacit.traces.trace import REFUSED, ToolCall, Trace, Turn
from tacit.traces.wishes import is_lasting

_PATHS = (
    "file_path", "filePath", "path", "filename", "file", "notebook_path", "target_file",
    "absolute_path", "relative_workspace_path",
)  # fmt: skip
_PATCHED = late_pattern(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ b/(.+)$", re.MULTILINE)

# How people begin when they put something right; tried on the first words of a later prompt.
_CORRECTS = late_pattern(
    r"""^\W*(?:
      no\b(?!\s+(?:problem|worries|need|rush|doubt|changes?\s+needed)) | nope\b | wrong\b | stop\b
      | (?:wait\W+)?(?:undo|revert)\b | (?:please\s+)?(?:don'?t|do\s+not)\b(?!\s+(?:worry|bother))
      | use\s+\S+(?:\s+\S+){0,3}\s+(?:instead|not)\b | not\s+(?:like|what|that|quite|there|yet)\b
      | that(?:'s|\s+is|\s+was)\s+(?:not|wrong)
      | you\s+(?:should(?:n'?t|\s+not|\s+have)|forgot|missed|broke|didn'?t|did\s+not)\b
      | i\s+(?:said|told|asked|meant|didn'?t\s+(?:ask|mean|want))\b
      | it\s+(?:still|doesn'?t|does\s+not)\b | still\s+(?:fails?|broken|wrong|not)\b
      | 不[对對要是行]|不应该|不應該|错[了的]?|錯|别|別|停|重新|我说的是|我要的是
      | nein\b | falsch\b | nicht\b | non\b | faux\b | いや | 違 | ちが | 아니
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class Counts(msgspec.Struct, frozen=True):
    """The figures of a session."""

    prompts: int
    texts: int
    calls: int
    failures: int
    unfinished: int
    skills: int
    compactions: int
    subagents: int


class Correction(msgspec.Struct, frozen=True):
    """The user put something right: by a prompt after work was done, or by refusing a call."""

    turn: int
    text: str
    by: Literal["prompt", "refusal"] = "prompt"


class Recovery(msgspec.Struct, frozen=True):
    """A call that failed, the next of the same kind and purpose that did not, and the change."""

    turn: int
    failed: ToolCall
    succeeded: ToolCall
    error: str
    before: str
    after: str
    changed: tuple[str, ...]
    """What was taken away (`-…`) and what was added (`+…`), in words."""
    edited: bool = False
    """Whether a file was changed in between, which may be what mended it."""


class Command(msgspec.Struct, frozen=True):
    """A command that was run."""

    turn: int
    text: str
    failed: bool
    duration: float | None


class Touched(msgspec.Struct, frozen=True):
    """A file that was read, written or edited, and how often."""

    path: str
    read: int = 0
    written: int = 0


def counts(trace: Trace) -> Counts:
    """How much of everything there was."""
    calls = trace.calls
    return Counts(
        prompts=len(trace.prompts),
        texts=len(trace.texts),
        calls=len(calls),
        failures=sum(call_outcome(call).failed for call in calls),
        unfinished=sum(not call.finished for call in calls),
        skills=len(trace.skills),
        compactions=sum(len(turn.compactions) for turn in trace.turns),
        subagents=sum(len(turn.subagents) for turn in trace.turns),
    )


def corrections(trace: Trace) -> list[Correction]:
    """Where the user put the agent right. The first prompt of a session corrects nothing."""
    found = []
    worked = False
    for turn in trace.turns:
        if worked and turn.prompt and is_correction(turn.prompt):
            found.append(Correction(turn.number, turn.prompt))
        found += [
            Correction(turn.number, call.reply or call.result, "refusal")
            for call in turn.calls
            if call.error == REFUSED
        ]
        worked = worked or bool(turn.steps)
    return found


def is_correction(prompt: str) -> bool:
    """Whether `prompt` begins like one that puts something right, or says what is to last."""
    return bool(_CORRECTS.match(prompt.lstrip()[:400])) or is_lasting(prompt)


# What goes away by itself, and what only gets around a failure.
_TRANSIENT = Alternatives(
    r"timed? ?out|timeout|econnreset|connection (?:reset|refused|closed)|network is|\b(?:429|502"
    r"|503|504)\b"
    r"|rate limit|index\.lock|temporarily|try again later|ENOTFOUND|EAI_AGAIN|deadline exceeded",
    re.IGNORECASE,
)
_UNSAFE = (
    r"--no-verify|--no-gpg-sign|\bSKIP=|HUSKY=0|LEFTHOOK=0|DISABLE_\w*HOOKS|core\.hooksPath"
    r"|\bgit(?: -\S+ \S+)* commit (?:\S+ )*-[a-z]*n[a-z]*(?:\s|$)|--force\b|--admin\b"
    r"|\bgit (?:add|push|clean|branch|tag|checkout|switch) (?:\S+ )*"
    r"-(?-i:[a-z]*[df]|D)[a-z]*(?:\s|$)"
    r"|\bpush (?:\S+ )*(?:--delete|--mirror|\+\S)|(?:^|[;&\s])(?:rm|rmdir|shred|dd)\s"
    r"|checkout\s+--|reset\s+--hard|stash (?:drop|clear)|\b(?:docker|podman)\b.* prune\b"
    r"|\bdestroy\b|\b(?:kubectl|helm) (?:delete|uninstall)"
    r"|\bdrop (?:table|database|schema)\b|\btruncate\b|--dangerously\S*|--yolo\b|\byolo\b"
    r"|--break-system-packages"
)
_GETS_AROUND = late_pattern(
    rf"{_UNSAFE}|\|\|\s*(?:true|:|echo)|--skip\b|\bstash\b|--ignore\b|--no-check"
    r"|-k\s+[\"']?not\b|--exit-zero|--passWithNoTests"
    r"|2>\s*/dev/null|--quiet|--exclude\b|-DskipTests|--deselect",
    re.IGNORECASE,
)
_IS_UNSAFE = Alternatives(_UNSAFE, re.IGNORECASE)


def is_unsafe(command: str) -> bool:
    """Whether a command skips what guards the work, forces its way, or destroys something."""
    return bool(_IS_UNSAFE.search(command))


@lru_cache(maxsize=1024)
def gets_around(command: str) -> bool:
    """Whether a command gets around a failure rather than over it: skips, hides, deletes."""
    return bool(_GETS_AROUND.search(command))


def recoveries(trace: Trace) -> list[Recovery]:
    """Failures that were followed by a success for the same end, and what changed between them.

    The end is the same where the purpose is, or the class of work under another program, or for
    other tools the file or the tool. The next failure of that end takes its place, so of several
    tries the last one that failed is paired with the one that worked. What was tried again without
    a change mended nothing, unless a file was changed in between; neither did what only gets around
    a failure: skipping, stashing, deleting, hiding.
    """
    found: list[Recovery] = []
    open_failures: dict[tuple[str, str], ToolCall] = {}
    edited: set[int] = set()
    for turn, call in _calls(trace):
        outcome = call_outcome(call)
        ends = [(call.kind, end) for end in ends_of(call)]
        if outcome.failed and not _TRANSIENT.search(f"{outcome.evidence} {call.error}"):
            open_failures |= dict.fromkeys(ends, call)
        elif outcome.state == "worked" and (
            key := next((k for k in ends if k in open_failures), None)
        ):
            before = open_failures[key]
            _forget(open_failures, before)
            if _mends(before, call, edited=id(before) in edited):
                found.append(_recovery(turn.number, before, call, id(before) in edited))
        if call.kind in ("write", "edit") and outcome.state == "worked":
            edited |= {id(failed) for failed in open_failures.values()}
    return found


def _mends(before: ToolCall, after: ToolCall, *, edited: bool) -> bool:
    if after.kind != "shell":
        return before.arguments != after.arguments
    old, new = command_of(before), command_of(after)
    if _GETS_AROUND.search(new) and len(_GETS_AROUND.findall(new)) > len(_GETS_AROUND.findall(old)):
        return False
    return edited or core(old) != core(new)


def core(command: str) -> list[tuple[str, ...]]:
    """What a command line does, without what its output is passed on to."""
    parts = joined_commands(command)
    return [
        p.words for p, before in zip(parts, [None, *parts], strict=False) if not _filters(p, before)
    ]


def _filters(part: SimpleCommand, before: SimpleCommand | None) -> bool:
    return before is not None and before.joined in ("|", "|&") and not purpose_of(part.words)


def commands(trace: Trace) -> list[Command]:
    """Every command that was run, in order."""
    return [
        Command(turn.number, text, call_outcome(call).failed, call.duration)
        for turn, call in _calls(trace)
        if call.kind == "shell" and (text := command_of(call))
    ]


def files(trace: Trace) -> list[Touched]:
    """Every file that a tool named, with how often it was read and written. Shell is not parsed."""
    found: dict[str, Touched] = {}
    for _, call in _calls(trace):
        if call.kind not in ("read", "write", "edit") or call.failed:
            continue
        for named in paths_of(call):
            path = _below(named, trace.project)
            seen = found.get(path, Touched(path))
            found[path] = Touched(
                path, seen.read + (call.kind == "read"), seen.written + (call.kind != "read")
            )
    return list(found.values())


def paths_of(call: ToolCall) -> list[str]:
    """The files that a call names in its arguments."""
    found = [call.arguments[key] for key in _PATHS if isinstance(call.arguments.get(key), str)]
    for listed in ("paths", "files"):
        found += [p for p in values.items(call.arguments.get(listed)) if isinstance(p, str)]
    for key in ("input", "patch", "patchText", "diff"):
        if isinstance(text := call.arguments.get(key), str):
            found += [one or other for one, other in _PATCHED.findall(text)]
    return list(dict.fromkeys(path for path in found if path))


def _calls(trace: Trace) -> Iterator[tuple[Turn, ToolCall]]:
    for turn in trace.turns:
        for call in turn.calls:
            yield turn, call


def ends_of(call: ToolCall) -> list[str]:
    """What a call was for: the purposes of a command and their classes, or the files of a tool."""
    if call.kind != "shell":
        return paths_of(call) or [call.name]
    command = command_of(call)
    named = purposes(command)
    if not named:  # it only looked around, or ran a program that was typed in
        named = [program_of(part.words) for part in joined_commands(command)]
    classes = [f"class {name}" for name in map(work_class, named) if name]
    return [*named, *classes]


def _recovery(turn: int, failed: ToolCall, succeeded: ToolCall, edited: bool) -> Recovery:
    before, after = _arguments_text(failed), _arguments_text(succeeded)
    changed = _changes(before, after)
    return Recovery(turn, failed, succeeded, failed.error, before, after, changed, edited)


def _arguments_text(call: ToolCall) -> str:
    """What a call was given, as one text."""
    if call.kind == "shell" and (command := command_of(call)):
        return command
    return msgspec.json.encode(call.arguments, order="sorted").decode()


def _changes(before: str, after: str) -> tuple[str, ...]:
    old, new = before.split(), after.split()
    changed = []
    for action, i, j, k, m in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if action in ("delete", "replace"):
            changed.append("-" + " ".join(old[i:j]))
        if action in ("insert", "replace"):
            changed.append("+" + " ".join(new[k:m]))
    return tuple(part[:300] for part in changed)


def _forget(open_failures: dict[tuple[str, str], ToolCall], call: ToolCall) -> None:
    """A failure that was got over is closed for all its ends."""
    for key in [key for key, other in open_failures.items() if other is call]:
        del open_failures[key]


def _below(path: str, project: str) -> str:
    """`path` as seen from the project."""
    base = project.rstrip("/") + "/"
    return path[len(base) :] if project and path.startswith(base) else path


_SKILL_FILE = late_pattern(r"(?:^|[/\\])([^/\\\s]+)[/\\]SKILL\.md$", re.IGNORECASE)
# A skills folder of an agent lies in a folder whose name begins with a dot, or one below that:
# .agents/skills, .claude/skills, .pi/agent/skills, .config/opencode/skill.
_IN_SKILLS = late_pattern(
    r"(?:^|[/\\])\.[^/\\\s]+(?:[/\\][^/\\\s]+)?[/\\]skills?(?:[/\\]+([^/\\\s]+))?", re.IGNORECASE
)
_HERE_DOCUMENT = late_pattern(
    r"(<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\2[^\n]*)\n.*?(?:^\s*\3\s*$|\Z)", re.DOTALL | re.MULTILINE
)
_SIGNS = ";&|()<>\n"
# Programs that change what they are given; of some only the last word is where they write.
_ALL_WORDS = {"rm", "rmdir", "tee", "touch", "mv", "chmod", "truncate", "patch", "unlink"}
_LAST_WORD = {"cp", "ln", "rsync", "install", "scp"}
_IN_PLACE = {"sed", "perl", "gsed"}
_TACIT = {"new", "edit", "archive", "restore", "rm", "rollback", "undo", "accept"}
_MOST_OF_COMMAND = 20_000
"""Characters of a command that are looked at."""


def skills_written(trace: Trace) -> list[str]:
    """The skills that the session changed, in order, each once."""
    found: dict[str, None] = {}
    for call in trace.each_call():
        if not call.failed and call.finished:
            found.update(dict.fromkeys(_skills_of_call(call)))
    return list(found)


def _skills_of_call(call: ToolCall) -> Iterator[str]:
    if call.kind in ("write", "edit"):
        for path in paths_of(call):
            if name := _skill_at(path):
                yield name
    elif call.kind == "shell":
        yield from _skills_of_command(command_of(call)[:_MOST_OF_COMMAND])
    elif our_tool(call.name) == "manage_skill" or call.name == "git_rollback":
        name = values.string(call.arguments.get("name"))
        yield from [name] if name else []


def _skills_of_command(command: str) -> Iterator[str]:
    if not re.search(r"skill|tacit", command, re.IGNORECASE):
        return
    words: list[str] = []
    target = False
    for token in _tokens(_HERE_DOCUMENT.sub(r"\1", command.replace("\\\n", " "))):
        if set(token) <= set(_SIGNS):
            target = ">" in token
            if not target and "<" not in token:
                yield from _skills_of_words(words)
                words = []
        elif target:
            target = False
            if name := _skill_at(token):
                yield name
        else:
            words.append(token)
    yield from _skills_of_words(words)


def _tokens(command: str) -> list[str]:
    """The words and signs of a command; none where a quote is not closed."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=_SIGNS)
    reader.whitespace = " \t\r"
    reader.whitespace_split = True
    try:
        return list(reader)
    except ValueError:
        return []


def _skills_of_words(words: list[str]) -> Iterator[str]:
    while words and (words[0] in ("sudo", "env", "command", "exec") or _is_assignment(words[0])):
        words = words[1:]
    if not words:
        return
    program = os.path.basename(words[0])
    if program == "git" and words[1:2] in (["mv"], ["rm"]):
        program, words = words[1], words[1:]
    given = [word for word in words[1:] if not word.startswith("-")]
    if program == "tacit" and words[1:2] and words[1] in _TACIT:
        yield given[1] if len(given) > 1 else "a skill"
        return
    if program in _LAST_WORD:
        yield from _skills_at(given[-1:], given[0] if given else "")
    elif program in _ALL_WORDS:
        yield from _skills_at(given, given[0] if given else "")
    elif program in _IN_PLACE and any(re.match(r"-\w*i|--in-place", word) for word in words[1:]):
        yield from _skills_at(given, "")


def _skills_at(targets: list[str], source: str) -> Iterator[str]:
    for target in targets:
        if name := _skill_at(target, source):
            yield name


def _skill_at(path: str, source: str = "") -> str:
    """The skill that a path lies in; of a skills folder itself, what is put there."""
    if match := _SKILL_FILE.search(path):
        return match[1]
    if match := _IN_SKILLS.search(path):
        return match[1] or os.path.basename(source.rstrip("/")) or ""
    return ""


def _is_assignment(word: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*=.*", word, re.S) is not None
