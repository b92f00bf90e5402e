"""MCP clients that started our pump: newline-delimited JSON on the socket or streams the server handed over.

The gateway takes each connection in here; what is read goes to the hub. Decides nothing and judges nobody.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Protocol, cast

import msgspec

from checkrein import peers
from checkrein.doors.gateway.clients import Client, Exchange
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LARGEST,
    STATELESS,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    MalformedError,
    Message,
    RpcError,
    UnreadableError,
    decode,
    encode,
    failure,
    is_request,
    meta_of,
    response,
)
from checkrein.doors.gateway.passing import Passed
from checkrein.doors.gateway.streams import Streams
from checkrein.peers import Peer, Process

# Beyond this much unread by the client nothing more is read from it; beyond MOST_UNSENT it is let go.
HIGH_WATER, LOW_WATER, MOST_UNSENT = 1 << 20, 256 << 10, 64 << 20
# A client that closes its side has left; what can be answered at once still is.
GRACE_SECONDS = 1.0
LAST_WORDS_SECONDS = 5.0
MOST_LINES = 256
# Of one client: how long the requests under way may be together, unless it is one alone.
MOST_HELD = 2 * LARGEST
_LONGEST_NAME = 40
# A request that lasts as long as its client likes, and is no work under way.
_LISTEN = "subscriptions/listen"
# Who merely stands between an MCP client and the pump it starts.
_BETWEEN = frozenset(
    {"sh", "bash", "dash", "zsh", "fish", "env", "npm", "npx", "uv", "uvx", "pipx", "checkrein"}
)
# Whose own name says less than that of the script it runs.
_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno", "python", "python3", "MainThread"})


class Hub(Protocol):
    """What a front needs of the hub."""

    def meet(
        self,
        *,
        era: str,
        agent: str,
        label: str,
        owner: str,
        send: Callable[[Message], None],
        reader: str = "",
    ) -> Client: ...

    async def handle(self, client: Client, message: Message, exchange: Exchange) -> Message | None: ...

    def hear(self, client: Client, message: Message) -> None: ...

    def leave(self, client: Client) -> None: ...


class Who(msgspec.Struct, frozen=True):
    """The program at the other end, as the system tells it: nothing of it is the client's own word."""

    agent: str
    label: str
    owner: str
    # The agent's own process, which has read what any of its connections has.
    reader: str = ""


def identify(peer: Peer) -> Who:
    """Who started the pump. Looks at processes, which takes a moment: not to be called on the loop."""
    line = peers.lineage(peer.pid)
    started = line[0].started if line else ""
    found = next(((each, name) for each in line[1:] if (name := _name(each)) not in _BETWEEN), None)
    owner = f"stdio:{peer.pid}-{started}"
    if found is None or found[0].pid <= 1:
        return Who("unknown program", f"unknown program (pid {peer.pid})", owner)
    process, agent = found
    # A pump ends with our server; the agent that starts the next one has read what it has read.
    return Who(agent, f"{agent} (pid {process.pid})", owner, f"stdio:{process.pid}-{process.started}")


def _name(process: Process) -> str:
    """What people call the program: an interpreter's script rather than the interpreter."""
    name = process.name
    if name in _INTERPRETERS or name.startswith("python3."):
        script = next((word for word in peers.words_of(process.pid)[1:] if not word.startswith("-")), "")
        name = PurePath(script).stem or name
    shown = "".join(each for each in name if each.isprintable()).strip()
    return shown[:_LONGEST_NAME] or "unknown program"


class StdioFront:
    """Every line there is, and room for so many and no more."""

    def __init__(self, hub: Hub, say: Callable[[str], None], most: int = MOST_LINES) -> None:
        self._hub, self._say, self._most = hub, say, most
        self.lines: set[Line] = set()

    async def take(
        self,
        connection: socket.socket,
        who: Who,
        speaks_for_person: bool,
        passed: Passed | None = None,
    ) -> None:
        """Serve a connection from now on; it is ours, whatever becomes of it.

        `speaks_for_person`: whether an answer given at this client counts as a person's.
        `passed`: what to read from and write to; `connection` then only shows that the pump is there.
        """
        # Whoever gave up waiting for us closes what they had: that must not be what we have now.
        connection = socket.socket(fileno=connection.detach())
        passed = passed.detach() if passed is not None else None
        if len(self.lines) >= self._most:
            self._say(f"{who.label} was turned away: {self._most} MCP clients are connected")
            connection.close()
            if passed is not None:
                passed.close()
            return
        connection.setblocking(False)
        line = Line(self._hub, who, speaks_for_person, self.lines, self._say)
        if passed is not None:
            Streams(line, connection, passed).open()
            return
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: line, connection)
        except OSError:
            connection.close()

    @property
    def busy(self) -> int:
        """How many requests are being handled."""
        return sum(line.busy for line in self.lines)

    def close(self) -> None:
        for line in list(self.lines):
            line.end()


