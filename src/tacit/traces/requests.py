"""What the user asks for in a few words, as verb and object, so that the same can be counted.

Beside it the sentences that were typed, by their telling words and by the repositories outside of
the project that they point to. Only what the user typed is read, as `wishes.py` gives it. What is
asked for again and again over sessions is the learner's to say.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tacit.base.patterns import Alternatives, late_pattern
from tacit.traces.observations import paths_of
from tacit.traces.standing_orders import (
    QUESTIONS_ABROAD,
    asked_tongue,
    is_working_rule,
    remembered,
)
from tacit.traces.trace import ToolCall, Trace
from tacit.traces.typed_words import WIDE, WORDS, Typed, subject_words, telling_words, typed
from tacit.traces.wishes import AGAINST, FOR_ONCE, NOT


class Request(msgspec.Struct, frozen=True):
    """Something that the user asked for in a few words."""

    turn: int
    text: str
    verb: str
    thing: str


class Said(msgspec.Struct, frozen=True):
    """A sentence that the user typed."""

    turn: int
    """0 for those of the first prompt."""
    text: str
    words: tuple[str, ...]
    """Its telling words, in order, without addresses, files and numbers."""
    asks: bool
    """Whether it asks for something, rather than for an answer."""
    outside: tuple[str, ...] = ()
    """What it points to: repositories and folders outside of the project, pages to follow."""
    changed: bool = False
    """Whether files other than documents were changed in answer."""
    beside: int = 1
    """How many sentences were typed in one go, this among them."""
    together: bool = False
    """Whether it says how user and agent work together, or what is to be remembered."""
    against: bool = False
    """Whether it is against something, and not for this once."""


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
        ("discussion", ("discussion", "discussions", "thread")),
        ("issue", ("issue", "issues", "ticket", "tickets")),
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
        ("reply", ("reply", "respond", "answer", "post")),
    )
    for word in words
}
_JOINS = r"(?:and|then|also|please|now|finally|just|ok|okk|okay)"
_ASKED = late_pattern(
    rf"(?:(?:^|[,;:]\s*)(?:{_JOINS}\s+)*|\b(?:{_JOINS}\s+)+)"
    r"(?:can you\s+|could you\s+|let['’]?s\s+|please\s+|go ahead and\s+"
    r"|i\s+want\s+(?:yo)?u\s+to\s+)?"
    r"([a-z]{3,12})\b(?![./:_=-]\w|\s*[=:])(?=([^,;!?]*))",
    re.IGNORECASE,
)
_FEWEST_WORDS, _MOST_WORDS, _MOST_PAIRS = 2, 20, 48
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


APPROVAL = late_pattern(
    r"continue|proceed|ahead|thank|perfect|look|done|implement|plan|ok|yes|yep|correct|approve"
    r"|accept|merci|super|cool|oke|lanjut|weiter|sigu|adelante|continua|prossig|prosegu|продолж|devam"
    r"|[继繼][续續]|続け|계속|진행|오케"
)


# A question without its mark, what somebody thinks, or how things are: no request.
_TALKS = late_pattern(
    r"""\W*(?:(?:also|and|ok|okay|so|but|hmm+|well|yes|no)\W+)*
    (?:(?:what|why|how|who|where|which|whether|is|are|was|were|does|did|has|should
    |i\s+(?:see|saw|thought|guess|wonder)|(?:please\s+)?(?:tell|explain|show)\s+(?:me|us)|(?:do|have)(?=\s+(?:you|we|they|i|the|these|those)\b))\b
    |(?:it|this|that|there|they|he|she|i|we)(?:['’](?:m|s|re|ve)\b
    |\s+(?:am|are|is|was|were|got|had|has|have)\b)
    |the(?:\s+[\w-]+){1,5}?\s+(?:is|are|was|were|has|have|had)\b)""",
    re.IGNORECASE | re.VERBOSE,
)


# What asks though it ends in a question mark: politely, or in reproach.
_ASKS_SO = Alternatives(
    r"\b(?:can|could|would|will)\s+(?:you|we)\b|\b(?:are|ca|could|did|do|have|is|should|was|would)"
    r"n['’]?t\b|\bwhy\s+(?:are|is)\s+\w+\s+still\b|\bdid\s+you\b|ないの|ませんか|没有?.{0,6}[吗嗎]",
    re.IGNORECASE,
)
_ADDRESS = late_pattern(
    r"\[[^\]]*\]\((?:https?:)[^)]*\)|https?://\S+|\b[A-Za-z]:\\[!-~]+|\[redacted: [\w-]+\]"
)
_CODE = late_pattern(r"\*\*|\w\s=\s\S|[{;]$|[A-Z_]{4,}=|\b[\w+-]{40,}", re.ASCII)
_SPELT = late_pattern(r"[/.\\_=<>{}()\d]")


def said(trace: Trace, words: Sequence[Typed] | None = None) -> Iterator[Said]:
    """The sentences that the user typed, but for commands of the host and for long ones; `words`
    as for `wishes`."""
    first = next((turn.number for turn in trace.turns if turn.prompt), 0)
    changed = {turn.number for turn in trace.turns if any(map(_changes_code, turn.calls))}
    for one in typed(trace) if words is None else words:
        for sentence in one.sentences:
            plain = _ADDRESS.sub(" ", sentence)
            about = [w for w in subject_words(plain.replace("-", " ")) if not _SPELT.search(w)]
            host = sentence.startswith("/") and (len(about) <= _FEWEST_WORDS or " " not in sentence)
            if host or _CODE.search(plain):
                continue  # a command of the host, a line of a file
            telling = {word for word in about if not APPROVAL.match(word)}
            outside = (*_outside(sentence), *_places(sentence, trace.project))
            most = _MOST_PAIRS if WIDE.search(sentence) else _MOST_WORDS
            if len(telling) > most or (len(telling) < _FEWEST_WORDS and not outside):
                continue
            talks = sentence.endswith(("?", "？")) or _TALKS.match(sentence)
            talks = talks or (WIDE.search(sentence) and QUESTIONS_ABROAD.search(sentence))
            asks = not talks or bool(_ASKS_SO.search(sentence))
            at = 0 if one.turn == first else one.turn
            lasts = not FOR_ONCE.search(sentence)
            yield Said(
                at,
                sentence,
                tuple(about),
                asks,
                outside,
                one.turn in changed,
                len(one.sentences),
                lasts and (is_working_rule(sentence) or bool(remembered([sentence], 0))),
                lasts and bool(AGAINST.search(sentence)),
            )


def _changes_code(call: ToolCall) -> bool:
    documents = (path.casefold().endswith(_WRITTEN) for path in paths_of(call))
    return call.kind in ("write", "edit") and not call.failed and not all(documents)


_WRITTEN = (".md", ".mdx", ".rst", ".txt", ".adoc")


_OUTSIDE = late_pattern(
    r"github\.com/([\w.-]+/[\w.-]+)|(?<![\w./~])@?((?:\.\./)+[\w-][\w.-]*)"
    r"|(?<![\w./:@~-])([A-Za-z][\w-]*/[A-Za-z][\w.-]*\w)(?=(?:[^\w./-]|$)[^\n]{0,12}?"
    r"(?:repo\b|のように|参考|どうし|처럼|참고|参照))",
    re.ASCII | re.IGNORECASE,
)


_PAGE = r"@?((?!\S*(?:plan|task|todo))(?:[\w.-]+/[\w./-]*|[\w-]+\.(?:mdx?|rst|txt)))"
_NAMES_PAGE = late_pattern(r"/|\.(?:md|rst|txt)", re.ASCII | re.IGNORECASE)
# A page or folder of the project that work is to follow.
_GUIDES = late_pattern(
    r"\b(?:follow(?:ing)?|according\s+to|based\s+on|as\s+(?:defined|described)\s+in|gemäß|selon|según"
    rf"|segundo|secondo|согласно)\s+(?:(?:the\s+)?\w+\s+(?:in|of)\s+)?{_PAGE}"
    rf"|(?<![\w./]){_PAGE}[^\w./\n]{{0,3}}[^\n。.]{{0,12}}?(?:に従|に沿|に基づ|を参考|맞게|참고|기반|따라)"
    rf"|(?:按照|根据|根據|遵循|参考)\s?{_PAGE}",
    re.ASCII | re.IGNORECASE,
)


_PLACE = late_pattern(
    r"(?<![\w.~/-])(?:[A-Za-z]:[\\/]|/(?:Users|home|opt|srv|mnt|data|workspaces?)/|~/)[^\s,，。;；:：'\"`()<>?*|]+"
)
_PASSING = late_pattern(
    r"(?i:/(?:Downloads|Desktop|Pictures|Bilder|Temp|tmp|Screenshots?|node_modules|\.cache|\.claude|\.codex)(?:/|$))"
)


def _places(sentence: str, project: str) -> Iterator[str]:
    """The folders outside of `project` that a sentence names by their whole paths, each with those
    that it lies in, up to the second below a home."""
    own = project.replace("\\", "/").rstrip("/").casefold() + "/"
    for named in _PLACE.findall(sentence):
        path = named.replace("\\", "/").rstrip("/.")
        if _PASSING.search(path):
            continue
        parts = path.split("/")
        if "." in parts[-1].lstrip("."):
            parts.pop()
        for end in range(len(parts), 2 if parts[0] else 4, -1):
            folder = "/".join(parts[:end])
            if not f"{folder.casefold()}/".startswith(own) and not own.startswith(
                f"{folder.casefold()}/"
            ):
                yield folder + "/"


def _outside(sentence: str) -> Iterator[str]:
    """The repositories and folders beside the project that a sentence names, and what of the
    project it says is to be followed: the folder, where it lies in one."""
    for named in _OUTSIDE.findall(sentence) if "/" in sentence else ():
        yield next(filter(None, named)).removesuffix(".git")
    for named in _GUIDES.findall(sentence) if _NAMES_PAGE.search(sentence) else ():
        path = next(filter(None, named))
        yield path.partition("/")[0] + "/" if "/" in path else path


# The word with which somebody lets a plan be carried out.
_GO_AHEAD = late_pattern(
    r"\W*(?:(?:ok(?:ay)?|yes|yep|sure|great|perfect|good|cool|looks?\s+good|lgtm|alright|please|now|and"
    r"|then|let['’]?s|you\s+can)\W+)*(?:go\s+ahead|proceed|implement|execute|build\s+it"
    r"|start\s+(?:implement\w*|building|the\s+work))(?:\s+(?:it|this|that|them|all|now|please|with"
    r"|the|plan|changes|implementation|implementing|and|implement))*\W*|実装(?:して|をお願い)\S{0,6}|执行吧|开始实现",
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


_IN_A_PR = Alternatives(
    r"\bin\s+(?:an?|another|its\s+own)\s+(?:new\s+|separate\s+)?(?:branch\s?/\s?)?(?:pr|pull\s+request)\b",
    re.IGNORECASE,
)
# That a change belongs to a commit that is there already.
_FOLDS = Alternatives(
    r"\b(?:fix-?up|fold(?:ed)?|squash|amm?end|add(?:ed)?|put)\b[^.?!]*\b(?:in)?to\s+(?:the|an?|its)\s+"
    r"(?:right|current|existing|last|previous|same|original|first)\s+commits?\b"
    r"|\bfix-?up\s+(?:in|commits?\b)|\bfold(?:ed)?\s+(?:in\b|into\b)[^.?!]*\bcommits?\b"
    r"|^\W*(?:\w+,?\s+){0,2}amm?end(?:\s+(?:it|this|that|the\s+commit))?\W*$|amend\s*(?:して|で|해)",
    re.IGNORECASE,
)
_LINK = late_pattern(r"https?://[^\s)\]]+?/([a-z]+)/[\w.-]*\d[^\s)\]]*", re.IGNORECASE)
_LINKED = {"discussions": "discussion", "issues": "issue", "pull": "PR", "runs": "CI"}
# That nothing is to be changed before the user has seen what is meant to be.
_WAITS = Alternatives(
    r"\b(?:do\s+not|don['’]?t)\s+(?:change|touch|edit|write|modify|implement)\b[^.?!]*"
    r"(?:\bcode\b|\banything\b|\bfiles?\b)[^.?!]*\byet\b|\bno\s+(?:code\s+)?changes\s+ye[ts]\b"
    r"|\b(?:analysis|plan|proposal|design)\s+first\b|\bfirst\s+(?:give|show|send|write)\s+me\b"
    r"|\bonly\s+(?:the\s+)?(?:analysis|plan)\b|\bjust\s+(?:do\s+)?(?:an?\s+|the\s+)?(?:full\s+)?"
    r"(?:analysis|plan|proposal)\b|\b(?:start|begin|implement\w*)\s+(?:only\s+)?once\s+(?:we\s+)?"
    r"(?:\w+\s+)?agreed?\b|\bwait\s+for\s+my\s+(?:ok|approval|go|review|word)\b"
    r"|\bbefore\s+(?:you\s+)?(?:cod|implement|chang)\w*,?\s+(?:show|ask|tell|let)\b"
    r"|\b(?:noch\s+nichts|erst\s+(?:ein(?:en)?\s+)?plan)\b|\b(?:pas\s+encore|d['’]abord\s+(?:un\s+)?"
    r"plan)\b|\b(?:todav[ií]a\s+no|aún\s+no|ainda\s+não|primeiro\s+o\s+plano|primero\s+el\s+plan"
    r"|non\s+ancora|prima\s+il\s+piano|сначала\s+план|пока\s+не\s+(?:меняй|трогай|пиши))\b"
    r"|まだ(?:実装|変更|コード)\S{0,6}(?:しない|せず)|(?:実装|変更)(?:する|の)?前に[^。]*(?:確認|レビュー|見せ)"
    r"|先(?:不要|别|別)(?:改|写|寫|动|動)|先(?:给|給)?(?:我)?(?:分析|计划|計劃|方案)|아직\s*(?:수정|구현|변경)하지"
    r"|먼저\s*(?:계획|분석)"
    r"|我(?:的)?(?:同意|确认|確認|批准)(?:之|了)?[后後]，?再?(?:执行|執行|施行|实施|實施|开始|開始|动手|動手|修改|提交)"
    r"|\b(?:after|once)\s+i\s+(?:agree|approve|confirm)\b",
    re.IGNORECASE,
)
# That an act was left out, which the user had thought of as done.
_FORGOTTEN = Alternatives(
    r"\b(?:d[di]{1,3}d?(?:n['’]?t)?\s+(?:you|yo|u)|haven['’]?t\s+you|have\s+you|you\s+(?:didn['’]?t|did\s+not"
    r"|haven['’]?t|forgot\s+to)|why\s+(?:didn['’]?t|haven['’]?t)\s+you)\s+(?:not\s+|already\s+)?"
    r"(?:\w+\s+and\s+)?(?P<act>push|comm?it)(?:t?ed)?\b(?![^?]*\bdid\s+you\b)"
    r"|\b(?:you|it|all|this|that)\s+(?:is\s+|all\s+)*(?:\w+\s+and\s+)?(?P<done>push|commit)t?ed\b"
    r"[^?.]*\?|\bwhy\s+(?P<left>un(?:push|commit)t?ed|unstaged)\b"
    r"|(?P<ja>プッシュ|コミット|push|commit)(?:し|され)て(?:い)?ない|(?:没有?|沒有?)(?P<zh>提交|推送)",
    re.IGNORECASE,
)
# That the agent is to do itself what it told the user to do.
_YOURSELF = Alternatives(
    r"\b(?:do|run|execute|start|check|test|fix|install|try|verify|perform)\s+(?:(?:it|that|this|those|these|them|all|everything"
    r"|the)\b[^.?!,]{0,40}\s)?(?:(?:by\s+)?yourself|on\s+your\s+own|for\s+me)\b"
    r"|\bable\s+to\s+\w+\s+(?:\w+\s+)?by\s+yourself\b|\byou\s+can\s+do\s+(?:that|it|this|those|them)(?:\s+(?:too|yourself|for\s+me))\b"
    r"|\bmach(?:e|st)?\s+(?:du\s+)?(?:das|es)\s+(?:bitte\s+)?(?:selbst|selber)\b|\bfais-le\s+toi-même\b"
    r"|\btu\s+peux\s+(?:le|la|les)\s+faire\s+toi-même\b|\bhazlo\s+tú\b|\bpuedes\s+hacerlo\s+tú\b|\bfaça\s+você\s+mesmo\b"
    r"|\bvocê\s+mesmo\s+(?:pode|faz|execut)|\bfallo\s+tu\b|\bpuoi\s+farlo\s+tu\b|\bты\s+(?:и\s+)?сам\s+можешь\b|\bdoe\s+het\s+zelf\b"
    r"|\b(?:сделай|запусти|проверь|выполни|исправь)(?:\s+\w+){0,2}\s+сам\b|\bkendin\s+(?:yap|çalıştır)|\bzrób\s+to\s+sam\b"
    r"|你(?:自己|直接)(?:来|去|來)?(?:做|执行|執行|运行|運行|操作|改|测试|測試|跑|完成|处理|處理|修)"
    r"|(?:あなた|自分|そちら)(?:自身)?で(?:やって|実行し|実施し|確認し|対応し|修正し|試し|テストし)"
    r"|(?:직접|네가|스스로)\s*(?:해\s*(?:줘|봐)|실행|확인|테스트|수정)",
    re.IGNORECASE,
)
_ACTS_LEFT = {
    "コミット": "commit", "提交": "commit", "プッシュ": "push", "推送": "push", "unpushed": "push",
    "uncommitted": "commit", "unstaged": "commit", "comit": "commit",
}  # fmt: skip


_SPARED = late_pattern(
    rf"\b{NOT}\b|\bi(?:['’]ll|\s+will|\s+can)\b|不要|别|別|ないで|\bне\b", re.IGNORECASE
)
_WONDERS = late_pattern(
    r"\W*(?:why|how|what|where|is|are|was|do|does|did|has|have)\b", re.IGNORECASE
)


def _besides(at: int, sentence: str, first: bool) -> Iterator[Request]:
    """What a sentence asks for that no one verb stands for: to look at what it links to, a pull
    request, a commit that is to take more in, to wait, to do what was left out."""
    link = _LINK.search(sentence) if first else None
    if link and link[1].casefold() in _LINKED:
        yield Request(at, sentence, "look", _LINKED[link[1].casefold()])
    if _IN_A_PR.search(sentence):
        yield Request(at, sentence, "open-pr", "")
    if _FOLDS.search(sentence):
        yield Request(at, sentence, "fold", "commits")
    if _WAITS.search(sentence):
        yield Request(at, sentence, "plan", "")
    if _YOURSELF.search(sentence) and not _SPARED.search(sentence):
        yield Request(at, sentence, "do", "yourself")
    if (tongue := asked_tongue(sentence)) and not _WONDERS.match(sentence):
        yield Request(at, sentence, "language", tongue)
    if found := _FORGOTTEN.search(sentence):
        act = next(word.casefold() for word in found.groupdict().values() if word)
        yield Request(at, sentence, "forgotten", _ACTS_LEFT.get(act, act))


def requests(trace: Trace, words: Sequence[Typed] | None = None) -> list[Request]:
    """What the user asked for in a few words, in order; `words` as for `wishes`."""
    found = list(_let_go(trace))
    start = next((turn.number for turn in trace.turns if turn.prompt), 0)
    for one in typed(trace) if words is None else words:
        before: list[str] = []
        for sentence in one.sentences:
            found += _besides(one.turn, sentence, one.turn == start)
            heading = sentence.endswith((":", "："))
            for asks in _ASKED.finditer("" if heading else sentence[:200]):
                known = _VERBS.get(asks[1].casefold())
                if known is None or _UNASKED.search(sentence[: asks.start(1)]):
                    continue
                after = WORDS.findall(asks[2])
                if after[:1] and known in _NOUNS and _NOUNS[known].fullmatch(after[0]):
                    continue  # a thing that is called after it
                thing = _thing(after[:_NEAR])
                if not thing and after[:1] and after[0].casefold() in _IT:
                    thing = _thing(before)
                if (
                    known == "review"
                    and thing in ("", "issue", "discussion")
                    and telling_words(" ".join(after[:_NEAR]))
                ):
                    continue  # something else than what was done
                if (known, thing) == ("update", "docs") and not _follows(sentence, after):
                    continue  # what they are to say, once
                if known == "merge" and any(_FILES.search(word) for word in after[:3]):
                    continue  # no branch
                known = "commit" if thing == "commit" and known in _MAKES else known
                if (known, thing) == ("create", "PR"):
                    known = "open-pr"
                found.append(Request(one.turn, sentence, known, _meant_thing(known, thing, after)))
            if _SPLIT.search(sentence):
                found += [
                    Request(one.turn, sentence, "split", "commits"),
                    Request(one.turn, sentence, "commit", ""),
                ]
            if len(sentence) <= _SHORT and not _LEAVES.search(sentence):
                found += [
                    Request(one.turn, sentence, *act)
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
    rf"(?:\b{NOT}|\b(?:did|must|should)(?:\s+not|n['’]?t))\s+(?:just\s+)?$|\bi(?:['’]ll|\s+will|['’]m\s+going\s+to)\b[^,;]*$",
    re.IGNORECASE,
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
_SPLIT = Alternatives(
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
