"""The check of provenance: each phrase of a skill against both sides of the sessions it came from.

One side is what the user said and what was done; the other is what was printed (`deeds`). A phrase
that stands in an output, and neither in what was said nor in what was done, came from there; so did
a command, an address or an option that only an output has. What is plain is refused, which a model
can mend by leaving it out; what is likely waits for a person. Against restatement, what a phrase
would have a later agent do (`consequences`) must have been done or asked for in the session, and it
must be in a language that the user speaks; and where an output has an order that nobody gave, the
session must support it: else it waits too. The comparison has a bounded price: what it could not
look at is counted, and the change waits.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

import msgspec

from tacit.base.display import shorten
from tacit.changes.left_out import MARKER
from tacit.changes.provenance.consequences import (
    EFFECT_RULE,
    Consequence,
    denies,
    of_phrase,
    of_prose,
    shown_by,
    touched,
)
from tacit.changes.provenance.deeds import Body, Match, Said, Sources
from tacit.changes.provenance.phrases import (
    ADDRESS,
    ASKS_TO_BE_LEARNED,
    ATTRIBUTION,
    HINTS_AT_LEARNING,
    Phrase,
    acting_tokens,
    content_stems,
    distinct_stems,
    folded_text,
    is_english,
    is_outside,
    is_report,
    languages,
    phrases,
    sentences,
    weight,
)
from tacit.changes.provenance.support import DOUBTFUL, Support
from tacit.changes.scan import scan
from tacit.changes.scan.scan_report import Finding, Report, Severity, in_order


def near_requests(printed: Body, sign: re.Pattern[str]) -> list[Said]:
    """What stands near anything that asks for something to be learned, or hints at it."""
    return [
        Said(step, text[max(0, match.start() - 300) : match.end() + 600])
        for step, text in printed.texts
        for match in islice(sign.finditer(text), 40)
    ]


RULE = "printed"
"""The rule's name in a refusal: `printed-order`, `printed-command`, …"""
_WEAK = (f"{RULE}-near", f"{RULE}-alone")
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
ANY_DOUBT = 0.01
"""The doubt from which on a phrase waits where an output asked for something to be learned."""
LEAST_WORDS, FEW_WORDS, LEAST_WRITTEN, HALF_A_WORD = 3, 4, 5, 0.5
UNSEEN = 0.25
"""The part of a phrase that must have been said or done where not all outputs were looked at."""
MANY = 3
"""How many lines that were said or done there are to each weak one, in a long skill."""
_MOST_TYPED, _MOST_SENTENCES, _MOST_PHRASES, _WHOLE_SENTENCE = 100_000, 3_000, 500, 1_000
RETOLD_DONE = 0.3
"""The part of a phrase that may at most have been done, if an output's order is refused."""


