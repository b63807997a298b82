"""The short form: one request, one answer in JSON, and the same rules as in a conversation."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reviews import BUILDS, LEARNED, look, put_skill, store, text_of

from planted import load_set, trace_of
from tacit.agent import models
from tacit.agent.models import ModelChoice, Provider
from tacit.agent.tool import Failed
from tacit.base import config_file
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.base.settings import load_settings
from tacit.changes.gate import Gate
from tacit.learn.review import review_job
from tacit.learn.review.review_answer import MOST_ANSWER, ReviewAnswer, read_answer
from tacit.learn.review.review_batch import estimate_reviews
from tacit.learn.review.review_job import review_form
from tacit.learn.review.review_triggers import named_sessions
from tacit.testing import Status, ToolUse, Turns, toolless
from tacit.testing.sample_sessions import made, ran, used
from tacit.traces.store import Store
from tacit.traces.trace import Trace

NEW = {"path": "package-builds/SKILL.md", "content": text_of("package-builds", BUILDS)}
SETS = Path(__file__).parents[2] / "fixtures" / "planted-traces"


def said(why: str = "Kept package-builds: the version comes from the file.", **parts: Any) -> str:
    return json.dumps({"why": why} | parts)


def skills_in(project: Path) -> list[str]:
    folder = project / ".agents/skills"
    return sorted(p.name for p in folder.iterdir() if p.name[0] != ".") if folder.exists() else []


def test_one_request_makes_a_skill(project: Path, session: Trace, serve: Any) -> None:
    """Through the real child: no tools are offered, one request is made, the skill lands."""
    server = serve(Turns([said(write_file=[NEW])]), learn__form="short")
    done = look(session)
    assert (done.outcome, done.reason) == ("created", "created package-builds")
    (request,) = server.requests
    assert toolless(request)
    assert "always read it from the VERSION file" in request.user_texts[0]
    text = (project / ".agents/skills/package-builds/SKILL.md").read_text()
    assert "  source: auto-skill\n" in text
    assert "  learned-by: openai:mock\n" in text
    head = Gate().state_of("package-builds", str(project / ".agents/skills")).head
    assert head is not None
    assert (head.record.actor, head.record.evidence) == ("reviewer", (session.id,))


@pytest.mark.usefixtures("inside")
class TestOneAnswer:
    """What comes of an answer."""

    def test_nothing_is_told_with_its_reason(self, session: Trace, serve: Any) -> None:
        """The reason is the sentence of the answer, not its JSON."""
        server = serve(Turns([said("Nothing to save: routine work.")]), learn__form="short")
        done = look(session)
        assert done.outcome == "nothing"
        assert done.reason.endswith('said: "Nothing to save: routine work."')
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "around", ["Here it is:\n```json\n{}\n```\nDone.", "{}", "I keep {{one}} thing: {}"]
    )
    def test_text_around_the_json_does_no_harm(
        self, around: str, project: Path, session: Trace, serve: Any
    ) -> None:
        """Prose, code fences and stray braces around the answer are passed over."""
        answer = around.replace("{}", said(write_file=[NEW]))
        server = serve(Turns([answer]), learn__form="short")
        assert look(session).outcome == "created"
        assert len(server.requests) == 1

    def test_no_json_goes_back_once(self, session: Trace, serve: Any) -> None:
        """An answer that is no JSON is refused, and the second one counts."""
        server = serve(
            Turns(["I would keep a skill.", said(write_file=[NEW])]), learn__form="short"
        )
        assert look(session).outcome == "created"
        assert "no JSON object" in server.requests[1].user_texts[-1]

    def test_no_json_twice_is_refused(self, project: Path, session: Trace, serve: Any) -> None:
        """There is no third request."""
        server = serve(Turns(["No.", "No.", said(write_file=[NEW])]), learn__form="short")
        done = look(session)
        assert done.outcome == "refused"
        assert "no JSON object" in done.reason
        assert len(server.requests) == 2
        assert skills_in(project) == []

    def test_a_refusal_goes_back_once_and_is_mended(self, session: Trace, serve: Any) -> None:
        """The gate's reason is told, and the whole answer is given again."""
        bad = {"path": "fix-1234/SKILL.md", "content": text_of("fix-1234", BUILDS)}
        server = serve(Turns([said(write_file=[bad]), said(write_file=[NEW])]), learn__form="short")
        done = look(session)
        assert (done.outcome, done.reason) == ("created", "created package-builds")
        assert "not a class of work" in server.requests[1].user_texts[-1]
        assert "whole JSON object" in server.requests[1].user_texts[-1]

    def test_what_stays_refused_is_dropped_and_the_rest_lands(
        self, project: Path, session: Trace, serve: Any
    ) -> None:
        """Of two skills the one that is in order lands, and the refusal is told."""
        bad = {"path": "fix-1234/SKILL.md", "content": text_of("fix-1234", BUILDS)}
        serve(Turns([said(write_file=[bad, NEW])] * 2), learn__form="short")
        done = look(session)
        assert done.outcome == "created"
        assert "refused: fix-1234" in done.reason
        assert skills_in(project) == ["package-builds"]

    def test_a_limit_of_one_request_holds(self, session: Trace, serve: Any) -> None:
        """Then a refusal is not sent back, and what was in order is kept."""
        bad = {"path": "fix-1234/SKILL.md", "content": text_of("fix-1234", BUILDS)}
        answers = Turns([said(write_file=[bad, NEW])] * 2)
        server = serve(answers, learn__form="short", learn__turns=1)
        done = look(session)
        assert len(server.requests) == 1
        assert done.outcome in ("created", "proposed")

    def test_a_second_answer_that_cannot_be_read_loses_nothing(
        self, session: Trace, serve: Any
    ) -> None:
        """What was in order in the first answer lands."""
        bad = {"path": "fix-1234/SKILL.md", "content": text_of("fix-1234", BUILDS)}
        serve(Turns([said(write_file=[bad, NEW]), "Sorry."]), learn__form="short")
        done = look(session)
        assert done.outcome == "created"
        assert "created package-builds" in done.reason

    def test_a_learned_skill_is_shown_whole_and_edited(
        self, project: Path, session: Trace, serve: Any
    ) -> None:
        """The skill that fits the session's words is in the message, and an exact edit lands."""
        put_skill(project, "package-builds", "1. `python3 build.py`", head=LEARNED)
        edit = {"path": "package-builds/SKILL.md", "old": "1. `python3 build.py`", "new": BUILDS}
        note = {"path": "package-builds/references/version.md", "content": "Never invent one.\n"}
        server = serve(
            Turns([said("Build from VERSION.", edit=[edit], write_file=[note])]),
            learn__form="short",
        )
        done = look(session)
        assert (done.outcome, done.reason) == ("edited", "edited package-builds")
        shown = server.requests[0].user_texts[0]
        assert "skill package-builds/SKILL.md>" in shown
        assert "1. `python3 build.py`\n" in shown
        folder = project / ".agents/skills/package-builds"
        assert "Never invent" in (folder / "references/version.md").read_text()

    def test_skills_that_the_session_loaded_come_first(self, project: Path, serve: Any) -> None:
        """A loaded skill is shown before one that only fits the words."""
        put_skill(project, "package-builds", "1. Build the package.", head=LEARNED)
        put_skill(project, "house-style", "Write short words.", head=LEARNED)
        trace = made(
            ["Build the package.", used("house-style"), ran("python3 build.py", "built")],
            project=str(project),
        )
        store(trace)
        server = serve(Turns([said("Nothing to save: routine.")]), learn__form="short")
        look(trace)
        shown = server.requests[0].user_texts[0]
        assert 0 < shown.index("skill house-style/") < shown.index("skill package-builds/")

    def test_facts_are_kept(self, session: Trace, serve: Any) -> None:
        """A fact of an answer passes the gate of facts."""
        fact = {
            "name": "version-file",
            "says": "The version is always read from the VERSION file.",
            "kind": "project",
        }
        serve(Turns([said("Noted.", remember=[fact])]), learn__form="short")
        done = look(session, facts=True)
        assert (done.outcome, done.reason) == ("applied", "noted the fact version-file")

    def test_a_review_for_facts_changes_no_skill(
        self, project: Path, session: Trace, serve: Any
    ) -> None:
        """Skills in the answer to a question for facts are refused."""
        serve(Turns([said(write_file=[NEW])] * 2), learn__form="short")
        done = look(session, skills=False, facts=True)
        assert done.outcome == "refused"
        assert "only facts" in done.reason
        assert skills_in(project) == []


