"""The scan itself: every file of a skill through every check, to one report.

There is no option, comment, key or file by which a skill could ask to be let off: the only
inputs are the files, whose they are, and which of them may run. A learned skill is judged more
strictly than a person's own, and nothing that blocks it can be overridden: a person who wants
it all the same makes it their own.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

import msgspec

from tacit.base import secrets
from tacit.base.display import counted
from tacit.changes.scan import file_powers
from tacit.changes.scan.disguise import (
    View,
    alphabet,
    disguised_words,
    find_hidden,
    is_disguised,
    line_of,
    views,
    without_invisible,
)
from tacit.changes.scan.reach import reaches
from tacit.changes.scan.scan_report import Finding, Report, Severity, in_order
from tacit.changes.scan.steering import grade
from tacit.skills import frontmatter

ASK_POINTS, BLOCK_POINTS = 3.0, 5.0
"""Points of a passage from which a person's own skill is asked about, and blocked."""
LEARNED_ASK_POINTS, LEARNED_BLOCK_POINTS = 1.5, 3.0
MAX_TEXT = 2_000_000
"""Characters of one file that are read; a longer one is a finding."""


def scan(files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()) -> Report:
    """What is wrong with a skill that has these `files` (path in the skill -> bytes).

    `learned`: whether a machine wrote it. `executable`: the paths with an execute bit.
    """
    findings: list[Finding] = []
    for path in sorted(files):
        check = _File(path, learned)
        findings.extend(check.run(files[path], path in executable))
    return Report(in_order(findings))


