"""Time in tests, on a machine that may stand still: waiting for what must happen, and what a thing took."""

import asyncio
import contextlib
import threading
import time

PATIENCE = 60.0


def until(check, failing="it never happened"):
    """What `check` returns, once that is true; only what never happens takes long."""
    looking = _Looking(check, failing)
    while not looking.found():
        time.sleep(0.005)
    return looking.value


async def soon(check, failing="it never happened"):
    """The same on a loop, which goes on meanwhile."""
    looking = _Looking(check, failing)
    while not looking.found():
        await asyncio.sleep(0.005)
    return looking.value


class _Looking:
    def __init__(self, check, failing):
        self._check, self._failing, self.value = check, failing, None
        self._end = time.monotonic() + PATIENCE

    def found(self):
        # The time first: whoever slept through all of it looks once more.
        late = time.monotonic() > self._end
        self.value = self._check()
        assert self.value or not late, self._failing() if callable(self._failing) else self._failing
        return self.value


class Awake:
    """Seconds in which this process went on. For waits: what computes is measured by `time.thread_time`."""

    def __init__(self):
        self.seconds, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def _count(self):
        last = time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            # A longer step than this was slept through.
            self.seconds += min(now - last, 0.1)
            last = now

    @classmethod
    @contextlib.contextmanager
    def during(cls):
        counting = cls()
        counting._thread.start()
        try:
            yield counting
        finally:
            counting._over.set()
            counting._thread.join()


async def within(work, seconds):
    """What comes of it, in so many seconds awake."""
    with Awake.during() as took:
        found = await asyncio.wait_for(work, PATIENCE)
    assert took.seconds < seconds
    return found
