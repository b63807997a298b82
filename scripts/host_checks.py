"""What scripts/test-hosts holds against a session of a real agent, a function a check.

Each gets all that one agent did and says whether that is right, and if not, what is wrong. To add
one, write the function and put it in CHECKS; what it needs belongs in `host_sessions.Session`.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from host_programs import Run, transcripts
from host_sessions import (
    MARKER,
    NEXT_MARKER,
    OUTPUT_TOKENS,
    PROMPTS,
    README_SAYS,
    SHELL_SAYS,
    SKILL_SIGN,
    TEXTS,
    Session,
    slowed,
)


class Verdict(msgspec.Struct, frozen=True):
    """`good` is None for a figure that nobody judges."""

    good: bool | None
    shown: str
    why: str = ""


def _judged(wrong: list[str], shown: str = "yes") -> Verdict:
    return Verdict(False, "no", "; ".join(wrong)) if wrong else Verdict(True, shown)


def ran(session: Session) -> Verdict:
    """Every run ended by itself, with exit code 0."""
    wrong = []
    for conversation in (session.alone, session.connected, session.after):
        for run in conversation.runs:
            if not run.ended_well:
                how = "killed, time was up" if run.code is None else f"exit code {run.code}"
                wrong.append(f"{how}: {(run.stderr or run.stdout).strip()[-300:]}")
    return _judged(wrong)


def reached_the_model(session: Session) -> Verdict:
    """One call of the model a reply of the script: connecting adds none."""
    found = len(session.connected.turns())
    wrong = [] if found == len(TEXTS) else [f"{found} calls, not {len(TEXTS)}"]
    return _judged(wrong, str(found))


def tools_ran(session: Session) -> Verdict:
    """All four tool calls of the script were carried out, and their results came back."""
    turns = session.connected.turns()
    results = " ".join(result.text for result in turns[-1].tool_results) if turns else ""
    missing = [said for said in (*SHELL_SAYS, README_SAYS) if said not in results]
    return _judged([f"missing in the results: {missing}"] if missing else [])


def wrote_a_transcript(session: Session) -> Verdict:
    """A transcript with the prompt in it lies where this agent keeps them."""
    files = transcripts(session.agent, session.connected.place.home)
    if any(_holds(file, MARKER) for file in files):
        return Verdict(True, "yes")
    return _judged([f"none of {session.agent.transcripts} holds the prompt"])


def hook_fired(session: Session) -> Verdict:
    """The agent called the hook, the hook started a worker, and it heard of this host."""
    return _judged([] if session.heard else ["the worker heard nothing of this agent"])


def stored_by_itself(session: Session) -> Verdict:
    """Without another command, the session is in the store soon after its end, and once."""
    if session.waited is None:
        return _judged([f"not in the store; the worker's log: {session.log.strip()[-300:]!r}"])
    rows = [(row["host"], row["prompts"], row["calls"]) for row in session.listed]
    wanted = [(session.host, 2, 4)]
    wrong = [] if rows == wanted else [f"tacit sessions says {rows}"]
    return _judged(wrong, f"{session.waited:.1f} s")


def trace_is_right(session: Session) -> Verdict:
    """Prompts, texts, calls, the failure, the project and the tokens are those of the script."""
    trace = session.trace
    if trace is None:
        return _judged(["there is none"])
    wrong = []
    if tuple(prompt.strip() for prompt in trace.prompts) != PROMPTS:
        wrong.append(f"prompts {trace.prompts}")
    if tuple(text.strip() for text in trace.texts) != TEXTS:
        wrong.append(f"texts {trace.texts}")
    reads = "shell" if session.agent.read == session.agent.shell else "read"
    if [call.kind for call in trace.calls] != ["shell", "shell", reads, "shell"]:
        wrong.append(f"calls {[(call.name, call.kind) for call in trace.calls]}")
    if [call.failed for call in trace.calls] != [True, False, False, False]:
        wrong.append(f"failures {[(call.failed, call.error) for call in trace.calls]}")
    said = (SHELL_SAYS[0], SHELL_SAYS[1], README_SAYS, SHELL_SAYS[2])
    for call, expected in zip(trace.calls, said, strict=False):
        if expected not in call.result:
            wrong.append(f"{call.name} gave {call.result[:100]!r}, not {expected!r}")
    if Path(trace.project) != session.connected.place.project:
        wrong.append(f"project {trace.project!r}")
    if trace.usage.output != OUTPUT_TOKENS:
        wrong.append(f"{trace.usage.output} output tokens, not {OUTPUT_TOKENS}")
    if trace.skipped:
        wrong.append(f"passed over: {trace.skipped}")
    return _judged(wrong)


def not_slowed(session: Session) -> Verdict:
    """The same session, connected, takes at most 1 s or 15 % longer."""
    alone, connected = (min(column) for column in zip(*session.times, strict=True))
    shown = f"{connected - alone:+.1f} s"
    if slowed(session.times):
        return Verdict(False, shown, f"seconds alone and connected: {session.times}")
    return Verdict(True, shown)


def silent(session: Session) -> Verdict:
    """Nothing of a hook's is in what the agent prints: no word of it, no new kind of line."""
    alone = session.alone
    known = {_kind(line, alone.place.home) for run in alone.runs for line in _lines(run)}
    home = session.connected.place.home
    lines = [line for run in session.connected.runs for line in _lines(run)]
    return _judged(
        [
            f"printed: {line.strip()[:200]}"
            for line in lines
            if "tacit" in line.lower() or _kind(line, home) not in known
        ]
    )


