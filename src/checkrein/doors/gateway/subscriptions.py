"""Who wants to hear of what: resources that change, lists that change; in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from checkrein.doors.gateway.clients import Client, Exchange
from checkrein.doors.gateway.messages import (
    INVALID_PARAMS,
    SUBSCRIPTION_KEY,
    Message,
    RpcError,
    notification,
)

MOST_OF_ONE, MOST_URIS = 64, 1_000
Wants = Callable[[str], Awaitable[None]]
_LISTS = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


class Listening(msgspec.Struct):
    """An open `subscriptions/listen` of a stateless client."""

    owner: str
    client: str
    id: str | int
    exchange: Exchange
    lists: frozenset[str]
    uris: frozenset[str]
    over: asyncio.Event

    def tell(self, method: str, params: Message) -> None:
        # INVARIANT: a subscription's notices carry the id its own client gave it.
        meta = params.get("_meta")
        stamped = {**(meta if isinstance(meta, dict) else {}), SUBSCRIPTION_KEY: self.id}
        self.exchange.send(notification(method, {**params, "_meta": stamped}))


class Subscriptions:
    """Handshake clients subscribe to URIs and hear of every list; stateless ones say what they want."""

    def __init__(self) -> None:
        self._open: list[Listening] = []

    async def listen(
        self, client: Client, number: str | int, params: Message, exchange: Exchange, wants: Wants
    ) -> Message:
        """Serve one stream until its client closes it, or we end."""
        asked = params.get("notifications")
        if not isinstance(asked, dict):
            raise RpcError(INVALID_PARAMS, "Say which notifications are wanted.")
        if sum(each.owner == client.owner for each in self._open) >= MOST_OF_ONE:
            raise RpcError(INVALID_PARAMS, f"{MOST_OF_ONE} streams of this client are open already.")
        uris = asked.get("resourceSubscriptions") or []
        if not isinstance(uris, list) or len(uris) > MOST_URIS or not all(isinstance(u, str) for u in uris):
            raise RpcError(INVALID_PARAMS, "resourceSubscriptions is a list of URIs.")
        lists = frozenset(name for name, key in _LISTS.items() if asked.get(key) is True)
        stream = Listening(client.owner, client.id, number, exchange, lists, frozenset(uris), asyncio.Event())
        honored: Message = {_LISTS[name]: True for name in sorted(lists)}
        if uris:
            honored["resourceSubscriptions"] = uris
        self._open.append(stream)
        try:
            stream.tell("notifications/subscriptions/acknowledged", {"notifications": honored})
            for uri in uris:
                await wants(uri)
            await stream.over.wait()
        finally:
            self._open.remove(stream)
        return {"_meta": {SUBSCRIPTION_KEY: number}}

    def list_changed(self, what: str, only: str = "") -> None:
        """Tell who wants to hear; where it is one client's own list, only that client."""
        for each in list(self._open):
            if what in each.lists and only in ("", each.client):
                each.tell(f"notifications/{what}/list_changed", {})

    def updated(self, uri: str, params: Message, only: str = "") -> None:
        """Tell who wants to hear; where it comes from one client's own connection, only that client."""
        for each in list(self._open):
            if uri in each.uris and only in ("", each.client):
                each.tell("notifications/resources/updated", params)

    def end(self) -> None:
        """Tell every stream that it ends on purpose."""
        for each in self._open:
            each.over.set()
