"""A lesson: one line that a task teaches, with the words of the session that show it.

Owns what a lesson claims (do or do not, which commands, which order, under which condition), when
two lessons say the same and when they contradict each other, and the check of a lesson's quotes
against the session: a quote that does not stand where it is said to is worth nothing, nor is one of
the agent's own words. What lessons are found is `analyst`'s, how many sessions support one is
`support`'s.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.traces.command_purposes import purpose
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import Text, Told, ToolCall, Trace
from tacit.traces.wishes import content_words

LessonKind = Literal["do", "avoid", "know"]
Origin = Literal["user", "call", "output", "agent"]
LONGEST = 320
"""Characters of a lesson's line."""
MOST_QUOTES = 4
_LEAST_QUOTE, _LEAST_TEXT = 6, 8


class LessonQuote(msgspec.Struct, frozen=True):
    """Words of a session, the step that they stand in, and whose they are."""

    step: str
    text: str
    by: Origin = "call"


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One line, and what shows it in one task."""

    kind: LessonKind = "do"
    text: str
    about: str = ""
    """The command, the tool or the thing that it is about."""
    when: str = ""
    """The condition under which it holds; empty for always."""
    quotes: tuple[LessonQuote, ...] = ()
    wrong: str = ""
    """Of a task that failed, the earliest step that went wrong."""
    said: bool = False
    """Whether the user's own words ask for it."""


class Claim(msgspec.Struct, frozen=True):
    """What a lesson says, as far as a program can compare it."""

    avoids: bool
    asks: bool
    """Whether it says to do something or not to, rather than how something is."""
    about: str
    when: frozenset[str]
    forms: frozenset[str]
    """What stands in it as code."""
    order: tuple[str, str] | None
    """The purpose that comes first, and the one that comes after it."""
    words: frozenset[str]


_CODE = re.compile(r"`+([^`]+?)`+")
_NEGATES = re.compile(
    r"\b(?:never|avoid|do\s+not|don['’]t|must\s+not|should\s+not|refrain)\b", re.I
)
_BEFORE = re.compile(r"`([^`]+)`[^`.;]{0,40}\bbefore\b[^`.;]{0,40}`([^`]+)`", re.I)
_BEFORE_FIRST = re.compile(r"\bbefore\b[^`.;]{0,40}`([^`]+)`[^`.;]{0,40}`([^`]+)`", re.I)
_AFTER = re.compile(r"`([^`]+)`[^`.;]{0,40}\bafter\b[^`.;]{0,40}`([^`]+)`", re.I)
_AFTER_FIRST = re.compile(r"\bafter\b[^`.;]{0,40}`([^`]+)`[^`.;]{0,40}`([^`]+)`", re.I)


def claim_of(lesson: Lesson) -> Claim:
    """What `lesson` claims."""
    text = lesson.text
    forms = frozenset(_plain(form) for form in _CODE.findall(text))
    avoids = lesson.kind == "avoid" or (lesson.kind == "do" and _starts_negated(text))
    prose = _CODE.sub(" ", text)
    about = purpose(lesson.about) or _plain(lesson.about)
    when = frozenset(content_words(lesson.when))
    asks = lesson.kind != "know"
    words = frozenset(content_words(prose))
    return Claim(avoids, asks, about, when, forms, _order(text), words)


def _starts_negated(text: str) -> bool:
    found = _NEGATES.search(text)
    return found is not None and found.start() < 12


def _plain(form: str) -> str:
    return " ".join(form.casefold().split()).strip(" .,:;")


def _order(text: str) -> tuple[str, str] | None:
    """What is to come before what, where the line says so of two commands."""
    if found := _BEFORE.search(text):
        first, then = found[1], found[2]
    elif (found := _BEFORE_FIRST.search(text)) or (found := _AFTER.search(text)):
        first, then = found[2], found[1]
    elif found := _AFTER_FIRST.search(text):
        first, then = found[1], found[2]
    else:
        return None
    return purpose(first) or _plain(first), purpose(then) or _plain(then)


_SAME, _SAME_FORMS = 0.6, 0.25
"""The part of all telling words of two lessons that they share when they say the same; less is
enough where both name the same code."""
_MASKED = 0.75
"""The part that they share when only what stands as code differs."""


def same(one: Claim, other: Claim) -> bool:
    """Whether two lessons say the same."""
    if one.avoids != other.avoids or one.when != other.when or one.order != other.order:
        return False
    if one.forms != other.forms:
        return False
    alike = _alike(one.words, other.words)
    if one.forms:
        return alike >= _SAME_FORMS or not (one.words and other.words)
    return alike >= _SAME


def may_join(one: Claim, other: Claim) -> bool:
    """Whether a reader may say that two lessons are one: they must not pull in two directions."""
    if one.avoids != other.avoids or one.order != other.order or one.when != other.when:
        return False
    return not one.forms or not other.forms or bool(one.forms & other.forms)


def likeness(one: Claim, other: Claim) -> float:
    """How near two lessons are, from 0 to 1: whether a reader should see them together."""
    words = _alike(one.words | one.forms, other.words | other.forms)
    return max(words, 0.5 if one.about and one.about == other.about else 0.0)


