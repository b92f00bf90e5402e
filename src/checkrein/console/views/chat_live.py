"""The line of an open conversation: what happens in it, and what every page hears, over one connection.

A browser keeps only a few connections to one place, so a page has one. Ids are `RECORD_EVENT`: the ledger's
number and the conversation's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from checkrein.authority.chat import chat_of
from checkrein.console.api.streams import Held
from checkrein.console.desk import Desk
from checkrein.console.feed import MOST_LISTENERS
from checkrein.console.rendering import page
from checkrein.console.signin import Signed
from checkrein.console.views.chat_told import Teller, Told
from checkrein.console.visits import Visit, failed, signed, signed_out
from checkrein.errors import CheckreinError, NotFoundError

_encode = msgspec.json.Encoder().encode
_WAITING = 1_000
# How the conversation's own number comes, before both are put into one.
_EVENT = b"chat: "


async def live(request: Request) -> Response:
    """What happens, as it happens. While a page listens, a person counts as reachable."""
    session = signed(request, use=False)
    if session is None:
        return signed_out()
    desk: Desk = request.app.state.desk
    if desk.feed.is_full:
        text = f"{MOST_LISTENERS} pages are open already."
        return page("plain.html", 429, title="Too many pages", text=text)
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    record, _, event = given.partition("_")
    after = int(record) if record.isascii() and record.isdigit() and len(record) < 16 else None
    visit = Visit(desk=desk, session=session, path=f"/chat/{request.path_params['id']}")
    line = _Line(visit, str(request.path_params["id"]), event)
    try:
        await line.open()
    except CheckreinError as error:
        return failed(error, f"/at/{session.place}")
    return StreamingResponse(
        _lines(desk, session, line, after),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _lines(desk: Desk, session: Signed, line: _Line, after: int | None) -> AsyncIterator[bytes]:
    # INVARIANT: whoever leaves, at whatever moment, leaves nobody reachable behind. Nothing is waited for at
    # the end: whoever left has cancelled all waiting.
    with Held() as held, contextlib.ExitStack() as ends:
        ends.callback(line.close)
        await run_in_threadpool(held.take, desk.pipeline.broker.attending())
        both: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
        for each in (desk.feed.listen(after), line.pieces()):
            ends.callback(asyncio.create_task(_pump(desk, each, both)).cancel)
        marks = _Marks("" if after is None else str(after), line.after)
        while desk.signin.is_open(session) and (piece := await both.get()):
            yield marks.put(piece)


async def _pump(desk: Desk, pieces: Any, into: asyncio.Queue[bytes]) -> None:
    """Where one line ends, both do: the page comes back and has both again."""
    try:
        async with contextlib.aclosing(pieces) as found:
            async for piece in found:
                await into.put(piece)
    except Exception as error:  # noqa: BLE001 - kept for the health page; the page comes back by itself
        desk.failed(error)
    await into.put(b"")


class _Marks:
    """Each line has numbers of its own; a page that comes back says both."""

    def __init__(self, record: str, event: str) -> None:
        self._record, self._event = record, event

    def put(self, piece: bytes) -> bytes:
        return b"\n".join(self._marked(each) for each in piece.split(b"\n"))

    def _marked(self, row: bytes) -> bytes:
        if row.startswith(b"id: "):
            self._record = row[4:].decode()
        elif row.startswith(_EVENT):
            self._event = row[len(_EVENT) :].decode()
        else:
            return row
        return f"id: {self._record}_{self._event}".encode()


class _Line:
    """The events of one conversation for one page, from where its messages were read."""

    def __init__(self, visit: Visit, own: str, after: str) -> None:
        self._visit, self._own, self.after = visit, own, after
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._followed: Any = None
        self._teller: Teller | None = None
        self._missed = False
        self._over = False

    async def open(self) -> None:
        """Read how things are; raises where there is no such conversation."""
        await run_in_threadpool(self._look)

    def _look(self) -> None:
        found = self._visit.desk.ask("chat.session", id=self._own, limit=4)
        self._missed = found["last"] != self.after
        self.after = found["last"]
        self._teller = Teller(self._visit, found)

    def _follow(self) -> None:
        """From where it was read."""
        before = self._followed
        self._followed = chat_of(self._visit.desk.asked).subscribe(self._own, self.after, self._tell)
        for each in (before, self._followed if self._over else None):
            if each is not None:
                each.close()

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    def close(self) -> None:
        self._over = True
        if self._followed is not None:
            self._followed.close()

    async def pieces(self) -> AsyncIterator[bytes]:
        await run_in_threadpool(self._follow)
        if self._missed:
            yield self._piece("fresh", {})
        while True:
            due = self._teller.due if self._teller is not None else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    self._news.wait(), None if due is None else max(0.0, due - self._loop.time())
                )
            self._news.clear()
            for kind, data in await run_in_threadpool(self._taken):
                yield self._piece(kind, data)

    def _taken(self) -> list[Told]:
        assert self._teller is not None and self._followed is not None  # noqa: S101 - opened before
        events, now = self._followed.take(), self._loop.time()
        if any(each.kind == "reload" for each in events):
            # Too much was missed, or another branch is shown: look anew, and have the page do the same.
            try:
                self._look()
            except NotFoundError:
                return [("gone", {})]
            self._follow()
            return [("fresh", {})]
        if events:
            self.after = events[-1].id
        return self._teller.told(events, now) if events else self._teller.later(now)

    def _piece(self, kind: str, data: Any) -> bytes:
        return _EVENT + b"%s\nevent: %s\ndata: %s\n\n" % (self.after.encode(), kind.encode(), _encode(data))
