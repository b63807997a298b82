"""The gate's own answers: the verdicts it hands back and the words for what it refuses itself."""

from tacit.base.errors import Unwritable
from tacit.changes.actor import BACKGROUND, Actor, current
from tacit.changes.change import Change, Refusal, Verdict, is_id
from tacit.changes.inbox import Proposal
from tacit.changes.site import Site


def check_author(change: Change) -> Refusal | None:
    """Who says to be somebody else than who acts here is turned away."""
    here = current()
    if here is not None and here not in ("user", change.actor):
        reason = f"the {here} cannot make a change as {change.actor}"
        return Refusal("policy", "actor", reason, f"make it as the {here}")
    for name in (change.id, *([change.group] if change.group else [])):
        if not is_id(name):
            return Refusal(
                "policy", "change-id", f"{name!r} is not a change's id", "take one from new_id()"
            )
    return None


def may_undo(change: Change, authors: set[Actor], *, approved: bool = False) -> Refusal | None:
    """The user undoes anything, and the agent what the user said yes to; a machine only its own."""
    if change.actor == "user" or (change.actor == "agent" and approved):
        return None
    if change.actor in BACKGROUND and authors == {change.actor}:
        return None
    return Refusal(
        "policy",
        f"{change.actor}-undo",
        f"the {change.actor} may not take back what others did",
        f"ask the user to run: tacit undo, or tacit rollback {change.skill}",
    )


def refused(change: Change, refusal: Refusal) -> Verdict:
    return Verdict(outcome="refused", change=change.id, skill=change.skill, refusal=refusal)


def applied(change: Change, version: str, notes: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        outcome="applied", change=change.id, skill=change.skill, version=version, notes=notes
    )


def said_no() -> Refusal:
    return Refusal("approval", "said-no", "the user said no", "leave it as it is")


def set_to_ask(actor: Actor) -> Refusal:
    reason = f"the {actor}'s changes wait for the user's consent, by the settings"
    return Refusal("approval", "always-asks", reason, "it waits in the inbox: tacit inbox")


def rejected_before(proposal: Proposal) -> Refusal:
    because = f": {proposal.answer}" if proposal.answer else ""
    return Refusal(
        "approval",
        "rejected-before",
        f"the user turned this down on {proposal.decided[:10]}{because}",
        "do not propose it again",
    )


def overtaken(change: Change) -> Refusal:
    return Refusal(
        "apply", "overtaken", f"'{change.skill}' is being changed all the time", "try again"
    )


def unwritable(site: Site, error: OSError) -> Unwritable:
    return Unwritable(
        f"cannot change {site.place.root}: {error.strerror or error}",
        "check the free space and the permissions there",
    )
