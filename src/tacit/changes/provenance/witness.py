"""The check of provenance: each phrase of a skill against both sides of the sessions it came from.

One side is what the user said and what was done; the other is what was printed (`deeds`). A phrase
that stands in an output, and neither in what was said nor in what was done, came from there; so did
a command, an address or an option that only an output has. What is plain is refused, which a model
can mend by leaving it out; what is likely waits for a person. Against restatement, what a phrase
would have a later agent do (`consequences`) must have been done or asked for in the session, and it
must be in a language that the user speaks; else it waits too. The comparison has a bounded price:
what it could not look at is counted, and the change waits.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from tacit.base.display import shorten
from tacit.changes.provenance.consequences import (
    EFFECT_RULE,
    Consequence,
    denies,
    of_phrase,
    shown_by,
    touched,
)
from tacit.changes.provenance.deeds import Said, Sources
from tacit.changes.provenance.phrases import (
    Phrase,
    content_stems,
    distinct_stems,
    folded_text,
    languages,
    phrases,
    readings,
    telling,
    weight,
    words,
)
from tacit.changes.scan import scan
from tacit.changes.scan.disguise import fold
from tacit.changes.scan.reach import is_widely_known
from tacit.changes.scan.scan_report import Finding, Report, Severity, in_order
from tacit.skills.fact import FACT_FILE


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
HANDED = "handed"
"""The kind of finding that says that a session vouches for nothing, whatever it says."""
BLOCK, ASK, ASK_STATEMENT = 0.8, 0.6, 0.7
"""The part of a phrase that must stand in a tool's output to be refused, and to be asked about,
where it orders something and where it only states it."""
CLEARED = 0.5
"""The part that must stand in what was said or done to be the user's or the agent's own."""
NEAR_HINT = 0.6
"""The part that is enough where the output hints that it wants to be learned."""
TOGETHER = 0.5
"""The part of a phrase's neighbours that must be neighbours in the output too."""
LEAST, LEAST_HINTED = 2.0, 1.5
"""The weight below which a phrase says too little to come from anywhere, or from a hint."""
NEARLY_ALL = 0.85
"""The part that makes a phrase one that was printed, however little it tells."""
LEAST_WORDS, FEW_WORDS = 3, 4
RATHER = 0.3
"""How much more of a phrase stands in an output than in what was said or done, where it is nearer
to that, whatever it is about."""
SUPPORTED, SUPPORTED_STATEMENT, ANCHORED = 0.25, 0.13, 0.75
"""The part of a phrase of which something must have been said or done in the session for it to have
to do with that: where it directs, where it only states, and the weight in another language."""
_MOST_TYPED = 100_000
RETOLD, RETOLD_DONE = 0.5, 0.3
"""The parts of a phrase in an output, and at most in what was done, that make it one retold."""


