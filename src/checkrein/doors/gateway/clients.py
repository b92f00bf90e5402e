"""Who is connected in front of the gateway, and the requests of theirs that are under way.

Fronts make clients through the hub; the hub and its parts keep on them what belongs to one client only.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from checkrein.doors.gateway.limits import Limit
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INFO_KEY,
    INVALID_PARAMS,
    LEVEL_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Message,
    RpcError,
    meta_of,
    notification,
    outcome,
    request,
)

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
# Requests of one client that may be under way at once; more are refused.
MOST_FLIGHTS = 1_024
Send = Callable[[Message], None]
# Where calls belong whose client names no root.
DEFAULT_PROJECT = "default"


class Exchange(Protocol):
    """One request's way back to its client while it is being handled."""

    def send(self, message: Message) -> None: ...


class Visit:
    """What is remembered of one session: its name on the record, and whose untrusted words it has read.

    `reader`: the agent's process or the client's token, which a restart of ours does not change.
    """

    def __init__(self, session: str, reader: str = "") -> None:
        self.session, self.reader = session, reader
        self.tainted_by = ""
        # Whether the store has it, and which sessions of an earlier server were the reader's.
        self.kept, self.earlier = False, frozenset[str]()
        self.last_used = 0.0


class Flight:
    """A client's request while it is handled."""

    def __init__(self, client: Client, id: str | int, exchange: Exchange) -> None:  # noqa: A002
        # Who sent it, as this request describes them.
        self.client, self.id, self.exchange = client, id, exchange
        self.task: asyncio.Task[Any] | None = asyncio.current_task()
        self.cancelled = False
        self.upstream: object | None = None
        self.limit: Limit | None = None
        self._pauses, self._left = 0, 0.0

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While a person or the client is asked, the request's own time stands still."""
        loop, limit = asyncio.get_running_loop(), self.limit
        when = None if limit is None or limit.expired() else limit.when()
        if self._pauses == 0 and limit is not None and when is not None:
            self._left = when - loop.time()
            limit.reschedule(None)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            # The request may have ended while somebody was still being asked.
            if self._pauses == 0 and limit is not None and limit is self.limit and limit.when() is None:
                limit.reschedule(loop.time() + self._left)

    def cancel(self) -> None:
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()


class Client:
    """A stdio line, a handshake session over HTTP, or the sender of one stateless request."""

    def __init__(self, *, era: str, agent: str, label: str, owner: str, visit: Visit, send: Send) -> None:
        self.id = secrets.token_urlsafe(24)
        self.era, self.agent, self.label, self.owner, self.visit = era, agent, label, owner, visit
        self.send = send
        self.capabilities: Message = {}
        self.info: Message = {}
        self.version = ""
        self.initialized = False
        # Whether an answer given at the client counts as a person's.
        self.speaks_for_person = True
        self.level = ""
        self.flights: dict[str | int, Flight] = {}
        self.subscribed: set[str] = set()
        self.project: asyncio.Future[str] | None = None
        self._asked: dict[str, asyncio.Future[Message]] = {}
        self._count = 0

    def can(self, capability: str, kind: str = "") -> bool:
        """Whether the client declared that it can be asked this."""
        found = self.capabilities.get(capability)
        if not isinstance(found, dict):
            return False
        if capability == "elicitation" and kind:
            # An empty object means forms: the only kind there was when elicitation began.
            return isinstance(found.get(kind), dict) or (kind == "form" and not found)
        return True

    async def ask(self, method: str, params: Message, flight: Flight | None = None) -> Any:
        """A request to the client, on the stream of the request it belongs to; its result."""
        self._count += 1
        # INVARIANT: nobody who did not read the question can answer it, not even one who can write to the
        # pipe its client answers through.
        number = f"checkrein-{self._count}-{secrets.token_hex(8)}"
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        send = flight.exchange.send if flight is not None else self.send
        try:
            send(request(number, method, params))
            return outcome(await answer)
        except asyncio.CancelledError:
            # Answered elsewhere, or given up: a client that still shows it can take it away.
            send(notification("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            self._asked.pop(number, None)

    def answered(self, message: Message) -> None:
        """The client's response to a request of ours; others' and late ones are nobody's."""
        # INVARIANT: an answer reaches only what was asked of this very client.
        found = self._asked.get(message["id"]) if isinstance(message["id"], str) else None
        if found is not None and not found.done():
            found.set_result(message)

    def wants_level(self, level: Any) -> bool:
        """Whether a log line of this level is wanted: in the stateless era only where a request says so."""
        if not self.level:
            return self.era == HANDSHAKE
        if not isinstance(level, str) or level not in LEVELS:
            return True
        return LEVELS.index(level) >= LEVELS.index(self.level)

    def gone(self) -> None:
        """The client left: what it asked for is given up, what it was asked is never answered."""
        for flight in list(self.flights.values()):
            flight.cancel()
        for answer in list(self._asked.values()):
            answer.cancel()


def read_envelope(client: Client, params: Message, versions: tuple[str, ...]) -> None:
    """Take from a stateless request what it says about its sender; raises what is wrong with it."""
    meta = meta_of(params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"params._meta needs {' and '.join(missing)}.")
    version, capabilities, info = meta[VERSION_KEY], meta[CAPABILITIES_KEY], meta.get(INFO_KEY)
    if not isinstance(version, str) or not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, "The protocol version is a text, the capabilities are an object.")
    if version not in versions:
        data = {"supported": list(versions), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"Protocol version {version[:40]} is not spoken here.", data)
    client.version, client.capabilities = version, capabilities
    client.info = info if isinstance(info, dict) else {}
    level = meta.get(LEVEL_KEY)
    client.level = level if isinstance(level, str) and level in LEVELS else ""
