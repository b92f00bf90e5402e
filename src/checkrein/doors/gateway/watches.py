"""Which resources anybody wants to hear of: each is watched once at its server, until the last has gone.

The hub subscribes and lets go; servers that start again are told again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from checkrein.doors.gateway.clients import Client
from checkrein.doors.gateway.fleet import Fleet
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, Message, RpcError
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError

_SECONDS = 30.0


class Watches:
    """By server and URI as the server knows it: who wants to hear."""

    def __init__(self, fleet: Fleet, say: Callable[[str], None]) -> None:
        self._fleet, self._say = fleet, say
        self._holders: dict[tuple[str, str], set[object]] = {}
        self._streams: dict[Upstream, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, client: Client, holder: object, server: str, uri: str) -> None:
        """Watch it for the holder; raises what the server says against it."""
        upstream = await self._fleet.reach(server, client)
        holders = self._holders.setdefault((server, uri), set())
        first = not holders
        holders.add(holder)
        if upstream.era == STATELESS:
            if first:
                self._listen(upstream)
        elif first or upstream.private_to:
            try:
                await upstream.request("resources/subscribe", {"uri": uri}, seconds=_SECONDS)
            except BaseException:
                self._let_go(server, uri, holder)
                raise

    def drop(self, holder: object, server: str = "", uri: str = "") -> None:
        """The holder wants to hear no more of one, or of any."""
        for key in [key for key, holders in self._holders.items() if holder in holders]:
            if not server or key == (server, uri):
                self._let_go(*key, holder)

    def _let_go(self, server: str, uri: str, holder: object) -> None:
        holders = self._holders.get((server, uri), set())
        holders.discard(holder)
        if holders:
            return
        self._holders.pop((server, uri), None)
        upstream = next((each for each in self._fleet.ready() if each.name == server), None)
        if upstream is not None and upstream.era == HANDSHAKE:
            self._do(self._told(upstream, "resources/unsubscribe", uri))
        elif upstream is not None:
            self._listen(upstream)

    async def _told(self, upstream: Upstream, method: str, uri: str) -> None:
        try:
            await upstream.request(method, {"uri": uri}, seconds=_SECONDS)
        except (RpcError, Gone, TimeoutError) as error:
            self._say(f"{upstream.name} took no {method}: {error}")

    def ready(self, upstream: Upstream) -> None:
        """A shared connection is new: what was watched at the one before is watched again."""
        if upstream.era == STATELESS:
            self._listen(upstream)
            return
        for server, uri in list(self._holders):
            if server == upstream.name:
                self._do(self._told(upstream, "resources/subscribe", uri))

    def ended(self, upstream: Upstream) -> None:
        if (task := self._streams.pop(upstream, None)) is not None:
            task.cancel()

    def _listen(self, upstream: Upstream) -> None:
        """One stream to a stateless server, for everything anybody wants to hear from it."""
        self.ended(upstream)
        lists = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        wanted: Message = dict.fromkeys(lists, True)
        uris = sorted(uri for server, uri in self._holders if server == upstream.name)
        if uris:
            wanted["resourceSubscriptions"] = uris
        self._streams[upstream] = self._do(self._stream(upstream, wanted))

    async def _stream(self, upstream: Upstream, wanted: Message) -> None:
        try:
            await upstream.request("subscriptions/listen", {"notifications": wanted}, seconds=None)
        except (RpcError, CheckreinError, Gone, TimeoutError):
            # Servers need not offer it; their lists are read whenever they start.
            return

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
