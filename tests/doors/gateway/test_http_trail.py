import asyncio

import pytest

from checkrein.doors.gateway.event_stream import EventStream
from checkrein.doors.gateway.http_trail import MOST_BYTES, MOST_TRAILS, Trails
from doors.gateway.talking import Taken


def followed(trail, after):
    """What a client that comes back with this number is written."""
    taken = Taken()

    async def run():
        stream = EventStream(taken)
        trail.follow(stream, after)
        stream.end()
        await stream.run()

    asyncio.run(run())
    return taken.body


def test_events_are_numbered_and_told_again_from_any_number():
    trails = Trails()
    trails.open()
    trail = trails.open()
    for text in (b"a\n\n", b"b\n\n", b"c\n\n"):
        assert trail.send(text)
    assert trail.primer.startswith(b"id: 2-0\n")
    assert followed(trail, 0) == b"id: 2-1\na\n\nid: 2-2\nb\n\nid: 2-3\nc\n\n"
    assert followed(trail, 2) == b"id: 2-3\nc\n\n"
    assert followed(trail, 99) == b""


def test_who_follows_is_written_what_comes_until_the_end():
    taken = Taken()

    async def run():
        trail = Trails().open()
        stream = EventStream(taken)
        trail.follow(stream, 0)
        running = asyncio.create_task(stream.run())
        await asyncio.sleep(0)
        trail.send(b"a")
        trail.finish()
        await running

    asyncio.run(run())
    assert taken.body == b"id: 1-1\na"
    assert taken.ended


@pytest.mark.parametrize("last", [b"", b"1", b"1-", b"1-x", b"2-1", b"1--1", b"\xff-1", b"1-" + b"9" * 20])
def test_numbers_that_are_of_no_stream(last):
    trails = Trails()
    trails.open()
    assert trails.find(last) is None


def test_a_stream_is_found_by_its_number():
    trails = Trails()
    trail = trails.open()
    assert trails.find(b"1-17") == (trail, 17)


def test_a_session_remembers_so_many_streams():
    trails = Trails()
    for _ in range(MOST_TRAILS + 1):
        trails.open()
    assert trails.find(b"1-0") is None
    assert trails.find(b"2-0") is not None


def test_and_so_many_bytes_of_which_the_oldest_go_first():
    trails = Trails()
    old, new = trails.open(), trails.open()
    piece = b"x" * (MOST_BYTES // 3)
    old.send(piece)
    new.send(piece)
    assert trails.find(b"1-0") is not None
    new.send(piece)
    assert trails.find(b"1-0") is None
    for _ in range(5):
        new.send(piece)
    assert followed(new, 0).startswith(b"id: 2-6\n")
    new.send(b"x" * (2 * MOST_BYTES))
    assert followed(new, 0) == b""
    new.send(b"y")
    assert followed(new, 0) == b"id: 2-9\ny"


def test_a_trail_that_was_dropped_does_no_harm():
    trails = Trails()
    dropped = trails.open()
    for _ in range(MOST_TRAILS):
        trails.open()
    for _ in range(4):
        dropped.send(b"x" * MOST_BYTES)
    assert trails.find(b"2-0") is None or trails._size <= MOST_BYTES
    fresh = trails.open()
    fresh.send(b"y")
    assert followed(fresh, 0).endswith(b"\ny")
