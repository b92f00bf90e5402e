"""Reads in pauses, so that a long look at everything holds up no call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from checkrein.store import Reader, Row


class Gently:
    """A reader that rests for `seconds` after `every` so many questions."""

    def __init__(self, reader: Reader, *, seconds: float, every: int) -> None:
        self._reader, self._seconds, self._every = reader, seconds, every
        self._count, self._given_up = 0, False

    def give_up(self) -> None:
        """The server ends: whoever reads stops at the next look."""
        self._given_up = True

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        if self._given_up:
            # Ends the reading thread and nothing else: a check that was not finished says nothing.
            raise SystemExit
        self._count += 1
        if self._count % self._every == 0:
            time.sleep(self._seconds)
        return self._reader.query(sql, parameters)

    def writes_to(self, table: str) -> int | None:
        return self._reader.writes_to(table)
