"""One request and its response, against a wire that remembers what was written."""

import asyncio

import pytest

from checkrein.doors.gateway.http_headers import Head
from checkrein.doors.gateway.http_turn import MOST_UNREAD, Turn
from patience import PATIENCE


class Wire:
    """Stands where the connection does."""

    full, address = False, ("127.0.0.1", 1)

    def __init__(self):
        self.written, self.done = [], []

    def write(self, data):
        self.written.append(data)

    def read_on(self):
        """Nothing is paused here."""

    async def drained(self):
        """Nothing is full here."""

    def answered(self, turn):
        self.done.append(turn)


def turned(*, expects=False, method="POST", keep_alive=True):
    wire = Wire()
    return wire, Turn(wire, Head(method, "/mcp", []), -1, keep_alive=keep_alive, expects=expects)


async def streamed(turn, *bodies):
    await turn.begin(200, b"x: y\r\n")
    for body in bodies:
        await turn.write(body, more=True)
    await turn.write(b"", more=False)


def test_head_and_body_leave_together():
    wire, turn = turned()
    asyncio.run(turn.answer(200, b"x: y\r\n", b"ab"))
    assert wire.written == [b"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 2\r\n\r\nab"]
    assert wire.done == [turn] and turn.over and turn.keep_alive


@pytest.mark.parametrize("body", [b"", b"a", b"a" * 1_000])
def test_the_length_that_is_announced_is_that_of_the_body(body):
    wire, turn = turned()
    asyncio.run(turn.answer(200, b"", body))
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)]


@pytest.mark.parametrize("how", [{"keep_alive": False}, {"expects": True}, {}])
def test_who_is_told_that_it_was_the_last_response_hears_it_once(how):
    wire, turn = turned(**how)
    asyncio.run(turn.answer(200, b"", b"ab", last=not how))
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nab"]
    assert not turn.keep_alive


def test_a_stream_comes_in_chunks_and_ends():
    wire, turn = turned(keep_alive=False)
    asyncio.run(streamed(turn, b"ab", b"", b"c" * 16))
    head = b"HTTP/1.1 200 OK\r\nx: y\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    assert wire.written == [head + b"2\r\nab\r\n", b"10\r\n%b\r\n" % (b"c" * 16), b"0\r\n\r\n"]
    assert wire.done == [turn] and turn.over


def test_a_response_to_head_has_none():
    wire, turn = turned(method="HEAD")
    asyncio.run(turn.answer(200, b"", b"ab"))
    assert wire.written == [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"]
    wire, turn = turned(method="HEAD")
    asyncio.run(streamed(turn, b"ab"))
    assert b"".join(wire.written).endswith(b"transfer-encoding: chunked\r\n\r\n")


def test_nothing_is_said_out_of_turn():
    async def go():
        wire, turn = turned()
        with pytest.raises(RuntimeError, match="without its head"):
            await turn.write(b"x", more=False)
        await turn.answer(200, b"", b"")
        with pytest.raises(RuntimeError, match="second response"):
            await turn.answer(200, b"", b"")
        with pytest.raises(RuntimeError, match="second response"):
            await turn.begin(200, b"")
        with pytest.raises(RuntimeError, match="without its head"):
            await turn.write(b"x", more=True)
        assert len(wire.written) == 1 and wire.done == [turn]

    asyncio.run(go())


@pytest.mark.parametrize("leaves", [False, True])
def test_nothing_is_said_before_the_client_has_read_what_came_earlier(leaves):
    async def go():
        wire, turn = turned()
        wire.full, free = True, asyncio.Event()
        wire.drained = free.wait
        answering = asyncio.create_task(turn.answer(200, b"", b"ab"))
        await asyncio.sleep(0)
        assert wire.written == [] and not turn.started
        if leaves:
            turn.lose()
        free.set()
        await answering
        assert len(wire.written) == (not leaves)

    asyncio.run(go())


def test_the_body_is_handed_over_as_it_comes():
    async def go():
        _, turn = turned()
        turn.feed(b"a")
        turn.feed(b"b")
        assert await turn.part() == (b"ab", True)
        turn.complete()
        assert await turn.part() == (b"", False)
        turn.lose()
        assert await turn.part() is None

    asyncio.run(go())


def test_who_waits_for_a_body_nobody_wants_any_more_waits_no_longer():
    async def go():
        _, turn = turned()
        waiting = asyncio.create_task(turn.part())
        await asyncio.sleep(0)
        await turn.answer(413, b"", b"")
        assert await asyncio.wait_for(waiting, PATIENCE) is None

    asyncio.run(go())


def test_too_much_unread_is_said():
    _, turn = turned()
    assert not turn.feed(b"x" * MOST_UNREAD)
    assert turn.feed(b"x")


def test_who_left_is_sent_nothing():
    for work in (lambda turn: turn.answer(200, b"", b"ab"), lambda turn: streamed(turn, b"ab")):
        wire, turn = turned()
        turn.lose()
        asyncio.run(work(turn))
        assert wire.written == [] and wire.done == []
