"""The short form of a review: everything in one message, and one answer in JSON.

For models that call no tools, for whoever sets `learn.form`, and for an agent that does a review
by hand-over. Owns what the answer looks like, how it is found in what a model says, and the skills
that the message carries because the model cannot look for them. What an answer asks for is done by
the tools that a reviewer in conversation has (`review_tools`), on staged copies, and judged as
theirs is (`review_broker`). A refusal goes back once; then the whole answer is given again.
"""

import json
from collections.abc import Coroutine, Iterable, Iterator
from typing import Annotated, Any

import msgspec

from tacit.agent.tool import Failed, Result
from tacit.base.display import shorten
from tacit.base.secrets import clean
from tacit.changes.change import SKILL_FILE, Refusal
from tacit.changes.containment import Escape
from tacit.learn.background.broker import (
    Judge,
    Judged,
    RefusedChange,
    Services,
    StagedBroker,
    refusal_text,
)
from tacit.learn.background.staging import Staging
from tacit.learn.background.toolset import EditFile, StagedSkills, WriteFile
from tacit.learn.digest import Digest
from tacit.learn.review.review_broker import MOST_FACTS, ReviewFacts, skill_files, whose
from tacit.learn.review.review_tools import Remember, ReviewTools
from tacit.skills.library import Entry, Library
from tacit.traces.trace import Trace

SENT_BACK = 1
"""How often a refusal goes back."""
MOST_ANSWER = 400_000
"""Characters of an answer that are read."""
_MOST_FILES = 20
_MOST_EDITS = 40
_STARTS = 50
"""Opening braces at which a JSON object is looked for among other text."""
_AGAIN = (
    "Answer once more, with the whole JSON object: what was in order as it was, and what was "
    "refused mended or left out. What is still refused then is dropped."
)


class ReviewAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reviewer answers in the short form; without any lists, that there is nothing."""

    why: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    """What is changed and why, or why there is nothing to keep."""
    write_file: Annotated[tuple[WriteFile, ...], msgspec.Meta(max_length=_MOST_FILES)] = ()
    edit: Annotated[tuple[EditFile, ...], msgspec.Meta(max_length=_MOST_EDITS)] = ()
    remember: Annotated[tuple[Remember, ...], msgspec.Meta(max_length=MOST_FACTS)] = ()


def read_answer(text: str) -> ReviewAnswer:
    """The answer in what a model said, whatever stands around it. Raises `Failed`."""
    if len(text) > MOST_ANSWER:
        raise Failed(f"an answer has at most {MOST_ANSWER:,} characters; this has {len(text):,}")
    wrong = ""
    for found in json_objects(text):
        try:
            return msgspec.convert(found, ReviewAnswer, strict=False)
        except msgspec.ValidationError as error:
            wrong = wrong or str(error)
    if wrong:
        known = ", ".join(ReviewAnswer.__struct_fields__)
        raise Failed(f"the JSON does not have the form of an answer: {wrong}; it has: {known}")
    raise Failed("no JSON object was found in it, or one that is not whole")


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in `text`, in order, whatever stands between them."""
    decoder = json.JSONDecoder(strict=False)  # a line break in a string is meant as one
    at = -1
    for _ in range(_STARTS):
        at = text.find("{", at + 1)
        if at < 0:
            return
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        yield found
        at = end - 1