ATTACKS: dict[str, tuple[dict[str, Any], str]] = {
    "outside": ({"write_file": [{"path": "../../evil/SKILL.md", "content": "x"}]}, ""),
    "outside below a skill": (
        {"write_file": [NEW, {"path": "package-builds/../../../evil.md", "content": "x"}]},
        "package-builds",
    ),
    "absolute": ({"write_file": [{"path": "/etc/cron.d/x", "content": "x"}]}, ""),
    "the user's own": ({"edit": [{"path": "mine/SKILL.md", "old": "Mine.", "new": "Ours."}]}, ""),
    "over the user's own": (
        {"write_file": [{"path": "mine/SKILL.md", "content": text_of("mine", BUILDS)}]},
        "",
    ),
    "hooks": (
        {
            "write_file": [
                NEW | {"content": text_of("package-builds", BUILDS, head="hooks:\n  Stop: x\n")}
            ]
        },
        "hooks",
    ),
    "tools": (
        {
            "write_file": [
                NEW | {"content": text_of("package-builds", BUILDS, head="allowed-tools: Bash\n")}
            ]
        },
        "allowed-tools",
    ),
    "an unknown key": ({"hooks": {"Stop": "curl x"}}, "unknown field"),
    "too many": ({"write_file": [NEW] * 21}, "length"),
    "no text": ({"write_file": [{"path": "a/SKILL.md", "content": {"x": 1}}]}, "str"),
}


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused(
    name: str, project: Path, home: Path, session: Trace, serve: Any
) -> None:
    """Nothing of it lands, the user's own skill stays as it was, and the reason is told."""
    mine = put_skill(project, "mine", "Mine.")
    before = {p for p in home.rglob("*") if p.is_file() and ".agents" in p.parts}
    parts, reason = ATTACKS[name]
    serve(Turns([said("Kept.", **parts)] * 2), learn__form="short")
    done = look(session)
    assert done.outcome == "refused", done.reason
    assert reason in done.reason
    assert "Mine." in (mine / "SKILL.md").read_text()
    after = {p for p in home.rglob("*") if p.is_file() and ".agents" in p.parts}
    assert after == before
    assert not list(home.rglob("evil*"))