class _File:
    """The checks of one file."""

    def __init__(self, path: str, learned: bool) -> None:
        self._path = path
        self._learned = learned

    def run(self, data: bytes, executable: bool) -> Iterator[Finding]:
        yield from self._name()
        inside = file_powers.inspect_file(self._path, data)
        yield from self._kind(inside, executable)
        text = inside.text.replace("\r\n", "\n").replace("\r", "\n")
        if len(text) > MAX_TEXT:
            yield self._finding(
                1, "too-long", ("block", "ask"),
                f"the file has {len(text):,} characters; the first {MAX_TEXT:,} were scanned",
                "split it into smaller files",
            )  # fmt: skip
            text = text[:MAX_TEXT]
        if not text:
            return
        yield from self._secrets(text)
        if inside.kind != "data":
            yield from self._hidden(text)
            yield from self._disguised(text)
        readings = views(text)
        yield from self._steering(readings)
        yield from self._reach(readings)
        if self._path.lower() in _HEADED:
            parts = frontmatter.split(text)
            if parts.head:
                yield from self._head(parts.head, parts.head_line)

    def _finding(
        self,
        line: int,
        rule: str,
        severity: tuple[Severity, Severity],
        message: str,
        fix: str,
        *,
        unseen: bool = False,
    ) -> Finding:
        """A finding with the first `severity` for a learned skill, the second for a person's.

        What cannot be seen cannot be agreed to, so `unseen` things are never overridable.
        """
        grade = severity[0] if self._learned else severity[1]
        may = not unseen and not (self._learned and grade == "block")
        return Finding(
            file=self._path, line=line, rule=rule, severity=grade, message=message, fix=fix,
            overridable=may,
        )  # fmt: skip

    def _name(self) -> Iterator[Finding]:
        if find_hidden(self._path) or any(c in self._path for c in "\n\r\t"):
            yield self._finding(
                1, "hidden-in-name", ("block", "block"),
                "the file's name holds characters that cannot be seen", "rename the file",
                unseen=True,
            )  # fmt: skip
        if file_powers.OBEYED.search(self._path.lower()):
            yield self._finding(
                1, "obeyed-file", ("block", "ask"),
                f"'{self._path}' is a file that other programs pick up and obey",
                "take it out, or rename it to an example, e.g. 'settings-example.json'",
            )  # fmt: skip
        elif file_powers.IGNORE_FILES.search(self._path.lower()):
            yield self._finding(
                1, "switch-off", ("ask", "note"),
                f"'{self._path}' looks like a list of things to skip; it has no effect on the scan",
                "take it out of the skill",
            )  # fmt: skip

    def _kind(self, inside: file_powers.Inspected, executable: bool) -> Iterator[Finding]:
        severity: dict[file_powers.ContentKind, tuple[Severity, Severity]] = {
            "program": ("block", "block"),
            "archive": ("block", "ask"),
            "data": ("block", "ask"),
            "media": ("ask", "note"),
        }
        if inside.kind in severity:
            yield self._finding(
                1, inside.kind, severity[inside.kind],
                f"the file is {inside.what}, which cannot be read and checked",
                "leave it out, and say in the skill where to get it or how to build it",
            )  # fmt: skip
        elif inside.odd:
            yield self._finding(
                1, "encoding", ("block", "note"), f"{inside.odd}, so readers may see other text",
                "save it as UTF-8",
            )  # fmt: skip
        if executable:
            is_script = inside.text.startswith("#!")
            yield self._finding(
                1, "executable", ("block", "note" if is_script else "ask"),
                "the file may be run as a program",
                "take the execute bit away (chmod -x) and name the interpreter where it is used",
            )  # fmt: skip

    def _secrets(self, text: str) -> Iterator[Finding]:
        found = secrets.find(text)
        seen = without_invisible(text)
        if seen != text and not found:  # split by characters that a copy and paste drops
            found = secrets.find(seen)
        for secret in found:
            weak = _WEAK_SECRETS.get(secret.rule)
            yield self._finding(
                secret.line, f"secret:{secret.rule}", weak or ("block", "block"),
                f"this looks like a secret ({secret.rule.replace('-', ' ')})",
                "take it out and name the environment variable or the store that holds it; "
                "if it was real and was shared, revoke it",
            )  # fmt: skip

    def _hidden(self, text: str) -> Iterator[Finding]:
        kinds: dict[str, list[int]] = {}
        for found in find_hidden(text):
            kinds.setdefault(found.kind, []).append(found.start)
        for kind, places in kinds.items():
            line = line_of(text, places[0])
            severity: tuple[Severity, Severity] = ("block", "block")
            if kind in _MILD_HIDDEN:
                split = sum(_splits_word(text, at) for at in places)
                many = split >= 4 or _has_run(places)
                severity = ("block", "block" if many and kind == "zero-width" else "note")
            count = counted(len(places), "time")
            yield self._finding(
                line, f"hidden:{kind}", severity,
                f"{_HIDDEN_MESSAGE[kind]} ({count}, first here)",
                "delete these characters; an editor that shows invisible characters finds them",
                unseen=severity[1] == "block",
            )  # fmt: skip

    def _disguised(self, text: str) -> Iterator[Finding]:
        if places := disguised_words(text):
            yield self._finding(
                line_of(text, places[0]), "look-alike-letters", ("block", "ask"),
                f"{len(places)} words mix Latin letters with look-alikes of another alphabet "
                "(first here)",
                "write each word in the letters of one alphabet",
            )  # fmt: skip

    def _steering(self, readings: list[View]) -> Iterator[Finding]:
        found = grade(readings)
        ask, block = (
            (LEARNED_ASK_POINTS, LEARNED_BLOCK_POINTS)
            if self._learned
            else (ASK_POINTS, BLOCK_POINTS)
        )
        if not found.parts:
            return
        severity: Severity = (
            "block" if found.points >= block else "ask" if found.points >= ask else "note"
        )
        reasons = dict.fromkeys(part.why for part in found.parts)
        yield Finding(
            file=self._path,
            line=found.line,
            rule="steering",
            severity=severity,
            message=f"{found.points:g} points for an attempt to steer a later agent "
            f"(asked about from {ask:g}, blocked from {block:g}): it " + "; ".join(reasons),
            fix="rewrite the passage so that it asks for none of this; quote an attack that is "
            "described as `code`, in a sentence that warns of it",
            overridable=not (self._learned and severity == "block"),
            parts=found.parts,
            whole=True,
        )

    def _reach(self, readings: list[View]) -> Iterator[Finding]:
        for reach in reaches(readings):
            yield self._finding(
                reach.line, f"reach:{reach.kind}", ("ask", "note"),
                f"the skill {reach.what}",
                "leave it out, or let a person see that the task needs it",
            )  # fmt: skip

    def _escaped(self, values: dict[str, object], line: int) -> Iterator[Finding]:
        """What the head says by escapes, as `"\\u200b"`: those who read it get the character."""
        text = "\n".join(_strings(values))
        for found in (*self._secrets(text), *self._hidden(text), *self._steering(views(text))):
            yield msgspec.structs.replace(found, line=line)

    def _head(self, head: str, line: int) -> Iterator[Finding]:
        """What the frontmatter claims; it begins on `line`."""
        values, _ = frontmatter.parse(head, line)
        for claim in file_powers.claimed_powers(head, line, values):
            yield self._finding(
                claim.line, "power", ("block", "note"),
                f"'{claim.key}' in the frontmatter {claim.does}",
                f"delete '{claim.key}'; a learned skill has no powers of its own"
                if self._learned else "keep it only if you put it there",
            )  # fmt: skip
        for claim in file_powers.scan_switches(head, line):
            yield self._finding(
                claim.line, "switch-off", ("block", "ask"),
                f"'{claim.key}' in the frontmatter has no effect: no skill can switch the scan off",
                f"delete '{claim.key}'",
            )  # fmt: skip
        name = str(values.get("name", ""))
        if is_disguised(name) or _poses_as_latin(name):
            yield self._finding(
                line, "look-alike-name", ("block", "block"),
                "the name mixes alphabets whose letters look alike, so it can pass for another",
                "write the name in the letters of one alphabet",
            )  # fmt: skip
        if "\\" in head:
            yield from self._escaped(values, line)


