import asyncio
from types import SimpleNamespace

import pytest

from checkrein.doors.gateway.event_stream import EventStream, event
from checkrein.doors.gateway.http_sessions import MOST_KEPT, MOST_KEPT_BYTES, HttpLimits, Sessions
from doors.gateway.talking import Taken

ADA, BOB = SimpleNamespace(id="ada"), SimpleNamespace(id="bob")


class Place:
    """Sessions whose clients are numbered, and a list of those that left."""

    def __init__(self, **limits):
        self.left, self.count = [], 0
        self.sessions = Sessions(HttpLimits(**limits), lambda client: self.left.append(client.id))

    def add(self, holder=ADA, now=0.0):
        def meet(send):
            self.count += 1
            return SimpleNamespace(id=f"s{self.count}", send=send)

        return self.sessions.add(holder, now, meet)


def written(stream, taken):
    async def run():
        stream.end()
        await stream.run()

    asyncio.run(run())
    return taken.body


@pytest.mark.invariant("a session serves the token that opened it")
def test_a_session_is_found_by_its_own_holder_only():
    place = Place()
    session = place.add(ADA)
    assert place.sessions.find(b"s1", ADA) is session
    assert place.sessions.find(b"s1", BOB) is None
    assert place.sessions.find(b"s2", ADA) is None


def test_an_ended_session_is_left_once_and_found_no_more():
    place = Place()
    session = place.add()
    for _ in range(2):
        place.sessions.end(session)
    assert place.left == ["s1"]
    assert place.sessions.find(b"s1", ADA) is None


def test_the_longest_idle_one_makes_way_when_there_are_too_many():
    place = Place(sessions=2, spare_seconds=10.0)
    first, second = place.add(now=0.0), place.add(now=5.0)
    assert place.add(now=9.0) is None
    assert place.add(BOB, now=9.0) is not None
    first.busy = 1
    assert place.add(now=12.0) is None
    assert place.add(now=15.0) is not None
    assert place.left == [second.client.id]


def test_a_token_takes_its_sessions_along():
    place = Place()
    place.add(ADA)
    kept = place.add(BOB)
    place.add(ADA)
    place.sessions.end_of("ada")
    assert list(place.sessions) == [kept]
    assert place.left == ["s1", "s3"]


def test_only_what_nobody_uses_expires():
    place = Place(session_seconds=100.0)
    _, busy, listening, young = place.add(), place.add(), place.add(), place.add(now=50.0)
    busy.busy = 1
    listening.stream = object()
    place.sessions.expire(101.0)
    assert list(place.sessions) == [busy, listening, young]


def test_messages_wait_for_somebody_who_listens():
    session, taken = Place().add(), Taken()
    session.client.send({"n": 1})
    stream = EventStream(taken)
    session.listen(stream)
    session.client.send({"n": 2})
    assert written(stream, taken) == event({"n": 1}) + event({"n": 2})
    session.unlisten(stream)
    assert session.idle


def test_another_stream_is_not_taken_away():
    session = Place().add()
    old, new = EventStream(Taken()), EventStream(Taken())
    session.listen(old)
    session.listen(new)
    session.unlisten(old)
    assert session.stream is new


def test_of_what_waits_the_oldest_makes_way():
    session, taken = Place().add(), Taken()
    for number in range(MOST_KEPT + 5):
        session.deliver({"n": number})
    stream = EventStream(taken)
    session.listen(stream)
    lines = written(stream, taken).split(b"\n\n")[:-1]
    assert len(lines) == MOST_KEPT
    assert lines[0].endswith(b'{"n":5}')


def test_what_waits_has_a_size():
    session, taken = Place().add(), Taken()
    for number in range(4):
        session.deliver({"n": number, "text": "x" * (MOST_KEPT_BYTES // 2)})
    session.deliver({"text": "x" * (2 * MOST_KEPT_BYTES)})
    session.deliver({"n": "last"})
    stream = EventStream(taken)
    session.listen(stream)
    assert written(stream, taken) == event({"n": "last"})
