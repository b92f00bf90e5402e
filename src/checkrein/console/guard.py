"""Stands before every page: who may talk to us at all, how much they may send, and what browsers may do."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4 << 20
# What is said with files, and a conversation that comes back.
LARGEST_UPLOAD = 16 << 20
_API = re.compile(r"/api/v1/|/at/[^/]+/chat/api/")
_UPLOADS = re.compile(r"/api/v1/sessions/(?:import|[^/]+/messages)$|/at/[^/]+/chat(?:/|$)")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Nothing to anybody else. `no-referrer` would make browsers hide the origin of our own forms too.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
_SAFE = ("GET", "HEAD")
# What no browser of a person's does by itself; it is recorded.
_SUSPICIOUS = (403, 421)
_METHODS = (*_SAFE, "POST")
_API_METHODS = (*_METHODS, "PATCH", "DELETE")
_CODES = {400: "input.invalid", 403: "other_site", 405: "no_such_method", 413: "too_large", 421: "other_host"}


class TooLarge(Exception):  # noqa: N818 - not a fault of ours: the sender hears of it
    pass


class Guard:
    """Plain ASGI, so that a stream that has no end passes through it."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Callable[[], frozenset[str]],
        *,
        refused: Callable[[str], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._app, self._hosts, self._note, self._failed = app, hosts, refused, failed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                _dress(message, scope["path"])
            await send(message)

        status, why = self._refused(scope)
        if status:
            if status in _SUSPICIOUS:
                await run_in_threadpool(self._note, why)
            await _refusal(scope["path"], status, why)(scope, receive, dressed)
            return
        try:
            await self._app(scope, _limited(receive, _largest(scope["path"])), dressed)
        except Exception as error:  # noqa: BLE001 - its page has been sent; the others notice nothing
            self._failed(error)

    def _refused(self, scope: Scope) -> tuple[int, str]:
        """Why this request goes no further, and its status; 0 and nothing if it does."""
        headers, hosts = Headers(scope=scope), self._hosts()
        # INVARIANT: a page reached under another name (DNS rebinding) gets nothing.
        if headers.getlist("host") not in [[host] for host in hosts]:
            return 421, "This console answers to 127.0.0.1 and localhost only."
        origins = headers.getlist("origin")
        if origins and origins != [f"http://{headers['host']}"]:
            return 403, "Another site asked for this."
        if scope["method"] not in (_API_METHODS if _API.match(scope["path"]) else _METHODS):
            return 405, "This cannot be done."
        # INVARIANT: nothing is changed for another page, also not one on another port of this machine.
        if scope["method"] not in _SAFE and headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "Another site asked for this."
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 12:
            return 400, "The length cannot be read."
        return (413, "This is too large.") if int(length) > _largest(scope["path"]) else (0, "")


def _largest(path: str) -> int:
    return LARGEST_UPLOAD if _UPLOADS.match(path) else LARGEST_BODY


def _refusal(path: str, status: int, why: str) -> Response:
    """Programs read JSON, people a line."""
    if _API.match(path):
        told = {"code": _CODES.get(status, "error"), "message": why, "remedy": ""}
        return JSONResponse({"error": told}, status)
    return PlainTextResponse(f"{why}\n", status)


def _limited(receive: Receive, largest: int) -> Receive:
    """A body without a length is counted as it comes."""
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > largest:
            raise TooLarge
        return message

    return counted


def _dress(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers[name] = value
    # Our own scripts and styles are no secret, and asked for again with every page.
    headers["cache-control"] = "no-cache" if path.startswith("/static/") else "no-store"
