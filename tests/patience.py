"""Waiting for an event, however slow the machine is."""

import asyncio
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
