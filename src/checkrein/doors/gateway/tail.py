"""The last lines a server wrote beside its messages: few, short, and fit to be shown to a person."""

from __future__ import annotations

from collections import deque

MOST_LINES, MOST_BYTES = 50, 500


class Tail:
    """Takes bytes as they come; a flood costs no more than its last lines."""

    def __init__(self) -> None:
        self._whole: deque[bytes] = deque(maxlen=MOST_LINES)
        self._part = b""

    def feed(self, data: bytes) -> None:
        """What was written, in whatever pieces."""
        *lines, rest = (self._part + data).rsplit(b"\n", MOST_LINES + 1)
        # What comes before the last lines is one piece; nobody splits a flood to throw it away.
        self._whole.extend(line[:MOST_BYTES] for line in lines[-MOST_LINES:])
        self._part = rest[:MOST_BYTES]

    def add(self, line: bytes) -> None:
        """A line of our own."""
        self._whole.append(line[:MOST_BYTES])

    @property
    def lines(self) -> tuple[str, ...]:
        found = [*self._whole, self._part] if self._part else [*self._whole]
        return tuple(plain(line) for line in found[-MOST_LINES:])


def plain(line: bytes) -> str:
    """A line as it may be shown: what could move a cursor or turn text around is left out."""
    return "".join(char for char in line.decode("utf-8", "replace") if char.isprintable() or char == "\t")
