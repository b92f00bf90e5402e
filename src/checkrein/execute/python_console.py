"""What a Python script prints: kept up to a limit, cut with a mark, and no flood.

Called by the interpreter with every piece of output.
"""

from __future__ import annotations

from collections.abc import Callable

_FLOOD = 16
_MARK = "\n… more output was cut\n"


class Console:
    """A script's output so far; `flood` is called once it is far more than anybody will read."""

    def __init__(self, limit: int, flood: Callable[[], None], kept: str = "", size: int = 0) -> None:
        self._limit, self._flood = limit, flood
        self._parts = [kept] if kept else []
        self.size = size
        self.flooded = False

    def __call__(self, text: str) -> None:
        data = text.encode()
        room = self._limit - self.size
        if room > 0:
            self._parts.append(text if len(data) <= room else data[:room].decode(errors="ignore") + _MARK)
        elif room == 0 and data:
            self._parts.append(_MARK)
        self.size += len(data)
        if self.size > self._limit * _FLOOD and not self.flooded:
            self.flooded = True
            self._flood()

    def note(self, text: str) -> None:
        """A remark of ours, at the end."""
        if self._parts and not self._parts[-1].endswith("\n"):
            self._parts.append("\n")
        self._parts.append(text + "\n")

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""
