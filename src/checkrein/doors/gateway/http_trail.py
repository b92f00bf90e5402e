"""What went out on a session's response streams, numbered: a client that lost one can pick it up again.

The HTTP front keeps it from the first event of a stream on; a client comes back with the last number it saw.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from checkrein.doors.gateway.event_stream import EventStream

# Clients of this version and later understand the event without data that a stream begins with.
SINCE = "2025-11-25"
# Of one session; what is oldest is forgotten first.
MOST_TRAILS, MOST_BYTES = 32, 4 << 20
_COME_BACK_AFTER = 1_000


class Trail:
    """One response stream, as far as it is remembered."""

    def __init__(self, trails: Trails, name: str) -> None:
        self._trails, self.name = trails, name
        self._kept: deque[tuple[int, bytes]] = deque()
        self._number, self.done = 0, False
        self.stream: EventStream | None = None

    @property
    def primer(self) -> bytes:
        """What a stream begins with: where to pick it up, and when."""
        return f"id: {self.name}-0\nretry: {_COME_BACK_AFTER}\ndata: \n\n".encode()

    @property
    def followed(self) -> bool:
        """Whether somebody reads it as it comes."""
        return self.stream is not None and not self.stream.lost and not self.done

    def send(self, data: bytes) -> bool:
        """Keep an event, and write it where somebody reads; False when that one reads too slowly."""
        self._number += 1
        numbered = b"id: %b-%d\n%b" % (self.name.encode(), self._number, data)
        self._kept.append((self._number, numbered))
        self._trails.grew(len(numbered), self)
        return self.stream.put(numbered) if self.followed and self.stream is not None else True

    def finish(self) -> None:
        self.done = True
        if self.stream is not None:
            self.stream.end()

    def follow(self, stream: EventStream, after: int) -> None:
        """Everything after that number, then what comes."""
        self.stream = stream
        for number, data in self._kept:
            if number > after:
                stream.put(data)
        if self.done:
            stream.end()

    def forget(self, all_of_it: bool) -> int:
        """Let go of the oldest event, or of all; how many bytes that were."""
        gone = 0
        while self._kept and (all_of_it or not gone):
            gone += len(self._kept.popleft()[1])
        return gone


class Trails:
    """Those of one session."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Trail] = OrderedDict()
        self._count, self._size = 0, 0

    def open(self) -> Trail:
        self._count += 1
        made = self._all[str(self._count)] = Trail(self, str(self._count))
        while len(self._all) > MOST_TRAILS:
            self._drop_oldest()
        return made

    def find(self, last: bytes) -> tuple[Trail, int] | None:
        """The stream that a client's `Last-Event-ID` is of, and the number."""
        name, _, number = last.decode("latin-1").partition("-")
        found = self._all.get(name)
        return (found, int(number)) if found is not None and number.isdecimal() and len(number) < 12 else None

    def grew(self, size: int, trail: Trail) -> None:
        self._size += size
        while self._size > MOST_BYTES and next(iter(self._all.values()), trail) is not trail:
            self._drop_oldest()
        while self._size > MOST_BYTES and (gone := trail.forget(False)):
            self._size -= gone

    def _drop_oldest(self) -> None:
        _, oldest = self._all.popitem(last=False)
        self._size -= oldest.forget(True)
