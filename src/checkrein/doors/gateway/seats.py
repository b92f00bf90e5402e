"""A guest's session as the hub sees it: a client at which nobody sits, so that nobody there can be asked.

Guests' requests take a seat for as long as they last. One that stays empty is given away, and what its
session alone used goes with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway.clients import Client, Exchange, Flight, Visit
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    HANDSHAKE_VERSIONS,
    MISSING_CAPABILITY,
    Message,
    RpcError,
)

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

_LONGEST_LINE = 500


class Seat(Client):
    """Its servers are told that nobody can be asked; one that asks all the same is remembered."""

    def __init__(self, door: str, session: str) -> None:
        super().__init__(
            era=HANDSHAKE,
            agent=door,
            label=door,
            owner=f"guest:{door}:{session}",
            visit=Visit(session),
            send=_unheard,
        )
        self.id = f"{door}:{session}"
        self.version, self.initialized, self.speaks_for_person = HANDSHAKE_VERSIONS[-1], True, False
        # Flights whose servers wanted to ask something.
        self.asked: set[str | int] = set()
        self.leaving: asyncio.TimerHandle | None = None
        self._numbers = 0

    def number(self) -> int:
        """For the next request."""
        self._numbers += 1
        return self._numbers

    def can(self, capability: str, kind: str = "") -> bool:  # noqa: ARG002
        """What it cannot do is said where it is asked."""
        return True

    async def ask(self, method: str, params: Message, flight: Flight | None = None) -> Any:  # noqa: ARG002
        if method == "roots/list":
            return {"roots": []}
        # INVARIANT: what a server asks reaches nobody through a guest, and is never answered yes.
        self.asked |= {flight.id} if flight is not None else self.flights.keys()
        raise RpcError(MISSING_CAPABILITY, "There is nobody who can be asked.")


class Seats:
    """Seats by session. Lives on the gateway's loop."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def seat(self, door: str, session: str) -> Seat:
        """The session's own, as long as something of it is under way or was lately."""
        found = self._hub.clients.get(f"{door}:{session}")
        if not isinstance(found, Seat):
            found = Seat(door, session)
            self._hub.clients[found.id] = found
        if found.leaving is not None:
            found.leaving.cancel()
            found.leaving = None
        return found

    @contextlib.contextmanager
    def flight(self, door: str, session: str, name: str, exchange: Exchange) -> Iterator[tuple[Seat, Flight]]:
        """A request of this session, while it is under way."""
        seat = self.seat(door, session)
        flight = seat.flights[name] = Flight(seat, name, exchange)
        try:
            yield seat, flight
        finally:
            seat.flights.pop(name, None)
            seat.asked.discard(name)
            self.leave_later(seat)

    def leave_later(self, seat: Seat) -> None:
        """Give it away unless it is needed again before long."""
        if seat.flights:
            return
        if seat.leaving is not None:
            seat.leaving.cancel()
        idle = self._hub.pipeline.policies.of("", "gateway").settings.gateway.idle_seconds
        seat.leaving = asyncio.get_running_loop().call_later(idle, self._leave, seat)

    def _leave(self, seat: Seat) -> None:
        if not seat.flights and self._hub.clients.get(seat.id) is seat:
            self._hub.leave(seat)


class Latest:
    """A request's way back to its guest: how far it is, told on the guest's own loop.

    INVARIANT: however fast a server says how far it is, one word of it waits to be told.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[str], None]) -> None:
        self._loop, self._tell = loop, tell
        self._said, self._due = "", False
        # Nobody waits for it any more.
        self.over = False

    def send(self, message: Message) -> None:
        if self.over or message.get("method") != "notifications/progress":
            return
        self._said = _line(message.get("params") or {})
        if not self._due:
            self._due = True
            # Whoever waited may be gone, and their loop with them.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._told)

    def _told(self) -> None:
        self._due = False
        if not self.over:
            self._tell(self._said)


def _line(params: Message) -> str:
    said, step, total = params.get("message"), params.get("progress"), params.get("total")
    if isinstance(said, str) and said:
        return said[:_LONGEST_LINE]
    if not _is_number(step):
        return ""
    return f"{step:g} of {total:g}" if _is_number(total) else f"{step:g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1e15)


def _unheard(_message: Message) -> None:
    """There is nobody at the other end."""
