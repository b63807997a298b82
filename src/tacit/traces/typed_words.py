"""What the user typed, sentence by sentence and by the words that tell something.

Only what a person typed is given: prompts, and what was typed to a call. A long prompt is pasted,
some are made by programs, and some are another agent's. What the sentences wish or ask for is
`wishes.py`'s and `requests.py`'s.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from tacit.base.display import one_line
from tacit.base.patterns import late_pattern
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import REFUSED, ToolCall, Trace

MOST_TYPED, _MOST_DICTATED = 800, 1500
"""A longer prompt was pasted or made by a program, unless it is one paragraph: then it was
dictated; what is longer than that is nobody's."""
_WORK = ("shell", "write", "edit")


class Typed(msgspec.Struct, frozen=True):
    """What the user typed in one go."""

    turn: int
    text: str
    worked: bool
    """Whether work had been done before."""
    refuses: bool = False
    """Whether it was typed in refusing a piece of work: a command, an edit."""
    refused: str = ""
    """The command that was refused."""
    sentences: tuple[str, ...] = ()
    """Those of the text, as `sentences` gives them."""


_DELEGATED = late_pattern(
    r"\byou\s+are\s+(?:an?|the)\s+(?:[\w-]+\s+){0,4}?(?:sub-?agent|child\s+agent|worker\s+agent)\b"
    r"|\bfor\s+(?:a|the|your)\s+parent\s+(?:agent|session|\w+\.)|\bsubagent\s+conversation\b",
    re.IGNORECASE,
)


# Signs of a prompt that a program made: a hidden comment, the text of a skill, a block of steps, a
# row of capitals, values in JSON that the words before explain.
_MADE_UP = late_pattern(
    r"<!--|^Base directory for this skill:|^Help me fix the issues reported by /doctor"
    r"|^<(?:[\w-]+\s+(?i:critical|mandatory|important)=|[\w-]*(?:activation|persona|workflow)[\w-]*>)"
    r"|(?:\b[A-Z]{2,}\b[ :,]+){6}|`(\w+)`(?=[\s\S]*```(?:json)?\s*\{[\s\S]*?\"\1\"\s*:)",
    re.MULTILINE,
)
# What is written in Markdown was written by an agent, or for a page.
_MARKED_UP = late_pattern(r"\*\*[^*\n]+\*\*|^#{1,4}\s\S|^\|.*\|\s*$", re.MULTILINE)
_MARKS = 3
_ATTACHED = late_pattern(r"<context\s+ref=[^>]*>.*?(?:</context>|\Z)", re.DOTALL)
"""What a host put beside the words: the contents of a file."""
PIPED = late_pattern(r"<(stdin-[0-9a-f]{16})>\n.*\n</\1>", re.DOTALL)
"""What came by a pipe, as `as_piped` frames it."""


def as_piped(text: str) -> str:
    """What came by a pipe, so framed that it is told from what was typed beside it. No text can
    foresee the mark, which is made of all of it, and so none can end the frame."""
    mark = f"stdin-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"<{mark}>\n{text}\n</{mark}>"


def typed(trace: Trace) -> Iterator[Typed]:
    """What the user typed, in order, without prompts that a program made, without lines that the
    agent had said shortly before, and, where they write in another script, without long sentences
    in Latin letters: those are somebody else's."""
    told = list(_typed(trace))
    scripts = [bool(WIDE.search(sentence)) for one in told for sentence in one.sentences]
    wide = len(scripts) >= _FEWEST and sum(scripts) >= _MOSTLY * len(scripts)
    for one in told:
        own = tuple(s for s in one.sentences if len(_LATIN.findall(s)) < _QUOTED) if wide else ()
        yield msgspec.structs.replace(one, sentences=own) if wide else one


_LATIN = late_pattern(r"[A-Za-z]{2,}[ ,.]")
_FEWEST, _MOSTLY, _QUOTED = 5, 0.7, 10


def _typed(trace: Trace) -> Iterator[Typed]:
    worked, answers = False, deque[str](maxlen=_ANSWERS)
    for turn in trace.turns:
        if _DELEGATED.search(turn.prompt):
            return  # from here on it is another agent that speaks
        prompt = _without(answers, PIPED.sub("", _ATTACHED.sub("", turn.prompt)))
        answers.append("\n".join(turn.texts))
        paragraph = "\n" not in prompt.strip() and not WIDE.search(prompt)
        most = _MOST_DICTATED if paragraph else MOST_TYPED
        if prompt and len(prompt) <= most and _is_typed(prompt):
            yield Typed(turn.number, prompt, worked, sentences=tuple(sentences(prompt)))
        for call in turn.calls:
            if reply := _own_words(call):
                refuses = call.error == REFUSED and call.kind in _WORK
                refused = command_of(call) if refuses and call.kind == "shell" else ""
                told = tuple(sentences(reply))
                yield Typed(turn.number, reply, True, refuses, refused, told)
        worked = worked or bool(turn.steps)


