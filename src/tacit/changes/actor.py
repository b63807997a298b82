"""On whose behalf the running code acts, carried in a ContextVar.

There is no default: a thread starts with an empty context, and a tool that a background agent
calls from a pool must not turn into the user there. Whoever starts work says who it is for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from tacit.base.errors import Usage

Actor = Literal["user", "agent", "reviewer", "improver", "curator", "distiller"]
ACTORS: tuple[Actor, ...] = get_args(Actor)
BACKGROUND: frozenset[Actor] = frozenset({"reviewer", "improver", "curator", "distiller"})
"""The actors that nobody watches while they work."""

_acting: ContextVar[Actor | None] = ContextVar("tacit_actor", default=None)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Act as `actor` for a `with` block, here and in what it calls or awaits."""
    if actor not in ACTORS:
        raise Usage(f"'{actor}' is not an actor", f"one of: {', '.join(ACTORS)}")
    token = _acting.set(actor)
    try:
        yield
    finally:
        _acting.reset(token)


def current() -> Actor | None:
    """Who acts, or None where nobody said."""
    return _acting.get()


def acting() -> Actor:
    """Who acts. Raises `Usage` where nobody said: being the user is never assumed."""
    actor = _acting.get()
    if actor is None:
        raise Usage(
            "nobody said who makes this change",
            "pass actor=…, or wrap the call: with acting_as('user'): …",
        )
    return actor
