"""Who acts: carried along, never assumed."""

import asyncio
import threading
from contextlib import suppress

import pytest

from tacit.base.errors import Usage
from tacit.changes.change import (
    Pin,
    acting,
    acting_as,
    change_time,
    current_actor,
    is_change_id,
    make_change,
    new_change_id,
)


def test_nobody_is_the_user_by_default() -> None:
    """Outside any block nobody acts, and making a change without saying who is an error."""
    assert current_actor() is None
    with pytest.raises(Usage, match="who makes this change"):
        make_change("notes", Pin())


def test_blocks_nest_and_end() -> None:
    """The innermost block counts, and the outer one holds again after it, also on errors."""
    with acting_as("user"):
        with suppress(ZeroDivisionError), acting_as("reviewer"):
            assert make_change("notes", Pin()).actor == "reviewer"
            raise ZeroDivisionError
        assert acting() == "user"
    assert current_actor() is None


def test_a_thread_does_not_inherit_and_a_task_does() -> None:
    """A bare thread starts with nobody, so a tool in a pool is never the user by accident."""
    seen: list[object] = []
    with acting_as("user"):
        thread = threading.Thread(target=lambda: seen.append(current_actor()))
        thread.start()
        thread.join()

        async def inside() -> None:
            seen.append(current_actor())

        asyncio.run(inside())
    assert seen == [None, "user"]


def test_only_known_actors() -> None:
    """A name that is not an actor's is an error."""
    with pytest.raises(Usage), acting_as("root"):  # type: ignore[arg-type]
        pass


def test_ids_sort_by_time() -> None:
    """A change's id has its form, its time, and sorts by it."""
    ids = [new_change_id() for _ in range(50)]
    assert all(is_change_id(one) for one in ids)
    assert [i[:18] for i in ids] == sorted(i[:18] for i in ids)
    assert len(set(ids)) == 50
    assert new_change_id(change_time(ids[0]))[:18] == ids[0][:18]
    assert not is_change_id("../" + ids[0])
