"""What each connection says its tools are: the same name must be the same tool wherever it is called.

Listing and calling both come by. A server that shows one connection other tools than a person accepted gains
nothing by it.
"""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary

from checkrein.call import digest
from checkrein.doors.gateway.messages import Message, RpcError
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.upstream import Upstream

LIST_SECONDS = 30.0
_MOST_PAGES, _MOST_LISTED, _LOOKS = 100, 2_000, 3
_METHODS = {"tools": "tools/list", "prompts": "prompts/list"}
_SEVERAL = "several"


class Inventory:
    """Hashes of tools, by connection and name."""

    def __init__(self) -> None:
        self._hashes: WeakKeyDictionary[Upstream, dict[str, str]] = WeakKeyDictionary()
        # However many need it, a connection's list is read once at a time.
        self._readings: WeakKeyDictionary[Upstream, asyncio.Task[list[Any]]] = WeakKeyDictionary()

    def outdated(self, upstream: Upstream) -> None:
        """The server says that its tools are others now; a reading under way does not count any more."""
        self._hashes.pop(upstream, None)
        self._readings.pop(upstream, None)

    async def tools(self, upstream: Upstream) -> list[Any]:
        """What it lists now; raises RpcError, Gone or TimeoutError."""
        reading = self._readings.get(upstream)
        if reading is None:
            reading = asyncio.get_running_loop().create_task(self._read(upstream))
            self._readings[upstream] = reading
            reading.add_done_callback(lambda done: self._read_once(upstream, done))
        return await asyncio.shield(reading)

    async def _read(self, upstream: Upstream) -> list[Any]:
        rows = await pages(upstream, "tools")
        if self._readings.get(upstream) is asyncio.current_task():
            self._hashes[upstream] = _hashes(rows)
        return rows

    def _read_once(self, upstream: Upstream, done: asyncio.Task[list[Any]]) -> None:
        if not done.cancelled():
            # Looked at, also where nobody waits for it any more.
            done.exception()
        if self._readings.get(upstream) is done:
            del self._readings[upstream]

    async def close(self) -> None:
        readings = list(self._readings.values())
        for reading in readings:
            reading.cancel()
        await asyncio.gather(*readings, return_exceptions=True)

    def agrees(self, upstream: Upstream, tool: str, accepted: str) -> bool:
        """Whether the tool is known to be the accepted one at this connection; no does not say it is not."""
        known = self._hashes.get(upstream)
        return known is not None and known.get(tool) == accepted

    async def differs(self, upstream: Upstream, tool: str, accepted: str) -> str:
        """Why the tool must not be called at this connection; nothing when it is the accepted one."""
        # INVARIANT: a call reaches a connection only where its tool is, word for word, what was accepted.
        for _ in range(_LOOKS):
            known = self._hashes.get(upstream)
            if known is not None:
                return "" if known.get(tool) == accepted else "Its definition there is not the accepted one."
            try:
                await self.tools(upstream)
            except (RpcError, Gone, TimeoutError) as error:
                return f"Its definition there cannot be read: {error}"
        return "Its definition there changes all the time."


def _hashes(rows: list[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in rows:
        name = each.get("name") if isinstance(each, dict) else None
        if isinstance(name, str):
            found[name] = _SEVERAL if name in found else digest(each)
    return found


async def pages(upstream: Upstream, kind: str) -> list[Any]:
    """Everything a server lists of a kind, within bounds."""
    if not isinstance(upstream.capabilities.get(kind), dict):
        return []
    rows: list[Any] = []
    cursor: Any = None
    for _ in range(_MOST_PAGES):
        params: Message = {} if cursor is None else {"cursor": cursor}
        page = await upstream.request(_METHODS[kind], params, seconds=LIST_SECONDS)
        found = page.get(kind) if isinstance(page, dict) else None
        rows += found if isinstance(found, list) else []
        cursor = page.get("nextCursor") if isinstance(page, dict) else None
        if not isinstance(cursor, str) or not cursor or len(rows) > _MOST_LISTED:
            break
    return rows
