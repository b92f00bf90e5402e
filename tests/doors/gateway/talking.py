"""One connection that speaks HTTP, with an application behind it; and where a response goes without one."""

import asyncio
import contextlib

from checkrein.doors.gateway.http_talk import Talk


class Heard(Talk):
    """A connection whose bytes are counted as they are read."""

    transport, count, ended = None, 0, False

    def connection_made(self, transport):
        self.transport = transport
        super().connection_made(transport)

    def data_received(self, data):
        self.count += len(data)
        super().data_received(data)

    def connection_lost(self, exc):
        self.ended = True
        super().connection_lost(exc)

    @property
    def reads(self):
        """Whether what comes is read, if only to be dropped."""
        return not self.ended and not self.transport.is_closing() and self.transport.is_reading()


async def read_by(talks, count):
    """So many bytes were read at the other end, or nothing more is read there."""
    while not talks or (talks[0].count < count and talks[0].reads):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def served(app):
    tasks, talks = set(), []

    def make():
        talks.append(Heard(app, tasks))
        return talks[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    try:
        yield reader, writer, talks, tasks
    finally:
        writer.close()
        server.close()


async def body_of(turn):
    """The whole body of a request; None when its client left before."""
    found = b""
    while (part := await turn.part()) is not None:
        found += part[0]
        if not part[1]:
            return found
    return None


class Taken:
    """Stands where a response goes, and remembers what was said; `task` is where its request is handled."""

    def __init__(self, task=None):
        self.task, self.status, self.lines, self.parts, self.ended, self.last = task, 0, b"", [], False, False

    async def begin(self, status, lines):
        assert not self.status
        self.status, self.lines = status, lines

    async def write(self, body, *, more):
        assert self.status and not self.ended
        self.parts.append(body)
        self.ended = not more

    async def answer(self, status, lines, body, *, last=False):
        await self.begin(status, lines)
        await self.write(body, more=False)
        self.last = last

    @property
    def body(self):
        return b"".join(self.parts)