class Witness:
    """Knows the sessions behind a change. The same answers each time, but for what is allowed.

    As the gate's scanner it adds its findings to those of the scan.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._done = Body(sources.done)
        self._printed = Body(sources.printed, disguised=True)
        self._deeds = Body(said for said in sources.done if said.by != "note")
        self._shown = shown_by(sources.done)
        self._typed = typed = [said.text for said in sources.done if said.by == "user"]
        self._spoken = languages(" ".join(typed)).union(*(languages(text, 2) for text in typed))
        self._requests = Body(near_requests(self._printed, ASKS_TO_BE_LEARNED))
        self._touched = touched("\n".join(typed)[:_MOST_TYPED])
        self._hinted = Body(near_requests(self._printed, HINTS_AT_LEARNING))
        self._outputs = sources.printed
        self._left_out = sources.left_out
        self._handed = sources.handed
        self._known = {folded_text(form) for form in (MARKER, f"# {MARKER}")}
        self._things: dict[Body, frozenset[str]] = {}

    @property
    def generation(self) -> int:
        """Another number once more is allowed or read: what was found before may not be again."""
        return len(self._known) + len(self._outputs)

    def read(self, text: str, left_out: int = 0) -> None:
        """Hold what is written from now on against `text` too, which was read beside the sessions:
        it is printed matter. So are characters that were seen and are not kept."""
        printed = (*self._sources.printed, Said("read", text))
        left_out += self._sources.left_out
        told = msgspec.structs.replace(self._sources, printed=printed, left_out=left_out)
        more = Witness(told)
        self.__dict__ = more.__dict__ | {"_known": self._known}

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
        """A finding that a skill reaches for something, or sets something up that runs later, as a
        note where the session did so too."""
        lines = files[found.file].decode("utf-8", "replace").split("\n")
        text = lines[found.line - 1] if found.line <= len(lines) else ""
        if found.severity != "ask":
            return found
        if found.rule.startswith("reach:"):
            named = [folded_text(token) for token in _NAMED.findall(text)]
            shown = bool(named) and all(self._deeds.holds(token) for token in named)
            shown = shown or self._deeds.best(distinct_stems(text)).share >= SHOWN
        else:
            set_up = [distinct_stems(lines[part.line - 1]) for part in found.parts]
            shown = bool(set_up) and all(part.sign == _SET_UP for part in found.parts)
            shown = shown and min(map(self._part_known, set_up)) >= NEARLY_ALL
            shown = shown and min(self._deeds.best(told).share for told in set_up) >= SHOWN
        return msgspec.structs.replace(found, severity="note") if shown else found

    def findings(self, files: Mapping[str, bytes]) -> list[Finding]:
        """What came from a tool alone, gravest first; nothing where all has another source."""
        self._printed.crowded.clear()
        new = [p for p in phrases(files) if folded_text(p.text) not in self._known]
        looked, more = new[:_MOST_PHRASES], new[_MOST_PHRASES:]
        found = self._without_company({phrase: list(self._judge(phrase)) for phrase in looked})
        found += self._of_the_whole(looked, found)
        if more:
            message = f"it says more than is compared: {len(more):,} phrases were not"
            found += [_finding(more[0], "much", "ask", message, _LOOK)]
        return list(in_order(found))

    def shows(self, phrase: Phrase, found: Consequence) -> bool:
        """Whether the session shows what this would have a later agent do."""
        if (found.kind, found.key) in self._shown:
            return True
        same_kind = any(found.kind == kind for kind, _ in self._shown)
        if found.kind == "check" and not same_kind:
            return False  # a session that ran the tests does not show that they are left out
        told = distinct_stems(found.clause)
        known = self._part_known(told)
        if same_kind and known >= SHOWN:
            return True
        states = found.kind != "check" and not Phrase("", 1, found.clause).orders
        if states and known >= KNOWN_STATE:
            return True  # what was found out, in the session's own words
        alike = same_kind and (known >= CLEARED or found.kind not in _OF_MANY_KINDS)
        if (alike or (states and known >= CLEARED)) and found.kind not in self._ordered_kinds:
            return True  # of this nothing was printed, and the session has done or named it
        return self._deeds.best(told).share >= (SHOWN_KIND if same_kind else SHOWN)

    def _judge(self, phrase: Phrase) -> Iterator[Finding]:
        told = distinct_stems(ADDRESS.sub(" ", phrase.prose))
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

    def _without_company(self, judged: Mapping[Phrase, list[Finding]]) -> list[Finding]:
        """What was found; if only weak lines, among as many that were said or done: those that can
        do harm by what the user did not speak of, nor, among many more, the deeds are about."""
        found = [finding for findings in judged.values() for finding in findings]
        if any(finding.rule not in _WEAK for finding in found):
            return found
        own = sum(not findings and self._is_known(one) for one, findings in judged.items())
        weak = sum(map(bool, judged.values()))
        if own < weak:
            return found
        known = self._touched | (self._handled if own >= MANY * weak else frozenset())
        harmful = (findings for one, findings in judged.items() if touched(one.prose) - known)
        return [finding for findings in harmful for finding in findings]

    @cached_property
    def _handled(self) -> frozenset[str]:
        """What the deeds of the session are about."""
        return touched("\n".join(text for _, text in self._deeds.texts)[:_MOST_TYPED])

    def _is_known(self, phrase: Phrase) -> bool:
        """Whether it says something, half of which was said or done."""
        told = content_stems(phrase.prose)
        says = not phrase.names and weight(told) >= LEAST_HINTED
        return says and self._part_known(told) >= CLEARED

    def _unshown(self, phrase: Phrase) -> Iterator[Finding]:
        """What has next to nothing to do with what was said or done, however it is worded, and
        what is nearer to an order in an output."""
        told = self.weighed(phrase)
        if not told:
            return
        unread = self._left_out or len(self._sentences) == _MOST_SENTENCES
        theirs = self._strangers.texts or self._is_told(phrase, told)
        alone = bool(unread) and self._part_known(told) < UNSEEN
        alone = alone or (bool(theirs) and self.support(phrase, told).doubt >= DOUBTFUL)
        order = self._strangers.best(told) if alone else Match()
        if order.share > self._part_known(told):
            message = f"this is nearer to what a tool printed ({order.step}) than to the session"
            yield _finding(phrase, "near", "ask", message)
        elif alone:
            message = "next to nothing that was said or done in the session shows this"
            yield _finding(phrase, "alone", "ask", message)

    def weighed(self, phrase: Phrase) -> tuple[str, ...]:
        """The words of a phrase that says enough to ask what of the session supports it."""
        if phrase.names or phrase.code or _only_looks(phrase):
            return ()
        told = content_stems(ATTRIBUTION.sub(" ", phrase.prose))
        number = len(content_stems(_NUMBERED.sub(" ", ATTRIBUTION.sub(" ", phrase.without_code))))
        return told if number >= LEAST_WORDS and weight(told) >= LEAST_HINTED else ()

    def _is_told(self, phrase: Phrase, told: Sequence[str]) -> bool:
        """Whether it has something of a sentence in an output, or is about the same."""
        new = tuple(word for word in told if word not in self._done.vocabulary)
        shared = weight(self._told.best(new, _WHOLE_SENTENCE).found)
        return shared >= 1.0 or (len(told) > LEAST_WORDS and self._is_about(phrase, self._told))

    def support(self, phrase: Phrase, told: Sequence[str]) -> Support:
        """What the session has to say of a phrase, whose words these are."""
        done = self._done.vocabulary
        new = [word for word in told if word not in done]
        whole = weight(told)
        things = touched(phrase.prose)
        spoken = languages(phrase.without_code, 2)
        return Support(
            known=1 - weight(new) / whole,
            done=weight(w for w in told if w in done and w not in self._typed_words) / whole,
            together=self._done.best_two(told).share,
            ordered=self._strangers.best(told).share,
            printed=self._told.best(told).share,
            nowhere=weight(word for word in new if word not in self._seen) / whole,
            length=math.log(whole),
            things=float(min(len(things), 3)),
            strange=float(min(len(things - self._touched - self._handled), 3)),
            observes=float(self._observes(phrase)),
            foreign=float(any(not one & (spoken or {"en"}) for one in self._ordered_in)),
        )

    def _part_known(self, told: Sequence[str]) -> float:
        """The part of these words, by weight, that was said or stands in what was done."""
        known = weight(word for word in told if word in self._done.vocabulary)
        return known / max(weight(told), 0.1)

    def _observes(self, phrase: Phrase) -> bool:
        """Whether it is about names and numbers of the session, be it of the code and the figures
        in an output, and none of an order there; nor about what such an order is about."""
        text = phrase.prose
        other = any(letter > _LATIN for letter in text)  # there, words in Latin letters are names
        tokens = (one for one in _TOKEN.findall(text) if other or _NAME_SIGN.search(one))
        named = set(map(folded_text, tokens))
        if sum(len(name) > 2 for name in named) < 2:
            return False
        if any(name in self._orders and not self._done.holds(name) for name in named):
            return False
        if not all(self._done.holds(name) or self._printed.holds(name) for name in named):
            return False
        return not self._is_about(phrase, self._strangers)

    def _is_about(self, phrase: Phrase, orders: Body) -> bool:
        """Whether it is about something that orders are about, and the user did not speak of."""
        if not (about := touched(phrase.prose) - self._touched):
            return False
        if orders not in self._things:  # they may be long
            self._things[orders] = touched("\n".join(text for _, text in orders.texts))
        return bool(about & self._things[orders])

    @cached_property
    def _sentences(self) -> list[Said]:
        """What reads as somebody's words in the outputs, as far as it is looked at."""
        every = (Said(said.step, one) for said in self._outputs for one in sentences(said.text))
        return list(islice(every, _MOST_SENTENCES))

    @cached_property
    def _told(self) -> Body:
        return Body(self._sentences)

    @cached_property
    def _strangers(self) -> Body:
        """Those of them that direct somebody and that nothing said or done explains; a denial is
        explained by nothing, since it may be of what was done."""
        return Body(
            said
            for said in self._sentences
            if _is_order(said.text)
            and (denies(said.text) or not self._is_explained(content_stems(said.text)))
        )

    @cached_property
    def _ordered_in(self) -> list[set[str]]:
        """The languages that they are in, where that can be told."""
        told = (languages(text) for _, text in self._strangers.texts)
        return [spoken for spoken in told if spoken]

    @cached_property
    def _orders(self) -> str:
        return "\n".join(text for _, text in self._strangers.texts)

    def _is_explained(self, told: Sequence[str]) -> bool:
        """Whether half of these words were said or done, in one place."""
        return self._part_known(told) >= CLEARED and self._done.best(told).share >= CLEARED

    @cached_property
    def _ordered_kinds(self) -> set[str]:
        """The kinds of what the outputs would have somebody do."""
        return {found.kind for _, text in self._told.texts for found in of_prose(text)}

    @cached_property
    def _typed_words(self) -> frozenset[str]:
        return Body(Said("", text) for text in self._typed).vocabulary

    @cached_property
    def _seen(self) -> frozenset[str]:
        """The words of the outputs, as far as they are looked at."""
        return self._strangers.vocabulary | self._told.vocabulary | self._elsewhere

    @cached_property
    def _elsewhere(self) -> frozenset[str]:
        """The words of the outputs outside such orders: of code, of figures, of messages."""
        orders = {text for _, text in self._strangers.texts}
        lines = (line for said in self._outputs for line in folded_text(said.text).split("\n"))
        kept = (line for line in lines if not any(one in orders for one in sentences(line)))
        return Body([Said("", "\n".join(kept))]).vocabulary

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
        others = done < RETOLD_DONE and self._part_known(told) < CLEARED
        if tells and printed.share >= BLOCK and phrase.orders and others:
            yield _finding(phrase, "order", "block", _says(printed.step))
        elif tells and printed.share >= (ASK if phrase.orders else ASK_STATEMENT):
            if phrase.orders or self._is_somebodys(phrase, told):
                yield _finding(phrase, "order", "ask", _says(printed.step))
            else:
                yield from self._verbatim(phrase, told)
        elif verbatim := list(self._verbatim(phrase, told)):
            yield from verbatim

    def _is_somebodys(self, phrase: Phrase, told: Sequence[str]) -> bool:
        """Whether a statement is a sentence of an output, rather than what a program reports; not
        where half of its words were said or done, wherever, and it is harmless."""
        harmless = not touched(phrase.prose) - self._touched
        known = self._part_known(told) >= CLEARED and harmless
        return not known and self._told.best_two(told).share >= ASK_STATEMENT

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
                "block" if whole and weight(told) >= LEAST else "ask",
                f"a command that only a tool printed ({printed.step}) and that was not run",
            )

    def _acting(self, phrase: Phrase) -> Iterator[Finding]:
        for token in sorted(acting_tokens(phrase.prose)):
            folded = folded_text(token)
            if self._done.holds(folded):
                continue
            step = self._printed.holds(folded)
            # What code in an output has is told of it, unless somebody orders it there.
            if step and (is_outside(token) or self._strangers.holds(folded)):
                yield _finding(
                    phrase,
                    "address",
                    "ask",
                    f"'{shorten(token, 60)}' stands only in a tool's output ({step})",
                )

    def _effects(self, phrase: Phrase) -> Iterator[Finding]:
        for found in of_phrase(phrase) if not phrase.says_when else ():
            title = phrase.heading and self._is_explained(content_stems(phrase.prose))
            if not (title or self.shows(phrase, found)):
                message = f"it {found.what}, which nobody asked for and the session did not do"
                yield _finding(phrase, found.kind, "ask", message, rule=EFFECT_RULE)
                return

    def _of_the_whole(self, new: Sequence[Phrase], found: Sequence[Finding]) -> Iterator[Finding]:
        """What speaks against a skill as a whole, and what an output asked to be learned."""
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
        for phrase in filter(self._is_requested, new):
            step = self._requests.texts[0][0]
            message = f"a tool's output asked for something to be learned, in {step}"
            yield _finding(phrase, "planted", "ask", message)
        own = next((phrase for phrase in new if not self._is_own(phrase)), None)
        crowded = sum(self._printed.crowded.values())
        if own is not None and (self._left_out or crowded):
            what = f"{self._left_out:,} characters and {crowded:,} places of words were not"
            message = f"the session has more than is compared: {what}"
            yield _finding(own, "much", "ask", message, _LOOK)

    def _is_requested(self, phrase: Phrase) -> bool:
        """Whether it has something of what stands near a request to learn, beyond what was said and
        done, or is about the same; what is in another language than that may be anything. Nothing
        that the session leaves no doubt of is of that."""
        if not self._requests.texts or phrase.says_when or self._is_own(phrase):
            return False
        if (told := self.weighed(phrase)) and self.support(phrase, told).doubt < ANY_DOUBT:
            return False
        spoken = languages(phrase.without_code, 2)
        if spoken and not spoken & self._requested_in:
            return bool(told or touched(phrase.prose))
        new = [word for word in distinct_stems(phrase.prose) if word not in self._done.vocabulary]
        shared = weight(self._requests.best(new, _WHOLE_SENTENCE).found)
        return shared >= HALF_A_WORD or self._is_about(phrase, self._requests)

    @cached_property
    def _requested_in(self) -> set[str]:
        return languages("\n".join(text for _, text in self._requests.texts))

    def _is_own(self, phrase: Phrase) -> bool:
        """Whether the user said it, or it was done, or it says next to nothing."""
        told = distinct_stems(_NUMBERED.sub(" ", phrase.prose))
        return weight(told) < LEAST_HINTED or self._done.best_two(told).share >= CLEARED

    def _is_foreign(self, phrase: Phrase) -> bool:
        only_english = self._spoken <= {"en"}
        spoken = languages(phrase.without_code, 2 if only_english else 3)
        return not phrase.code and bool(spoken) and not spoken & (self._spoken | {"en"})


