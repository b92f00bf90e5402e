"""What happens in sessions, told to whoever follows them: numbered and kept, so that a lost line goes on.

The agent tells; pages, the HTTP API and the terminal follow. An event's number belongs to one server's life:
who comes back with an older one is told to look anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.doors.chat import Event, EventKind

KEPT = 4_000
# Bytes of one session's events, and of all: results of tools are among them, whole each time.
LARGEST, LARGEST_TOGETHER = 16 << 20, 128 << 20
_MOST_SESSIONS = 256
_SMALL = 256


class Line:
    """One follower of a session. `take` hands out what is new, from any thread."""

    def __init__(self, lines: Lines, session: str, seen: int, tell: Callable[[], None]) -> None:
        self._lines, self._session, self._seen, self.tell = lines, session, seen, tell
        self._reload = False

    def take(self) -> list[Event]:
        """Everything after what was taken before; one `reload` where some of it is gone."""
        events, self._seen, gap = self._lines.since(self._session, self._seen)
        if gap or self._reload:
            self._reload = False
            return [self._lines.reload(self._session, self._seen)]
        return events

    @property
    def last(self) -> str:
        """The id of the newest event that was taken, to go on after it."""
        return self._lines.reload(self._session, self._seen).id

    def begin_anew(self) -> None:
        """What the follower saw last is not of this server's life."""
        self._reload = True

    def close(self) -> None:
        self._lines.leave(self._session, self)


class _Log:
    """A session's last events; `count` is the number of the newest."""

    def __init__(self, count: int) -> None:
        self.events: deque[Event] = deque()
        self.sizes: deque[int] = deque()
        self.count, self.size = count, 0
        self.lines: list[Line] = []

    def add(self, event: Event, size: int) -> None:
        """INVARIANT: the newest event is there, and no more before it than memory has room for."""
        self.events.append(event)
        self.sizes.append(size)
        self.size += size
        while len(self.events) > 1 and (len(self.events) > KEPT or self.size > LARGEST):
            self.events.popleft()
            self.size -= self.sizes.popleft()


class Lines:
    """Every session's events of this server's life. Safe from any thread."""

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._lock = threading.Lock()
        self._logs: OrderedDict[str, _Log] = OrderedDict()
        self._highest = 0

    def tell(self, session: str, kind: EventKind, run: str = "", /, **data: Any) -> None:
        size = _size(kind, data)
        with self._lock:
            log = self._log(session)
            log.count += 1
            self._highest = max(self._highest, log.count)
            log.add(Event(f"{self._epoch}-{log.count}", kind, session, run, data), size)
            if size > _SMALL:
                self._make_room()
            lines = list(log.lines)
        for each in lines:
            # INVARIANT: a follower that is gone costs whoever tells nothing.
            with contextlib.suppress(Exception):
                each.tell()

    def last(self, session: str) -> str:
        """The id of the newest event, to follow from here."""
        with self._lock:
            return f"{self._epoch}-{self._log(session).count}"

    def subscribe(self, session: str, after: str, tell: Callable[[], None]) -> Line:
        """Follow a session after an event; without one, from now. `tell` is called when there is news."""
        with self._lock:
            log = self._log(session)
            number = self._number(after) if after else log.count
            line = Line(self, session, log.count if number is None else min(number, log.count), tell)
            if number is None or number > log.count:
                line.begin_anew()
            log.lines.append(line)
        tell()
        return line

    def since(self, session: str, seen: int) -> tuple[list[Event], int, bool]:
        """Events after a number, the newest number, and whether some between them are gone."""
        with self._lock:
            log = self._log(session)
            missed = log.count - seen
            gap = missed > len(log.events)
            return (list(log.events)[-missed:] if missed and not gap else []), log.count, gap

    def reload(self, session: str, number: int) -> Event:
        return Event(f"{self._epoch}-{number}", "reload", session)

    def leave(self, session: str, line: Line) -> None:
        with self._lock:
            log = self._logs.get(session)
            if log is not None and line in log.lines:
                log.lines.remove(line)

    def followers(self, session: str) -> int:
        with self._lock:
            log = self._logs.get(session)
            return len(log.lines) if log is not None else 0

    def _number(self, event: str) -> int | None:
        epoch, _, number = event.rpartition("-")
        return int(number) if epoch == self._epoch and number.isascii() and number.isdigit() else None

    def _log(self, session: str) -> _Log:
        log = self._logs.get(session)
        if log is None:
            # Above every number given before: an old one is never taken for one of a log begun anew.
            self._forget()
            log = self._logs[session] = _Log(self._highest)
        self._logs.move_to_end(session)
        return log

    def _forget(self) -> None:
        """The longest quiet sessions nobody follows; who returns to one looks anew."""
        spare = [name for name, log in self._logs.items() if not log.lines]
        for name in spare[: max(0, len(self._logs) + 1 - _MOST_SESSIONS)]:
            del self._logs[name]

    def _make_room(self) -> None:
        """The longest quiet sessions give way first; the one that is told of something is the last."""
        over = sum(log.size for log in self._logs.values()) - LARGEST_TOGETHER
        for name in list(self._logs)[:-1]:
            if over <= 0:
                return
            log = self._logs[name]
            over -= log.size
            log.events.clear()
            log.sizes.clear()
            log.size = 0


def _size(kind: EventKind, data: dict[str, Any]) -> int:
    if kind in ("text", "reasoning"):
        return _SMALL + len(data.get("delta", ""))
    try:
        return _SMALL + len(msgspec.json.encode(data))
    except (TypeError, ValueError, RecursionError):
        return LARGEST // 4
