"""MCP over streamable HTTP, in both eras, on loopback: `/mcp` for clients with a token, and `/health`.

Runs on the gateway's loop. Every request is looked at here before the hub hears of it. Tokens go no further.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

from checkrein.doors.gateway import http_headers, http_rules
from checkrein.doors.gateway.clients import Client
from checkrein.doors.gateway.event_stream import EventStream
from checkrein.doors.gateway.http_answers import (
    CLOSE,
    Pairs,
    Refused,
    busy,
    no,
    read_body,
    refuse,
    send_json,
    send_nothing,
    too_large,
)
from checkrein.doors.gateway.http_entrance import PATH, Entrance
from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.http_headers import LAST_EVENT, SESSION, VERSION, Found
from checkrein.doors.gateway.http_line import Lines, line_maker
from checkrein.doors.gateway.http_sessions import HttpLimits, Session, Sessions
from checkrein.doors.gateway.http_turn import Turn
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    INFO_KEY,
    INTERNAL_ERROR,
    LARGEST,
    MalformedError,
    Message,
    RpcError,
    UnreadableError,
    decode,
    failure,
    is_request,
    is_response,
    meta_of,
)
from checkrein.doors.gateway.tokens import Holder, Tokens
from checkrein.errors import StoreError
from checkrein.peers import Peer
from checkrein.runtime import LOOPBACK, listen_on_loopback

CANCELLED = -32800
# What the hub calls whoever shows a token: this and the token's id.
_OWNER = "http:"
_ALLOWED: Pairs = ((b"allow", b"POST, GET, DELETE"),)
_GIVEN_UP = {
    "late": (408, "The body did not come in time."),
    "revoked": (401, "This token was revoked."),
    "closing": (503, "The gateway is closing."),
}
_NEXT_PORTS, _BACKLOG, _CLOSING_SECONDS = 20, 128, 2.0
_MOST_DECLARED = 4096


class Hub(Protocol):
    """What requests are handed to."""

    def meet(
        self, *, era: str, agent: str, label: str, owner: str, send: Callable[[Message], None]
    ) -> Client: ...

    def passing(self, *, agent: str, label: str, owner: str, meta: Message) -> Client: ...

    async def handle(self, client: Client, message: Message, exchange: Exchange) -> Message | None: ...

    def hear(self, client: Client, message: Message) -> None: ...

    def leave(self, client: Client) -> None: ...

    def input_schema(self, name: str) -> Message | None: ...


class HttpFront:
    """The door for clients that speak HTTP; `open` listens, `close` leaves nothing behind."""

    def __init__(
        self,
        hub: Hub,
        tokens: Tokens,
        say: Callable[[str], None],
        limits: HttpLimits | None = None,
        speaks: Callable[[Peer], bool] | None = None,
    ) -> None:
        """`speaks`: whether an answer given by that process counts as a person's; asked in another thread."""
        self._hub, self._say, self._limits = hub, say, limits or HttpLimits()
        self.port = 0
        self._entrance = Entrance(tokens, self._limits.requests, speaks)
        self._lines: Lines = {}
        self._live: set[Exchange] = set()
        self.sessions = Sessions(self._limits, hub.leave)
        self._declared: dict[str, tuple[Message, tuple[http_rules.Declared, ...]]] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}{PATH}"

    @property
    def busy(self) -> int:
        """Requests under way; whoever only listens is not one."""
        return sum(each.cancels or each.session is not None for each in self._live)

    async def open(self, port: int) -> int:
        """Listen on loopback, on another port where this one is taken; the port that was found."""
        listener = _listening(port)
        self.port = listener.getsockname()[1]
        self._entrance.open(self.port)
        make, self._tasks = line_maker(self, self._lines, self._limits.connections)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(make, sock=listener, backlog=_BACKLOG)
        self._timer = loop.call_later(self._limits.beat_seconds, self._beat)
        return self.port

    async def close(self) -> None:
        """Stop listening, give up what is under way, end every session."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        if self._timer is not None:
            self._timer.cancel()
        for session in self.sessions:
            self.sessions.end(session)
        for exchange in list(self._live):
            exchange.give_up("closing")
        for line in list(self._lines.values()):
            line.shutdown()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=_CLOSING_SECONDS)
        for line in list(self._lines.values()):
            line.abort()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), _CLOSING_SECONDS)

    def revoke(self, owner: str) -> None:
        """INVARIANT: with its token all that a client has here ends at once. `owner` as the hub knows it."""
        token = owner.removeprefix(_OWNER)
        for exchange in list(self._live):
            if exchange.holder is not None and exchange.holder.id == token:
                exchange.give_up("revoked")
        self.sessions.end_of(token)

    def _beat(self) -> None:
        """Once in a while: who is too slow, who has heard nothing for long, which session nobody uses."""
        loop, limits = asyncio.get_running_loop(), self._limits
        now = loop.time()
        self._timer = loop.call_later(limits.beat_seconds, self._beat)
        for line in list(self._lines.values()):
            idle = line.request is None and now - line.rested > limits.idle_seconds
            if idle or now - line.since > limits.head_seconds:
                line.abort()
        for exchange in list(self._live):
            waited = now - exchange.began
            if not exchange.read and waited > limits.body_seconds:
                exchange.give_up("late")
            elif exchange.read and not exchange.why and waited >= limits.quiet_seconds:
                exchange.open_stream().breathe(now, limits.quiet_seconds)
        self.sessions.expire(now)

    async def __call__(self, turn: Turn) -> None:
        """One request, as its connection hands it over."""
        line = self._lines.get(turn.address)
        if line is None:
            return
        exchange = Exchange(turn, time.monotonic(), line.abort)
        line.busy(exchange)
        self._live.add(exchange)
        try:
            holder = self._entrance.let_in(exchange, line)
            if holder is None:
                await send_json(exchange, {"status": "ok"})
            elif turn.head.method == "POST":
                await self._post(exchange, holder)
            else:
                await self._other(turn.head.method, exchange, holder)
        except Refused as refused:
            await refuse(exchange, refused)
        except asyncio.CancelledError:
            await _given_up(exchange)
        except Exception as error:  # noqa: BLE001 - whoever asked hears of it, and nobody else suffers
            self._say(f"A request to {PATH} failed: {type(error).__name__}: {error}")
            await refuse(exchange, no(500, "The gateway failed.", code=INTERNAL_ERROR))
        finally:
            self._live.discard(exchange)
            exchange.let_go()
            line.idle(exchange)

    async def _post(self, exchange: Exchange, holder: Holder) -> None:
        head = exchange.turn.head
        is_json, accepts = head.kinds()
        if not is_json:
            raise no(415, "The body has to be application/json.")
        if accepts != (True, True):
            raise no(406, "Accept has to name application/json and text/event-stream.")
        if exchange.turn.length > LARGEST:
            raise too_large()
        body = await read_body(exchange)
        if body is None:
            return
        exchange.read = True
        try:
            message = decode(body)
        except UnreadableError as error:
            # INVARIANT: over HTTP, too, a request that cannot be read is answered by its id, and never run.
            await self._unreadable(error, exchange, holder)
            return
        except MalformedError as error:
            raise Refused(400, error, error.id) from None
        found, _ = head.found()
        if http_rules.era_of(found, message) == HANDSHAKE:
            await self._in_session(found, message, exchange, holder)
        else:
            await self._alone(found, message, exchange, holder)

    async def _unreadable(self, error: UnreadableError, exchange: Exchange, holder: Holder) -> None:
        """A valid message that cannot be read: answered as its era answers, and handed to nobody."""
        found, _ = exchange.turn.head.found()
        in_session = http_rules.era_of(found, {}) == HANDSHAKE and SESSION in found
        if in_session and error.responds:
            # Who asked the client waits no longer: this is the answer.
            await self._in_session(found, error.answer, exchange, holder)
            return
        if in_session:
            self._session(found, holder).last_used = exchange.began
        if not (error.asks or error.responds):
            await send_nothing(exchange, 202)
        elif in_session:
            await send_json(exchange, error.answer)
        else:
            raise Refused(400, error, error.id)

    async def _other(self, method: str, exchange: Exchange, holder: Holder) -> None:
        """What sessions have besides messages: a stream to listen on, and an end."""
        found, _ = exchange.turn.head.found()
        if method not in ("GET", "DELETE"):
            raise no(405, "This cannot be done here.", headers=_ALLOWED)
        if http_rules.era_of(found, {}) != HANDSHAKE:
            raise no(405, "This protocol version has no sessions.", headers=((b"allow", b"POST"),))
        if method == "GET":
            await self._listen(found, exchange, holder)
        else:
            self.sessions.end(self._session(found, holder))
            await send_nothing(exchange, 200)

    async def _in_session(self, found: Found, message: Message, exchange: Exchange, holder: Holder) -> None:
        """The handshake era: a message of a session, or the one that opens it."""
        asks = is_request(message)
        opens = asks and message["method"] == "initialize" and SESSION not in found
        session = self._met(message, exchange, holder) if opens else self._session(found, holder)
        if opens:
            # Who stands behind a connection is looked up only where a person may be asked there.
            session.client.speaks_for_person = _can_ask(message) and await self._is_person(exchange)
        if not asks:
            # INVARIANT: a question put to a person's client is not answered by a program that an agent runs.
            asked = is_response(message) and session.client.speaks_for_person
            if asked and not await self._is_person(exchange):
                raise no(403, "Answers come from the client that was asked.")
            session.last_used = exchange.began
            self._hub.hear(session.client, message)
            await send_nothing(exchange, 202)
            return
        exchange.session, exchange.cancels = session, False
        session.busy += 1
        try:
            answer = await self._handled(session.client, message, exchange)
        finally:
            session.busy -= 1
            session.last_used = time.monotonic()
        if opens and "error" in answer:
            exchange.lines = b""
            self.sessions.end(session)
        await send_json(exchange, answer)

    def _met(self, message: Message, exchange: Exchange, holder: Holder) -> Session:
        label = _label(message.get("params", {}).get("clientInfo"))
        owner = _OWNER + holder.id

        def meet(send: Callable[[Message], None]) -> Client:
            return self._hub.meet(era=HANDSHAKE, agent=holder.name, label=label, owner=owner, send=send)

        session = self.sessions.add(holder, exchange.began, meet)
        if session is None:
            raise busy("Too many sessions are open.", self._limits.spare_seconds)
        exchange.lines = _named(session)
        return session

    def _session(self, found: Found, holder: Holder) -> Session:
        given = found.get(SESSION)
        if given is None:
            raise no(400, "The header mcp-session-id is missing: begin with `initialize`.")
        session = self.sessions.find(given, holder)
        if session is None:
            raise no(404, "There is no such session: begin again with `initialize`.")
        return session

    async def _listen(self, found: Found, exchange: Exchange, holder: Holder) -> None:
        """Carry what belongs to no request, or the rest of a response that was lost on its way."""
        if not http_headers.accepts(found)[1]:
            raise no(406, "Accept has to name text/event-stream.")
        session = self._session(found, holder)
        picked_up = session.trails.find(found.get(LAST_EVENT, b""))
        if picked_up[0].followed if picked_up else session.stream is not None and not session.stream.lost:
            raise no(409, "This session listens already.")
        stream = EventStream(exchange.turn, _named(session), exchange.began)
        exchange.read, exchange.cancels, exchange.stream = True, False, stream
        if picked_up:
            picked_up[0].follow(stream, picked_up[1])
        else:
            session.listen(stream)
        try:
            await stream.run()
        finally:
            session.unlisten(stream)
            session.last_used = time.monotonic()

    async def _alone(self, found: Found, message: Message, exchange: Exchange, holder: Holder) -> None:
        """The stateless era: a request that says everything about itself, twice."""
        if is_response(message):
            raise no(400, "Nobody asked: answers go into the next request.")
        known, params = message.get("id"), message.get("params", {})
        try:
            if not is_request(message):
                # Nothing of this era could act on it: who cancels closes the response.
                http_rules.check_version(found.get(VERSION, b"").decode("latin-1"))
                await send_nothing(exchange, 202)
                return
            http_rules.check_request(found, message)
            if message["method"] == "tools/call":
                self._check_parameters(found, params)
            meta = meta_of(params)
            label = _label(meta.get(INFO_KEY))
            client = self._hub.passing(agent=holder.name, label=label, owner=_OWNER + holder.id, meta=meta)
        except RpcError as error:
            raise Refused(400, error, known) from None
        if message["method"] == "tools/call" and client.can("elicitation"):
            client.speaks_for_person = await self._is_person(exchange)
        answer = await self._handled(client, message, exchange)
        await send_json(exchange, answer, http_rules.status_of(answer))

    async def _is_person(self, exchange: Exchange) -> bool:
        return await self._entrance.is_person(self._lines.get(exchange.turn.address))

    def _check_parameters(self, found: Found, params: Message) -> None:
        name = params.get("name")
        schema = self._hub.input_schema(name) if isinstance(name, str) else None
        if not isinstance(name, str) or schema is None:
            return
        kept = self._declared.get(name)
        if kept is None or kept[0] is not schema:
            if len(self._declared) > _MOST_DECLARED:
                self._declared.clear()
            kept = self._declared[name] = schema, http_rules.declared(schema)
        if kept[1]:
            http_rules.check_parameters(found, kept[1], params.get("arguments"))

    async def _handled(self, client: Client, message: Message, exchange: Exchange) -> Message:
        try:
            answer = await self._hub.handle(client, message, exchange)
        except RpcError as error:
            return failure(message["id"], error)
        except Exception as error:  # noqa: BLE001 - a fault of ours is an answer too
            self._say(f"{message['method'][:60]!r} failed: {type(error).__name__}: {error}")
            return failure(message["id"], RpcError(INTERNAL_ERROR, "The gateway failed."))
        if answer is None:
            if exchange.why:
                raise asyncio.CancelledError
            # Taken back by the client's own word, or with its session; HTTP owes an answer all the same.
            return failure(message["id"], RpcError(CANCELLED, "The request was cancelled."))
        return answer


async def _given_up(exchange: Exchange) -> None:
    """We cancelled it ourselves: its client, where there still is one, hears why."""
    task = asyncio.current_task()
    if not exchange.why or task is None:
        raise asyncio.CancelledError
    task.uncancel()
    if exchange.why in _GIVEN_UP:
        await refuse(exchange, no(*_GIVEN_UP[exchange.why], headers=CLOSE))


def _named(session: Session) -> bytes:
    return b"%b: %b\r\n" % (SESSION, session.id)


def _can_ask(message: Message) -> bool:
    """Whether a client that begins a session says that it can put questions to a person."""
    declared = message.get("params", {}).get("capabilities")
    return isinstance(declared, dict) and "elicitation" in declared


def _label(info: Any) -> str:
    """What a client calls itself: for people to read, never to decide by."""
    words = [info.get(key) for key in ("name", "version")] if isinstance(info, dict) else []
    text = " ".join(each[:60] for each in words if isinstance(each, str))
    return "".join(each if each.isprintable() else "?" for each in text)


def _listening(port: int) -> socket.socket:
    found = listen_on_loopback((*range(port, min(port + _NEXT_PORTS, 65_536)), 0), _BACKLOG)
    if found is None:
        raise StoreError("No loopback port can be had for the gateway.", remedy="Run `checkrein doctor`.")
    found.setblocking(False)
    return found
