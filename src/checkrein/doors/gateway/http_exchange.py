"""One HTTP request while it is handled: the way back to its client, and what happens when one of both goes.

The answer is JSON; as soon as something has to go before it, the response becomes a stream of events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from checkrein.doors.gateway.event_stream import EventStream, event
from checkrein.doors.gateway.http_sessions import Session
from checkrein.doors.gateway.http_trail import SINCE, Trail
from checkrein.doors.gateway.http_turn import Turn
from checkrein.doors.gateway.messages import Message, is_request
from checkrein.doors.gateway.tokens import Holder


class Exchange:
    """Made by the front for each request; the hub sends through it while it handles the request."""

    __slots__ = (
        *("_abort", "_trail", "_writer", "began", "cancels", "held", "holder", "lines"),
        *("read", "session", "stream", "turn", "why"),
    )

    def __init__(self, turn: Turn, now: float, abort: Callable[[], None]) -> None:
        self.turn, self.began, self._abort = turn, now, abort
        self._writer: asyncio.Task[None] | None = None
        self.holder: Holder | None = None
        # How much of the request's body was read.
        self.held = 0
        self.session: Session | None = None
        self._trail: Trail | None = None
        self.stream: EventStream | None = None
        # Headers of the response besides those that all have, as they are sent.
        self.lines = b""
        # Why nothing is sent any more: lost (the client left), late (its body never came), revoked,
        # closing, answered.
        self.why = ""
        # Whether the request was read to its end, and whether a client that leaves takes it along.
        self.read, self.cancels = False, True

    def hold(self, size: int) -> int:
        """So much more of the body is here; how much its client has under way altogether."""
        self.held += size
        if self.holder is None:
            return self.held
        self.holder.held += size
        return self.holder.held

    def let_go(self) -> None:
        """The request is over."""
        if self.holder is not None:
            self.holder.under_way -= 1
            self.holder.held -= self.held

    def send(self, message: Message) -> None:
        """A message that goes before the answer."""
        if self.why == "lost":
            self._send_elsewhere(message)
        elif not self.why:
            self.open_stream()
            self._put(event(message))

    def _send_elsewhere(self, message: Message) -> None:
        """In a session the client may still be there: it listens on another stream, or will come back."""
        session = self.session
        if session is None:
            return
        if is_request(message) and (self._trail is None or session.stream is not None):
            session.deliver(message)
        elif self._trail is not None:
            self._trail.send(event(message))

    def _put(self, data: bytes) -> None:
        written = self._trail.send(data) if self._trail is not None else self.open_stream().put(data)
        if not written:
            self._abort()

    def open_stream(self) -> EventStream:
        if self.stream is None:
            loop = asyncio.get_running_loop()
            self.stream = EventStream(self.turn, self.lines, self.began)
            if self.session is not None and self.session.client.version >= SINCE:
                self._trail = self.session.trails.open()
                self.stream.put(self._trail.primer)
                self._trail.stream = self.stream
            self._writer = loop.create_task(self.stream.run())
        return self.stream

    async def finish(self, message: Message) -> None:
        """The answer, after everything that went before it; kept for a client that comes back."""
        stream = self.open_stream()
        self._put(event(message))
        if self._trail is not None:
            self._trail.finish()
        stream.end()
        if self._writer is not None:
            await self._writer

    def lose(self) -> None:
        """The client left. A stateless request goes with it; in a session it goes on."""
        self.give_up("lost", self.cancels or not self.read)

    def give_up(self, why: str, cancel: bool = True) -> None:
        if self.why:
            return
        self.why = why
        if self.stream is not None:
            self.stream.lose()
        if cancel and self.turn.task is not None:
            self.turn.task.cancel()
