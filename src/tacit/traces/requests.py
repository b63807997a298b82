"""What the user asks for in a few words, as verb and object, so that the same can be counted.

Only what the user typed is read, as `wishes.py` gives it. What is asked for again and again over
sessions is the learner's to say.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from tacit.base.patterns import late_pattern
from tacit.traces.trace import Trace
from tacit.traces.wishes import NOT, WORDS, content_words, sentences, telling_words, typed


class Request(msgspec.Struct, frozen=True):
    """Something that the user asked for in a few words."""

    turn: int
    text: str
    verb: str
    thing: str


# What people ask an agent to do again and again, by the verb and its forms of the same thing.
_THINGS = {
    word: thing
    for thing, words in (
        ("docs", ("documentation", "doc", "readme", "readmes", "documents", "document", "docs")),
        ("PR", ("pull", "pr", "prs", "mr")),
        ("tests", ("test", "tests")),
        ("lint", ("lint", "linter")),
        ("branch", ("branch",)),
        ("feedback", ("comments", "comment", "feedback")),
        ("changelog", ("changelog", "releasenotes", "notes")),
        ("commit", ("commit", "commits")),
        ("version", ("version",)),
        ("CI", ("ci",)),
        ("screenshot", ("screenshot", "screenshots")),
        ("todo", ("todo", "todos")),
        ("agents", ("subagent", "subagents", "agents", "sub-agents", "worker", "workers")),
        ("changes", ("change", "changes", "diff", "work", "code", "implementation")),
    )
    for word in words
}
_VERBS = {
    word: verb
    for verb, words in (
        ("update", ("update", "document")),
        ("run", ("run", "rerun", "execute")),
        ("commit", ("commit",)),
        ("push", ("push",)),
        ("review", ("review",)),
        ("check", ("check", "verify")),
        ("create", ("create", "open", "make", "raise", "submit")),
        ("write", ("write",)),
        ("add", ("add", "log")),
        ("address", ("address", "adress", "evaluate")),
        ("deploy", ("deploy",)),
        ("release", ("release", "publish")),
        ("merge", ("merge",)),
        ("spawn", ("spawn", "launch", "delegate", "use")),
        ("bump", ("bump",)),
    )
    for word in words
}
_JOINS = r"(?:and|then|also|please|now|finally|just|ok|okk|okay)"
_ASKED = late_pattern(
    rf"(?:(?:^|[,;:]\s*)(?:{_JOINS}\s+)*|\b(?:{_JOINS}\s+)+)"
    r"(?:can you\s+|could you\s+|let['’]?s\s+|please\s+|go ahead and\s+"
    r"|i\s+want\s+(?:yo)?u\s+to\s+)?"
    r"([a-z]{3,12})\b(?![./:_=-]\w|\s*=)(?=([^,;!?]*))",
    re.IGNORECASE,
)
_FEWEST_WORDS, _MOST_WORDS = 2, 20
_NEAR = 6
"""Words after a verb among which its object is looked for."""


_OWN = late_pattern(r"\b(?:your|yours|yourself|own|you['’]?(?:ve)?)\b", re.IGNORECASE)


def _meant_thing(verb: str, thing: str, words: list[str]) -> str:
    """What a request is about, where it is said or goes without saying; a review that does not
    name the agent's own work is one of another's."""
    if verb in ("commit", "push", "open-pr", "deploy", "merge", "release"):
        return ""
    if thing == "PR":
        return "feedback" if any(_THINGS.get(w.casefold()) == "feedback" for w in words) else thing
    if verb == "review" and thing != "feedback":
        return "changes" if _OWN.search(" ".join(words)) else "others"
    return thing


_APPROVAL = late_pattern(
    r"continue|proceed|ahead|thank|perfect|look|done|implement|plan|ok|yes|yep|correct|approve"
    r"|accept|merci|super|cool"
)


# A question without its mark, or what somebody thinks: no request.
_TALKS = late_pattern(
    r"\W*(?:(?:also|and|ok|okay|so|but|hmm+|well|yes|no)\W+)*(?:what|why|how|who|where|which|whether"
    r"|is|are|was|were|do|does|did|has|have|should|i\s+(?:see|saw|thought|guess|wonder))\b",
    re.IGNORECASE,
)


def asked(trace: Trace) -> Iterator[tuple[int, str, frozenset[str]]]:
    """The short sentences of a session that ask for something, with their telling words; those of
    its first prompt have the turn 0."""
    first = next((turn.number for turn in trace.turns if turn.prompt), 0)
    for said in typed(trace):
        at = 0 if said.turn == first else said.turn
        for sentence in sentences(said.text):
            words = frozenset(content_words(sentence))
            telling = {word for word in words if not _APPROVAL.match(word)}
            if sentence.endswith("?") or _TALKS.match(sentence):
                continue
            if sentence.startswith("/") and len(words) <= _FEWEST_WORDS:
                continue  # a command of the host
            if _FEWEST_WORDS <= len(telling) <= _MOST_WORDS:
                yield at, sentence, words


# The word with which somebody lets a plan be carried out.
_GO_AHEAD = late_pattern(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|sure|great|perfect|good|cool|looks?\s+good|lgtm|alright|please|now|and"
    r"|then|let['’]?s|you\s+can)\W+)*(?:go\s+ahead|proceed|implement|execute|build\s+it"
    r"|start\s+(?:implement\w*|building|the\s+work))(?:\s+(?:it|this|that|them|all|now|please|with"
    r"|the|plan|changes|implementation|implementing))*\W*|実装(?:して|をお願い)\S{0,6}|执行吧|开始实现",
    re.IGNORECASE,
)


def _let_go(trace: Trace) -> Iterator[Request]:
    """Where the user let a plan be carried out: nothing was changed before their word, and then
    something was."""
    planned = False
    for turn in trace.turns:
        changed = any(call.kind in ("write", "edit") for call in turn.calls)
        if turn.prompt and planned and changed and _GO_AHEAD.fullmatch(turn.prompt):
            yield Request(turn.number, turn.prompt, "plan", "")
        planned = bool(turn.steps) and not changed


def requests(trace: Trace) -> list[Request]:
    """What the user asked for in a few words, in order."""
    found = list(_let_go(trace))
    for said in typed(trace):
        before: list[str] = []
        for sentence in sentences(said.text):
            for asks in _ASKED.finditer(sentence[:200]):
                known = _VERBS.get(asks[1].casefold())
                if known is None or _UNASKED.search(sentence[: asks.start(1)]):
                    continue
                words = WORDS.findall(asks[2])
                if words[:1] and known in _NOUNS and _NOUNS[known].fullmatch(words[0]):
                    continue  # a thing that is called after it
                thing = _thing(words[:_NEAR])
                if not thing and words[:1] and words[0].casefold() in _IT:
                    thing = _thing(before)
                if known == "review" and not thing and telling_words(" ".join(words[:_NEAR])):
                    continue  # something else than what was done
                if (known, thing) == ("update", "docs") and not _follows(sentence, words):
                    continue  # what they are to say, once
                if known == "merge" and any(_FILES.search(word) for word in words[:3]):
                    continue  # no branch
                known = "commit" if thing == "commit" and known in _MAKES else known
                if (known, thing) == ("create", "PR"):
                    known = "open-pr"
                found.append(Request(said.turn, sentence, known, _meant_thing(known, thing, words)))
            if _SPLIT.search(sentence):
                found += [
                    Request(said.turn, sentence, "split", "commits"),
                    Request(said.turn, sentence, "commit", ""),
                ]
            if len(sentence) <= _SHORT and not _LEAVES.search(sentence):
                found += [
                    Request(said.turn, sentence, *act)
                    for act, words_for in _ABROAD.items() if words_for.search(sentence)
                ]  # fmt: skip
            before = WORDS.findall(sentence)
    return found


_BRIEF = 5
# That a document is to follow the work, rather than what it is to say.
_IN_STEP = late_pattern(
    r"\b(?:accordingly|reflect\w*|recent|latest|changes?|changed|necessary|needed|current|align\w*"
    r"|relevant|as\s+well|too|also|commit|push|done)\b",
    re.IGNORECASE,
)


def _follows(sentence: str, words: list[str]) -> bool:
    return len(words) <= _BRIEF or bool(_IN_STEP.search(sentence))


_UNASKED = late_pattern(
    rf"\b{NOT}\s+(?:just\s+)?$|\bi(?:['’]ll|\s+will|['’]m\s+going\s+to)\b[^,;]*$", re.IGNORECASE
)
_FILES = late_pattern(r"[/.]|^(?:files?|both|schemas?|tables?|sections?|cells?)$", re.IGNORECASE)
_IT = frozenset({"it", "this", "that", "these", "those", "them"})


_MAKES = ("create", "write", "add")
_NOUNS = {
    verb: re.compile(words, re.IGNORECASE)
    for verb, words in (
        ("commit", r"messages?|msgs?|hash(?:es)?|history|logs?|ids?|sha|conventions?|hooks?|style"),
        ("push", r"notifications?|events?|hooks?"),
        ("merge", r"conflicts?|commits?|bases?|queues?|strateg(?:y|ies)"),
        ("release", r"notes?|branch|workflows?|dates?|process|pipelines?"),
        ("deploy", r"scripts?|workflows?|keys?|logs?|targets?|previews?|pipelines?"),
    )
}
"""What is called after an act, and is none."""
_SPLIT = late_pattern(
    r"\b(?:separate|distinct|different|meaningful|logical|atomic|individual|several|\d)\s+commits\b"
    r"|\b(?:divide|split|group)\b[^.?!]*\bcommits?\b|\bcommits?\s+(?:by|per)\s+\w",
    re.IGNORECASE,
)
_SHORT = 60
_ORDERED = (
    r"(?:っ|を)?\s*"
    r"(?:し(?:て(?!い[たるな]|[たるまあ])|と[いこ]|よう|ろ|ちゃって)|お願い|頼|よろしく|\W*$)"
)
_PLEASE = r"(?:을|를|도)?\s*(?:해(?!야)|하고|하자|하세요|하십시오|부탁|진행|\W*$)"
_NOUN_ABROAD = (
    "[信消訊]息|记录|記錄|历史|歷史|"
    "失[败敗]|[了过過的]|按[钮鈕]|表[单單]|数据|規範|规范|通知|冲突|衝突"
)
_NO_ORDER = "(?<![已的刚剛次个個被])"
_ABROAD = {
    ("commit", ""): late_pattern(
        rf"コミット{_ORDERED}|{_NO_ORDER}提交(?!{_NOUN_ABROAD})|커밋{_PLEASE}"
        r"|(?i:\b(?:за)?коммить(?:те)?\b|\b(?:за)?коммитни|\bcommite[nr]?\b|\bcomm?ita\b)"
    ),
    ("push", ""): late_pattern(
        rf"プッシュ{_ORDERED}|{_NO_ORDER}推送(?!{_NOUN_ABROAD})|푸시{_PLEASE}"
        r"|(?i:\b(?:за)?пуш(?:ни|ь))"
    ),
    ("merge", ""): late_pattern(
        rf"マージ{_ORDERED}|{_NO_ORDER}合[并併](?!{_NOUN_ABROAD})|머지{_PLEASE}"
        r"|(?i:\bс?мерж(?:и|ни))"
    ),
    ("open-pr", ""): late_pattern(
        r"(?i:PR|プルリク)\s*(?:を)?(?:あげ|上げ|出し|作|化)(?!り?ました|た)|(?:提|创建|創建|開|开)\s?PR"
    ),
}
"""What is asked for in other languages, by the word for it."""
_LEAVES = late_pattern(
    r"しない|せずに|不要|不用|别|没|하지|마세요|[?？]|(?i:\bне\b|\bnão\b|\bno\b|\bnicht\b)"
)
_DOCUMENT = late_pattern(r"[@\w./-]*?([\w-]+\.(?:md|mdx|rst|adoc|txt))", re.IGNORECASE)


def _thing(words: Iterable[str]) -> str:
    """What of `words` a request is about: a thing that many ask for, or a document by its name."""
    for word in words:
        document = _DOCUMENT.fullmatch(word)
        known = _THINGS.get(word.casefold().partition(".")[0])
        if known and not (document and known == "agents"):
            return known
        if document:
            return document[1]
    return ""
