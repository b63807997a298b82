"""A whole review: what it is shown, what comes of it, and that it says only what happened."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from reviews import BUILDS, LEARNED, look, put_skill, store, text_of
from skills_ref.validator import validate

from tacit.agent import budget
from tacit.agent.agent_events import Usage as Spent
from tacit.agent.budget import Limits
from tacit.base import config_file, job, paths, trust
from tacit.base.clock import until_tomorrow
from tacit.base.setting_sections import LearnSettings
from tacit.changes.change import Archive, make_change
from tacit.changes.change_checks import check_changes
from tacit.changes.gate import Gate
from tacit.changes.provenance import witness
from tacit.learn.background import child_process
from tacit.learn.background.task import RunReport
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.review import review_job
from tacit.learn.review.review_job import review_outcome
from tacit.learn.use_records import catch_up
from tacit.skills.library import Library
from tacit.testing import (
    Cut,
    Endless,
    Garbage,
    Replies,
    Stall,
    Status,
    ToolUse,
    Turns,
    Usage,
    reply,
)
from tacit.testing.sample_sessions import made, ran
from tacit.traces.skill_uses import uses_of
from tacit.traces.store import Store
from tacit.traces.trace import Trace

NEW = ToolUse(
    "write_file", {"path": "package-builds/SKILL.md", "content": text_of("package-builds", BUILDS)}
)


def skill_text(project: Path, name: str) -> str:
    return (project / ".agents/skills" / name / "SKILL.md").read_text()


def recorded(trace: Trace) -> tuple[str, str]:
    opened = Store.open()
    try:
        (entry,) = [r for r in Ledger(opened.connection).of(trace.id) if r.method == REVIEW]
        return entry.outcome, entry.reason
    finally:
        opened.close()


def test_a_skill_is_learned_in_the_child_process(project: Path, session: Trace, serve: Any) -> None:
    """Through the real child: the skill stands there, valid, marked, in the history, and told."""
    (project / "VERSION").write_text("2.0.0\n")
    looks = reply(
        ToolUse("ls"),
        ToolUse("read_file", {"path": "VERSION"}),
        ToolUse("read_trace", {"page": 1}),
        ToolUse("search_skills", {"query": "build"}),
    )
    server = serve(Turns([looks, NEW, "Kept package-builds: the version comes from the file."]))
    done = look(session)
    assert (done.outcome, done.reason) == ("created", "created package-builds")
    listed, read, page, found = (r.text for r in server.requests[1].tool_results)
    assert "VERSION  6" in listed
    assert "2.0.0" in read
    assert page.startswith("Page 1 of 1")
    assert found == "(no skill fits)"
    folder = project / ".agents/skills/package-builds"
    assert validate(folder) == []
    text = skill_text(project, "package-builds")
    assert "  source: auto-skill\n" in text
    assert f"  sessions: {session.id}\n" in text
    assert "  learned-by: openai:mock\n" in text
    head = Gate().state_of("package-builds", str(folder.parent)).head
    assert head is not None
    assert (head.record.actor, head.record.session) == ("reviewer", session.id)
    assert head.record.evidence == (session.id,)
    assert head.record.change == done.changes[0]
    assert recorded(session) == ("created", "created package-builds")
    first = server.requests[0]
    assert first.tool_names == {
        "read_file", "ls", "read_trace", "search_skills", "view_skill", "write_file", "edit",
    }  # fmt: skip
    assert "always read it from the VERSION file" in first.user_texts[0]
    status = subprocess.run(["git", "status", "--short"], capture_output=True, text=True)
    assert "package-builds" not in status.stdout


def test_a_second_run_of_the_job_does_nothing(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """After a kill the same job finds in the history what it did, and asks no model again."""
    server = serve(Turns([NEW, "Kept."]))
    first = look(session)
    asked = len(server.requests)
    assert look(session) == first
    assert len(server.requests) == asked
    log = list(Gate().open_place(str(project / ".agents/skills")).history.log("package-builds"))
    assert len(log) == 1


def test_a_proposal_is_not_made_twice(session: Trace, serve: Any, inside: None) -> None:
    """What waits in the inbox is found there too, also when the user answered meanwhile."""
    serve(Turns([NEW, "Kept."]), learn__approval="ask")
    first = look(session)
    assert first.outcome == "proposed"
    gate = Gate()
    (proposal,) = gate.inbox.waiting()
    assert first.changes == (proposal.id,)
    assert look(session) == first
    assert gate.accept(proposal).applied
    assert look(session).changes == first.changes
    assert len(gate.inbox.all()) == 1


def test_an_accepted_proposal_keeps_its_origin(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """A skill that waited and was accepted says where it is from, and its history too."""
    serve(Turns([NEW, "Kept."]), learn__approval="ask")
    look(session)
    gate = Gate()
    (proposal,) = gate.inbox.waiting()
    gate.accept(proposal)
    assert f"sessions: {session.id}" in skill_text(project, "package-builds")
    head = gate.state_of("package-builds", proposal.change.root).head
    assert head is not None
    assert (head.record.actor, head.record.approved_by) == ("reviewer", "user")


class _Hold:
    """An engine that keeps the results of steps, as the real one does over a kill."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.stop = False

    def cancelled(self) -> bool:
        return self.stop

    def step(self, name: str, function: Any) -> Any:
        if name not in self.kept:
            self.kept[name] = function()
        return self.kept[name]


