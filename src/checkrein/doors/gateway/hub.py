"""Where clients and servers meet: every message of a client comes in here, and goes on to where it belongs.

Fronts call `handle` and `hear`; keepers report what servers say. Tool calls go to `calls`, where they are
judged; nothing else here decides anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from checkrein import __version__
from checkrein.call import digest
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
from checkrein.doors.gateway.keeper import Keeper
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
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
from checkrein.doors.gateway.relay import Errand, Relay, envelope, onward
from checkrein.doors.gateway.resources import Resources
from checkrein.doors.gateway.sealing import ForeignStateError, Seal
from checkrein.doors.gateway.standing import always_denied
from checkrein.doors.gateway.subscriptions import Subscriptions
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError
from checkrein.pipeline import Pipeline
from checkrein.settings.project import project_of
from checkrein.store.facts import Facts

# Requests of one stateless client with no longer pause than this belong to one session.
SESSION_PAUSE = 3_600.0
_ROOTS_SECONDS, _SETTLE_SECONDS = 2.0, 15.0
_MOST_VISITS = 4_096
_LISTS = {"resources/list", "resources/templates/list", "prompts/list", "tools/list"}
_CACHED = {*_LISTS, "resources/read", "server/discover"}
Handler = Callable[["Hub", Client, Flight, Message], Awaitable[Any]]


class Hub:
    """Everything the gateway knows while it runs; one loop, one thread."""

    def __init__(
        self, pipeline: Pipeline, *, seal: Callable[[], Seal], user: str, say: Callable[[str], None]
    ) -> None:
        self.pipeline, self.user, self.say = pipeline, user, say
        self.clients: dict[str, Client] = {}
        # Senders of stateless requests that are under way.
        self.in_passing: set[Client] = set()
        self._visits: dict[str, Visit] = {}
        self.catalogue = Catalogue(pipeline.store, pipeline.ledger, pipeline.clock)
        limits = pipeline.policies.of("", "gateway").settings.gateway
        facts = Facts(pipeline.store, pipeline.clock)
        self.subscriptions = Subscriptions()
        self.relay = Relay(seal, pipeline.clock)
        self.news = News(self)
        self.fleet = Fleet(self.news, facts, limits, say, self.news.withdrawn)
        self.resources = Resources(self.fleet, envelope)
        self.calls = Calls(pipeline, self.catalogue, self.fleet, self.relay, seal, user, say)
        self._seal = seal
        self._shown: tuple[Any, list[Message], list[Message]] = (None, [], [])

    # -- who is there -----------------------------------------------------------------------------------

    def meet(self, *, era: str, agent: str, label: str, owner: str, send: Send) -> Client:
        """A stdio line, or a handshake session over HTTP."""
        client = Client(era=era, agent=agent, label=label, owner=owner, visit=Visit(""), send=send)
        client.visit.session = f"mcp-{digest([client.id])[:16]}"
        self.clients[client.id] = client
        return client

    def passing(self, *, agent: str, label: str, owner: str, meta: Message) -> Client:
        """The sender of one stateless request."""
        client = Client(
            era=STATELESS, agent=agent, label=label, owner=owner, visit=self._visit(owner), send=_unheard
        )
        # What is kept for it between requests is kept for its owner.
        client.id = f"stateless:{owner}"
        read_envelope(client, {"_meta": meta}, STATELESS_VERSIONS)
        return client

    def _visit(self, owner: str) -> Visit:
        now = time.monotonic()
        found = self._visits.get(owner)
        if found is None or now - found.last_used > SESSION_PAUSE:
            while len(self._visits) >= _MOST_VISITS:
                del self._visits[next(iter(self._visits))]
            found = self._visits[owner] = Visit(f"mcp-{digest([owner, self.pipeline.clock()])[:16]}")
        found.last_used = now
        return found

    def leave(self, client: Client) -> None:
        """A client is gone: what was its alone ends, what it asked for is given up."""
        if self.clients.pop(client.id, None) is None:
            return
        client.gone()
        self.fleet.let_go(client.id)

    def input_schema(self, name: str) -> Message | None:
        found = self.catalogue.tool(name)
        schema = found.definition.get("inputSchema") if found is not None else None
        return schema if isinstance(schema, dict) else None

    # -- what clients say -------------------------------------------------------------------------------

    async def handle(self, client: Client, message: Message, exchange: Exchange) -> Message | None:
        """The response to a request; nothing when its client took it back."""
        number, method, params = message["id"], message["method"], message.get("params", {})
        if number in client.flights and client.era == HANDSHAKE:
            return failure(number, RpcError(INVALID_REQUEST, "A request with this id is still under way."))
        if len(client.flights) >= MOST_FLIGHTS:
            return failure(
                number, RpcError(INVALID_REQUEST, f"{MOST_FLIGHTS} requests are under way already.")
            )
        flight = Flight(number, exchange)
        client.flights[number] = flight
        if client.id not in self.clients:
            self.in_passing.add(client)
        try:
            return response(number, await self._result(client, flight, method, params))
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

    async def _result(self, client: Client, flight: Flight, method: str, params: Message) -> Any:
        if client.era == STATELESS:
            read_envelope(client, params, STATELESS_VERSIONS)
            handler = _STATELESS.get(method)
        else:
            handler = _HANDSHAKE.get(method)
            if not client.initialized and method not in ("initialize", "ping"):
                raise RpcError(INVALID_REQUEST, "A session begins with initialize.")
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method[:80]!r} here.")
        result = await handler(self, client, flight, params)
        return stamped(method, result) if client.era == STATELESS else plain(result)

    def hear(self, client: Client, message: Message) -> None:
        """A response or a notification; neither is answered."""
        if is_response(message):
            client.answered(message)
            return
        method, params = message["method"], message.get("params", {})
        if method == "notifications/cancelled":
            flight = client.flights.get(_number(params.get("requestId")))
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
        await self.fleet.settled(_SETTLE_SECONDS)
        await self.news.listed()
        made = {
            "protocolVersion": client.version,
            "capabilities": self._capabilities(stateless=False),
            "serverInfo": _INFO,
        }
        told = self.catalogue.instructions()
        return {**made, "instructions": told} if told else made

    async def _discover(self, client: Client, _flight: Flight, _params: Message) -> Message:
        await self.fleet.settled(_SETTLE_SECONDS)
        await self.news.listed()
        made: Message = {
            "supportedVersions": list(STATELESS_VERSIONS),
            "capabilities": self._capabilities(stateless=client.era == STATELESS),
        }
        told = self.catalogue.instructions()
        return {**made, "instructions": told} if told else made

    def _capabilities(self, *, stateless: bool) -> Message:
        """What the servers behind us can do, together; nothing that none of them can."""
        behind = [each.capabilities for each in self.fleet.ready()]
        made: Message = {"tools": {"listChanged": True}}
        if any(isinstance(each.get("prompts"), dict) for each in behind):
            made["prompts"] = {"listChanged": True}
        resources = [each["resources"] for each in behind if isinstance(each.get("resources"), dict)]
        if resources:
            made["resources"] = {
                "listChanged": True,
                "subscribe": any(each.get("subscribe") for each in resources),
            }
        if any(isinstance(each.get("completions"), dict) for each in behind):
            made["completions"] = {}
        if any(isinstance(each.get("logging"), dict) for each in behind) and not stateless:
            made["logging"] = {}
        return made

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

    async def _list_tools(self, _client: Client, _flight: Flight, params: Message) -> Message:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")
        await self.fleet.settled(_SETTLE_SECONDS)
        await self.news.listed()
        return {"tools": self.visible_tools()}

    def visible_tools(self) -> list[Message]:
        """What is offered, without what policy refuses whatever the arguments."""
        force = self.pipeline.policies.of(DEFAULT_PROJECT, "gateway")
        listed = self.catalogue.tools()
        if self._shown[0] is not force or self._shown[1] is not listed:
            found = [each for each in listed if not self._never(each["name"])]
            self._shown = force, listed, found
        return self._shown[2]

    def _never(self, name: str) -> bool:
        offered = self.catalogue.tool(name)
        return offered is None or always_denied(self.pipeline, offered, DEFAULT_PROJECT)

    async def _call_tool(self, client: Client, flight: Flight, params: Message) -> Any:
        return await self.calls.call(client, flight, params, await self.project(client))

    # -- prompts, resources, completions: passed on -----------------------------------------------------

    async def _list_prompts(self, _client: Client, _flight: Flight, params: Message) -> Message:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")
        await self.fleet.settled(_SETTLE_SECONDS)
        await self.news.listed()
        return {"prompts": self.catalogue.prompts()}

    async def _get_prompt(self, client: Client, flight: Flight, params: Message) -> Any:
        server, name = self._prompt(params.get("name"))
        return await self._carried(client, flight, server, "prompts/get", {**params, "name": name})

    def _prompt(self, offered: Any) -> tuple[str, str]:
        found = self.catalogue.prompt(offered) if isinstance(offered, str) else None
        if found is None:
            raise RpcError(INVALID_PARAMS, "There is no such prompt.")
        return found

    async def _list_resources(self, client: Client, _flight: Flight, params: Message) -> Message:
        await self.fleet.settled(_SETTLE_SECONDS)
        return await self.resources.page(client, "resources/list", params)

    async def _list_templates(self, client: Client, _flight: Flight, params: Message) -> Message:
        await self.fleet.settled(_SETTLE_SECONDS)
        return await self.resources.page(client, "resources/templates/list", params)

    async def _read_resource(self, client: Client, flight: Flight, params: Message) -> Any:
        server, uri = await self.resources.whose(client, params.get("uri"))
        result = await self._carried(client, flight, server, "resources/read", {**params, "uri": uri})
        if not self.fleet.spec(server).trusted:
            client.visit.tainted_by = server
        return result

    async def _subscribe(self, client: Client, _flight: Flight, params: Message) -> Message:
        server, uri = await self.resources.whose(client, params.get("uri"))
        await self.news.subscribe(client, server, uri)
        client.subscribed.add(str(params["uri"]))
        return {}

    async def _unsubscribe(self, client: Client, _flight: Flight, params: Message) -> Message:
        server, uri = await self.resources.whose(client, params.get("uri"))
        client.subscribed.discard(str(params["uri"]))
        await self.news.unsubscribe(client, server, uri)
        return {}

    async def _complete(self, client: Client, flight: Flight, params: Message) -> Any:
        ref = params.get("ref")
        given = ref if isinstance(ref, dict) else {}
        if given.get("type") == "ref/prompt":
            server, name = self._prompt(given.get("name"))
            ref = {**given, "name": name}
        else:
            found = self.resources.whose_template(given.get("uri"))
            server = found or (await self.resources.whose(client, given.get("uri")))[0]
        return await self._carried(client, flight, server, "completion/complete", {**params, "ref": ref})

    async def _carried(
        self, client: Client, flight: Flight, server: str, method: str, params: Message
    ) -> Any:
        """A request passed on as it is; only its way back across the eras is ours."""
        bound = digest(
            [method, server, {k: v for k, v in params.items() if k in ("name", "uri", "arguments", "ref")}]
        )
        upstream = await self.fleet.reach(server, client)
        seconds = self.fleet.spec(server).timeout or self._call_seconds()
        errand = Errand(client, flight, upstream, method, onward(params, upstream), seconds, bound)
        if client.era == STATELESS and params.get("requestState") is not None:
            return await self._went_on(errand, params)
        return await self.relay.carry(errand, _as_it_is)

    async def _went_on(self, errand: Errand, params: Message) -> Any:
        try:
            state = self._seal().take(
                params["requestState"],
                owner=errand.client.owner,
                digest=errand.digest,
                now=self.pipeline.clock(),
            )
        except ForeignStateError as error:
            data = {"request": errand.method, "reason": error.why, "client": errand.client.label}
            await asyncio.to_thread(self.pipeline.note, "request_refused", data)
            raise
        found = params.get("inputResponses")
        responses = found if isinstance(found, dict) else {}
        if state.kind == "run":
            return await self.relay.go_on(errand, state, responses)
        carried = {"requestState": state.carried} if state.carried else {}
        errand.params = {**errand.params, "inputResponses": responses, **carried}
        return await self.relay.carry(errand, _as_it_is)

    def _call_seconds(self) -> float:
        return self.pipeline.policies.of("", "gateway").settings.gateway.call_seconds

    async def _listen(self, client: Client, flight: Flight, params: Message) -> Message:
        async def wants(uri: str) -> None:
            with contextlib.suppress(RpcError, CheckreinError, Gone):
                server, own = await self.resources.whose(client, uri)
                await self.news.subscribe(client, server, own)

        return await self.subscriptions.listen(client, flight.id, params, flight.exchange, wants)

    # -- projects ---------------------------------------------------------------------------------------

    async def project(self, client: Client) -> str:
        """The project a client's calls belong to: its first root, asked for once; else `default`."""
        if client.era == STATELESS or not client.can("roots"):
            return DEFAULT_PROJECT
        if client.project is None:
            client.project = asyncio.ensure_future(self._asked_for_roots(client))
        return await asyncio.shield(client.project)

    async def _asked_for_roots(self, client: Client) -> str:
        try:
            async with asyncio.timeout(_ROOTS_SECONDS):
                found = await client.ask("roots/list", {})
        except (RpcError, TimeoutError):
            return DEFAULT_PROJECT
        roots = found.get("roots") if isinstance(found, dict) else None
        for each in roots if isinstance(roots, list) else []:
            uri = each.get("uri") if isinstance(each, dict) else None
            path = unquote(urlsplit(uri).path) if isinstance(uri, str) and uri.startswith("file://") else ""
            if path.startswith("/") and Path(path).is_dir():
                return project_of(path)
        return DEFAULT_PROJECT

    def keeper_of(self, upstream: Upstream) -> Keeper:
        return self.fleet.keeper(upstream.name)


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


