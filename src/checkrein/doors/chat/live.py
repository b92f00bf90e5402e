"""A run while it is alive on this server, and what its model has written so far. Values only."""

from __future__ import annotations

import asyncio

import msgspec

from checkrein.doors.chat import Kind, Message, Part, Run


class Live:
    """One run, its task, and the message that is being written."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.task: asyncio.Task[None] | None = None
        # A person stopped it; a server that ends does not.
        self.aborted = False
        self.writing: Message | None = None
        self.texts: dict[int, tuple[Kind, list[str]]] = {}
        self.over = asyncio.Event()

    def set(self, run: Run) -> None:
        self.run = run

    def begin(self, message: Message) -> None:
        """A model begins to write."""
        self.writing, self.texts = message, {}

    def add(self, index: int, kind: Kind, text: str) -> int:
        """More of a part; how much of it there was before."""
        _, pieces = self.texts.setdefault(index, (kind, []))
        at = sum(map(len, pieces))
        pieces.append(text)
        if len(pieces) > 64:
            pieces[:] = ["".join(pieces)]
        return at

    @property
    def parts(self) -> tuple[Part, ...]:
        """What there is of the message so far, in order."""
        return tuple(
            Part(kind=kind, text="".join(pieces))
            for _, (kind, pieces) in sorted(self.texts.items())
            if pieces
        )

    @property
    def message(self) -> Message | None:
        """The message as far as it is written."""
        return None if self.writing is None else msgspec.structs.replace(self.writing, parts=self.parts)

    def end(self) -> None:
        self.writing, self.texts = None, {}
