"""Who finds the lessons of a task: a model that is asked once, or counting where there is none.

Owns what an analyst is asked (a task that failed, one that succeeded, or a pair of both), how its
answer is read, and the check of each lesson: its quotes stand in the session, and its words did not
come from a tool's output alone (`changes/provenance`). Counting finds the user's lasting wishes and
refusals, commands that failed and what then worked, checks, orders of steps, and rules of linters;
each quotes its step like any other lesson.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from tacit.base.display import one_line, shorten
from tacit.base.prompts import prompt
from tacit.base.secrets import clean
from tacit.changes.provenance import witness
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import Witness
from tacit.learn.digest import digest
from tacit.learn.distil.lessons import (
    ASKED,
    BEFORE,
    CHECK,
    INSTEAD,
    LONGEST,
    RULE,
    WISHED,
    Lesson,
    LessonQuote,
    check_quotes,
    steps_of,
)
from tacit.learn.findings import EVERYBODYS_CHECKS, KNOWN_TO_ALL, is_goal, is_step
from tacit.learn.inquiry import Inquiry
from tacit.learn.lint_rules import rules_named
from tacit.learn.quotations import ONLY_WHEN_ASKED, REQUEST_PHRASES
from tacit.learn.runs import (
    CALLED_WRONGLY,
    Done,
    Run,
    done_by,
    forms_for,
    lasting_runs,
    runs_of_call,
)
from tacit.learn.segments import Segment, segment_trace
from tacit.learn.signals import step_names
from tacit.traces.observations import is_unsafe, recoveries
from tacit.traces.requests import requests
from tacit.traces.trace import ToolCall, Trace
from tacit.traces.wishes import wishes

MOST_LESSONS = 5
"""Lessons that are taken of one answer."""
SHOWN = 9_000
"""Characters of a digest that an analyst is shown; of each of a pair."""


# Asked of a model.


class AnalystAnswer(msgspec.Struct, frozen=True):
    """What an analyst answers. Each lesson is read by itself: a malformed one spoils no other."""

    lessons: tuple[Any, ...]
    cuts: tuple[int, ...] = ()


def inquiry_about(parts: Sequence[tuple[Trace, Segment]], model: str = "") -> Inquiry:
    """What is asked about a task, or about a pair of which the first failed.

    It holds the digest, without secrets, and no more of the session: this is what travels.
    """
    focus = "failed" if parts[0][1].outcome.state == "failed" else "worked"
    focus = prompt("learn", f"analyst_{'pair' if len(parts) == 2 else focus}").strip()
    shown = []
    for letter, (trace, task) in zip("AB", parts, strict=False):
        head = f"# Attempt {letter}\n" if len(parts) == 2 else ""
        ended = task.outcome.state if task.outcome.state != "unclear" else "nobody knows how"
        text = digest(segment_trace(trace, task), budget=SHOWN).text
        shown.append(f"{head}The task ended: {ended}.\n{text}")
    return Inquiry(prompt("learn", "analyst", focus=focus), "\n\n".join(shown), model)


Judged = tuple[Segment, tuple[Lesson, ...]]
"""A task, and its lessons that hold."""
_HANDED = f"{witness.RULE}-{witness.HANDED}"
_LETTER = re.compile(r"^\s*([ABab])[\s:.]*(?=\d)")


def judge_answer(
    answer: AnalystAnswer, parts: Sequence[tuple[Trace, Segment]]
) -> tuple[list[Judged], int]:
    """What holds of an answer, for each task that it is about, and how many lessons do not.

    Of a pair, a lesson belongs to the attempt in which most of its quotes stand, so that it is not
    held for what the other one shows; where both do, to the one that succeeded. One whose words
    came from a tool's output is dropped.
    """
    attempts = {letter: _Attempt(*part) for letter, part in zip("AB", parts, strict=False)}
    steps = {f"{at} {step}": own for at, one in attempts.items() for step, own in one.steps.items()}
    kept: dict[str, list[Lesson]] = {letter: [] for letter in attempts}
    given = answer.lessons[:MOST_LESSONS]
    for one in given:
        try:
            lesson = _lettered(msgspec.convert(one, Lesson, strict=False), "".join(attempts))
        except msgspec.ValidationError:
            continue
        if (held := check_quotes(lesson, steps)) is not None:
            shows = [quote.step[0] for quote in held.quotes if quote.by != "agent"]
            best = max(attempts, key=lambda letter: (shows.count(letter), letter))
            own = (q for q in held.quotes if q.step[0] == best)
            held = replace(held, quotes=tuple(replace(q, step=q.step[2:]) for q in own))
            kept[best] += attempts[best].own(held)
    judged = [(attempts[letter].task, tuple(found)) for letter, found in kept.items()]
    return judged, len(given) - sum(map(len, kept.values()))


def _lettered(lesson: Lesson, letters: str) -> Lesson:
    """A lesson whose steps name the attempt; a quote that names none may be of each."""

    def named(step: str) -> Iterator[str]:
        found = _LETTER.match(step)
        for letter in found[1].upper() if found else letters:
            yield f"{letter} {_LETTER.sub('', step).strip()}"

    quotes = (LessonQuote(step, q.text) for q in lesson.quotes for step in named(q.step))
    about, when = (shorten(one_line(text), 80) for text in (lesson.about, lesson.when))
    first = next(named(lesson.wrong)) if lesson.wrong else ""
    return replace(lesson, about=about, when=when, quotes=tuple(quotes), wrong=first)


class _Attempt:
    """Holds lessons against one task."""

    def __init__(self, trace: Trace, task: Segment) -> None:
        self.task = task
        self._part = segment_trace(trace, task)
        self.steps = steps_of(self._part)
        # The turns in which the user put something right, or said how it is to be from now on.
        said = () if trace.head.handed else (*task.corrections, *(w.turn for w in wishes(trace)))
        self._said = frozenset(map(str, said))

    @cached_property
    def _witness(self) -> Witness:
        return Witness(sources(self._part))

    def own(self, lesson: Lesson) -> Iterator[Lesson]:
        """The lesson where it is the user's or the agent's own, with whether the user said it."""
        line = f"{lesson.text} {lesson.when}".strip()
        text = f"---\nname: lesson\ndescription: A lesson.\n---\n\n- {line}\n"
        for found in self._witness({"SKILL.md": text.encode()}, learned=True).findings:
            # A person sees what reaches for something, and what a file says that was handed in.
            seen = found.rule.startswith("reach:") or found.rule == _HANDED
            if found.severity != "note" and not (found.severity == "ask" and seen):
                return
        told = (q for q in lesson.quotes if q.by == "user" and not q.text.endswith(("?", "？")))
        by_user = (quote.step.partition(".")[0] for quote in told)
        yield replace(lesson, said=not self._said.isdisjoint(by_user))


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

    def lessons(self, task: Segment) -> tuple[Lesson, ...]:
        """The lessons of one task, each once."""
        part = segment_trace(self._trace, task)
        turns = {turn.number for turn in part.turns}
        here = {id(call) for call in part.each_call()}
        ended_well = task.outcome.state != "failed"
        runs = [run for run in self._runs if id(run.call) in here]
        found = [
            *self._wished(turns),
            *self._asked(turns),
            *(lesson for run in runs for lesson in self._shown_by(run, ended_well)),
            *(self._orders(part) if ended_well else ()),
        ]
        return tuple({(one.kind, one.text): one for one in reversed(found)}.values())

    def _wished(self, turns: set[int]) -> Iterator[Lesson]:
        # Of a conversation without a folder nobody knows whether it was the user who spoke.
        for wish in self._wishes if self._trace.project else ():
            if wish.turn in turns:
                text = shorten(one_line(clean(wish.text)), LONGEST - 30)
                quote = LessonQuote(str(wish.turn), shorten(text, 200), "user")
                said = not self._trace.head.handed
                yield Lesson(text=f"“{text}”{WISHED}", quotes=(quote,), said=said)

    def _asked(self, turns: set[int]) -> Iterator[Lesson]:
        for request in self._requests:
            if act := ONLY_WHEN_ASKED.get(request.verb):
                text = f"{act} when the user says so, not before."
            elif phrase := REQUEST_PHRASES.get((request.verb, request.thing)):
                text = f"{phrase[:1].upper()}{phrase[1:]}: the user asks for it."
            else:
                continue
            if request.turn in turns:
                quote = LessonQuote(str(request.turn), shorten(clean(request.text), 200), "user")
                about = f"{ASKED}{request.verb} {request.thing}".strip()
                yield Lesson(text=text, about=about, quotes=(quote,))

    def _shown_by(self, run: Run, ended_well: bool) -> Iterator[Lesson]:
        """What one run shows: that the user refused it, that it is a check, what else works."""
        state, about, quote = run.outcome.state, run.purpose, self._quote(run.call, run.form)
        if state == "refused":
            words = clean(run.call.reply)
            said = (LessonQuote(quote.step, shorten(words, 200), "user"),) if words else ()
            text = f"Ask before running `{about}`: the user refused it."
            lasts = any(words.casefold() in wish.text.casefold() for wish in self._wishes)
            lasts = bool(words) and lasts and not self._trace.head.handed
            yield Lesson(kind="avoid", text=text, about=about, quotes=(*said, quote), said=lasts)
        elif state == "failed" and run.call.kind == "shell":
            yield from self._mended(run, quote)
        elif (
            state == "worked" and ended_well and run.work and not EVERYBODYS_CHECKS.fullmatch(about)
        ):
            yield Lesson(text=f"{CHECK}{_code(about)}.", about=about, quotes=(quote,))
        for rule in dict(rules_named(run.work, run.call.result)) if run.work == "lint" else ():
            text = f"{_code(about)} objects to {_code(rule)}{RULE}"
            shows = LessonQuote(quote.step, rule, "output")
            yield Lesson(kind="know", text=text, about=about, quotes=(shows,))

    def _mended(self, run: Run, quote: LessonQuote) -> Iterator[Lesson]:
        """A command that failed as it was called, and the one that then worked for the same end."""
        mend = self._mends.get(id(run.call))
        wrong_call = CALLED_WRONGLY.search(f"{run.call.error}\n{run.call.result[:4000]}")
        by_form = mend is not None and not mend.edited and run.work in (None, "build")
        if mend is not None and (wrong_call or by_form):
            for form in list(forms_for(run, mend.succeeded))[:1]:
                text = f"{_code(run.form)}{INSTEAD}{_code(form)}."
                quotes = (quote, self._quote(mend.succeeded, form))
                yield Lesson(text=text, about=run.purpose, quotes=quotes)

    def _orders(self, part: Trace) -> Iterator[Lesson]:
        """What was done before something that others see."""
        way: list[tuple[Done, ToolCall]] = []
        for call in part.each_call():
            for goal in done_by(call, runs_of_call(call, part.id, 0, part.project), part.project):
                for done, earlier in way[-_STEPS_BEFORE:] if is_goal(goal) else ():
                    if done.key not in (goal.key, *KNOWN_TO_ALL) and done.tool == goal.tool:
                        does = "edit" if done.key.startswith("edit ") else "run"
                        step = _code(done.key.removeprefix("edit "))
                        text = f"{BEFORE[:-1]}{_code(goal.key)}, {does} {step}."
                        quotes = (self._quote(earlier, done.form), self._quote(call, goal.form))
                        yield Lesson(text=text, about=goal.key, quotes=quotes)
                if is_step(goal) and not is_unsafe(goal.form):
                    way.append((goal, call))

    def _quote(self, call: ToolCall, form: str) -> LessonQuote:
        return LessonQuote(self._place[id(call)], shorten(one_line(clean(form)), 200), "call")


_STEPS_BEFORE = 6


def _code(text: str) -> str:
    return f"`{shorten(one_line(text), 140).replace('`', '')}`"
