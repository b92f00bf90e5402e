"""Python scripts, run step by step by an interpreter in worker processes that can do nothing but ask.

The eval door opens sessions here. Nothing of a script ever runs in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from checkrein.errors import CheckreinError
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_seats import Seats
from checkrein.execute.python_session import PythonSession
from checkrein.execute.python_state import unpack
from checkrein.execute.sandbox import Limits, Tool

_WORKERS = 32
# The worker stops itself at the limit, its pool a little later, and the session last.
_POOL_GRACE = 0.3
_RUNS_PER_WORKER = 500


class NoInterpreterError(CheckreinError):
    """Raise when Python scripts cannot run on this machine."""

    code = "run.no_interpreter"


class PythonEngine:
    """A pool of interpreters, started at the first script."""

    def __init__(self, *, workers: int = _WORKERS) -> None:
        self._workers = workers
        self._pool: Any = None
        self._starting = asyncio.Lock()
        self.seats = Seats(workers)
        self._sessions: set[PythonSession] = set()

    async def open(self, tools: Sequence[Tool], limits: Limits, *, stubs: str = "") -> PythonSession:
        await self.pool()
        session = PythonSession(self, Names(tools, stubs), limits, checked=bool(stubs))
        self._sessions.add(session)
        return session

    async def load(self, dumped: bytes, tools: Sequence[Tool], limits: Limits) -> PythonSession:
        state = unpack(dumped)
        session = await self.open(tools, limits)
        try:
            await session.restore(state)
        except BaseException:
            await session.close()
            raise
        return session

    async def close(self) -> None:
        for session in tuple(self._sessions):
            await session.close()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    def forget(self, session: PythonSession) -> None:
        self._sessions.discard(session)

    async def pool(self) -> Any:
        if self._pool is None:
            async with self._starting:
                if self._pool is None:
                    self._pool = await self._start()
        return self._pool

    async def _start(self) -> Any:
        try:
            from pydantic_monty import AsyncMonty

            pool = AsyncMonty(
                max_processes=self._workers + 2,
                max_checkouts_per_worker=_RUNS_PER_WORKER,
                feed_duration_limit_grace=_POOL_GRACE,
                turn_duration_limit_grace=_POOL_GRACE,
            )
            await pool.__aenter__()
        except (ImportError, OSError) as error:
            raise NoInterpreterError(
                f"Python scripts cannot run here: {error}",
                remedy="Install the interpreter with `pip install checkrein[eval]`.",
            ) from None
        return pool
