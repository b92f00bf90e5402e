"""The worker of one Python script: taken from the engine, stepped within the script's time, given back.

Called by the script's session, which knows what the script asks for; here it is only kept going and kept
in bounds. A script that waits is bytes whenever its worker is needed elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Protocol

from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import Fault, fault_of, out_of_time
from checkrein.execute.python_prelude import PRELUDE
from checkrein.execute.python_spares import Passed, Spares, Wanted
from checkrein.execute.python_words import DUMP, Dumped, Event, Raised, Refused, System, abort, feed, load
from checkrein.execute.python_worker import LostError, Worker
from checkrein.execute.seats import Seats

_OWN_GRACE = 0.6
_PUT_AWAY_SECONDS = 10.0
# Beside its calls a script looks up names and sleeps; each is a turn.
_TURNS_PER_CALL, _SPARE_TURNS = 4, 2_000
ENDED = Fault("crash", "The script was ended.")
_CRASHED = Fault("crash", "The sandbox's worker ended unexpectedly.")


class Home(Protocol):
    """What a script needs of its engine."""

    seats: Seats
    spares: Spares
    passed: Passed

    async def hire(self, wanted: Wanted, *, checked: bool) -> Worker: ...

    def let_go(self, worker: Worker) -> asyncio.Task[None]: ...

    def forget(self, session: Any) -> None: ...


class StoppedError(Exception):
    """Raise when a run is over, with what to say about it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Spending:
    """Time that counts as the script's own; around every call, so it is made of little."""

    __slots__ = ("_began", "_whose")

    def __init__(self, whose: Interpreter) -> None:
        self._whose, self._began = whose, whose.clock()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._whose.spent += self._whose.clock() - self._began


class Interpreter:
    """One script's worker, and what it came to (`at`); its time so far (`spent`)."""

    def __init__(
        self,
        engine: Home,
        wanted: Wanted,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._wanted, self._limits = engine, wanted, wanted.limits
        self._loop = asyncio.get_running_loop()
        self.console, self.clock = console, clock
        self.worker: Worker | None = None
        self.at: Event | None = None
        self.shelf: bytes = b""
        self.spent = 0.0
        self.over = False
        self._turns_left = self._limits.calls * _TURNS_PER_CALL + _SPARE_TURNS
        self._in_turn = False
        # When the turn is over at the latest, and when somebody looks.
        self._due = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped: Fault | None = None

    def check_open(self) -> None:
        """Said after every wait that is not the interpreter's: the script may have been ended meanwhile."""
        if self.over:
            raise StoppedError(ENDED)

    def spending(self) -> _Spending:
        """What we do for a script at its own expense."""
        return _Spending(self)

    def stop(self, fault: Fault) -> None:
        """End the turn under way, and the worker with it; who waits for it learns why."""
        self._stopped = fault
        if self._in_turn and self.worker is not None:
            self.worker.end()

    async def step(self, request: bytes) -> None:
        """One turn of the interpreter, within what is left of the script's time."""
        if self.worker is None:
            raise StoppedError(ENDED)
        began = self.clock()
        self._due = began + max(0.0, self._limits.seconds - self.spent) + _OWN_GRACE
        if self._alarm is None:
            self._alarm = self._loop.call_later(self._due - began, self._watch)
        self._in_turn = True
        try:
            at = self.at = await self.worker.ask(request)
        except LostError:
            raise StoppedError(self._stopped or _CRASHED) from None
        finally:
            self._in_turn = False
            self.spent += self.clock() - began
        if isinstance(at, Raised):
            raise StoppedError(self._stopped or fault_of(at, self._limits.seconds))
        if isinstance(at, Refused):
            raise StoppedError(_CRASHED)
        if self.spent > self._limits.seconds:
            raise StoppedError(out_of_time(self._limits.seconds))
        self._turns_left -= 1
        if not self._turns_left:
            await self.step(abort("RuntimeError", "the script looked up names, slept and called too often"))
            # INVARIANT: whatever a worker makes of that, its script goes no further.
            raise StoppedError(_CRASHED)

    def _watch(self) -> None:
        """One alarm for all turns: when it rings too early for the turn under way, it is set again."""
        self._alarm = None
        if not self._in_turn:
            return
        if (left := self._due - self.clock()) > 0:
            self._alarm = self._loop.call_later(left, self._watch)
        else:
            self.stop(out_of_time(self._limits.seconds))

    async def nap(self, seconds: float) -> None:
        """Sleeping costs a script its own time: it waits for nobody."""
        if not seconds <= self._limits.seconds - self.spent:
            raise StoppedError(out_of_time(self._limits.seconds))
        with self.spending():
            await asyncio.sleep(max(0.0, seconds))
        self.check_open()

    async def begin(self, *, checked: bool) -> None:
        """A worker that knows our names and nothing else. `checked`: it looks at types before it runs."""
        if await self._check_out(checked=checked, spare=checked):
            return
        await self.step(feed(PRELUDE, checked=checked))
        while isinstance(self.at, System):
            await self.step(self._wanted.names.served(self.at))

    async def take_up(self, *, checked: bool) -> None:
        """Back from bytes."""
        if not self.shelf:
            raise StoppedError(Fault("crash", "The sandbox's worker ended while the script waited."))
        await self._check_out(checked=checked, spare=False)
        await self.step(load(self.shelf))
        self.shelf = b""

    async def put_away(self) -> None:
        """Into bytes, and the worker is somebody else's."""
        if self.worker is not None:
            # One that ended on its way, or hangs, has none to give.
            with contextlib.suppress(LostError, TimeoutError):
                async with asyncio.timeout(_PUT_AWAY_SECONDS):
                    event = await self.worker.ask(DUMP)
                self.shelf = event.state if isinstance(event, Dumped) else b""
            await self.release()

    async def _check_out(self, *, checked: bool, spare: bool) -> bool:
        """A worker of our own; whether it is one that was made ready before."""
        if self.spent >= self._limits.seconds:
            raise StoppedError(out_of_time(self._limits.seconds))
        engine = self._engine
        await engine.seats.take()
        ready = engine.spares.take(self._wanted) if spare else None
        try:
            self.worker = ready or await engine.hire(self._wanted, checked=checked)
        except BaseException:
            engine.seats.give()
            raise
        self.worker.hear = self.console
        if self.over:
            await self.release()
            self.check_open()
        return ready is not None

    async def release(self) -> None:
        if (leaving := self.leave()) is not None:
            await asyncio.shield(leaving)

    def leave(self) -> asyncio.Task[None] | None:
        """Begin to give the worker back."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        worker, self.worker, self.at = self.worker, None, None
        return None if worker is None else self._engine.let_go(worker)
