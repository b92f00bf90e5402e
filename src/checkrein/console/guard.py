"""Stands before every page: who may talk to us at all, how much they may send, and what browsers may do."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkrein.console.peer_check import Connection, PeerVerdict
from checkrein.console.rendering import page
from checkrein.peers import Peer

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
# What of a connection and of its process a request carries, as `request.state`.
CONNECTION, PEER = "connection", "peer"
_SIGN_IN = "/signin"
_REMEDY = "Start the program from a terminal of your own."
_NOT_CHECKED = "whose it is could not be checked"
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
        judge: Callable[[Connection], PeerVerdict],
        refused: Callable[[str], None],
        turned_away: Callable[[list[str], str], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._app, self._hosts, self._judge, self._failed = app, hosts, judge, failed
        self._note, self._turned_away = refused, turned_away

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
        verdict = await run_in_threadpool(self._verdict, _connection(scope))
        if verdict.refusal:
            shown = Headers(scope=scope).getlist("authorization")
            await run_in_threadpool(self._turned_away, shown, verdict.refusal)
            await _not_a_person(scope["path"], verdict.refusal)(scope, receive, dressed)
            return
        scope.setdefault("state", {})[PEER] = verdict.peer
        try:
            await self._app(scope, _limited(receive, _largest(scope["path"])), dressed)
        except Exception as error:  # noqa: BLE001 - its page has been sent; the others notice nothing
            self._failed(error)

    def _verdict(self, connection: Connection) -> PeerVerdict:
        # INVARIANT: a process that cannot be checked is not served.
        try:
            return self._judge(connection)
        except Exception as error:  # noqa: BLE001 - whatever it is, the request goes no further
            self._failed(error)
            return PeerVerdict(Peer(0, -1), _NOT_CHECKED)

    def _refused(self, scope: Scope) -> tuple[int, str]:
        """Why this request goes no further, and its status; 0 and nothing if it does."""
        headers, hosts = Headers(scope=scope), self._hosts()
        # INVARIANT: a page reached under another name (DNS rebinding) gets nothing.
        if headers.getlist("host") not in [[host] for host in hosts]:
            return 421, "This console answers to 127.0.0.1 and localhost only."
        origins = headers.getlist("origin")
        # INVARIANT: a page without an origin may send the form that signs in and nothing else.
        # `checkrein open` shows the browser a file, and files have none.
        from_file = scope["method"] == "POST" and scope["path"] == _SIGN_IN and origins == ["null"]
        if origins and origins != [f"http://{headers['host']}"] and not from_file:
            return 403, "Another site asked for this."
        if scope["method"] not in (_API_METHODS if _API.match(scope["path"]) else _METHODS):
            return 405, "This cannot be done."
        # INVARIANT: nothing is changed for another page, also not one on another port of this machine.
        foreign = headers.get("sec-fetch-site", "same-origin") != "same-origin"
        if scope["method"] not in _SAFE and foreign and not from_file:
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


def _connection(scope: Scope) -> Connection:
    """As the server keeps it; a new one, known to nothing, where it keeps none."""
    kept = scope.get("state", {}).get(CONNECTION)
    return kept if isinstance(kept, Connection) else Connection(scope.get("client"))


def _not_a_person(path: str, why: str) -> Response:
    """Why a process is not served, and what its user does instead."""
    if _API.match(path):
        text = f"Only a person's own programs may do this, and {why}."
        return JSONResponse({"error": {"code": "person.only", "message": text, "remedy": _REMEDY}}, 403)
    return page("refused.html", 403, why=why)


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
