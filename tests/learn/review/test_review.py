"""A whole review: what it is shown, what comes of it, and that it says only what happened."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from reviews import BUILDS, LEARNED, look, put_skill, store, text_of
from skills_ref.validator import validate

from tacit.agent.uses import STEPS
from tacit.base import config_file, database, job
from tacit.changes.gate import Gate
from tacit.learn.ledger import REVIEW, Ledger
from tacit.learn.review import reviewing
from tacit.testing import Replies, ToolUse, Turns, reply
from tacit.testing.sessions import made, ran
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


def test_a_skill_is_learned_in_the_closed_room(project: Path, session: Trace, serve: Any) -> None:
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
    head = Gate().look("package-builds", str(folder.parent)).head
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
    log = list(Gate().site(str(project / ".agents/skills")).history.log("package-builds"))
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
    head = gate.look("package-builds", proposal.change.root).head
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

    def killed(self: Gate, change: Any) -> Any:
        count.append(change.skill)
        if len(count) == 2:
            raise KeyboardInterrupt
        return real(self, change)

    with job.held_by(hold):
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
    history = Gate().site(str(project / ".agents/skills")).history
    assert len(list(history.log("package-builds"))) == 1


def test_a_cancelled_job_changes_nothing(
    project: Path, session: Trace, serve: Any, inside: None
) -> None:
    """A cancel that comes while the model talks keeps what it made from landing."""
    serve(Turns([NEW, "Kept."]))
    hold = _Hold()
    hold.stop = True
    with job.held_by(hold):
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
    config_file.put({"agent.base_url": "http://127.0.0.1:9/v1"})
    done = look(session)
    assert done.outcome == "proposed"
    assert "drafts in the inbox, made by counting: run-build-py" in done.reason
    assert "no model for work in the background" in done.reason
    assert [p.change.skill for p in Gate().inbox.waiting()] == ["run-build-py"]


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
    connection = database.connect()
    database.migrate(connection, "uses", STEPS)
    assert connection.execute("SELECT count(*) FROM uses").fetchone()[0] == 0
    connection.close()


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


def test_the_project_must_be_trusted(home: Path, serve: Any, inside: None) -> None:
    """From a project that the user does not trust, a skill goes to the user's own folder."""
    elsewhere = home / "clone"
    (elsewhere / ".git").mkdir(parents=True)
    trace = made(["Build.", ran("python3 build.py", "ok")], project=str(elsewhere))
    store(trace)
    serve(Turns([NEW, "Kept."]))
    assert look(trace).outcome == "created"
    assert (home / ".agents/skills/package-builds/SKILL.md").exists()
    assert not (elsewhere / ".agents").exists()


def test_the_prompt_is_for_what_is_under_review() -> None:
    """For skills, for facts, or for both, the instructions have those parts and no others."""
    wanted = reviewing.Wanted(job="x", skills=True, facts=False)
    skills = reviewing.instructions(wanted, 8)
    assert "## Skills" in skills
    assert "## Facts" not in skills
    assert "{" not in skills.replace("{}", "")
    both = reviewing.instructions(reviewing.Wanted(job="x", facts=True), 16)
    assert "## Skills" in both
    assert "## Facts" in both
    assert "16 requests" in both