class AnswerBroker(StagedBroker):
    """The parent's side where the reviewer has no tools: it does what the answer asks for."""

    def __init__(
        self,
        staging: Staging,
        judge: Judge,
        services: Services,
        facts: ReviewFacts,
        *,
        skills: bool,
        rounds: int = SENT_BACK,
    ) -> None:
        super().__init__(staging, judge, services, rounds=rounds)
        self._facts = facts
        self._skills = skills
        self._tools = ReviewTools(StagedSkills(staging.path), self._serve_here)
        self._failed: tuple[RefusedChange, ...] = ()
        self.said = ""
        """The reason that the last answer gave."""

    def finished(self, text: str) -> str | None:
        """Do what the answer asks for on fresh copies, and have it judged."""
        try:
            answer = read_answer(text)
        except Failed as failed:
            return self._refuse_unread(str(failed), text)
        self.said = answer.why
        self._staging.clear()
        self._facts.clear()
        self._failed = tuple(self._carry_out(answer))
        return super().finished(answer.why)

    def _refuse_unread(self, why: str, text: str) -> str | None:
        """What was in order in the answer before is kept."""
        self.finished_once = True
        self.said = self.said or shorten(text, 2000)
        self.refused = (_refused("the answer", why), *self.refused)
        self._left -= 1
        return f"Your answer cannot be read: {why}.\n{_AGAIN}" if self._left >= 0 else None

    def _look(self, text: str) -> tuple[Judged, tuple[RefusedChange, ...]]:
        """A skill of which a part could not be done is dropped whole."""
        judged, refused = super()._look(text)
        names = {found.skill for found in self._failed}
        ready = tuple(one for one in judged.ready if one.skill.rpartition("/")[2] not in names)
        refused = tuple(found for found in refused if found.skill not in names)
        return Judged(ready, judged.refused), (*self._failed, *self._facts.refused, *refused)

    def _refusal_text(self, refused: Iterable[RefusedChange], judged: Judged) -> str:
        refused = list(refused)
        shown = [
            f"\n{found.skill} as it is now:\n{self._view(found.skill)}"
            for found in refused
            if found.refusal.rule == "overtaken"
        ]
        return "\n".join([refusal_text(refused, judged.ready, _AGAIN), *shown])

    def _view(self, skill: str) -> str:
        return self.serve("view_skill", {"name": skill}).text

    async def _serve_here(self, name: str, arguments: dict[str, Any]) -> Result:
        return self.serve(name, arguments)

    def _carry_out(self, answer: ReviewAnswer) -> Iterator[RefusedChange]:
        """Do each part of the answer; what cannot be done is told."""
        files = self._tools.files
        for write in sorted(answer.write_file, key=lambda call: not _begins(call)):
            yield from self._try(write.path, files.write(write))
        for edit in answer.edit:
            yield from self._try(edit.path, files.edit(edit))
        for fact in answer.remember:
            refused_before = self._facts.refused
            failed = _fault(self._tools.remember(fact))
            if failed and self._facts.refused == refused_before:
                yield _refused(f"fact {fact.name}", failed)

    def _try(self, path: str, work: Coroutine[Any, Any, Result]) -> Iterator[RefusedChange]:
        name = shorten(path.strip().removeprefix("./").partition("/")[0], 80) or "the answer"
        if not self._skills:
            work.close()
            yield _refused(name, "only facts are under review")
        elif failed := _fault(work):
            yield _refused(name, failed)


def _begins(call: WriteFile) -> bool:
    """Whether it is the SKILL.md of a new skill: its other files come after it."""
    return call.path.strip().removeprefix("./").partition("/")[2] == SKILL_FILE


def _refused(skill: str, why: str) -> RefusedChange:
    return RefusedChange(skill, Refusal("standard", "answer", why))


def _fault(work: Coroutine[Any, Any, Result]) -> str:
    """Have a tool do its work, which waits for nothing here; why it failed, else empty."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value.text if done.value.failed else ""
    except Failed as failed:
        return str(failed)
    raise AssertionError("a tool waited for something")


SHOWN_WHOLE = 24_000
"""Characters of learned skills that a message carries whole."""
_FOUND = 8
_LOADED = 20


def related_skills(library: Library, trace: Trace, summary: Digest) -> str:
    """The skills that could be meant: those that the session loaded, then those that fit its words.

    What may be changed is shown whole while there is room, because an edit quotes it; the rest by
    name and description. The marks are those of the digest.
    """
    rows: list[str] = []
    left = SHOWN_WHOLE
    for entry in _meant(library, trace):
        row = f"- {entry.name} ({whose(entry)}): {shorten(entry.description, 300)}"
        files = _shown_files(entry) if entry.origin == "learned" else {}
        whole = "".join(
            f"\n<{summary.word} skill {entry.name}/{path}>\n{text}\n</{summary.word}>"
            for path, text in files.items()
        )
        if len(whole) > left:
            row, whole = f"{row} (too long to be shown here: leave it as it is)", ""
        left -= len(whole)
        rows.append(row + whole)
    return "\n".join(rows) or "(none fits)"


def _meant(library: Library, trace: Trace) -> list[Entry]:
    loaded = [library.find(name) for name in trace.skills[:_LOADED]]
    words = " ".join([trace.head.title, *trace.prompts])[:2000]
    hits = [hit.entry for hit in library.search(words, _FOUND)] if words.strip() else []
    found = {entry.name: entry for entry in (*loaded, *hits) if entry is not None}
    ours = (entry for entry in found.values() if entry.scope != "bundled")
    return [entry for entry in ours if entry.state == "active"]


def _shown_files(entry: Entry) -> dict[str, str]:
    """The texts of a learned skill, SKILL.md first; nothing where it cannot be read."""
    try:
        files = skill_files(entry)
    except (Escape, OSError):
        return {}
    texts = {path: file.data for path, file in files.items() if b"\0" not in file.data}
    order = sorted(texts, key=lambda path: (path not in (SKILL_FILE, entry.file), path))
    return {path: clean(texts[path].decode("utf-8", "replace")) for path in order}


def answer_schema() -> dict[str, Any]:
    """The JSON schema of an answer."""
    return msgspec.json.schema(ReviewAnswer)
