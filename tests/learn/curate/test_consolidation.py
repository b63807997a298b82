"""Look-alikes are joined by a model: on a copy first, through the gate, and undone in one go."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from aging import Library

from tacit.agent.skill_tools import bring_back
from tacit.agent.tool import Context, Failed, Result
from tacit.base import database
from tacit.base.setting_sections import Settings
from tacit.changes.change import Pin
from tacit.changes.change_groups import undo_group
from tacit.learn.background import child_process
from tacit.learn.background.task import RunReport, Task, TaskContext
from tacit.learn.background.toolset import StagedSkills, consolidation_tools
from tacit.learn.curate.curation import curate
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curator import BY_MODEL, accept_consolidation, consolidate
from tacit.learn.curate.library_survey import clusters, survey
from tacit.skills.library import Library as Skills
from tacit.testing import ModelServer, ToolUse, reply
from tacit.traces.skill_uses import open_use_tables

CLOUDS = ("aws", "gcp", "azure", "linode", "hetzner")
OTHERS = {
    "write-changelog": "Write the entry of a release in CHANGELOG.md, in the past tense.",
    "rotate-logs": "Rotate and compress the log files of the batch machine every night.",
    "paint-the-shed": "Mix the colours and paint the garden shed before the winter comes.",
}


def md(name: str, description: str, body: str) -> bytes:
    head = f"name: {name}\ndescription: {description}\nmetadata:\n  source: auto-skill\n"
    return f"---\n{head}---\n\n# {name}\n\n{body}".encode()


@pytest.fixture
def clouds(library: Library) -> Library:
    fill(library)
    return library


def fill(library: Library) -> None:
    """Ten look-alikes, a skill that names one of them, a user's that does, and three others."""
    files: dict[str, bytes] = {}
    for cloud in CLOUDS:
        for kind, verb in (("deploy", "Deploy"), ("rollback", "Roll back a deployment of")):
            name = f"{kind}-{cloud}"
            about = f"{verb} the web service on {cloud} with the platform command line."
            run = f"Run `platform {kind} --cloud {cloud} --wait`, then check the health page.\n"
            files[f"{name}/SKILL.md"] = md(name, about, run)
            files[f"{name}/references/limits.md"] = f"On {cloud}, 30 seconds.\n".encode()
    for name, text in OTHERS.items():
        files[f"{name}/SKILL.md"] = md(name, text, f"{text}\n")
    notes = "Before the release run `deploy-aws`. A deploy-aws by hand is never needed.\n"
    steps = md("release-steps", "What to do for a release, step by step.", notes)
    files["release-steps/SKILL.md"] = steps
    own = b"---\nname: mine\ndescription: My own.\n---\n\nUse /rollback-gcp here.\n"
    files["mine/SKILL.md"] = own
    for path, data in files.items():
        (library.root / path).parent.mkdir(parents=True, exist_ok=True)
        (library.root / path).write_bytes(data)


def umbrella(kind: str) -> bytes:
    rows = ", ".join(CLOUDS)
    text = {
        "deploy": f"Run `platform deploy --cloud NAME --wait` for one of {rows}. The health page"
        " must be green afterwards; `references/limits.md` says how long that may take.\n",
        "rollback": f"When users complain, `platform rollback --cloud NAME --wait` on {rows}"
        " brings yesterday's state back. See `references/limits.md` first.\n",
    }
    about = {"deploy": "Bring a new version", "rollback": "Take back a bad version"}
    return md(f"{kind}-web-service", f"{about[kind]} of the web service on a cloud.", text[kind])


def joins(kind: str) -> list[ToolUse]:
    name = f"{kind}-web-service"
    return [
        ToolUse("write_file", {"skill": name, "content": umbrella(kind).decode()}),
        ToolUse("copy_file", {"skill": f"{kind}-aws", "path": "references/limits.md", "to": name}),
        ToolUse(
            "join",
            {
                "umbrella": name,
                "absorbs": [f"{kind}-{cloud}" for cloud in CLOUDS],
                "why": "the same command on five clouds",
            },
        ),
    ]


SCRIPT = [*joins("deploy"), "One umbrella over five skills."]


