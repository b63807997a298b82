"""How a lower layer tells a higher one."""

import threading

from tacit.base.event_bus import Bus, bus


class Happened:
    pass


class HappenedTwice(Happened):
    pass


def test_listeners_hear_their_kind_and_its_subclasses_in_order() -> None:
    """In the order in which they subscribed, and nothing else."""
    own, heard = Bus(), []
    own.subscribe(Happened, lambda event: heard.append(("first", event)))
    own.subscribe(HappenedTwice, lambda event: heard.append(("second", event)))
    own.subscribe(int, lambda event: heard.append(("number", event)))
    one, two = Happened(), HappenedTwice()
    own.publish(one)
    own.publish(two)
    own.publish("text")
    assert heard == [("first", one), ("first", two), ("second", two)]


def test_a_listener_that_raises_disturbs_nobody() -> None:
    """The publisher and the next listener go on; what was raised is kept."""
    own, heard = Bus(), []

    def fail(event: object) -> None:
        raise ValueError("no")

    own.subscribe(Happened, fail)
    own.subscribe(Happened, heard.append)
    event = Happened()
    own.publish(event)
    assert heard == [event]
    assert [(e, str(error)) for e, error in own.errors] == [(event, "no")]


def test_only_the_last_hundred_errors_are_kept() -> None:
    """A listener that always fails does not fill the memory."""
    own = Bus()
    own.subscribe(int, lambda event: 1 // 0)
    for number in range(250):
        own.publish(number)
    assert [event for event, _ in own.errors] == list(range(150, 250))


def test_ending_a_subscription_twice() -> None:
    """Twice is the same as once, and the same listener may be there two times."""
    own, heard = Bus(), []
    first = own.subscribe(int, heard.append)
    own.subscribe(int, heard.append)
    first()
    first()
    own.publish(1)
    assert heard == [1]


def test_subscribing_once_is_done_once() -> None:
    """A second time is told from the first, and heard once; another kind is another matter."""
    own, heard = Bus(), []
    assert own.subscribe_once(int, heard.append)
    assert not own.subscribe_once(int, heard.append)
    assert own.subscribe_once(str, heard.append)
    own.publish(1)
    assert heard == [1]


def test_a_bus_apart_is_new_and_then_as_before() -> None:
    """Neither listeners nor errors go in or out of the block."""
    own, heard = Bus(), []
    own.subscribe(int, heard.append)
    own.subscribe(str, lambda event: 1 // 0)
    own.publish("before")
    with own.apart():
        assert not own.errors
        own.publish(1)
        own.subscribe(str, lambda event: 1 // 0)
        own.publish("inside")
    own.publish(2)
    assert heard == [2]
    assert [event for event, _ in own.errors] == ["before"]


def test_listening_ends_with_its_block() -> None:
    """Also when the block raises."""
    own, heard = Bus(), []
    try:
        with own.listening(int, heard.append):
            own.publish(1)
            raise KeyError
    except KeyError:
        own.publish(2)
    assert heard == [1]


def test_a_listener_may_subscribe_and_publish() -> None:
    """No lock is held while listeners run."""
    own, heard = Bus(), []

    def again(event: int) -> None:
        heard.append(event)
        own.subscribe(str, heard.append)
        own.publish("from inside")

    own.subscribe(int, again)
    own.publish(1)
    assert heard == [1, "from inside"]


def test_many_threads() -> None:
    """Nothing is lost and nothing is heard twice."""
    own, heard = Bus(), []
    own.subscribe(int, heard.append)

    def work(start: int) -> None:
        for number in range(start, start + 200):
            own.subscribe(str, heard.append)()
            own.publish(number)

    threads = [threading.Thread(target=work, args=(n * 200,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard) == list(range(1000))


def test_the_process_has_a_bus() -> None:
    """One for all layers."""
    assert isinstance(bus, Bus)