_ANSWERS, _COPIED = 6, 40


def _without(answers: Iterable[str], prompt: str) -> str:
    """A prompt without the long lines of it that stand in `answers`: pasted back."""
    lines = prompt.split("\n")
    own = [
        line for line in lines
        if len(line) < _COPIED or not any(line.strip(" >*-•") in answer for answer in answers)
    ]  # fmt: skip
    return prompt if len(own) == len(lines) else "\n".join(own)


def _is_typed(prompt: str) -> bool:
    return not _MADE_UP.search(prompt) and len(_MARKED_UP.findall(prompt)) < _MARKS


def _own_words(call: ToolCall) -> str:
    """What the user typed to a call; options that they chose, one or several, were worded by the
    agent."""
    if not call.reply or call.error == REFUSED:
        return call.reply
    offered = sorted((label for label in _labels(call.arguments) if label), key=len, reverse=True)
    lines = dict.fromkeys(call.reply.splitlines())
    return "\n".join(line for line in lines if not _chosen(line, offered))


def _chosen(line: str, offered: Iterable[str]) -> bool:
    for label in offered:
        line = line.replace(label, "")
    return not line.strip(" ,，、;")


def _labels(value: object) -> Iterator[str]:
    """The labels of the options that a call offered, wherever they stand in its arguments."""
    if isinstance(value, dict) and isinstance(label := value.get("label"), str):
        yield label
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _labels(part)


_STOP = frozenset(
    re.findall(
        r"\S+",
        "a an the and or but so of to in on at for from by with as is are was were be been being"
        " it its this that these those there here i you we they he she me my your our us them do"
        " does did don't dont not no yes please just also then than too very can could would"
        " should will shall may might must have has had if when while into out up down all any"
        " some more most other such only own same let's lets now ok okay sure need want like make"
        " get go going always never again instead rather use using prefer alright almost great"
        " well there's that's that'll i've i'd i'm we've we're they're you're it's isn't doesn't"
        " can't won't what which who how why each every bit quite still new really thing things"
        " stuff way lot few much many one two first last next time good nice through about after"
        " before without via within against between per maybe possible able think believe seem"
        " seems",
    )
)
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\S+",
        "чтобы чтоб хочу надо нужно меня мне мной моего моей твой так как что это этого или для при"
        " без перед тем все всё всех нет тебя тебе который только muss soll sollen bitte nicht kein"
        " keine der die das den dem ein eine einen und oder aber für mit auf von zu ist sind wird"
        " ich du mich mir dir wir les des une est pas que qui dans pour par sur avec sans mon mes"
        " ton tes vous nous los las del una por para con sin mis sus está como uma não com sem meu"
        " minha seu sua isso che non per della dello sono questo bir ve bu için",
    )
)
"""Words of other languages that tell nothing."""
WORDS = late_pattern(r"[^\W_][\w'’.+#/:-]*", re.UNICODE)
WIDE = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def content_words(text: str) -> list[str]:
    """The words of `text` that tell something, without their endings."""
    return [stem(word) for word in telling_words(text)]


WIDE_WORDS = late_pattern(
    r"(?P<other>[A-Za-z][\w.+#/-]*)|[\u30a1-\u30fa\u30fc]{2,}|(?P<han>[\u3400-\u9fff]{2,})"
    r"|(?P<hangul>[\uac00-\ud7af]{2,})",
    re.ASCII,
)
_EMPTY_HAN = frozenset("的了是在不要我你他她它们們这這那个個就都也和有会會把给給请請幫帮上下时時一")


def subject_words(text: str) -> list[str]:
    """The words that say what `text` is about. Where no spaces are between words, each two Chinese
    characters stand for one, and what is written in hiragana or ends a Korean word tells nothing.
    """
    if not WIDE.search(text):
        return content_words(text)
    found: list[str] = []
    for word in WIDE_WORDS.finditer(text):
        if han := word["han"]:
            pairs = (han[at : at + 2] for at in range(len(han) - 1))
            found += [pair for pair in pairs if not _EMPTY_HAN.intersection(pair)]
        elif word["other"]:
            found += content_words(word["other"])
        else:
            found.append(word[0][:2] if word["hangul"] else word[0])
    return found


