"""One request and its response, against a wire that remembers what was written."""

import asyncio

import pytest

from checkrein.doors.gateway.http_turn import MOST_UNREAD, Turn


class Wire:
    """Stands where the connection does."""

    full = False

    def __init__(self):
        self.written, self.done = b"", []

    def write(self, data):
        self.written += data

    def read_on(self):
        """Nothing is paused here."""

    async def drained(self):
        """Nothing is full here."""

    def answered(self, turn):
        self.done.append(turn)


def turned(*, expects=False, method="POST"):
    wire = Wire()
    return wire, Turn(wire, {"method": method}, keep_alive=True, expects=expects)


async def respond(turn, body=b"", headers=None, more=False):
    head = [(b"content-length", b"%d" % len(body))] if headers is None else headers
    await turn.send({"type": "http.response.start", "status": 200, "headers": head})
    await turn.send({"type": "http.response.body", "body": body, "more_body": more})


def test_head_and_body_leave_together():
    wire, turn = turned()
    asyncio.run(respond(turn, b"ab"))
    assert wire.written == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab"
    assert wire.done == [turn] and turn.over


@pytest.mark.parametrize("announced", [b"1", b"3"])
def test_a_body_of_another_length_than_announced_is_not_sent(announced):
    wire, turn = turned()
    with pytest.raises(RuntimeError, match="another length"):
        asyncio.run(respond(turn, b"ab", [(b"content-length", announced)]))
    assert wire.written == b"" and not turn.over


def test_nothing_is_said_out_of_turn():
    async def go():
        _, turn = turned()
        with pytest.raises(RuntimeError, match="out of turn"):
            await turn.send({"type": "http.response.body", "body": b"x"})
        await respond(turn)
        with pytest.raises(RuntimeError, match="out of turn"):
            await respond(turn)

    asyncio.run(go())


def test_the_body_is_handed_over_as_it_comes():
    async def go():
        _, turn = turned()
        turn.feed(b"a")
        turn.feed(b"b")
        assert await turn.receive() == {"type": "http.request", "body": b"ab", "more_body": True}
        turn.complete()
        assert await turn.receive() == {"type": "http.request", "body": b"", "more_body": False}
        turn.lose()
        assert await turn.receive() == {"type": "http.disconnect"}

    asyncio.run(go())


def test_too_much_unread_is_said():
    _, turn = turned()
    assert not turn.feed(b"x" * MOST_UNREAD)
    assert turn.feed(b"x")


def test_who_left_is_sent_nothing():
    wire, turn = turned()
    turn.lose()
    asyncio.run(respond(turn, b"ab"))
    assert wire.written == b"" and wire.done == []
