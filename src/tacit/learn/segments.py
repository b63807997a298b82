"""A session cut into tasks of one intent, each with how it ended and by what that is known.

A task begins where the user turns to something else: a prompt that shares few telling words with
what was asked, said and touched before, and that neither approves, corrects nor goes on with it.
How a task ended is told by evidence from outside, in this order: the tests or the build that ran
last, a verifier's verdict, the user's words after it, what was undone or asked for again. The
agent's own claim counts for nothing. Pure functions over a Trace.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.learn.digest import size_of
from tacit.learn.runs import is_own_tool
from tacit.learn.signals import step_names
from tacit.traces.command_purposes import purposes
from tacit.traces.observations import corrections, files, is_correction, paths_of
from tacit.traces.outcomes import Outcome, State, call_outcome
from tacit.traces.task_outcomes import TaskOutcome, session_outcome, task_outcome
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import ToolCall, Trace, Turn
from tacit.traces.typed_words import content_words

_ASKED = 600
"""Characters that are kept of what was asked."""
_MOST = 24
"""Purposes, files, tools and errors that are kept of a task, of each."""


class SegmentOutcome(msgspec.Struct, frozen=True):
    """How a task ended: `worked`, `failed` or `unclear`, by what that is known, and how surely."""

    state: State = "unclear"
    evidence: str = ""
    confidence: float = 0.0


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a session: consecutive turns with one intent."""

    session: str
    number: int
    """Which task of its session this is, from 1."""
    start: int
    stop: int
    """Its turns: `trace.turns[start:stop]`."""
    first: int = 0
    last: int = 0
    """The numbers of its first and its last turn, as steps are named by them."""
    project: str = ""
    model: str = ""
    at: datetime | None = None
    asked: str = ""
    """What the user asked for, in their words."""
    purposes: tuple[str, ...] = ()
    """What was run: purposes of commands, names of tools."""
    files: tuple[str, ...] = ()
    """Files that were changed, as seen from the project."""
    errors: tuple[str, ...] = ()
    """What failed, without what differs from time to time."""
    calls: int = 0
    size: int = 0
    """Characters of what was said, called and printed."""
    failures: tuple[str, ...] = ()
    """The steps that failed."""
    corrections: tuple[int, ...] = ()
    """The turns in which the user put something right."""
    skills: tuple[str, ...] = ()
    outcome: SegmentOutcome = SegmentOutcome()
    digest: str = ""
    """Changes when what happened in it does."""

    @property
    def id(self) -> str:
        """What names the task everywhere: its session and the turn that it begins with."""
        return f"{self.session}#{self.first}"


def segments(trace: Trace, cuts: Collection[int] = ()) -> list[Segment]:
    """The tasks of a session, in order. `cuts`: turns at which a reader saw another one begin."""
    starts = _starts(trace.turns, frozenset(cuts)) if cuts or not trace.head.verdict else [0]
    spans = [slice(*ends) for ends in pairwise([*starts, len(trace.turns)])] if trace.turns else []
    asked = [_asked(trace.turns[span]) for span in spans]
    marks = [task_outcome(turn) for turn in trace.turns]
    corrected = {found.turn for found in corrections(trace)}
    found = []
    for number, span in enumerate(spans, 1):
        again = _asked_again(asked[number - 1], asked[number : number + _SOON])
        outcome = _outcome(trace, marks, span, again=again)
        found.append(_segment(trace, number, span, outcome, corrected))
    return found


def segment_trace(trace: Trace, segment: Segment) -> Trace:
    """The part of a session that is this task."""
    return Trace(trace.head, trace.turns[segment.start : segment.stop])


# Where a task begins.

