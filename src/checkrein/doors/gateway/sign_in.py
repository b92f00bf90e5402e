"""Where a person's browser comes back to after signing in at a server: a listener for one answer, then none.

A sign-in attempt opens it; the `mcp` package checks that the answer is to our question. It never repeats a
word of what it is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from checkrein.doors.gateway.pipes import PipeError

WAIT_SECONDS = 300.0
HEAD_SECONDS = 10.0
LARGEST_HEAD = 16_384
MOST_CONNECTIONS = 16
LONGEST_URL = 16_384
_LONGEST_VALUE = 8_192
_MOST_VALUES = 32
_HEADERS = (
    "content-type: text/html; charset=utf-8\r\n"
    "content-security-policy: default-src 'none'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'\r\n"
    "x-content-type-options: nosniff\r\nx-frame-options: DENY\r\nreferrer-policy: no-referrer\r\n"
    "cross-origin-opener-policy: same-origin\r\ncross-origin-resource-policy: same-origin\r\n"
    "cache-control: no-store\r\nconnection: close\r\n"
)
_STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found"}
_DONE = "You can close this window. Checkrein goes on by itself."
_NOT_DONE = "You can close this window. You were not signed in; Checkrein says why."
_NOTHING = "There is nothing here."
_UNREADABLE = "This cannot be read."


class Answer(msgspec.Struct, frozen=True):
    """What a browser brought back."""

    code: str
    state: str | None = None
    iss: str | None = None

    def __repr__(self) -> str:
        return "Answer()"


class SignIn:
    """One way back for one person. `shown` is told the address they have to go to.

    `way_back`: the address a provider was told beforehand; without a port, a free one is taken.
    """

    def __init__(
        self, name: str, shown: Callable[[str], None], *, way_back: str = "", seconds: float = WAIT_SECONDS
    ) -> None:
        self.name, self._shown, self._seconds = name, shown, seconds
        # INVARIANT: only who was sent here by the sign-in page knows the path; where others can know it, the
        # state of our question.
        self._told = urlsplit(way_back or f"http://127.0.0.1/callback/{secrets.token_urlsafe(32)}")
        self._is_known, self._state = bool(way_back), ""
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._visitors: set[_Visitor] = set()
        self.port = 0

    @property
    def redirect_uri(self) -> str:
        return f"http://{self._host}{self._told.path}"

    @property
    def _host(self) -> str:
        return f"{self._told.hostname}:{self.port}"

    async def open(self) -> None:
        """Listen; only programs on this machine can connect."""
        loop, port = asyncio.get_running_loop(), self._told.port or 0
        try:
            self._server = await loop.create_server(lambda: _Visitor(self), "127.0.0.1", port, backlog=16)
        except OSError as error:
            raise PipeError(
                f"Nobody can come back from the sign-in page of {self.name}: port {port} of this machine"
                f" cannot be used ({error.strerror or 'it is taken'}).",
                remedy="End what uses it, or register another redirectUri.",
                lasting=True,
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def __call__(self, url: str) -> Answer:
        """Show a person where to go and wait for them; raises PipeError when they do not come back."""
        self._check(url)
        if self._answer is not None:
            raise PipeError(
                f"{self.name} does not take the sign-in it has just given: it asks for another.",
                remedy="Ask who runs that server.",
                lasting=True,
            )
        # INVARIANT: before somebody was sent away nobody can come back.
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answer = answer
        self._state = next((value for name, value in parse_qsl(urlsplit(url).query) if name == "state"), "")
        self._shown(url)
        try:
            async with asyncio.timeout(self._seconds):
                return await answer
        except TimeoutError:
            raise PipeError(
                f"Nobody came back from the sign-in page of {self.name} within {_span(self._seconds)}.",
                remedy=f"Run `checkrein servers sign-in {self.name}` again.",
                lasting=True,
            ) from None
        finally:
            self._stop_listening()

    def _check(self, url: str) -> None:
        """INVARIANT: the host a person reads in the address is the one their browser goes to."""
        parts = urlsplit(url)
        if len(url) > LONGEST_URL or not url.isprintable() or "@" in parts.netloc or "\\" in parts.netloc:
            raise PipeError(
                f"{self.name} leads to a sign-in page with an address no person should be sent to.",
                remedy="Ask who runs that server.",
                lasting=True,
            )

    def received(self, target: str, host: str) -> tuple[int, str]:
        """What to tell a browser that asks for this, after taking what it brought."""
        path, _, query = target.partition("?")
        known = secrets.compare_digest(path.encode(), (self._told.path or "/").encode())
        waiting = self._answer
        # INVARIANT: an answer is taken once, at exactly this path, under no other name (DNS rebinding).
        if not known or host != self._host or waiting is None or waiting.done():
            return 404, _NOTHING
        try:
            found = _read(query)
        except ValueError:
            return 400, _UNREADABLE
        if self._is_known and not self._is_ours(found.get("state", "")):
            return 404, _NOTHING
        self._stop_listening()
        if "error" in found:
            waiting.set_exception(_refused(self.name, found))
            return 200, _NOT_DONE
        waiting.set_result(Answer(found["code"], found.get("state"), found.get("iss")))
        return 200, _DONE

    def _is_ours(self, state: str) -> bool:
        return bool(self._state) and secrets.compare_digest(state.encode(), self._state.encode())

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Nobody comes back any more."""
        self._stop_listening()
        if self._answer is not None:
            self._answer.cancel()
        for visitor in list(self._visitors):
            visitor.end()
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._server.wait_closed()

    def admit(self, visitor: _Visitor) -> bool:
        if len(self._visitors) >= MOST_CONNECTIONS:
            return False
        self._visitors.add(visitor)
        return True

    def leave(self, visitor: _Visitor) -> None:
        self._visitors.discard(visitor)


