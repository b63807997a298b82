"""What was said and done in a session, and what was printed there.

Done are the user's words, the commands that were executed and the edits that were made. Whatever
else the agent emitted (todos, plans, prompts of other agents, commit messages, search patterns,
what it copied from an output into a file) is evidence for nothing: an agent that repeats what it
read does not vouch for it. Printed is what tools gave back, the texts of skills that were loaded,
and the files that stand in a prompt. A `Body` is either side, made ready for phrases to be looked
for in it.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from tacit.base.errors import NotFound
from tacit.changes.provenance.phrases import (
    folded_text,
    languages,
    readings,
    telling,
    weight,
    words,
)
from tacit.traces import host_registry
from tacit.traces.tool_calls import our_tool
from tacit.traces.trace import REFUSED, Told, ToolCall, Trace
from tacit.traces.typed_words import PIPED
from tacit.traces.values import CUT

MOST_PRINTED, MOST_DONE = 4_000_000, 2_000_000
"""Bytes of different lines that are compared, and characters of commands and edits; what is beyond
is counted."""
_MOST_COMMAND = 100_000
"""Characters of one command that are looked at; what is longer has data in it."""
_GRAM = 4
_COPIED = 0.5
"""Part of a written sentence that must stand in earlier output for it to count as copied."""

By = Literal["user", "command", "edit", "note", "printed"]
"""`edit`: of code or settings. `note`: of a file of prose, which shows no deed."""


class Said(msgspec.Struct, frozen=True):
    """A text, the step of the session that it stands in, and whose it is."""

    step: str
    text: str
    by: By = "printed"


class Sources(msgspec.Struct, frozen=True):
    """What a skill's words are held against."""

    done: tuple[Said, ...] = ()
    """The user's words, and what the agent did."""
    printed: tuple[Said, ...] = ()
    """What tools gave back."""
    left_out: int = 0
    """Characters that were printed beyond what is compared."""
    handed: str = ""
    """A file that one of the sessions was read from and that no agent of this user keeps."""


def sources(*traces: Trace) -> Sources:
    """The two sides of some sessions."""
    found = _Collector()
    for trace in traces:
        if trace.head.handed:
            found.handed = trace.head.source
        for turn in trace.turns:
            found.prompt(str(turn.number), turn.prompt)
            for number, step in enumerate(turn.steps, 1):
                name = f"{turn.number}.{number}"
                if isinstance(step, ToolCall):
                    found.call(trace.host, name, step)
                elif isinstance(step, Told) and step.by not in ("agent", "plan"):
                    found.told(name, step.text)
    return found.sources()


def cut_out(trace: Trace) -> int:
    """How many characters of what tools printed are not kept; whoever was there saw them."""
    printed = (call.result for call in trace.each_call() if "characters left out" in call.result)
    return sum(int(cut.replace(",", "")) for text in printed for cut in CUT.findall(text))


