"""Resources of many servers under one roof: lists page by page, and whose a URI is.

URIs keep their names, because results of tools mention them. Where two servers offer the same one, the second
is offered as `mcp+SERVER:URI`, so that nothing silently wins.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from checkrein.doors.gateway.clients import Client
from checkrein.doors.gateway.messages import INVALID_PARAMS, RESOURCE_NOT_FOUND, Message, RpcError
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError

PREFIX = "mcp+"
# What one server may lay claim to; beyond it, its resources are offered under its name.
_MOST_KNOWN = 20_000
_SECONDS = 30.0
# Pages with nothing on them that are looked past at once; pages read to find out whose something is.
_MOST_EMPTY, _MOST_PAGES = 20, 100
_KEYS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
_VARIABLE = re.compile(r"\{[^{}]*\}")


class Behind(Protocol):
    """The servers that may have resources."""

    def ready(self) -> list[Upstream]: ...

    async def reach(self, server: str, client: Client) -> Upstream: ...


Envelope = Callable[[Client], Message]


class Resources:
    """Who offers which URI, learned from the lists that pass through."""

    def __init__(self, behind: Behind, envelope: Envelope) -> None:
        self._behind, self._envelope = behind, envelope
        self._owners: dict[str, str] = {}
        self._templates: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    async def page(self, client: Client, method: str, params: Message) -> Message:
        """One page of one server; its cursor leads to the next page, then to the next server."""
        servers = [each.name for each in self._with_resources()]
        server, cursor = _read_cursor(params.get("cursor"), servers)
        empty = 0
        while server is not None:
            found = await self._asked(client, server, method, cursor)
            rows, cursor = self._offered(server, method, found), found.get("nextCursor")
            empty += 1
            # One that goes on with nothing for ever keeps nobody from the next one's.
            if not isinstance(cursor, str) or not cursor or (empty > _MOST_EMPTY and not rows):
                server, cursor, empty = _following(servers, server), None, 0
            if rows or server is None:
                # What else a server puts on its page does not become part of ours.
                page: Message = {_KEYS[method][0]: rows}
                return page if server is None else {**page, "nextCursor": _cursor(server, cursor)}
        return {_KEYS[method][0]: []}

    async def _asked(self, client: Client, server: str, method: str, cursor: str | None) -> Message:
        """A server's page; one that cannot give it keeps nobody from the others'."""
        asked: Message = {} if cursor is None else {"cursor": cursor}
        try:
            upstream = await self._behind.reach(server, client)
            result = await upstream.request(method, asked, seconds=_SECONDS, stateless=self._envelope(client))
        except (RpcError, CheckreinError, Gone, TimeoutError):
            if cursor is not None:
                raise
            return {}
        return result if isinstance(result, dict) else {}

    def _offered(self, server: str, method: str, found: Message) -> list[Any]:
        name, key = _KEYS[method]
        known = self._owners if key == "uri" else self._templates
        raw = found.get(name)
        rows = []
        for each in raw if isinstance(raw, list) else []:
            uri = each.get(key) if isinstance(each, dict) else None
            if isinstance(uri, str):
                own = self._belongs(known, uri, server)
                rows.append(each if own else {**each, key: f"{PREFIX}{server}:{uri}"})
        return rows

    def _belongs(self, known: dict[str, str], uri: str, server: str) -> bool:
        """Whether the URI means this server as it stands."""
        # INVARIANT: a URI keeps meaning the server it was first offered by, however many another offers.
        owner = known.get(uri)
        if owner is None and self._counts[server] < _MOST_KNOWN and not uri.startswith(PREFIX):
            known[uri] = owner = server
            self._counts[server] += 1
        return owner == server

    def withdraw(self, server: str) -> None:
        for known in (self._owners, self._templates):
            for uri in [uri for uri, owner in known.items() if owner == server]:
                del known[uri]
        del self._counts[server]

    async def whose(self, client: Client, uri: Any) -> tuple[str, str]:
        """The server a URI belongs to, and the URI as that server knows it."""
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "A resource has a URI.")
        servers = [each.name for each in self._with_resources()]
        if uri.startswith(PREFIX):
            server, _, own = uri.removeprefix(PREFIX).partition(":")
            if server in servers:
                return server, own
        found = self._known(uri)
        if found is None:
            await self._learn(client)
            found = self._known(uri)
        if found is None and len(servers) == 1:
            # Nobody else it could be; its own error says more than ours.
            found = servers[0]
        if found is None or found not in servers:
            raise RpcError(RESOURCE_NOT_FOUND, "No server offers this resource.", {"uri": uri})
        return found, uri

    def whose_template(self, template: Any) -> str | None:
        return self._templates.get(template) or self._known(template) if isinstance(template, str) else None

    def template(self, offered: str) -> tuple[str, str] | None:
        """The server a template as we list it belongs to, and the template as that server knows it."""
        if offered.startswith(PREFIX):
            server, _, own = offered.removeprefix(PREFIX).partition(":")
            return server, own
        owner = self._templates.get(offered)
        return None if owner is None else (owner, offered)

    def known_as(self, server: str, uri: str) -> str:
        """How clients know a URI of this server's."""
        owner = self._known(uri)
        mine = owner == server or (owner is None and not uri.startswith(PREFIX))
        return uri if mine else f"{PREFIX}{server}:{uri}"

    def _known(self, uri: str) -> str | None:
        owner = self._owners.get(uri)
        if owner is not None:
            return owner
        fits = {owner for template, owner in self._templates.items() if _fits(template, uri)}
        return fits.pop() if len(fits) == 1 else None

    async def _learn(self, client: Client) -> None:
        with contextlib.suppress(RpcError, CheckreinError, Gone, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                for method in _KEYS:
                    await self._read_all(client, method)

    async def _read_all(self, client: Client, method: str) -> None:
        params: Message = {}
        for _ in range(_MOST_PAGES):
            page = await self.page(client, method, params)
            if "nextCursor" not in page:
                return
            params = {"cursor": page["nextCursor"]}

    def _with_resources(self) -> list[Upstream]:
        return [each for each in self._behind.ready() if isinstance(each.capabilities.get("resources"), dict)]


def _fits(template: str, uri: str) -> bool:
    """Whether a URI can come from a template: its fixed parts occur in order, the first at the start."""
    parts = _VARIABLE.split(template)
    if not uri.startswith(parts[0]) or len(parts) == 1:
        return uri == template
    at = len(parts[0])
    for part in parts[1:-1]:
        at = uri.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(uri) - len(parts[-1]) >= at and uri.endswith(parts[-1])


def _cursor(server: str, cursor: str | None) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([server, cursor])).decode()


def _read_cursor(cursor: Any, servers: list[str]) -> tuple[str | None, str | None]:
    if cursor is None:
        return (servers[0] if servers else None), None
    try:
        server, own = msgspec.json.decode(
            base64.urlsafe_b64decode(cursor.encode()), type=tuple[str, str | None]
        )
    except (AttributeError, ValueError, binascii.Error, msgspec.MsgspecError):
        raise RpcError(INVALID_PARAMS, "This cursor is not one of ours.") from None
    if server not in servers:
        raise RpcError(INVALID_PARAMS, "The server this cursor leads to is not there any more.")
    return server, own


def _following(servers: list[str], server: str) -> str | None:
    place = servers.index(server) + 1
    return servers[place] if place < len(servers) else None
