"""Bursts: what comes all at once is told once. Pure; the clock comes in as an argument."""

from __future__ import annotations

from collections import deque

import msgspec

from checkrein.approval.channels.wording import Subject

MOST = 3
WINDOW = 5.0
# How long the first of a possible burst waits for the others.
SETTLE = 0.5
# Beyond so many messages in a minute everything is told together, whoever it comes from.
MOST_A_MINUTE = 12
_MINUTE = 60.0
# No session is called like this.
_EVERYBODY = "\0"


class _Pile(msgspec.Struct):
    since: float
    held: list[Subject]
    # Once it had to wait for a burst to end, it is part of it.
    together: bool = False


class Bursts:
    """What waits to be told, by session and kind of event."""

    def __init__(self) -> None:
        self._piles: dict[tuple[str, str], _Pile] = {}
        self._told: dict[tuple[str, str], deque[float]] = {}
        self._messages: deque[float] = deque()

    def add(self, subject: Subject, now: float) -> None:
        _drop(self._messages, now - _MINUTE)
        crowded = len(self._messages) >= MOST_A_MINUTE
        key = (subject.event, _EVERYBODY if crowded else subject.session)
        self._piles.setdefault(key, _Pile(now, [])).held.append(subject)

    def due(self, now: float) -> list[list[Subject]]:
        """Messages to send now: each a single subject, or a burst that goes as one."""
        ready: list[list[Subject]] = []
        for key in [key for key, pile in self._piles.items() if self._is_due(key, pile, now)]:
            pile, told = self._piles.pop(key), self._told.setdefault(key, deque())
            held = pile.held
            one = pile.together or len(held) > MOST
            told.extend([now] * len(held))
            made = [held] if one else [[each] for each in held]
            self._messages.extend([now] * len(made))
            ready += made
        self._tidy(now)
        return ready

    def _is_due(self, key: tuple[str, str], pile: _Pile, now: float) -> bool:
        told = self._told.get(key)
        if told:
            _drop(told, now - WINDOW)
        if key[1] == _EVERYBODY:
            pile.together = True
            _drop(self._messages, now - _MINUTE)
            return len(self._messages) < MOST_A_MINUTE
        if told and len(told) + len(pile.held) > MOST:
            pile.together = True
            return False
        return now - pile.since >= SETTLE

    def _tidy(self, now: float) -> None:
        """Sessions come and go; nothing is kept of those that went."""
        for key, told in list(self._told.items()):
            _drop(told, now - WINDOW)
            if not told and key not in self._piles:
                del self._told[key]


def _drop(times: deque[float], before: float) -> None:
    while times and times[0] <= before:
        times.popleft()