class _Visitor(asyncio.Protocol):
    """One connection: a request is read as far as its head, answered and ended."""

    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A stream's, whatever loop made it.
        self._transport = cast(asyncio.Transport, transport)
        if not self._sign_in.admit(self):
            self._transport.abort()
            return
        self._timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.end)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._answer(*self._asked())
        elif len(self._head) > LARGEST_HEAD:
            self._answer(400, _UNREADABLE)

    def _asked(self) -> tuple[int, str]:
        head = self._head.partition(b"\r\n\r\n")[0]
        try:
            first, *lines = head.decode("ascii").split("\r\n")
            method, target, version = first.split(" ")
        except ValueError:
            return 400, _UNREADABLE
        if len(head) > LARGEST_HEAD or version not in ("HTTP/1.1", "HTTP/1.0"):
            return 400, _UNREADABLE
        hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
        if method != "GET" or len(hosts) != 1:
            return 404, _NOTHING
        return self._sign_in.received(target, hosts[0])

    def _answer(self, status: int, words: str) -> None:
        assert self._transport is not None  # noqa: S101 - it sent something
        body = f'<!doctype html><html lang="en"><title>Checkrein</title><p>{words}</p></html>\n'
        head = f"HTTP/1.1 {status} {_STATUS[status]}\r\n{_HEADERS}content-length: {len(body)}\r\n\r\n"
        self._transport.write(f"{head}{body}".encode("ascii"))
        self._transport.close()

    def end(self) -> None:
        if self._transport is not None:
            # What was said may still be on its way; whoever has said nothing is not waited for.
            (self._transport.close if self._transport.is_closing() else self._transport.abort)()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        if self._timer is not None:
            self._timer.cancel()
        self._sign_in.leave(self)


def _read(query: str) -> dict[str, str]:
    """The parameters that count, each there at most once; raises ValueError."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_VALUES, errors="strict")
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in ("code", "state", "iss", "error", "error_description"):
            if name in found or len(value) > _LONGEST_VALUE or not value.isascii():
                raise ValueError(name)
            found[name] = value
    if ("code" in found) == ("error" in found):
        raise ValueError("neither or both of code and error")
    return found


def _refused(name: str, found: dict[str, str]) -> PipeError:
    said = ": ".join(filter(None, (found["error"], found.get("error_description", ""))))
    words = "".join(char for char in said if char.isprintable())[:200].rstrip(".")
    return PipeError(
        f"The sign-in page of {name} said no ({words}).",
        remedy=f"Run `checkrein servers sign-in {name}` to try again.",
        lasting=True,
    )


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"