class Agent:
    """Plays an agent in this process, with its real tools and its real broker.

    The child process with a real conversation is in the first test; a child a test would be slow.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script: list[ToolUse | str] = []
        self.heard: list[str] = []
        self.asked = 0
        monkeypatch.setattr(child_process, "run", self.run)

    def run(self, task: Task, broker: child_process.Broker, settings: Settings) -> RunReport:
        self.asked += 1

        async def serve(name: str, arguments: dict[str, Any]) -> Result:
            return broker.serve(name, arguments)

        context = TaskContext(task, settings, StagedSkills(task.staging), serve)
        known = {tool.name: tool for tool in consolidation_tools(context)}
        for act in self.script:
            if isinstance(act, str):
                told = broker.finished(act)
                if told is None:
                    return RunReport(reason="done", text=act, model="played")
                self.heard.append(told)
                continue
            tool = known[act.name]
            try:
                result = asyncio.run(tool.run(tool.check(act.arguments), cast("Context", None)))
                self.heard.append(result.text)
            except Failed as failed:
                self.heard.append(str(failed))
        return RunReport(reason="turns", error="the limit on turns was reached")


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(monkeypatch)


def chosen(library: Library, url: str = "", mode: str = "auto", approval: str = "auto") -> Settings:
    settings = library.settings
    agent = msgspec.structs.replace(
        settings.agent, model="openai:mock", base_url=f"{url}/v1", retries=0
    )
    section = msgspec.structs.replace(settings.curate, consolidate=mode, seconds=120)
    learn = msgspec.structs.replace(settings.learn, approval=approval)
    return msgspec.structs.replace(settings, agent=agent, curate=section, learn=learn)


def test_ten_look_alikes_into_two_umbrellas_and_back(clouds: Library) -> None:
    """Joined by one run, with support files and names put right; undone, every byte is back."""
    before = clouds.everything()
    script = [reply(*joins("deploy")), reply(*joins("rollback")), "Two umbrellas."]
    with ModelServer(script) as server:
        (report,) = consolidate(clouds.scope(), chosen(clouds, server.url))
        assert "platform deploy --cloud aws" in str(server.requests[0].body)
    assert {(j.umbrella, len(j.absorbed), j.outcome) for j in report.joined} == {
        ("deploy-web-service", 5, "done"),
        ("rollback-web-service", 5, "done"),
    }
    assert clouds.live() == {
        "deploy-web-service", "rollback-web-service", "release-steps", "mine", *OTHERS,
    }  # fmt: skip
    assert len(clouds.archived()) == 10
    limits = clouds.root / "deploy-web-service" / "references" / "limits.md"
    assert limits.read_text() == "On aws, 30 seconds.\n"
    # Where another learned skill names one, it names the umbrella now; the user's own is theirs.
    text = (clouds.root / "release-steps" / "SKILL.md").read_text()
    assert "run `deploy-web-service`. A deploy-aws by hand" in text
    assert report.joined[0].rewritten == ("release-steps",)
    assert "/rollback-gcp" in (clouds.root / "mine" / "SKILL.md").read_text()
    found = bring_back(Skills(), "rollback-gcp", "user")
    assert found is not None
    assert found.name == "rollback-web-service"
    # What was taken in points to what took it in.
    head = clouds.gate.open_place().history.head("deploy-gcp")
    assert (head.record.partner, head.record.group) == ("deploy-web-service", report.id)
    assert report.undo == f"tacit undo {report.id[-8:]}"
    assert all(v.applied for v in undo_group(clouds.gate, report.id, actor="user"))
    assert clouds.everything() == before


def test_by_the_index_only_what_is_alike_is_a_cluster(clouds: Library) -> None:
    """The ten are found, the others are not among them; pinned ones and the user's never are."""
    assert clouds.propose("deploy-aws", Pin()).applied
    with open_use_tables() as connection:
        found = clusters(clouds.scope(), survey(clouds.scope(), connection))
    skills = [skill for cluster in found for skill in cluster.skills]
    wanted = {f"{kind}-{cloud}" for kind in ("deploy", "rollback") for cloud in CLOUDS}
    assert set(skills) == wanted - {"deploy-aws"}
    assert len(skills) == len(set(skills))


def test_a_dry_run_asks_the_model_and_changes_nothing(clouds: Library, agent: Agent) -> None:
    """The same code on a copy: the report is that of the run, the library is untouched."""
    before = clouds.everything()
    agent.script = SCRIPT
    (report,) = consolidate(clouds.scope(), chosen(clouds), dry=True)
    assert {j.outcome for j in report.joined} == {"would"}
    assert report.joined[0].rewritten == ("release-steps",)
    assert clouds.everything() == before
    with closing(database.connect()) as connection:
        assert CurationRecords(connection).curations() == []