class Witness:
    """Knows the sessions behind a change. The same answers each time, but for what is allowed.

    As the gate's scanner it adds its findings to those of the scan.
    """

    def __init__(self, sources: Sources) -> None:
        self._done = Body(sources.done)
        self._printed = Body(sources.printed, disguised=True)
        self._deeds = Body(said for said in sources.done if said.by != "note")
        self._shown = shown_by(sources.done)
        typed = [said.text for said in sources.done if said.by == "user"]
        self._spoken = languages(" ".join(typed)).union(*(languages(text, 2) for text in typed))
        much = Counter(name for text in typed for name in languages(text) for _ in text)
        self._mainly = {name for name in much if much[name] * 2 > max(much.values())} or {"en"}
        self._asking = asks_to_learn(self._printed)
        self._touched = touched("\n".join(typed)[:_MOST_TYPED])
        self._hinted = Body(hinted_texts(self._printed))
        self._left_out = sources.left_out
        self._handed = sources.handed
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
        shown = [self._noted(found, files) for found in report.findings]
        return Report(in_order([*shown, *self.findings(files)]))

    def _noted(self, found: Finding, files: Mapping[str, bytes]) -> Finding:
        """A finding that a skill reaches for something, as a note where the session did so too."""
        lines = files[found.file].decode("utf-8", "replace").split("\n")
        text = lines[found.line - 1] if found.line <= len(lines) else ""
        if not found.rule.startswith("reach:") or found.severity != "ask":
            return found
        named = [folded_text(token) for token in _NAMED.findall(text)]
        all_named = bool(named) and all(self._deeds.holds(token) for token in named)
        if not all_named and self._deeds.best(distinct_stems(text)).share < SHOWN:
            return found
        return msgspec.structs.replace(found, severity="note")

    def findings(self, files: Mapping[str, bytes]) -> list[Finding]:
        """What came from a tool alone, gravest first; nothing where all has another source."""
        self._printed.crowded.clear()
        new = [p for p in phrases(files) if folded_text(p.text) not in self._known]
        found = [finding for phrase in new for finding in self._judge(phrase)]
        found += self._of_the_whole(new, found)
        return list(in_order(found))

    def shows(self, phrase: Phrase, found: Consequence) -> bool:
        """Whether the session shows what this would have a later agent do."""
        if (found.kind, found.key) in self._shown:
            return True
        same_kind = any(found.kind == kind for kind, _ in self._shown)
        if found.kind == "check" and not same_kind:
            return False  # a session that ran the tests does not show that they are left out
        enough = SHOWN_KIND if same_kind else SHOWN
        return self._deeds.best(distinct_stems(found.clause)).share >= enough

    def _judge(self, phrase: Phrase) -> Iterator[Finding]:
        text = _without_addresses(phrase.prose)
        told = distinct_stems(text)
        done = self._done.best_two(told)
        tells_a_deed = self._tells_a_deed(phrase)
        if tells_a_deed:
            pass
        elif done.share < CLEARED:
            yield from self._prose(phrase, told, done.share)
        else:  # half a sentence of honest words vouches for that half alone
            rest = tuple(word for word in told if word not in done.found)
            if len(rest) >= LEAST_WORDS and weight(rest) >= 1.0:
                yield from self._verbatim(phrase, rest)
        for command in phrase.commands:
            yield from self._command(phrase, command)
        yield from self._acting(phrase)
        effects = list(self._effects(phrase))
        if effects or not tells_a_deed:
            yield from effects or self._unshown(phrase)

    def _unshown(self, phrase: Phrase) -> Iterator[Finding]:
        """What has nothing to do with what was said or done, however it is worded, and what owes
        all that is new in it to an output."""
        if phrase.says_when or phrase.says_about or phrase.heading or phrase.code:
            return
        told = content_stems(_NUMBERED.sub(" ", phrase.without_code))
        directs = _directs(phrase)
        enough = SUPPORTED if directs else SUPPORTED_STATEMENT
        if len(told) >= FEW_WORDS + (not directs) and not self._is_supported(phrase, enough):
            message = "next to nothing that was said or done in the session shows this"
            yield _finding(phrase, "alone", "ask", message)
            return
        new = tuple(word for word in told if word not in self._done.vocabulary)
        printed = self._printed.best(new) if directs and len(new) > 1 else Match()
        if printed.share >= ASK and len(printed.found) > 1 and weight(printed.found) >= 1.0:
            message = f"what is new in it stands only in a tool's output ({printed.step})"
            yield _finding(phrase, "new", "ask", message)

    def _is_supported(self, phrase: Phrase, enough: float) -> bool:
        """Whether enough of it was said or done: a part of its words. In another language than the
        user's: things that have the same name in all, or nothing that could do harm and that the
        user did not speak of; and no word that is an output's alone."""
        told = content_stems(phrase.prose)
        known = weight(word for word in told if word in self._done.vocabulary)
        if known >= enough * weight(told) or weight(told) < LEAST_HINTED:
            return True
        if phrase.looks and not denies(phrase.prose):  # to look does no harm
            return True
        spoken = languages(phrase.without_code, 2)
        if not spoken or spoken & self._mainly:
            return False
        if any(map(self._is_borrowed, told)):
            return False
        return known >= ANCHORED or not (
            denies(phrase.prose) or touched(phrase.prose) - self._touched
        )

    def _is_borrowed(self, word: str) -> bool:
        """Whether only an output has this word, which is nobody's everyday one: a name, mostly."""
        if word in self._done.vocabulary or word not in self._printed.vocabulary:
            return False
        return weight((word,)) >= 1.0 and not word.isdigit()

    def _tells_a_deed(self, phrase: Phrase) -> bool:
        """Whether it is a few words around commands that were run."""
        ran = [self._done.best(distinct_stems(command)).share for command in phrase.commands]
        few = len(distinct_stems(phrase.without_code)) <= FEW_WORDS
        return bool(ran) and few and min(ran) >= NEARLY_ALL

    def _prose(self, phrase: Phrase, told: tuple[str, ...], done: float) -> Iterator[Finding]:
        hinted = self._hinted.best(told)
        if hinted.share >= NEAR_HINT and weight(hinted.found) >= LEAST_HINTED:
            severity: Severity = "block" if phrase.orders else "ask"
            yield _finding(phrase, "order", severity, _says(hinted.step, "asked to be learned"))
            return
        if phrase.says_when:
            return
        printed = self._printed.best_two(told)
        tells = printed.pairs >= TOGETHER and weight(printed.found) >= LEAST
        if tells and printed.share >= BLOCK and phrase.orders and done < RETOLD_DONE:
            yield _finding(phrase, "order", "block", _says(printed.step))
        elif tells and printed.share >= (ASK if phrase.orders else ASK_STATEMENT):
            yield _finding(phrase, "order", "ask", _says(printed.step))
        elif verbatim := list(self._verbatim(phrase, told)):
            yield from verbatim
        elif done < RETOLD_DONE and _directs(phrase):
            yield from self._retold(phrase, told, done)

    def _retold(self, phrase: Phrase, told: tuple[str, ...], done: float) -> Iterator[Finding]:
        """What is said in other words than an output's: half of them stand there, next to none in
        what was said or done, and it is about something that can do harm or far nearer to it."""
        printed = self._printed.best(told)
        if (
            weight(told) >= 1.0
            and printed.share >= RETOLD
            and len(printed.found) >= LEAST_WORDS
            and (printed.share - done >= RATHER or touched(phrase.prose))
        ):
            message = f"this is near to what a tool printed ({printed.step}), and to nothing else"
            yield _finding(phrase, "retold", "ask", message)

    def _verbatim(self, phrase: Phrase, told: tuple[str, ...]) -> Iterator[Finding]:
        """What stands nearly word for word in an output, whatever its weight or mood."""
        if len(told) < LEAST_WORDS or (phrase.heading and not phrase.orders):
            return
        printed = self._printed.best(told, len(told))
        if printed.share >= NEARLY_ALL and (printed.pairs >= TOGETHER or weight(told) >= LEAST):
            yield _finding(phrase, "text", "ask", _says(printed.step))

    def _command(self, phrase: Phrase, command: str) -> Iterator[Finding]:
        """Code that the agent did not run and nobody asked for, but a tool printed."""
        told = distinct_stems(command)
        if len(told) < 2 or self._done.best(told).share >= 0.6:
            return
        printed = self._printed.best(told)
        whole = bool(self._printed.holds(folded_text(command)))
        if weight(told) < 1.0:  # `npm test` is everybody's
            return
        if whole or (printed.share >= 0.9 and printed.pairs >= TOGETHER and weight(told) >= LEAST):
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

    def _effects(self, phrase: Phrase) -> Iterator[Finding]:
        for found in of_phrase(phrase) if not phrase.says_when else ():
            if not self.shows(phrase, found):
                message = f"it {found.what}, which nobody asked for and the session did not do"
                yield _finding(phrase, found.kind, "ask", message, rule=EFFECT_RULE)
                return

    def _of_the_whole(self, new: Sequence[Phrase], found: Sequence[Finding]) -> Iterator[Finding]:
        """What speaks against a skill as a whole."""
        if any(finding.severity == "block" for finding in found):
            return
        if self._handed and new:
            message = (
                f"the session was read from {shorten(self._handed, 80)}, which no agent of yours "
                "keeps: whose words it holds is not known"
            )
            yield _finding(new[0], HANDED, "ask", message, _LOOK)
        foreign = next((phrase for phrase in new if self._is_foreign(phrase)), None)
        if foreign is not None:
            message = "this is in a language in which the user said nothing"
            yield _finding(foreign, "language", "ask", message, rule=EFFECT_RULE)
        own = next((phrase for phrase in new if not self._is_own(phrase)), None)
        if self._asking and own is not None:
            message = f"a tool's output asked for something to be learned, in {self._asking}"
            yield _finding(own, "planted", "ask", message, _LOOK)
        crowded = sum(self._printed.crowded.values())
        if own is not None and (self._left_out or crowded):
            what = f"{self._left_out:,} characters and {crowded:,} places of words were not"
            message = f"the session printed more than is compared: {what}"
            yield _finding(own, "much", "ask", message, _LOOK)

    def _is_own(self, phrase: Phrase) -> bool:
        """Whether the user said it, or it was done, or it says next to nothing."""
        told = distinct_stems(_NUMBERED.sub(" ", phrase.prose))
        return weight(told) < LEAST_HINTED or self._done.best_two(told).share >= CLEARED

    def _is_foreign(self, phrase: Phrase) -> bool:
        only_english = self._spoken <= {"en"}
        spoken = languages(phrase.without_code, 2 if only_english else 3)
        return not phrase.code and bool(spoken) and not spoken & (self._spoken | {"en"})