def skill_reached_the_model(session: Session) -> Verdict:
    """A skill placed in the library is in the first call of the next session, and only there."""
    turns = session.after.turns(NEXT_MARKER)
    wrong = []
    if any(request.mentions(SKILL_SIGN) for request in session.connected.requests):
        wrong.append("it was there before it was made")
    if not turns or not turns[0].mentions(SKILL_SIGN):
        wrong.append("its description is not in what the model was sent")
    return _judged(wrong)


def given_back(session: Session) -> Verdict:
    """After `tacit disconnect`, the file is as it was, to the byte, and nothing is left."""
    wrong = []
    if session.between == session.before:
        wrong.append("connecting changed nothing")
    if session.back != session.before:
        wrong.append(f"was {session.before!r}, is {session.back!r}")
    if session.left:
        wrong.append(f"left: {session.left}")
    return _judged(wrong)


def went_outside(session: Session) -> Verdict:
    """The names outside loopback that it asked for, all refused: a figure, not a fault."""
    hosts = {o.path for o in session.connected.others if not o.path.startswith("/")}
    return Verdict(None, str(len(hosts)), ", ".join(sorted(hosts)))


def took(session: Session) -> Verdict:
    return Verdict(None, f"{min(alone for alone, _ in session.times):.1f} s")


CHECKS: list[tuple[str, Callable[[Session], Verdict]]] = [
    ("ran", ran),
    ("model calls", reached_the_model),
    ("tools ran", tools_ran),
    ("transcript", wrote_a_transcript),
    ("hook", hook_fired),
    ("stored after", stored_by_itself),
    ("trace", trace_is_right),
    ("slower by", not_slowed),
    ("silent", silent),
    ("skill seen", skill_reached_the_model),
    ("given back", given_back),
    ("asked outside", went_outside),
    ("takes", took),
]


def _lines(run: Run) -> list[str]:
    return [line for line in (run.stdout + "\n" + run.stderr).splitlines() if line.strip()]


def _kind(line: str, home: Path) -> str:
    """What sort of line it is: of JSON the type and the message, of text what does not vary."""
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return re.sub(r"\w*\d\w*", "#", line.replace(str(home), "~"))
    parts = [value, value.get("item")] if isinstance(value, dict) else []
    told = [
        part.get(key) for part in parts if isinstance(part, dict) for key in ("type", "message")
    ]
    return " ".join(word for word in told if isinstance(word, str))


def _holds(file: Path, text: str) -> bool:
    """Whether a transcript, or the log beside it where it is a database, holds `text`."""
    wanted = text.encode()
    beside = file.with_name(f"{file.name}-wal")
    return any(wanted in part.read_bytes() for part in (file, beside) if part.exists())
