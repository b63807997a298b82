"""Who may do what, as a table: actor by act by the skill's origin.

The table says what is decided, the rest of the module says it in words. Whether a skill is
pinned comes before the table; whether a name is taken comes after it, in the gate.
"""

from typing import Literal

from tacit.changes.actor import Actor
from tacit.changes.change import (
    Archive,
    Create,
    Delete,
    Edit,
    MergeInto,
    Operation,
    Pin,
    Refusal,
    RemoveFile,
    Rename,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
)
from tacit.skills.skill import Origin

Act = Literal["create", "edit", "rename", "archive", "restore", "merge", "delete", "pin"]
Decision = Literal["allow", "ask", "propose", "copy", "refuse"]
"""allow: at once. ask: after a person said yes. propose: to the inbox. copy: in their own scope."""

ORIGINS: tuple[Origin, ...] = ("user", "learned", "bundled", "installed", "scheduled")

# For each origin in the order above. What is not listed is refused.
_TABLE: dict[tuple[Actor, Act], str] = {
    # actor, act               user    learned bundled installed scheduled
    ("user", "create"): "      allow   allow   refuse  refuse    allow  ",
    ("user", "edit"): "        allow   allow   copy    copy      allow  ",
    ("user", "rename"): "      allow   allow   refuse  refuse    allow  ",
    ("user", "archive"): "     allow   allow   refuse  allow     allow  ",
    ("user", "restore"): "     allow   allow   refuse  allow     allow  ",
    ("user", "merge"): "       allow   allow   refuse  allow     allow  ",
    ("user", "delete"): "      allow   allow   refuse  allow     allow  ",
    ("user", "pin"): "         allow   allow   refuse  allow     allow  ",
    ("agent", "create"): "     allow   allow   refuse  refuse    allow  ",
    ("agent", "edit"): "       ask     allow   copy    copy      ask    ",
    ("agent", "rename"): "     ask     ask     refuse  refuse    ask    ",
    ("agent", "archive"): "    ask     ask     refuse  ask       ask    ",
    ("agent", "restore"): "    ask     ask     refuse  ask       ask    ",
    ("agent", "merge"): "      ask     ask     refuse  ask       ask    ",
    ("agent", "delete"): "     ask     ask     refuse  ask       ask    ",
    ("reviewer", "create"): "  refuse  allow   refuse  refuse    refuse ",
    ("reviewer", "edit"): "    refuse  allow   refuse  refuse    refuse ",
    ("improver", "edit"): "    propose allow   refuse  refuse    propose",
    ("curator", "create"): "   refuse  allow   refuse  refuse    refuse ",
    ("curator", "edit"): "     refuse  allow   refuse  refuse    refuse ",
    ("curator", "archive"): "  refuse  allow   refuse  refuse    refuse ",
    ("curator", "restore"): "  refuse  allow   refuse  refuse    refuse ",
    ("curator", "merge"): "    refuse  allow   refuse  refuse    refuse ",
    ("distiller", "create"): " refuse  allow   refuse  refuse    refuse ",
    ("distiller", "edit"): "   propose allow   refuse  refuse    propose",
}

_ACTS: dict[type, Act] = {
    Create: "create",
    Edit: "edit",
    Rewrite: "edit",
    WriteFile: "edit",
    RemoveFile: "edit",
    Rename: "rename",
    Archive: "archive",
    Restore: "restore",
    MergeInto: "merge",
    Delete: "delete",
    Pin: "pin",
    Unpin: "pin",
}

_VERBS: dict[Act, str] = {
    "create": "make",
    "edit": "edit",
    "rename": "rename",
    "archive": "archive",
    "restore": "restore",
    "merge": "merge away",
    "delete": "delete",
    "pin": "pin or unpin",
}

_WHOSE: dict[Origin, str] = {
    "user": "the user's own skill",
    "learned": "a learned skill",
    "bundled": "a skill that ships with tacit",
    "installed": "an installed skill",
    "scheduled": "a scheduled skill",
}


def act_of(operation: Operation) -> Act:
    """Which column of the table an operation falls under."""
    return _ACTS[type(operation)]


def decide(actor: Actor, act: Act, origin: Origin, *, pinned: bool = False) -> Decision:
    """What the rules say of `actor` doing `act` to a skill of this `origin`."""
    if pinned and actor != "user":
        return "refuse"
    row = _TABLE.get((actor, act))
    return row.split()[ORIGINS.index(origin)] if row else "refuse"  # type: ignore[return-value]


def refusal(actor: Actor, act: Act, origin: Origin, skill: str, *, pinned: bool) -> Refusal:
    """The words for a "refuse"."""
    if pinned and actor != "user":
        return Refusal(
            "policy",
            "pinned",
            f"'{skill}' is pinned: nobody but the user changes it",
            "leave it as it is, or ask the user to run: tacit unpin " + skill,
        )
    who = "the user" if actor == "user" else f"the {actor}"
    what = _WHOSE[origin]
    return Refusal(
        "policy",
        f"{actor}-{act}-{origin}",
        f"{who} may not {_VERBS[act]} {what} ('{skill}')",
        _instead(actor, act, origin, skill),
    )


def _instead(actor: Actor, act: Act, origin: Origin, skill: str) -> str:
    if act == "create" and origin != "learned" and actor not in ("user", "agent"):
        return (
            "a skill made in the background must say 'source: auto-skill' under 'metadata:'"
            if any(("create" in key) for key in _TABLE if key[0] == actor)
            else "edit a learned skill instead"
        )
    if act == "create":
        return "edit an existing learned skill instead" if actor == "improver" else ""
    if origin == "bundled":
        return f"make a copy in your own scope by editing it: tacit edit {skill}"
    if origin == "installed" and act == "rename":
        return "edit it, which makes a copy of your own, and rename that"
    if act == "delete":
        return "the curator archives instead" if actor == "curator" else "leave it as it is"
    if act == "pin":
        return f"only the user does: tacit pin {skill}"
    if origin in ("user", "scheduled") and act == "edit":
        return (
            f"the user can opt in with 'source: auto-skill' under 'metadata:' in '{skill}'; "
            "until then put what was learned into a learned skill"
        )
    return "leave it as it is"


def asked(actor: Actor, act: Act, origin: Origin, skill: str, decision: Decision) -> Refusal:
    """Why a change waits for a person."""
    verb, what = _VERBS[act], _WHOSE[origin]
    rule = "asks-first" if decision == "ask" else "proposes"
    reason = f"the {actor} may {verb} {what} only with the user's consent"
    return Refusal("approval", rule, reason, "it waits in the inbox: tacit inbox")
