"""How fast sessions are exported, against msgspec alone, and whether memory stays flat.

    python bench/trajectories.py [--sessions N] [--form FORM]

Makes N sessions (10,000 by default) of some 6 turns each in a store of its own, sizes spread as in
real ones, and writes them in each form. Then, in one run: msgspec decoding and encoding the stored
turns (what any exporter has to do at least) and the export. Seconds are those of the processor, and
there are ratios, because seconds belong to a machine. Memory is the peak of a process of its own,
for a tenth of the sessions and for all.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta

import msgspec

from tacit.traces.session_rows import unpacked
from tacit.traces.store import Store
from tacit.traces.trace import Head, Text, ToolCall, Trace, Turn, Usage
from tacit.traces.trajectory_forms import FORMS
from tacit.traces.trajectory_source import Choice, chosen_sessions
from tacit.work.export import Exporter, open_sink

MB = 1024 * 1024
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [f"word{n}" for n in range(2000)]


def prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def session(number: int) -> Trace:
    """One session; the same number gives the same one."""
    rng = random.Random(number)
    turns = []
    at = BEGAN + timedelta(minutes=7 * number)
    for turn in range(rng.randint(2, 10)):
        steps: list[Text | ToolCall] = []
        for call in range(rng.randint(1, 6)):
            at += timedelta(seconds=5)
            steps.append(Text(prose(rng, 20), at))
            command = {"command": f"cat /home/alexandra/src/{prose(rng, 2)}"}
            result = prose(rng, int(rng.paretovariate(1.2) * 40) % 2500)
            name = f"toolu_{number:08}{turn:03}{call:03}"
            steps.append(ToolCall(name, "Bash", "shell", command, result, at=at, duration=1.0))
        usage = Usage(1000, 100, 500, 0, 0, 0.01)
        prompt = ". ".join(prose(rng, 10) for _ in range(3))
        turns.append(Turn(turn, prompt, tuple(steps), at, at, usage))
    head = Head("claude-code", f"{number:08}-bench", "2.0", "model", "/home/alexandra/src")
    return Trace(msgspec.structs.replace(head, started=BEGAN, ended=at), tuple(turns))


def fill(path: str, sessions: int) -> None:
    with Store.open(path, lambda text: (text, {})) as store:
        for number in range(sessions):
            store.write(session(number))
        store.connection.execute("UPDATE sessions SET rules = 1000")


def alone(path: str) -> tuple[int, float]:
    """msgspec decoding and encoding every turn: bytes and seconds."""
    decode, encode = msgspec.json.Decoder(Turn).decode, msgspec.json.Encoder().encode
    written, began = 0, time.process_time()
    with Store.open(path) as store:
        for row in store.connection.execute("SELECT body FROM turns"):
            written += len(encode(decode(unpacked(row[0]))))
    return written, time.process_time() - began


def export(path: str, form: str, most: int) -> tuple[int, int, float]:
    """Rows, bytes and seconds of an export of the first `most` sessions."""
    with tempfile.TemporaryDirectory() as folder, Store.open(path) as store:
        place = os.path.join(folder, "x.jsonl")
        if not FORMS[form].several:
            place += "/"
        began = time.process_time()
        names = chosen_sessions(store, Choice())[:most]
        with open_sink(place, FORMS[form]) as sink:
            report = Exporter(store, FORMS[form]).run(names, sink)
        assert not report.failed
        assert not report.left_out
        return report.rows, report.bytes, time.process_time() - began


def peak(path: str, form: str, most: int) -> float:
    """MB that a process needs for an export, at most."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", path, form, str(most)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--form", choices=tuple(FORMS))
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        path, form, most = given.child
        export(path, form, int(most))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.db")
        fill(path, given.sessions)
        size, seconds = alone(path)
        base = size / MB / seconds
        print(f"{given.sessions:,} sessions, {size / MB:.0f} MB of turns")
        print(f"msgspec alone: {base:.0f} MB/s")
        for form in [given.form] if given.form else FORMS:
            rows, written, seconds = export(path, form, given.sessions)
            rate = size / MB / seconds
            print(
                f"{form:<9} {rows:,} rows, {written / MB:.0f} MB in {seconds:.1f} s:"
                f" {rate:.1f} MB/s of turns, {base / rate:.1f} times msgspec alone"
            )
        few = max(1, given.sessions // 10)
        for form in [given.form] if given.form else FORMS:
            print(
                f"peak memory, {form}: {peak(path, form, few):.0f} MB for {few:,} sessions,"
                f" {peak(path, form, given.sessions):.0f} MB for {given.sessions:,}"
            )


if __name__ == "__main__":
    main()