class _Collector:
    """Takes a session in, in order."""

    def __init__(self) -> None:
        self._done: list[tuple[int, bool, Said]] = []
        """With how much was printed before, and whether it may have been copied from there."""
        self._printed: list[Said] = []
        self._lines: set[str] = set()
        self._left, self._left_done = MOST_PRINTED, MOST_DONE
        self._left_out = 0
        self.handed = ""

    def prompt(self, step: str, text: str) -> None:
        own, blocks = split_prompt(text)
        for block in blocks:
            self._print(step, block)
        self._do(step, own, "user")

    def told(self, step: str, text: str) -> None:
        """What a host put into the user's place: a file, a hook's text, output."""
        self._print(step, text)

    def call(self, host: str, step: str, call: ToolCall) -> None:
        if call.reply:  # what the user typed, and all that a refusal gave back
            self._do(step, call.reply, "user")
        if call.error == REFUSED or call.result.startswith(REFUSED):
            return
        self._given(step, call)
        if call.kind == "shell" and any(map(_OWN_DIFF.fullmatch, _strings(call.arguments))):
            added = (line[1:] for line in call.result.split("\n") if _ADDED.match(line))
            self._do(step, "\n".join(added), "edit", copied=True)
        if call.kind == "ask" and _is_asking(host, call.name):
            self._do(step, _answer(call), "user")
        else:
            self._print(step, call.result)

    def sources(self) -> Sources:
        return Sources(tuple(self._kept()), tuple(self._printed), self._left_out, self.handed)

    def _given(self, step: str, call: ToolCall) -> None:
        if call.kind == "shell":
            for part in _strings(call.arguments):
                self._left_out += max(0, len(part) - _MOST_COMMAND)
                executed, written = split_command(part[:_MOST_COMMAND])
                code, sentences = split_sentences("\n".join(executed))
                self._do(step, code, "command")
                for sentence in sentences:
                    self._do(step, sentence, "command", copied=True)
                for text in written:
                    self._do(step, text, "note", copied=True)
        elif call.kind in ("write", "edit"):
            by: By = "note" if _is_prose(call.arguments) else "edit"
            self._do(step, "\n".join(_new_lines(call.arguments)), by, copied=True)
        elif our_tool(call.name) not in _SAYING:
            names = [call.name] if our_tool(call.name) is None else []
            self._do(step, " ".join([*names, *_plain_values(call)]), "command")

    def _do(self, step: str, text: str, by: By, *, copied: bool = False) -> None:
        if by != "user":
            self._left_out += max(0, len(text) - self._left_done)
            text = text[: self._left_done]
            self._left_done -= len(text)
        if text.strip():
            self._done.append((len(self._printed), copied, Said(step, text, by)))

    def _print(self, step: str, text: str) -> None:
        """Take in the lines that are new: an output that repeats itself says it once."""
        fresh = [line for line in text.split("\n") if line not in self._lines]
        kept: list[str] = []
        for line in fresh:
            if line in self._lines:
                continue
            if self._left <= 0:
                self._left_out += len(line)
                continue
            self._lines.add(line)
            kept.append(_cut(line, self._left))
            self._left_out += len(line) - len(kept[-1])
            self._left -= len(line.encode("utf-8", "replace"))
        if any(line.strip() for line in kept):
            self._printed.append(Said(step, "\n".join(kept)))

    def _kept(self) -> Iterator[Said]:
        """What was done, without the sentences that stood in an earlier output."""
        wanted = {gram for _, copied, said in self._done if copied for gram in _grams(said.text)}
        first = _first_printed(wanted, self._printed)
        for before, copied, said in self._done:
            if not copied:
                yield said
                continue
            parts = [p for p in _SENTENCE.split(said.text) if not _is_copy(p, first, before)]
            if parts:
                yield msgspec.structs.replace(said, text="\n".join(parts))


def _cut(line: str, size: int) -> str:
    """What of a line fits into so many bytes: letters without spaces are words each."""
    return line.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


_OWN_DIFF = re.compile(
    r"git (?:-C \S+ )?diff(?: --(?:cached|staged|stat)| -U\d+)*"
    r"(?: --(?: [\w./-]+)+|(?: (?:[\w.-]+/)*"
    r"(?:\.?[A-Za-z_][\w-]*(?:\.\w+)*\.[a-z]\w{0,9}|[A-Z][a-z]+file))*)"
    r"(?: ?\| ?(?:grep|egrep|head|tail|sed|cat)\b[^|;&]{0,80})*"
)
"""Shows what was changed and not committed yet: what an edit made, by whatever program. What may be
the name of a branch is none of it."""
_ADDED = re.compile(r"\+(?!\+\+ )")
_SAYING = {"keep_todos", "run_agent", "remember", "ask_user", "manage_skill", "search_web"}
"""Tools by which an agent says something: to itself, to another agent, to the user."""
_QUESTIONS = {"question", "questions", "header", "prompt", "message", "text", "description"}
_SENTENCE = re.compile(r"\n|(?<=[.!?;。！？])\s*(?=\S)")


def _is_asking(host: str, tool: str) -> bool:
    """Whether this is the tool by which the host asks its user; another may be anybody's."""
    try:
        asks = host_registry.get(host).asks
    except NotFound:  # what its tools are called nobody knows any more
        return False
    return asks is None or tool in asks


