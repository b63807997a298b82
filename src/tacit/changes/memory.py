"""The facts that there are, with who noted each and whether it may be recalled.

A fact's file can say anything of itself, and a clone can bring any file. The history lies in
Tacit's own data folder and is written by the gate alone, so it is what counts. What it does not
know came past the gate: in the user's own folder that is the user's hand, in a project it is
somebody else's word, which is scanned before it is recalled and never stands in for a fact of the
user's.
"""

import hashlib
import os

import msgspec

from tacit.base import paths
from tacit.base.errors import Damaged
from tacit.changes.actor import Actor
from tacit.changes.history import History, Version
from tacit.changes.place import fact_places
from tacit.skills.memory import FACT_FILE, Fact, facts_here

_PAST_THE_GATE = ("baseline", "hand")
_WORDS: dict[str, str] = {
    "user": "noted by the user",
    "agent": "noted by an agent, with the user",
    "": "came with the project's files",
}


class Known(msgspec.Struct, frozen=True):
    """A fact, and who noted it; None where that is whoever wrote the project's files."""

    fact: Fact
    by: Actor | None

    @property
    def provenance(self) -> str:
        """Where it is from, in words for a person or a model."""
        said = _WORDS.get(self.by or "", "noted by tacit after a session")
        return f"{said}, {self.fact.noted}" if self.fact.noted and self.by else said


def known_facts(cwd: str | None = None, data: str | None = None) -> list[Known]:
    """Every fact that can be reached from `cwd`, the project's first. Never raises."""
    data = data or paths.folders().data
    histories = {place.root: History(place, data) for place in fact_places(cwd)}
    found = [_known(fact, histories.get(fact.root)) for fact in facts_here(cwd)]
    own = {k.fact.name for k in found if k.fact.scope == "project" and k.by and _active(k)}
    return [_shadowed(known) if known.fact.name in own else known for known in found]


def recallable(cwd: str | None = None, data: str | None = None) -> list[Known]:
    """Those that a model may be told."""
    return [known for known in known_facts(cwd, data) if _active(known)]


def _known(fact: Fact, history: History | None) -> Known:
    try:
        version = _version(fact, history)
    except Damaged:  # tacit doctor says so
        version = None
    if version is not None:
        return Known(fact, version.record.actor)
    if fact.scope == "user":
        return Known(fact, "user")
    if fact.state == "active" and (why := _blocked(fact)):
        fact = msgspec.structs.replace(fact, state="broken", why=why)
    return Known(fact, None)


def _version(fact: Fact, history: History | None) -> Version | None:
    """The version by which `fact` came to say what it says, where the gate made it."""
    if history is None or not os.path.isdir(history.folder):
        return None
    head = history.head(fact.name)
    if head is None or head.record.state != "live":
        return None
    file = history.files(head).get(FACT_FILE)
    if file is None or hashlib.sha256(file.data).hexdigest()[:16] != fact.digest:
        return None
    if not head.record.undoes and head.record.kind not in _PAST_THE_GATE:
        return head
    same = [v for v in history.log(fact.name) if v.tree == head.tree and not v.record.undoes]
    made = [v for v in same if v.record.kind not in _PAST_THE_GATE]
    return made[-1] if made else None


def _blocked(fact: Fact) -> str:
    """Why the scan would block a fact that nobody put through the gate, or nothing."""
    from tacit.changes.scan import scan

    text = f"---\nname: {fact.name}\ndescription: {fact.says}\n---\n\n{fact.detail}\n"
    report = scan({FACT_FILE: text.encode("utf-8", "replace")}, learned=True)
    found = next((f for f in report.findings if f.severity == "block"), None)
    return f"it came with the project, and the scan blocks it ({found.rule})" if found else ""


def _active(known: Known) -> bool:
    return known.fact.state == "active"


def _shadowed(known: Known) -> Known:
    """A user's fact, where the project has one of the same name that was noted here."""
    if known.fact.scope == "project" or not _active(known):
        return known
    why = "the project has a fact of that name"
    return Known(msgspec.structs.replace(known.fact, state="shadowed", why=why), known.by)
