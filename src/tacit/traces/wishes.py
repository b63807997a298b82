"""What the user wishes for, in their own words: rules that are to last.

A rule is a sentence that says how work is to be done from now on (never, always, prefer, don't, we
use, not X but Y, and the like in other languages), and that can be understood without what was on
the screen. What is bound to the moment ("for now", "this time") is none. Only what the user typed
is read: prompts, and what was typed in refusing a call; a long prompt is pasted. What they ask for
in a few words is `requests.py`'s.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from tacit.base.display import one_line
from tacit.base.patterns import late_pattern
from tacit.traces.command_purposes import joined_commands, program_of, purpose_of
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import REFUSED, ToolCall, Trace

MOST_TYPED = 800
"""A longer prompt was pasted or made by a program; rules are not looked for in it."""
_LONGEST, _SHORTEST = 340, 12
_WHOLE = 240
"""A prompt up to this length is kept whole: what stands around a wish explains it."""
_WORK = ("shell", "write", "edit")
_FEW = 2


Strength = Literal["rule", "correction", "manner", "product"]
"""A `rule` says itself that it lasts; a `correction` was said against what had been done; a
`manner` says how things are to be made; `product` says what is built, which is a task unless it is
said again."""


class Wish(msgspec.Struct, frozen=True):
    """A sentence of the user's that asks for something that is to last."""

    turn: int
    text: str
    """The sentence, with as much before it as it needs to be understood."""
    strength: Strength


class Typed(msgspec.Struct, frozen=True):
    """What the user typed in one go."""

    turn: int
    text: str
    worked: bool
    """Whether work had been done before."""
    refuses: bool = False
    """Whether it was typed in refusing a piece of work: a command, an edit."""


_DELEGATED = late_pattern(
    r"\byou\s+are\s+(?:an?|the)\s+(?:[\w-]+\s+){0,4}?(?:sub-?agent|child\s+agent|worker\s+agent)\b"
    r"|\bfor\s+(?:a|the|your)\s+parent\s+(?:agent|session|\w+\.)|\bsubagent\s+conversation\b",
    re.IGNORECASE,
)


def typed(trace: Trace) -> Iterator[Typed]:
    """What the user typed, in order; a prompt with a hidden comment was made by a program."""
    worked = False
    for turn in trace.turns:
        if _DELEGATED.search(turn.prompt):
            return  # from here on it is another agent that speaks
        if turn.prompt and len(turn.prompt) <= MOST_TYPED and "<!--" not in turn.prompt:
            yield Typed(turn.number, turn.prompt, worked)
        for call in turn.calls:
            if reply := _own_words(call):
                refuses = call.error == REFUSED and call.kind in _WORK
                yield Typed(turn.number, reply, True, refuses)
        worked = worked or bool(turn.steps)


def _own_words(call: ToolCall) -> str:
    """What the user typed to a call; an option that they chose was worded by the agent."""
    if not call.reply or call.error == REFUSED:
        return call.reply
    offered = set(_labels(call.arguments))
    lines = dict.fromkeys(call.reply.splitlines())
    return "\n".join(line for line in lines if line not in offered)


def _labels(value: object) -> Iterator[object]:
    """The labels of the options that a call offered, wherever they stand in its arguments."""
    if isinstance(value, dict):
        yield value.get("label")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _labels(part)


