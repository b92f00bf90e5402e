"""What happens, told to open pages as it happens: server-sent events whose ids are the ledger's own numbers.

A page that was away says the last number it heard and gets the rest. Events say what changed, never how it
looks: pages ask for that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool

from checkrein.errors import CheckreinError, LedgerError
from checkrein.ledger.entries import body_of_row
from checkrein.store import Row, Store, records

POLL_SECONDS = 0.05
BEAT_SECONDS = 10.0
MOST_LISTENERS = 64
# Who missed more than this looks at the page anew instead.
_MOST_MISSED = 500
_encode = msgspec.json.Encoder().encode
# What a page needs to know which part of it changed; never what a tool said.
_TOLD = ("project", "session", "answer", "verdict", "decision", "server")


class Feed:
    """One look at the ledger for all open pages."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[asyncio.Queue[bytes]] = set()
        self._seen = 0
        self._writes: int | None = -1
        self._over = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Look for new records until cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                if self._listeners:
                    with contextlib.suppress(CheckreinError):
                        await self._look()
        finally:
            self.close()

    async def _look(self) -> None:
        writes = self._store.writes_to("record")
        if writes is not None and writes == self._writes:
            return
        self._writes = writes
        rows = await run_in_threadpool(self._after, self._seen)
        for row in rows:
            self._tell(event(row))
        if rows:
            self._seen = rows[-1][0]
        if len(rows) >= _MOST_MISSED:
            # There is more than one look holds.
            self._writes = -1

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= MOST_LISTENERS

    async def listen(self, after: int | None) -> AsyncGenerator[bytes]:
        """Events after this number, then each new one; an empty comment now and then keeps the line open."""
        queue: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4 * _MOST_MISSED)
        if not self._listeners:
            # Nobody looked for a while.
            self._seen = await run_in_threadpool(self._end)
        # Listen before looking back: nothing falls between the two, and pages can hear a thing twice.
        self._listeners.add(queue)
        try:
            head = self._seen
            yield f"retry: 1000\nid: {head if after is None else after}\n\n".encode()
            for piece in await self._missed(after, head):
                yield piece
            while not self._over:
                try:
                    yield await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._listeners.discard(queue)

    async def _missed(self, after: int | None, head: int) -> list[bytes]:
        if after is None or after >= head:
            return []
        rows = await run_in_threadpool(self._after, after)
        if len(rows) >= _MOST_MISSED:
            return [f"id: {head}\nevent: reload\ndata: {{}}\n\n".encode()]
        return [event(row) for row in rows if row[0] <= head]

    def stop(self) -> None:
        """End every line, from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.close)

    def close(self) -> None:
        self._over = True
        for queue in self._listeners:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait(b"")

    def _tell(self, piece: bytes) -> None:
        for queue in list(self._listeners):
            try:
                queue.put_nowait(piece)
            except asyncio.QueueFull:
                # Nobody reads there any more; it may come back and ask for what it missed.
                self._listeners.discard(queue)

    def _after(self, seq: int) -> list[Row]:
        sql = f"SELECT {records.COLUMNS} FROM record WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        return self._store.query(sql, (seq, _MOST_MISSED))

    def _end(self) -> int:
        found = records.head(self._store)
        return found[0] if found else 0


def event(row: Row) -> bytes:
    """One record as an event."""
    told: dict[str, Any] = {"kind": row[2], "entry": row[3]}
    with contextlib.suppress(LedgerError):
        data = body_of_row(row)["data"]
        told |= {name: data[name] for name in _TOLD if isinstance(data.get(name), str)}
    return b"id: %d\nevent: record\ndata: %s\n\n" % (row[0], _encode(told))
