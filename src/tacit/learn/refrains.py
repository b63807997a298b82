"""Refrains: what the user comes back to in session after session, in other words each time.

A request is known again by what its sentences have in common: a word for what work is made of and
one near it that says how; or, where the agent answered without changing code, the verb that a
clause begins with and what it is about. What is asked for by one of the known verbs is counted in
`demands.py`, which makes findings of both.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import combinations

import msgspec
from msgspec import structs

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession
from tacit.traces.requests import Said
from tacit.traces.standing_orders import QUESTIONS_ABROAD, asks_abroad, is_chinese
from tacit.traces.typed_words import FUNCTION_WORDS, WIDE, WORDS, content_words, subject_words
from tacit.traces.wishes import NOT, is_lasting


class Quote(msgspec.Struct, frozen=True):
    """What the user typed, and where."""

    text: str
    session: str
    turn: int
    to: str = ""
    """The command that was refused with it."""


def sessions_of(quotes: Iterable[Quote]) -> tuple[str, ...]:
    """The sessions that quotes are from, each once."""
    return tuple(dict.fromkeys(quote.session for quote in quotes))


class Refrain(msgspec.Struct, frozen=True):
    """What the user came back to, and the commands with which the agent mostly answered."""

    quotes: tuple[Quote, ...]
    about: str = ""
    """The words that its sentences have in common, where those are no stems."""
    answered_by: tuple[str, ...] = ()


_LEAST, _RARE = 3, 20
_TWENTIETH, _PART = 20, 2 / 5
_NEAR = 4
"""Telling words from one of a pair to the other: what stands further apart is two things."""
_LONG = 80
_Pair = tuple[str, str]


class _Heard(msgspec.Struct, frozen=True):
    """A sentence that may be a refrain's."""

    said: Said
    quote: Quote