def plain(result: Any) -> Any:
    """A result for the handshake era, which knows no kinds of results."""
    if not isinstance(result, dict) or "resultType" not in result:
        return result
    return {key: value for key, value in result.items() if key not in ("resultType", "ttlMs", "cacheScope")}


async def _as_it_is(work: Awaitable[Any]) -> Any:
    return await work


def _unheard(_message: Message) -> None:
    """A stateless client has no line of its own between requests."""


def _number(value: Any) -> str | int:
    return value if isinstance(value, str | int) else ""


_INFO: Message = {"name": "checkrein", "title": "Checkrein", "version": __version__}
_BOTH: dict[str, Handler] = {
    "tools/list": Hub._list_tools,
    "tools/call": Hub._call_tool,
    "prompts/list": Hub._list_prompts,
    "prompts/get": Hub._get_prompt,
    "resources/list": Hub._list_resources,
    "resources/templates/list": Hub._list_templates,
    "resources/read": Hub._read_resource,
    "completion/complete": Hub._complete,
}
_HANDSHAKE: dict[str, Handler] = {
    **_BOTH,
    "initialize": Hub._initialize,
    "ping": Hub._ping,
    "logging/setLevel": Hub._set_level,
    "resources/subscribe": Hub._subscribe,
    "resources/unsubscribe": Hub._unsubscribe,
}
_STATELESS: dict[str, Handler] = {
    **_BOTH,
    "server/discover": Hub._discover,
    "subscriptions/listen": Hub._listen,
}
