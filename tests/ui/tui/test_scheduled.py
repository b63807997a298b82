"""Schedules on the whole screen: at the bottom of the list, and run by hand."""

from datetime import UTC, datetime

import pytest
from driving import opened, play

pytest.importorskip("cronsim", reason="the extra 'work' is not installed")

from tacit.work.schedules import runs, shelf
from tacit.work.schedules.binding import Binding
from tacit.work.schedules.shelf import Draft
from tacit.work.schedules.times import understand


def test_a_schedule_is_picked_and_run_by_hand(home: object) -> None:
    """`/sched-NAME` stands last, in another colour; sent, it runs in a session of its own."""
    now = datetime.now(UTC)
    found = understand("every day 9:00", now, "UTC")
    bound = Binding(
        when=found.text, timing=found.timing, zone="UTC", made=now, since=now, project=str(home)
    )
    schedule, _ = shelf.make(Draft(binding=bound, task="Look at the weather.", short="weather"))

    async def scenario() -> None:
        async with opened(["It rains."]) as chat:
            await chat.press("/")
            await chat.until("/ship-it")
            last = chat.app.picker.candidates[-1]
            assert (last.kind, last.inserted) == ("scheduled", schedule.command)
            await chat.press("sched-w")
            await chat.until(schedule.command)
            row = chat.app.picker._rows()[-1]
            assert any("accent" in str(span.style) for span in row.spans)
            await chat.pilot.press("enter")
            assert chat.app.prompt.text.strip() == schedule.command
            await chat.pilot.press("enter")
            await chat.until("It rains.")
            (done,) = runs.history(schedule.name)
            assert (done.why, done.state) == ("hand", "done")
            assert chat.app.talk.session is not None
            assert done.session != chat.app.talk.id
            assert not chat.app.talk.session.conversation.messages

    play(scenario())
