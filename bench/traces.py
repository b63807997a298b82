"""How fast sessions are read, against msgspec alone, and whether memory stays flat.

    python bench/traces.py [FOLDER_WITH_TRANSCRIPTS] [--big MB]

For each host with JSONL files, its real session is repeated until the file is large: once as it was
captured (a toy project: records of about 400 bytes, so the cost of each record shows), and once
with the one file that the agent reads grown to 8 KB, as files in real sessions are. Then, in one
run: msgspec decoding every line into plain objects (what any reader has to do at least), our
reading to turns, and our reading into the store; and the same for the forms of files that hold many
sessions, found and read. Seconds of the processor, and ratios, because seconds belong to a machine.
Memory is the peak of a process of its own that reads 10 MB, and one that reads the big file.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from tacit.traces import host_registry
from tacit.traces.assembler import Reading
from tacit.traces.host import Source
from tacit.traces.store import Store

MB = 1024 * 1024
HERE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "transcripts"
HOSTS = {
    "claude-code": "claude", "codex": "codex", "gemini": "gemini", "qwen": "qwen",
    "copilot": "copilot", "pi": "pi",
}  # fmt: skip
_ID = re.compile(rb'"((?:toolu|call|msg|fc|fco)_[0-9a-f-]+|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{8})"')


READ = b"the result goes to dist/."  # the end of the file that the agent reads in every sample


def grow(sample: Path, target: Path, size: int, file_size: int = 0) -> None:
    """Repeat a session, each time with ids of its own, until the file has `size` bytes."""
    text = b" ".join(b"word%d" % n for n in range(file_size // 8))
    data = sample.read_bytes().replace(READ, READ + text)
    written = 0
    with target.open("wb") as file:
        number = 0
        while written < size:
            tail = b"-%06d" % number
            piece = _ID.sub(lambda found, tail=tail: b'"' + found.group(1) + tail + b'"', data)
            file.write(piece)
            written += len(piece)
            number += 1


FORMS = {
    "openai": "openai.jsonl", "sharegpt": "sharegpt.jsonl", "atif": "atif-1.5.json",
    "tau-bench": "tau-bench.json", "openhands": "openhands-results.jsonl",
    "otel": "otel-attributes.jsonl", "openinference": "openinference.jsonl",
    "langfuse": "langfuse-blob/observations_v2/0.jsonl", "langsmith": "langsmith.jsonl",
    "swe-agent": "swe-agent/demo__demo-1.traj",
}  # fmt: skip
_TRACE = re.compile(rb'"([0-9a-f]{24})[0-9a-f]{8}"|"([0-9a-f]{8}-[0-9a-f-]{15})[0-9a-f]{12}"')


def grow_form(sample: Path, target: Path, size: int) -> None:
    """Repeat the session of a form with names of its own, and a result of 8 KB."""
    if sample.suffix == ".jsonl":
        data = sample.read_bytes()
    else:
        document = msgspec.json.decode(sample.read_bytes())
        document = document[0] if isinstance(document, list) else document
        data = msgspec.json.encode(document) + b"\n"
    text = b" ".join(b"word%d" % n for n in range(8192 // 8))
    data = data.replace(b"built dist/demo.whl", b"built dist/demo.whl " + text)
    with target.open("wb") as file:
        written = number = 0
        while written < size:
            number += 1
            piece = data.replace(b"conv-1", b"conv-%d" % number)
            piece = piece.replace(b'"trace-', b'"trace-%d-' % number)
            piece = _TRACE.sub(
                lambda found, n=number: (
                    b'"%s%08x"' % (found[1], n) if found[1] else b'"%s%012x"' % (found[2], n)
                ),
                piece,
            )
            written += file.write(piece)


def read_form(host: str, path: Path) -> int:
    """Every session of a file, found and read."""
    reader = host_registry.get(host)
    return sum(1 for source in reader.inside(str(path)) for _ in Reading(reader, source))


def print_forms(path: Path, size: int) -> None:
    print(
        f"{'forms of files':20} {'msgspec':>9} {'reading':>9} {'ratio':>6} {'sessions':>9}   (MB/s)"
    )
    for host, name in FORMS.items():
        grow_form(HERE.parent / "trace-forms" / name, path, size)
        size_read = path.stat().st_size / MB
        alone = size_read / best(lambda: msgspec_alone(path))
        found = len(list(host_registry.get(host).inside(str(path))))
        read = size_read / best(lambda host=host: read_form(host, path), 2)
        print(f"  {host:18} {alone:9.0f} {read:9.0f} {read / alone:6.2f} {found:9,}")


def msgspec_alone(path: Path) -> None:
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        for line in file:
            decode(line)


def ours(host: str, path: Path) -> int:
    return sum(1 for _ in Reading(host_registry.get(host), Source(host, str(path))))


def stored(host: str, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(os.path.join(folder, "x.db"), lambda text: (text, {}))
        store.take_in(host_registry.get(host), Source(host, str(path)))
        store.close()


def best(call, times: int = 3) -> float:
    """The shortest of a few runs, in seconds of the processor."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def peak(host: str, path: Path, what: str) -> float:
    """MB at the peak of a process that reads the file."""
    done = subprocess.run(
        [sys.executable, __file__, "--inside", what, host, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def inside(what: str, host: str, path: str) -> None:
    if what == "read":
        ours(host, Path(path))
    elif what == "store":
        stored(host, Path(path))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--size", type=int, default=20, help="MB for the speed of each host")
    parser.add_argument("--big", type=int, default=500, help="MB for memory; 0 leaves it out")
    parser.add_argument("--forms", action="store_true", help="only the forms of files")
    parser.add_argument("--inside", nargs=3)
    options = parser.parse_args()
    if options.inside:
        inside(*options.inside)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        head = f"{'msgspec':>9} {'reading':>9} {'ratio':>6} {'storing':>9}"
        kinds = (("as captured", 0), ("with a file of 8 KB", 8192))
        for about, file_size in () if options.forms else kinds:
            print(f"{about:20} {head}   (MB/s)")
            for host, name in HOSTS.items():
                (sample,) = (options.folder / name / "home").rglob("*.jsonl")
                grow(sample, path, options.size * MB, file_size)
                size = path.stat().st_size / MB
                alone = size / best(lambda: msgspec_alone(path))
                read = size / best(lambda host=host: ours(host, path))
                kept = size / best(lambda host=host: stored(host, path), 1)
                print(f"  {host:18} {alone:9.0f} {read:9.0f} {read / alone:6.2f} {kept:9.0f}")
        print_forms(path, options.size * MB)
        if options.big and not options.forms:
            (sample,) = (options.folder / "claude" / "home").rglob("*.jsonl")
            nothing = peak("claude-code", path, "nothing")
            print(f"memory at the peak, MB (nothing read: {nothing:.0f})")
            print(f"{'':20} {'10 MB':>9} {options.big:6} MB")
            for what in ("read", "store"):
                row = []
                for size in (10, options.big):
                    grow(sample, path, size * MB)
                    row.append(peak("claude-code", path, what))
                print(f"  {what:18} {row[0]:9.0f} {row[1]:9.0f}")


if __name__ == "__main__":
    main()
