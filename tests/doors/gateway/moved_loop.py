"""A loop whose clock can be moved: its timers come due without anybody waiting for them."""

import asyncio

from doors.gateway.loop_turns import loop_turns


class MovedLoop(asyncio.SelectorEventLoop):
    """Goes like any other, and further ahead each time it is moved."""

    _ahead = 0.0

    def time(self):
        return super().time() + self._ahead

    async def move(self, seconds):
        """Time passes for everybody on this loop; what was due by then has happened when this returns."""
        # Whatever is about to begin waiting does so before.
        await loop_turns()
        self._ahead += seconds
        await loop_turns()


def run(main):
    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        return runner.run(main)


async def pass_seconds(seconds):
    await asyncio.get_running_loop().move(seconds)