class Line(asyncio.Protocol):
    """One client's connection, from its first byte to its last."""

    def __init__(
        self, hub: Hub, who: Who, speaks_for_person: bool, lines: set[Line], say: Callable[[str], None]
    ) -> None:
        self._hub, self._who, self._speaks, self._lines, self._say = hub, who, speaks_for_person, lines, say
        self._transport: asyncio.Transport | None = None
        self._client: Client | None = None
        self._era = ""
        self._running: dict[asyncio.Task[None], int] = {}
        self._held = 0
        # The beginning of a line whose end has not come; and what came in when we had to pause.
        self._part = bytearray()
        self._unread = b""
        self._full = self._opening = self._ending = False

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER, LOW_WATER)
        self._lines.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        self._transport = None
        self._lines.discard(self)
        # INVARIANT: a client that left has nothing under way any more.
        for task in list(self._running):
            task.cancel()
        if self._client is not None:
            self._hub.leave(self._client)

    def eof_received(self) -> bool:
        self._ending = True
        # The last line may have no end of its own.
        self.data_received(b"\n")
        if not self._finish():
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self.end)
        return True

    def pause_writing(self) -> None:
        self._full = True
        self._hold()

    def resume_writing(self) -> None:
        self._full = False
        self._go_on()

    @property
    def busy(self) -> int:
        return sum(task.get_name() != _LISTEN for task in self._running)

    def end(self) -> None:
        """Let go of the client, after what was said to it already."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.close()
        if transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(LAST_WORDS_SECONDS, transport.abort)

    # Reading

    def data_received(self, data: bytes) -> None:
        if self._full or self._opening or self._unread:
            self._unread += data
        else:
            self._split(data)

    def _split(self, data: bytes) -> None:
        """Take the lines out of a piece; only a line that came in several pieces is copied."""
        start = 0
        while (stop := data.find(b"\n", start)) >= 0:
            line = memoryview(data)[start:stop]
            start = stop + 1
            if len(self._part) + len(line) > LARGEST:
                self._too_long()
            elif self._part:
                whole, self._part = self._part, bytearray()
                whole += line
                self._read(whole)
            else:
                self._read(line)
            if self._transport is None or self._transport.is_closing():
                return
            if self._full or self._opening:
                self._unread = data[start:]
                self._hold()
                return
        self._part += memoryview(data)[start:]
        if len(self._part) > LARGEST:
            self._too_long()

    def _too_long(self) -> None:
        """There is no telling where the next message begins, so this was the last."""
        self._part = bytearray()
        text = f"A message may have {LARGEST:,} bytes; this one has more."
        self.send(failure(None, RpcError(INVALID_REQUEST, text)))
        self.end()

    def _hold(self) -> None:
        # INVARIANT: a client that does not read what it is sent is not read from either.
        if self._transport is not None and not (self._ending or self._transport.is_closing()):
            self._transport.pause_reading()

    def _go_on(self) -> None:
        """What held us up is over: first what was read already, then the rest."""
        transport = self._transport
        if self._full or self._opening or transport is None:
            return
        unread, self._unread = self._unread, b""
        self._split(unread)
        if not (self._unread or self._ending or transport.is_closing()):
            transport.resume_reading()
        self._finish()

    def _finish(self) -> bool:
        """End a connection whose client has no more to say, once everything is answered."""
        if not self._ending or self._running or self._unread:
            return False
        self.end()
        return True

    def _read(self, line: memoryview | bytearray) -> None:
        try:
            message = decode(line)
        except UnreadableError as error:
            self._unreadable(error)
            return
        except MalformedError as error:
            if bytes(line[:64]).strip():
                self.send(failure(error.id, error))
            return
        if is_request(message):
            self._receive(message, len(line))
        elif self._client is not None:
            # Behind the first step of the requests before it, so that a cancellation finds its request.
            asyncio.get_running_loop().call_soon(self._hear, message)

    def _unreadable(self, error: UnreadableError) -> None:
        # INVARIANT: a request that cannot be read is answered by its id, and never run.
        if error.asks:
            self.send(error.answer)
        elif error.responds:
            # Who asked the client waits no longer: the answer was none.
            asyncio.get_running_loop().call_soon(self._hear, error.answer)

    def _hear(self, message: Message) -> None:
        if self._client is None or self._transport is None:
            return
        try:
            self._hub.hear(self._client, message)
        except Exception as error:  # noqa: BLE001 - one bad message ends itself, not the client
            self._say(f"a message of {self._who.label} failed: {type(error).__name__}: {error}")

    def _receive(self, message: Message, size: int) -> None:
        """A request: the first one says which era the connection belongs to, the others keep to it."""
        stateless = message["method"] != "initialize" and VERSION_KEY in meta_of(message.get("params", {}))
        self._era = self._era or (STATELESS if stateless else HANDSHAKE)
        refused = _refused(message, self._era, stateless)
        if refused is not None:
            self.send(failure(message["id"], refused))
        elif self._era == HANDSHAKE and self._client is None and message["method"] != "initialize":
            self._before(message)
        elif self._held and self._held + size > MOST_HELD:
            # INVARIANT: what a client sends and does not wait for takes a bounded amount of memory.
            text = "Too much is under way already; wait for an answer."
            self.send(failure(message["id"], RpcError(INVALID_REQUEST, text)))
        else:
            self._start(message, size)

    def _before(self, message: Message) -> None:
        """Nobody has introduced themselves yet."""
        if message["method"] == "ping":
            self.send(response(message["id"], {}))
            return
        text = f"The first request is `initialize`; `{message['method'][:80]}` comes after it."
        self.send(failure(message["id"], RpcError(INVALID_REQUEST, text)))

    def _start(self, message: Message, size: int) -> None:
        if self._client is None:
            who = self._who
            self._client = self._hub.meet(
                era=self._era,
                agent=who.agent,
                label=who.label,
                owner=who.owner,
                send=self.send,
                reader=who.reader,
            )
            self._client.speaks_for_person = self._speaks
            # What follows the handshake may rely on it.
            self._opening = self._era == HANDSHAKE
        task = asyncio.get_running_loop().create_task(
            self._handle(self._client, message), name=_LISTEN if message["method"] == _LISTEN else None
        )
        self._running[task] = size
        self._held += size
        task.add_done_callback(self._done)

    async def _handle(self, client: Client, message: Message) -> None:
        try:
            answer = await self._hub.handle(client, message, self)
        except RpcError as error:
            answer = failure(message["id"], error)
        except Exception as error:  # noqa: BLE001 - INVARIANT: an error is an answer, never a result
            self._say(f"a request of {self._who.label} failed: {type(error).__name__}: {error}")
            answer = failure(message["id"], RpcError(INTERNAL_ERROR, "Checkrein could not handle this."))
        if answer is not None:
            self.send(answer)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._held -= self._running.pop(task, 0)
        if self._opening:
            self._opening = False
            self._go_on()
        self._finish()

    # Writing

    def send(self, message: Message) -> None:
        """One message to the client; dropped when there is nobody any more."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            transport.write(encode(message) + b"\n")
        except Exception as error:  # noqa: BLE001 - what cannot be written harms nobody else
            self._say(f"a message to {self._who.label} cannot be written: {type(error).__name__}: {error}")
            if "method" not in message:
                text = "The answer cannot be written as JSON."
                transport.write(encode(failure(message.get("id"), RpcError(INTERNAL_ERROR, text))) + b"\n")
        if transport.get_write_buffer_size() > MOST_UNSENT:
            # INVARIANT: a client that never reads takes a bounded amount of memory.
            self._say(f"{self._who.label} was let go: it does not read what it is sent")
            transport.abort()


def _refused(message: Message, era: str, stateless: bool) -> RpcError | None:
    """Why a request does not belong on a connection of this era."""
    if era == HANDSHAKE and stateless:
        text = "This connection began with the handshake; requests with an envelope are not taken on it."
        return RpcError(INVALID_REQUEST, text)
    if era == STATELESS and message["method"] == "initialize":
        wanted: Any = message.get("params", {}).get("protocolVersion")
        data: Message = {"supported": list(STATELESS_VERSIONS)}
        if isinstance(wanted, str):
            data["requested"] = wanted
        text = (
            f"This connection began without a handshake, as {STATELESS_VERSIONS[0]} says; it takes none now."
        )
        return RpcError(UNSUPPORTED_VERSION, text, data)
    return None
