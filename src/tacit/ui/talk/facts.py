"""`/memory`: the facts that a conversation is told of. Their modules are read late."""

from typing import TYPE_CHECKING

from tacit.base.errors import NotFound
from tacit.base.terminal import one_line
from tacit.ui.talk.shown import Shown, table
from tacit.ui.talk.talk import Talk

if TYPE_CHECKING:
    from tacit.changes.memory import Known


def memory(talk: Talk, rest: str) -> Shown:
    """All of them; one in full; or forgetting one."""
    from tacit.changes.memory import known_facts

    found = known_facts(talk.cwd)
    verb, _, name = rest.partition(" ")
    if verb == "forget" and name.strip():
        return _forget(_find(found, name.strip()))
    if rest:
        return _one(_find(found, rest))
    if not found:
        return Shown("Nothing has been noted yet. Say what is to be remembered, or: tacit memory")
    rows = [
        (
            one_line(known.fact.name),
            one_line(known.fact.says) + ("" if known.fact.state == "active" else " (not recalled)"),
        )
        for known in found
    ]
    return Shown(f"{table(rows, 32)}\n\nsee one: /memory NAME · forget one: /memory forget NAME")


def _one(known: "Known") -> Shown:
    fact = known.fact
    lines = [one_line(fact.says), fact.detail, f"{known.provenance}, {fact.scope}"]
    if fact.why:
        lines.append(f"not recalled: {one_line(fact.why)}")
    return Shown("\n\n".join(part for part in lines if part))


def _forget(known: "Known") -> Shown:
    from tacit.changes.actor import acting_as
    from tacit.changes.gate import Gate
    from tacit.changes.place import fact_places
    from tacit.changes.remembering import Why, forget
    from tacit.ui.talk.gated import told

    fact = known.fact
    with acting_as("user"):
        verdict = forget(Gate(fact_places()), fact.root, fact.name, Why())
    return Shown(told(verdict, "Forgotten", "bring it back"))


def _find(found: "list[Known]", name: str) -> "Known":
    for known in found:
        if known.fact.name == name:
            return known
    import difflib

    near = difflib.get_close_matches(name, [known.fact.name for known in found], 2)
    hint = f"did you mean {' or '.join(near)}?" if near else "see them: /memory"
    raise NotFound(f"there is no fact '{name}'", hint)