def test_a_kill_in_the_middle_of_landing_loses_nothing(
    project: Path, session: Trace, serve: Any, inside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two skills the second lands when the job is run again, and the first is not repeated."""
    other = text_of("version-files", "Read the VERSION file: `read -r VERSION < VERSION`.")
    second = ToolUse("write_file", {"path": "version-files/SKILL.md", "content": other})
    server = serve(Turns([reply(NEW, second), "Kept both."]))
    hold = _Hold()
    real, count = Gate.propose, []

    def killed(self: Gate, change: Any, **how: Any) -> Any:
        count.append(change.skill)
        if len(count) == 2:
            raise KeyboardInterrupt
        return real(self, change, **how)

    with job.controlled_by(hold):
        monkeypatch.setattr(Gate, "propose", killed)
        with pytest.raises(KeyboardInterrupt):
            look(session)
        monkeypatch.setattr(Gate, "propose", real)
        done = look(session)
    assert len(server.requests) == 2
    assert sorted(p.name for p in (project / ".agents/skills").iterdir() if p.name[0] != ".") == [
        "package-builds",
        "version-files",
    ]
    assert len(done.changes) == 2
    history = Gate().open_place(str(project / ".agents/skills")).history
    assert len(list(history.log("package-builds"))) == 1


def test_a_cancelled_job_changes_nothing(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """A cancel that comes while the model talks keeps what it made from landing."""
    serve(Turns([NEW, "Kept."]))
    hold = _Hold()
    hold.stop = True
    with job.controlled_by(hold):
        done = look(session)
    assert (done.outcome, done.reason) == ("failed", "it was cancelled; nothing was changed")
    assert not (project / ".agents/skills/package-builds").exists()


def test_nothing_is_a_real_answer(session: Trace, serve: Any, inside: None) -> None:
    """A review that keeps nothing says so, with the reviewer's reason, and is recorded."""
    serve(["Nothing to save: routine work."])
    done = look(session)
    assert done.outcome == "nothing"
    assert 'the reviewer said: "Nothing to save: routine work."' in done.reason
    assert recorded(session)[0] == "nothing"


def test_a_claim_is_not_an_outcome(session: Trace, serve: Any, inside: None) -> None:
    """A model that says it made a skill and did not has changed nothing, and that is said."""
    serve(["I created the skill build-magic and updated two others."])
    done = look(session)
    assert done.outcome == "nothing"
    assert done.reason.startswith("nothing was changed; the reviewer said:")
    assert done.changes == ()


def test_a_learned_skill_is_mended(project: Path, session: Trace, serve: Any, inside: None) -> None:
    """An edit of a learned skill is one change; the marks it had stay, its own are added."""
    put_skill(project, "package-builds", "1. `python3 build.py`\n", head=LEARNED)
    script = [
        ToolUse("view_skill", {"name": "package-builds"}),
        ToolUse("edit", {
            "path": "package-builds/SKILL.md",
            "old": "1. `python3 build.py`",
            "new": "1. `read -r VERSION < VERSION; export VERSION; python3 build.py`",
        }),
        ToolUse("write_file", {
            "path": "package-builds/references/versions.md",
            "content": "Never invent a version: read the VERSION file.\n",
        }),
        "Mended package-builds.",
    ]  # fmt: skip
    serve(Turns(script))
    done = look(session)
    assert (done.outcome, done.reason) == ("edited", "edited package-builds")
    text = skill_text(project, "package-builds")
    assert "learned: '2026-10-01'" in text
    assert f"sessions: codex:old, {session.id}" in text
    assert "revised: " in text
    assert "export VERSION" in text
    folder = project / ".agents/skills/package-builds"
    assert (folder / "references/versions.md").read_text().startswith("Never invent")
    assert validate(folder) == []
    assert len(done.changes) == 1


def test_a_new_skill_is_scanned_once(
    project: Path, session: Trace, serve: Any, inside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the reviewer's end to the landing nothing changes, and nothing is scanned again."""
    scanned: list[Any] = []
    real = witness.scan

    def scan(files: Any, **how: Any) -> Any:
        scanned.append(files)
        return real(files, **how)

    monkeypatch.setattr(witness, "scan", scan)
    serve(Turns([NEW, "Kept."]))
    assert look(session).outcome == "created"
    assert len(scanned) == 1


def test_a_refusal_goes_back_and_is_mended(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """The model reads why a change is refused, mends it, and the mended one lands."""
    bad = text_of("package-builds", BUILDS, head="allowed-tools: Bash\n")
    script = [
        ToolUse("write_file", {"path": "package-builds/SKILL.md", "content": bad}),
        "Kept.",
        ToolUse(
            "edit", {"path": "package-builds/SKILL.md", "old": "allowed-tools: Bash\n", "new": ""}
        ),
        "Mended.",
    ]
    server = serve(Turns(script))
    assert look(session).outcome == "created"
    told = server.requests[2].user_texts[-1]
    assert "package-builds: SKILL.md, line" in told
    assert "allowed-tools" in told


def test_what_was_ready_lands_when_a_limit_ends_the_rest(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """One skill passes, one is refused, the model never mends it: the first is kept, and said."""
    both = reply(NEW, ToolUse("write_file", {"path": "fine-name/SKILL.md", "content": "no head"}))
    server = serve(Turns([both, "Kept.", *[ToolUse("ls")] * 40]), learn__turns=4)
    done = look(session)
    assert done.outcome == "created"
    assert done.reason.startswith("created package-builds; refused: fine-name:")
    assert "the limit on turns was reached" in done.reason
    assert len(server.requests) == 4
    assert not (project / ".agents/skills/fine-name").exists()


def test_no_model_gives_a_draft(session: Trace, home: Path) -> None:
    """Without a model the same job drafts by counting, and the draft waits in the inbox."""
    config_file.set_values({"agent.base_url": "http://127.0.0.1:9/v1"})
    done = look(session)
    assert done.outcome == "proposed"
    (waiting,) = Gate().inbox.waiting()
    assert f"drafts in the inbox, made by counting: {waiting.change.skill}" in done.reason
    assert "no model was chosen for learning" in done.reason
    assert waiting.change.root == str(home / ".agents/memory")  # the user's words, as a fact


def test_a_chat_is_reviewed_while_it_goes_on(session: Trace, serve: Any, inside: None) -> None:
    """A look at a running chat has its own limit of requests, and says that it goes on."""
    server = serve(Turns([ToolUse("ls")] * 40), learn__chat_turns=3)
    done = look(session, moment="chat")
    assert "the limit on turns was reached after 3 requests" in done.reason
    assert server.requests[0].user_texts[0].startswith("The chat goes on; review it so far")


def test_reading_by_the_reviewer_is_no_use(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """Views and searches of the reviewer's leave no use of a skill on record."""
    put_skill(project, "package-builds", "1. `python3 build.py`\n", head=LEARNED)
    look_at = ToolUse("view_skill", {"name": "package-builds"})
    serve(
        Turns([reply(look_at, look_at), ToolUse("search_skills", {"query": "build"}), "Nothing."])
    )
    look(session)
    with Store.open() as store:
        catch_up(store)
        assert uses_of(store.connection) == []


def test_pages_of_the_session_can_be_read(session: Trace, serve: Any, inside: None) -> None:
    """`read_trace` gives a page; one that is not there is refused with how many there are."""
    calls = [ToolUse("read_trace", {"page": 1}), ToolUse("read_trace", {"page": 7})]
    server = serve(Turns([*calls, "Nothing."]))
    look(session)
    first, second = server.requests[-1].tool_results
    assert first.text.startswith("Page 1 of 1\n<k")
    assert "there are 1 pages" in second.text


def test_two_sessions_do_not_make_the_same_skill_twice(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """The reviewer of a second session is sent to the skill that the first one made."""
    serve(Turns([NEW, "Kept."]))
    look(session)
    again = made(
        *[[t.prompt, *t.steps] for t in session.turns], session="made-2", project=str(project)
    )
    store(again)
    copy = ToolUse(
        "write_file",
        {
            "path": "building-packages/SKILL.md",
            "content": text_of(
                "building-packages",
                BUILDS,
                about="How package-builds is done here. Use before doing it.",
            ),
        },
    )
    server = serve(Replies([copy, "Kept.", "Then nothing."]))
    done = look(again, job="review-2")
    assert done.outcome == "refused"
    assert "edit instead: package-builds" in server.requests[2].user_texts[-1]
    assert not (project / ".agents/skills/building-packages").exists()


def test_a_skill_lands_in_the_project_that_it_was_learned_in(
    home: Path, serve: Any, inside: None
) -> None:
    """Also where nobody trusts the project: it counts there, and what came with the clone does not,
    not even as a reason to leave the new one out."""
    clone = home / "clone"
    (clone / ".git").mkdir(parents=True)
    shipped = clone / ".agents/skills/shipped/SKILL.md"
    shipped.parent.mkdir(parents=True)
    copied = str(NEW.arguments["content"]).replace("package-builds", "shipped")
    shipped.write_text(copied, encoding="utf-8")
    trace = made(["Build.", ran("python3 build.py", "ok")], project=str(clone))
    store(trace)
    server = serve(Turns([NEW, "Kept."]))
    done = look(trace)
    assert done.outcome == "created", done
    assert "A new skill will be this project's.\n" in server.requests[0].user_texts[0]
    states = {entry.name: entry.state for entry in Library(str(clone)).entries}
    assert states.items() >= {("package-builds", "active"), ("shipped", "untrusted")}
    assert not (home / ".agents/skills").exists()


def test_the_prompt_is_for_what_is_under_review() -> None:
    """For skills, for facts, or for both, the instructions have those parts and no others."""
    wanted = review_job.WantedReview(job="x", skills=True, facts=False)
    skills = review_job.review_instructions(wanted, 8)
    assert "## Skills" in skills
    assert "## Facts" not in skills
    assert "{" not in skills.replace("{}", "")
    both = review_job.review_instructions(review_job.WantedReview(job="x", facts=True), 16)
    assert "## Skills" in both
    assert "## Facts" in both
    assert "16 requests" in both


def test_the_reviewer_knows_where_it_is(
    project: Path, home: Path, session: Trace, serve: Any, inside: None
) -> None:
    """It is told the project, where a new skill goes, and the names of what was learned: no request
    goes on finding that out."""
    put_skill(project, "old-skill", "Old words.", head=LEARNED)
    put_skill(project, "gone-skill", "Old words.", head=LEARNED)
    put_skill(project, "their-own", "Words.")
    root = str(project / ".agents/skills")
    gone = make_change("gone-skill", Archive(), actor="user", root=root)
    assert Gate().propose(gone).applied
    server = serve(["Nothing to save."])
    look(session)
    first = server.requests[0].user_texts[0]
    assert f"Project: {project}. A new skill will be this project's.\n" in first
    assert "Learned skills, yours to change: old-skill.\n" in first
    assert "Archived, not to be made again: gone-skill.\n" in first
    trust.remove(str(project))
    (project / ".git").rmdir()  # no project any more
    look(session, job="review-2")
    assert (
        "A new skill will be the user's, for every project.\n"
        in (server.requests[-1].user_texts[0])
    )


EDIT = ToolUse("edit", {"path": "old-skill/SKILL.md", "old": "Old words.", "new": "New words."})

# What the model does once it has made and edited something, and what the reason says of it.
FAULTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "429": (Status(429, 0.01), "429", {}),
    "500": (Status(500), "500", {}),
    "cut": (reply("Done", ".", fault=Cut(1)), "", {}),
    "garbage": (Garbage(), "", {}),
    "an empty answer": (reply(""), "empty", {}),
}  # fmt: skip
LIMITS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "tools without end": (ToolUse("ls"), "limit on turns was reached after 6", {"learn__turns": 6}),
    "tools that are not there": (
        ToolUse("skill_manage", {"action": "delete"}), "limit on turns", {"learn__turns": 6},
    ),
    "broken arguments": (
        ToolUse("edit", raw='{"path": "old'), "limit on turns", {"learn__turns": 6},
    ),
    "tokens": (
        reply(ToolUse("ls"), usage=Usage(90_000, 20_000)), "limit on tokens",
        {"learn__tokens": 100_000},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_review_that_fails_changes_nothing(
    fault: str, project: Path, session: Trace, serve: Any
) -> None:
    """Edits were staged; the review ends by a fault; no skill is changed, and it says why."""
    folder = put_skill(project, "old-skill", "Old words.", head=LEARNED)
    before = (folder / "SKILL.md").read_bytes()
    doing, word, settings = FAULTS[fault]
    serve(Turns([reply(NEW, EDIT)], then=doing), **settings)
    done = look(session)
    assert done.outcome == "failed"
    assert "nothing was changed" in done.reason
    assert word in done.reason
    assert len(done.reason) > 30
    assert done.changes == ()
    assert (folder / "SKILL.md").read_bytes() == before
    assert [p.name for p in folder.parent.iterdir() if p.name[0] != "."] == ["old-skill"]
    if fault in ("500", "cut"):  # a look at every object takes a while
        assert check_changes(Gate()) == []
    assert not os.path.exists(os.path.join(paths.folders().data, "staging", "review-1"))


@pytest.mark.usefixtures("inside")
def test_a_model_that_stalls_in_the_end_is_asked_again_later(
    project: Path, session: Trace, serve: Any
) -> None:
    """Silence passes: the review is held again, and nothing of the first half lands meanwhile."""
    stalled = reply("Well, ", "then", fault=Stall(3600, 1))
    serve(Turns([reply(NEW)], then=stalled), learn__seconds=2.0)
    done = look(session)
    assert (done.outcome, done.later > 0) == ("failed", True)
    assert Gate().inbox.waiting() == []


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("limit", LIMITS)
def test_what_was_made_when_a_limit_is_reached_waits_for_the_user(
    limit: str, project: Path, session: Trace, serve: Any
) -> None:
    """What was staged whole is not thrown away and does not land unasked: it waits, with why."""
    folder = put_skill(project, "old-skill", "Old words.", head=LEARNED)
    before = (folder / "SKILL.md").read_bytes()
    doing, word, settings = LIMITS[limit]
    half = ToolUse("write_file", {"path": "half-made/SKILL.md", "content": "no head"})
    serve(Turns([reply(NEW, EDIT, half)], then=doing), **settings)
    done = look(session)
    assert done.outcome == "proposed"
    assert word in done.reason
    assert "the review was stopped before it was done" in done.reason
    assert "refused: half-made:" in done.reason
    assert (folder / "SKILL.md").read_bytes() == before
    assert [p.name for p in folder.parent.iterdir() if p.name[0] != "."] == ["old-skill"]
    gate = Gate()
    waiting = {proposal.change.skill: proposal for proposal in gate.inbox.waiting()}
    assert sorted(waiting) == ["old-skill", "package-builds"]
    assert all(gate.accept(proposal).applied for proposal in waiting.values())
    assert "New words." in (folder / "SKILL.md").read_text()
    assert f"sessions: {session.id}" in skill_text(project, "package-builds")


def test_the_reviewer_is_told_of_its_last_request(session: Trace, serve: Any, inside: None) -> None:
    """After the last request but one, and with most of its tokens gone, it is told to end."""
    server = serve(Turns([ToolUse("ls")] * 40), learn__turns=3)
    look(session)
    told = [request.tool_results[-1].text for request in server.requests[1:]]
    assert [text.count("your next answer is the last") for text in told] == [0, 1]
    large = reply(ToolUse("ls"), usage=Usage(70_000, 10_000))
    server = serve(Turns([large, ToolUse("ls"), "Done."]), learn__tokens=100_000)
    look(session, job="review-2")
    told = [request.tool_results[-1].text for request in server.requests[1:]]
    assert ["most of the tokens" in text for text in told] == [True, False]


def test_a_refusal_that_must_be_mended_says_when_it_is_the_last(
    session: Trace, serve: Any, inside: None
) -> None:
    """Told what is refused with one request left, it is told that too."""
    bad = ToolUse("write_file", {"path": "fine-name/SKILL.md", "content": "no head"})
    server = serve(Turns([bad, "Kept.", "Then not."]), learn__turns=3)
    look(session)
    assert "your next answer is the last" in server.requests[2].user_texts[-1]


REFUSED_AT_A_TOOL = {
    "name": (
        ToolUse("write_file", {"path": "fix-issue-12/SKILL.md", "content": "x"}),
        "fix-issue-12: 'fix-issue-12' names",
    ),
    "the user's": (
        ToolUse("edit", {"path": "their-own/SKILL.md", "old": "a", "new": "b"}),
        "their-own: 'their-own' does not say 'source: auto-skill'",
    ),
    "duplicate": (
        ToolUse("write_file", {"path": "their-own/SKILL.md", "content": "x"}),
        "their-own: there is a skill 'their-own' already",
    ),
    "path": (
        ToolUse("write_file", {"path": "fine-name/../../x", "content": "x"}), "fine-name: ",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("which", REFUSED_AT_A_TOOL)
def test_what_a_tool_refused_reaches_the_user(
    which: str, project: Path, session: Trace, serve: Any
) -> None:
    """A refusal that the reviewer gave way to is the outcome, on record for `tacit why`."""
    put_skill(project, "their-own", "Words.")
    call, said = REFUSED_AT_A_TOOL[which]
    serve(Turns([call, "Nothing to save."]))
    done = look(session, facts=True)
    assert done.outcome == "refused"
    assert done.reason.startswith(said)
    assert recorded(session) == ("refused", done.reason)


def test_a_refusal_at_a_tool_that_was_mended_is_no_outcome(
    session: Trace, serve: Any, inside: None
) -> None:
    """One that was put right afterwards is not told."""
    wrong = ToolUse("edit", {"path": "package-builds/SKILL.md", "old": "nowhere", "new": "b"})
    right = ToolUse("edit", {"path": "package-builds/SKILL.md", "old": "Never", "new": "Do never"})
    serve(Turns([NEW, wrong, right, "Kept."]))
    done = look(session)
    assert (done.outcome, done.reason) == ("created", "created package-builds")


def test_one_review_lands_a_few_skills(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """More than `learn.most_skills` wait in the inbox; what there was already comes first."""
    put_skill(project, "old-skill", "Old words.", head=LEARNED)
    other = text_of("version-files", "Read the VERSION file: `read -r VERSION < VERSION`.")
    second = ToolUse("write_file", {"path": "version-files/SKILL.md", "content": other})
    serve(Turns([reply(NEW, second, EDIT), "Kept all."]), learn__most_skills=2)
    done = look(session)
    assert done.outcome == "created"
    assert done.reason == (
        "edited old-skill; created package-builds; version-files waits in the inbox"
        " (one review changes 2 skills unasked (learn.most_skills))"
    )
    assert [p.change.skill for p in Gate().inbox.waiting()] == ["version-files"]


def test_a_stall_is_ended_from_outside(project: Path, session: Trace, serve: Any) -> None:
    """Through the real child: a server that goes silent is left when the time is up."""
    serve(Turns([NEW], then=reply("Well, ", "then", fault=Stall(3600, 1))), learn__seconds=2.5)
    done = look(session)
    assert done.outcome in ("failed", "proposed")  # by whether it had made something by then
    # Whoever notices first says so: the parent, the child, or its wait for the next word.
    assert any(said in done.reason for said in ("seconds", "time was up", "said nothing for"))
    assert not (project / ".agents").exists()


def test_what_was_left_of_the_day_is_no_fault(project: Path, session: Trace, serve: Any) -> None:
    """A look that the rest of the day's tokens cut off says so, and is put off until tomorrow."""
    assert budget.record_spending("review", "another", Spent(90_000, 0, cost=0.1)) == ""
    large = reply(NEW, usage=Usage(50_000, 20_000))
    serve(Turns([large], then=large), learn__tokens=100_000, learn__daily_tokens=150_000)
    done = look(session)
    assert "the day's budget cut it off after 1 request" in done.reason
    assert "60,000 tokens of 150,000 tokens a day (learn.daily_tokens)" in done.reason
    assert "nothing was changed" in done.reason
    assert abs(done.later - until_tomorrow()) < 120
    assert not (project / ".agents").exists()


def test_a_day_that_is_too_small_is_not_waited_for(session: Trace, serve: Any) -> None:
    """A look that had the whole day's tokens and needs more fails: tomorrow is no better."""
    large = reply(ToolUse("ls"), usage=Usage(50_000, 20_000))
    serve(Turns([large], then=large), learn__tokens=100_000, learn__daily_tokens=60_000)
    done = look(session)
    assert (done.outcome, done.later) == ("failed", 0)
    assert "60,000 tokens of 60,000 tokens a day (learn.daily_tokens), and needs" in done.reason


@pytest.mark.parametrize(
    ("reason", "granted", "learn", "day"),
    [
        ("money", Limits(money=0.2), LearnSettings(daily_money=2.0), "rest"),
        ("money", Limits(money=0.2), LearnSettings(daily_money=0.2), "whole"),
        ("money", Limits(money=0.5), LearnSettings(daily_money=2.0), ""),
        ("tokens", Limits(tokens=100, money=0.2), LearnSettings(daily_tokens=500), ""),
        ("turns", Limits(tokens=50, money=0.2), LearnSettings(daily_tokens=500), ""),
    ],
)
def test_only_the_limit_that_the_day_narrowed_is_the_days(
    reason: Any, granted: Limits, learn: LearnSettings, day: str
) -> None:
    """The task's own limit on one thing is not laid to the budget that narrowed another."""
    ran = child_process._by_the_day(
        RunReport(reason=reason), Limits(tokens=100, money=0.5), granted, learn
    )
    assert ran.day == day
    assert ran.reason == ("budget" if day == "rest" else reason)
    ended = review_outcome(ran, ())
    assert (ended.again > 0) == (day == "rest")
    assert ("the day's budget" in ended.reason) == bool(day)


@pytest.mark.usefixtures("inside")
def test_a_passing_fault_is_tried_again(session: Trace, serve: Any) -> None:
    """A 500 and a cut on the way are made good by another request, and the skill lands."""
    seen: list[int] = []

    def script(request: Any) -> Any:
        if len(request.messages) not in seen:
            seen.append(len(request.messages))
            return Status(500) if len(seen) % 2 else Cut(0)
        return NEW if request.turn == 0 else "Kept."

    serve(script)
    assert look(session).outcome == "created"


REFUSED = {
    400: "take another one (tacit setup)",
    401: "check it: tacit setup",
    404: "check the model's name and address: tacit config",
    413: "take another model, or less at a time",
}


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("code", REFUSED)
def test_a_model_that_refuses_leaves_it_to_counting(code: int, session: Trace, serve: Any) -> None:
    """What will not pass is not tried again: a draft comes by counting, and it says what to do."""
    serve(Status(code, message="not so"))
    done = look(session)
    assert (done.outcome, done.later) == ("proposed", 0)
    assert "made by counting" in done.reason
    assert "not so" in done.reason
    assert REFUSED[code] in done.reason


def test_a_server_that_speaks_chat_completions_only_is_asked_so(
    project: Path, session: Trace, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key, the address in the library's own variable, and no /v1/responses: a skill comes."""
    turns = Turns([NEW, "Kept."])

    def chat_only(request: Any) -> Any:
        return turns(request) if request.wire == "openai-chat" else Status(404, message="no way")

    server = serve(chat_only, agent__model=None, agent__base_url=None)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    config_file.set_values({"agent.background": "openai:mock"})
    assert look(session).outcome == "created"
    assert {request.wire for request in server.requests} == {"openai-chat"}


def test_another_model_does_what_one_refuses(session: Trace, serve: Any) -> None:
    """Where the background's model is not there, the user's own does the review."""
    turns = Turns([NEW, "Kept."])
    server = serve(
        lambda request: turns(request) if request.model == "mock" else Status(404),
        agent__background="openai:gone",
    )
    done = look(session)
    assert done.outcome == "created", done.reason
    assert {request.model for request in server.requests} == {"gone", "mock"}


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    "fault", [Stall(3600), Stall(3600, 2), reply("So " * 9, fault=Endless(3))], ids=str
)
def test_a_model_that_stalls_is_tried_again_later(fault: Any, session: Trace, serve: Any) -> None:
    """No answer in the time, from the first or in the middle, and an answer without end."""
    serve(fault, learn__seconds=1.0)
    done = look(session)
    assert done.outcome == "failed"
    assert done.later > 0, done.reason
    assert "no answer within" in done.reason or "has no end" in done.reason


@pytest.mark.usefixtures("inside")
def test_a_failed_review_is_worth_another_try(session: Trace, serve: Any) -> None:
    """A server's fault puts the job off; a refusal or a limit does not."""
    serve(Status(503))
    assert look(session).later > 0
    serve(["Nothing to save."])
    assert look(session, job="review-2").later == 0
    serve(Turns([ToolUse("ls")] * 20), learn__turns=2)
    assert look(session, job="review-3").later == 0
