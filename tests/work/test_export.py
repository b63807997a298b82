"""Writing trajectories: whole rows, a session at a time, and a report of what is not there."""

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.base import config_file
from tacit.base.errors import Unwritable
from tacit.base.event_bus import bus
from tacit.testing.sample_sessions import called, made, ran
from tacit.traces.store import Store, forget_sessions, prune_sessions
from tacit.traces.trace import Told, Trace
from tacit.traces.trajectory_forms import FORMS, saved_path
from tacit.traces.trajectory_source import Choice, TrajectorySource, chosen_sessions
from tacit.work import reactions
from tacit.work.export import Exporter, StreamSink, open_sink, save_session, write_report
from tacit.work.intake import SessionStored


@pytest.fixture
def store(home: Path) -> Store:
    store = Store.open()
    for number in range(3):
        store.write(
            made(
                [f"Do {number}.", ran("make test", "3 passed in 0.1s"), "Done."],
                session=f"s{number}",
            )
        )
    helper = made(["", Told("help", "agent"), "Helped."], session="h")
    store.write(Trace(msgspec.structs.replace(helper.head, parent="s0"), helper.turns))
    return store


def names(store: Store) -> list[str]:
    return chosen_sessions(store, Choice())


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_and_the_report_beside_it(store: Store, tmp_path: Path) -> None:
    """Rows are counted as they are written, helpers among them."""
    file = tmp_path / "x.jsonl"
    with store, open_sink(str(file), FORMS["tinker"]) as sink:
        report = Exporter(store, FORMS["tinker"]).run(names(store), sink)
    write_report(str(file), report)
    assert (report.sessions, report.helpers, report.rows) == (3, 1, 4)
    assert len(lines(file)) == 4
    assert report.bytes == file.stat().st_size
    found = json.loads((tmp_path / "x.jsonl.report.json").read_text())
    assert found["outcomes"] == {"worked": 3}
    assert found["cannot_say"]
    assert file.stat().st_mode & 0o077 == 0
    beside = {"x.jsonl.labels.jsonl", "x.jsonl.report.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", *beside}


def test_openai_labels_lie_beside_the_rows(store: Store, tmp_path: Path) -> None:
    """A line for each row, in the same order."""
    file = tmp_path / "x.jsonl"
    with store, open_sink(str(file), FORMS["openai"]) as sink:
        Exporter(store, FORMS["openai"]).run(names(store), sink)
    labels = lines(tmp_path / "x.jsonl.labels.jsonl")
    assert [row["session_id"] for row in labels] == ["s0", "h", "s1", "s2"]
    assert len(labels) == len(lines(file))


def test_a_folder_has_a_file_a_session(store: Store, tmp_path: Path) -> None:
    """ATIF as documents, with helpers inside; of STS each helper has a file of its own."""
    with store:
        for form, count in (("atif", 3), ("sts", 4)):
            folder = tmp_path / form
            with open_sink(f"{folder}/", FORMS[form]) as sink:
                Exporter(store, FORMS[form]).run(names(store), sink)
            assert len(list(folder.iterdir())) == count
    document = json.loads((tmp_path / "atif/claude-code@s0.json").read_text())
    assert document["subagent_trajectories"][0]["session_id"] == "h"
    first = lines(tmp_path / "sts/claude-code@h.jsonl")[0]
    assert (first["type"], first["id"]) == ("session", "h")


def test_one_sts_file_leaves_helpers_out_and_says_so(store: Store) -> None:
    out = io.BytesIO()
    with store:
        exporter = Exporter(store, FORMS["sts"], one_file=True)
        report = exporter.run(["claude-code:s0"], StreamSink(out))
    assert out.getvalue().count(b'"type":"session"') == 1
    assert [one.id for one in report.left_out] == ["claude-code:h"]
    assert (report.sessions, report.helpers) == (1, 0)


