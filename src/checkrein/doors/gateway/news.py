"""What servers say by themselves, and which clients hear it: lists that change, resources, logs.

Keepers report here. A message that may concern only one client goes to that client or to nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway.clients import LEVELS, Client
from checkrein.doors.gateway.inventory import LIST_SECONDS, pages
from checkrein.doors.gateway.keeper import Keeper
from checkrein.doors.gateway.messages import HANDSHAKE, Message, RpcError, notification
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.upstream import Upstream
from checkrein.doors.gateway.wishes import Wishes
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

# How often one server may make us read its lists again.
_PAUSE = 0.25
# After a list that took this long to look at, nobody looks at the next one for many times as long.
_LONG, _REST, _LONGEST_REST = 0.05, 20.0, 60.0
# How long a client's first list waits for its own connections.
_OWN_SECONDS = 5.0
# A server, and whose connection to it; nobody's: the shared one.
_Whose = tuple[str, str]


class News:
    """The servers' side of the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.wishes = Wishes(hub)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listing: dict[_Whose, asyncio.Task[Any]] = {}
        # Connections whose lists are read once more when the reading under way is over.
        self._again: dict[_Whose, Upstream] = {}
        self._pauses: dict[_Whose, float] = {}
        # Servers whose last list kept everybody waiting: until when the next one waits itself.
        self._resting: dict[_Whose, asyncio.TimerHandle] = {}

    # -- connections come and go -----------------------------------------------------------------------

    def ready(self, _keeper: Keeper, upstream: Upstream) -> None:
        """A connection is there: what was wanted of it is wanted again, what it offers is read."""
        self._hub.watches.ready(upstream)
        self._wake(_whose(upstream))
        self.refresh(upstream)
        client = self._hub.clients.get(upstream.private_to)
        level = client.level if client is not None else "" if upstream.private_to else self._lowest_level()
        if level:
            self._do(self._set_level(upstream, level))

    def holds(self, server: str, client_id: str) -> bool:
        return self._hub.watches.holds(server, client_id)

    def ended(self, upstream: Upstream, _why: str) -> None:
        self._hub.watches.ended(upstream)
        self.wishes.ended(upstream)

    def withdrawn(self, server: str) -> None:
        """A server was stopped, removed or changed: nothing of it is offered until it is there again."""
        for key in [key for key in {*self._listing, *self._again, *self._resting} if key[0] == server]:
            self._again.pop(key, None)
            self._pauses.pop(key, None)
            self._wake(key)
            if (task := self._listing.pop(key, None)) is not None:
                task.cancel()
        self._hub.resources.withdraw(server)
        self._tell(self._hub.catalogue.withdraw(server))

    # -- lists ------------------------------------------------------------------------------------------

    def refresh(self, upstream: Upstream) -> None:
        """Read what the server offers; when that is under way, once more afterwards."""
        key = _whose(upstream)
        if key in self._listing or key in self._resting:
            self._again[key] = upstream
            return
        task = self._do(self._read(upstream))
        self._listing[key] = task
        task.add_done_callback(lambda _task: self._read_once(key, task))

    def _read_once(self, key: _Whose, task: asyncio.Task[Any]) -> None:
        if self._listing.get(key) is not task:
            return
        del self._listing[key]
        pause = self._pauses.pop(key, _PAUSE)
        if pause > _PAUSE:
            self._resting[key] = asyncio.get_running_loop().call_later(pause, self._rested, key)
        elif (upstream := self._again.pop(key, None)) is not None:
            asyncio.get_running_loop().call_later(_PAUSE, self._refresh_later, upstream)

    def _rested(self, key: _Whose) -> None:
        self._resting.pop(key, None)
        if (upstream := self._again.pop(key, None)) is not None:
            self._refresh_later(upstream)

    def _wake(self, key: _Whose) -> None:
        if (timer := self._resting.pop(key, None)) is not None:
            timer.cancel()

    def _refresh_later(self, upstream: Upstream) -> None:
        if upstream.ready:
            self.refresh(upstream)

    async def listed(self, client: str | None = None) -> None:
        """Wait for the lists that are being read; for a client, not for others' own."""
        waiting = [task for key, task in self._listing.items() if client is None or key[1] in ("", client)]
        if waiting:
            await asyncio.wait(waiting, timeout=LIST_SECONDS)

    async def open_own(self, client: Client) -> None:
        """Have the connections only this client uses: they may show it tools that nobody else sees."""
        knows = self._hub.catalogue.knows_own
        lacking = [name for name in self._hub.fleet.lacking_own(client) if not knows(name, client.id)]
        if lacking:
            opening = [self._do(self._opened(name, client)) for name in lacking]
            await asyncio.wait(opening, timeout=_OWN_SECONDS)

    async def _opened(self, server: str, client: Client) -> None:
        if client.id not in self._hub.clients and not client.flights:
            # It left meanwhile.
            return
        # Why it cannot be opened is said when something is called there.
        with contextlib.suppress(CheckreinError):
            await self._hub.fleet.reach(server, client)

    async def _read(self, upstream: Upstream) -> None:
        try:
            tools = await self._hub.inventory.tools(upstream)
            prompts = None if upstream.private_to else await pages(upstream, "prompts")
        except (RpcError, Gone, TimeoutError) as error:
            if not upstream.private_to:
                self._hub.say(f"the lists of {upstream.name} could not be read: {error}")
            return
        began = time.thread_time()
        found = self._learn(upstream, tools, prompts)
        # INVARIANT: a server that changes long lists all the time takes a small part of everybody's.
        took = time.thread_time() - began
        self._pauses[_whose(upstream)] = min(_LONGEST_REST, _REST * took) if took > _LONG else _PAUSE
        self._tell(found)

    def _learn(self, upstream: Upstream, tools: Any, prompts: Any) -> frozenset[str]:
        name, whose = upstream.name, upstream.private_to
        if not whose:
            for own in self._hub.fleet.owns(name):
                if not self._hub.catalogue.knows_own(name, own.private_to):
                    self.refresh(own)
            return self._hub.catalogue.learn(
                name, tools=tools, prompts=prompts, instructions=upstream.instructions
            )
        # Its client may have left while it was read.
        if self._hub.fleet.own(name, whose) is upstream:
            self._hub.catalogue.learn_own(name, whose, tools=tools)
        return frozenset()

    def changed(self, what: frozenset[str]) -> None:
        """Something else changed what clients see: an acceptance, a rule."""
        self._tell(what)

    def _tell(self, changed: frozenset[str]) -> None:
        for what in sorted(changed - {"instructions"}):
            for client in self._handshake():
                client.send(notification(f"notifications/{what}/list_changed"))
            self._hub.subscriptions.list_changed(what)
        for client_id in self._hub.catalogue.changed_for():
            # Everybody was told, or it concerns nobody else.
            if "tools" not in changed:
                told = self._hub.clients.get(client_id)
                if told is not None and told.era == HANDSHAKE and told.initialized:
                    told.send(notification("notifications/tools/list_changed"))
                self._hub.subscriptions.list_changed("tools", client_id)

    def _handshake(self) -> list[Client]:
        return [each for each in self._hub.clients.values() if each.era == HANDSHAKE and each.initialized]

    # -- what servers tell ------------------------------------------------------------------------------

    def asked(self, upstream: Upstream, message: Message) -> None:
        self.wishes.asked(upstream, message)

    def heard(self, upstream: Upstream, message: Message) -> None:
        method, params = message["method"], message.get("params") or {}
        if method in ("notifications/tools/list_changed", "notifications/prompts/list_changed"):
            # INVARIANT: what a server changes about itself is looked at before it is offered, or called.
            self._hub.inventory.outdated(upstream)
            self.refresh(upstream)
        elif method == "notifications/resources/list_changed":
            self._tell(frozenset({"resources"}))
        elif method == "notifications/resources/updated":
            self._updated(upstream, params)
        elif method in ("notifications/message", "notifications/elicitation/complete"):
            self._personal(upstream, method, params)
        elif method == "notifications/cancelled":
            self.wishes.taken_back(upstream, params.get("requestId"))

    def _updated(self, upstream: Upstream, params: Message) -> None:
        uri = params.get("uri")
        if not isinstance(uri, str):
            return
        known = self._hub.resources.known_as(upstream.name, uri)
        told = {**params, "uri": known}
        only = upstream.private_to
        for client in self._handshake():
            # INVARIANT: what one client's own connection says, no other client hears.
            if known in client.subscribed and only in ("", client.id):
                client.send(notification("notifications/resources/updated", told))
        self._hub.subscriptions.updated(known, told, only)

    def _personal(self, upstream: Upstream, method: str, params: Message) -> None:
        """A word that belongs to one call: to the one client it can be about, or to nobody."""
        runs = [each.errand for each in self._hub.relay.runs.values() if each.errand.upstream is upstream]
        flights = [
            flight
            for client in (*self._hub.clients.values(), *self._hub.in_passing)
            for flight in client.flights.values()
            if flight.upstream is upstream
        ]
        known = {each.client.id for each in runs} | {each.client.id for each in flights}
        told = notification(method, params)
        if len(known) == 1 and flights:
            if flights[-1].client.wants_level(params.get("level")):
                flights[-1].exchange.send(told)
        elif not known:
            holder = self.wishes.holder(upstream)
            if holder is not None and holder.era == HANDSHAKE and holder.wants_level(params.get("level")):
                holder.send(told)

    # -- what clients want to hear ----------------------------------------------------------------------

    def _lowest_level(self) -> str:
        return min((each.level for each in self._handshake() if each.level), key=LEVELS.index, default="")

    async def level(self, client: Client) -> None:
        """Have the servers send as much as the most curious client wants; each hears what it asked for."""
        lowest = self._lowest_level()
        for upstream in self._hub.fleet.used_by(client):
            await self._set_level(upstream, client.level if upstream.private_to else lowest)

    async def _set_level(self, upstream: Upstream, level: str) -> None:
        if upstream.era != HANDSHAKE or not isinstance(upstream.capabilities.get("logging"), dict):
            return
        try:
            await upstream.request("logging/setLevel", {"level": level}, seconds=LIST_SECONDS)
        except (RpcError, Gone, TimeoutError) as error:
            self._hub.say(f"{upstream.name} took no log level: {error}")

    def roots_changed(self, client: Client) -> None:
        """Its own connections hear that a client's roots are others now."""
        for upstream in self._hub.fleet.used_by(client):
            if upstream.private_to and upstream.era == HANDSHAKE:
                upstream.notify("notifications/roots/list_changed")

    def _do(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        await self.wishes.close()
        for name in list(self._resting):
            self._wake(name)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _whose(upstream: Upstream) -> _Whose:
    return upstream.name, upstream.private_to
