"""What the user comes back to in session after session, in other words each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.learn import refrains
from tacit.learn.counted_session import count_session
from tacit.learn.demands import RequestFinding
from tacit.learn.drafts import draft
from tacit.learn.findings import count_findings
from tacit.learn.worth import Voices
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.trace import Trace


def answered(*prompts: str, by: str = "ls", path: str = "") -> list[Trace]:
    """A session each, with a prompt that was answered by a command or by changing a file."""
    step = called("Edit", {"file_path": path}) if path else ran(by)
    return [
        made(["Go", ran("pwd")], [prompt, step], session=f"r{n}", project="/p/app")
        for n, prompt in enumerate(prompts)
    ]


def found(traces: list[Trace]) -> list[RequestFinding]:
    return [one for one in count_findings(traces) if isinstance(one, RequestFinding)]


SAID = [
    ("restart the gateway now", "ok, please restart both gateways", "can you restart the gateway?"),
    ("ok go back to trunk", "we need to go back to trunk first", "now go back to trunk and pull"),
    ("starte den Broker neu", "bitte starte den Broker", "jetzt starte nochmal den Broker"),
    ("relance le worker", "maintenant relance aussi le worker", "relance donc le worker"),
    (
        "reinicia el servidor",
        "por favor reinicia el servidor",
        "ahora reinicia el servidor otra vez",
    ),
    ("riavvia il server", "per favore riavvia il server", "ora riavvia il server di nuovo"),
    ("reinicie o servidor", "por favor reinicie o servidor", "agora reinicie o servidor de novo"),
    ("перезапусти сервер", "пожалуйста перезапусти сервер", "теперь перезапусти сервер ещё раз"),
    ("重建索引", "请重建全部索引，然后看结果", "数据变了，重建索引"),
    ("索引を再構築してください", "念のため索引を再構築して", "まず索引を全部再構築して"),
    ("인덱스 재구축 해줘", "다시 인덱스 재구축 부탁해 줘", "먼저 인덱스 재구축 해줘"),
]


@pytest.mark.parametrize("said", SAID, ids=range(len(SAID)))
def test_the_same_order_in_other_words(said: tuple[str, ...]) -> None:
    """By the words that sentences of several sessions have in common, in any language."""
    one, *_ = found(answered(*said, *said, by="svc cycle all"))
    assert (one.verb, one.answered_by) == ("", ("svc cycle",))
    assert len(one.sessions) > 1
    text = draft(one).text
    assert "svc cycle" in text
    assert any(sentence in text for sentence in said)
    assert found(answered(said[0])) == []


def test_orders_for_and_against_the_same_are_two() -> None:
    said = ("run all the integration tests", "don't run all the integration tests, too slow")
    for one in found(answered(*said, *said)):
        assert len({quote.text.startswith("don't") for quote in one.quotes}) == 1


@pytest.mark.parametrize(
    "said",
    [
        ("tell me about the broker", "please tell me of the broker", "ok tell me the broker"),
        ("should we restart the gateway?", "why restart the gateway", "is the gateway up"),
        ("为什么要重建索引", "如何重建索引", "是否重建索引"),
        ("索引が再構築されます。", "索引は再構築されました。", "索引の再構築です。"),
    ],
)
def test_what_is_asked_or_told_is_no_order(said: tuple[str, ...]) -> None:
    """Nor is what asks for an answer."""
    assert found(answered(*said, *said)) == []


def test_a_line_that_was_pasted_into_several_sessions_is_no_refrain() -> None:
    line = "Restart the gateway once the ledger has been migrated over"
    assert found(answered(line, line, line)) == []


def test_what_is_said_again_weighs_more() -> None:
    """And what is said beside much else, or only once, less."""

    def chance(*prompts: str) -> float:
        return Voices([count_session(trace) for trace in answered(*prompts)]).chances[0]

    said = "keep the answers brief and skip the summary"
    other = ("open the window", "paint the fence green")
    assert chance(said, *other) < chance(said, said, *other) < chance(said, said, said, said)
    long = " ".join(f"Thing number {n} was red." for n in range(9))
    assert chance(f"{said}. {long}", *other) < chance(said, *other)


def test_what_is_kept_as_a_rule_or_as_a_request_is_not_told_twice() -> None:
    """A rule stays by itself, and what one of the known verbs stands for is counted there."""
    said = tuple(f"{lead}commit the ledger" for lead in ("", "ok ", "please "))
    assert [one.verb for one in found(answered(*said))] == ["commit"]
    rule = tuple(f"{lead}always restart the gateway" for lead in ("", "ok ", "please "))
    assert found(answered(*rule)) == []


def test_one_word_in_common_is_enough_among_few_others() -> None:
    """And not where all else differs, nor where it is a word of any language that says nothing."""
    said = ("show it in the browser", "open it in the browser", "and now open the browser")
    (one,) = found(answered(*said))
    assert sorted(quote.text for quote in one.quotes) == sorted(said)
    loose = (
        "move the browser tests of billing into a folder of their own",
        "explain which browser shipped with the kiosk image last year",
        "rename browser sessions in the ledger export to visits",
    )
    assert found(answered(*loose)) == []
    tasks = ("train the ranker model", "now train the model of ranks", "train the model again")
    assert found(answered(*tasks)) == []  # says neither how nor with what
    assert found(answered("/tool:sub-tool", "/tool:sub-tool", "/tool:sub-tool")) == []
    assert found(answered("oke lanjut saja", "oke kita lanjut lagi", "oke cukup lanjut")) == []
    assert found(answered("fais ça maintenant", "oui fais ça", "alors fais ça donc")) == []


@pytest.mark.parametrize(
    "said",
    [
        (
            "C:\\Users\\ann\\Desktop\\One",
            "C:\\Users\\ann\\Desktop\\Two",
            "C:\\Users\\ann\\Desktop\\Six",
        ),
        ("cp: missing destination file operand", "mv: missing destination file operand"),
        ("Error: no more than 12 functions", "Error: no more than 12 functions per plan"),
    ],
)
def test_paths_and_output_are_no_refrain(said: tuple[str, ...]) -> None:
    assert found(answered(*said, *said)) == []


def test_weights_are_those_that_the_script_prints() -> None:
    """By the fixture of groups; those of sentences take too long here."""
    path = Path(__file__).parents[2] / "scripts"
    code = (
        "import json, fit_worth as f; from pathlib import Path;"
        "lines = (f.FIXTURES / 'typed-refrains.jsonl').read_text().splitlines();"
        "bias, weights = f.fit([f.Sentence(*json.loads(l)) for l in lines]);"
        "print(*(round(x, 2) for x in (bias, *weights)))"
    )
    env = {**os.environ, "PYTHONPATH": str(path)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True)
    assert [float(x) for x in run.stdout.split()] == [refrains.BIAS, *refrains.WEIGHTS]
