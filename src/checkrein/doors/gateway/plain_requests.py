"""Requests that are no tool calls: prompts, resources, completions and subscriptions, passed on as they are.

The hub hands them over. Nothing here decides anything; whoever reads what nobody vouches for is tainted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from checkrein.call import digest
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.messages import INVALID_PARAMS, Message, RpcError
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.relay import Errand, onward
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

# How long servers that are just starting are waited for.
SETTLE_SECONDS = 15.0
_MOST_SUBSCRIBED = 1_000
# Whose results are a server's own words.
_READ = {"resources/read", "prompts/get"}


class PlainRequests:
    """What clients ask of servers besides their tools."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def list_prompts(self, client: Client, _flight: Flight, params: Message) -> Message:
        if params.get("cursor") is not None:
            raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.")
        await self._hub.fleet.settled(SETTLE_SECONDS)
        await self._hub.news.listed(client.id)
        return {"prompts": self._hub.catalogue.prompts()}

    async def get_prompt(self, client: Client, flight: Flight, params: Message) -> Any:
        server, name = self._prompt(params.get("name"))
        return await self._carried(client, flight, server, "prompts/get", {**params, "name": name})

    def _prompt(self, offered: Any) -> tuple[str, str]:
        found = self._hub.catalogue.prompt(offered) if isinstance(offered, str) else None
        if found is None:
            raise RpcError(INVALID_PARAMS, "There is no such prompt.")
        return found

    async def list_resources(self, client: Client, _flight: Flight, params: Message) -> Message:
        await self._hub.fleet.settled(SETTLE_SECONDS)
        return await self._hub.resources.page(client, "resources/list", params)

    async def list_templates(self, client: Client, _flight: Flight, params: Message) -> Message:
        await self._hub.fleet.settled(SETTLE_SECONDS)
        return await self._hub.resources.page(client, "resources/templates/list", params)

    async def read_resource(self, client: Client, flight: Flight, params: Message) -> Any:
        server, uri = await self._hub.resources.whose(client, params.get("uri"))
        return await self._carried(client, flight, server, "resources/read", {**params, "uri": uri})

    async def subscribe(self, client: Client, _flight: Flight, params: Message) -> Message:
        known = params.get("uri")
        server, uri = await self._hub.resources.whose(client, known)
        if len(client.subscribed) >= _MOST_SUBSCRIBED:
            raise RpcError(INVALID_PARAMS, f"{_MOST_SUBSCRIBED:,} resources are subscribed to already.")
        if known in client.subscribed:
            return {}
        # Before the server says yes: its first update may come in the same breath.
        client.subscribed.add(str(known))
        try:
            await self._hub.watches.add(client, client, server, uri)
        except BaseException:
            client.subscribed.discard(str(known))
            raise
        return {}

    async def unsubscribe(self, client: Client, _flight: Flight, params: Message) -> Message:
        known = params.get("uri")
        server, uri = await self._hub.resources.whose(client, known)
        if known in client.subscribed:
            client.subscribed.discard(str(known))
            self._hub.watches.drop(client, server, uri)
        return {}

    async def complete(self, client: Client, flight: Flight, params: Message) -> Any:
        ref = params.get("ref")
        given = ref if isinstance(ref, dict) else {}
        if given.get("type") == "ref/prompt":
            server, name = self._prompt(given.get("name"))
            ref = {**given, "name": name}
        else:
            server = self._hub.resources.whose_template(given.get("uri")) or ""
            if not server:
                server, uri = await self._hub.resources.whose(client, given.get("uri"))
                ref = {**given, "uri": uri}
        return await self._carried(client, flight, server, "completion/complete", {**params, "ref": ref})

    async def _carried(
        self, client: Client, flight: Flight, server: str, method: str, params: Message
    ) -> Any:
        """A request passed on as it is; only its way back across the eras is ours."""
        bound = digest(
            [method, server, {key: params.get(key) for key in ("name", "uri", "arguments", "ref")}]
        )
        state = await self._hub.taken(client, method, params, bound)
        found = params.get("inputResponses")
        responses = found if isinstance(found, dict) else {}
        trusted = self._hub.fleet.spec(server).trusted
        try:
            if state is not None and state.kind == "run":
                return await self._hub.relay.go_on(client, flight, state, responses)
            upstream = await self._hub.fleet.reach(server, client)
            seconds = self._hub.fleet.spec(server).timeout or self._hub.calls.call_seconds()
            errand = Errand(client, flight, upstream, method, onward(params, upstream), seconds, bound)
            if state is not None:
                carried = {"requestState": state.carried} if state.carried else {}
                errand.params = {**errand.params, "inputResponses": responses, **carried}
            sending = self._hub.relay.begin(errand)
            return await self._hub.relay.deliver(sending, _awaited(sending.answer))
        finally:
            if not trusted and method in _READ:
                await self._hub.visits.taint(client.visit, server)

    async def listen(self, client: Client, flight: Flight, params: Message) -> Message:
        holder = object()

        async def wants(uri: str) -> None:
            with contextlib.suppress(RpcError, CheckreinError, Gone, TimeoutError):
                server, own = await self._hub.resources.whose(client, uri)
                await self._hub.watches.add(client, holder, server, own)

        try:
            return await self._hub.subscriptions.listen(client, flight.id, params, flight.exchange, wants)
        finally:
            self._hub.watches.drop(holder)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
