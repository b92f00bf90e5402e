import asyncio

from checkrein.doors.gateway.event_stream import MOST_WAITING, STILL_HERE, EventStream, event
from doors.gateway.talking import Taken


class Reader(Taken):
    """The other side: takes what is written as soon as it may."""

    def __init__(self):
        super().__init__()
        self.free = asyncio.Event()
        self.free.set()

    async def write(self, body, *, more):
        await self.free.wait()
        await super().write(body, more=more)


def test_an_event_is_one_line_of_data():
    assert event({"a": "x\ny"}) == b'event: message\ndata: {"a":"x\\ny"}\n\n'


def test_what_is_put_is_written_in_order_and_ended():
    async def run():
        reader = Reader()
        stream = EventStream(reader, b"x: y\r\n")
        assert stream.put(b"1")
        running = asyncio.create_task(stream.run())
        await asyncio.sleep(0)
        assert stream.put(b"2")
        stream.end()
        assert stream.put(b"3")
        await running
        assert reader.body == b"12"
        assert reader.status == 200
        assert reader.lines.startswith(b"content-type: text/event-stream\r\n")
        assert reader.lines.endswith(b"\r\nx: y\r\n")
        assert reader.ended

    asyncio.run(run())


def test_a_lost_client_is_written_nothing():
    async def run():
        reader = Reader()
        stream = EventStream(reader)
        running = asyncio.create_task(stream.run())
        await asyncio.sleep(0)
        stream.lose()
        assert not stream.put(b"1")
        await running
        assert reader.body == b""

    asyncio.run(run())


def test_a_client_that_does_not_read_is_given_up():
    async def run():
        reader = Reader()
        stream = EventStream(reader)
        running = asyncio.create_task(stream.run())
        await asyncio.sleep(0)
        reader.free.clear()
        assert stream.put(b"x" * (MOST_WAITING + 1))
        await asyncio.sleep(0)
        kept = [stream.put(b"x" * (MOST_WAITING // 4)) for _ in range(6)]
        assert kept[0]
        assert not kept[-1]
        assert stream.lost
        reader.free.set()
        await running

    asyncio.run(run())


def test_silence_is_broken_once_in_a_while():
    async def run():
        reader = Reader()
        stream = EventStream(reader, now=100.0)
        stream.breathe(110.0, 15.0)
        stream.breathe(115.0, 15.0)
        stream.breathe(116.0, 15.0)
        stream.end()
        await stream.run()
        assert reader.body == STILL_HERE
        assert STILL_HERE.startswith(b":")

    asyncio.run(run())
