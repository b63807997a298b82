"""The tools that a client of `tacit mcp` gets: skills, facts, outcomes, and reviews handed over.

Each takes a struct of arguments and gives an `Answer`: text for the model, and the same as data. A
refusal is an answer that the model can act on. A client acts as `agent`, in the project that the
server was started for and nowhere else. Nobody watches it here, so what it proposes waits in the
inbox, unless the user allows more (`mcp.land`).
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tacit.agent.activation import render
from tacit.agent.tool import MOST_TEXT, Failed
from tacit.base import paths
from tacit.base.display import one_line, shorten
from tacit.base.errors import NotFound, TacitError
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.skills.fact import FactKind
from tacit.skills.library import Entry, KeptLibrary, Library
from tacit.ui.mcp.skill_resources import read_file, skill_uri

# What only some calls need is loaded by them: an agent waits for the server when it starts.
if TYPE_CHECKING:
    from tacit.changes.change import Actor, Operation, Verdict
    from tacit.changes.gate import Gate
    from tacit.changes.place import Place
    from tacit.traces.store import Stored

_MOST_HITS = 20


class Answer(msgspec.Struct, frozen=True):
    """What a call gave."""

    text: str
    data: msgspec.Struct | None = None
    failed: bool = False


class ClientTool(msgspec.Struct, frozen=True):
    """One tool. `writes`: whether it may change anything beyond its answer."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    result: type[msgspec.Struct]
    run: "Callable[[Any, Desk], Answer]"
    writes: bool = False


class Desk:
    """What the tools of one client work with: a project, its library, and who asks."""

    def __init__(self, project: str, client: str = "", kept: KeptLibrary | None = None) -> None:
        self.project = paths.project_root(project)
        self.cwd = project
        self.client = shorten(one_line(client), 60) or "an MCP client"
        self._kept = kept or KeptLibrary(project)

    @property
    def settings(self) -> Settings:
        return load_settings(self.cwd).settings

    @property
    def library(self) -> Library:
        return self._kept.now()

    def put_back(self) -> None:
        self._kept.put_back()

    def has_session(self, stored: "Stored") -> bool:
        """Whether a session is one of this project, in any of its checkouts."""
        folder = stored.head.project
        if not folder:
            return False
        return os.path.realpath(paths.project_root(folder)) in paths.checkouts(self.project)

    def gate(self, places: "Sequence[Place]") -> "Gate":
        """The gate for what this client proposes."""
        from tacit.changes.gate import Gate

        asked: tuple[Actor, ...] = () if self.settings.mcp.land else ("agent",)
        return Gate(places, always_ask=asked)

    def reason(self, said: str) -> str:
        return f"{one_line(said)} (proposed by {self.client} over MCP)".strip()


class SearchSkills(msgspec.Struct, frozen=True):
    query: str
    limit: int = 5


class FoundSkill(msgspec.Struct, frozen=True):
    name: str
    description: str
    scope: str
    state: str
    uri: str


class FoundSkills(msgspec.Struct, frozen=True):
    skills: tuple[FoundSkill, ...]


def search_skills(call: SearchSkills, desk: Desk) -> Answer:
    hits = desk.library.search(call.query, max(1, min(call.limit, _MOST_HITS)), archived=True)
    found = tuple(
        FoundSkill(e.name, e.description, e.scope, e.state, skill_uri(e.name))
        for e in (hit.entry for hit in hits)
        if e.state in ("active", "archived") and e.model_invocable
    )
    away = " (archived; read_skill brings it back)"
    rows = [f"- {s.name}{away if s.state == 'archived' else ''}: {s.description}" for s in found]
    return Answer("\n".join(rows) or "(no skill fits)", FoundSkills(found))


class ReadSkill(msgspec.Struct, frozen=True):
    name: str
    path: str = ""
    offset: int = 0


class SkillText(msgspec.Struct, frozen=True):
    name: str
    path: str
    text: str
    more_from: int = 0
    """Where the rest begins, for `offset`; 0 at the end."""


