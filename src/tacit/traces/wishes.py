"""What the user wishes for, in their own words: rules that are to last.

A rule is a sentence that says how work is to be done from now on (never, always, prefer, don't, we
use, not X but Y, and the like in other languages), and that can be understood without what was on
the screen. What is bound to the moment ("for now", "this time") is none. Only what the user typed
is read: prompts, and what was typed in refusing a call; a long prompt is pasted. What they ask for
in a few words is `requests.py`'s.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import takewhile
from typing import Literal

import msgspec

from tacit.base.patterns import Alternatives, late_pattern
from tacit.traces.command_line import joined_commands
from tacit.traces.command_purposes import program_of, purpose_of
from tacit.traces.standing_orders import (
    describes_abroad,
    followed_page,
    is_standing,
    is_working_rule,
    language_of_work,
    lasts_abroad,
    remembered,
    tells_where,
    worked_command,
)
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import Trace
from tacit.traces.typed_words import (
    MOST_TYPED,
    WIDE,
    Typed,
    content_words,
    sentences,
    subject_words,
    typed,
)

_LONGEST, _SHORTEST, _FEW = 340, 12, 2
_WHOLE = 240
"""A prompt up to this length is kept whole: what stands around a wish explains it."""
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
    to: str = ""
    """The command that was refused with it, where it does not say all by itself."""


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
_RULE = Alternatives(
    rf"""{_START}(?:please\s+)?(?:always|never)\s+(?!\w+(?<!e)ed\b|(?:will|would|has|had|can)\b)[a-z]{{2,}}
    | \b(?:overall|in\s+general|generally),?\s+(?:(?:we|you|agents?)\s+(?:should|must)|{NOT}\s)
    | \bwe\s+should\s+(?:move\s+away\s+from|avoid|stop\s+\w+ing)\b
    | \bthere(?:['’]s|\s+is)\s+no\s+(?:point|reason|sense)\s+(?:in\s+)?\w+ing\s+an?\b[^.?!]*
      \b{_MADE}\b
    | \bwe\s+only\s+(?:accept|allow|deploy|ship|support|target|test)\b
    | ^\W*(?!(?:the|this|that|these|those|it|they|my|your|his|her|its)\b)(?:[a-z-]+\s+){{0,3}}
      [a-z-]+s\s+(?:are|do|go|get)\s+(?:never|always)\s[^.?!]*(?:,\s*(?:but|only)|\bexcept|\bunless)\b
    | ^\W*(?:[a-z-]+\s+){{0,2}}{_MADE}\s+(?:are|go|get)\s+(?:never|always)\s+\w+
    | \bi\s+(?:don['’]?t|do\s+not)\s+want\s+`[^`]+` | \bit\s+is\s+not\s+allowed\s+to\s+\w+
    | ^\W*`[^`]{{3,60}}`\s+(?:if|when|whenever)\s+you\s+(?:need|want|have)\b
    | ^\W*(?:if|when|whenever)\s+you\s+(?:need|want)\b[^.?!]*,\s*(?:use|run|call|ssh)\b
    | \byou\s+(?:should(?:n['’]?t)?\s+have|were(?:n['’]?t)?\s+supposed\s+to)\s+
      (?!(?:been|found|got|gotten|had|known|noticed|received|seen)\b)\w{{3,}}\s+\w+
    | ^\W*(?:(?:an?|any)\s+(?:[\w-]+\s+){{0,4}}?(?:{_OF_WORK}|pytest)|(?:[a-z-]+\s+){{0,2}}
      (?:branches|changes|comments|commits|docs|files|functions|messages|migrations|names|prs|tests
      |variables))\s+(?:should|must|need\s+to|have\s+to|has\s+to)\s+
      (?!(?:be\s+(?:added|changed|created|deleted|fixed|green|merged|moved|removed|renamed|updated
      |written)|now|pass|still|work)\b)\w
    | \b(?:commit\s+messages?|(?:pr|pull\s+request)\s+(?:titles?|descriptions?)|branch\s+names?
    |ticket\s+(?:numbers?|ids?)|changelog\s+entr(?:y|ies)|test\s+names?)\s+
      (?:should|must|need\s+to|have\s+to|belongs?|go(?:es)?)\b
    | \b(?:we|you)(?:['’]re|\s+are)\s+not\s+supposed\s+to\b
    | \bin\s+(?:ci|dev|prod|staging|(?:development|production)(?:\s+mode)?|dev\s+mode),?\s+
      (?:we|you)\s+(?:should|must|never|always|only)\b
    | \b(?:unless|except\s+(?:when|where))\s+i\s+(?:explicitly\s+|expressly\s+)?(?:ask|say|tell)
    | \bas\s+a\s+(?:general\s+)?rule\b | \b(?:every|each)\s+time\s+(?:you|we|i)\b
    | \bwhenever\s+(?:you|we)\b
    | \b(?:you|we|agents?)\s+(?:should|must|need\s+to|have\s+to)\s+(?:always|never)\b
    | \bwe\s+(?:always|never|don['’]?t\s+(?:use|do|need|allow|write|add|commit))
    | (?:{_START}|\bin\s+this\s+(?:repo\w*|project|codebase),?\s+)we\s+(?:only\s+)?(?:prefer|use)\b
    | \bi\s+(?:always\s+(?:want|use|prefer)|never\s+(?:want|use)
    |prefer(?!\s+(?:option|the|this|that|to\s+\w+\s+(?:it|this|that|the))\b))\b
    | \b(?:should|must|do)(?:\s+not|n['’]?t)\b[^.?!]*\bever\b
    | \byou(?:['’]re|\s+are)\s+(?:running\s+)?(?:in|on|inside)\s+an?\b
    | \byou\s+(?:do\s+not|don['’]?t|only)\s+have\s+(?:any\s+)?access\b
    | \bi\s+(?:don['’]?t|do\s+not)\s+want\s+(?:you\s+to|any|to\s+see)\b
    | \bi\s+want\s+you\s+to\s+always\b
    | \b(?:i|we)\s+(?:don['’]?t|do\s+not)\s+(?:want|need|use|like)\b[^.?!]*\bany\s?(?:more|longer)\b
    | \b(?:i|we)\s+no\s+longer\s+(?:want|use)\b
    | (?<!\bi\s)(?<!\byou\s)\bremember\s+(?:that\b|this:|to\s+(?!\w+\s+(?:it|this|that|the)\b))
    | {_START}remember,?\s+(?:we|our|all|every|not\s+to)\b | \bkeep\s+(?:this\s+|that\s+
    |it\s+)?in\s+mind\b
    | \bmake\s+(?:that|this|it)\s+(?:an?\s+|the\s+|your\s+|our\s+)?(?:standard|default|habit
    |(?:standard\s+)?practice|convention|part\s+of\s+(?:your|our|the)\s+(?:workflow|process))\b
    | \bfor\s+future\s+reference\b | \b(?:is|are)\s+always\s+preferred\b
    | \bstanding\s+(?:orders?|items?|rules?|instructions?)\b
    | \b(?:code|coding|commit|naming|style|team|house)\s+(?:standard|convention|policy|rule)s?\s*:
    | \b(?:(?:start|beginning|end)\s+of|before|after)\s+(?:every?|each|any)\s+(?:new\s+)?{_PIECE}\b
    | \b(?:after|as|before|once|when)\s+(?:each|every)\s+(?:[\w-]+\s+){{1,2}}(?:is|are
    |has\s+been)\s+\w
    | \b(?:every|each|all|any)\s+(?:[\w-]+\s+){{0,3}}?{_MADE}\b[^.?!]*
      \b(?:must|should|needs?\s+to|ha(?:s|ve)\s+to)\b(?!\s+(?:be\s+green|pass|still|work)\b)
    | \b{_OF_WORK}\b[^.?!]*\b(?:(?:must|should)\s+(?:always|never)\s+[a-z]{{2,}}
    |(?:is|are)\s+(?:banned|forbidden|not\s+allowed))\b
    | \b(?:immer(?!\s+(?:noch|wieder))|niemals|künftig|in\s+zukunft
    |grundsätzlich|jedes\s?mal\s+wenn|wir\s+(?:nutzen|verwenden|benutzen|unterstützen\s+nur))\b
    | \b(?:toujours(?!\s+(?:pas|le|la|les|un|une|en)\b)|jamais|à\s+l['’]avenir
    |à\s+chaque\s+fois|nous\s+utilisons|on\s+utilise
    |je\s+préfère(?!\s+(?:cette|ce|l[ae]?)\b))\b
    | \b(?:siempre|nunca|cada\s+vez\s+que|prefiero(?!\s+(?:el|la|est[ae])\b)|usamos)\b
    | \b(?:sempre|prefiro|toda\s+vez\s+que|ogni\s+volta\s+che|preferisco|usiamo)\b
    | \b(?:n['’]utilise[rz]?\s+pas|no\s+uses|n[ãa]o\s+use|non\s+usare|не\s+используй(?:те)?
    |(?:benutze|nutze|verwende)\s+(?:bitte\s+)?(?:kein\w*|nicht))\b[^.?!]*,\s*\w
    | \b(?:du\s+hättest|hättest\s+du)\b[^.?!]*\b(?:sollen|müssen)\b | \btu\s+aurais\s+dû\b
    | \b(?:deber[ií]as\s+haber|ten[ií]as\s+que|deveria\s+ter|avresti\s+dovuto|надо\s+было)\b
    | \b(?:всегда|никогда|каждый\s+раз|в\s+следующий\s+раз|предпочитаю|мы\s+используем)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What is to be written down for the agents themselves, unless it only follows a change.
_NOTED = Alternatives(
    r"\b(?:add|put|write|note|extend|update|include|document|save|record|referenced?"
    r"|(?<!the\s)(?<!this\s)change|an?\s+(?:statement|remark|note|rule|line))\b"
    r"(?:[^?!]*\b(?:in|into|to))?\s+(?:the\s+|our\s+)?@?"
    r"(?:(?:claude|agents?|gemini|copilot-instructions)\.md\b|cursor\s?rules\b"
    r"|(?:your|claude|agents?['’]?|global|project)\s+(?:memory|rules|instructions)\b)"
    r"(?=.*\b(?:that|remarks?|reflect|always|never|can|must|should|for\s+future)\b)"
    r"|\bin\s+(?:the\s+|our\s+)?(?:claude|agents?|gemini)[\s.]*md,?\s+(?:please\s+)?"
    r"(?:add|document|mention|note|say|state|write)\b",
    re.IGNORECASE,
)
_FOLLOWS = Alternatives(r"\b(?:recent|latest|align|accordingly|current|up\s+to\s+date)\b", re.I)
# What lasts where it asks for something, and puts off where it does not.
_LATER = Alternatives(r"\b(?:in\s+(?:the\s+)?future|next\s+time)\b", re.IGNORECASE)
_TELLS = Alternatives(
    rf"\b(?:always|never|please|you\s+(?:should|must)|make\s+sure|ensure|let\s+me|ask|{NOT})\b"
    r"|(?:^|[,:]\s*|\btime\s+)(?:use|keep)\b",
    re.IGNORECASE,
)
# What is weighed, not wished for.
_WEIGHED = Alternatives(
    r"^\W*(?:whether|which|who|why|how|what)\b|\bhow\s+(?:(?:we|i)\s+)?(?:can|could|should)\b|"
    r"\b(?:if|when|once|since|because|now)\s+we\s+(?:use|prefer|never|always|only)\b"
    r"|\b(?:i\s+was|was\s+just|been)\s+thinking\b|\bwhat\s+if\b|\bi\s+thought\b"
    r"|^\W*(?:can|could|would|will|do|did|is|are|shall)\s+(?:you|we|i|it|the|there)\b"
    r"|\b(?:tell|explain|show)\s+(?:to\s+)?(?:me\s+)?(?:what|which|why|how|where|whether)\b",
    re.IGNORECASE,
)
# A question that is a request, and says that it is to last.
_POLITE = Alternatives(
    r"\b(?:can|could|would|will)\s+(?:you|we)\b(?:[^.!?]|\.\w)*(?:\b(?:from\s+now\s+on"
    r"|going\s+forward|(?:every|each|any)\s*time\s+(?!i\b)|always)\b"
    r"|\bso\s+(?:that\s+)?(?:you|we|it)\b[^.!?]*\bin\s+(?:the\s+)?future\b)",
    re.IGNORECASE,
)
# What puts something right, and may be meant for once.
AGAINST = Alternatives(
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
    | (?:^|[，,。\s请請])(?:不要|别(?!的|人)|別(?!的|人)|不用)(?!な|に|で|の)
    | 使わないで | しないで | 하지\s*마
    | \b(?:bitte\s+nicht|statt(?:dessen)?|lieber|kein(?:e|en)?)\b | \b(?:plutôt\s+que
    |au\s+lieu\s+de|évite)\b
    | (?:^|[,;]\s*)n(?:e\s+|['’])\w+(?:\s+\w+)?\s+pas\b | ^\W*(?:exclu\w{0, 3}
    |utilise)\s+\S*[./]\w+\W*$
    | \bno\s+(?:uses|hagas|ejecutes|toques|agregues|añadas|cambies|crees|generes|modifiques)\b
    | \ben\s+(?:vez|lugar)\s+de\b
    | \bn[ãa]o\s+(?:use|faça|faca|execute|rode|fique|mexa|altere|crie|adicione|modifique|gere)\b
    | \bnon\s+(?:usare|fare|eseguire|creare|modificare|aggiungere)\b
    | \bне\s+(?:используй|надо|делай|запускай|трогай|создавай|изменяй|меняй|добавляй)""",
    re.IGNORECASE | re.VERBOSE,
)
# What is forbidden of all such things: with its reason or what to do instead, or of what work is
# made of. A number or a file is one thing of the moment.
_FORBIDS = Alternatives(
    rf"""\b{NOT}\s+[a-z]{{2,}}(?!\s+(?:{_POINTED})\b)\s[^.?!]*?(?:\s[-–—]\s|,\s*(?:but|too|use)\b
    |\b(?:as|because|but|instead|otherwise|since|so\s+that)\s+\w)
    | \b{NOT}\s+(?:add|commit|include|mention|merge|open|put|push|run|use|write)\s+
      (?!(?:{_POINTED})\b)[^.?!,]*\b(?:{_OF_WORK}|title)\b
    | \b(?:no\s+\w+[ae]s|n[ãa]o\s+\w+[ae]|non\s+\w+re|ne?\s?['’]?\w+\s+pas|не\s+\w+й(?:те)?)\b[^?!]*
      \b(?:solo|sólo|sino|só|apenas|ma|mais|seulement|только|а)\s+\w""",
    re.IGNORECASE | re.VERBOSE,
)
_ONE_THING = late_pattern(r"\b\d+\b|\w\.\w{1,4}\b|[/@]\w|\b(?:here|there)\b", re.IGNORECASE)
# How a command that was refused is to be run.
_RUN_SO = late_pattern(
    rf"^\W*(?:(?:please|no|just)\W+)*(?:use|run|prepend|prefix|call)\s+(?!(?:{_POINTED}|an?|option)\b)"
    r"[`'\"]?[\w./-]+|\bshould\s+be\s+[`'\"]|\bnutze\s|\bverwende\s|\butilise\s|\busa\s|\buse\s+o\b"
    r"|を使って|で実行して|(?:请|請)?[用使]用?\s?[`A-Za-z]|[으]?로\s*실행|используй\s",
    re.IGNORECASE,
)
_FIRM = late_pattern(r"\W*(?:please\s+)?(?:never|always)\s", re.IGNORECASE)
# Which tool is to serve, said when another had.
_BY_TOOL = late_pattern(
    r"^\W*(?:(?:please|no|just)\W+)*use\s+(?:the\s+|our\s+)?(?:[\w.-]+\s+){1,4}?"
    r"(?:apis?|cli|commands?|mcp|scripts?|sdk|skills?|tools?)(?:\s+(?:for|instead|itself|when)\b"
    r"[^?]*)?\W*$",
    re.IGNORECASE,
)
_WITHDRAWS = late_pattern(
    r"\W*(?:never\s?mind|nvm|scratch\s+that|forget\s+(?:it|that|what\s+i)|on\s+second\s+thoughts?"
    r"|ignore\s+that|doch\s+nicht|laisse\s+tomber|olvídalo|deixa\s+pra\s+lá|lascia\s+perdere"
    r"|забудь)\b|^やっぱ|^算了|^아니다",
    re.IGNORECASE,
)
# One thing instead of another: a decision of the moment, unless it is said again.
_CONTRASTS_ABROAD = late_pattern(r"而不是|じゃな(?:くて|く、)|では?なく|말고")
# How something is to behave.
_BEHAVES = Alternatives(
    r"\b(?:must|should)\s+(?:always|never)\s+[a-z]{2,}|\b(?:is|are)\s+(?:forbidden|not\s+allowed)\b",
    re.IGNORECASE,
)
# How things are to be made, whatever they are.
_MANNER = Alternatives(
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
    | \b(?:no|not|n['’]t|without)\s+(?:need\s+)?(?:for\s+|any\s+)?backwards?[-\s]compat\w*
    | \b(?:easier|hard|harder)\s+to\s+(?:read|understand|grok|follow|maintain)\b""",
    re.IGNORECASE | re.VERBOSE,
)
FOR_ONCE = Alternatives(
    r"""\bfor\s+(?:now|the\s+moment|today|this\s+(?:one|time|session|task|pr|commit|test))\b
    | \bright\s+now\b | \bthis\s+(?:time|once|session)\b | (?<!users\s)\byet\b
    | (?<!of\s)(?<!from\s)(?<!ing\s)\btoday\b | \btemporarily\b | \bat\s+this\s+point\b
    | \b(?:don['’]?t|do\s+not)\s+(?:worry|bother|forget\s+to|know|think|see|understand|care
    |have(?!\s+(?:any\s+)?access)|mind|need)\b(?!\s+(?:any\s+)?backwards?\b)(?![^.?!]*,\s+we\s+(?:only|never|always)\b)
    | \b(?:don['’]?t|do\s+not)\s+\w+\s+anything\b
    | (?:^|,\s*)(?:do|fix|skip|take)\s+\d\b
    | \bi(?:['’](?:ll|m)|ll|m\s+(?:\w+ing|not))\b
    | \bsuggestions?\s+\d | \b(?:step|option|item|point|task|phase)s?\s+\d
    | \blines?\s+\d | \b(?:above|below|following)\s+(?:list|table|items?|findings?|points?)\b
    | (?:^|\s)@?\S+:\d+(?:-\d+)?\b | (?<![/\\])\b[0-9a-f]{7,40}\b(?![/\\]) | [#]\d+
    | \bjust\s+(?:this|now)\b | \b(?:i|you|we)(?:['’]ve)?\s+(?:just\s+)?mentioned\b
    | \b(?:add|create|dump|generate|make|put|save|store|write)\b(?:[^.?!]|\.\w)*
      \b(?:doc\w*|file|memo|markdown|notes?|readme)\b[^.?!]*\bfuture\b
    | \bmerci\b | \bfürs\s+erste\b
    | [这這]次 | [暂暫][时時] | 先[不别別] | 今回 | 一旦 | とりあえず | まだ | 일단 | 이번 | 지금은
    | \bpor\s+ahora\b | \bpour\s+l['’]instant\b | \bпока\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Said of how a program behaves, rather than of how work is to be done.
_DESCRIBES = Alternatives(
    r"""\b(?:it|this|that|which|they|he|she|there|button|page|test|app|user|command|hook|output|error|function)s?
        \s+(?:is|are|was|were|has|have|will|would|can|just|still|now|almost|nearly)?\s*(?:always
        |never)\b
    | \b(?:never|always)\s+(?:actually|really|worked|works|happens|happened|returns|gets|shows
    |fails|seems?|appears?|was|is|been|got)\b
    | (?<!^)(?<!(?<!can\s)(?<!uld\s)you\s)\b(?:never|always)\s+(?:return|get|show|fail)\b
    | \b(?:bug|issue|problem|symptom|expected|actual)\b\s*(?::|\s+is\s+that\b)
    | \binvestigate\b | \bwhy\b | \bseems?\b | (?<!not\s)\bsupposed\b | \bwhenever\s+(?:i|it|the)\b
    | \b(?:est|sont|reste)\s+toujours\b | \w\sn(?:e\s|['’])\w+\s(?:plus\s)?(?:jamais|toujours)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Said of what is to be seen, or of one piece of code: what is built, rather than how.
_BUILT = Alternatives(
    r"""\b(?:avatars?|banners?|borders?|buttons?|colou?rs?|dashboards?|dropdowns?|fonts?|footers?
    |icons?|logos?|menus?|modals?|navbars?|pages?|panels?|popups?|screens?|sidebars?|toasts?
    |tooltips?|tree\s?views?|view\s?trees?|webviews?|widgets?|displayed|hidden|visible
    |render(?:ed)?|hover|clicked)\b | 按[钮鈕] | [颜顏]色 | [图圖][标標] | [弹彈]窗 | ボタン
    | アイコン | 버튼 | ^\W*(?:`\w+`|\[[\w.]+\]\(\S+\))""",
    re.IGNORECASE | re.VERBOSE,
)
# Words that speak of all work to come, whatever it is about.
_TO_COME = late_pattern(
    r"\b(?:from\s+now|going\s+forward|future|remember|keep\s+in\s+mind|conventions?|standards?"
    r"|prefer|(?:claude|agents|gemini)\.md\s+that|we\s+(?:always|never|use)|whenever"
    r"|every\s+time)\b",
    re.IGNORECASE,
)
# What takes something away is done once, and nobody should do it by habit.
_UNDOES = Alternatives(
    r"(?<!never\s)(?<!not\s)(?<!n['’]t\s)(?<!before\s)\b(?:remo(?:ve|ev)|delete|wipe|erase|discard"
    r"|reset|force[- ]push|dangerously|yolo|auto-?approve)\b|bypass\s?permissions|--no-verify"
    r"|(?:削除し|消し|戻し)て|(?<!不要)(?<![别別勿])(?:删除|刪除|删掉|刪掉)|삭제\s?해|削除してもら",
    re.IGNORECASE,
)
# Answers to numbered questions belong to those.
_NUMBERED = late_pattern(r"^\s*\d{1,2}[a-z]?[.)]\s", re.MULTILINE)
_POINTS_AWAY = late_pattern(
    r"\b(?:do|doing|did|use|change|touch|run|add|make|remove|fix|keep|like|want|revert|delete"
    r"|handle|have|show)"
    r"\s+(?:it|that|this|them|those|these|so)\b|^(?:it|this(?!\s+(?:project|repo))|that|they|these|those|he|she)\b"
    r"|\b(?:above|below)\b"
    r"|\b(?:this|that)\s+(?:doc(?:s|ument(?:ation)?)?|guide|page|protocol)\b"
    r"|[そこあ]れ(?!ら|まで|から|ぞれ|以)|そ[うこ](?:し|の方)|こっち|そっち|[这這那][个個些样樣](?![项項仓倉工])|[이그저](?:거|것|걸)",
    re.IGNORECASE,
)
_ANSWERS = late_pattern(r"\W*(?:sure|no|nope|yes|ok|okay|right|well|but)\b", re.I)
_GOES_ON = late_pattern(r"(?:also|and|because|but|instead|otherwise|so|that|this)\b", re.IGNORECASE)


def _says_all(sentence: str, kept: str) -> bool:
    """Whether a rule needs nothing of what was said around it, `kept`."""
    if _points_away(sentence) or _ANSWERS.match(sentence):
        return False
    if WIDE.search(sentence):
        return len(kept) > _WHOLE // 2 and len(subject_words(sentence)) > _FEW
    return len(content_words(sentence)) > _FEW + 1


# What stands beside a wish and does not explain it: a question, thanks, what somebody guesses.
_LEADS_OFF = late_pattern(
    r"[?？]\W*$|(?:ですか|ますか|でしょうか|ですかね|かな)[。\s]*$|ありがとう|\bseems?\b|\bi\s+think\W*$"
    r"|\bthanks?\b",
    re.IGNORECASE,
)
# An order to build or change something, as a sentence of its own before a rule.
_TASK_ABROAD = late_pattern(
    r"(?:追加|実装|作成|修正|変更|対応|削除|表示)(?:を)?(?:して|お願い|し)[^。、]{0,6}[。\s]*$"
    r"|(?:추가|구현|수정|작성|변경|삭제)해\s?(?:줘|주세요)?[.\s]*$"
)


def _leads_off(sentence: str, before: bool) -> bool:
    return bool(_LEADS_OFF.search(sentence) or (before and _TASK_ABROAD.search(sentence)))


def wishes(trace: Trace, words: Sequence[Typed] | None = None) -> list[Wish]:
    """The lasting wishes of a session, in order, each once; what is withdrawn next is none. `words`
    are what the user typed, where that is known."""
    found: dict[str, Wish] = {}
    before, latest = "", set[str]()
    programs = cache(lambda: _programs(trace))  # few sentences need them
    for said in typed(trace) if words is None else words:
        told = list(said.sentences)
        if _WITHDRAWS.match(said.text):
            found = {key: wish for key, wish in found.items() if key not in latest}
        own_list = any(map(is_standing, told[:1]))
        answers = said.worked and not own_list and len(_NUMBERED.findall(said.text)) >= _FEW
        own = () if answers else _wishes_in(said, told, before, programs)
        known = {wish.text.casefold(): wish for wish in own}
        latest = known.keys() - found.keys()
        found |= {key: wish for key, wish in known.items() if key in latest}
        before = told[-1] if told else ""
    return list(found.values())


def _wishes_in(
    said: Typed, told: list[str], before: str, programs: Callable[[], frozenset[str]]
) -> Iterator[Wish]:
    """The wishes in what was typed in one go, after the sentence `before`."""
    for text in (followed_page(said.text), worked_command(said.text) if said.worked else ""):
        if text:
            yield Wish(said.turn, text, "rule")
    for at, given in enumerate(told):
        if (thing := remembered(told, at)) and not _UNDOES.search(thing):
            yield Wish(said.turn, _plain(thing)[:_LONGEST], "rule")
            continue
        strength, sentence = _strength(given, said.worked), given
        long = len(given) > _FAR + _BRIEF or is_standing(given) or language_of_work(given)
        rules = long and is_working_rule(given)
        if strength is None or rules or _UNDOES.search(given) or tells_where(given):
            sentence = _ruling_part(given, said.worked)
            strength = "rule" if sentence else strength
            sentence = sentence or given
        so = bool(said.refused) and len(given) <= _BRIEF and bool(_RUN_SO.search(given))
        if strength is None and said.refuses and (so or _says_why(sentence)):
            strength = "rule" if so else "manner"
        if strength is None:
            continue
        by = so or _BY_TOOL.search(sentence) or _names_program(sentence, programs())
        named = bool(by) and strength != "manner"
        forbids = strength == "correction" and _FORBIDS.search(sentence)
        if named or (forbids and not _ONE_THING.search(sentence)):
            strength = "rule"
        shown = [*told[:at], sentence, *told[at + 1 :]]
        whole = sentence if sentence != given else _explained(at, shown, before, strength)
        if _UNDOES.search(whole):
            continue
        about = sentence if strength == "rule" else whole
        if _BUILT.search(about) and not _TO_COME.search(about):
            strength = "product"
        wide = bool(WIDE.search(sentence))
        pointed = whole != sentence and not (wide and whole.startswith(sentence))
        few = named or (wide and strength == "rule") or is_working_rule(sentence)
        few = few or bool(_FIRM.match(sentence) or _BY_TOOL.match(sentence))
        if so or language_of_work(whole) or _stands_alone(whole, pointed=pointed, few=few):
            yield Wish(said.turn, _plain(whole), strength, _last_part(said.refused) if so else "")


_UNSEEN = late_pattern(r"[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffd]")
_FILLS = late_pattern(
    r"\s*(?:/[\w:-]+\s+(?=\w))?(?:(?:yes|yeah|ok|okay|but|and|also|so|well|sure)\b[,\s]+|no,\s*)*",
    re.IGNORECASE,
)


def _plain(text: str) -> str:
    """A wish without the words that only join it to what was said before, on one line."""
    text = _UNSEEN.sub("", text)
    left = _FILLS.sub("", text, count=1) if _FILLS.match(text) else text
    return left if len(left) >= _SHORTEST else text


_FAR, _BRIEF = 100, 60
_CLAUSE = late_pattern(r"[,.;]\s+(?:and\s+|but\s+)?|\s+(?:and|but)\s+(?=please\b)")
_WIDE_CLAUSE = late_pattern(r"[,，;；]\s*")


def _ruling_part(sentence: str, worked: bool) -> str:
    """Of a sentence with a task in it, what comes from its rule on, without what takes away."""
    if WIDE.search(sentence):
        return _told_part(sentence, worked)
    if len(parts := _CLAUSE.split(sentence)) == 1:
        return ""
    rules = (at for at, part in enumerate(parts) if _strength(part, worked) == "rule")
    first = next(rules, len(parts))
    if first < len(parts) and tells_where(parts[first]):
        return parts[first]
    told = (p for p in parts[first:] if not p.endswith("?"))
    kept = [p for p in told if not (_UNDOES.search(p) or FOR_ONCE.search(p))]
    when = r"(?:the\s+next|next\s+time|when|if|once|every|each|before|after|unless)\b"
    if len(kept) == 1 < len(parts) - first and re.match(when, kept[0], re.IGNORECASE):
        return ""  # what was to be done then is not among it
    return text if (text := ", ".join(kept)).count("(") == text.count(")") else ""


def _told_part(sentence: str, worked: bool) -> str:
    """Of a sentence without spaces between its words, the rule without what is asked or told beside
    it."""
    parts = _WIDE_CLAUSE.split(sentence)
    kept = [p for p in parts if not (p.endswith(("?", "？")) or describes_abroad(p))]
    text = "，".join(kept)
    return text if 0 < len(kept) < len(parts) and _strength(text, worked) == "rule" else ""


def _explained(at: int, told: list[str], before: str, strength: Strength) -> str:
    """The sentence `at` with as much of what stands around it as it needs."""
    sentence = told[at]
    items = [*takewhile(re.compile(r"\d{1,2}[.)、]").match, told[at + 1 :])]
    if items or (sentence.endswith((":", "：")) and at + 1 < len(told)):
        return " ".join([sentence, *(items or told[at + 1 : at + 2])])
    needed = before if not at and _ANSWERS.match(sentence) else ""
    if at and not _leads_off(told[at - 1], before=True):
        needed = told[at - 1]
    kept = " ".join(t for n, t in enumerate(told) if n == at or not _leads_off(t, n < at))
    whole = kept if len(kept) <= _WHOLE else f"{needed} {sentence}"
    goes_on = at + 1 < len(told) and _GOES_ON.match(told[at + 1])
    if strength == "rule" and not goes_on and _says_all(sentence, kept):
        needed, whole = "", sentence
    if at == 0 and not whole.startswith(needed) and _POINTS_AWAY.search(whole):
        whole = f"{needed} {whole}"
    some = (whole.strip(), f"{needed} {sentence}".strip())
    fits = (t for t in some if not (FOR_ONCE.search(t) or _UNDOES.search(t)))
    return next(fits, sentence)


def is_lasting(prompt: str) -> bool:
    """Whether a prompt, after work was done, says how things are to be done."""
    return len(prompt) <= MOST_TYPED and any(
        _strength(sentence, True) in ("rule", "correction") for sentence in sentences(prompt)
    )


_ASKS_BACK = late_pattern(r"\b(?:can|could|should|would)(?:['’]?t|n['’]t)\b", re.IGNORECASE)


def _says_why(sentence: str) -> bool:
    """Whether words with which work was refused say what is wrong with it."""
    if FOR_ONCE.search(sentence) or len(content_words(sentence)) < 4:
        return False
    return not sentence.endswith("?") or bool(_ASKS_BACK.search(sentence))


def _strength(sentence: str, worked: bool) -> Strength | None:
    """How much a sentence asks for. Few do, so what would speak against it is looked for last."""
    if (found := _asks(sentence, worked)) is None:
        return None
    if FOR_ONCE.search(sentence) or _DESCRIBES.search(sentence) or describes_abroad(sentence):
        return None
    if _POLITE.search(sentence):
        return "rule"
    weighed = sentence.endswith(("?", "？")) or _WEIGHED.search(sentence)
    return None if weighed else found


def _asks(sentence: str, worked: bool) -> Strength | None:
    if _POLITE.search(sentence) or _RULE.search(sentence) or lasts_abroad(sentence):
        return "rule"
    if is_working_rule(sentence):
        return "rule"
    if tells_where(sentence) or (worked and _BY_TOOL.search(sentence)):
        return "rule"
    if _LATER.search(sentence) and _TELLS.search(sentence):
        return "rule"
    if _NOTED.search(sentence) and not _FOLLOWS.search(sentence):
        return "rule"
    if worked and AGAINST.search(sentence):
        return "correction"
    if _MANNER.search(sentence):
        return "manner"
    contrasts = worked and _CONTRASTS_ABROAD.search(sentence)
    return "product" if contrasts or _BEHAVES.search(sentence) else None


def _programs(trace: Trace) -> frozenset[str]:
    """The programs that a session ran, other than those that everything is done with."""
    ran = (call for call in trace.each_call() if call.kind == "shell")
    parts = (part.words for call in ran for part in joined_commands(command_of(call)))
    return frozenset(program_of(words) for words in parts if purpose_of(words)) - {"", "git"}


def _last_part(command: str) -> str:
    """The last of the commands that were given together, by itself."""
    own = [part.words for part in joined_commands(command) if purpose_of(part.words)]
    return " ".join(own[-1]) if own else command


def _names_program(sentence: str, programs: frozenset[str]) -> bool:
    """Whether a correction is about a program that was run: which one serves is no matter of the
    moment."""
    words = r"use|using|run|running|call|calling|with|not|than|of|over"
    found = re.findall(rf"\b(?:{words})\s+(?:the\s+)?[`'\"]?([\w.+-]+)", sentence, re.IGNORECASE)
    if WIDE.search(sentence):
        found = re.findall(r"[A-Za-z][\w.+-]+", sentence, re.ASCII)
    return any(word.strip(".") in programs for word in found)


def _stands_alone(text: str, *, pointed: bool, few: bool = False) -> bool:
    """Whether `text` says enough without what was on the screen when it was typed.

    `pointed`: what its pronouns mean may stand in it. `few`: two telling words are enough.
    """
    if WIDE.search(text):
        enough = len(text) <= _LONGEST and len(subject_words(text)) >= _FEW - few
        return enough and (pointed or not _points_away(text))
    if not _SHORTEST <= len(text) <= _LONGEST or len(content_words(text)) < 3 - few:
        return False
    return pointed or not _points_away(text)


def _points_away(text: str) -> bool:
    """Whether a pronoun's meaning does not stand in `text`; before a dash or a comma, or far
    before it, it may."""
    found = _POINTS_AWAY.search(text)
    if found is None or (found.start() > _FAR and not WIDE.search(text)):
        return False
    if not found.start() and re.search(r"\w:\s+\w", text):
        return False  # what it means stands behind the colon
    before, comma, _ = text[: found.start()].rpartition(", ")
    if comma and len(content_words(before)) > _FEW:
        return False
    return not re.search(r"\s[-–—]\s", text[: found.start()])