_GOES_ON = re.compile(
    r"^\W*(?:yes|yep|yeah|no|nope|ok(?:ay)?|oh|alright|i (?:see|understand|think)"
    r"|sure|go(?: ahead)?|continue|proceed|do it|done|right|correct|good|great|perfect"
    r"|thanks?|thank you|nice|try again|again|retry|wait|hmm|and|but|so|also"
    r"|then|why|what about|still|it|that|this|same|undo|revert|commit|push|merge|ship|looks?"
    r"|lgtm|weiter|ja|nein|oui|non|merci|danke|继续|好的|是的|はい|続けて)\b|^\W*\d+\W*$",
    re.IGNORECASE,
)
_TURNS_AWAY = re.compile(
    r"\b(?:(?:new|next|another|different|separate|unrelated|other) (?:task|thing|topic|issue|bug"
    r"|feature|question|job|one|subject|problem)|something else|switch(?:ing)? to|moving on|on to"
    r" the next|now (?:let['’]?s|please|i want|i['’]?d like|we need)|forget (?:that|about))\b",
    re.IGNORECASE,
)
_LEAST_WORDS = 3
"""Telling words that a prompt needs to be a request of its own."""
_SAME, _SAME_AFTER = 0.2, 0.4
"""The part of a prompt's telling words that must be known for it to go on with the task; after a
long pause, or where the user says that it is something else, more."""
_PAUSE = timedelta(hours=4)
_SOON = 3
"""Tasks after one among which the same request again tells that it had not been met."""


def _starts(turns: Sequence[Turn], cuts: frozenset[int]) -> list[int]:
    """The places at which tasks begin. A session that a verifier judged as one task is one."""
    found: list[int] = []
    known: set[str] = set()
    ended: datetime | None = None
    for at, turn in enumerate(turns):
        begins = not turn.helper and (turn.number in cuts or _turns_away(turn, known, ended))
        if not found or begins:
            found.append(at)
            known = set()
        known |= _known_words(turn)
        ended = turn.ended or ended
    return found


def _turns_away(turn: Turn, known: set[str], ended: datetime | None) -> bool:
    said = turn.prompt.strip()
    words = set(content_words(said[:_ASKED]))
    if not known or len(words) < _LEAST_WORDS:
        return False
    away = bool(_TURNS_AWAY.search(said[:200]))
    if not away and (_GOES_ON.match(said) or is_correction(said)):
        return False
    paused = bool(ended and turn.started and turn.started - ended > _PAUSE)
    same = len(words & known) / len(words)
    return same < (_SAME_AFTER if away or paused else _SAME)


def _known_words(turn: Turn) -> set[str]:
    """What a later prompt may speak of when it goes on: what was asked, said, run and touched."""
    texts = [turn.prompt[:4000], *(text[:4000] for text in turn.texts)]
    for call in turn.calls:
        texts += [os.path.basename(path).replace(".", " ") for path in paths_of(call)]
        texts += purposes(command_of(call)[:2000]) if call.kind == "shell" else [call.name]
    return set(content_words(" ".join(texts)))


# What a task was.


def _asked(turns: Sequence[Turn]) -> str:
    return next((turn.prompt for turn in turns if turn.prompt and not turn.helper), "")


def _segment(
    trace: Trace, number: int, span: slice, outcome: SegmentOutcome, corrected: Collection[int]
) -> Segment:
    part, head = Trace(trace.head, trace.turns[span]), trace.head
    turns = part.turns
    own = [turn for turn in turns if not turn.helper] or turns
    place = step_names(part)
    failed = [(c, found) for c in part.each_call() if (found := call_outcome(c)).failed]
    return Segment(
        session=trace.id,
        number=number,
        start=span.start,
        stop=span.stop,
        first=own[0].number,
        last=own[-1].number,
        project=head.project,
        model=head.model,
        at=turns[0].started or head.started,
        asked=shorten(clean(one_line(_asked(turns))), _ASKED),
        purposes=_few(name for call in part.each_call() for name in _purposes(call)),
        files=_few(_short(file.path) for file in files(part) if file.written),
        errors=_few(_signature(found.evidence or call.error) for call, found in failed),
        calls=len(part.calls),
        size=size_of(part),
        failures=tuple(place[id(call)] for call, _ in failed)[:_MOST],
        corrections=tuple(turn.number for turn in turns if turn.number in corrected),
        skills=tuple(dict.fromkeys(part.skills)),
        outcome=outcome,
        digest=_digest(turns),
    )


def _purposes(call: ToolCall) -> list[str]:
    if call.kind == "shell":
        return purposes(command_of(call)[:2000])
    return [call.name] if is_own_tool(call) else []


def _short(path: str) -> str:
    return os.path.basename(path) if os.path.isabs(path) else path


def _few(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(shorten(name, 120)) for name in names if name))[:_MOST]