def refrains(
    project: str, traces: list[CountedSession], told: set[str], speaking: int
) -> Iterator[Refrain]:
    """What the user came back to, in sentences of several sessions other than those in `told`; the
    best supported first."""
    rules = {w.text.casefold() for t in traces for w in t.wishes if w.strength == "rule"}
    enough = max(_LEAST, speaking // _TWENTIETH)
    heard = [*_heard(traces, told)]
    taken: set[str] = set()
    own = _own_words(project, traces)
    for quotes in _by_work(heard, own, rules, enough, taken):
        yield Refrain(quotes)
    known = {pair for text in told for pair in _asked(text)}
    taken |= {one.quote.text for one in heard if _kept(one.quote.text, rules)}
    for pair, quotes in _by_clause(heard, own, known, enough, taken):
        about = " ".join(pair) if WIDE.search("".join(pair)) else ""
        yield Refrain(quotes, about, _answers(quotes, traces))


def _heard(traces: list[CountedSession], told: set[str]) -> Iterator[_Heard]:
    """What was typed, each long sentence once: it was sent or pasted once more."""
    known = set(told)
    for trace in traces:
        for said in trace.said:
            quote = Quote(clean(said.text), trace.id, said.turn)
            text = quote.text.casefold()
            if text in known:
                continue
            if said.turn == 0 or len(text) > _LONG:
                known.add(text)
            yield _Heard(said, quote)


_SPLIT = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")


def _own_words(project: str, traces: list[CountedSession]) -> set[str]:
    """The words of the project's own files, which say what is built."""
    paths = {path for trace in traces for path in (*trace.changes.edited, project)}
    names = (path.rpartition(".")[0] or path for path in paths)
    return {word for name in names for word in content_words(_SPLIT.sub(" ", name))}


# What work is made of and handed over by, in the languages that people speak to agents in.
_WORK_WORDS = (
    "commit commits message test tests testing pr prs pull review reviews reviewer branch branches"
    " comment comments changelog reply replies doc docs documentation agent agents subagent plan"
    " plans skill skills lint linter title ticket tickets merge release worktree description spec"
    " specs discussion feedback checks thread report readme write writing kommentar kommentare"
    " zweig branche commentaire commentaires revue rama comentario comentarios pruebas revisión"
    " testes revisão ramo comentário commento commenti revisione коммит коммиты тест тесты ревью"
    " ветка комментарий комментарии コミット テスト レビュー ブランチ プルリク メッセージ タイトル"
    " コメント ドキュメント 提交 测试 測試 分支 评审 評審 注释 註釋 文档 文檔 커밋 테스트 리뷰"
    " 브랜치 문서 주석"
)  # fmt: skip
# What is said of any work, and says nothing of how.
_TASK_WORDS = (
    "add address alread already app appropriate ask back based bit build case cases change changes"
    " check ci clear close code complete concern config consider context continue correct create"
    " critical current delete design detail different done each end error everything exist existing"
    " explore fail failing file files find finding findings fix folder follow following full give"
    " given going good hand help idea implement implementation investigate issue issues keep know"
    " latest learn left line lines list local long look main medium miss missing move name names"
    " note number open order page part path pick point points post previous problem proceed project"
    " provide push put question read related relevant remote remove repo request response result"
    " results right root run script second section see sense separate set setting settings show"
    " similar single specific start step suite support sync take task tell thing third time try"
    " understand upcoming update use user users version wait want whole word work working"
    " 更新 修正 追加 確認 作成 変更 実装 対応 表示 機能 画面 修改 添加 增加 检查 檢查"
    " 使用 进行 進行 需要 수정 추가 확인 작성 변경 내용 대해 작업"
)  # fmt: skip


def _stems(words: str) -> Iterator[str]:
    """The words as `subject_words` gives them."""
    for word in words.split():
        yield from subject_words(word)


@cache
def common_words() -> tuple[frozenset[str], frozenset[str]]:
    """What work is made of, and that with what is said of any work."""
    work = frozenset(_stems(_WORK_WORDS))
    return work, work | frozenset(_stems(_TASK_WORDS))


def _by_work(
    heard: Sequence[_Heard],
    own: set[str],
    rules: set[str],
    enough: int,
    taken: set[str],
) -> Iterator[tuple[Quote, ...]]:
    """By a word for what work is made of, and near it one that says how.

    In two sessions it has to be nearly the same sentence.
    """
    by_word: dict[str, set[str]] = {}
    together: dict[_Pair, list[_Heard]] = {}
    for one in heard:
        said = one.said
        for word in set(said.words):
            by_word.setdefault(word, set()).add(one.quote.session)
        if said.asks and not _STATES.search(said.text):
            for pair in _pairs(said.words, own):
                together.setdefault(pair, []).append(one)
    for pair, often in _most_first(together):
        left = [one for one in together[pair] if one.quote.text not in taken]
        quotes = tuple(one.quote for one in left)
        mostly = often >= _PART * len(by_word[pair[1]])
        ruled = any(quote.text.casefold() in rules for quote in quotes)  # is kept by itself
        wished = any(orders(q.text) and not _kept(q.text, rules) for q in quotes)
        many = len(sessions_of(quotes)) >= enough
        if wished and mostly and (many or (_nearly_same(left) and not ruled)):
            taken |= {quote.text for quote in quotes}
            yield tuple(structs.replace(quote, text=_part(quote.text, pair)) for quote in quotes)


def _most_first(together: dict[_Pair, list[_Heard]]) -> list[tuple[_Pair, int]]:
    often = {pair: len(sessions_of(h.quote for h in own)) for pair, own in together.items()}
    return sorted(often.items(), key=lambda one: (-one[1], one[0]))


_COMMA = re.compile(r",\s+|;\s+|\s[-–—]\s|\s\((?=\w)|\.\s+")


def _part(text: str, pair: _Pair) -> str:
    """A sentence, or of a long one the part between commas that a pair of words stands in."""
    if len(text) <= _LONG:
        return text
    parts = (part.strip(" ()") for part in _COMMA.split(text))
    both = (
        part for part in parts
        if set(pair) <= set(subject_words(part.replace("-", " "))) and orders(part)
    )  # fmt: skip
    return next(both, text)


_SAME = 0.6
_SAME_THING = {"reviewer": "review", "subagent": "agent", "prs": "pr", "pytest": "test"}


def _pairs(words: Sequence[str], own: set[str]) -> Iterator[_Pair]:
    """The words for what work is made of in a sentence, each with those near it that say how."""
    found: set[_Pair] = set()
    words = [_SAME_THING.get(word, word) for word in words]
    work, common = common_words()
    for at, word in enumerate(words):
        if word in work:
            near = words[max(0, at - _NEAR) : at + _NEAR + 1]
            found |= {(word, how) for how in near if how not in common | own}
    yield from found


def _kept(text: str, rules: Iterable[str]) -> bool:
    return any(rule in text.casefold() for rule in rules)


def _nearly_same(said: Sequence[_Heard]) -> bool:
    """Whether sentences of two sessions are nearly the same, by their words and as they stand."""
    return any(
        one.quote.session != other.quote.session
        and _overlap(set(one.said.words), set(other.said.words)) >= _SAME
        and SequenceMatcher(None, one.quote.text.casefold(), other.quote.text.casefold()).ratio()
        >= _SAME
        for one, other in combinations(said[:_RARE], 2)
    )


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


_ORDERS = re.compile(
    r"^\W*(?:(?:and|also|but|can\s+you|carefully|could\s+you|first|just|let['’]?s|now|ok|okay|please|so"
    r"|then|thoroughly|you\s+can)\W+)*(?:add|address|amend|answer|ask|avoid|base|be|bump|call|check"
    r"|cite|comment|commit|compare|consider|create|delegate|describe|document|ensure|evaluate|explain"
    r"|explore|fix|fold|follow|format|give|go|ground|group|have|include|keep|launch|leave|link|list"
    r"|look|make|mention|merge|move|name|omit|open|perform|post|prefer|push|put|raise|read|rebase"
    r"|reference|rename|reply|report|research|respond|review|run|show|spawn|split|squash|start|stop"
    r"|summari[sz]e|tag|test|update|use|using|verify|wait|write)\b(?!\W*$)"
    rf"|\b(?:{NOT}|always|make\s+sure|please|instead\s+of|should|must|need(?:s|ed)?\s+to|has\s+to|have\s+to"
    r"|i\s+want|i['’]?d\s+like)\b",
    re.IGNORECASE,
)
# A sentence in Japanese or Korean that tells how something is.
_STATES = re.compile(
    r"(?:(?<!願い)(?<!思い)(?<!願いし)ます|(?<!たい)(?<!しい)です|ました|でした|습니다|했다)[。.\s]*$"
)
_INTO = ("に", "で", "を", "へ", "으로")
"""How a brief order ends, its verb left out."""


def orders(text: str) -> bool:
    """Whether a sentence tells the agent what to do, rather than naming a thing."""
    if WIDE.search(text):
        return asks_abroad(text) or is_lasting(text) or text.rstrip("。 ").endswith(_INTO)
    return not text.isascii() or bool(_ORDERS.search(text)) or is_lasting(text)


# By what clauses begin with.

_CLAUSES = re.compile(
    r"[,，、。;；:：!！]\s*|\s[-–—]\s|\.\s"
    r"|\s+(?:and|then|und|dann|et|puis|y|luego|depois|poi|en\s+dan|и|потом|затем|potem)\s+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"`[^`]*`|「[^」]*」|“[^”]*”|\"[^\"]*\"")
# What stands before the verb of a request.
_LEAD = re.compile(
    r"\W*(?:(?:ok(?:ay)?|okk|yes|yeah|yep|no|now|then|and|also|so|but|just|please|pls|plz|hey|great|good|cool"
    r"|thanks|first|next|again|let['’]?s|maybe|i\s+think|we\s+(?:need|have|should|can|must)(?:\s+to)?"
    r"|(?:can|could|would|will)\s+(?:you|we|u)|i\s+(?:want|need|would\s+like)\s+(?:you|u)\s+to"
    r"|you\s+(?:can|need\s+to|should|have\s+to)|go\s+ahead|bitte|mal|jetzt|kannst\s+du|könntest\s+du"
    r"|s['’]il\s+te\s+pla[iî]t|maintenant|peux-tu|tu\s+peux|por\s+favor|ahora|puedes|agora|você\s+pode|pode"
    r"|per\s+favore|ora|puoi|пожалуйста|теперь|можешь|давай|alsjeblieft|nu|kun\s+je|proszę|teraz|lütfen|şimdi)\b[\s,]*)*",
    re.IGNORECASE,
)
_LEAD_WIDE = re.compile(
    r"(?:请|請|帮我|幫我|帮忙|你|再|先|然后|然後|并|並|现在|現在|需要|好的?|麻烦|麻煩|直接|去|来|來|把|那么?|那麼)*"
)
_VERBS = frozenset(
    re.findall(
        r"\S+",
        "add address analyse analyze apply archive ask assign attach audit back backport"
        " base boot branch bring bump call check checkout clean clear close comment commit"
        " compare compile confirm connect copy create debug delegate deploy describe diff"
        " discuss do document download draft dump estimate evaluate export fetch file fold"
        " follow format generate get go ground implement inspect install invoke launch link"
        " lint load log make mark merge migrate monitor name notify open perform ping plan"
        " post prepare print profile publish pull push put query raise rebase rebuild record"
        " redeploy refresh regenerate release reload reply report research reset resolve"
        " respond restart resume review revert rerun run save scan search seed send setup"
        " ship smoke spawn spin squash stage start stash stop submit summarise summarize"
        " switch sync tag take test track trigger try update upgrade upload use validate"
        " verify view wait watch write"
        # German, Dutch
        " analysiere baue committe deploye erstelle führe gehe hole installiere lade lass"
        " lies mache nimm nutze öffne prüfe pushe räume schau schaue schicke schreib schreibe"
        " speichere starte stoppe teste überprüfe verwende warte wechsle zieh bekijk bouw"
        " controleer draai gebruik herstart maak"
        # French
        " arrête cherche crée déploie démarre donne écris envoie exécute fais génère installe"
        " lance lis mets ouvre passe pousse prends publie récupère regarde relance relis"
        " redémarre reviens utilise va vérifie"
        # Spanish, Portuguese, Italian
        " actualiza analiza arranca busca compila comprueba crea despliega ejecuta envía"
        " escribe genera haz instala lanza lee levanta mira prueba publica reinicia revisa"
        " sube usa ve verifica vuelve analise atualize confira crie envie escreva execute"
        " faça gere instale leia publique reinicie reveja rode suba veja verifique volte"
        " aggiorna analizza avvia cerca controlla distribuisci esegui fai guarda lancia leggi"
        " prova riavvia scrivi torna"
        # Russian, Polish
        " вернись выведи выкати выполни глянь задеплой закоммить залей запусти запушь запиши"
        " напиши обнови открой отправь перезапусти переключись посмотри проанализируй проверь"
        " прогони протестируй прочитай пересобери собери сделай создай останови найди sprawdź"
        " uruchom zrestartuj zbuduj wdróż przetestuj napisz zobacz",
    )
)
_ANSWERED = frozenset({"let", "tell", "explain", "show", "describe", "give", "take", "try"})
"""Verbs that ask for an answer, or for nothing yet."""
_GO_AHEAD = (
    "开始",
    "開始",
    "继续",
    "繼續",
    "执行",
    "執行",
    "同意",
    "确认",
    "確認",
    "告诉",
    "告訴",
    "解释",
    "解釋",
)
_MOST_WORDS, _RUN = 14, 4


def _by_clause(
    heard: Iterable[_Heard],
    own: set[str],
    known: set[_Pair],
    enough: int,
    taken: set[str],
) -> Iterator[tuple[_Pair, tuple[Quote, ...]]]:
    """By the verb that a clause begins with and what it is about, other than what is `known`, where
    most of the time no code was changed in answer: what asks for a change is a task. Where the verb
    does not come first, never."""
    together: dict[_Pair, list[_Heard]] = {}
    for one in heard:
        if one.quote.text not in taken and not _STATES.search(one.quote.text):
            for pair in _asked(one.quote.text) - known:
                if WIDE.search(pair[0] + pair[1]) and own.intersection(pair):
                    continue  # what is built
                together.setdefault(pair, []).append(one)
    for pair, _ in _most_first(together):
        left = [one for one in together[pair] if one.quote.text not in taken]
        sessions = sessions_of(one.quote for one in left)
        without = sessions_of(one.quote for one in left if not one.said.changed)
        texts = {one.quote.text.casefold() for one in left}
        pasted = len(texts) == 1 and len(left[0].quote.text) > _LONG // 2
        part = 1 if any(map(_verb_last, texts)) else 2
        if len(sessions) >= enough and part * len(without) >= len(sessions) and not pasted:
            taken |= {one.quote.text for one in left}
            yield pair, tuple(one.quote for one in left)


def _verb_last(text: str) -> bool:
    return bool(WIDE.search(text)) and not is_chinese(text)


@lru_cache(maxsize=4096)
def _asked(text: str) -> frozenset[_Pair]:
    """What the clauses of a sentence ask for, as verb and object."""
    found: set[_Pair] = set()
    for clause in _CLAUSES.split(_QUOTED.sub(" ", text)):
        found.update(_asked_wide(clause) if WIDE.search(clause) else _asked_by_verb(clause))
    return frozenset(found)


def _asked_by_verb(clause: str) -> Iterator[_Pair]:
    """The verb of a clause with each thing near it, or with its next words where those are said of
    any work."""
    words = [w.casefold().strip(".:'/") for w in WORDS.findall(_LEAD.sub("", clause, count=1))]
    if not words or words[0] not in _VERBS - _ANSWERED or len(words) > _MOST_WORDS:
        return
    if len(words) >= _RUN and len(content_words(" ".join(words[1:_RUN]))) > 1:
        yield words[0], " ".join(words[1:_RUN])
    things = content_words(" ".join(words[1:]))[:_NEAR]
    common = common_words()[1] | FUNCTION_WORDS
    yield from ((words[0], thing) for thing in things if thing not in common and thing.isalpha())


def _asked_wide(clause: str) -> Iterator[_Pair]:
    """What a clause without spaces between its words asks for: in Chinese its first word says what
    is done, elsewhere that stands last."""
    if QUESTIONS_ABROAD.search(clause) or clause.rstrip().endswith(("?", "？")):
        return
    clause = _LEAD_WIDE.sub("", clause.strip(), count=1)
    words = list(dict.fromkeys(subject_words(clause)))
    common = common_words()[1]
    if is_chinese(clause):
        if words and clause.startswith(words[0]) and words[0] not in _GO_AHEAD:
            yield from (
                (words[0], word) for word in words[1 : 2 * _NEAR]
                if word not in common and word[0] != words[0][-1]
            )  # fmt: skip
    elif asks_abroad(clause):
        telling = [word for word in words if word not in common]
        yield from (
            pair for pair in combinations(telling[-_NEAR - 1 :], 2) if pair[0][-1] != pair[1][0]
        )


_EVERYBODYS = {"git add", "git commit", "git push", "git fetch"}


def _answers(quotes: Iterable[Quote], traces: Iterable[CountedSession]) -> tuple[str, ...]:
    """The commands that were run in answer in half of the sessions, other than to look."""
    asked = {(quote.session, quote.turn) for quote in quotes}
    ran: dict[str, set[str]] = {}
    for trace in traces:
        for run in trace.runs:
            if (trace.id, run.turn) in asked and run.outcome.state == "worked" and not run.tool:
                ran.setdefault(run.purpose, set()).add(trace.id)
    half = max(2, len({session for session, _ in asked}) / 2)
    ran = {purpose: own for purpose, own in ran.items() if purpose not in _EVERYBODYS}
    often = sorted(ran, key=lambda purpose: (-len(ran[purpose]), purpose))
    return tuple(purpose for purpose in often if len(ran[purpose]) >= half)[:3]