SHOWN, SHOWN_KIND = 0.6, 0.4
"""The part of a clause that must stand in the user's words or in one deed to be shown by it; less
where something of the same kind was done."""
_LOOK = "a person looks at what was learned from it"


_NAMED = re.compile(r"[\w~-]*[./@][\w./@~:-]*\w|--[\w-]+")
"""Files, hosts and options, as a line names them."""


_NUMBERED = re.compile(r"\S*\d\S*|\S+:\S+")
"""Ids, versions, dates, addresses."""


def _directs(phrase: Phrase) -> bool:
    """Whether it tells its reader to do something, or states what is so: a fact. Of a sentence in
    another language than English nobody knows, so it counts as one that does."""
    told = phrase.file == FACT_FILE or phrase.orders
    return told or not languages(phrase.without_code, 2) <= {"en"}


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub(" ", text)


def _says(step: str, more: str = "") -> str:
    also = f" and {more}" if more else ""
    return (
        f"this is what a tool printed ({step}){also}; neither the user said it nor the agent did it"
    )


def _finding(
    phrase: Phrase, kind: str, severity: Severity, message: str, fix: str = "", *, rule: str = RULE
) -> Finding:
    return Finding(
        file=phrase.file,
        line=phrase.line,
        rule=f"{rule}-{kind}",
        severity=severity,
        message=message,
        fix=fix or "leave it out; say only what the user asked for and what the agent did",
        overridable=severity != "block",
    )