def contradiction(one: Claim, other: Claim) -> str:
    """Why two lessons cannot both be followed; empty where they can."""
    if not (one.asks and other.asks):
        return ""
    if one.order and other.order and one.order == other.order[::-1]:
        return f"the order of {one.order[0]} and {one.order[1]}"
    if one.avoids != other.avoids:
        shared = one.forms & other.forms
        if shared:
            return f"to do or not to do: {min(shared)}"
        if not one.forms and not other.forms and _alike(one.words, other.words) >= _SAME:
            return f"to do or not to do: {one.about or other.about or 'the same'}"
        return ""
    if one.avoids or one.order or other.order:
        return ""
    if option := _other_option(one.forms, other.forms):
        return option
    other_code = one.forms and other.forms and one.forms.isdisjoint(other.forms)
    same_about = one.about and one.about == other.about
    if other_code and same_about and _alike(one.words, other.words) >= _MASKED:
        return f"which of {min(one.forms)} and {min(other.forms)}, for {one.about}"
    return ""


_OPTION = re.compile(r"(--?[a-z][\w-]*)(?:[= ](?!-)([^\s]+))?")


def _other_option(one: frozenset[str], other: frozenset[str]) -> str:
    """The option that the same command is given with another value, or for and against."""
    for a in one - other:
        for b in other - one:
            if not (name := purpose(a)) or name != purpose(b):
                continue
            first, second = dict(_OPTION.findall(a)), dict(_OPTION.findall(b))
            for option, value in first.items():
                if option in second and value and second[option] and value != second[option]:
                    return f"{option} of {name}"
                if f"--no-{option.lstrip('-')}" in second:
                    return f"{option} of {name}"
            if any(f"--no-{option.lstrip('-')}" in first for option in second):
                return f"an option of {name}"
    return ""


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


# Quotes, held against the session.


def steps_of(trace: Trace) -> dict[str, list[tuple[Origin, str]]]:
    """What stands in each step of a session, with whose it is."""
    found: dict[str, list[tuple[Origin, str]]] = {}
    for turn in trace.turns:
        if turn.prompt:
            found.setdefault(str(turn.number), []).append(("user", _folded(turn.prompt)))
        for number, step in enumerate(turn.steps, 1):
            own = found.setdefault(f"{turn.number}.{number}", [])
            if isinstance(step, ToolCall):
                own += _texts_of(step)
            elif isinstance(step, Text):
                own.append(("agent", _folded(step.text)))
            elif isinstance(step, Told):
                by: Origin = "agent" if step.by in ("agent", "plan") else "output"
                own.append((by, _folded(step.text)))
    return found


def _texts_of(call: ToolCall) -> Iterator[tuple[Origin, str]]:
    if call.reply:
        yield "user", _folded(call.reply)
    given = msgspec.json.encode(call.arguments, enc_hook=str).decode()
    yield "call", _folded(f"{call.name} {command_of(call)} {given}")
    yield "output", _folded(f"{call.result}\n{call.error}")


def _folded(text: str) -> str:
    """As quotes are compared: in small letters, without marks, each gap one space."""
    return " ".join(re.sub(r"[\"'`“”‘’\\]", "", clean(text)).casefold().split())


def check_quotes(
    lesson: Lesson, steps: Mapping[str, list[tuple[Origin, str]]]
) -> tuple[Lesson | None, str]:
    """The lesson with the quotes that hold, or why it is worth nothing.

    A quote that stands in another step than it says, and in one only, is put right.
    """
    each = (_held(quote, steps) for quote in lesson.quotes[: 2 * MOST_QUOTES])
    found = [quote for quote in each if quote is not None]
    if len(lesson.text.strip()) < _LEAST_TEXT:
        return None, "it says too little"
    if not found:
        return None, "none of its quotes stands in the session"
    if all(quote.by == "agent" for quote in found):
        return None, "only the agent's own words show it"
    said = any(quote.by == "user" for quote in found)
    wrong = lesson.wrong if lesson.wrong in steps else ""
    kept = tuple(dict.fromkeys(found))[:MOST_QUOTES]
    text = shorten(one_line(clean(lesson.text)), LONGEST)
    replace = msgspec.structs.replace
    return replace(lesson, text=text, quotes=kept, said=said, wrong=wrong), ""


def _held(quote: LessonQuote, steps: Mapping[str, list[tuple[Origin, str]]]) -> LessonQuote | None:
    parts = [part for part in re.split(r"…|\.\.\.", _folded(quote.text)) if part.strip()]
    if sum(map(len, parts)) < _LEAST_QUOTE:
        return None
    text = shorten(one_line(clean(quote.text)), 200)
    for by, stands in steps.get(quote.step, ()):
        if _stands(parts, stands):
            return LessonQuote(quote.step, text, by)
    elsewhere = [(step, by) for step, own in steps.items() for by, t in own if _stands(parts, t)]
    return LessonQuote(elsewhere[0][0], text, elsewhere[0][1]) if len(elsewhere) == 1 else None


def _stands(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        found = text.find(part.strip(), at)
        if found < 0:
            return False
        at = found + len(part.strip())
    return True
