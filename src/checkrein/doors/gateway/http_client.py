"""What the `mcp` package does for servers that listen: HTTP, event streams, signing in. The pipe loads it.

Only its transports are used: they hand over messages as they are, so that nothing a server says is lost.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

import checkrein
from checkrein.doors.gateway.http_bodies import EventBody, JsonBody, KeptMessages
from checkrein.doors.gateway.http_oauth import Provider, trouble
from checkrein.doors.gateway.messages import (
    HANDSHAKE_VERSIONS,
    LARGEST,
    VERSION_KEY,
    Message,
    is_request,
    meta_of,
)
from checkrein.doors.gateway.outside import Outside
from checkrein.doors.gateway.pipes import LOST, SignIn

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

__all__ = [
    "GuardedTransport",
    "KeptMessages",
    "Stamp",
    "UnreadableError",
    "connected",
    "from_wire",
    "to_wire",
    "trouble",
]

# Its log would say, among much else, what servers answered when we signed in.
logging.getLogger("mcp").addHandler(logging.NullHandler())
logging.getLogger("mcp").propagate = False

_CONNECT_SECONDS, _READ_SECONDS = 10.0, 300.0
_MOST_CONNECTIONS = 256
_LISTED_TOOLS = 10_000
# How the package says that a request was sent and its answer will not come.
_ABANDONED = "SSE stream "
Noticed = Callable[[int, bool], None]


class UnreadableError(httpx2.StreamError):
    """An answer we do not read: too long, or packed."""


class _Bounded(httpx2.AsyncByteStream):
    """An answer's bytes, up to as many as a message may have."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, packed: bool) -> None:
        self._inner, self._packed = inner, packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise UnreadableError("The server packed its answer, which we did not ask for.")
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > LARGEST:
                raise UnreadableError(f"The server's answer has more than {LARGEST:,} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to where `Outside` allows and nowhere else, and reads no more than it must."""

    def __init__(self, url: str, outside: Outside, noticed: Noticed, kept: KeptMessages) -> None:
        self._home, self._outside, self._noticed, self._kept = httpx2.URL(url), outside, noticed, kept
        # One for each name: a connection that was checked for one name is never used for another.
        self._by_host: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        addresses = await self._outside.addresses(str(request.url))
        response = await self._first_that_answers(request, addresses)
        is_ours = request.url == self._home
        if is_ours:
            self._noticed(response.status_code, "mcp-session-id" in request.headers)
        kind = response.headers.get("content-type", "").lower()
        packed = response.headers.get("content-encoding", "identity").lower() not in ("", "identity")
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - it is an async client
        is_stream = kind.startswith("text/event-stream")
        if packed or not (is_ours and is_stream):
            response.stream = _Bounded(response.stream, packed=packed)
        if is_stream:
            response.stream = EventBody(response.stream, self._kept.keep)
        elif kind.startswith("application/json") and _carries_message(request):
            keep = self._kept.keep if response.status_code < 400 else self._kept.keep_error
            response.stream = JsonBody(response.stream, keep)
        return response

    async def _first_that_answers(self, request: httpx2.Request, addresses: list[str]) -> httpx2.Response:
        for position, address in enumerate(addresses):
            try:
                return await self._transport(request.url.host).handle_async_request(_pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if position == len(addresses) - 1:
                    raise
        raise httpx2.ConnectError("There is no address to connect to.", request=request)

    def _transport(self, host: str) -> httpx2.AsyncHTTPTransport:
        if host not in self._by_host:
            self._by_host[host] = httpx2.AsyncHTTPTransport(
                limits=httpx2.Limits(max_connections=_MOST_CONNECTIONS),
                socket_options=[(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],
            )
        return self._by_host[host]

    async def aclose(self) -> None:
        for each in self._by_host.values():
            await each.aclose()


def _carries_message(request: httpx2.Request) -> bool:
    """Whether it is one of the protocol's, which name both kinds of answers; signing in asks for neither."""
    return request.method == "POST" and "text/event-stream" in request.headers.get("accept", "")


def _pinned(request: httpx2.Request, address: str) -> httpx2.Request:
    """The same request to the address that was checked; the certificate must still be the name's."""
    extensions = {**request.extensions, "sni_hostname": request.url.host}
    if request.method == "GET" and "text/event-stream" in request.headers.get("accept", ""):
        # A server with nothing to say may keep silent for days.
        extensions["timeout"] = {**extensions.get("timeout", {}), "read": None}
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )


@asynccontextmanager
async def connected(
    spec: ServerSpec, outside: Outside, sign_in: SignIn | None, noticed: Noticed, kept: KeptMessages
) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams of messages: to read from and to write to."""

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        # INVARIANT: only the headers of the servers file are sent; nothing of our clients, nothing of the
        # environment (proxies, .netrc).
        return httpx2.AsyncClient(
            headers={"user-agent": f"checkrein/{checkrein.__version__}", "accept-encoding": "identity"}
            | spec.headers,
            auth=Provider(spec, outside, sign_in) if spec.oauth else None,
            timeout=httpx2.Timeout(_CONNECT_SECONDS, read=max(_READ_SECONDS, (spec.timeout or 0) + 30)),
            transport=GuardedTransport(spec.url, outside, noticed, kept),
            trust_env=False,
            follow_redirects=False,
        )

    if spec.transport == "sse":
        async with sse_client(spec.url, httpx_client_factory=client) as streams:
            yield streams
        return
    async with (
        client() as made,
        streamable_http_client(spec.url, http_client=made, max_sse_event_size=LARGEST) as streams,
    ):
        yield streams


class Stamp:
    """The headers HTTP wants beside a message. Watches what passes for what it has to know."""

    def __init__(self) -> None:
        self._version = ""
        self._asked: dict[Any, str] = {}
        self._mirrored: dict[str, dict[tuple[str, ...], str]] = {}

    def outgoing(self, message: Message) -> dict[str, str]:
        method = message.get("method")
        if not isinstance(method, str):
            return self._legacy()
        params = message.get("params") or {}
        if is_request(message) and method in ("initialize", "tools/list"):
            self._asked[message["id"]] = method
        version = meta_of(params).get(VERSION_KEY)
        if not isinstance(version, str):
            return self._legacy()
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        key = NAME_BEARING_METHODS.get(method)
        if key is not None and isinstance(name := params.get(key), str):
            headers["mcp-name"] = encode_header_value(name)
            arguments = params.get("arguments")
            if method == "tools/call" and name in self._mirrored and isinstance(arguments, dict):
                headers |= mcp_param_headers(self._mirrored[name], arguments)
        return headers

    def _legacy(self) -> dict[str, str]:
        return {"mcp-protocol-version": self._version} if self._version else {}

    def incoming(self, message: Message) -> None:
        asked = self._asked.pop(message.get("id"), "") if "method" not in message else ""
        result = message.get("result")
        if not asked or not isinstance(result, dict):
            return
        if asked == "initialize":
            version = result.get("protocolVersion")
            self._version = version if version in HANDSHAKE_VERSIONS else ""
        else:
            self._learn(result.get("tools"))

    def _learn(self, tools: Any) -> None:
        for tool in tools[:_LISTED_TOOLS] if isinstance(tools, list) else ():
            name, schema = (
                (tool.get("name"), tool.get("inputSchema")) if isinstance(tool, dict) else (None, None)
            )
            if isinstance(name, str) and isinstance(schema, dict) and len(self._mirrored) < _LISTED_TOOLS:
                found = {} if find_invalid_x_mcp_header(schema) else x_mcp_header_map(schema)
                self._mirrored.pop(name, None)
                if found:
                    self._mirrored[name] = found


def to_wire(message: Message, headers: dict[str, str]) -> SessionMessage:
    found = jsonrpc_message_adapter.validate_python(message, by_name=False)
    return SessionMessage(found, ClientMessageMetadata(headers=headers) if headers else None)


def from_wire(found: SessionMessage, kept: KeptMessages) -> Message:
    message = found.message
    if (ours := kept.take(message)) is not None:
        return ours
    if isinstance(message, JSONRPCResponse):
        return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    if isinstance(message, JSONRPCError):
        if message.error.code == CONNECTION_CLOSED and message.error.message.startswith(_ABANDONED):
            return {"jsonrpc": "2.0", "id": message.id, LOST: "connection lost before the answer came"}
        error = message.error.model_dump(mode="json", exclude_unset=True)
        return {"jsonrpc": "2.0", "id": message.id, "error": error}
    made: Message = {"jsonrpc": "2.0", "method": message.method}
    if isinstance(message, JSONRPCRequest):
        made["id"] = message.id
    else:
        assert isinstance(message, JSONRPCNotification)  # noqa: S101 - there are four kinds
    return made if message.params is None else {**made, "params": message.params}
