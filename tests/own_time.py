"""A loop whose clock moves only when nothing else is left to do: waits cost nothing and come out the same
on a machine that stands still for a second. For what uses timers alone, not for descriptors and threads.
"""

import asyncio
import selectors


class _Skipping(selectors.DefaultSelector):
    """Where the loop would wait for its next timer, the clock goes there instead."""

    now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("a test in its own time waits for something outside of it")
        self.now += max(timeout, 0)
        return super().select(0)


class OwnTime(asyncio.SelectorEventLoop):
    """The loop itself; its time is the selector's."""

    def __init__(self):
        super().__init__(_Skipping())

    def time(self):
        return self._selector.now


def run_in_own_time(work):
    with asyncio.Runner(loop_factory=OwnTime) as runner:
        return runner.run(work())


class Ahead(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead
