"""A server that listens somewhere: messages go over HTTP. What speaks it is loaded when it is first needed.

INVARIANT: whatever goes wrong, the pipe ends with a reason; nobody waits for an answer that cannot come.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from types import ModuleType
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway.messages import INVALID_REQUEST, Message, RpcError, failure, is_request
from checkrein.doors.gateway.outside import Outside
from checkrein.doors.gateway.pipes import Gone, Hear, Over, PipeError, SignIn

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

_MOST_WAITING = 10_000
_CLOSE_SECONDS = 2.0


class HttpPipe:
    """One connection to a server's URL."""

    pid: int | None = None

    def __init__(self, spec: ServerSpec, hear: Hear, over: Over, *, sign_in: SignIn | None = None) -> None:
        self._spec, self._hear, self._over, self._sign_in = spec, hear, over, sign_in
        self._unsent: asyncio.Queue[Message] = asyncio.Queue()
        self._tail: deque[str] = deque(maxlen=50)
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self.fault: PipeError | None = None
        self.ended = ""

    @property
    def tail(self) -> tuple[str, ...]:
        return tuple(self._tail)

    async def open(self) -> None:
        outside = Outside(self._spec.name, self._spec.url)
        await outside.addresses(self._spec.url)
        client = await _client(self._spec.name)
        opened = asyncio.Event()
        self._running = asyncio.get_running_loop().create_task(self._run(client, outside, opened))
        waiting = asyncio.ensure_future(opened.wait())
        try:
            await asyncio.wait({self._running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not opened.is_set():
            raise self.fault or PipeError(f"{self._spec.name}: {self.ended}.", remedy="Check its url.")

    async def _run(self, client: ModuleType, outside: Outside, opened: asyncio.Event) -> None:
        why = "closed"
        try:
            kept = client.KeptMessages(self._respond)
            streams = client.connected(self._spec, outside, self._sign_in, self._noticed, kept)
            async with streams as (read, write):
                opened.set()
                why = await self._pump(client, kept, read, write)
        except BaseException as error:  # noqa: BLE001 - whatever a transport throws, the pipe is over
            why = self._explained(client, error)
        self._end(why)

    async def _pump(self, client: ModuleType, kept: Any, read: Any, write: Any) -> str:
        """Both ways until one ends or we are told to; why."""
        stamp = client.Stamp()
        loop = asyncio.get_running_loop()
        ways = {
            loop.create_task(self._read(client, kept, stamp, read)): "connection lost: the server closed it",
            loop.create_task(self._write(client, stamp, write)): "connection lost: nothing can be sent",
            loop.create_task(self._until_closing()): "closed",
        }
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            return next(ways[each] for each in done)
        finally:
            for each in ways:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _until_closing(self) -> None:
        await self._closing.wait()

    async def _read(self, client: ModuleType, kept: Any, stamp: Any, read: Any) -> None:
        async for found in read:
            if isinstance(found, Exception):
                self._tail.append(f"not a message: {_shown(found)}")
                continue
            message: Message = client.from_wire(found, kept)
            stamp.incoming(message)
            if not self.ended:
                self._hear(message)

    async def _write(self, client: ModuleType, stamp: Any, write: Any) -> None:
        while True:
            message = await self._unsent.get()
            try:
                ready = client.to_wire(message, stamp.outgoing(message))
            except ValueError:
                self._refuse(message)
                continue
            await write.send(ready)

    def _refuse(self, message: Message) -> None:
        if is_request(message):
            self._hear(failure(message["id"], RpcError(INVALID_REQUEST, "This cannot be sent over HTTP.")))

    def send(self, message: Message) -> None:
        if self.ended or self._running is None:
            raise Gone(self.ended or "not open")
        if self._unsent.qsize() >= _MOST_WAITING:
            self._closing.set()
            raise Gone("it does not read what it is sent")
        self._unsent.put_nowait(message)

    def _respond(self, message: Message) -> None:
        with contextlib.suppress(Gone):
            self.send(message)

    def _noticed(self, status: int, in_session: bool) -> None:
        """What an answer's status says about the connection as a whole."""
        if status == 401 and not self._spec.oauth:
            self._fail(
                f"{self._spec.name} wants to know who we are (HTTP 401).",
                'Give it a header in the servers file, or set "oauth": true and sign in.',
            )
        elif status == 404 and in_session:
            # What was asked comes back as an error; the next one opens a new session.
            asyncio.get_running_loop().call_soon(self._end, "the server forgot our session")
            self._closing.set()

    def _fail(self, message: str, remedy: str) -> None:
        self.fault = PipeError(message, remedy=remedy, lasting=True)
        self._end(message.rstrip("."))
        self._closing.set()

    def _explained(self, client: ModuleType, error: BaseException) -> str:
        cause = _cause(error)
        cause = client.trouble(self._spec.name, cause) or cause
        if isinstance(cause, PipeError):
            self.fault = cause
            return cause.message.rstrip(".")
        if isinstance(cause, asyncio.CancelledError):
            return "closed"
        said = _shown(cause)
        self._tail.append(said)
        self.fault = PipeError(
            f"{self._spec.name} cannot be connected to: {said}.",
            remedy="Check its url in the servers file, and the network.",
        )
        return f"connection lost: {said}"

    def _end(self, why: str) -> None:
        if not self.ended:
            self.ended = why
            self._over(why)

    async def close(self) -> None:
        self._end("closed")
        self._closing.set()
        running = self._running
        if running is None or running is asyncio.current_task():
            return
        # Time to tell the server that the session is over; not more than that.
        await asyncio.wait({running}, timeout=_CLOSE_SECONDS)
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({running}, timeout=_CLOSE_SECONDS)


async def _client(name: str) -> ModuleType:
    """The module that speaks HTTP; loading it takes its time, so it does not happen on the loop."""

    def load() -> ModuleType:
        from checkrein.doors.gateway import http_client

        return http_client

    try:
        return await asyncio.to_thread(load)
    except ImportError as error:
        raise PipeError(
            f"{name}: servers with a url need the `mcp` package ({error.name or error} is missing).",
            remedy="Run `pip install 'checkrein[remote]'`.",
            lasting=True,
        ) from None


def _cause(error: BaseException) -> BaseException:
    """The first real error in what a group of tasks threw."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _shown(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "".join(char for char in text if char.isprintable())[:300].rstrip(".")