def _answer(call: ToolCall) -> str:
    """What the user answered, without the question, which is the agent's."""
    text = call.result
    for asked in sorted(_asked(call.arguments), key=len, reverse=True):
        text = text.replace(asked, " ")
    return text


def _asked(value: Any, inside: bool = False, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        if inside and len(value) > 3:
            yield value
    elif depth < 6 and isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("options", "choices"):
                yield from _asked(inner, inside or key in _QUESTIONS, depth + 1)
    elif depth < 6 and isinstance(value, list | tuple):
        for inner in value:
            yield from _asked(inner, inside, depth + 1)


# Files that a host puts into a prompt, and whatever else stands there between marks.
_BLOCKS = (
    PIPED,
    re.compile(r"<([a-z][\w:-]{1,40})(?:\s[^<>\n]{0,300})?>(.{0,400000}?)</\1>", re.I | re.S),
    re.compile(
        r"^-{2,} ?(?:content from referenced files|contents? of|file:)[^\n]{0,300}\n.*?"
        r"(?:^-{2,} ?end[^\n]{0,80}$|\Z)",
        re.I | re.S | re.M,
    ),
    re.compile(
        r"^[^\n]{0,80}called the \w+ tool with the following input:.*?(?=\n\n\S|\Z)",
        re.I | re.S | re.M,
    ),
    re.compile(
        r"^(?:(?:contents? of|content from|file:?) @?|@)\S+[ \t]*:?[ \t]*\n"
        r"(?:```.*?^```|.*?(?=\n\n|\Z))",
        re.I | re.S | re.M,
    ),
)  # fmt: skip


_MOST_TYPED = 400_000
"""Characters; nobody types more, and a block that is longer is not seen to end."""


def split_prompt(text: str) -> tuple[str, list[str]]:
    """The user's own words, and the files and other matter that stand among them."""
    blocks: list[str] = []

    def take(match: re.Match[str]) -> str:
        blocks.append(match[0])
        return "\n"

    for pattern in _BLOCKS:
        text = pattern.sub(take, text)
    return (text, blocks) if len(text) <= _MOST_TYPED else ("", [*blocks, text])


_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n(.*?)(?:^\s*\2[ \t]*$|\Z)", re.S | re.M)
_RUNS_CODE = re.compile(
    r"\b(?:python[\d.]*|node|deno|bun|ruby|perl|php|bash|sh|zsh|psql|mysql|sqlite3|ssh|kubectl"
    r"|docker|osascript|pwsh|powershell|jq|awk|Rscript)\b"
)
_MESSAGES = {
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "gh", "glab", "hub", "logger",
    "say", "notify-send", "true", ":", "jj", "hg", "svn", "wall", "osascript",
}  # fmt: skip
_GIT_MESSAGES = {"commit", "tag", "notes", "merge", "stash", "log", "grep"}
_BEFORE = {"sudo", "env", "time", "nohup", "command", "exec", "builtin", "then", "do", "else", "!"}
_ENDS = {";", "|", "||", "&", "&&", "(", ")", "{", "}", ";;", "|&"}


def split_command(command: str) -> tuple[list[str], list[str]]:
    """A shell command as what was executed, and as what was only said or written by it."""
    written: list[str] = []
    code: list[str] = []

    def take(match: re.Match[str]) -> str:
        before = command[: match.start()].rpartition("\n")[2]
        (code if _RUNS_CODE.search(before) else written).append(match[4])
        return f" {match[3]}\n"

    bare = _HEREDOC.sub(take, command)
    executed: list[str] = []
    program, verb = "", ""
    for token in _shell_tokens(bare):
        if token in _ENDS:
            program, verb = "", ""
        elif not program:
            if token not in _BEFORE and not re.match(r"\w+=", token):
                program = token.rpartition("/")[2]
        elif not verb and not token.startswith("-"):
            verb = token
        if _is_said(token) and _is_message(program, verb):
            written.append(token.strip("'\""))
        else:
            executed.append(token)
    return [" ".join(executed), *code], written


_ARGUMENT = re.compile(r"'[^']{20,}'|\"[^\"]{20,}\"")
_CODE_SIGNS = re.compile(r"[=*()$|<>{}\[\]'\";/\\\n]+")
_QUERY = re.compile(
    r"\s*(?:select|insert|update|delete|create|alter|drop|with|explain|grant)\b", re.I
)


def split_sentences(command: str) -> tuple[str, list[str]]:
    """A command without the sentences in its arguments, and these: whatever program they are handed
    to, they are words and not code."""
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        text = match[0]
        for part in _CODE_SIGNS.split(text):
            long = len(part.split()) > _GRAM and not _QUERY.match(part)
            if long and languages(part, 1):
                found.append(part)
                text = text.replace(part, " ")
        return text

    return _ARGUMENT.sub(take, command), found


def _is_message(program: str, verb: str) -> bool:
    return program in _MESSAGES or (program == "git" and verb in _GIT_MESSAGES)


def _is_said(token: str) -> bool:
    """Whether a word of a command line is a text: several words, or another script."""
    return token[:1] in "'\"" and (len(token.split()) > 1 or not token.isascii())


def _shell_tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:  # a quote that is not closed
        return re.findall(r"'[^']*'|\"[^\"]*\"|[;|&]+|[^\s;|&]+", command)


_PROSE_FILE = re.compile(r"\.(?:md|mdx|markdown|txt|rst|adoc|org)$|(?:^|/)[A-Z]{4,}$", re.I)
_OLD = ("old_string", "old_str", "old", "search", "oldText", "old_text", "find")


def _is_prose(arguments: dict[str, Any]) -> bool:
    return any(
        isinstance(arguments.get(key), str) and _PROSE_FILE.search(arguments[key])
        for key in ("file_path", "path", "filePath", "filename", "file")
    )


def _new_lines(arguments: dict[str, Any]) -> Iterator[str]:
    """The lines that an edit brought in; those that stood there before are no deed."""
    before = {line.strip() for text in _named(arguments, _OLD) for line in text.split("\n")}
    for text in _strings({k: v for k, v in arguments.items() if k not in _OLD}):
        lines = text.split("\n")
        if _PATCH.search(text):
            lines = [line[1:] for line in lines if line.startswith("+")]
        yield from (line for line in lines if line.strip() not in before)


_PATCH = re.compile(r"^(?:\*\*\* Begin Patch|@@ )", re.M)


def _named(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keys and isinstance(inner, str):
                yield inner
            else:
                yield from _named(inner, keys)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(inner, keys)


_PLAIN = re.compile(r"[\w./:@=+,~%&?*\[\]-]{1,300}", re.ASCII)


def _plain_values(call: ToolCall) -> Iterator[str]:
    """Names, paths and numbers that a call was given; no sentence is among them."""
    for value in _strings(call.arguments):
        if _PLAIN.fullmatch(value) and not (call.kind == "search" and "/" not in value):
            yield value


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 6 and isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner, depth + 1)
    elif depth < 6 and isinstance(value, list | tuple):
        if value and all(isinstance(part, str) for part in value):
            yield " ".join(value)  # a command as its words
            return
        for inner in value:
            yield from _strings(inner, depth + 1)


# Words, and single letters of the scripts that have no spaces.
_TOKEN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af]|[^\\W_]+")