def telling_words(text: str) -> list[str]:
    """The words of `text` that tell something, in order."""
    words = [word.casefold().replace("’", "'").strip(".:'/") for word in WORDS.findall(text)]
    return [word for word in words if len(word) > 1 and word not in _STOP]


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ys", "ed", "es", "ly", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_FENCE = late_pattern(
    r"```.*?(?:```|\Z)|<([\w-]+)[^>]*>.*?</\1>|(?<!\w)[\"“][^\"“”]{60,}(?:[\"”]|\Z)", re.DOTALL
)
_PASTED = late_pattern(
    r"^\s*(?:(?:\d+\.\s+)?(?:Critical|High|Medium|Low|Major|Minor|Nit|P[0-3])(?:\s+Severity)?(?::|$)"
    r"|[❯⎿>$#|]|\d{4}-\d\d-\d\d|at \S+ \(|File \"|\[[\w:-]+\]|[\w.]+@[\w.]+[ :]|PS [A-Z]:\\"
    r"|(?:[\w.]*[A-Z]\w*)?(?:[Ee]rror|ERROR|Exception): |\w+:\s+\S+\s+#\s"
    r"|[a-z][\w./-]+: (?:(?:line \d+|option|\S+): )?(?:cannot|command not found|invalid|missing"
    r"|[Nn]o such|[Pp]ermission denied|unknown|unrecognized)\b)"
)
_HINTED = late_pattern(r"\s*(?:fatal|hint|remote):\s")
"""What git prints; what the user typed may stand behind it."""
_IMAGE = late_pattern(
    r"\[(?:image|screenshot|attachment|pasted\s+image)\b[^\]\n]{0,40}\]", re.IGNORECASE
)
"""What stands for a picture."""
_BOXED = late_pattern(r"[ \t]*[│┃|][ \t]*\n[ \t]*[│┃|][ \t]*")
"""Where a line was broken at the frame that a terminal draws around it."""
_REFERENCE = late_pattern(r"(?<!\S)@\S*:\d+(?:-\d+)?")
"""A place in a file that the host attached."""
_LINKED = late_pattern(r"\[(@?[^\]\n]+)\]\(file:[^)\n]*\)\s*")
"""A file that the user named, as a host writes it."""
_BREAK = late_pattern(
    r"(?<=[.!?])[\"”’)]?\s+(?=[\"“(]?[^\W\d_a-z]|i\b|i['’])|(?<=[。！？])"
    r"|(?<=\?)\s+(?![^(\n]*\))|(?<=\?)(?=[\u3040-\u9fff])|\n+|;\s+"
)
_LOWER_BREAK = late_pattern(r"(?<=[a-z]{3}[.!?])(?<!etc\.)\s+(?=[a-z]{2})")
_LONG = 240


def sentences(text: str) -> Iterator[str]:
    """The sentences that a person typed, without code, logs and quotations."""
    text = _BOXED.sub(" ", _FENCE.sub("\n", _IMAGE.sub("", text)))
    text = _LINKED.sub(r"\1 ", _REFERENCE.sub("", text))
    lines = [line for line in text.splitlines() if not _HINTED.match(line)]
    pasted = next((at for at, line in enumerate(lines) if _PASTED.match(line)), len(lines))
    for part in _BREAK.split("\n".join(lines[:pasted])):
        sentence = one_line(part or "").strip(" *-•")
        if len(sentence) > _LONG:  # dictated, perhaps without capitals
            yield from filter(None, _LOWER_BREAK.split(sentence))
        elif sentence:
            yield sentence


_TRANSLATING = late_pattern(
    r"\b(?:translat|übersetz|tradu[cisz]|перев[её][дс]|перевод|terjemah|tłumacz|çevir)\w*|\bdịch\b|翻[译譯訳]|번역",
    re.IGNORECASE,
)


def is_translating(sentence: str) -> bool:
    """Whether a text is to be put into another language: that is none that is spoken in."""
    return bool(_TRANSLATING.search(sentence))


# What somebody tells of themselves, or why something is so, in languages written in letters.
OF_ONESELF = late_pattern(
    r"^\W*(?:(?:damit|solange|weil|afin\s+que|parce\s+que|porque|perché|потому\s+что)\b|(?:[^,]{1,20},\s)?"
    r"(?:ich|je|yo|eu|io|я)\s+(?!(?:will|möchte|bevorzuge|veux|voudrais|préfère|quiero|prefiero|quero|prefiro|voglio"
    r"|preferisco|хочу|предпочитаю|прошу|просил\w*|говорил\w*|sagte|bat|pido|peço|chiedo)\b)\w+\s)",
    re.IGNORECASE,
)
