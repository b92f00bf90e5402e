"""One connection that is kept: opened when wanted, opened again when it broke, later and later each time.

The keeper decides which lines there are and who uses them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from checkrein.doors.gateway.messages import HANDSHAKE, Message, RpcError
from checkrein.doors.gateway.pipes import Gone, PipeError
from checkrein.doors.gateway.upstream import Upstream, WrongEra
from checkrein.errors import CheckreinError, ConfigError

STOPPED, STARTING, READY, WAITING, FAILED = "stopped", "starting", "ready", "waiting", "failed"
FIRST_PAUSE, LONGEST_PAUSE, HEALTHY_SECONDS = 0.5, 60.0, 60.0
QUIET_SECONDS, PING_SECONDS, MOST_MISSED = 60.0, 10.0, 2
_ORDER = {READY: 0, STARTING: 1, WAITING: 2, FAILED: 3, STOPPED: 4}
# Whoever needs the server waits through a pause this long; through a longer one nobody would.
_SHORT_PAUSE = 2.0


class Line:
    """A connection and its history. `wanted` says whether it is opened again by itself."""

    def __init__(
        self,
        name: str,
        era: str,
        capabilities: Message,
        *,
        private_to: str = "",
        open: Callable[[Line], Awaitable[Upstream]],  # noqa: A002 - what it does
        wanted: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        self.name, self.era, self.capabilities, self.private_to = name, era, capabilities, private_to
        self._open, self._wanted, self._say = open, wanted, say
        self.upstream: Upstream | None = None
        # Set by whoever opens it, before anything can go wrong.
        self.opening: Upstream | None = None
        self.state, self.since = STOPPED, time.time()
        self.error: CheckreinError | None = None
        self.restarts = 0
        self.tail: tuple[str, ...] = ()
        self._checking = False
        self._failures = 0
        self._next = self._ready_at = 0.0
        self._attempt: asyncio.Task[Upstream] | None = None
        self._over = False

    @property
    def ready(self) -> Upstream | None:
        upstream = self.upstream
        return upstream if upstream is not None and upstream.ready else None

    @property
    def next_try(self) -> float | None:
        """When it is tried again, as the clock on the wall says."""
        if self.state != WAITING:
            return None
        return time.time() + max(0.0, self._next - asyncio.get_running_loop().time())

    async def reach(self, seconds: float) -> Upstream:
        """The connection once it is ready; raises the error that keeps it from being so."""
        if (found := self.ready) is not None:
            return found
        pause = self._next - asyncio.get_running_loop().time()
        if pause > _SHORT_PAUSE and self.state != STARTING and self.error is not None:
            raise self.error
        if self._attempt is None:
            self._begin(max(0.0, pause))
        attempt = self._attempt
        assert attempt is not None  # noqa: S101 - `_begin` made it
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(attempt)
        except TimeoutError:
            raise PipeError(f"{self.name} is still being started.", remedy="Try again in a moment.") from None

    def _begin(self, pause: float, *, again: bool = False) -> None:
        self._attempt = asyncio.get_running_loop().create_task(self._try(pause, again))
        self._attempt.add_done_callback(self._tried)
        self._enter(WAITING if pause else STARTING)

    async def _try(self, pause: float, again: bool) -> Upstream:
        if pause:
            await asyncio.sleep(pause)
        if again and self.error is not None and not self._wanted():
            raise self.error
        self._enter(STARTING)
        upstream = await self._open(self)
        self.upstream, self.error = upstream, None
        self._ready_at = asyncio.get_running_loop().time()
        self._enter(READY)
        return upstream

    def _tried(self, attempt: asyncio.Task[Upstream]) -> None:
        if self._attempt is attempt:
            self._attempt = None
        error = None if attempt.cancelled() else attempt.exception()
        if error is None or self._over:
            return
        if isinstance(error, WrongEra):
            self._enter(FAILED)
        elif isinstance(error, CheckreinError):
            self._fail(error)
        else:
            self._fail(PipeError(f"{self.name} could not be started: {error!r}."))

    def lost(self, upstream: Upstream, why: str) -> bool:
        """A connection ended; whether it was this line's."""
        if upstream is not self.upstream:
            return False
        self.tail, self.upstream = upstream.tail, None
        if self._over:
            return True
        if asyncio.get_running_loop().time() - self._ready_at >= HEALTHY_SECONDS:
            self._failures = 0
        self.restarts += 1
        # INVARIANT: what a server writes beside its messages, secrets perhaps, is for people who ask for it.
        self._fail(
            PipeError(
                f"{self.name} ended: {why}.",
                remedy=f"See `checkrein servers logs {self.name}` for what it wrote.",
            )
        )
        return True

    def _fail(self, error: CheckreinError) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        self.error, self._next = error, asyncio.get_running_loop().time() + pause
        lasting = isinstance(error, ConfigError) or (isinstance(error, PipeError) and error.lasting)
        if self._wanted() and not lasting:
            self._say(f"{error.message} It is tried again in {pause:g} s.")
            self._begin(pause, again=True)
        else:
            self._say(str(error))
            self._enter(FAILED)

    def _enter(self, state: str) -> None:
        if state != self.state:
            self.state, self.since = state, time.time()

    def is_quiet(self, now: float) -> bool:
        """Whether nothing was heard of it for so long that one had better ask."""
        upstream = self.ready
        if upstream is None or upstream.era != HANDSHAKE or upstream.busy or self._checking:
            return False
        return now - max(upstream.heard_at, upstream.used_at) > QUIET_SECONDS

    async def check(self) -> None:
        """End a connection that answers nothing any more, so that it is opened anew."""
        upstream = self.ready
        if upstream is None:
            return
        self._checking = True
        try:
            for _ in range(MOST_MISSED):
                with contextlib.suppress(TimeoutError):
                    await upstream.request("ping", {}, seconds=PING_SECONDS)
                    return
            await upstream.close("it does not answer any more")
        except (Gone, RpcError):
            # It ended by itself, or it answered: either way it is not our business.
            pass
        finally:
            self._checking = False

    async def stop(self) -> None:
        """End it for good."""
        self._over = True
        if (attempt := self._attempt) is not None:
            attempt.cancel()
            await asyncio.wait([attempt])
        # Also the one whose start was given up: it may still be on its way out.
        for each in (self.upstream, self.opening):
            if each is not None:
                await each.close()
        self._enter(STOPPED)


def status_of(name: str, lines: list[Line]) -> dict[str, Any]:
    """How a server with these lines does, for people: as well as the best of them."""
    first = min(lines, key=lambda line: _ORDER[line.state], default=None)
    upstream, error = (first.ready, first.error) if first else (None, None)
    return {
        "name": name,
        "state": first.state if first else STOPPED,
        "since": first.since if first else None,
        "pid": upstream.pid if upstream else None,
        "connections": sum(line.ready is not None for line in lines),
        "restarts": sum(line.restarts for line in lines),
        "error": error.message if error else "",
        "remedy": error.remedy if error else "",
        "era": upstream.era if upstream else "",
        "version": upstream.version if upstream else "",
        "info": upstream.info if upstream else {},
        "next_try": first.next_try if first else None,
    }