def _signature(error: str) -> str:
    """An error in the few words that are the same each time."""
    text = re.sub(r"(?:/[\w.@+-]+)+|\b[\w.-]+\.\w{1,5}(?::\d+)*|0x[0-9a-f]+|\d+", " ", error)
    return " ".join(content_words(text)[:8])


def _digest(turns: Sequence[Turn]) -> str:
    made = hashlib.blake2b(digest_size=8)
    for turn in turns:
        made.update(msgspec.json.encode(turn, enc_hook=str))
    return made.hexdigest()


# How a task ended.

_UNDOES = re.compile(
    r"\bgit\s+(?:revert|reset\s+--hard|checkout\s+(?:--|\.)|restore\b(?!\s+--staged)|stash(?!\s+(?:pop"
    r"|list|show|apply)))|^\W*(?:undo|revert|roll ?back)\b",
    re.IGNORECASE,
)
_ASKED_AGAIN = 0.6


def _outcome(
    trace: Trace, marks: Sequence[TaskOutcome], span: slice, *, again: bool
) -> SegmentOutcome:
    """By the first kind of evidence that there is."""
    alone = span == slice(0, len(marks))
    checked = _checked(marks[span])
    verdict = _verdict(trace, alone=alone) if span.stop == len(marks) else None
    if checked is not None and verdict is not None and alone and verdict.state != checked.state:
        both = f"{checked.evidence}; but {verdict.evidence}"
        return SegmentOutcome(checked.state, both, _DISPUTED)
    if found := checked or verdict:
        return found
    said = marks[span.stop].before if span.stop < len(marks) else Outcome()
    said = said if said.state != "unclear" else _said_within(marks[span])
    if said.state != "unclear":
        return SegmentOutcome(said.state, f"the user said: {said.evidence}", _SAID)
    if undone := _undone(trace, span):
        return SegmentOutcome("failed", f"it was undone: {undone}", _UNDONE)
    return SegmentOutcome("failed", "it was asked for once more", _UNDONE) if again else _UNKNOWN


_CHECKED, _VERDICT, _SAID, _UNDONE, _SHARED, _DISPUTED = 0.9, 0.95, 0.8, 0.5, 0.6, 0.5
_UNKNOWN = SegmentOutcome()


def _said_within(marks: Sequence[TaskOutcome]) -> Outcome:
    """What the user said last of the work: a complaint stands until more is said, praise until
    more is changed."""
    for at in range(len(marks) - 1, 0, -1):
        said = marks[at].before
        stands = said.state == "failed" or not any(mark.changed for mark in marks[at:])
        if stands and said.state != "unclear":
            return said
    return Outcome()


def _checked(marks: Sequence[TaskOutcome]) -> SegmentOutcome | None:
    """The tests or the build that ran last; what passed before more was changed says nothing."""
    for mark in reversed(marks):
        if mark.own.state != "unclear":
            return SegmentOutcome(mark.own.state, mark.own.evidence, _CHECKED)
        if mark.changed:
            return None
    return None


def _verdict(trace: Trace, *, alone: bool) -> SegmentOutcome | None:
    """A verifier speaks of the session: of its one task, or less surely of the last of several."""
    if not trace.head.verdict:
        return None
    found = session_outcome((), trace.head.verdict)
    evidence = f"the verifier says {found.evidence}"
    return SegmentOutcome(found.state, evidence, _VERDICT if alone else _SHARED)


def _undone(trace: Trace, span: slice) -> str:
    """By what work was taken back: the words or the command that did it."""
    if any(file.written for file in files(Trace(trace.head, trace.turns[span]))):
        for turn in trace.turns[span.stop : span.stop + 1]:
            texts = [turn.prompt, *(command_of(c) for c in turn.calls[:3] if c.kind == "shell")]
            found = next((text for text in texts if _UNDOES.search(text[:400])), "")
            return shorten(one_line(clean(found)), 120)
    return ""


def _asked_again(asked: str, later: Sequence[str]) -> bool:
    """Whether a later task was asked for in much the same words."""
    words = set(content_words(asked[:_ASKED]))
    others = (set(content_words(text[:_ASKED])) for text in later)
    alike = (len(words & other) >= _ASKED_AGAIN * len(words | other) for other in others)
    return len(words) >= _LEAST_WORDS and any(alike)