def _grams(text: str) -> list[tuple[str, ...]]:
    found = _TOKEN.findall(text.casefold())
    return [tuple(found[at : at + _GRAM]) for at in range(len(found) - _GRAM + 1)]


def _first_printed(
    wanted: set[tuple[str, ...]], printed: Iterable[Said]
) -> dict[tuple[str, ...], int]:
    """Which output, by its number, has each of these runs of words first."""
    first: dict[tuple[str, ...], int] = {}
    if wanted:
        for number, said in enumerate(printed):
            for gram in _grams(said.text):
                if gram in wanted:
                    first.setdefault(gram, number)
    return first


def _is_copy(text: str, first: dict[tuple[str, ...], int], before: int) -> bool:
    grams = _grams(text)
    known = sum(first.get(gram, before) < before for gram in grams)
    return bool(grams) and known / len(grams) >= _COPIED


class Match(msgspec.Struct, frozen=True):
    """The best place: the part of the phrase that stands there by weight, and its step."""

    share: float = 0.0
    step: str = ""
    found: frozenset[str] = frozenset()
    pairs: float = 0.0
    """The part of the phrase's neighbouring words that are neighbours there as well."""


class Body:
    """Texts that phrases are looked for in. `disguised`: also as they may have been meant."""

    def __init__(self, texts: Iterable[Said], *, disguised: bool = False) -> None:
        self.texts: list[tuple[str, str]] = []
        for said in texts:
            ways = readings(said.text) if disguised else [folded_text(said.text)]
            self.texts += [(said.step, way) for way in ways if way.strip()]
        self._places: list[dict[str, list[int]]] = []
        for _, way in self.texts:
            places: dict[str, list[int]] = {}
            for at, stem in enumerate(telling(words(way))):
                places.setdefault(stem, []).append(at)
            self._places.append(places)
        self.vocabulary = frozenset(stem for places in self._places for stem in places)
        self.crowded: dict[tuple[int, str], int] = {}
        """Words that stand in too many places of a text, with how many were not looked at."""

    def best(self, phrase: Sequence[str], window: int = 0) -> Match:
        """Where most of `phrase` stands together: within so many words, or a few more than its."""
        return max(self._each(phrase, window), key=lambda match: match.share, default=Match())

    def best_two(self, phrase: Sequence[str]) -> Match:
        """As `best`, but a phrase may be put together from two steps."""
        found = sorted(self._each(phrase), key=lambda match: -match.share)[:6]
        best = found[0] if found else Match()
        whole = weight(phrase)
        for one in found[:3]:
            for other in found:
                if one.step == other.step or min(one.share, other.share) < 0.3:
                    continue
                share = weight(one.found | other.found) / whole
                if share > best.share + 0.2:
                    best = Match(share, one.step, one.found | other.found, one.pairs + other.pairs)
        return best

    def holds(self, text: str) -> str:
        """The step in which folded `text` stands as it is; empty where it stands in none."""
        return next((step for step, way in self.texts if text in way), "")

    def _each(self, phrase: Sequence[str], window: int = 0) -> list[Match]:
        whole = weight(phrase)
        if not whole:
            return []
        window = window or len(phrase) + len(phrase) // 2 + 4
        found = []
        for number, (step, _) in enumerate(self.texts):
            places = self._places[number]
            hits = sorted((at, stem) for stem in phrase for at in self._few(number, stem))
            if hits:
                inside = _most_together(hits, window)
                pairs = _neighbours(phrase, inside, places)
                found.append(Match(weight(inside) / whole, step, inside, pairs))
        return found

    def _few(self, number: int, stem: str) -> list[int]:
        """Where a word stands in one text; of very many places the first, and the rest counted."""
        found = self._places[number].get(stem, [])
        if len(found) <= _MOST_PLACES:
            return found
        self.crowded[number, stem] = len(found) - _MOST_PLACES
        return found[:_MOST_PLACES]


_MOST_PLACES = 2_000


def _most_together(hits: list[tuple[int, str]], window: int) -> frozenset[str]:
    """The set of different words within `window` that weighs most."""
    counts: dict[str, int] = {}
    best: frozenset[str] = frozenset()
    most, now = 0.0, 0.0
    first = 0
    for at, stem in hits:
        if stem not in counts:
            now += weight((stem,))
        counts[stem] = counts.get(stem, 0) + 1
        while at - hits[first][0] > window:
            gone = hits[first][1]
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
                now -= weight((gone,))
            first += 1
        if now > most:
            best, most = frozenset(counts), now
    return best


def _neighbours(
    phrase: Sequence[str], inside: frozenset[str], places: dict[str, list[int]]
) -> float:
    """The part of the phrase's neighbouring words that stand beside each other in the text."""
    pairs = list(pairwise(phrase))
    if not pairs:
        return 1.0
    together = 0
    for one, other in pairs:
        if one in inside and other in inside:
            ats = set(places[other])
            together += any(
                at + step in ats for at in places[one][:_MOST_PLACES] for step in (1, 2, -1)
            )
    return together / len(pairs)
