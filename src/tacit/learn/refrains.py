"""Refrains: what the user comes back to in session after session, in other words each time.

Sentences that say much the same belong together; which of them are worth keeping is weighed
(`worth.py`). What is asked for by one of the known verbs is counted in `demands.py`, which makes
findings of both.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession
from tacit.learn.worth import KEPT, Voices
from tacit.traces.requests import Said
from tacit.traces.typed_words import subject_words


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
    """The best first."""
    answered_by: tuple[str, ...] = ()


_PASTED = 30
_JOINED = 0.5
"""How near a sentence is to the best of its refrain, at least."""


def refrains(voices: Voices, told: set[str]) -> Iterator[Refrain]:
    """What the user said in several sessions and would say again, in sentences other than those in
    `told`; the best first."""
    chances = voices.chances
    leads: dict[int, list[int]] = {}
    for at in sorted(range(len(chances)), key=lambda at: (-chances[at], at)):
        if _is_rule(*voices.said[at]):
            continue  # is kept by itself
        against = voices.said[at][1].against
        near = {
            lead: alike
            for lead, alike in voices.near[at].items()
            if lead in leads and voices.said[lead][1].against == against
        }
        best = max(near, key=lambda lead: (near[lead], -lead), default=-1)
        if near.get(best, 0.0) >= _JOINED:
            leads[best].append(at)
        elif chances[at] >= KEPT and _may_lead(voices.said[at][1]):
            leads[at] = [at]
    for own in leads.values():
        heard = [voices.said[at] for at in own]
        tasks = {trace.id for trace, said in heard if said.changed}
        quotes = tuple(Quote(clean(said.text), trace.id, said.turn) for trace, said in heard)
        texts = {quote.text.casefold() for quote in quotes}
        pasted = len(texts) == 1 and len(quotes[0].text) > _PASTED
        again = len(sessions_of(quotes))
        if again > 1 and 2 * len(tasks) <= again and texts.isdisjoint(told) and not pasted:
            yield Refrain(quotes, _answers(quotes, voices.traces))


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


def _is_rule(trace: CountedSession, said: Said) -> bool:
    told = said.text.casefold()
    return any(w.strength == "rule" and told in w.text.casefold() for w in trace.wishes)


def _may_lead(said: Said) -> bool:
    """Whether a sentence tells the agent what to do."""
    return said.asks and not _STATES.search(said.text)


# A sentence in Japanese or Korean that tells how something is.
_STATES = re.compile(
    r"(?:(?<!願い)(?<!思い)(?<!願いし)ます|(?<!たい)(?<!しい)です|ました|でした|습니다|했다)[。.\s]*$"
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
