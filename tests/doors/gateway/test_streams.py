"""A transport over what a pump passed: reads, writes, holds back, and ends with the pump."""

import asyncio
import contextlib
import hashlib
import os
import random

import pytest

from checkrein.doors.gateway import passing
from checkrein.doors.gateway.streams import Streams
from doors.gateway.ends import WAYS, Ends
from doors.gateway.loop_turns import loop_turns
from doors.gateway.test_front_stdio import loops
from patience import PATIENCE, soon

MB = 1 << 20


class Line(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self):
        self.heard, self.log, self.transport = bytearray(), [], None
        self.lost, self.ended = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if data == b"crash":
            raise RuntimeError("inside")
        self.heard += data

    def eof_received(self):
        self.ended.set()
        return self.stays

    stays = True

    def pause_writing(self):
        self.log.append("pause")

    def resume_writing(self):
        self.log.append("resume")

    def connection_lost(self, exc):
        self.log.append("lost")
        self.lost.set()


@pytest.fixture(params=WAYS[1:])
def way(request):
    return request.param


@pytest.fixture(params=list(loops()), ids=lambda make: make.__module__.split(".")[0])
def run(request, way):
    def run(test, kind=Line):
        async def body():
            ends, line = Ends(way), kind()
            ends.connection.setblocking(False)
            Streams(line, ends.connection, ends.passed.detach()).open()
            try:
                await test(ends, line)
            finally:
                ends.close()
                line.transport.abort()
                await line.lost.wait()

        before = len(os.listdir("/dev/fd"))
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.sleep(0))
            own = len(os.listdir("/dev/fd")) - before
            runner.run(asyncio.wait_for(body(), PATIENCE))
            assert len(os.listdir("/dev/fd")) == before + own

    return run


def test_bytes_go_both_ways(run):
    async def test(ends, line):
        await ends.write(b"hello")
        await soon(lambda: line.heard == b"hello")
        line.transport.write(b"")
        line.transport.write(b"an")
        line.transport.write(bytearray(b"swer"))
        got = b""
        while len(got) < 6:
            got += await ends.read(100)
        assert got == b"answer"

    run(test)


def test_the_clients_end_is_the_end_after_the_last_answer(run):
    async def test(ends, line):
        await ends.write(b"bye")
        ends.close_input()
        await line.ended.wait()
        assert line.heard == b"bye"
        line.transport.write(b"z" * MB)
        line.transport.close()
        line.transport.close()
        assert line.transport.is_closing()
        assert not line.lost.is_set()
        count = 0
        while piece := await ends.read(MB):
            count += len(piece)
        assert count == MB
        await soon(lambda: ends.word is not None)
        assert ends.word == passing.DONE
        assert line.log[-1] == "lost"

    run(test)


def test_a_line_that_wants_no_more_ends_with_the_client(run):
    class Ends_(Line):  # noqa: N801
        stays = False

    async def test(ends, line):
        ends.close_input()
        await line.lost.wait()
        await soon(lambda: ends.word is not None)
        assert ends.word == passing.DONE

    run(test, Ends_)


def test_an_end_of_ours_has_no_last_word(run):
    async def test(ends, line):
        line.transport.close()
        await soon(lambda: ends.word is not None)
        assert ends.word == b""

    run(test)


@pytest.mark.parametrize("waiting", [0, 4 * MB])
@pytest.mark.invariant("then nobody is read from any more")
def test_when_the_pump_is_gone_so_is_the_line(run, waiting):
    """INVARIANT: a client whose pump is gone is dropped, whoever else holds its streams."""

    async def test(ends, line):
        line.transport.write(b"x" * waiting)
        ends.end_pump()
        await asyncio.wait_for(line.lost.wait(), PATIENCE)
        assert line.transport.get_write_buffer_size() == 0
        line.transport.write(b"to nobody")
        line.transport.resume_reading()
        assert not line.transport.is_reading()

    run(test)


def test_a_pump_that_talks_is_not_one_of_ours(run):
    async def test(ends, line):
        ends.lifeline.sendall(b"x")
        await asyncio.wait_for(line.lost.wait(), PATIENCE)

    run(test)


def test_a_client_that_reads_no_more_is_let_go(run, way):
    async def test(ends, line):
        os.close(ends.back)
        ends.back = ends.to
        if way == "one socket":
            os.close(ends.to)
            ends.to = ends.back = -1
        with contextlib.suppress(OSError):
            line.transport.write(b"x" * 4 * MB)
        await asyncio.wait_for(line.lost.wait(), PATIENCE)
        assert line.log == ["pause", "lost"] or line.log == ["lost"]

    run(test)


def test_reading_can_be_held_back(run):
    async def test(ends, line):
        line.transport.pause_reading()
        line.transport.pause_reading()
        await ends.write(b"wait")
        await loop_turns()
        assert (line.heard, line.transport.is_reading()) == (b"", False)
        line.transport.resume_reading()
        line.transport.resume_reading()
        await soon(lambda: line.heard == b"wait")

    run(test)


def test_writing_says_when_it_is_enough(run):
    async def test(ends, line):
        line.transport.set_write_buffer_limits(2 * MB, MB)
        assert line.transport.get_write_buffer_limits() == (MB, 2 * MB)
        line.transport.write(b"x" * MB)
        assert line.log == []
        line.transport.write(b"x" * 4 * MB)
        assert line.log == ["pause"]
        size = line.transport.get_write_buffer_size()
        count = 0
        while count < 5 * MB:
            count += len(await ends.read(MB))
            assert line.transport.get_write_buffer_size() <= size
        assert line.log == ["pause", "resume"]
        assert line.transport.get_write_buffer_size() == 0

    run(test)


def test_much_both_ways_with_a_slow_reader_arrives_whole(run):
    chance = random.Random(3)
    sent = [chance.randbytes(chance.choice([1, 100, 5_000, 700_000])) for _ in range(60)]
    told = chance.randbytes(6 * MB)

    async def test(ends, line):
        writing = asyncio.ensure_future(ends.write(told))
        for each in sent:
            line.transport.write(each)
        got = bytearray()
        while len(got) < sum(map(len, sent)):
            got += await ends.read(chance.choice([10, 3_000, 200_000]))
            if chance.random() < 0.01:
                await loop_turns()
        await writing
        await soon(lambda: len(line.heard) == len(told))
        assert hashlib.sha256(got).digest() == hashlib.sha256(b"".join(sent)).digest()
        assert line.heard == told

    run(test)


@pytest.mark.invariant("a line in an unknown state is not read on")
def test_a_line_that_fails_is_not_read_on(run):
    """INVARIANT: a line in an unknown state is not read on."""

    async def test(ends, line):
        said = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: said.append(context))
        await ends.write(b"crash")
        await asyncio.wait_for(line.lost.wait(), PATIENCE)
        assert [str(each["exception"]) for each in said] == ["inside"]

    run(test)