def test_a_proposal_waits_for_the_users_word(clouds: Library, agent: Agent) -> None:
    """With `propose` nothing changes until it is accepted; then all of it lands, once."""
    before = clouds.everything()
    agent.script = SCRIPT
    settings = chosen(clouds, mode="propose")
    (report,) = consolidate(clouds.scope(), settings)
    assert {j.outcome for j in report.joined} == {"waits for you"}
    assert clouds.everything() == before
    # Looked at once in these versions: the model is not asked again.
    assert consolidate(clouds.scope(), settings) == []
    assert agent.asked == 1
    done = accept_consolidation(clouds.scope(), report.id[-8:])
    assert done is not None
    assert {j.outcome for j in done.joined} == {"done"}
    assert len(clouds.archived()) == 5
    assert accept_consolidation(clouds.scope(), report.id[-8:]) is None
    head = clouds.gate.open_place().history.head("deploy-aws")
    assert (head.record.actor, head.record.approved_by) == ("curator", "user")


def test_where_learned_changes_are_asked_for_it_waits_too(clouds: Library, agent: Agent) -> None:
    """`auto` lands only where learned changes land unasked."""
    agent.script = SCRIPT
    (report,) = consolidate(clouds.scope(), chosen(clouds, approval="ask"))
    assert {j.outcome for j in report.joined} == {"waits for you"}
    assert len(clouds.archived()) == 0
    assert clouds.gate.inbox.waiting() == []


def test_a_refusal_goes_back_to_the_model(clouds: Library, agent: Agent) -> None:
    """A secret in an umbrella is refused on the copy; mended, the plan lands; the copy is gone."""
    first, second, third = joins("deploy")
    bad = dict(first.arguments)
    bad["content"] += "\nUse the key ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a\n"
    agent.script = [ToolUse("write_file", bad), second, third, "done", first, "done now"]
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert "this looks like a secret" in agent.heard[3]
    assert [j.outcome for j in report.joined] == ["done"]
    assert "ghp_" not in (clouds.root / "deploy-web-service" / "SKILL.md").read_text()
    assert len(clouds.archived()) == 5


def test_what_the_model_may_not_do_is_told_to_it(clouds: Library, agent: Agent) -> None:
    """Foreign skills, too few, itself, one changed that is no umbrella, paths that lead out."""
    agent.script = [
        ToolUse("join", {"umbrella": "x", "absorbs": ["paint-the-shed", "deploy-aws"], "why": ""}),
        ToolUse("join", {"umbrella": "x", "absorbs": ["deploy-aws"], "why": ""}),
        ToolUse("join", {"umbrella": "deploy-aws", "absorbs": ["deploy-aws"], "why": ""}),
        ToolUse("write_file", {"skill": "deploy-aws", "path": "../x.md", "content": "x"}),
        ToolUse("copy_file", {"skill": "deploy-aws", "path": "/etc/passwd", "to": "deploy-gcp"}),
        ToolUse("edit_file", {"skill": "deploy-gcp", "old": "Run", "new": "Start"}),
        ToolUse("join", {"umbrella": "deploy-aws", "absorbs": ["deploy-azure"], "why": "same"}),
        ToolUse(
            "join", {"umbrella": "fix-1234", "absorbs": ["deploy-gcp", "deploy-linode"], "why": ""}
        ),
        *["done"] * 5,
    ]
    before = clouds.everything()
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert agent.heard[0] == "not among the skills you were given: paint-the-shed"
    assert "a new one at least two" in agent.heard[1]
    assert "cannot be taken in and take in" in agent.heard[2]
    assert "x.md" in agent.heard[3]
    assert "there is no file '/etc/passwd'" in agent.heard[4]
    assert "not a class of work" in agent.heard[7]
    assert "changed, but no umbrella: deploy-gcp" in agent.heard[8]
    assert report.joined == ()
    assert "was refused" in report.notes[0]
    assert clouds.everything() == before


def test_joining_nothing_is_an_answer(clouds: Library, agent: Agent) -> None:
    """The model may leave them apart; that is noted, and the cluster is not looked at again."""
    agent.script = ["They differ in what counts."]
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert "nothing to join. They differ" in report.notes[0]
    assert consolidate(clouds.scope(), chosen(clouds)) == []
    assert len(consolidate(clouds.scope(), chosen(clouds, mode="off"), asked=True)) == 1
    assert consolidate(clouds.scope(), chosen(clouds, mode="off")) == []


