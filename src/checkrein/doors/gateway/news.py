"""What servers say by themselves, and which clients hear it: questions, lists that change, resources, logs.

Keepers report here. A message that may concern only one client goes to that client or to nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway.clients import LEVELS, Client, Flight
from checkrein.doors.gateway.keeper import Keeper
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    STATELESS,
    Message,
    RpcError,
    failure,
    notification,
    response,
)
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.prompts import foreign
from checkrein.doors.gateway.relay import CAPABILITY_OF, Run, pass_back
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

_LIST_SECONDS, _MOST_PAGES, _MOST_LISTED = 30.0, 100, 2_000
_KINDS = {"tools": "tools/list", "prompts": "prompts/list"}
# How often one server may make us read its lists again.
_PAUSE = 0.25


class News:
    """The servers' side of the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listing: dict[str, asyncio.Task[Any]] = {}
        self._again: set[str] = set()
        # What is subscribed at a connection, and by how many.
        self._counts: dict[tuple[str, str], int] = {}
        self._listening: dict[Upstream, asyncio.Task[Any]] = {}

    # -- connections come and go -----------------------------------------------------------------------

    def ready(self, _keeper: Keeper, upstream: Upstream) -> None:
        """A shared connection is there: what it offers is read, what was wanted of it is wanted again."""
        self.refresh(upstream)
        self._do(self._resume(upstream))

    def ended(self, upstream: Upstream, _why: str) -> None:
        if (task := self._listening.pop(upstream, None)) is not None:
            task.cancel()

    def withdrawn(self, server: str) -> None:
        """A server was stopped, removed or changed: nothing of it is offered until it is there again."""
        if (task := self._listing.pop(server, None)) is not None:
            task.cancel()
        self._hub.resources.withdraw(server)
        self._tell(self._hub.catalogue.withdraw(server))

    # -- lists ------------------------------------------------------------------------------------------

    def refresh(self, upstream: Upstream) -> None:
        """Read what the server offers; when that is under way, once more afterwards."""
        if upstream.name in self._listing:
            self._again.add(upstream.name)
            return
        task = self._do(self._read(upstream))
        self._listing[upstream.name] = task
        task.add_done_callback(lambda _task: self._read_once(upstream, task))

    def _read_once(self, upstream: Upstream, task: asyncio.Task[Any]) -> None:
        if self._listing.get(upstream.name) is not task:
            return
        del self._listing[upstream.name]
        if upstream.name in self._again and upstream.ready:
            self._again.discard(upstream.name)
            asyncio.get_running_loop().call_later(_PAUSE, self._refresh_later, upstream)

    def _refresh_later(self, upstream: Upstream) -> None:
        if upstream.ready:
            self.refresh(upstream)

    async def listed(self) -> None:
        """Wait for the lists that are being read."""
        if self._listing:
            await asyncio.wait(list(self._listing.values()), timeout=_LIST_SECONDS)

    async def _read(self, upstream: Upstream) -> None:
        try:
            found = {kind: await pages(upstream, kind) for kind in _KINDS}
        except (RpcError, Gone, TimeoutError) as error:
            self._hub.say(f"the lists of {upstream.name} could not be read: {error}")
            return
        changed = self._hub.catalogue.learn(
            upstream.name,
            tools=found["tools"],
            prompts=found["prompts"],
            instructions=upstream.instructions,
        )
        self._tell(changed)

    def changed(self, what: frozenset[str]) -> None:
        """Something else changed what clients see: an acceptance, a rule."""
        self._tell(what)

    def _tell(self, changed: frozenset[str]) -> None:
        for what in sorted(changed - {"instructions"}):
            for client in self._handshake():
                client.send(notification(f"notifications/{what}/list_changed"))
            self._hub.subscriptions.list_changed(what)

    def _handshake(self) -> list[Client]:
        return [each for each in self._hub.clients.values() if each.era == HANDSHAKE and each.initialized]

    # -- what servers tell ------------------------------------------------------------------------------

    def heard(self, upstream: Upstream, message: Message) -> None:
        method, params = message["method"], message.get("params") or {}
        if method in ("notifications/tools/list_changed", "notifications/prompts/list_changed"):
            # INVARIANT: what a server changes about itself is looked at before it is offered.
            self.refresh(upstream)
        elif method == "notifications/resources/list_changed":
            self._tell(frozenset({"resources"}))
        elif method == "notifications/resources/updated":
            self._updated(upstream, params)
        elif method in ("notifications/message", "notifications/elicitation/complete"):
            self._personal(upstream, method, params)

    def _updated(self, upstream: Upstream, params: Message) -> None:
        uri = params.get("uri")
        if not isinstance(uri, str):
            return
        known = self._hub.resources.known_as(upstream.name, uri)
        told = {**params, "uri": known}
        for client in self._handshake():
            if known in client.subscribed:
                client.send(notification("notifications/resources/updated", told))
        self._hub.subscriptions.updated(known, told)

    def _personal(self, upstream: Upstream, method: str, params: Message) -> None:
        """A word that belongs to one call: to the one client it can be about, or to nobody."""
        flights = [
            (client, flight)
            for client in (*self._hub.clients.values(), *self._hub.in_passing)
            for flight in client.flights.values()
            if flight.upstream is upstream
        ]
        clients = {id(client): client for client, _ in flights}
        told = notification(method, params)
        if len(clients) == 1:
            client, flight = flights[-1]
            if client.wants_level(params.get("level")) and (client.era == HANDSHAKE or client.level):
                flight.exchange.send(told)
        elif not clients:
            holder = self._holder(upstream)
            if holder is not None and holder.wants_level(params.get("level")):
                holder.send(told)

    def _holder(self, upstream: Upstream) -> Client | None:
        """The client a connection belongs to: its own, or the only one that ever used it."""
        only = upstream.private_to or (next(iter(upstream.users)) if len(upstream.users) == 1 else "")
        return self._hub.clients.get(only)

    # -- what servers ask -------------------------------------------------------------------------------

    def asked(self, upstream: Upstream, message: Message) -> None:
        self._do(self._answer(upstream, message))

    async def _answer(self, upstream: Upstream, message: Message) -> None:
        number = message["id"]
        try:
            result = await self._passed_back(upstream, message["method"], message.get("params") or {})
            upstream.respond(response(number, result))
        except RpcError as error:
            upstream.respond(failure(number, error))
        except asyncio.CancelledError:
            upstream.respond(failure(number, RpcError(INTERNAL_ERROR, "The client is gone.")))

    async def _passed_back(self, upstream: Upstream, method: str, params: Message) -> Any:
        capability = CAPABILITY_OF.get(method)
        if capability is None:
            raise RpcError(METHOD_NOT_FOUND, f"Clients are not asked {method[:80]!r} through Checkrein.")
        run = self._run_of(upstream)
        client = self._holder(upstream) if run is None else None
        self._hub.keeper_of(upstream).needs(capability)
        if run is not None:
            return await run.want(method, foreign(upstream.name, method, params))
        if client is not None:
            return await pass_back(client, _latest(client, upstream), upstream.name, method, params)
        if capability == "roots":
            return {"roots": []}
        # INVARIANT: a question that could be another client's reaches nobody.
        text = "Several clients share this server, so nobody can tell whom it asks. Try the call again."
        raise RpcError(INTERNAL_ERROR, text)

    def _run_of(self, upstream: Upstream) -> Run | None:
        """The one request of a stateless client that the server can be asking about."""
        holder = upstream.private_to or (next(iter(upstream.users)) if len(upstream.users) == 1 else "")
        runs = [each for each in self._hub.relay.runs.values() if each.errand.upstream is upstream]
        return runs[0] if len(runs) == 1 and holder == runs[0].errand.client.id else None

    # -- what clients want to hear ----------------------------------------------------------------------

    async def level(self, client: Client) -> None:
        """Have the servers send as much as the most curious client wants; each hears what it asked for."""
        levels = [each.level for each in self._handshake() if each.level]
        lowest = min(levels, key=LEVELS.index) if levels else client.level
        for upstream in self._hub.fleet.ready():
            if upstream.era == HANDSHAKE and isinstance(upstream.capabilities.get("logging"), dict):
                try:
                    await upstream.request("logging/setLevel", {"level": lowest}, seconds=_LIST_SECONDS)
                except (RpcError, Gone, TimeoutError) as error:
                    self._hub.say(f"{upstream.name} took no log level: {error}")

    async def subscribe(self, client: Client, server: str, uri: str) -> None:
        upstream = await self._hub.fleet.reach(server, client)
        key = (server, uri)
        self._counts[key] = self._counts.get(key, 0) + 1
        if upstream.era == STATELESS:
            self._listen(upstream)
            return
        if self._counts[key] == 1 or upstream.private_to:
            await upstream.request("resources/subscribe", {"uri": uri}, seconds=_LIST_SECONDS)

    async def unsubscribe(self, client: Client, server: str, uri: str) -> None:
        key = (server, uri)
        left = self._counts.get(key, 0) - 1
        if left > 0:
            self._counts[key] = left
            return
        self._counts.pop(key, None)
        upstream = await self._hub.fleet.reach(server, client)
        if upstream.era == HANDSHAKE:
            await upstream.request("resources/unsubscribe", {"uri": uri}, seconds=_LIST_SECONDS)

    async def _resume(self, upstream: Upstream) -> None:
        if upstream.era == STATELESS:
            self._listen(upstream)
            return
        for server, uri in [key for key in self._counts if key[0] == upstream.name]:
            try:
                await upstream.request("resources/subscribe", {"uri": uri}, seconds=_LIST_SECONDS)
            except (RpcError, Gone, TimeoutError) as error:
                self._hub.say(f"{server} took no subscription: {error}")

    def _listen(self, upstream: Upstream) -> None:
        """One stream to a stateless server, for everything anybody wants to hear from it."""
        if (task := self._listening.pop(upstream, None)) is not None:
            task.cancel()
        wanted: Message = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
        }
        uris = sorted(uri for server, uri in self._counts if server == upstream.name)
        if uris:
            wanted["resourceSubscriptions"] = uris
        self._listening[upstream] = self._do(self._stream(upstream, wanted))

    async def _stream(self, upstream: Upstream, wanted: Message) -> None:
        try:
            await upstream.request("subscriptions/listen", {"notifications": wanted}, seconds=None)
        except (RpcError, Gone, TimeoutError):
            # Servers need not offer it; their lists are read whenever they start.
            return

    def roots_changed(self, client: Client) -> None:
        """Its own connections hear that a client's roots are others now."""
        for name in self._hub.fleet.names:
            try:
                upstream = self._hub.fleet.keeper(name).at_hand(client)
            except CheckreinError:
                continue
            if upstream is not None and upstream.private_to == client.id and upstream.era == HANDSHAKE:
                upstream.notify("notifications/roots/list_changed")

    def _do(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _latest(client: Client, upstream: Upstream) -> Flight | None:
    return next((each for each in reversed(client.flights.values()) if each.upstream is upstream), None)


async def pages(upstream: Upstream, kind: str) -> list[Any]:
    """Everything a server lists of a kind, within bounds."""
    if not isinstance(upstream.capabilities.get(kind), dict):
        return []
    rows: list[Any] = []
    cursor: Any = None
    for _ in range(_MOST_PAGES):
        params: Message = {} if cursor is None else {"cursor": cursor}
        page = await upstream.request(_KINDS[kind], params, seconds=_LIST_SECONDS)
        found = page.get(kind) if isinstance(page, dict) else None
        rows += found if isinstance(found, list) else []
        cursor = page.get("nextCursor") if isinstance(page, dict) else None
        if not isinstance(cursor, str) or not cursor or len(rows) > _MOST_LISTED:
            break
    return rows
