"""Which skills a session itself changed, whatever the host: by a tool, in the shell, or by `tacit`.

A session that changed skills has done what a review would do. What counts is a call that succeeded
and that writes where agents look for skills: a SKILL.md anywhere, or any file in a skills folder of
an agent. Reading, and a program's own `skills` package, do not count.
"""

import os
import re
import shlex
from collections.abc import Iterator

from tacit.traces import values
from tacit.traces.derived import command_of, paths_of
from tacit.traces.kinds import our_tool
from tacit.traces.trace import ToolCall, Trace

_SKILL_FILE = re.compile(r"(?:^|[/\\])([^/\\\s]+)[/\\]SKILL\.md$", re.IGNORECASE)
# A skills folder of an agent lies in a folder whose name begins with a dot, or one below that:
# .agents/skills, .claude/skills, .pi/agent/skills, .config/opencode/skill.
_IN_SKILLS = re.compile(
    r"(?:^|[/\\])\.[^/\\\s]+(?:[/\\][^/\\\s]+)?[/\\]skills?(?:[/\\]+([^/\\\s]+))?", re.IGNORECASE
)
_HERE_DOCUMENT = re.compile(
    r"(<<-?[ \t]*(['\"]?)([A-Za-z_]\w*)\2[^\n]*)\n.*?(?:^\s*\3\s*$|\Z)", re.DOTALL | re.MULTILINE
)
_SIGNS = ";&|()<>\n"
# Programs that change what they are given; of some only the last word is where they write.
_ALL_WORDS = {"rm", "rmdir", "tee", "touch", "mv", "chmod", "truncate", "patch", "unlink"}
_LAST_WORD = {"cp", "ln", "rsync", "install", "scp"}
_IN_PLACE = {"sed", "perl", "gsed"}
_TACIT = {"new", "edit", "archive", "restore", "rm", "rollback", "undo", "accept"}
_MOST = 20_000
"""Characters of a command that are looked at."""


def skills_written(trace: Trace) -> list[str]:
    """The skills that the session changed, in order, each once."""
    found: dict[str, None] = {}
    for call in trace.each_call():
        if not call.failed and call.finished:
            found.update(dict.fromkeys(_of_call(call)))
    return list(found)


def _of_call(call: ToolCall) -> Iterator[str]:
    if call.kind in ("write", "edit"):
        for path in paths_of(call):
            if name := _skill_at(path):
                yield name
    elif call.kind == "shell":
        yield from _of_command(command_of(call)[:_MOST])
    elif our_tool(call.name) == "manage_skill" or call.name == "git_rollback":
        name = values.string(call.arguments.get("name"))
        yield from [name] if name else []


def _of_command(command: str) -> Iterator[str]:
    if not re.search(r"skill|tacit", command, re.IGNORECASE):
        return
    words: list[str] = []
    target = False
    for token in _tokens(_HERE_DOCUMENT.sub(r"\1", command.replace("\\\n", " "))):
        if set(token) <= set(_SIGNS):
            target = ">" in token
            if not target and "<" not in token:
                yield from _of_words(words)
                words = []
        elif target:
            target = False
            if name := _skill_at(token):
                yield name
        else:
            words.append(token)
    yield from _of_words(words)


def _tokens(command: str) -> list[str]:
    """The words and signs of a command; none where a quote is not closed."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=_SIGNS)
    reader.whitespace = " \t\r"
    reader.whitespace_split = True
    try:
        return list(reader)
    except ValueError:
        return []


def _of_words(words: list[str]) -> Iterator[str]:
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
        yield from _named(given[-1:], given[0] if given else "")
    elif program in _ALL_WORDS:
        yield from _named(given, given[0] if given else "")
    elif program in _IN_PLACE and any(re.match(r"-\w*i|--in-place", word) for word in words[1:]):
        yield from _named(given, "")


def _named(targets: list[str], source: str) -> Iterator[str]:
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
