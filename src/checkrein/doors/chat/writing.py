"""A model's answer while it is written: told to followers as it comes, kept now and then, whole at the end.

The agent opens one `Pen` for each request to a model.
"""

from __future__ import annotations

import asyncio
from typing import Any

from checkrein.doors.chat import Kind, Message, MessageState, Part
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.rows import clean
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.whole import whole

# The first words are told at once; what follows within this time is told together.
_TOGETHER = 0.03
_KEEP_SECONDS = 1.0
_KIND: dict[str, Kind] = {"text": "text", "thinking": "reasoning"}


class Pen:
    """Writes one message of a run."""

    def __init__(self, live: Live, message: Message, sessions: Sessions, lines: Lines) -> None:
        self._live, self._sessions, self._lines = live, sessions, lines
        self.message = message
        self._loop = asyncio.get_running_loop()
        self._told = float("-inf")
        self._pending: dict[int, tuple[int, list[str]]] = {}
        self._halves: dict[int, str] = {}
        self._flush: asyncio.TimerHandle | None = None
        self._kept_at = self._loop.time()
        self._saving: asyncio.Task[Any] | None = None
        self.saved = self.over = False
        live.begin(message)

    @property
    def session(self) -> str:
        return self._live.run.session

    @property
    def begun(self) -> bool:
        return bool(self._live.texts)

    def write(self, index: int, part_kind: str, text: str) -> None:
        """More of a part of the answer."""
        kind = _KIND.get(part_kind)
        text = self._whole_characters(index, text)
        if kind is None or not text:
            return
        at = self._live.add(index, kind, text)
        self._pending.setdefault(index, (at, []))[1].append(text)
        now = self._loop.time()
        if now - self._told >= _TOGETHER:
            self._tell()
        elif self._flush is None:
            self._flush = self._loop.call_later(self._told + _TOGETHER - now, self._tell)
        if now - self._kept_at >= _KEEP_SECONDS and (self._saving is None or self._saving.done()):
            self._kept_at = now
            self._saving = self._loop.create_task(self._save("streaming"))

    def _whole_characters(self, index: int, text: str) -> str:
        """The text as it can be told; half a character waits for its other half."""
        text = self._halves.pop(index, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[index] = text[-1]
            text = text[:-1]
        return clean(text)

    def _tell(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        self._told = self._loop.time()
        pending, self._pending = self._pending, {}
        for index, (at, pieces) in sorted(pending.items()):
            kind = self._live.texts[index][0]
            data = {"message": self.message.id, "part": index, "at": at, "delta": "".join(pieces)}
            self._lines.tell(self._live.run.session, _told_as(kind), self._live.run.id, **data)

    async def _save(self, state: MessageState, parts: tuple[Part, ...] | None = None, **more: Any) -> Message:
        parts = self._live.parts if parts is None else parts

        def keep() -> Message:
            made = kept()
            self.over = self.over or state != "streaming"
            return made

        def kept() -> Message:
            if self.saved:
                return self._sessions.rewrite(self.message.id, parts, state=state, **more)
            made = self._sessions.add_message(
                self._live.run.session,
                "assistant",
                parts,
                id=self.message.id,
                parent=self.message.parent,
                state=state,
                provider=self.message.provider,
                model=self.message.model,
                run=self._live.run.id,
                **{name: value for name, value in more.items() if value is not None},
            )
            self.saved = True
            return made

        return await whole(asyncio.to_thread(keep))

    async def keep_partial(self) -> None:
        """What there is so far, for whoever goes on after us."""
        await self._settle()
        if self.begun and not self.over:
            await self._save("streaming")

    async def end(
        self, state: MessageState, parts: tuple[Part, ...] | None = None, **more: Any
    ) -> Message | None:
        """The message as it stays; nothing where nothing was written, or where it stays already."""
        await self._settle()
        if self.over or (parts is None and not self.begun and not self.saved):
            self._live.end()
            return None
        # INVARIANT: what was written is kept, whoever stopped it.
        made = await self._save(state, parts, **more)
        self._live.end()
        return made

    async def _settle(self) -> None:
        self._tell()
        if self._saving is not None:
            await asyncio.wait([self._saving])


def _told_as(kind: Kind) -> Any:
    return "reasoning" if kind == "reasoning" else "text"