def read_skill(call: ReadSkill, desk: Desk) -> Answer:
    library = desk.library
    entry = _model_skill(library, call.name)
    if not call.path or call.path == entry.file:
        whole = render(library, entry.name, "", {})[0]
    else:
        whole = read_file(entry, call.path).decode("utf-8", "replace")
    start = max(0, call.offset)
    text = whole[start : start + MOST_TEXT]
    more = start + len(text) if start + len(text) < len(whole) else 0
    note = f"\n[{len(whole) - more:,} more characters: offset={more}]" if more else ""
    return Answer(text + note, SkillText(entry.name, call.path or entry.file, text, more))


def _model_skill(library: Library, name: str) -> Entry:
    from tacit.agent.skill_tools import trusted_skill

    entry = trusted_skill(library, name)
    if not entry.model_invocable:
        raise Failed(f"The skill '{entry.name}' is for the user to start, not for you.")
    return entry


class ProposeSkill(msgspec.Struct, frozen=True):
    name: str
    description: str
    content: str
    reason: str
    files: dict[str, str] = {}
    scope: Literal["user", "project"] = "user"


class ProposeEdit(msgspec.Struct, frozen=True):
    name: str
    old: str
    new: str
    reason: str
    path: str = "SKILL.md"


class Proposal(msgspec.Struct, frozen=True):
    outcome: Literal["applied", "proposed", "refused"]
    change: str
    reason: str
    instead: tuple[str, ...] = ()
    """Skills or facts to change instead."""


def propose_skill(call: ProposeSkill, desk: Desk) -> Answer:
    from tacit.agent.skill_tools import skill_text
    from tacit.changes.change import Create
    from tacit.changes.place import project_place, user_place

    text = skill_text(call.name, call.description, call.content)
    files = {path: body.encode() for path, body in call.files.items()}
    place = project_place(desk.cwd) if call.scope == "project" else user_place()
    return _propose(desk, call.name, Create({**files, "SKILL.md": text.encode()}), place, call)


def propose_edit(call: ProposeEdit, desk: Desk) -> Answer:
    from tacit.changes.change import Edit
    from tacit.changes.place import places_here, user_place

    entry = _model_skill(desk.library, call.name)
    place = next((p for p in places_here(desk.cwd) if p.root == entry.root), user_place())
    edit = Edit(call.old, call.new, call.path)
    return _propose(desk, entry.relative_folder, edit, place, call)


def _propose(
    desk: Desk, skill: str, operation: "Operation", place: "Place", call: ProposeSkill | ProposeEdit
) -> Answer:
    from tacit.changes.change import acting_as, make_change
    from tacit.changes.place import places_here

    gate = desk.gate([place, *places_here(desk.cwd)])
    with acting_as("agent"):
        change = make_change(skill, operation, reason=desk.reason(call.reason), root=place.root)
        return _answer(gate.propose(change))


def _answer(verdict: "Verdict") -> Answer:
    refusal = verdict.refusal
    instead = refusal.alternatives if refusal is not None else ()
    lines = [verdict.explain(), *verdict.notes]
    if verdict.outcome == "proposed":
        lines.append("It waits for the user in the inbox; nothing was changed.")
    if instead:
        lines.append(f"Change instead: {', '.join(instead)}")
    data = Proposal(verdict.outcome, verdict.change, verdict.explain(), instead)
    return Answer("\n".join(lines), data, failed=verdict.refused)


class Remember(msgspec.Struct, frozen=True):
    name: str
    fact: str
    kind: FactKind
    detail: str = ""
    scope: Literal["", "project", "user"] = ""
    reason: str = ""


class Recall(msgspec.Struct, frozen=True):
    query: str


class KnownFacts(msgspec.Struct, frozen=True):
    facts: tuple[str, ...]


def remember_fact(call: Remember, desk: Desk) -> Answer:
    from tacit.changes.change import acting_as
    from tacit.changes.facts import NewFact, Rationale, fact_place_for, remember
    from tacit.changes.place import fact_places

    _check_memory(desk)
    kept = fact_places(desk.cwd)
    place = next((p for p in kept if p.scope == call.scope), fact_place_for(kept, call.kind))
    new = NewFact(name=call.name, says=call.fact, kind=call.kind, detail=call.detail)
    with acting_as("agent"):
        why = Rationale(reason=desk.reason(call.reason))
        return _answer(remember(desk.gate(kept), place.root, new, why))


