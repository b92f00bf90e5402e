"""JSON-RPC messages as the gateway passes them on: plain dictionaries, so that unknown fields survive.

Both sides of the gateway read and write through here. What cannot be read is refused, never guessed at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.doors.gateway import json_fallback
from checkrein.doors.gateway.json_fallback import replace_surrogates

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


class UnreadableError(MalformedError):
    """A valid message that holds what we cannot read.

    `whole`: the message itself, where it can be passed on all the same.
    """

    def __init__(self, outline: Message, fault: str, *, whole: bool) -> None:
        self.responds, self.asks = is_response(outline), is_request(outline)
        what = "answer" if self.responds else "request"
        super().__init__(INVALID_PARAMS, f"This {what} holds {fault}.", outline.get("id"))
        self.fault, self.whole = fault, outline if whole else None

    @property
    def answer(self) -> Message:
        """By its id: what the sender of a request is told, and what a response counts as."""
        if self.responds and self.whole is not None:
            return _without_surrogates(self.whole)
        return failure(self.id, self)


_EMPTY: Message = {}
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def encode(message: Any) -> bytes:
    try:
        return _encode(message)
    except UnicodeEncodeError:
        return json_fallback.write(message)


def decode(raw: bytes | bytearray | memoryview) -> Message:
    """One message: a request, a notification or a response; raises MalformedError."""
    if len(raw) > LARGEST:
        raise MalformedError(
            INVALID_REQUEST, f"A message may have {LARGEST:,} bytes; this one has {len(raw):,}."
        )
    try:
        found = _decode(raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _decode_rejected(bytes(raw))
    if not isinstance(found, dict):
        raise MalformedError(INVALID_REQUEST, "One message at a time: an object, no batch.")
    _check(found)
    return found


def decode_from_server(raw: bytes, respond: Callable[[Message], None]) -> Message | None:
    """One message of a server's, whatever carries it; raises MalformedError.

    One that cannot be read ends what it belongs to, by its id: a request of the server's is answered through
    `respond`, a response becomes an error, a notification nothing.
    """
    try:
        return decode(raw)
    except UnreadableError as error:
        if error.whole is not None:
            # Only clients read a result: it goes on unchanged. What we read ourselves is Unicode.
            return error.whole if "result" in error.whole else _without_surrogates(error.whole)
        if error.responds:
            # INVARIANT: an answer that cannot be read ends its call at once, as a failure that says why.
            return failure(error.id, RpcError(INTERNAL_ERROR, f"The server's answer holds {error.fault}."))
        if error.asks:
            respond(error.answer)
        return None


def _decode_rejected(raw: bytes) -> Message:
    """What msgspec does not read: no JSON, or JSON with values that it cannot hold."""
    try:
        found = json_fallback.read(raw)
    except ValueError:
        found = json_fallback.Reading(None)
    if not isinstance(found.value, dict):
        raise MalformedError(PARSE_ERROR, "This is not JSON.")
    message: Message = found.value
    _check(message)
    if found.fault:
        raise UnreadableError(message, found.fault, whole=found.whole)
    return message


def _without_surrogates(message: Message) -> Message:
    found: Message = replace_surrogates(message)
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
