"""Python scripts, run step by step by an interpreter in worker processes that can do nothing but ask.

The eval door opens sessions here. Nothing of a script ever runs in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from checkrein.execute.python_prelude import Names
from checkrein.execute.python_session import PythonSession
from checkrein.execute.python_spares import Passed, Spares, Wanted
from checkrein.execute.python_state import unpack
from checkrein.execute.python_words import Done, Refused, configure
from checkrein.execute.python_worker import LostError, NoInterpreterError, Worker, program, started
from checkrein.execute.sandbox import Limits, Tool, restored
from checkrein.execute.seats import Seats

_WORKERS = 32
_SCRIPTS_PER_WORKER = 500
_READY_SECONDS = 30.0
# A worker that nobody needed for so long goes, but for the last.
_IDLE_SECONDS = 10.0


class PythonEngine:
    """Workers for as many scripts as run at once, the first of them started with the first script."""

    def __init__(self, *, workers: int = _WORKERS) -> None:
        self._program: Path | None = None
        self.seats, self.passed = Seats(workers), Passed()
        self.spares = Spares(lambda wanted: self.hire(wanted, checked=True), self.dismiss)
        self._sessions: set[PythonSession] = set()
        self._idle: dict[Worker, asyncio.TimerHandle] = {}
        # Workers on their way to somebody, and back.
        self._coming: set[asyncio.Future[None]] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def open(self, tools: Sequence[Tool], limits: Limits, *, stubs: str = "") -> PythonSession:
        await self._found()
        session = PythonSession(self, Names(tools, stubs), limits, checked=bool(stubs))
        self._sessions.add(session)
        return session

    async def load(self, dumped: bytes, tools: Sequence[Tool], limits: Limits) -> PythonSession:
        state = unpack(dumped)
        return await restored(await self.open(tools, limits), state)

    async def close(self) -> None:
        for session in tuple(self._sessions):
            await session.close()
        await self.spares.close()
        # INVARIANT: one that comes for somebody who has given up is ended with the others.
        while under_way := {*self._coming, *self._leaving}:
            await asyncio.wait(under_way)
        while self._idle:
            await self._taken().bury()

    def forget(self, session: PythonSession) -> None:
        self._sessions.discard(session)

    async def hire(self, wanted: Wanted, *, checked: bool) -> Worker:
        """A worker that is ready for a script; raises NoInterpreterError."""
        coming: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._coming.add(coming)
        try:
            return await self._hired(wanted, checked=checked)
        finally:
            self._coming.discard(coming)
            coming.set_result(None)

    async def _hired(self, wanted: Wanted, *, checked: bool) -> Worker:
        while self._idle:
            if await self._ready(worker := self._taken(), wanted, checked=checked):
                return worker
        if await self._ready(worker := await started(await self._found()), wanted, checked=checked):
            return worker
        raise NoInterpreterError(
            "Python scripts cannot run here: the interpreter does not start.",
            remedy="Install it again with `pip install --force-reinstall 'checkrein[eval]'`.",
        )

    async def _found(self) -> Path:
        if self._program is None:
            self._program = await asyncio.to_thread(program)
        return self._program

    async def _ready(self, worker: Worker, wanted: Wanted, *, checked: bool) -> bool:
        limits, stubs = wanted.limits, wanted.names.check_stubs
        # Its bytes carry the time it computed; ours, kept beside them, ends it where they do not.
        request = configure(seconds=limits.seconds, memory=limits.memory, checked=checked, stubs=stubs)
        try:
            async with asyncio.timeout(_READY_SECONDS):
                event = await worker.ask(request)
        except (LostError, TimeoutError):
            event = None
        except BaseException:
            self.dismiss(worker)
            raise
        if isinstance(event, Done):
            worker.scripts += 1
            return True
        self.dismiss(worker)
        if isinstance(event, Refused):
            raise NoInterpreterError(
                f"Python scripts cannot run here: {event.message}",
                remedy="Install the interpreter this version needs with `pip install 'checkrein[eval]'`.",
            )
        return False

    def let_go(self, worker: Worker) -> asyncio.Task[None]:
        """Give a worker back with its seat; it takes a moment to forget a script, for which nobody waits."""
        return self._leave(self._let_go(worker))

    async def _let_go(self, worker: Worker) -> None:
        await self._rested(worker)
        self.seats.give()

    def dismiss(self, worker: Worker) -> asyncio.Task[None]:
        """Give back a worker that has no seat."""
        return self._leave(self._rested(worker))

    def _leave(self, leaving: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(leaving)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _rested(self, worker: Worker) -> None:
        """INVARIANT: a worker has another script only when it says that nothing of the last is left."""
        if worker.scripts >= _SCRIPTS_PER_WORKER or not await worker.forget():
            await worker.bury()
            return
        later = asyncio.get_running_loop().call_later(_IDLE_SECONDS, self._retire, worker)
        self._idle[worker] = later

    def _taken(self) -> Worker:
        """The one that rested shortest."""
        worker, alarm = self._idle.popitem()
        alarm.cancel()
        return worker

    def _retire(self, worker: Worker) -> None:
        if len(self._idle) > 1 and self._idle.pop(worker, None) is not None:
            self._leave(worker.bury())
