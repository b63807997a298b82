"""The check itself: each phrase of a skill against both sides of the sessions it came from.

A phrase that tells somebody to do something, whose words stand together in what a tool printed and
not in what was said or done, came from the tool. So does a command, an address or an option that
nobody but a tool ever mentioned. What is plain is refused, which a model can mend by leaving it
out; what is likely waits for a person.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from tacit.changes.scan import scan
from tacit.changes.scan.report import Finding, Report, Severity, in_order
from tacit.learn.provenance.matching import Body
from tacit.learn.provenance.phrases import Phrase, phrases
from tacit.learn.provenance.plants import around, asking
from tacit.learn.provenance.sources import Sources
from tacit.learn.provenance.tokens import acting
from tacit.learn.provenance.wording import plain, telling, weight

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
    """Knows the sessions behind a change. The same answers each time; safe from any thread.

    As the gate's scanner it adds its findings to those of the scan.
    """

    def __init__(self, heard: Sources) -> None:
        self._done = Body(heard.done)
        self._printed = Body(heard.printed, disguised=True)
        self._asking = asking(self._printed)
        self._hinted = Body(around(self._printed))
        self._known: set[str] = set()

    def knows(self, files: Iterable[Mapping[str, bytes]]) -> None:
        """What stood in a skill before is not held against an edit of it."""
        for old in files:
            self._known |= {plain(phrase.text) for phrase in phrases(old)}

    def __call__(
        self, files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()
    ) -> Report:
        report = scan(files, learned=learned, executable=executable)
        return Report(in_order([*report.findings, *self.findings(files)]))

    def findings(self, files: Mapping[str, bytes]) -> list[Finding]:
        """What came from a tool alone, gravest first; nothing where all has another source."""
        new = [p for p in phrases(files) if plain(p.text) not in self._known]
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

    def heard(self, text: str) -> str:
        """Why a fact cannot be kept: it came from a tool, not from the user. Empty for none."""
        for line in text.splitlines():
            words = telling(line)
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
        words = telling(phrase.prose)
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
        words = telling(command)
        if len(words) < 2 or self._done.best(words).share >= 0.6:
            return
        printed = self._printed.best(words)
        whole = bool(self._printed.holds(plain(command)))
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
        for token in sorted(acting(phrase.prose)):
            folded = plain(token)
            if self._done.holds(folded):
                continue
            if step := self._printed.holds(folded):
                yield _finding(
                    phrase,
                    "address",
                    "ask",
                    f"'{token[:60]}' stands only in a tool's output ({step})",
                )


def _says(step: str, more: str = "") -> str:
    told = f" and {more}" if more else ""
    return (
        f"this is what a tool printed ({step}){told}; neither the user said it nor the agent did it"
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