def recall_facts(call: Recall, desk: Desk) -> Answer:
    from tacit.agent.fact_tools import recalled_texts

    _check_memory(desk)
    texts = tuple(recalled_texts(desk.cwd, call.query))
    return Answer(shorten("\n\n".join(texts), MOST_TEXT) or "(no fact fits)", KnownFacts(texts))


def _check_memory(desk: Desk) -> None:
    if not desk.settings.memory.use:
        raise Failed("Memory is switched off in the user's settings. Do without it.")


class ReportOutcome(msgspec.Struct, frozen=True):
    skill: str
    worked: bool
    step: str = ""
    detail: str = ""


class Recorded(msgspec.Struct, frozen=True):
    skill: str
    recorded: bool = True


def report_outcome(call: ReportOutcome, desk: Desk) -> Answer:
    from tacit.base import secrets
    from tacit.traces.skill_uses import SkillReport, record_report

    entry = _model_skill(desk.library, call.skill)
    said = secrets.redact(shorten(one_line(": ".join(filter(None, (call.step, call.detail)))), 500))
    record_report(
        SkillReport(
            skill=entry.name,
            digest=entry.digest,
            worked=call.worked,
            said=said.text,
            client=desk.client,
            project=desk.project,
            at=datetime.now(UTC),
        )
    )
    return Answer(f"Recorded for '{entry.name}'.", Recorded(entry.name))


class LearnSession(msgspec.Struct, frozen=True):
    session: str = ""
    hand_over: bool = False


class Queued(msgspec.Struct, frozen=True):
    session: str
    waits_for: Literal["the background", "you"]


def learn_session(call: LearnSession, desk: Desk) -> Answer:
    from tacit.learn.ledger import DecidedJob, Ledger
    from tacit.learn.review.handoff import hand_over
    from tacit.learn.review.review_triggers import REVIEW_KIND, named_sessions, review_request
    from tacit.traces.store import Store
    from tacit.work.presence import wake

    with Store.open() as store:
        stored = _session(store, call.session, desk)
        (chosen,) = named_sessions(store, [stored], desk.settings).candidates
        if call.hand_over:
            hand_over(store, [chosen])
            text = f"The review of {stored.id} waits for you: handoff_next."
            return Answer(text, Queued(stored.id, "you"))
        request = review_request(stored.id, chosen.decision, f"{stored.turns}.{stored.calls}")
        Ledger(store.connection).add_jobs([DecidedJob(REVIEW_KIND, *request, stored.id)])
    wake()
    text = f"{stored.id} will be looked at in the background; what comes of it: tacit inbox."
    return Answer(text, Queued(stored.id, "the background"))


def _session(store: Any, name: str, desk: Desk) -> Any:
    """The session that is meant, of this project; the newest where none is named."""
    if name:
        found = store.find(name)
        if desk.has_session(found):
            return found
        raise NotFound(f"there is no session '{one_line(name)}' of this project")
    newest = next((s for s in store.sessions(limit=500) if desk.has_session(s)), None)
    if newest is None:
        raise Failed(
            "No session of this project is stored yet. The one that is going on is taken in when"
            " it ends, if the user has connected this agent: tacit connect."
        )
    return newest


class Nothing(msgspec.Struct, frozen=True):
    pass


class Handed(msgspec.Struct, frozen=True):
    id: str = ""
    session: str = ""
    prompt: str = ""
    left: int = 0


def handoff_next(call: Nothing, desk: Desk) -> Answer:
    from tacit.learn.review.handoff import CLAIM_MINUTES, take_next
    from tacit.traces.store import Store

    with Store.open() as store:
        taken = take_next(store, is_wanted=desk.has_session)
    if taken is None:
        return Answer("No review of this project waits. learn_session prepares one.", Handed())
    how = f"Answer within {CLAIM_MINUTES} minutes: handoff_answer id={taken.id}"
    data = Handed(taken.id, taken.session, taken.prompt, taken.left)
    return Answer(f"{taken.prompt}\n\n# How to answer\n\n{how}, with the JSON as `answer`.", data)


class HandoffAnswer(msgspec.Struct, frozen=True):
    id: str
    answer: str


class Judged(msgspec.Struct, frozen=True):
    session: str
    outcome: str
    reason: str
    changes: tuple[str, ...]
    left: int


