"""What was done while a skill was active, from our own sessions and from any host's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from used_sessions import HOSTS, MORNING, call, session, used, with_skill

from tacit.learn.skill_runs import runs_of
from tacit.traces import host_registry
from tacit.traces.store import Store
from tacit.traces.trace import REFUSED


@pytest.mark.parametrize("host", HOSTS)
def test_a_skill_that_a_real_agent_read_governs_what_follows(
    host: str, tmp_path: Path, store: Store
) -> None:
    """In each host's own transcript: the read is the use, the calls after it are the steps."""
    store.take_in(host_registry.get(host), with_skill(host, tmp_path))
    (run,) = runs_of(store.trace(store.sessions()[0].id))
    assert (run.skill, run.by, run.read, run.turn) == ("build", "model", True, 0)
    assert run.session.startswith(f"{host}:")
    assert run.project == "/home/dev/demo"
    assert [step.failed for step in run.steps] == [True, False, False]
    assert [step.number for step in run.steps] == [1, 2, 3]
    assert [step.turn for step in run.steps] == [0, 0, 1]
    assert run.answer == 2
    (failure,) = [step for step in run.steps if step.failed]
    assert "KeyError: 'VERSION'" in failure.error
    assert "python3 build.py" in str(failure.arguments)
    assert "KeyError" in failure.result


def test_the_user_names_it_and_the_model_calls_it() -> None:
    """`/name`, `/skill:name` and `$name` are the user's; a call is the model's own."""
    said = ("/deploy it", "/skill:deploy", "$deploy now", "please deploy", "/deploy-all")
    runs = runs_of(session(*[(used("deploy"),)] * 5, prompts=said))
    assert [run.by for run in runs] == ["user", "user", "user", "model", "model"]


def test_words_are_no_failure() -> None:
    """A step fails when the host says so; output that speaks of failures does not make it one."""
    talk = call("Bash", result="12 passed, 3 failed\nError: none. exit code: 1 was seen before")
    (run,) = runs_of(session((used("check"), talk)))
    assert not any(step.failed for step in run.steps)


def test_a_refused_call_is_a_failure_of_its_own_kind() -> None:
    """What the user did not allow counts as failed, and is told apart from what broke."""
    steps = (
        used("deploy"),
        call("Bash", failed=True, error=REFUSED),
        call("run_command", failed=True, result="The user did not allow this call. Do not…"),
        call("Bash", failed=True, error="exit code 2", result="make: *** [all] Error 2"),
    )
    (run,) = runs_of(session(steps))
    assert [step.refused for step in run.steps if step.failed] == [True, True, False]


def test_a_skill_stays_active_and_the_last_one_loaded_governs() -> None:
    """Steps of later turns belong to both runs; each says which skill was loaded last."""
    runs = runs_of(
        session(
            (used("deploy"), call("a"), used("review"), call("b")),
            (call("c"), used("deploy"), call("d")),
        )
    )
    assert [(run.skill, [s.tool for s in run.steps]) for run in runs] == [
        ("deploy", ["a", "b", "c"]),
        ("review", ["b", "c", "d"]),
        ("deploy", ["d"]),
    ]
    assert [s.tool for s in runs[0].governed] == ["a"]
    assert [s.tool for s in runs[1].governed] == ["b", "c"]
    assert [run.answer for run in runs] == [2, 1, 1]


def test_the_rest_of_a_very_long_turn_is_the_same_answer() -> None:
    """A turn without a prompt goes on with the one before it."""
    (run,) = runs_of(session((used("deploy"), call("a")), (call("b"),), prompts=("go", "")))
    assert run.answer == 2


def test_our_own_sessions_say_which_version_was_loaded() -> None:
    """The digest stands in what run_skill gave, and holds when it is said to be active already."""
    load = {"kind": "skill", "arguments": {"name": "deploy"}}
    runs = runs_of(
        session(
            (
                call("run_skill", result="<skill …>\nDo it.\n</skill 0123456789abcdef>", **load),
                used("deploy"),
            ),
            (
                call("run_skill", result='The skill "deploy" is active already.', **load),
                used("deploy"),
            ),
            host="tacit",
        ),
        lambda skill, at: "from-history",
    )
    assert [run.digest for run in runs] == ["0123456789abcdef"] * 2
    assert not any(run.read for run in runs)


def test_of_hosts_the_version_is_asked_for_by_the_moment() -> None:
    """Whoever knows the versions is asked for the skill and the time of its loading."""
    asked = []
    trace = session((used("deploy", MORNING),))
    runs_of(trace, lambda skill, at: asked.append((skill, at)) or "")  # type: ignore[func-returns-value]
    assert asked == [("deploy", MORNING)]


_STEPS = st.lists(
    st.one_of(
        st.sampled_from("ab").map(used),
        st.tuples(st.sampled_from("xyz"), st.booleans()).map(lambda p: call(p[0], failed=p[1])),
    ),
    max_size=8,
).map(tuple)


@given(st.lists(_STEPS, max_size=5))
def test_every_call_while_a_skill_is_active_is_a_step_of_it(turns) -> None:
    """For any session: a run holds exactly the calls from its loading to its next loading."""
    flat = [step for turn in turns for step in turn]
    runs = runs_of(session(*turns))
    loads = [
        at
        for at, step in enumerate(flat)
        if hasattr(step, "name") and step in (used("a"), used("b"))
    ]
    assert len(runs) == len(loads)
    for run, at in zip(runs, loads, strict=True):
        until = next((n for n in loads if n > at and flat[n].name == run.skill), len(flat))
        calls = [step for step in flat[at:until] if hasattr(step, "failed")]
        assert [(s.tool, s.failed) for s in run.steps] == [(c.name, c.failed) for c in calls]