def test_without_a_model_it_is_asked_again(
    clouds: Library, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody could be asked, the cluster counts as new the next time; answered, it is not."""

    def nobody(*given: Any) -> RunReport:
        return RunReport(reason="refused", error="no model for work in the background")

    monkeypatch.setattr(child_process, "run", nobody)
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert (report.later, "no model" in report.notes[0]) == (True, True)
    monkeypatch.setattr(child_process, "run", agent.run)
    agent.script = ["They differ."]
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert (report.later, agent.asked) == (False, 1)
    assert consolidate(clouds.scope(), chosen(clouds)) == []


def test_a_run_that_did_not_end_joins_nothing(clouds: Library, agent: Agent) -> None:
    """At a limit, what was half said counts for nothing."""
    agent.script = list(joins("deploy"))
    (report,) = consolidate(clouds.scope(), chosen(clouds))
    assert "not finished: the limit on turns" in report.notes[0]
    assert clouds.archived() == set()


def test_a_kill_in_the_middle_is_finished_by_the_next_run(
    clouds: Library, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after some of its changes, the same plan is carried out to its end, each once."""
    before = clouds.everything()
    propose = type(clouds.gate).propose
    count = 0

    class Killed(BaseException):
        pass

    def dies(self, change):
        nonlocal count
        count += change.group != "" and self.data == clouds.gate.data
        if count == 4:
            raise Killed
        return propose(self, change)

    agent.script = SCRIPT
    settings = chosen(clouds)
    monkeypatch.setattr(type(clouds.gate), "propose", dies)
    with pytest.raises(Killed):
        consolidate(clouds.scope(), settings)
    monkeypatch.setattr(type(clouds.gate), "propose", propose)
    assert 0 < len(clouds.archived()) < 5
    curate(clouds.scope(), settings)  # the other half of curation passes over it
    (report, *_) = consolidate(clouds.scope(), settings)
    assert {j.outcome for j in report.joined} == {"done"}
    assert len(clouds.archived()) == 5
    kinds = [v.record.kind for v in clouds.gate.open_place().history.log("deploy-web-service")]
    assert kinds == ["create"]
    with closing(database.connect()) as connection:
        runs = CurationRecords(connection).curations()
    assert [run.state for run in runs if run.by == BY_MODEL] == ["done"]
    assert all(v.applied for v in undo_group(clouds.gate, report.id, actor="user"))
    assert clouds.everything() == before


def test_one_that_cannot_be_joined_any_more_leaves_no_half(clouds: Library, agent: Agent) -> None:
    """Between proposal and word a skill was pinned: nothing is joined, and it is said why."""
    agent.script = SCRIPT
    settings = chosen(clouds, mode="propose")
    (report,) = consolidate(clouds.scope(), settings)
    assert clouds.propose("deploy-azure", Pin()).applied
    visible = {p: d for p, d in clouds.everything().items() if not p.startswith(".archive")}
    done = accept_consolidation(clouds.scope(), report.id)
    assert done is not None
    assert {j.outcome for j in done.joined} == {"refused"}
    assert "pinned" in done.joined[0].note
    after = {p: d for p, d in clouds.everything().items() if not p.startswith(".archive")}
    assert after == visible


def test_into_one_that_is_there(clouds: Library, agent: Agent) -> None:
    """An existing skill takes in another: its text is edited, hand edits since are kept."""
    more = {"skill": "deploy-aws", "old": "then check", "new": "on gcp too, then check"}
    agent.script = [
        ToolUse("read_skill", {"skill": "deploy-gcp"}),
        ToolUse("edit_file", more),
        ToolUse("join", {"umbrella": "deploy-aws", "absorbs": ["deploy-gcp"], "why": "same"}),
        "done",
    ]
    settings = chosen(clouds, mode="propose")
    (report,) = consolidate(clouds.scope(), settings)
    assert "references/limits.md" in agent.heard[0]
    file = clouds.root / "deploy-aws" / "SKILL.md"
    (file.parent / "references" / "limits.md").write_text("By hand, since.\n")
    done = accept_consolidation(clouds.scope(), report.id)
    assert done is not None
    assert [j.outcome for j in done.joined] == ["done"], done
    assert "on gcp too" in file.read_text()
    assert (file.parent / "references" / "limits.md").read_text() == "By hand, since.\n"
    assert clouds.archived() == {"deploy-gcp"}
    assert Path(clouds.root / "release-steps").is_dir()
