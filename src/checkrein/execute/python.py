"""Python scripts, run step by step by an interpreter in worker processes that can do nothing but ask.

The eval door opens sessions here. Nothing of a script ever runs in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from checkrein.errors import CheckreinError
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_session import PythonSession
from checkrein.execute.python_spares import Passed, Spares, Wanted, ended
from checkrein.execute.python_state import unpack
from checkrein.execute.python_turns import Turns
from checkrein.execute.sandbox import Limits, Tool, restored
from checkrein.execute.seats import Seats

_WORKERS = 32
# The worker stops itself at the limit, its pool a little later, and the session last.
_POOL_GRACE = 0.3
_RUNS_PER_WORKER = 500
_SPARE_SUSPENSIONS = 2000
_CLOSING_SECONDS = 5.0


class NoInterpreterError(CheckreinError):
    """Raise when Python scripts cannot run on this machine."""

    code = "run.no_interpreter"


class PythonEngine:
    """A pool of interpreters, started at the first script."""

    def __init__(self, *, workers: int = _WORKERS) -> None:
        self._workers = workers
        self._pool: Any = None
        self._starting = asyncio.Lock()
        self.seats, self.passed, self.turns = Seats(workers), Passed(), Turns()
        self.spares = Spares(lambda wanted: self.hire(wanted, checked=True), self.turns)
        self._sessions: set[PythonSession] = set()
        self._leaving: set[asyncio.Task[None]] = set()

    async def open(self, tools: Sequence[Tool], limits: Limits, *, stubs: str = "") -> PythonSession:
        await self.pool()
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
        # A worker may still be on its way for somebody who has given up; it is given back before all ends.
        await self.turns.rest(_CLOSING_SECONDS)
        while self._leaving:
            await asyncio.gather(*self._leaving)
        pool, self._pool = self._pool, None
        if pool is not None:
            await self.turns.take(lambda: pool.__exit__(None, None, None))
        self.turns.close()

    def forget(self, session: PythonSession) -> None:
        self._sessions.discard(session)

    async def hire(self, wanted: Wanted, *, checked: bool) -> Any:
        """A worker from the pool."""
        names, limits = wanted.names, wanted.limits
        pool = await self.pool()
        worker = pool.checkout(
            limits={
                # Its bytes carry the time it computed; ours, kept beside them, ends it where they do not.
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory,
                "max_suspensions": limits.calls * 4 + _SPARE_SUSPENSIONS,
            },
            type_check=checked,
            type_check_stubs=names.check_stubs if checked else None,
            type_check_format="json",
            os_policy={"sleep": "call_host"},
            external_modules=names.modules(),
        )
        # One that comes when nobody waits for it any more is given back.
        return await self.turns.take(worker.__enter__, lambda late: self._leave(ended(late, self.turns)))

    def let_go(self, worker: Any) -> asyncio.Task[None]:
        """Give a worker back; it takes a moment to forget a script, for which nobody needs to wait."""
        return self._leave(self._let_go(worker))

    def _leave(self, leaving: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(leaving)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    async def _let_go(self, worker: Any) -> None:
        await ended(worker, self.turns)
        self.seats.give()

    async def pool(self) -> Any:
        if self._pool is None:
            async with self._starting:
                if self._pool is None:
                    self._pool = await self._start()
        return self._pool

    async def _start(self) -> Any:
        try:
            from pydantic_monty import Monty

            pool = Monty(
                # One more is the spare, and two are on their way out.
                max_processes=self._workers + 3,
                max_checkouts_per_worker=_RUNS_PER_WORKER,
                feed_duration_limit_grace=_POOL_GRACE,
                turn_duration_limit_grace=_POOL_GRACE,
            )
            await self.turns.take(pool.__enter__)
        except (ImportError, OSError) as error:
            raise NoInterpreterError(
                f"Python scripts cannot run here: {error}",
                remedy="Install the interpreter with `pip install checkrein[eval]`.",
            ) from None
        return pool
