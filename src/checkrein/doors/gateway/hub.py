"""Where clients and servers meet: every message of a client comes in here, and goes on to where it belongs.

Fronts call `handle` and `hear`; keepers report what servers say. Tool calls go to `calls`, where they are
judged; nothing else here decides anything.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

from checkrein import __version__
from checkrein.doors.gateway.calls import Calls
from checkrein.doors.gateway.catalogue import Catalogue
from checkrein.doors.gateway.clients import (
    DEFAULT_PROJECT,
    LEVELS,
    MOST_FLIGHTS,
    Client,
    Exchange,
    Flight,
    Send,
    Visit,
    read_envelope,
)
from checkrein.doors.gateway.fleet import Fleet
from checkrein.doors.gateway.inventory import Inventory
from checkrein.doors.gateway.messages import (
    HANDSHAKE_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_KEY,
    STATELESS,
    STATELESS_VERSIONS,
    Message,
    RpcError,
    failure,
    is_response,
    meta_of,
    response,
)
from checkrein.doors.gateway.news import News
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.plain_requests import SETTLE_SECONDS, PlainRequests
from checkrein.doors.gateway.relay import Relay, envelope, without_kind
from checkrein.doors.gateway.resources import Resources
from checkrein.doors.gateway.scripts.desk import Desk
from checkrein.doors.gateway.sealing import ForeignStateError, Seal, State
from checkrein.doors.gateway.standing import always_denied
from checkrein.doors.gateway.subscriptions import Subscriptions
from checkrein.doors.gateway.visits import Visits
from checkrein.doors.gateway.watches import Watches
from checkrein.errors import CheckreinError
from checkrein.pipeline import Pipeline
from checkrein.store.facts import Facts

_PASSING = "stateless:"
_LISTS = {"resources/list", "resources/templates/list", "prompts/list", "tools/list"}
_CACHED = {*_LISTS, "resources/read", "server/discover"}
Handler = Callable[[Client, Flight, Message], Awaitable[Any]]


class Hub:
    """Everything the gateway knows while it runs; one loop, one thread."""

    def __init__(
        self, pipeline: Pipeline, *, seal: Callable[[], Seal], user: str, say: Callable[[str], None]
    ) -> None:
        self.pipeline, self.user, self.say = pipeline, user, say
        self.clients: dict[str, Client] = {}
        # Senders of stateless requests that are under way.
        self.in_passing: set[Client] = set()
        self.visits = Visits(pipeline)
        self.catalogue = Catalogue(pipeline.store, pipeline.ledger, pipeline.clock)
        limits = pipeline.policies.of("", "gateway").settings.gateway
        facts = Facts(pipeline.store, pipeline.clock)
        self.subscriptions = Subscriptions()
        self.relay = Relay(seal, pipeline.clock)
        self.inventory = Inventory()
        self.news = News(self)
        self.fleet = Fleet(self.news, facts, limits, say, self.news.withdrawn)
        self.watches = Watches(self.fleet, say)
        self.resources = Resources(self.fleet, envelope)
        self.calls = Calls(
            pipeline, self.catalogue, self.fleet, self.inventory, self.relay, seal, self.visits, user, say
        )
        self.seal = seal
        self.scripts = Desk(self)
        self._handshake, self._stateless = self._handlers(PlainRequests(self))
        self._shown: tuple[Any, list[Message], list[Message]] = (None, [], [])
        self._told: list[Message] | None = None

    def _handlers(self, plain: PlainRequests) -> tuple[dict[str, Handler], dict[str, Handler]]:
        """Who handles which method, in either era."""
        both: dict[str, Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": plain.list_prompts,
            "prompts/get": plain.get_prompt,
            "resources/list": plain.list_resources,
            "resources/templates/list": plain.list_templates,
            "resources/read": plain.read_resource,
            "completion/complete": plain.complete,
        }
        handshake: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": plain.subscribe,
            "resources/unsubscribe": plain.unsubscribe,
        }
        stateless: dict[str, Handler] = {
            "server/discover": self._discover,
            "subscriptions/listen": plain.listen,
        }
        return {**both, **handshake}, {**both, **stateless}

    # -- who is there -----------------------------------------------------------------------------------

    def meet(self, *, era: str, agent: str, label: str, owner: str, send: Send, reader: str = "") -> Client:
        """A stdio line, or a handshake session over HTTP."""
        client = Client(era=era, agent=agent, label=label, owner=owner, visit=Visit(""), send=send)
        client.visit = self.visits.open(client.id, reader or owner)
        self.clients[client.id] = client
        return client

    def passing(self, *, agent: str, label: str, owner: str, meta: Message) -> Client:
        """The sender of one stateless request."""
        client = Client(
            era=STATELESS,
            agent=agent,
            label=label,
            owner=owner,
            visit=self.visits.of_owner(owner),
            send=_unheard,
        )
        # What is kept for it between requests is kept for its owner.
        client.id = f"{_PASSING}{owner}"
        read_envelope(client, {"_meta": meta}, STATELESS_VERSIONS)
        return client

    def leave(self, client: Client) -> None:
        """A client is gone: what was its alone ends, what it asked for is given up."""
        if self.clients.pop(client.id, None) is None:
            return
        client.gone()
        self.visits.close(client.visit)
        self.watches.drop(client)
        self.catalogue.forget_client(client.id)
        if client.era == STATELESS:
            self.relay.forget(client.owner)
        self.fleet.let_go(client.id)

    def turn_out(self, owner: str) -> int:
        """Whoever is responsible for these clients may not come in any more: how many were there."""
        theirs = [each for each in self.clients.values() if each.owner == owner]
        for each in theirs:
            self.leave(each)
        for passing in [each for each in self.in_passing if each.owner == owner]:
            passing.gone()
        self.relay.forget(owner)
        self.fleet.let_go(f"{_PASSING}{owner}")
        self.catalogue.forget_client(f"{_PASSING}{owner}")
        self.visits.turn_out(owner)
        self.scripts.turn_out(owner)
        return len(theirs)

    async def close(self) -> None:
        """Everybody leaves; no server's process and no task of ours is left."""
        self.subscriptions.end()
        self.visits.end()
        for client in list(self.clients.values()):
            self.leave(client)
        await self.scripts.close()
        await self.relay.close()
        await self.news.close()
        await self.inventory.close()
        await self.watches.close()
        await self.fleet.close()
        await self.calls.outcomes.close()

    def input_schema(self, name: str) -> Message | None:
        found = self.catalogue.tool(name)
        schema = found.definition.get("inputSchema") if found is not None else self.scripts.schema(name)
        return schema if isinstance(schema, dict) else None

    # -- what clients say -------------------------------------------------------------------------------

    async def handle(self, client: Client, message: Message, exchange: Exchange) -> Message | None:
        """The response to a request; nothing when its client took it back."""
        number, method, params = message["id"], message["method"], message.get("params", {})
        if number in client.flights:
            return failure(number, RpcError(INVALID_REQUEST, "A request with this id is still under way."))
        if len(client.flights) >= MOST_FLIGHTS:
            return failure(
                number, RpcError(INVALID_REQUEST, f"{MOST_FLIGHTS} requests are under way already.")
            )
        flight = Flight(client, number, exchange)
        client.flights[number] = flight
        if client.id not in self.clients:
            self.in_passing.add(client)
        try:
            return response(number, await self._result(flight, method, params))
        except RpcError as error:
            return failure(number, error)
        except asyncio.CancelledError:
            if not flight.cancelled:
                raise
            if flight.task is not None:
                flight.task.uncancel()
            return None
        except (CheckreinError, Gone, TimeoutError) as error:
            return failure(number, RpcError(INTERNAL_ERROR, str(error) or "It took too long."))
        except Exception as error:  # noqa: BLE001 - one bad request ends itself, not its client
            self.say(f"a request failed: {method[:80]}: {type(error).__name__}: {error}")
            return failure(number, RpcError(INTERNAL_ERROR, "Checkrein could not handle this request."))
        finally:
            client.flights.pop(number, None)
            self.in_passing.discard(client)

    async def _result(self, flight: Flight, method: str, params: Message) -> Any:
        client = flight.client
        if client.era == STATELESS:
            # What one request says about its sender holds for that request.
            client = flight.client = copy.copy(client)
            read_envelope(client, params, STATELESS_VERSIONS)
            handler = self._stateless.get(method)
        else:
            handler = self._handshake.get(method)
            if not client.initialized and method not in ("initialize", "ping"):
                raise RpcError(INVALID_REQUEST, "A session begins with initialize.")
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method[:80]!r} here.")
        result = await handler(client, flight, params)
        return stamped(method, result) if client.era == STATELESS else without_kind(result)

    def hear(self, client: Client, message: Message) -> None:
        """A response or a notification; neither is answered."""
        if is_response(message):
            client.answered(message)
            return
        method, params = message["method"], message.get("params", {})
        if method == "notifications/cancelled":
            number = params.get("requestId")
            flight = client.flights.get(number) if isinstance(number, str | int) else None
            if flight is not None:
                flight.cancel()
        elif method == "notifications/roots/list_changed":
            client.project = None
            self.news.roots_changed(client)

    # -- beginning --------------------------------------------------------------------------------------

    async def _initialize(self, client: Client, _flight: Flight, params: Message) -> Message:
        if client.initialized:
            raise RpcError(INVALID_REQUEST, "This session is initialized already.")
        asked, capabilities, info = (
            params.get("protocolVersion"),
            params.get("capabilities"),
            params.get("clientInfo"),
        )
        if not isinstance(asked, str) or not isinstance(capabilities, dict):
            raise RpcError(INVALID_PARAMS, "initialize names a protocol version and capabilities.")
        client.version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        client.capabilities = capabilities
        client.info = info if isinstance(info, dict) else {}
        client.initialized = True
        client.agent = client.agent or str(client.info.get("name", ""))[:80]
        await self.fleet.settled(SETTLE_SECONDS)
        await self.news.listed(client.id)
        made = {
            "protocolVersion": client.version,
            "capabilities": self.fleet.capabilities(stateless=False),
            "serverInfo": _INFO,
        }
        told = self.catalogue.instructions()
        return {**made, "instructions": told} if told else made

    async def _discover(self, client: Client, _flight: Flight, _params: Message) -> Message:
        await self.fleet.settled(SETTLE_SECONDS)
        await self.news.listed(client.id)
        made: Message = {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": self.fleet.capabilities(stateless=True),
        }
        told = self.catalogue.instructions()
        return {**made, "instructions": told} if told else made

    async def _ping(self, _client: Client, _flight: Flight, _params: Message) -> Message:
        return {}

    async def _set_level(self, client: Client, _flight: Flight, params: Message) -> Message:
        level = params.get("level")
        if level not in LEVELS:
            raise RpcError(INVALID_PARAMS, f"A level is one of {', '.join(LEVELS)}.")
        client.level = str(level)
        await self.news.level(client)
        return {}

    # -- tools ------------------------------------------------------------------------------------------

    async def _list_tools(self, client: Client, _flight: Flight, params: Message) -> Message:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")
        await self.fleet.settled(SETTLE_SECONDS)
        await self.news.open_own(client)
        await self.news.listed(client.id)
        own = self.catalogue.own_tools(client.id)
        more = [each for each in own if not self._never(each["name"], client.id)]
        return {"tools": [*self.visible_tools(), *more] if more else self.visible_tools()}

    def visible_tools(self) -> list[Message]:
        """What is offered, without what policy refuses whatever the arguments."""
        force = self.pipeline.policies.of(DEFAULT_PROJECT, "gateway")
        listed = self.catalogue.tools()
        if self._shown[0] is not force or self._shown[1] is not listed:
            found = [each for each in listed if not self._never(each["name"])]
            self._shown = force, listed, [*found, *self.scripts.listed()]
        return self._shown[2]

    def look_at_rules(self) -> None:
        """A rule may take a tool out of the list, or put it back: clients hear of it."""
        before, now = self._told, self.visible_tools()
        self._told = now
        if before is not None and before is not now and before != now:
            self.news.changed(frozenset({"tools"}))

    def _never(self, name: str, client: str = "") -> bool:
        offered = self.catalogue.tool(name, client)
        return offered is None or always_denied(self.pipeline, offered, DEFAULT_PROJECT)

    def _call_tool(self, client: Client, flight: Flight, params: Message) -> Awaitable[Any]:
        way = self.scripts.call if self.scripts.takes(params.get("name")) else self.calls.call
        return way(client, flight, params)

    async def taken(self, client: Client, method: str, params: Message, bound: str) -> State | None:
        """What the client carried for us; raises where it is not its own, and puts that on the record."""
        if client.era != STATELESS or params.get("requestState") is None:
            return None
        state, now = None, self.pipeline.clock()
        try:
            state = self.seal().read(params["requestState"], owner=client.owner, digest=bound, now=now)
            await self.seal().use(state, now=now)
            return state
        except asyncio.CancelledError:
            # It cannot be brought again, so nobody comes back for what it belongs to.
            if state is not None:
                self.relay.drop(state)
            raise
        except ForeignStateError as error:
            data = {"request": method, "reason": error.why, "client": client.label}
            await asyncio.to_thread(self.pipeline.note, "request_refused", data)
            raise


def stamped(method: str, result: Any) -> Any:
    """A result as the stateless era wants it: what kind it is, and how long it may be kept."""
    if not isinstance(result, dict):
        return result
    meta = {**meta_of(result), SERVER_KEY: _INFO}
    made = {"resultType": "complete", **result, "_meta": meta}
    if method in _CACHED and made["resultType"] == "complete":
        made.setdefault("ttlMs", 0)
        made.setdefault("cacheScope", "private")
    return made


def _unheard(_message: Message) -> None:
    """A stateless client has no line of its own between requests."""


_INFO: Message = {"name": "checkrein", "title": "Checkrein", "version": __version__}
