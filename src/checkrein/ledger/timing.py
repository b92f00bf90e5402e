"""Whether the times of records go on: a clock that was set back, a record far from its neighbours. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

# Clocks are corrected by a little all the time.
_TOLERANCE = 5.0
_FAR = 86_400.0
_MOST = 20


class OutOfTime(NamedTuple):
    """`clock`: time went back by less than a day. `time`: a record does not belong where it is."""

    kind: str
    seq: int
    reason: str


class Timing:
    """Looks at the records' times in order."""

    def __init__(self) -> None:
        self.found: list[OutOfTime] = []
        self._before: list[tuple[int, float]] = []

    def add(self, seq: int, at: float) -> None:
        if self._before and len(self.found) < _MOST:
            self._compare(seq, at, *self._before[-1])
        self._before = [*self._before[-1:], (seq, at)]

    def _compare(self, seq: int, at: float, last: int, last_at: float) -> None:
        back = last_at - at
        if back <= _TOLERANCE:
            return
        if back <= _FAR:
            text = f"record {seq} is dated {back:.0f} s before record {last}: the clock was set back"
            self.found.append(OutOfTime("clock", seq, text))
            return
        # The one that does not fit: the record before, where this one goes on from the one before that.
        odd, odd_at, by_at = seq, at, last_at
        if len(self._before) > 1 and self._before[0][1] <= at + _TOLERANCE:
            odd, odd_at, by_at = last, last_at, at
        text = f"record {odd} is dated {_day(odd_at)}, the one beside it {_day(by_at)}"
        self.found.append(OutOfTime("time", odd, text))


def _day(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"