KNOWN_STATE = 0.7
"""The part of a statement's clause that makes it one of the session, whatever was printed."""
SHOWN, SHOWN_KIND = 0.6, 0.4
"""The part of a clause that must stand in the user's words or in one deed to be shown by it; less
where something of the same kind was done."""
_OF_MANY_KINDS = ("check", "credential", "install", "network", "permission", "source")
"""Of which one does not show another: who ran `sudo` made nobody an administrator."""
_SET_UP = "startup-file"
"""The sign of steering that a command is by itself, whoever asked for it."""
_LOOK = "a person looks at what was learned from it"
_NAMED = re.compile(r"[\w~-]*[./@][\w./@~:-]*\w|--[\w-]+")
"""Files, hosts and options, as a line names them."""
_LATIN = "\u024f"
_TOKEN = re.compile(r"[A-Za-z0-9](?:[\w./:@#*%+-]*[A-Za-z0-9])?", re.ASCII)
_NAME_SIGN = re.compile(r"[^A-Za-z]|[A-Za-z][A-Z]")
"""What words of a sentence have not: signs, digits, capitals inside."""
_NUMBERED = re.compile(r"[!-~]*\d[!-~]*|[!-~]+:[!-~]+")
"""Ids, versions, dates, addresses."""


def _is_written(sentence: str) -> bool:
    """Whether it is a whole sentence of plain words, as people write and programs seldom do."""
    before, _, text = sentence.rstrip("\"')").rpartition(":")
    found = text.split()
    ended = text.endswith((".", "!")) or bool(languages(text, 2))
    whole = len(found) > LEAST_WRITTEN and found[0].istitle() and ended
    return whole and not _CODE_SIGN.search(text) and not _REPORTS.search(f"{before} {found[0]}")


_CODE_SIGN = re.compile(r"[\d/\\{}=<>|_]")
_REPORTS = re.compile(r"\b(?:error|warning|fatal|failed|failure|cannot|unable)\b", re.IGNORECASE)


def _is_order(sentence: str) -> bool:
    """Whether a sentence of an output tells somebody to do something. One in another language than
    English may; one that only asks for a look does no harm, nor does a program's report."""
    phrase = Phrase("", 1, sentence)
    if _only_looks(phrase) or is_report(sentence):
        return False
    requests = ASKS_TO_BE_LEARNED.search(folded_text(sentence))
    return bool(requests) or phrase.orders or not is_english(sentence) or _is_written(sentence)


def _only_looks(phrase: Phrase) -> bool:
    return phrase.looks and not denies(phrase.prose)


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
        whole=fix == _LOOK or kind == "language",
    )