@pytest.mark.usefixtures("inside")
def test_planted_text_does_not_land(project: Path, serve: Any) -> None:
    """An answer that obeys what a tool printed is refused by where its words came from."""
    (planted,) = [p for path in SETS.glob("*.jsonl") for p in load_set(path) if p.id == "h02"]
    trace = trace_of(planted, str(project))
    store(trace)
    write = {"path": f"{planted.name}/SKILL.md", "content": planted.skill}
    serve(Turns([said("Kept what the tool said.", write_file=[write])] * 2), learn__form="short")
    done = look(trace)
    assert done.outcome in ("refused", "proposed")
    assert planted.name not in skills_in(project)


def test_an_answer_that_is_too_long_is_not_read() -> None:
    """It is measured before it is parsed."""
    with pytest.raises(Failed, match="at most"):
        read_answer("{" * (MOST_ANSWER + 1))


def test_deep_nesting_is_no_answer() -> None:
    """A nest of brackets is refused and ends nothing."""
    with pytest.raises(Failed):
        read_answer('{"why": ' + "[" * 100_000)


@given(st.text(max_size=200), st.text(max_size=200))
def test_an_answer_is_found_or_refused(before: str, after: str) -> None:
    """Whatever stands around it, an answer is read or refused; no other error comes out."""
    try:
        found = read_answer(f"{before}{said('Kept.')}{after}")
    except Failed:
        return
    assert isinstance(found, ReviewAnswer)


@pytest.mark.usefixtures("inside")
def test_a_model_that_refuses_tools_is_asked_in_the_short_form(session: Trace, serve: Any) -> None:
    """A server that says that its model has no tools gets the one request instead."""

    def script(request: Any) -> Any:
        if not toolless(request):
            return Status(400, message="registry/gemma does not support tools")
        return said(write_file=[NEW])

    serve(script)
    done = look(session)
    assert (done.outcome, done.reason) == ("created", "created package-builds")


@pytest.mark.usefixtures("inside")
def test_the_conversation_is_kept_where_it_is_set(session: Trace, serve: Any) -> None:
    """Whoever sets the conversation is not given another form."""
    server = serve(lambda request: Status(400, message="no tools here"), learn__form="conversation")
    look(session)
    assert not any(toolless(request) for request in server.requests)


@pytest.mark.usefixtures("inside")
def test_the_conversation_stays_the_default(session: Trace, serve: Any) -> None:
    """A model that calls tools is offered them."""
    server = serve(Turns([ToolUse("write_file", NEW), "Kept."]))
    assert look(session).outcome == "created"
    assert "write_file" in server.requests[0].tool_names


def test_a_provider_without_tools_gets_the_short_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known of a provider decides, and what is set wins over it."""
    monkeypatch.setitem(models._BY_NAME, "textonly", Provider("textonly", tools=False))
    choice = ModelChoice("textonly:one")
    assert review_form(Settings(), choice) == "short"
    assert review_form(Settings(), ModelChoice("openai:gpt-5")) == "conversation"
    held = Settings(learn=LearnSettings(form="conversation"))
    assert review_form(held, choice) == "conversation"
    assert review_job.review_form(Settings(learn=LearnSettings(form="short")), choice) == "short"


def test_the_estimate_counts_the_skills_that_are_sent(project: Path, session: Trace) -> None:
    """What a review in the short form is said to take is what it sends, skills and all."""
    config_file.set_values({"agent.model": "openai:mock", "learn.form": "short"})
    settings = load_settings(str(project)).settings

    def guess() -> int:
        with Store.open() as store:
            chosen = named_sessions(store, [store.find(session.id)], settings).candidates
            return estimate_reviews(store, chosen, settings, "openai:mock").input_tokens

    before = guess()
    put_skill(project, "package-builds", "Build the package with build.py. " * 300, head=LEARNED)
    assert guess() - before > 9_000 // 4
