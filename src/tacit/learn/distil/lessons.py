"""A lesson: one line that a task teaches, with the words of the session that show it.

Owns what a lesson claims (do or do not, which commands, which order, under which condition), when
two lessons say the same and when they contradict each other, and the check of a lesson's quotes
against the session: a quote that does not stand where it is said to is worth nothing, nor is one of
the agent's own words. What lessons are found is `analyst`'s, how many sessions support one is
`support`'s.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.traces.command_purposes import purpose
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import Text, Told, ToolCall, Trace
from tacit.traces.typed_words import content_words

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
    first: bool = False
    """Whether the task first went wrong there."""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """One line, and what shows it in one task."""

    kind: Literal["do", "avoid", "know"] = "do"
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


WISHED, ASKED = " (the user's words)", "asked: "
"""How a line ends that is the user's own, and how `about` begins where they ask for it again and
again."""
BEFORE, CHECK, INSTEAD = "Before `", "Check the work with ", " fails as it is called; run "
RULE = ": keep to it from the start."


def shape(lesson: Lesson) -> str:
    """Which of the lines that counting writes it is like: one that the user wishes or asks for, an
    order, a check, the rule of a linter, or what to run instead; empty for none."""
    if lesson.text.endswith(WISHED) or lesson.about.startswith(ASKED):
        return WISHED
    if lesson.text.startswith((BEFORE, CHECK)):
        return BEFORE if lesson.text.startswith(BEFORE) else CHECK
    if lesson.text.endswith(RULE):
        return RULE
    return INSTEAD if INSTEAD in lesson.text else ""


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
    r"^.{0,11}\b(?:never|avoid|do\s+not|don['’]t|must\s+not|should\s+not|refrain)\b", re.I | re.S
)
_ORDERS = tuple(
    (re.compile(form.replace("~", r"[^`.;]{0,40}").replace("CODE", "`([^`]+)`"), re.I), turned)
    for form, turned in (
        (r"CODE~\bbefore\b~CODE", False),
        (r"\bbefore\b~CODE~CODE", True),
        (r"CODE~\bafter\b~CODE", True),
        (r"\bafter\b~CODE~CODE", False),
    )
)


def claim_of(lesson: Lesson) -> Claim:
    """What `lesson` claims."""
    text = lesson.text
    return Claim(
        avoids=lesson.kind == "avoid" or (lesson.kind == "do" and bool(_NEGATES.match(text))),
        asks=lesson.kind != "know",
        about=_named(lesson.about),
        when=frozenset(content_words(lesson.when)),
        forms=frozenset(_plain(form) for form in _CODE.findall(text)),
        order=_order(text),
        words=frozenset(content_words(_CODE.sub(" ", text))),
    )


def _plain(form: str) -> str:
    return " ".join(form.casefold().split()).strip(" .,:;")


def _named(form: str) -> str:
    return purpose(form) or _plain(form)


def _order(text: str) -> tuple[str, str] | None:
    """What is to come before what, where the line says so of two commands."""
    for pattern, turned in _ORDERS:
        if found := pattern.search(text):
            one, other = _named(found[1]), _named(found[2])
            return (other, one) if turned else (one, other)
    return None


_SAME, _SAME_FORMS = 0.6, 0.25
"""The part of all telling words of two lessons that they share when they say the same; less is
enough where both name the same code."""
_MASKED = 0.75
"""The part that they share when only what stands as code differs."""


def same(one: Claim, other: Claim) -> bool:
    """Whether two lessons say the same."""
    if not may_join(one, other) or one.forms != other.forms:
        return False
    if one.forms and not (one.words and other.words):
        return True
    return _alike(one.words, other.words) >= (_SAME_FORMS if one.forms else _SAME)


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
        if shared := one.forms & other.forms:
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
            for option in first | second:
                given, against = (first.get(option), second.get(option)), _no(option)
                if (all(given) and given[0] != given[1]) or against in first | second:
                    return f"{option} of {name}"
    return ""


def _no(option: str) -> str:
    return f"--no-{option.lstrip('-')}"


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


# Quotes, held against the session.

Steps = dict[str, list[tuple[Origin, str]]]
"""What stands in each step of a session, with whose it is."""


def steps_of(trace: Trace) -> Steps:
    found: Steps = {}
    for turn in trace.turns:
        if turn.prompt:
            found[str(turn.number)] = [("user", _folded(turn.prompt))]
        for number, step in enumerate(turn.steps, 1):
            own = found.setdefault(f"{turn.number}.{number}", [])
            if isinstance(step, ToolCall):
                own += _texts_of(step)
            elif isinstance(step, Text | Told):
                ours = isinstance(step, Text) or step.by in ("agent", "plan")
                own.append(("agent" if ours else "output", _folded(step.text)))
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


def check_quotes(lesson: Lesson, steps: Steps) -> Lesson | None:
    """The lesson with the quotes that hold; None where they are none, or only the agent's words.

    A quote that stands in another step than it says, and in one only, is put right.
    """
    each = (_held(quote, steps) for quote in lesson.quotes[: 2 * MOST_QUOTES])
    found = tuple(dict.fromkeys(quote for quote in each if quote is not None))
    shows = any(quote.by != "agent" for quote in found)
    if not shows or len(lesson.text.strip()) < _LEAST_TEXT:
        return None
    return msgspec.structs.replace(
        lesson,
        text=shorten(one_line(clean(lesson.text)), LONGEST),
        quotes=tuple(
            msgspec.structs.replace(quote, first=quote.step == lesson.wrong)
            for quote in found[:MOST_QUOTES]
        ),
    )


def _held(quote: LessonQuote, steps: Steps) -> LessonQuote | None:
    parts = [part.strip() for part in re.split(r"…|\.\.\.", _folded(quote.text)) if part.strip()]
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
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return True
