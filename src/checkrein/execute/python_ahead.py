"""A turn of a script that nobody waits for yet: it is taken while the script's call is made.

Begun by the session of a Python script, which waits for it before anything else is done with the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Ahead:
    """At most one turn, and what went wrong in it."""

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self._fallen: Exception | None = None

    def begin(self, turn: Coroutine[Any, Any, None]) -> None:
        self.task = asyncio.get_running_loop().create_task(self._take(turn))

    async def _take(self, turn: Coroutine[Any, Any, None]) -> None:
        try:
            await turn
        except Exception as error:  # noqa: BLE001 - said when the script goes on
            self._fallen = error

    async def landed(self) -> None:
        """Until it is over, however it went."""
        task, self.task = self.task, None
        if task is not None:
            await task

    async def checked(self) -> None:
        """Until it is over; raises what went wrong."""
        await self.landed()
        if self._fallen is not None:
            raise self._fallen

    async def give_up(self) -> None:
        task, self.task = self.task, None
        if task is not None:
            # Begun before it is given up: nothing of it is left lying about.
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
