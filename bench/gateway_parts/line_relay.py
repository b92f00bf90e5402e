"""The floor on stdio: asyncio passes lines between a client and the server it starts, and looks at none."""

from __future__ import annotations

import asyncio
import os
import sys


class Passing(asyncio.Protocol):
    """Whole lines from one pipe to another."""

    def __init__(self, ended: asyncio.Future[None], write: object) -> None:
        self.ended, self.write, self.held = ended, write, b""

    def data_received(self, data: bytes) -> None:
        lines, found, self.held = (self.held + data).rpartition(b"\n")
        if found:
            self.write(lines + found)

    def connection_lost(self, problem: Exception | None) -> None:  # noqa: ARG002
        if not self.ended.done():
            self.ended.set_result(None)


async def main(words: list[str]) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    child_in, ours = os.pipe()
    theirs, child_out = os.pipe()
    child = await asyncio.create_subprocess_exec(*words, stdin=child_in, stdout=child_out)
    os.close(child_in)
    os.close(child_out)
    inward, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(ours, "wb"))
    outward, _ = await loop.connect_write_pipe(asyncio.Protocol, sys.stdout)
    await loop.connect_read_pipe(lambda: Passing(ended, inward.write), sys.stdin)
    await loop.connect_read_pipe(lambda: Passing(ended, outward.write), os.fdopen(theirs, "rb"))
    await ended
    child.kill()
    await child.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
