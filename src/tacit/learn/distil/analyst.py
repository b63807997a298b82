"""Who finds the lessons of a task: a model that is asked once, or counting where there is none.

Owns what an analyst is asked (a task that failed, one that succeeded, or a pair of both), how its
answer is read, and the check of each lesson: its quotes stand in the session, and its words did not
come from a tool's output alone (`changes/provenance`). Counting finds the user's lasting wishes and
refusals, commands that failed and what then worked, checks, orders of steps, and rules of linters;
each quotes its step like any other lesson.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.prompts import prompt
from tacit.base.secrets import clean
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import HANDED, RULE, Witness
from tacit.learn.digest import digest
from tacit.learn.distil.inquiry import Inquiry
from tacit.learn.distil.lessons import (
    LONGEST,
    Lesson,
    LessonQuote,
    check_quotes,
    steps_of,
)
from tacit.learn.distil.segments import Segment, segment_trace
from tacit.learn.drafts import ONLY_WHEN_ASKED, REQUEST_PHRASES
from tacit.learn.findings import EVERYBODYS_CHECKS, KNOWN_TO_ALL, is_goal
from tacit.learn.rates import (
    CALLED_WRONGLY,
    Done,
    Run,
    done_by,
    forms_for,
    lasting_runs,
    rules_named,
    runs_of_call,
)
from tacit.learn.signals import step_names
from tacit.traces.observations import recoveries
from tacit.traces.trace import ToolCall, Trace
from tacit.traces.wishes import requests, wishes

MOST_LESSONS = 5
"""Lessons that are taken of one answer."""
_DIGEST = 9_000
"""Characters of a digest that an analyst is shown; of each of a pair."""
ASKED = "asked: "
"""How `about` begins where a lesson is what the user asks for again and again."""


# Asked of a model.


class AnalystAnswer(msgspec.Struct, frozen=True):
    """What an analyst answers. Each lesson is read by itself: a malformed one spoils no other."""

    lessons: tuple[Any, ...]
    cuts: tuple[int, ...] = ()


def inquiry_about(parts: Sequence[tuple[Trace, Segment]], model: str = "") -> Inquiry:
    """What is asked about a task, or about a pair of which the first failed.

    It holds the digest, without secrets, and no more of the session: this is what travels.
    """
    if len(parts) == 2:
        focus = "analyst_pair"
    else:
        focus = "analyst_failed" if parts[0][1].outcome.state == "failed" else "analyst_worked"
    instructions = prompt("learn", "analyst", focus=prompt("learn", focus).strip())
    shown = []
    for letter, (trace, task) in zip("AB", parts, strict=False):
        head = f"# Attempt {letter}\n" if len(parts) == 2 else ""
        ended = task.outcome.state if task.outcome.state != "unclear" else "nobody knows how"
        told = f"{head}The task ended: {ended}."
        shown.append(f"{told}\n{digest(segment_trace(trace, task), budget=_DIGEST).text}")
    return Inquiry(instructions, "\n\n".join(shown), model)


class Judged(msgspec.Struct, frozen=True):
    """The lessons of one task that hold, and why others do not."""

    task: Segment
    lessons: tuple[Lesson, ...]
    dropped: tuple[str, ...] = ()


_LETTER = re.compile(r"^\s*([ABab])[\s:.]*(?=\d)")


def judge_answer(answer: AnalystAnswer, parts: Sequence[tuple[Trace, Segment]]) -> list[Judged]:
    """What holds of an answer, for each task that it is about.

    Of a pair, a lesson belongs to the attempt in which most of its quotes stand, so that it is not
    held for what the other one shows; where both do, to the one that succeeded. One whose words
    came from a tool's output is dropped.
    """
    readers = [_Reader(trace, task) for trace, task in parts]
    kept: list[list[Lesson]] = [[] for _ in parts]
    dropped: list[list[str]] = [[] for _ in parts]
    for given_lesson in answer.lessons[:MOST_LESSONS]:
        try:
            found = msgspec.convert(given_lesson, Lesson, strict=False)
        except msgspec.ValidationError as error:
            dropped[0].append(f"it is no lesson: {error}")
            continue
        given = [_for_part(found, letter) for letter, _ in zip("AB", parts, strict=False)]
        held = [reader.check(lesson) for reader, lesson in zip(readers, given, strict=True)]
        best = max(range(len(parts)), key=lambda at: (_shown(held[at][0]), at))
        lesson, why = held[best]
        if lesson is None:
            dropped[best].append(f"{shorten(one_line(found.text), 80)}: {why}")
        else:
            kept[best].append(lesson)
    tasks = [task for _, task in parts]
    return [
        Judged(task, tuple(k), tuple(d)) for task, k, d in zip(tasks, kept, dropped, strict=True)
    ]


def _shown(lesson: Lesson | None) -> int:
    return len(lesson.quotes) if lesson is not None else -1


def _for_part(found: Lesson, letter: str) -> Lesson:
    """A lesson with the quotes that are, or may be, of the attempt `letter`."""
    quotes = []
    for quote in found.quotes:
        named = _LETTER.match(quote.step)
        if named is None or named[1].upper() == letter:
            quotes.append(LessonQuote(_LETTER.sub("", quote.step).strip(), quote.text))
    return msgspec.structs.replace(
        found,
        about=shorten(one_line(found.about), 80),
        when=shorten(one_line(found.when), 80),
        quotes=tuple(quotes),
        wrong=_LETTER.sub("", found.wrong).strip(),
    )


class _Reader:
    """Holds lessons against one task."""

    def __init__(self, trace: Trace, task: Segment) -> None:
        self._part = segment_trace(trace, task)
        self._steps = steps_of(self._part)
        self._corrected = _corrected(trace, task)
        self._witness: Witness | None = None

    def check(self, lesson: Lesson) -> tuple[Lesson | None, str]:
        """The lesson as far as it holds, or why it does not."""
        held, why = check_quotes(lesson, self._steps)
        if held is not None:
            self._witness = self._witness or Witness(sources(self._part))
            why = planted(held, self._witness)
        if held is None or why:
            return None, why
        said = any(_turn(q.step) in self._corrected for q in held.quotes if q.by == "user")
        return msgspec.structs.replace(held, said=said and not self._part.head.handed), ""


def planted(lesson: Lesson, witness: Witness) -> str:
    """Why a lesson is not the user's or the agent's own; empty where it is."""
    line = f"{lesson.text} {lesson.when}".strip()
    files = {"SKILL.md": f"---\nname: lesson\ndescription: A lesson.\n---\n\n- {line}\n".encode()}
    for found in witness(files, learned=True).findings:
        # A person sees what reaches for something, and what a file says that was handed in.
        seen = found.rule.startswith("reach:") or found.rule == f"{RULE}-{HANDED}"
        if found.severity != "note" and not (found.severity == "ask" and seen):
            return found.message
    return ""


def _corrected(trace: Trace, task: Segment) -> frozenset[int]:
    """The turns in which the user put something right, or said how it is to be from now on."""
    return frozenset((*task.corrections, *(wish.turn for wish in wishes(trace))))


def _turn(step: str) -> int:
    number = step.partition(".")[0]
    return int(number) if number.isdigit() else -1


# By counting.


class CountingAnalyst:
    """What one session shows by counting alone, task by task."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._place = step_names(trace)
        self._runs = lasting_runs(trace)
        self._wishes = wishes(trace)
        self._requests = requests(trace)
        self._mends = {id(m.failed): m for m in recoveries(trace)}

    def lessons(self, task: Segment) -> list[Lesson]:
        """The lessons of one task, each once."""
        part = segment_trace(self._trace, task)
        turns = {turn.number for turn in part.turns}
        here = {id(call) for call in part.each_call()}
        runs = [run for run in self._runs if id(run.call) in here]
        found: dict[tuple[str, str], Lesson] = {}
        for lesson in (
            *self._wished(turns),
            *self._asked(turns),
            *self._refused(runs),
            *self._failing(runs),
            *self._rules(runs),
            *(self._ways(runs, part) if task.outcome.state != "failed" else ()),
        ):
            found.setdefault((lesson.kind, lesson.text), lesson)
        return list(found.values())

    def _wished(self, turns: set[int]) -> Iterator[Lesson]:
        for wish in self._wishes:
            # Of a conversation without a folder nobody knows whether it was the user who spoke.
            if wish.turn in turns and self._trace.project:
                text = shorten(one_line(clean(wish.text)), LONGEST - 30)
                quote = LessonQuote(str(wish.turn), shorten(text, 200), "user")
                line = f"“{text}” (the user's words)"
                yield Lesson(
                    kind="do", text=line, quotes=(quote,), said=not self._trace.head.handed
                )

    def _asked(self, turns: set[int]) -> Iterator[Lesson]:
        for request in self._requests:
            if request.turn not in turns:
                continue
            quote = LessonQuote(str(request.turn), shorten(clean(request.text), 200), "user")
            about = f"{ASKED}{request.verb} {request.thing}".strip()
            if act := ONLY_WHEN_ASKED.get(request.verb):
                text = f"{act} when the user says so, not before."
            elif phrase := REQUEST_PHRASES.get((request.verb, request.thing)):
                text = f"{phrase[:1].upper()}{phrase[1:]}: the user asks for it."
            else:
                continue
            yield Lesson(kind="do", text=text, about=about, quotes=(quote,))

    def _refused(self, runs: Sequence[Run]) -> Iterator[Lesson]:
        lasting = "\n".join(wish.text.casefold() for wish in self._wishes)
        for run in runs:
            if run.outcome.state == "refused":
                words = clean(run.call.reply)
                quotes = [self._quote(run.call, run.form)]
                if words:
                    said = LessonQuote(self._place[id(run.call)], shorten(words, 200), "user")
                    quotes.insert(0, said)
                yield Lesson(
                    kind="avoid",
                    text=f"Ask before running `{run.purpose}`: the user refused it.",
                    about=run.purpose,
                    quotes=tuple(quotes),
                    said=bool(words)
                    and words.casefold() in lasting
                    and not self._trace.head.handed,
                )

    def _failing(self, runs: Sequence[Run]) -> Iterator[Lesson]:
        """A command that failed as it was called, and the one that then worked for the same end."""
        for run in runs:
            mend = self._mends.get(id(run.call))
            if run.outcome.state != "failed" or run.call.kind != "shell":
                continue
            wrong_call = bool(CALLED_WRONGLY.search(f"{run.call.error}\n{run.call.result[:4000]}"))
            by_form = mend is not None and not mend.edited and run.work in (None, "build")
            if mend is None or not (wrong_call or by_form):
                continue
            for form in list(forms_for(run, mend.succeeded))[:1]:
                failed, worked = _code(run.form), _code(form)
                quotes = (self._quote(run.call, run.form), self._quote(mend.succeeded, form))
                text = f"{failed} fails as it is called; run {worked}."
                yield Lesson(kind="do", text=text, about=run.purpose, quotes=quotes)

    def _ways(self, runs: Sequence[Run], part: Trace) -> Iterator[Lesson]:
        """How work is done, by tasks that did not fail."""
        yield from self._checks(runs)
        yield from self._orders(part)

    def _checks(self, runs: Sequence[Run]) -> Iterator[Lesson]:
        for run in runs:
            ours = run.work is not None and not EVERYBODYS_CHECKS.fullmatch(run.purpose)
            if ours and run.outcome.state == "worked":
                quote = self._quote(run.call, run.form)
                text = f"Check the work with {_code(run.purpose)}."
                yield Lesson(kind="do", text=text, about=run.purpose, quotes=(quote,))

    def _rules(self, runs: Sequence[Run]) -> Iterator[Lesson]:
        for run in runs:
            for rule in dict(rules_named(run)):
                quote = LessonQuote(self._place[id(run.call)], rule, "output")
                text = f"{_code(run.purpose)} objects to {_code(rule)}: keep to it from the start."
                yield Lesson(kind="know", text=text, about=run.purpose, quotes=(quote,))

    def _orders(self, part: Trace) -> Iterator[Lesson]:
        """What was done before something that others see."""
        way: list[tuple[Done, ToolCall]] = []
        for call in part.each_call():
            for done in done_by(call, runs_of_call(call, part.id, 0, part.project), part.project):
                if is_goal(done):
                    yield from self._before(done, call, way)
                way.append((done, call))

    def _before(
        self, goal: Done, call: ToolCall, way: Sequence[tuple[Done, ToolCall]]
    ) -> Iterator[Lesson]:
        for done, earlier in way[-_STEPS_BEFORE:]:
            if done.key in (goal.key, *KNOWN_TO_ALL) or done.tool != goal.tool:
                continue
            does = "edit" if done.key.startswith("edit ") else "run"
            step = done.key.removeprefix("edit ")
            quotes = (self._quote(earlier, done.form), self._quote(call, goal.form))
            text = f"Before {_code(goal.key)}, {does} {_code(step)}."
            yield Lesson(kind="do", text=text, about=goal.key, quotes=quotes)

    def _quote(self, call: ToolCall, form: str) -> LessonQuote:
        return LessonQuote(self._place[id(call)], shorten(one_line(clean(form)), 200), "call")


_STEPS_BEFORE = 6


def _code(text: str) -> str:
    return f"`{shorten(one_line(text), 140).replace('`', '')}`"
