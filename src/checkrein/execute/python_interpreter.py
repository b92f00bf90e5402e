"""The worker of one Python script: taken from the engine, stepped within the script's time, given back.

Called by the script's session, which knows what the script asks for; here it is only kept going and kept
in bounds. A script that waits is bytes whenever its worker is needed elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import Fault, fault_of, out_of_time
from checkrein.execute.python_prelude import PRELUDE
from checkrein.execute.python_spares import Passed, Spares, Wanted, fed
from checkrein.execute.python_turns import Turns
from checkrein.execute.seats import Seats

_OWN_GRACE = 0.6
ENDED = Fault("crash", "The script was ended.")


@cache
def monty() -> Any:
    """Loaded with the first script."""
    import pydantic_monty

    return pydantic_monty


class Home(Protocol):
    """What a script needs of its engine."""

    seats: Seats
    spares: Spares
    passed: Passed
    turns: Turns

    async def hire(self, wanted: Wanted, *, checked: bool) -> Any: ...

    def let_go(self, worker: Any) -> asyncio.Task[None]: ...

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
        self._whose, self._began = whose, time.monotonic()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._whose.spent += time.monotonic() - self._began


class Interpreter:
    """One script's worker and where it stands (`snapshot`); its time so far (`spent`)."""

    def __init__(self, engine: Home, wanted: Wanted) -> None:
        self._engine, self._wanted, self._limits = engine, wanted, wanted.limits
        self._loop = asyncio.get_running_loop()
        self.worker: Any = None
        self.snapshot: Any = None
        self.shelf: bytes = b""
        self.spent = 0.0
        self.over = False
        # The process of the worker, and the turn it is in.
        self._process = 0
        self._turn: asyncio.Future[Any] | None = None
        # When that turn is over at the latest, and when somebody looks.
        self._due = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped: Fault | None = None

    @property
    def kind(self) -> str:
        """What the script came to: what it asks for, or its end."""
        return type(self.snapshot).__name__

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
        self._kill()

    def _kill(self) -> None:
        # INVARIANT: only a worker in a turn is killed: its process is our own then, and nobody else's.
        if self._turn is not None and self._process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)

    async def step(self, turn: Callable[[], Any]) -> None:
        """One turn of the interpreter, within what is left of the script's time."""
        began = time.monotonic()
        self._due = began + max(0.0, self._limits.seconds - self.spent) + _OWN_GRACE
        if self._alarm is None:
            self._alarm = self._loop.call_later(self._due - began, self._watch)
        self._turn = self._engine.turns.take(turn)
        try:
            self.snapshot = await self._turn
        except monty().MontyTypingError:
            raise
        except monty().MontyError as error:
            raise StoppedError(self._stopped or fault_of(error, self._limits.seconds)) from None
        except asyncio.CancelledError:
            self._kill()
            raise
        finally:
            self._turn = None
            self.spent += time.monotonic() - began
        if self.spent > self._limits.seconds:
            raise StoppedError(out_of_time(self._limits.seconds))

    def _watch(self) -> None:
        """One alarm for all turns: when it rings too early for the turn under way, it is set again."""
        self._alarm = None
        if self._turn is None:
            return
        if (left := self._due - time.monotonic()) > 0:
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
        worker = self.worker
        await self.step(lambda: fed(worker, PRELUDE, checked=checked))

    async def take_up(self, console: Console, *, checked: bool) -> None:
        """Back from bytes."""
        if not self.shelf:
            raise StoppedError(Fault("crash", "The sandbox's worker ended while the script waited."))
        await self._check_out(checked=checked, spare=False)
        worker, shelf = self.worker, self.shelf
        await self.step(lambda: worker.load_snapshot(shelf, print_callback=console))
        self.shelf = b""

    async def put_away(self) -> None:
        """Into bytes, and the worker is somebody else's."""
        if self.worker is not None:
            # One that ended on its way has none to give.
            with contextlib.suppress(monty().MontyError, RuntimeError):
                self.shelf = await self._engine.turns.take(self.snapshot.dump)
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
        self._process = self.worker.worker_pid or 0
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
        worker, self.worker, self.snapshot = self.worker, None, None
        return None if worker is None else self._engine.let_go(worker)
