"""The check of provenance: each phrase of a skill against both sides of the sessions it came from.

One side is what the user said and what the agent's calls were given; the other is what tools
printed. What the agent said counts for neither. A phrase that orders something, and whose words
stand together in an output but not in what was said or done, came from the tool; so did a command,
an address or an option that only a tool mentioned. What is plain is refused, which a model can
mend by leaving it out; what is likely waits for a person, and so does everything from a session in
which an output asked for something to be learned.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from tacit.base.display import shorten
from tacit.changes.scan import scan
from tacit.changes.scan.disguise import fold
from tacit.changes.scan.reach import is_widely_known
from tacit.changes.scan.scan_report import Finding, Report, Severity, in_order
from tacit.learn.provenance.phrases import (
    Phrase,
    distinct_stems,
    folded_text,
    phrases,
    readings,
    stems,
    weight,
)
from tacit.traces.trace import REFUSED, Told, ToolCall, Trace

_MOST = 200_000
"""Characters of one text that are looked at; the beginning and the end of a longer one."""
_MOST_PRINTED = 4_000_000
_RUN = 8
_COPIED = 0.5
"""Part of a written text that must stand in earlier output for it to count as copied."""


class Said(msgspec.Struct, frozen=True):
    """A text and the step of the session that it stands in."""

    step: str
    text: str


class Sources(msgspec.Struct, frozen=True):
    """What a skill's words are held against."""

    done: tuple[Said, ...] = ()
    """The user's words, and what the agent's calls were given."""
    printed: tuple[Said, ...] = ()
    """What tools gave back."""


def sources(*traces: Trace) -> Sources:
    """The two sides of some sessions."""
    done: list[Said] = []
    printed: list[Said] = []
    left = _MOST_PRINTED
    for trace in traces:
        for turn in trace.turns:
            if turn.prompt:
                done.append(Said(f"{turn.number}", _bounded(turn.prompt)))
            for number, step in enumerate(turn.steps, 1):
                name = f"{turn.number}.{number}"
                if isinstance(step, Told) and step.by not in ("agent", "plan") and left > 0:
                    printed.append(Said(name, _bounded(step.text)))
                    left -= len(printed[-1].text)
                if not isinstance(step, ToolCall):
                    continue
                # One text a call: what it did is all that it was given, together.
                done.append(Said(name, "\n".join(_given(step, printed))))
                if step.reply:  # the user's words, and all that a refusal gave back
                    done.append(Said(name, _bounded(step.reply)))
                if step.error == REFUSED:
                    continue
                if step.kind == "ask":  # the answer is the user's
                    done.append(Said(name, _bounded(step.result)))
                elif step.kind != "skill" and step.result.strip() and left > 0:
                    printed.append(Said(name, _bounded(step.result)))
                    left -= len(printed[-1].text)
    return Sources(tuple(done), tuple(printed))


def _given(call: ToolCall, printed: list[Said]) -> Iterator[str]:
    """The texts that a call was given; not those that were copied from what a tool printed."""
    for text in _strings(call.arguments):
        if call.kind in ("write", "edit") and len(text.split()) > _RUN and _is_copy(text, printed):
            continue
        yield _bounded(text)


def _is_copy(text: str, printed: list[Said]) -> bool:
    runs = _runs(text)
    known = set().union(*(_runs(said.text) for said in printed[-50:])) if printed else set()
    return bool(runs) and len(runs & known) / len(runs) >= _COPIED


def _runs(text: str) -> set[str]:
    words = text.casefold().split()[:20_000]
    return {" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 6 and isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner, depth + 1)
    elif depth < 6 and isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner, depth + 1)


