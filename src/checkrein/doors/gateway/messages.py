"""JSON-RPC messages as the gateway passes them on: plain dictionaries, so that unknown fields survive.

Both sides of the gateway read and write through here. What cannot be read is refused, never guessed at.
"""

from __future__ import annotations

from typing import Any

import msgspec

Message = dict[str, Any]
# One message, in either direction; longer ones are refused before they are looked at.
LARGEST = 16 << 20

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022

PROTOCOL = "io.modelcontextprotocol/"
VERSION_KEY, CAPABILITIES_KEY = f"{PROTOCOL}protocolVersion", f"{PROTOCOL}clientCapabilities"
INFO_KEY, LEVEL_KEY = f"{PROTOCOL}clientInfo", f"{PROTOCOL}logLevel"
SUBSCRIPTION_KEY, SERVER_KEY = f"{PROTOCOL}subscriptionId", f"{PROTOCOL}serverInfo"
# Keys of `_meta` that belong to one connection and are never passed on to the next.
CONNECTION_KEYS = frozenset({VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LEVEL_KEY, SUBSCRIPTION_KEY})

HANDSHAKE, STATELESS = "handshake", "stateless"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS = ("2026-07-28",)


class RpcError(Exception):
    """A JSON-RPC error, as somebody sent it or as we answer with it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    @property
    def body(self) -> Message:
        found: Message = {"code": self.code, "message": self.message}
        return found if self.data is None else {**found, "data": self.data}


class MalformedError(RpcError):
    """Bytes that are no message; `id` is the request's where it could be read."""

    def __init__(self, code: int, message: str, id: Any = None) -> None:  # noqa: A002 - the protocol's word
        super().__init__(code, message)
        self.id = id


_EMPTY: Message = {}
_decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


def decode(raw: bytes | bytearray | memoryview) -> Message:
    """One message: a request, a notification or a response; raises MalformedError."""
    if len(raw) > LARGEST:
        raise MalformedError(
            INVALID_REQUEST, f"A message may have {LARGEST:,} bytes; this one has {len(raw):,}."
        )
    try:
        found = _decode(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        raise MalformedError(PARSE_ERROR, "This is not JSON.") from None
    if not isinstance(found, dict):
        raise MalformedError(INVALID_REQUEST, "One message at a time: an object, no batch.")
    _check(found)
    return found


def _check(message: Message) -> None:
    known = message.get("id")
    if known is None or isinstance(known, bool) or not isinstance(known, (str, int)):
        if "id" in message and not ("error" in message and known is None):
            raise MalformedError(INVALID_REQUEST, "An id is a text or a whole number.")
        known = None
    if message.get("jsonrpc") != "2.0":
        raise MalformedError(INVALID_REQUEST, 'A message says "jsonrpc": "2.0".', known)
    if "method" in message:
        if not isinstance(message["method"], str) or not isinstance(message.get("params", _EMPTY), dict):
            raise MalformedError(INVALID_REQUEST, "A method is a text and its params are an object.", known)
    elif "id" not in message or ("result" in message) == ("error" in message):
        raise MalformedError(INVALID_REQUEST, "This is no request, no notification and no response.", known)
    elif "error" in message and not isinstance(message["error"], dict):
        raise MalformedError(INVALID_REQUEST, "An error is an object.", known)


def is_request(message: Message) -> bool:
    return "method" in message and "id" in message


def is_response(message: Message) -> bool:
    return "method" not in message


def request(id: str | int, method: str, params: Message | None = None) -> Message:  # noqa: A002
    made: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    return made if params is None else {**made, "params": params}


def notification(method: str, params: Message | None = None) -> Message:
    made: Message = {"jsonrpc": "2.0", "method": method}
    return made if params is None else {**made, "params": params}


def response(id: str | int, result: Any) -> Message:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": result}


def failure(id: str | int | None, error: RpcError) -> Message:  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "error": error.body}


def meta_of(params: Message) -> Message:
    """The `_meta` of params or of a result; nothing where it is missing or no object."""
    found = params.get("_meta")
    return found if isinstance(found, dict) else {}


def outcome(message: Message) -> Any:
    """A response's result; raises the error it carries."""
    error = message.get("error")
    if error is None:
        return message.get("result")
    code = error.get("code")
    text = error.get("message")
    raise RpcError(
        code if isinstance(code, int) else INTERNAL_ERROR,
        text if isinstance(text, str) else "The server sent an error without a message.",
        error.get("data"),
    )