def handoff_answer(call: HandoffAnswer, desk: Desk) -> Answer:
    from tacit.learn import announcements
    from tacit.learn.review.handoff import answer_review
    from tacit.learn.review.review_answer import MOST_ANSWER
    from tacit.traces.store import Store

    if len(call.answer) > MOST_ANSWER:
        raise Failed(f"The answer has more than {MOST_ANSWER:,} characters. Keep what matters.")
    with Store.open() as store, announcements.listening():
        done = answer_review(
            store, call.id, call.answer, by=desk.client, is_wanted=desk.has_session
        )
    data = Judged(done.session, done.outcome, done.reason, done.changes, done.left)
    failed = done.outcome in ("sent back", "refused")
    return Answer(f"{done.outcome}: {done.reason}", data, failed)


CLIENT_TOOLS: tuple[ClientTool, ...] = (
    ClientTool(
        "search_skills",
        "Search skills",
        "Find skills that fit a task: procedures that were worked out in earlier sessions of this"
        " user. Give the task in a few words. Do this before work of several steps.",
        SearchSkills,
        FoundSkills,
        search_skills,
    ),
    ClientTool(
        "read_skill",
        "Read a skill",
        "Read a skill by its name, then follow it; with `path`, one of its files.",
        ReadSkill,
        SkillText,
        read_skill,
    ),
    ClientTool(
        "propose_skill",
        "Propose a skill",
        "Propose a new skill: a procedure that was found out by trying and will be of use again."
        " `description` says what it does and when to use it; `content` is Markdown. The user"
        " decides on it.",
        ProposeSkill,
        Proposal,
        propose_skill,
        writes=True,
    ),
    ClientTool(
        "propose_edit",
        "Propose an edit to a skill",
        "Propose to replace `old`, which stands once in the skill's file, by `new`: what was wrong"
        " or missing.",
        ProposeEdit,
        Proposal,
        propose_edit,
        writes=True,
    ),
    ClientTool(
        "remember",
        "Note a fact",
        "Note one fact for later sessions, in one sentence: what the user said of themselves or of"
        " the project and cannot be read from its files. No secrets.",
        Remember,
        Proposal,
        remember_fact,
        writes=True,
    ),
    ClientTool(
        "recall",
        "Recall facts",
        "Read noted facts: one by its name, or those that fit a few words.",
        Recall,
        KnownFacts,
        recall_facts,
    ),
    ClientTool(
        "report_outcome",
        "Report how a skill did",
        "Say whether a skill that you followed worked; if not, at which step and why.",
        ReportOutcome,
        Recorded,
        report_outcome,
        writes=True,
    ),
    ClientTool(
        "learn_session",
        "Learn from a session",
        "Have a stored session of this project looked at for what is worth keeping: the newest, or"
        " the one named. With `hand_over`, you do it yourself: handoff_next.",
        LearnSession,
        Queued,
        learn_session,
        writes=True,
    ),
    ClientTool(
        "handoff_next",
        "Take a review",
        "Take the next review that waits for an agent: what to look at and how to answer.",
        Nothing,
        Handed,
        handoff_next,
        writes=True,
    ),
    ClientTool(
        "handoff_answer",
        "Answer a review",
        "Answer the review that was taken, with the JSON that it asks for.",
        HandoffAnswer,
        Judged,
        handoff_answer,
        writes=True,
    ),
)
TOOLS_BY_NAME = {tool.name: tool for tool in CLIENT_TOOLS}


def call_tool(name: str, arguments: dict[str, Any], desk: Desk) -> Answer:
    """What a call gives; what goes wrong is an answer too. Raises `KeyError` for no such tool."""
    tool = TOOLS_BY_NAME[name]
    try:
        call = msgspec.convert(arguments, tool.arguments, strict=False)
        answer = tool.run(call, desk)
        if tool.writes:
            desk.put_back()
        return answer
    except msgspec.ValidationError as error:
        known = ", ".join(tool.arguments.__struct_fields__) or "nothing"
        return Answer(f"{name}: {error}. It takes: {known}.", failed=True)
    except Failed as error:
        return Answer(str(error), failed=True)
    except TacitError as error:
        return Answer(error.explain(), failed=True)
    except OSError as error:
        return Answer(f"{name}: {error.strerror or error}", failed=True)
