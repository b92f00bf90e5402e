"""A thread with an event loop of its own: how a door that waits for many things lives in the server.

The door says what is served there; other threads hand over work and wait for what comes of it. Also how a
process's pipes become a loop's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import IO, Any, TypeVar

from checkrein.errors import StoreError

T = TypeVar("T")
Served = Callable[["OwnLoop"], Coroutine[Any, Any, None]]
_STOP_SECONDS = 10.0


def _nothing() -> None:
    """Whoever has nothing to tidy up."""


class OwnLoop:
    """`serve` runs there: it calls `up` when work can be handed over, and returns after `ending`."""

    ending: asyncio.Event

    def __init__(
        self,
        name: str,
        subject: str,
        serve: Served,
        say: Callable[[str], None],
        *,
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        after: Callable[[], None] = _nothing,
    ) -> None:
        self._name, self._subject, self._serve, self._say = name, subject, serve, say
        self._factory, self._after = factory, after
        self.loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._answered, self._is_up, self._fault = threading.Event(), False, ""

    def open(self) -> None:
        """Begin; returns when it can be asked."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()
        self._answered.wait()
        if not self._is_up:
            why = f": {self._fault}" if self._fault else "."
            raise StoreError(f"{self._subject} could not be started{why}", remedy="Run `checkrein doctor`.")

    def up(self) -> None:
        self._is_up = True
        self._answered.set()

    def close(self) -> None:
        """Have it end, and wait for it a while."""
        loop, thread = self.loop, self._thread
        if loop is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.ending.set)
        if thread is not None:
            thread.join(_STOP_SECONDS)

    def do(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """What comes of the work, from any other thread."""
        loop = self.loop
        if loop is None:
            work.close()
            raise StoreError(f"{self._subject} is not running.", remedy="Run `checkrein doctor`.")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise StoreError(f"{self._subject} did not answer in time.", remedy="Try again.") from None
        except concurrent.futures.CancelledError:
            raise StoreError("The server is stopping.", remedy="Try again in a moment.") from None

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._factory) as runner:
                runner.run(self._begin())
        except Exception as error:  # noqa: BLE001 - the other doors go on without it
            self._fault = f"{type(error).__name__}: {error}"
            self._say(f"{self._subject[0].lower()}{self._subject[1:]} ended: {self._fault}")
        finally:
            self.loop = None
            self._after()
            self._answered.set()

    async def _begin(self) -> None:
        self.ending = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        await self._serve(self)


def handed_over(pipe: IO[bytes], loop: asyncio.AbstractEventLoop) -> IO[bytes]:
    """The pipe for a loop to have and to close.

    INVARIANT: a descriptor is closed once. uvloop closes it by its number and then closes the file as well;
    by then another thread's file or connection may go by that number.
    """
    with pipe:
        descriptor = os.dup(pipe.fileno())
    closes_by_number = type(loop).__module__.partition(".")[0] == "uvloop"
    return os.fdopen(descriptor, pipe.mode, buffering=0, closefd=not closes_by_number)
