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


# The server, the URI as it knows it, and whose connection it is watched at; nobody's: the shared one.
_Key = tuple[str, str, str]


class Watches:
    """Who wants to hear of what, and as which client."""

    def __init__(self, fleet: Fleet, say: Callable[[str], None]) -> None:
        self._fleet, self._say = fleet, say
        self._holders: dict[_Key, dict[object, Client]] = {}
        self._streams: dict[Upstream, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, client: Client, holder: object, server: str, uri: str) -> None:
        """Watch it for the holder; raises what the server says against it."""
        upstream = await self._fleet.reach(server, client)
        key = server, uri, upstream.private_to
        holders = self._holders.setdefault(key, {})
        first = not holders
        holders[holder] = client
        if not first:
            return
        if upstream.era == STATELESS:
            self._listen(upstream)
            return
        try:
            await upstream.request("resources/subscribe", {"uri": uri}, seconds=_SECONDS)
        except BaseException:
            self._let_go(key, holder)
            raise

    def drop(self, holder: object, server: str = "", uri: str = "") -> None:
        """The holder wants to hear no more of one, or of any."""
        for key in [key for key, holders in self._holders.items() if holder in holders]:
            if not server or key[:2] == (server, uri):
                self._let_go(key, holder)

    def holds(self, server: str, client_id: str) -> bool:
        """Whether something is watched at the client's own connection."""
        return any(key[0] == server and key[2] == client_id for key in self._holders)

    def _let_go(self, key: _Key, holder: object) -> None:
        holders = self._holders.get(key, {})
        holders.pop(holder, None)
        if holders:
            return
        self._holders.pop(key, None)
        server, uri, whose = key
        upstream = self._fleet.own(server, whose) if whose else self._shared(server)
        if upstream is not None and upstream.era == HANDSHAKE:
            self._do(self._told(upstream, "resources/unsubscribe", uri))
        elif upstream is not None:
            self._listen(upstream)

    def _shared(self, server: str) -> Upstream | None:
        return next((each for each in self._fleet.ready() if each.name == server), None)

    async def _told(self, upstream: Upstream, method: str, uri: str) -> None:
        try:
            await upstream.request(method, {"uri": uri}, seconds=_SECONDS)
        except (RpcError, Gone, TimeoutError) as error:
            # A connection that is over watches nothing any more, and the one after it is told everything.
            if upstream.ready:
                self._say(f"{upstream.name} took no {method}: {error}")

    def ready(self, upstream: Upstream) -> None:
        """A connection is new: what was watched at the one before is watched again."""
        if upstream.era == STATELESS:
            self._listen(upstream)
        else:
            for server, uri, whose in list(self._holders):
                if (server, whose) == (upstream.name, upstream.private_to):
                    self._do(self._told(upstream, "resources/subscribe", uri))
        if not upstream.private_to:
            self._open_again(upstream.name)

    def _open_again(self, server: str) -> None:
        """A server that was started again as a whole has no connection of single clients any more."""
        waiting = {
            whose: next(iter(holders.values()))
            for (name, _, whose), holders in self._holders.items()
            if name == server and whose and self._fleet.own(server, whose) is None
        }
        for whose, client in waiting.items():
            self._do(self._reach(server, whose, client))

    async def _reach(self, server: str, whose: str, client: Client) -> None:
        try:
            upstream = await self._fleet.reach(server, client)
        except CheckreinError as error:
            self._say(f"what a client watches at {server} is not watched any more: {error}")
            return
        if upstream.private_to == whose:
            return
        # The file says otherwise now: this client's requests, and so its watches, go through another one.
        for key in [key for key in self._holders if (key[0], key[2]) == (server, whose)]:
            moved, into = self._holders.pop(key), (server, key[1], upstream.private_to)
            fresh = into not in self._holders
            self._holders.setdefault(into, {}).update(moved)
            if fresh and upstream.era == HANDSHAKE:
                await self._told(upstream, "resources/subscribe", key[1])
        if upstream.era == STATELESS:
            self._listen(upstream)

    def ended(self, upstream: Upstream) -> None:
        if (task := self._streams.pop(upstream, None)) is not None:
            task.cancel()

    def _listen(self, upstream: Upstream) -> None:
        """One stream to a stateless server, for everything anybody wants to hear from it."""
        self.ended(upstream)
        lists = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
        wanted: Message = dict.fromkeys(lists, True)
        uris = sorted(uri for server, uri, _ in self._holders if server == upstream.name)
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
