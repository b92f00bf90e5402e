"""The worker of one JavaScript script: held while it computes, given up to who needs it while it waits.

Called by the script's session. A script without a worker is its sandbox's memory, kept here until it goes on.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec

from checkrein.execute.js_nursery import LostError, Worker
from checkrein.execute.seats import Seats

_DUMP_SECONDS = 10.0
# Who waits no longer than this keeps the worker: putting a script away and taking it up costs as much.
_SHORT_WAIT = 0.1
# So many bytes of scripts that gave way are kept; beyond that the others wait for a worker.
MOST_KEPT = 256 << 20


class Memory(msgspec.Struct, frozen=True):
    """A sandbox as it waits: what its worker says about it, its compressed memory, and that one's size."""

    meta: dict[str, Any]
    image: bytes
    size: int


class Home(Protocol):
    """What a script needs of its engine; `kept` counts the bytes of scripts that gave way."""

    seats: Seats
    kept: int

    async def take(self) -> Worker: ...

    def give(self, worker: Worker) -> None: ...


class Seat:
    """A script's worker, or its memory."""

    def __init__(self, engine: Home) -> None:
        self._engine = engine
        self.worker: Worker | None = None
        self.hear_output: Any = None
        self._memory: Memory | None = None
        self._idle = self._over = False
        self._alarm: asyncio.TimerHandle | None = None
        self._going: asyncio.Future[None] | None = None
        self._lock = asyncio.Lock()

    async def take(self) -> Worker:
        """A worker, however long that takes. Raises LostError where the script was ended meanwhile."""
        worker = await self._engine.take()
        if self._over:
            self._engine.give(worker)
            raise LostError
        worker.hear_output, self.worker = self.hear_output, worker
        return worker

    async def load(self, memory: Memory, bounds: dict[str, Any]) -> None:
        """Raises LostError where that cannot be taken up."""
        worker = await self.take()
        said = {"do": "load", "meta": memory.meta, "size": memory.size}
        try:
            async with asyncio.timeout(_DUMP_SECONDS):
                head, _ = await worker.ask({**said, **bounds}, memory.image)
        except TimeoutError:
            raise LostError from None
        if head.get("at") != "loaded":
            raise LostError

    async def frozen(self) -> Memory:
        """The script as it waits. Raises LostError."""
        if self._memory is not None:
            return self._memory
        if self.worker is None:
            raise LostError
        try:
            async with asyncio.timeout(_DUMP_SECONDS):
                head, image = await self.worker.ask({"do": "dump"})
            return Memory(head["meta"], image, head["size"])
        except (TimeoutError, KeyError):
            raise LostError from None

    # -- making room ---------------------------------------------------------------------------------------

    def rest(self) -> None:
        """The script waits, for its calls or its timers: before long its worker is whoever's needs it."""
        self._idle = True
        self._alarm = asyncio.get_running_loop().call_later(_SHORT_WAIT, self._offer)

    async def back(self, bounds: dict[str, Any] | None = None) -> None:
        """It goes on; with `bounds` it does so in a worker. Raises LostError."""
        self._stay()
        async with self._lock:
            self._idle = False
        if self.worker is None and bounds is not None:
            memory = self._forgotten()
            if memory is None:
                raise LostError
            await self.load(memory, bounds)

    def leave(self) -> None:
        """It is over; safe to say twice."""
        self._over, self._idle = True, False
        self._stay()
        self._forgotten()
        worker, self.worker = self.worker, None
        if worker is not None:
            self._engine.give(worker)

    def _offer(self) -> None:
        if self._engine.seats.crowded:
            self._going = asyncio.ensure_future(self._make_room())
        else:
            self._engine.seats.rest(id(self), self._make_room)

    def _stay(self) -> None:
        self._engine.seats.wake(id(self))
        if self._alarm is not None:
            self._alarm.cancel()

    async def _make_room(self) -> None:
        async with self._lock:
            worker = self.worker
            if not self._idle or worker is None or self._engine.kept > MOST_KEPT:
                return
            try:
                memory = await self.frozen()
            except LostError:
                # Said when it would go on.
                memory = None
            if self._over:
                return
            self._memory, self.worker = memory, None
            self._engine.kept += len(memory.image) if memory is not None else 0
            self._engine.give(worker)

    def _forgotten(self) -> Memory | None:
        memory, self._memory = self._memory, None
        self._engine.kept -= len(memory.image) if memory is not None else 0
        return memory
