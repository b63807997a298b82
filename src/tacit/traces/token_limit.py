"""Cutting a trajectory down to a number of tokens, by whole steps, with nothing dropped in silence.

The first entry of each kind (what the model was given, what the user said, what the agent said,
what it called) and the last few stay as they are. Of the middle as many entries as needed go, from
its beginning on, and one entry stands in their place that says which they were: a summary by a
model where there is one, else how many. Tokens are estimated by characters.
"""

from collections.abc import Callable, Iterator

import msgspec

from tacit.base.display import counted, estimate_tokens, one_line, shorten, shorten_middle
from tacit.traces.trajectory import Entry, StandsFor, Trajectory

LAST = 4
"""Entries at the end that stay."""
NO_MODEL = "no model"
_AROUND = 8
"""Tokens that a message takes beside its words: role, names, brackets."""
_SUMMARY = 750
"""Tokens that a summary may have."""
_FRAME = 40
"""Tokens of the words around it."""
_MOST_ASKED = 60_000
"""Characters of the cut steps that a model is shown."""

Summarise = Callable[[Trajectory, str, int], tuple[str, str]]
"""Sums steps up: the trajectory that they are from, the steps as text, and how many tokens the
summary may have. Gives the summary and the model's name; both empty where there is none."""


class TooLarge(Exception):
    """What must stay is more than the limit, by itself."""


def no_summary(trajectory: Trajectory, text: str, tokens: int) -> tuple[str, str]:
    """No model was chosen."""
    return "", ""


def tokens_of(entry: Entry) -> int:
    """About how many tokens an entry is."""
    words = estimate_tokens(entry.text) + _AROUND
    for call in entry.calls:
        given = msgspec.json.encode(call.arguments).decode()
        words += estimate_tokens(call.name + given) + estimate_tokens(call.result) + 2 * _AROUND
    return words


def fit_tokens(
    trajectory: Trajectory, limit: int, summarise: Summarise = no_summary
) -> tuple[Trajectory, StandsFor | None]:
    """`trajectory` in at most `limit` tokens, and what was cut; helpers' own are left as they are.

    Raises `TooLarge` where the entries that must stay are too many for that.
    """
    entries = trajectory.entries
    sizes = [tokens_of(entry) for entry in entries]
    if (total := sum(sizes)) <= limit:
        return trajectory, None
    first, last = _middle(entries)
    # What stands for the rest takes room too; a summary gets what a small limit leaves of it.
    most = min(_SUMMARY, max(limit // 10, 60))
    end = first
    while end < last and total + most > limit:
        total -= sizes[end]
        end += 1
    if end == first or total + most > limit:
        raise TooLarge(
            f"the steps that stay are {total + most:,} tokens, more than the {limit:,} allowed"
        )
    cut = entries[first:end]
    text, model = summarise(trajectory, steps_as_text(cut), most)
    text = shorten_middle(text, (most - _FRAME) * 3)
    stands_for = StandsFor(
        (first + 1, end), (cut[0].turn, cut[-1].turn), sum(sizes[first:end]), model or NO_MODEL
    )
    instead = Entry(
        "system", cut[0].turn, _said(cut, stands_for, text), told="summary", stands_for=stands_for
    )
    made = (*entries[:first], instead, *entries[end:])
    return msgspec.structs.replace(trajectory, entries=made), stands_for


def steps_as_text(entries: tuple[Entry, ...]) -> str:
    """The steps as a model is shown them, who and what, long outputs shortened."""
    return shorten_middle(
        "\n".join(line for entry in entries for line in _lines(entry)), _MOST_ASKED
    )


def _lines(entry: Entry) -> Iterator[str]:
    if entry.text:
        yield f"{entry.told or entry.source}: {shorten_middle(entry.text, 4000)}"
    for call in entry.calls:
        given = shorten(msgspec.json.encode(call.arguments).decode(), 1000)
        state = "failed" if call.failed else "gave"
        yield f"call {call.name} {given} {state}: {shorten_middle(call.result, 1000)}"


def _middle(entries: tuple[Entry, ...]) -> tuple[int, int]:
    """Where the entries that may go begin and end."""
    firsts: set[int] = set()
    wanted = (
        lambda entry: entry.source == "system",
        lambda entry: entry.source == "user",
        lambda entry: entry.source == "agent",
        lambda entry: bool(entry.calls),
    )
    for fits in wanted:
        at = next((at for at, entry in enumerate(entries) if fits(entry)), None)
        # One that comes late, such as a host's own summary, is of the middle like the others.
        if at is not None and at <= len(wanted):
            firsts.add(at)
    first = max(firsts, default=-1) + 1
    return first, max(first, len(entries) - LAST)


def _said(cut: tuple[Entry, ...], stands_for: StandsFor, summary: str) -> str:
    """The words of the entry that stands for others."""
    calls = [call.name for entry in cut for call in entry.calls]
    first, last = stands_for.steps
    turns = f"turn {stands_for.turns[0]}"
    if stands_for.turns[0] != stands_for.turns[1]:
        turns = "turns {} to {}".format(*stands_for.turns)
    made = f", with {counted(len(calls), 'call')}" if calls else ""
    where = f"Steps {first} to {last} ({turns}{made}) were left out to save room."
    return f"{where} What happened in them:\n\n{summary}" if summary else one_line(where)
