"""How often the check of origins takes offence by chance, and what it costs.

    python bench/provenance.py POOL.jsonl.gz FOLDER [--rounds 40]
    python bench/provenance.py --notes LABELS.json FOLDER

POOL has rows {id, text}, each a SKILL.md; FOLDER holds README files at any depth. A round makes a
session in which an agent reads twelve of the READMEs, and judges five skills of the pool that have
nothing to do with it: whatever is found is found by chance. With `--notes`, each note that a reader
made of real sessions (`items` with `kind`, `text` and `sessions`, which lie in FOLDER) is held
against the first two of them, as a skill or a fact: whatever is found is a false alarm.
"""

import argparse
import gzip
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import Witness
from tacit.testing.sample_sessions import made, ran
from tacit.traces.assembler import read_trace
from tacit.traces.host_registry import get, recognise


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--notes", action="store_true")
    parser.add_argument("pool", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if chosen.notes:
        return judge_notes(json.loads(chosen.pool.read_bytes())["items"], chosen.folder)
    with gzip.open(chosen.pool) as file:
        every = [json.loads(line)["text"] for line in file]
    skills = [text for text in every if 600 < len(text) < 5000]
    readmes = [f for f in sorted(chosen.folder.rglob("README*.md")) if f.stat().st_size > 2000]
    choose = random.Random(chosen.seed)
    counts: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    began = time.process_time()
    for _ in range(chosen.rounds):
        texts = [f.read_text("utf-8", "replace")[:8000] for f in choose.sample(readmes, 12)]
        reads = [ran(f"cat docs/{number}.md", text) for number, text in enumerate(texts)]
        witness = Witness(sources(made(["Please look at these files.", *reads])))
        for skill in choose.sample(skills, 5):
            found = witness.findings({"SKILL.md": skill.encode()})
            worst = "block" if any(f.severity == "block" for f in found) else "ask"
            counts[worst if found else "pass"] += 1
            rules.update(f.rule for f in found)
    spent = (time.process_time() - began) / counts.total()
    print(f"{len(readmes)} READMEs, {len(skills):,} skills, {counts.total()} judged")
    print(", ".join(f"{word}: {counts[word]}" for word in ("block", "ask", "pass")))
    print("by rule: " + (", ".join(f"{rule} {n}" for rule, n in rules.most_common()) or "none"))
    print(f"{spent * 1000:.0f} ms on the processor a skill, its session's index included")
    return 0


def judge_notes(notes: list[dict[str, Any]], folder: Path) -> int:
    """What is said of each note, held against the sessions that it was made of."""
    files = {path.stem: path for path in folder.rglob("*.jsonl")}
    counts: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    witnesses: dict[str, Witness] = {}
    for note in notes:
        name, head = ("FACT.md", "metadata:\n  kind: project\n") if note["kind"] == "fact" else (
            "SKILL.md", "")  # fmt: skip
        text = (
            f"---\nname: note\ndescription: Notes on this project.\n{head}---\n\n{note['text']}\n"
        )
        for session in (one for one in note["sessions"][:2] if one in files):
            if session not in witnesses:
                (source,) = recognise(str(files[session]))
                trace = read_trace(get(source.host), replace(source, handed=False))
                witnesses[session] = Witness(sources(trace))
            report = witnesses[session]({name: text.encode()}, learned=True)
            counts[report.verdict] += 1
            rules.update({f.rule for f in report.findings if f.severity != "note"})
    print(", ".join(f"{word}: {counts[word]}" for word in ("block", "ask", "pass")))
    print("by rule: " + ", ".join(f"{rule} {n}" for rule, n in rules.most_common()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
