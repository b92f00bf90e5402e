"""Handshake sessions over HTTP: opened by `initialize`, found by id, ended by their client or by time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from checkrein.doors.gateway.clients import Client
from checkrein.doors.gateway.event_stream import EventStream, event
from checkrein.doors.gateway.http_trail import Trails
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.tokens import Holder

# Messages that belong to no request wait for a stream to carry them; the oldest make way.
MOST_KEPT, MOST_KEPT_BYTES = 256, 1 << 20
Meet = Callable[[Callable[[Message], None]], Client]


class HttpLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the HTTP front takes, and how long it waits."""

    connections: int = 256
    # Of one client: sessions open at once, and requests under way at once.
    sessions: int = 64
    requests: int = 256
    # How long headers may take, then the body; after how much silence we say that we are still here.
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    quiet_seconds: float = 15.0
    # A connection nobody uses ends after this long.
    idle_seconds: float = 75.0
    # A session nobody uses ends after this long; it makes way for a new one of its client much sooner.
    session_seconds: float = 86_400.0
    spare_seconds: float = 60.0
    beat_seconds: float = 5.0


class Session:
    """A handshake client: it belongs to the token that opened it, and to nobody else."""

    def __init__(self, holder: Holder, now: float, meet: Meet) -> None:
        self.holder, self.last_used, self.busy = holder, now, 0
        self.stream: EventStream | None = None
        self._kept: deque[bytes] = deque()
        self._size = 0
        self.trails = Trails()
        self.client = meet(self.deliver)
        self.id = self.client.id.encode()

    @property
    def idle(self) -> bool:
        return not self.busy and self.stream is None

    def deliver(self, message: Message) -> None:
        """A message that belongs to no request: now when the client listens, else when it does."""
        data = event(message)
        if self.stream is not None and self.stream.put(data):
            return
        self._kept.append(data)
        self._size += len(data)
        while self._kept and (len(self._kept) > MOST_KEPT or self._size > MOST_KEPT_BYTES):
            self._size -= len(self._kept.popleft())

    def listen(self, stream: EventStream) -> None:
        self.stream = stream
        for data in self._kept:
            stream.put(data)
        self._kept.clear()
        self._size = 0

    def unlisten(self, stream: EventStream) -> None:
        if self.stream is stream:
            self.stream = None


class Sessions:
    """All of them, by id."""

    def __init__(self, limits: HttpLimits, leave: Callable[[Client], None]) -> None:
        self._limits, self._leave = limits, leave
        self._all: dict[bytes, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._all.values()))

    def add(self, holder: Holder, now: float, meet: Meet) -> Session | None:
        """A new one; None when its client has as many as it may, and uses them."""
        own = [each for each in self._all.values() if each.holder.id == holder.id]
        if len(own) >= self._limits.sessions:
            spare = min((each for each in own if each.idle), key=lambda each: each.last_used, default=None)
            if spare is None or now - spare.last_used < self._limits.spare_seconds:
                return None
            self.end(spare)
        session = Session(holder, now, meet)
        self._all[session.id] = session
        return session

    def find(self, given: bytes, holder: Holder) -> Session | None:
        session = self._all.get(given)
        # INVARIANT: a session serves the token that opened it; to others it does not exist.
        return session if session is not None and session.holder.id == holder.id else None

    def end(self, session: Session) -> None:
        if self._all.pop(session.id, None) is None:
            return
        if session.stream is not None:
            session.stream.end()
        self._leave(session.client)

    def end_of(self, token: str) -> None:
        """All that were opened with this token (by id)."""
        for session in self:
            if session.holder.id == token:
                self.end(session)

    def expire(self, now: float) -> None:
        for session in self:
            if session.idle and now - session.last_used > self._limits.session_seconds:
                self.end(session)