# Where a command may begin.
_START = (
    r"(?:^|[,;:(–—-]\s*|\b(?:and|but|so|also|please|pls|just|then|ok|okay|no|yes|again|sure)[,\s]+)"
)
NOT = r"(?:don['’]?t|do\s+not|never|stop|avoid|no\s+more|quit|refrain\s+from)"
_POINTED = r"it|this|that|them|these|those|the|my|your|his|her|its|our"
"""What points at one thing on the desk: `don't touch the theme` is about a task."""
_MADE = (
    r"(?:additions?|branch(?:es)?|changes?|commits?|functions?|merges?|new\s+files?|prs?"
    r"|pull\s+requests?|pushe?s?|releases?|tests?)"
)
_PIECE = rf"(?:{_MADE}|docs|features?|sessions?|stor(?:y|ies)|tasks?|tickets?)"
"""Pieces of work: what is to be done with every one of them is a rule. Of those that a program may
be about too, only what comes before or after them is."""
_OF_WORK = (
    rf"(?:{_MADE}|agents?|code|comments?|dependenc(?:y|ies)|docs|files?|imports?|logs?|messages?"
    r"|migrations?|names?|packages?|scripts?|secrets?|types?|variables?|versions?|main|master)"
)
"""What work is made of: what always or never is to be with it says how one works."""
# What says by itself that it is to last.
_RULE = late_pattern(
    rf"""{_START}(?:please\s+)?(?:always|never)\s+[a-z]{{2,}}
    | \bfrom\s+now\s+on\b | \bgoing\s+forward\b
    | \bas\s+a\s+(?:general\s+)?rule\b | \b(?:every|each)\s+time\s+(?:you|we|i)\b
    | \bwhenever\s+(?:you|we)\b
    | \b(?:you|we|agents?)\s+(?:should|must|need\s+to|have\s+to)\s+(?:always|never)\b
    | \bwe\s+(?:always|never|don['’]?t\s+(?:use|do|need|allow|write|add|commit))
    | (?:{_START}|\bin\s+this\s+(?:repo\w*|project|codebase),?\s+)we\s+(?:only\s+)?(?:prefer|use)\b
    | \bi\s+(?:always\s+(?:want|use|prefer)|never\s+(?:want|use)|prefer)\b
    | \b(?:should|must|do)(?:\s+not|n['’]?t)\b[^.?!]*\bever\b
    | \byou(?:['’]re|\s+are)\s+(?:running\s+)?(?:in|on|inside)\s+an?\b
    | \byou\s+(?:do\s+not|don['’]?t|only)\s+have\s+(?:any\s+)?access\b
    | \bi\s+(?:don['’]?t|do\s+not)\s+want\s+(?:you\s+to|any|to\s+see)\b
    | \bi\s+want\s+you\s+to\s+always\b
    | \b(?:i|we)\s+(?:don['’]?t|do\s+not)\s+(?:want|need|use|like)\b[^.?!]*\bany\s?(?:more|longer)\b
    | \b(?:i|we)\s+no\s+longer\s+(?:want|use)\b
    | \bremember\s+(?:to|that|this:)\b | \bkeep\s+(?:this\s+|that\s+|it\s+)?in\s+mind\b
    | \bmake\s+(?:that|this|it)\s+(?:an?\s+|the\s+|your\s+|our\s+)?(?:standard|default|habit
    |(?:standard\s+)?practice|convention|part\s+of\s+(?:your|our|the)\s+(?:workflow|process))\b
    | \bfor\s+future\s+reference\b | \b(?:is|are)\s+always\s+preferred\b
    | \bstanding\s+(?:orders?|items?|rules?|instructions?)\b
    | \b(?:code|coding|commit|naming|style|team|house)\s+(?:standard|convention|policy|rule)s?\s*:
    | \b(?:(?:start|beginning|end)\s+of|before|after)\s+(?:every?|each|any)\s+(?:new\s+)?{_PIECE}\b
    | \b(?:every|each|all|any)\s+(?:[\w-]+\s+){{0,3}}?{_MADE}\b[^.?!]*
      \b(?:must|should|needs?\s+to|ha(?:s|ve)\s+to)\b(?!\s+(?:be\s+green|pass|still|work)\b)
    | \b{_OF_WORK}\b[^.?!]*\b(?:(?:must|should)\s+(?:always|never)\s+[a-z]{{2,}}
    |(?:is|are)\s+(?:banned|forbidden|not\s+allowed))\b
    | 总是 | 永远 | 从不 | 以后 | 下次 | 务必 | 禁止 | 每次都 | 我们(?:用|使用|不用)
    | 優先して | 今後 | 必ず | 絶対に | 毎回
    | しないで | 使わないで | 항상 | 절대 | 앞으로 | 하지\s*마
    | \b(?:immer|niemals|künftig|ab\s+(?:jetzt|sofort)|in\s+zukunft|grundsätzlich|wir\s+(?:nutzen
    |verwenden|benutzen))\b
    | \b(?:toujours|jamais|désormais|dorénavant|à\s+l['’]avenir|nous\s+utilisons|on\s+utilise
    |je\s+préfère)\b
    | \b(?:siempre|nunca|a\s+partir\s+de\s+ahora|prefiero|usamos|de\s+ahora\s+en\s+adelante)\b
    | \b(?:sempre|prefiro|a\s+partir\s+de\s+agora|d['’]ora\s+in\s+poi|preferisco|usiamo)\b
    | \b(?:всегда|никогда|впредь|в\s+следующий\s+раз|предпочитаю|мы\s+используем)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What is to be written down for the agents themselves, unless it only follows a change.
_NOTED = late_pattern(
    r"\b(?:add|put|write|note|extend|update|include|document|save|record|referenced?"
    r"|(?<!the\s)(?<!this\s)change|an?\s+(?:statement|remark|note|rule|line))\b"
    r"(?:[^?!]*\b(?:in|into|to))?\s+(?:the\s+|our\s+)?@?"
    r"(?:(?:claude|agents?|gemini|copilot-instructions)\.md\b|cursor\s?rules\b"
    r"|(?:your|claude|agents?['’]?|global|project)\s+(?:memory|rules|instructions)\b)"
    r"(?=.*\b(?:that|remarks?|reflect|always|never|can|must|should|for\s+future)\b)",
    re.IGNORECASE,
)
_FOLLOWS = late_pattern(r"\b(?:recent|latest|align|accordingly|current|up\s+to\s+date)\b", re.I)
# What lasts where it asks for something, and puts off where it does not.
_LATER = late_pattern(r"\b(?:in\s+(?:the\s+)?future|next\s+time)\b", re.IGNORECASE)
_TELLS = late_pattern(
    rf"\b(?:always|never|please|you\s+(?:should|must)|make\s+sure|ensure|let\s+me|ask|{NOT})\b"
    r"|(?:^|[,:]\s*|\btime\s+)(?:use|keep)\b",
    re.IGNORECASE,
)
# What is weighed, not wished for.
_WEIGHED = late_pattern(
    r"\b(?:if|when|once|since|because|now)\s+we\s+(?:use|prefer|never|always|only)\b"
    r"|\b(?:i\s+was|was\s+just|been)\s+thinking\b|\bwhat\s+if\b|\bi\s+thought\b"
    r"|^\W*(?:can|could|would|will|do|did|is|are|shall)\s+(?:you|we|i|it|the|there)\b",
    re.IGNORECASE,
)
# A question that is a request, and says that it is to last.
_POLITE = late_pattern(
    r"\b(?:can|could|would|will)\s+(?:you|we)\b(?:[^.!?]|\.\w)*(?:\b(?:from\s+now\s+on"
    r"|going\s+forward|(?:every|each)\s+time)\b"
    r"|\bso\s+(?:that\s+)?(?:you|we|it)\b[^.!?]*\bin\s+(?:the\s+)?future\b)",
    re.IGNORECASE,
)
# What puts something right, and may be meant for once.
_AGAINST = late_pattern(
    rf"""{_START}(?:please\s+)?{NOT}\s+[a-z]{{2,}}(?!\s+(?:{_POINTED})\b)(?=\s)
    | \buse\s+[^.?!]+?(?:,\s*not|\s+instead\s+of|\s+rather\s+than|\s+and\s+not)\s
    | \buse\s+[\w./@-]+\s+not\s+[\w./@-]+\s*$
    | \b(?:i['’]?d|i\s+would|i)\s+(?:like|want|prefer|rather)\b[^.?!]*\b(?:instead\s+of
    |rather\s+than|not)\b
    | \bnot\s+[^.,?!]{{2,60}},?\s+but\s+(?:rather\s+)?\w | \b(?:should|must)(?:\s+not
    |n['’]t)\s+(?:use|run|have|add|change|touch|do|go)\b
    | \bmake\s+sure\s+(?:to|you|that\s+you|we)\s+(?:always\s+|never\s+)?(?:review|check|run|test
    |verify|update|keep|use|follow|ask|write|add)\b
    | \bbetter\s+not\s+to\b
    | (?:,|\band|\bbut)\s+not\s+you\b | \b(?:instead\s+of|rather\s+than)\s+you\b
    | ,\s*(?:und\s+)?nicht\s+du\b | ,\s*(?:et\s+)?(?:non\s+)?pas\s+toi\b | ,\s*(?:y\s+)?no\s+tú\b
    | ,\s*а\s+не\s+ты\b
    | 不要 | 别(?!的|人) | 不用 | 而不是 | じゃなくて | ではなく | 말고
    | \b(?:bitte\s+nicht|statt(?:dessen)?|lieber|kein(?:e|en)?)\b | \b(?:plutôt\s+que
    |au\s+lieu\s+de|évite)\b
    | \bne\s+\w+(?:\s+\w+)?\s+pas\b | \bno\s+(?:uses|hagas|ejecutes|toques|agregues)\b
    | \ben\s+(?:vez|lugar)\s+de\b
    | \bn[ãa]o\s+(?:use|faça|faca|execute|rode|fique|mexa|altere|crie)\b
    | \bnon\s+(?:usare|fare|eseguire)\b
    | \bне\s+(?:используй|надо|делай|запускай|трогай)""",
    re.IGNORECASE | re.VERBOSE,
)
# How something is to behave.
_BEHAVES = late_pattern(
    r"\b(?:must|should)\s+(?:always|never)\s+[a-z]{2,}|\b(?:is|are)\s+(?:forbidden|not\s+allowed)\b",
    re.IGNORECASE,
)
# How things are to be made, whatever they are.
_MANNER = late_pattern(
    r"""\bi\s+(?:hate|(?:really\s+)?don['’]?t\s+like)\b
    | \bas\s+\w+\s+as\s+possible\b | \bthe\s+(?:simplest|shortest|smallest)\s+possible\b
    | \bnothing\s+(?:exotic|fancy|clever)\b | \bkeep\s+(?:it|them|this|things
    |the\s+\w+)\s+(?:simple|short|small|minimal|concise|clean)\b
    | \bbe\s+(?:very\s+|more\s+)?(?:careful|critical|concise|brief|precise|thorough|consistent
    |strict|honest)\b
    | \bthere(?:['’]s|\s+is)\s+no\s+(?:point|reason|sense)\s+(?:in\s+)?\w+ing\b
    | \b(?:it|this|they|output|messages?)\s+(?:needs?|has|have)\s+to\s+be\s+\w+\s+(?:to|for)\b
    | \b(?:i\s+want|i['’]?d\s+like)\b[^.?!]*\b(?:retained|kept|preserved)\b
    | \b(?:looks?|is|are|seems?|no)\s+(?:\w+\s+)?(?:duplicated|redundant|unnecessary|overkill
    |over-?engineered|too\s+(?:complex|complicated|verbose))\b
    | \b(?:unnecessarily|needlessly)\b | \b(?:hand-?rolled|reinvent\w*)\b
    | \b(?:easier|hard|harder)\s+to\s+(?:read|understand|grok|follow|maintain)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FOR_ONCE = late_pattern(
    r"""\bfor\s+(?:now|the\s+moment|today|this\s+(?:one|time|session|task|pr|commit|test))\b
    | \bright\s+now\b
    | \bthis\s+(?:time|once|session)\b | \byet\b | \btoday\b | \btemporarily\b
    | \bat\s+this\s+point\b
    | \b(?:don['’]?t|do\s+not)\s+(?:worry|bother|forget\s+to|know|think|see|understand|care
    |have(?!\s+(?:any\s+)?access)|mind|need)\b
    | \b(?:don['’]?t|do\s+not)\s+\w+\s+anything\b
    | \bi['’]?(?:ll|m)\b | \bsuggestions?\s+\d | \b(?:step|option|item|point|task|phase)s?\s+\d
    | \blines?\s+\d | \b(?:above|below|following)\s+(?:list|table|items?|findings?|points?)\b
    | (?:^|\s)@?\S+:\d+(?:-\d+)?\b | \b[0-9a-f]{7,40}\b | [#]\d+ | \bjust\s+(?:this|now)\b
    | \bmerci\b | \bfürs\s+erste\b
    | 这次 | 暂时 | 先不 | 今回 | 일단 | \bpor\s+ahora\b | \bpour\s+l['’]instant\b | \bпока\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Said of how a program behaves, rather than of how work is to be done.
_DESCRIBES = late_pattern(
    r"""\b(?:it|this|that|which|they|he|she|there|button|page|test|app|user|command|hook|output|error|function)s?
        \s+(?:is|are|was|were|has|have|will|would|can|just|still|now|almost|nearly)?\s*(?:always
        |never)\b
    | \b(?:never|always)\s+(?:actually|really|worked|works|happens|happened|returns?|gets?|shows?
    |fails?|seems?|appears?|was|is|been|got)\b
    | \b(?:bug|issue|problem|symptom|expected|actual)\b\s*: | \binvestigate\b | \bwhy\b
    | \bseems?\b | \bsupposed\b
    | \bwhenever\s+(?:i|it|the)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Said of what is to be seen, or of one piece of code: what is built, rather than how.
_BUILT = late_pattern(
    r"""\b(?:avatars?|banners?|borders?|buttons?|colou?rs?|dashboards?|dropdowns?|fonts?|footers?
    |icons?|logos?|menus?|modals?|navbars?|pages?|panels?|popups?|screens?|sidebars?|toasts?
    |tooltips?|tree\s?views?|view\s?trees?|webviews?|widgets?|displayed|hidden|visible
    |render(?:ed)?|hover|clicked)\b
    | ^\W*(?:`\w+`|\[[\w.]+\]\(\S+\))""",
    re.IGNORECASE | re.VERBOSE,
)
# Words that speak of all work to come, whatever it is about.
_TO_COME = late_pattern(
    r"\b(?:from\s+now\s+on|going\s+forward|future|remember|keep\s+in\s+mind|conventions?|standards?"
    r"|prefer|(?:claude|agents|gemini)\.md\s+that|we\s+(?:always|never|use)|whenever"
    r"|every\s+time)\b",
    re.IGNORECASE,
)
# What takes something away is done once, and nobody should do it by habit.
_UNDOES = late_pattern(
    r"(?<!never\s)(?<!not\s)(?<!n['’]t\s)(?<!before\s)\b(?:remo(?:ve|ev)|delete|wipe|erase|discard"
    r"|reset|force[- ]push)\b",
    re.IGNORECASE,
)
# Answers to numbered questions belong to those.
_NUMBERED = late_pattern(r"^\s*\d{1,2}[a-z]?[.)]\s", re.MULTILINE)
_POINTS_AWAY = late_pattern(
    r"\b(?:do|doing|did|use|change|touch|run|add|make|remove|fix|keep|like|want|revert|delete"
    r"|handle|have|show)"
    r"\s+(?:it|that|this|them|those|these|so)\b|^(?:it|this|that|they|these|those|he|she)\b"
    r"|\b(?:above|below)\b",
    re.IGNORECASE,
)
_ANSWERS = late_pattern(r"\W*(?:sure|no|nope|yes|ok|okay|right|well|but)\b", re.IGNORECASE)
_STOP = frozenset({
    "a", "an", "the", "and", "or", "but", "so", "of", "to", "in", "on", "at", "for", "from", "by",
    "with", "as", "is", "are", "was", "were", "be", "been", "being", "it", "its", "this", "that",
    "these", "those", "there", "here", "i", "you", "we", "they", "he", "she", "me", "my", "your",
    "our", "us", "them", "do", "does", "did", "don't", "dont", "not", "no", "yes", "please",
    "just", "also", "then", "than", "too", "very", "can", "could", "would", "should", "will",
    "shall", "may", "might", "must", "have", "has", "had", "if", "when", "while", "into", "out",
    "up", "down", "all", "any", "some", "more", "most", "other", "such", "only", "own", "same",
    "let's", "lets", "now", "ok", "okay", "sure", "need", "want", "like", "make", "get", "go",
    "going", "always", "never", "again", "instead", "rather", "use", "using", "prefer", "alright",
    "almost", "great", "well", "there's", "that's", "that'll", "i've", "i'd", "i'm", "we've",
    "we're", "they're", "you're", "it's", "isn't", "doesn't", "can't", "won't", "what", "which",
    "who", "how", "why", "each", "every", "bit", "quite", "still", "new", "really", "thing",
    "things", "stuff", "way", "lot", "few", "much", "many", "one", "two", "first", "last", "next",
    "time", "good", "nice", "through", "about", "after", "before", "without", "via", "within",
    "against", "between", "per", "maybe", "possible", "able", "think", "believe", "seem", "seems",
})  # fmt: skip
WORDS = late_pattern(r"[^\W_][\w'’.+#/:-]*", re.UNICODE)
_WIDE = late_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def wishes(trace: Trace) -> list[Wish]:
    """The lasting wishes of a session, in order, each once."""
    found: dict[str, Wish] = {}
    before = ""
    programs = _programs(trace)
    for said in typed(trace):
        told = list(sentences(said.text))
        answers = said.worked and len(_NUMBERED.findall(said.text)) >= _FEW
        for at, sentence in enumerate(told if not answers else ()):
            strength = _strength(sentence, said.worked)
            if strength is None and said.refuses and _says_why(sentence):
                strength = "manner"
            if strength is None:
                continue
            named = strength != "manner" and _names_program(sentence, programs)
            strength = "rule" if named else strength
            needed = told[at - 1] if at else before if _ANSWERS.match(sentence) else ""
            whole = " ".join(told) if len(" ".join(told)) <= _WHOLE else f"{needed} {sentence}"
            if at == 0 and not whole.startswith(needed) and _POINTS_AWAY.search(whole):
                whole = f"{needed} {whole}"
            some = (whole.strip(), f"{needed} {sentence}".strip())
            fits = (t for t in some if not (_FOR_ONCE.search(t) or _UNDOES.search(t)))
            whole = next(fits, sentence)
            if _UNDOES.search(whole):
                continue
            about = sentence if strength == "rule" else whole
            if _BUILT.search(about) and not _TO_COME.search(about):
                strength = "product"
            if _stands_alone(whole, pointed=whole != sentence, few=named):
                found.setdefault(whole.casefold(), Wish(said.turn, whole, strength))
        before = told[-1] if told else ""
    return list(found.values())


_UNWANTED = late_pattern(
    rf"\b(?:{NOT}\s+(?:use|run|call)|not|instead\s+of|rather\s+than)\s+(?:the\s+)?[`'\"]?([\w.+-]+)"
    r"|([\w.+-]*[A-Za-z])[^A-Za-z。]*使わないで|不要(?:再)?用\s*([\w.+-]+)",
    re.IGNORECASE | re.ASCII,
)


def unwanted_programs(text: str) -> set[str]:
    """The programs that a wish may be against: the words behind its `don't use`."""
    return {word for found in _UNWANTED.findall(text) for word in found if word}


def is_lasting(prompt: str) -> bool:
    """Whether a prompt, after work was done, says how things are to be done."""
    return len(prompt) <= MOST_TYPED and any(
        _strength(sentence, True) in ("rule", "correction") for sentence in sentences(prompt)
    )


_ASKS_BACK = late_pattern(r"\b(?:can|could|should|would)(?:['’]?t|n['’]t)\b", re.IGNORECASE)


def _says_why(sentence: str) -> bool:
    """Whether words with which work was refused say what is wrong with it."""
    if _FOR_ONCE.search(sentence) or len(content_words(sentence)) < 4:
        return False
    return not sentence.endswith("?") or bool(_ASKS_BACK.search(sentence))


def _strength(sentence: str, worked: bool) -> Strength | None:
    """How much a sentence asks for. Few do, so what would speak against it is looked for last."""
    if (found := _asks(sentence, worked)) is None:
        return None
    if _FOR_ONCE.search(sentence) or _DESCRIBES.search(sentence):
        return None
    if _POLITE.search(sentence):
        return "rule"
    weighed = sentence.endswith(("?", "？")) or _WEIGHED.search(sentence)
    return None if weighed else found


def _asks(sentence: str, worked: bool) -> Strength | None:
    if _POLITE.search(sentence) or _RULE.search(sentence):
        return "rule"
    if _LATER.search(sentence) and _TELLS.search(sentence):
        return "rule"
    if _NOTED.search(sentence) and not _FOLLOWS.search(sentence):
        return "rule"
    if worked and _AGAINST.search(sentence):
        return "correction"
    if _MANNER.search(sentence):
        return "manner"
    return "product" if _BEHAVES.search(sentence) else None


def _programs(trace: Trace) -> frozenset[str]:
    """The programs that a session ran, other than those that everything is done with."""
    ran = (call for call in trace.each_call() if call.kind == "shell")
    parts = (part.words for call in ran for part in joined_commands(command_of(call)))
    return frozenset(program_of(words) for words in parts if purpose_of(words)) - {"", "git"}


def _names_program(sentence: str, programs: frozenset[str]) -> bool:
    """Whether a correction is about a program that was run: which one serves is no matter of the
    moment."""
    words = r"use|using|run|running|call|calling|with|not|than|of|over"
    found = re.findall(rf"\b(?:{words})\s+(?:the\s+)?[`'\"]?([\w.+-]+)", sentence, re.IGNORECASE)
    if _WIDE.search(sentence):
        found = re.findall(r"[A-Za-z][\w.+-]+", sentence)
    return any(word.strip(".") in programs for word in found)


def _stands_alone(text: str, *, pointed: bool, few: bool = False) -> bool:
    """Whether `text` says enough without what was on the screen when it was typed.

    `pointed`: what its pronouns mean may stand in it. `few`: two telling words are enough.
    """
    if _WIDE.search(text):
        return len(text) <= _LONGEST
    if not _SHORTEST <= len(text) <= _LONGEST or len(content_words(text)) < 3 - few:
        return False
    return pointed or not _POINTS_AWAY.search(text)


def content_words(text: str) -> list[str]:
    """The words of `text` that tell something, without their endings."""
    return [_stem(word) for word in telling_words(text)]


def wide_pairs(text: str) -> list[str]:
    """Each two letters of a script without spaces, which stand for its words."""
    return [text[at : at + 2] for at in range(len(text) - 1) if _WIDE.match(text[at])]


def telling_words(text: str) -> list[str]:
    """The words of `text` that tell something, in order."""
    words = [word.casefold().replace("’", "'").strip(".:'/") for word in WORDS.findall(text)]
    return [word for word in words if len(word) > 1 and word not in _STOP]


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ies", "ed", "es", "ly", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_FENCE = late_pattern(
    r"```.*?(?:```|\Z)|<([\w-]+)[^>]*>.*?</\1>|(?<!\w)[\"“][^\"“”]{60,}(?:[\"”]|\Z)", re.DOTALL
)
_PASTED = late_pattern(
    r"^\s*(?:[❯⎿>$#|]|\d{4}-\d\d-\d\d|at \S+ \(|File \"|\[[\w:-]+\]|[\w.]+@[\w.]+[ :])"
)
_REFERENCE = late_pattern(r"(?<!\S)@\S*:\d+(?:-\d+)?")
"""A place in a file that the host attached."""
_BREAK = late_pattern(
    r"(?<=[.!?])[\"”’)]?\s+(?=[\"“(]?[^\W\d_a-z]|i\b|i['’])|(?<=[。！？])|\n+|\s[-–—]\s|;\s+"
)


def sentences(text: str) -> Iterator[str]:
    """The sentences that a person typed, without code, logs and quotations."""
    lines = _REFERENCE.sub("", _FENCE.sub("\n", text)).splitlines()
    pasted = next((at for at, line in enumerate(lines) if _PASTED.match(line)), len(lines))
    for part in _BREAK.split("\n".join(lines[:pasted])):
        sentence = one_line(part or "").strip(" *-•")
        if sentence:
            yield sentence
