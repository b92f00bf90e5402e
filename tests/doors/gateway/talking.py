"""One connection that speaks HTTP, with an application behind it."""

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