def test_a_broken_session_is_tried_again_and_named(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are written; what fails once is written too."""
    load, tries = TrajectorySource.load, []

    def failing(self: TrajectorySource, name: str) -> Any:
        tries.append(name)
        if name.endswith("s1") or tries.count(name) == 1:
            raise ValueError("broken")
        return load(self, name)

    monkeypatch.setattr(TrajectorySource, "load", failing)
    out = io.BytesIO()
    with store:
        report = Exporter(store, FORMS["atif"]).run(names(store), StreamSink(out))
    assert [(one.id, one.reason) for one in report.failed] == [
        ("claude-code:s1", "ValueError('broken')")
    ]
    assert (report.sessions, out.getvalue().count(b"\n")) == (2, 2)


def test_what_does_not_fit_is_listed(store: Store) -> None:
    """With the reason; what was cut is listed with the steps that went."""
    with store:
        long = [[f"n {n}", ran("x", "y" * 400), "ok"] for n in range(9)]
        store.write(made(["Go.", "I go.", ran("make", "ok")], *long, session="long"))
        store.write(made(["z" * 4000, "ok"], session="large"))
        store.write(made(["", Told("", "agent")], session="empty"))
        wanted = [f"claude-code:{name}" for name in ("long", "large", "empty", "gone", "s0")]
        report = Exporter(store, FORMS["atif"], tokens=600).run(wanted, StreamSink(io.BytesIO()))
    assert [one.id.partition(":")[2] for one in report.left_out] == ["large", "empty", "gone"]
    assert "more than the 600 allowed" in report.left_out[0].reason
    (cut,) = report.compressed
    assert cut.id == "claude-code:long"
    assert cut.stands_for.by == "no model"
    assert report.sessions == 2


def test_copied_turns_take_no_room_where_they_are_left_out(store: Store) -> None:
    """The limit is for what is written; a copy with nothing of its own is named."""
    with store:
        old = [[f"n {n}", ran("x", "y" * 900), "ok"] for n in range(9)]
        store.write(made(*old, session="a"))
        store.write(made(*old, ["And now?", "This."], session="b", copy_of="a"))
        store.write(made(*old, session="c", copy_of="a"))
        out = io.BytesIO()
        wanted = [f"claude-code:{name}" for name in "bc"]
        report = Exporter(store, FORMS["sharegpt"], tokens=200).run(wanted, StreamSink(out))
    (row,) = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [turn["value"] for turn in row["conversations"]] == ["And now?", "This."]
    assert report.compressed == []
    assert [(m.id[-1], m.reason) for m in report.left_out] == [
        ("c", "all of it is an earlier session's")
    ]
    assert any(text.startswith("steps copied from") for text in report.cannot_say)


def test_an_interrupted_run_leaves_no_file(store: Store, tmp_path: Path) -> None:
    """And what was there before stays."""
    file = tmp_path / "x.jsonl"
    file.write_text("old\n")

    def stop(name: str) -> None:
        raise KeyboardInterrupt

    with store, pytest.raises(KeyboardInterrupt), open_sink(str(file), FORMS["openai"]) as sink:
        Exporter(store, FORMS["openai"]).run(names(store), sink, stop)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.jsonl", "old\n")]


def test_a_place_that_cannot_be_written(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = open_sink(str(tmp_path / "file" / "x.jsonl"), FORMS["atif"])
    with store, pytest.raises(Unwritable, match="cannot write"), place:
        pass


def test_memory_does_not_grow_with_the_number_of_sessions(home: Path) -> None:
    """Of what is written, nothing is kept but counts."""
    import tracemalloc

    class Measure:
        def __init__(self) -> None:
            self.sizes: list[int] = []

        def put(self, *_: object) -> None:
            self.sizes.append(tracemalloc.get_traced_memory()[0])

    with Store.open() as store:
        for number in range(30):
            call = called("Bash", {"command": f"x {number}"}, "y" * 20_000)
            store.write(made([f"Do {number}.", call], session=f"s{number}"))
        measure = Measure()
        tracemalloc.start()
        Exporter(store, FORMS["atif"]).run(names(store), measure)
        tracemalloc.stop()
    assert measure.sizes[-1] - measure.sizes[5] < 100_000


# Saving as sessions end.


def ended(store: Store, name: str) -> None:
    bus.publish(SessionStored(name, "new", ended=True))
    assert not bus.errors, bus.errors[-1]


def test_each_session_is_saved_when_it_ends(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where traces.save asks for it, and in the worker alone; forgetting takes it away again."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    reactions.listen()
    path = Path(saved_path("claude-code:s0", FORMS["atif"]))
    with store:
        ended(store, "claude-code:s0")
        assert not path.exists()
        config_file.set_values({"traces.save": "atif"})
        ended(store, "claude-code:s0")
        document = json.loads(path.read_text())
        assert document["session_id"] == "s0"
        assert document["subagent_trajectories"]
        assert path.stat().st_mode & 0o077 == 0
        forget_sessions(store, session="claude-code:s0")
        assert not path.exists()
        ended(store, "claude-code:s1")
        other = Path(saved_path("claude-code:s1", FORMS["atif"]))
        assert other.exists()
        assert prune_sessions(store, older=timedelta()).sessions
    assert not other.exists()


def test_saving_that_fails_keeps_nothing_waiting(
    store: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_WORKER", "1")
    reactions.listen()
    config_file.set_values({"traces.save": "atif"})
    path = Path(saved_path("claude-code:s1", FORMS["atif"]))
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.write_text("no folder")
    with store:
        ended(store, "claude-code:s1")
        with pytest.raises(Unwritable):
            save_session(store, "claude-code:s1")
