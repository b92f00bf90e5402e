import asyncio
import math

import pytest

from checkrein.doors.gateway.http_line import Line, line_maker
from checkrein.doors.gateway.http_talk import LARGEST_HEAD


class Inner(asyncio.Protocol):
    """Stands where the protocol does, and remembers what reached it."""

    def __init__(self):
        self.data, self.events = b"", []

    def connection_made(self, transport):
        self.events.append("made")

    def data_received(self, data):
        self.data += data

    def eof_received(self):
        self.events.append("eof")

    def connection_lost(self, exc):
        self.events.append("lost")

    def pause_writing(self):
        self.events.append("pause")

    def resume_writing(self):
        self.events.append("resume")

    def shutdown(self):
        self.events.append("shutdown")


class Wire(asyncio.Transport):
    def __init__(self, port=1):
        super().__init__({"peername": ("127.0.0.1", port)})
        self.written, self.ended = b"", ""

    def write(self, data):
        self.written += data

    def close(self):
        self.ended = "closed"

    def abort(self):
        self.ended = "aborted"

    def is_closing(self):
        return False


class Request:
    lost = False

    def lose(self):
        self.lost = True


def connected(lines, most=2, port=1):
    async def make():
        line, wire = Line(Inner(), lines, most), Wire(port)
        line.connection_made(wire)
        return line, wire

    return asyncio.run(make())


def fed(line, data):
    async def feed():
        line.data_received(data)

    asyncio.run(feed())


def test_everything_is_passed_on_and_the_line_is_known_while_it_is_there():
    lines = {}
    line, _ = connected(lines)
    assert lines == {("127.0.0.1", 1): line}
    fed(line, b"abc")
    for tell in (line.eof_received, line.pause_writing, line.resume_writing, line.shutdown):
        tell()
    line.connection_lost(None)
    assert line._inner.data == b"abc"
    assert line._inner.events == ["made", "eof", "pause", "resume", "shutdown", "lost"]
    assert lines == {}


def test_one_too_many_is_told_so_and_reaches_nobody():
    lines = {}
    first, _ = connected(lines, most=1, port=1)
    first.known = True
    line, wire = connected(lines, most=1, port=2)
    assert wire.written.startswith(b"HTTP/1.1 503 ")
    assert wire.ended == "closed"
    fed(line, b"GET / HTTP/1.1\r\n\r\n")
    line.eof_received()
    line.pause_writing()
    line.resume_writing()
    line.shutdown()
    line.connection_lost(None)
    assert list(lines) == [("127.0.0.1", 1)]


def test_headers_without_end_are_cut():
    line, wire = connected({})
    fed(line, b"x" * (LARGEST_HEAD + 1))
    fed(line, b"y")
    assert wire.ended == "aborted"
    assert b"y" not in line._inner.data


def test_a_body_may_be_long():
    line, wire = connected({})
    fed(line, b"x" * (LARGEST_HEAD + 1))
    line.busy(Request())
    fed(line, b"y" * LARGEST_HEAD)
    assert wire.ended == ""
    assert line._inner.data.endswith(b"y")


def test_time_runs_from_the_first_byte_to_the_last_header():
    line, _ = connected({})
    assert line.since < math.inf
    request = Request()
    line.busy(request)
    fed(line, b"body")
    assert line.since == math.inf
    line.idle(request)
    assert line.since == math.inf
    fed(line, b"POST")
    assert line.since < math.inf


@pytest.mark.parametrize("over", [False, True])
def test_the_request_under_way_hears_that_its_client_left(over):
    line, _ = connected({})
    request = Request()
    line.busy(request)
    line.idle(Request())
    if over:
        line.idle(request)
    line.connection_lost(None)
    assert request.lost is not over


def test_lines_are_made_over_the_real_protocol():
    async def app(turn):
        """Never asked here."""

    async def make():
        maker, tasks = line_maker(app, {}, 3)
        line, wire = maker(), Wire()
        line.connection_made(wire)
        line.data_received(b"nonsense\r\n\r\n")
        assert wire.written.startswith(b"HTTP/1.1 400 ")
        assert wire.ended == "closed" and not tasks
        line.connection_lost(None)

    asyncio.run(make())


def test_when_a_line_was_last_used_is_known():
    async def go():
        line, request = Line(Inner(), {}, 2), Request()
        line.connection_made(Wire())
        assert line.rested == math.inf
        line.busy(request)
        line.idle(request)
        assert line.rested < math.inf

    asyncio.run(go())