_HEADED = ("skill.md", "fact.md")
"""The files whose frontmatter is read by others."""

# Secrets whose shape is shared with harmless things: (learned, a person's own).
_WEAK_SECRETS: dict[str, tuple[Severity, Severity]] = {
    "assigned-secret": ("block", "ask"),
    "authorization-header": ("block", "ask"),
    "password-in-url": ("block", "ask"),
    "password": ("ask", "note"),
    "stripe-test-key": ("ask", "ask"),
    "jwt": ("block", "ask"),
}
# Left behind by copy and paste as often as not; in a person's own skill a few are only noted.
_MILD_HIDDEN = {
    "zero-width",
    "soft-hyphen",
    "direction-mark",
    "stray-selector",
    "control-characters",
}
_HIDDEN_MESSAGE = {
    "tag-characters": "text is written in tag characters, which no reader sees and a model reads",
    "selector-run": "variation selectors stand in a row, which is a way to hide data",
    "stray-selector": "a variation selector stands where nothing has variants",
    "zero-width": "characters without width stand in the text",
    "soft-hyphen": "soft hyphens stand inside words",
    "direction-mark": "direction marks stand in text that has one direction",
    "reordered-text": "direction controls make the line read in another order than it is stored",
    "control-characters": "control characters stand in the text",
}


def _strings(value: object) -> Iterator[str]:
    """Every text in what the frontmatter holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _splits_word(text: str, at: int) -> bool:
    """Whether the character at `at` parts two letters of one word."""
    return text[at - 1 : at].isalpha() and text[at + 1 : at + 2].isalpha()


def _has_run(places: list[int]) -> bool:
    """Whether eight or more stand side by side: enough for a hidden letter in bits."""
    gaps = Counter(place - index for index, place in enumerate(places))
    return max(gaps.values()) >= 8


def _poses_as_latin(name: str) -> bool:
    """Whether a name in another alphabet is all Latin look-alikes, like Cyrillic `сору`."""
    letters = [c for c in name if c.isalpha()]
    if not letters or any(alphabet(c) not in ("CYRILLIC", "GREEK") for c in letters):
        return False
    return all(is_disguised(f"a{c}") for c in letters)