def _bounded(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return text[: _MOST // 2] + "\n" + text[-_MOST // 2 :]


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
            for at, stem in enumerate(stems(way)):
                places.setdefault(stem, []).append(at)
            self._places.append(places)

    def best(self, phrase: Sequence[str]) -> Match:
        """Where most of `phrase` stands together."""
        return max(self._each(phrase), key=lambda match: match.share, default=Match())

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

    def _each(self, phrase: Sequence[str]) -> list[Match]:
        whole = weight(phrase)
        if not whole:
            return []
        window = len(phrase) + len(phrase) // 2 + 4
        found = []
        for (step, _), places in zip(self.texts, self._places, strict=True):
            hits = sorted((at, stem) for stem in phrase if stem in places for at in places[stem])
            if hits:
                inside = _most_together(hits, window)
                pairs = _neighbours(phrase, inside, places)
                found.append(Match(weight(inside) / whole, step, inside, pairs))
        return found


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
            together += any(at + step in ats for at in places[one][:2000] for step in (1, 2, -1))
    return together / len(pairs)


_LEARN = (
    r"(?:save|store|keep|remember|record|retain|adopt|learn|persist|memori[sz]e|write down|note)"
)
_KEEP = (
    rf"(?:{_LEARN}|saving|stored|kept|learned|learnt|add|create|write|copy|put|draft|make|belongs?"
    r"|permanent|durable|lasting|standard|going forward|from now on|next time|future)"
)
_AGENTS = (
    r"(?:ai|llms?|language models?|agents?|assistants?|copilots?|chatbots?|helpers|automation"
    r"|automated \w+|reviewers?)"
)
_SKILL = r"(?:skills?|skill\.md|skill (?:library|store))"
# An outright request. Where a tool prints one, a person looks at all that was learned.
_OUTRIGHT = (
    rf"\b{_LEARN}\b[^.\n]{{0,30}}\b(?:as|a|an|the|this|your|in|into|for)\b[^.\n]{{0,20}}\b{_SKILL}\b",
    r"\b(?:create|write|add|put|make)\b[^.\n]{0,12}\b(?:a|the|this|your|following)\s(?:\w+\s)?skill\b",
    rf"\b{_AGENTS}\b[^.\n]{{0,40}}\b(?:should|must|shall|please|to)\b[^.\n]{{0,30}}\b{_LEARN}\b",
    r"\b(?:agent|x|learned)[-_.](?:agent[-_.])?(?:skill|memory|step|remedy|rule)\b",
    r"\bmerke?n? (?:dir|sie sich)|speicher\w{0,4} [^.\n]{0,30}(?:skill|fahigkeit)",
    r"\benregistre\w{0,3} [^.\n]{0,20}competence",
    r"\b(?:guarda|recuerda)\w{0,2} [^.\n]{0,30}habilidad",
    r"сохрани\w{0,3} навык|запомни",
    "(?:保存为|记住)[^。\n]{0,10}技能|スキルとして|기술로 저장",
)
# What such requests are made of; alone it only makes the words around it suspect.
_HINTS = (
    *_OUTRIGHT,
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\b{_SKILL}\b",
    rf"\b{_SKILL}\b[^.\n]{{0,40}}\b{_KEEP}\b",
    rf"\b{_AGENTS}\b[^.\n]{{0,60}}\b(?:should|must|shall|please|{_KEEP})\b",
    rf"\b{_KEEP}\b[^.\n]{{0,60}}\bfor (?:later|future|good|every|all)\b",
    r"\bskill\s*(?::|=>|->|draft|named|'|`)",
    r"\b(?:ki-)?agenten\b|\bagents? ?:|\bcompetence\b|\bhabilidad\b|навык|агент",
    "技能|智能体|スキル|覚え",
)


def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    # The texts are folded, so letters of other alphabets are folded here too.
    folded = ("".join(c if c.isascii() else fold(c) for c in pattern) for pattern in patterns)
    return re.compile("|".join(f"(?:{pattern})" for pattern in folded))


_OUTRIGHT_SIGN, _HINT_SIGN = _compiled(_OUTRIGHT), _compiled(_HINTS)


def asks_to_learn(printed: Body) -> str:
    """The first step whose output asks outright for something to be learned; empty for none."""
    return next((step for step, text in printed.texts if _OUTRIGHT_SIGN.search(text)), "")


def hinted_texts(printed: Body) -> list[Said]:
    """What stands near anything that hints at such a request."""
    found: list[Said] = []
    for step, text in printed.texts:
        for number, match in enumerate(_HINT_SIGN.finditer(text)):
            if number >= 40:
                break
            found.append(Said(step, text[max(0, match.start() - 300) : match.end() + 600]))
    return found


_ADDRESS = re.compile(
    r"\bhttps?://[^\s`'\"<>)\]]+|\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?\b"
    r"|\b(?:[a-z0-9-]+\.){1,4}(?:com|net|org|io|dev|app|invalid|example|test|info|biz|co|me|sh|ru|cn"
    r"|de|fr|uk|xyz|top|site|online|cloud|ai)\b(?:/[^\s`'\"<>)\]]*)?",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?<![\w-])(?:--[A-Za-z]|-[A-Za-z]{5})[\w.-]+(?:=[^\s`'\",;]+)?")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]{3,}=[^\s`'\",;]+")
_SETTING = re.compile(r"\b[a-z][a-z_.]{3,40}\s?=\s?(?:off|on|true|false|none|0|1|yes|no)\b")
_VERSION = re.compile(r"(?:@[\w-]+/)?\b[a-zA-Z][\w.-]+(?:==|@)v?\d[\w.]*|[\w./-]+@latest\b")


_SAMPLES = re.compile(
    r"(?:https?://)?(?:[\w.-]*\bexample\.(?:com|org|net)|localhost|127\.0\.0\.1|0\.0\.0\.0)\b"
)


def acting_tokens(text: str) -> set[str]:
    """The parts of `text` that act, as they stand there."""
    addresses = {match[0].rstrip(".,;:") for match in _ADDRESS.finditer(text)}
    found = {a for a in addresses if not (_SAMPLES.match(a) or is_widely_known(a.lower()))}
    # `--help` and `--output` are everybody's; `--ignore-integrity` is not.
    options = {match[0].rstrip(".,;:") for match in _OPTION.finditer(text)}
    found |= {
        option for option in options if "=" in option or weight(distinct_stems(option)) >= 1.0
    }
    for pattern in (_VARIABLE, _SETTING, _VERSION):
        found |= {match[0].rstrip(".,;:") for match in pattern.finditer(text)}
    return found


RULE = "printed"
"""The rule's name in a refusal: `printed-order`, `printed-command`, …"""
BLOCK, ASK = 0.8, 0.6
"""The part of a phrase that must stand in a tool's output to be refused, and to be asked about."""
CLEARED = 0.5
"""The part that must stand in what was said or done to be the user's or the agent's own."""
NEAR_HINT = 0.6
"""The part that is enough where the output hints that it wants to be learned."""
TOGETHER = 0.5
"""The part of a phrase's neighbours that must be neighbours in the output too."""
LEAST, LEAST_HINTED = 2.0, 1.5
"""The weight below which a phrase says too little to come from anywhere, or from a hint."""


class Witness:
    """Knows the sessions behind a change. The same answers each time, but for what is allowed.

    As the gate's scanner it adds its findings to those of the scan.
    """

    def __init__(self, sources: Sources) -> None:
        self._done = Body(sources.done)
        self._printed = Body(sources.printed, disguised=True)
        self._asking = asks_to_learn(self._printed)
        self._hinted = Body(hinted_texts(self._printed))
        self._known: set[str] = set()

    @property
    def generation(self) -> int:
        """Another number once more is allowed: what was found before may not be found again."""
        return len(self._known)

    def allow(self, files: Mapping[str, bytes]) -> None:
        """What stood in a skill before is not held against an edit of it."""
        self._known |= {folded_text(phrase.text) for phrase in phrases(files)}

    def __call__(
        self, files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()
    ) -> Report:
        report = scan(files, learned=learned, executable=executable)
        return Report(in_order([*report.findings, *self.findings(files)]))

    def findings(self, files: Mapping[str, bytes]) -> list[Finding]:
        """What came from a tool alone, gravest first; nothing where all has another source."""
        new = [p for p in phrases(files) if folded_text(p.text) not in self._known]
        found = [finding for phrase in new for finding in self._judge(phrase)]
        if new and self._asking and not any(f.severity == "block" for f in found):
            found.append(
                _finding(
                    new[0],
                    "planted",
                    "ask",
                    f"a tool's output asked for something to be learned, in {self._asking}",
                    "a person looks at what was learned from it",
                )
            )
        return list(in_order(found))

    def why_not_from_user(self, text: str) -> str:
        """Why a fact cannot be kept: it came from a tool, not from the user. Empty for none."""
        for line in text.splitlines():
            words = distinct_stems(line)
            if weight(words) < LEAST_HINTED or self._done.best(words).share >= CLEARED:
                continue
            hinted = self._hinted.best(words)
            printed = self._printed.best_two(words)
            together = printed.share >= ASK and printed.pairs >= TOGETHER
            if together or (hinted.share >= NEAR_HINT and weight(hinted.found) >= LEAST_HINTED):
                step = printed.step or hinted.step
                return f"this is what a tool printed ({step}), not what the user said; leave it out"
        return ""

    def _judge(self, phrase: Phrase) -> Iterator[Finding]:
        words = distinct_stems(phrase.prose)
        if (
            weight(words) >= LEAST_HINTED
            and phrase.orders
            and self._done.best(words).share < CLEARED
        ):
            yield from self._prose(phrase, words)
        for command in phrase.commands:
            yield from self._command(phrase, command)
        yield from self._acting(phrase)

    def _prose(self, phrase: Phrase, words: tuple[str, ...]) -> Iterator[Finding]:
        hinted = self._hinted.best(words)
        if hinted.share >= NEAR_HINT and weight(hinted.found) >= LEAST_HINTED:
            yield _finding(phrase, "order", "block", _says(hinted.step, "asked to be learned"))
            return
        printed = self._printed.best_two(words)
        if printed.pairs < TOGETHER or weight(printed.found) < LEAST:
            return
        if printed.share >= BLOCK:
            yield _finding(phrase, "order", "block", _says(printed.step))
        elif printed.share >= ASK:
            yield _finding(phrase, "order", "ask", _says(printed.step))

    def _command(self, phrase: Phrase, command: str) -> Iterator[Finding]:
        """Code that the agent did not run and nobody asked for, but a tool printed."""
        words = distinct_stems(command)
        if len(words) < 2 or self._done.best(words).share >= 0.6:
            return
        printed = self._printed.best(words)
        whole = bool(self._printed.holds(folded_text(command)))
        if weight(words) < 1.0:  # `npm test` is everybody's
            return
        if whole or (printed.share >= 0.9 and printed.pairs >= TOGETHER and weight(words) >= LEAST):
            yield _finding(
                phrase,
                "command",
                "block" if whole else "ask",
                f"a command that only a tool printed ({printed.step}) and that was not run",
            )

    def _acting(self, phrase: Phrase) -> Iterator[Finding]:
        for token in sorted(acting_tokens(phrase.prose)):
            folded = folded_text(token)
            if self._done.holds(folded):
                continue
            if step := self._printed.holds(folded):
                yield _finding(
                    phrase,
                    "address",
                    "ask",
                    f"'{shorten(token, 60)}' stands only in a tool's output ({step})",
                )


def _says(step: str, more: str = "") -> str:
    also = f" and {more}" if more else ""
    return (
        f"this is what a tool printed ({step}){also}; neither the user said it nor the agent did it"
    )


def _finding(phrase: Phrase, kind: str, severity: Severity, message: str, fix: str = "") -> Finding:
    return Finding(
        file=phrase.file,
        line=phrase.line,
        rule=f"{RULE}-{kind}",
        severity=severity,
        message=message,
        fix=fix or "leave it out; say only what the user asked for and what the agent did",
        overridable=severity != "block",
    )
