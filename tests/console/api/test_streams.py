import contextlib

from checkrein.console.api.streams import Held, Streams


def test_so_many_and_no_more():
    streams = Streams(most=2)
    assert [streams.enter() for _ in range(3)] == [True, True, False]
    streams.leave()
    assert streams.enter()
    assert streams.open == 2


def test_once_over_nobody_enters():
    streams = Streams()
    streams.stop()
    assert not streams.enter()


@contextlib.contextmanager
def noted(into, name):
    into.append(f"{name} begins")
    yield name
    into.append(f"{name} ends")


def test_what_is_held_is_given_back_in_turn_and_what_comes_late_at_once():
    seen = []
    with Held() as held:
        assert held.take(noted(seen, "a")) == "a"
        held.take(noted(seen, "b"))
    assert seen == ["a begins", "b begins", "b ends", "a ends"]
    held.take(noted(seen, "late"))
    assert seen[4:] == ["late begins", "late ends"]
