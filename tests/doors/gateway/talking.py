"""One connection that speaks HTTP, with an application behind it; and where a response goes without one."""

import asyncio
import contextlib

from checkrein.doors.gateway.http_talk import Talk


@contextlib.asynccontextmanager
async def served(app):
    tasks, talks = set(), []

    def make():
        talks.append(Talk(app, tasks))
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
