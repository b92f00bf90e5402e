"""A session as it happens: server-sent events with ids, so that a lost line goes on where it ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from checkrein.authority import perform
from checkrein.authority.chat import Event, Line, chat_of
from checkrein.console.api.answers import Refused, encoded
from checkrein.console.api.callers import Caller
from checkrein.console.api.streams import Held, Streams
from checkrein.console.desk import Desk

BEAT_SECONDS = 10.0
# How often it is looked whether whoever listens may still do so.
LOOK_SECONDS = 1.0
_LONGEST_ID = 64


async def answer(request: Request, caller: Caller, params: dict[str, Any]) -> Response:
    """The open line. A browser that comes back says in a header where it was."""
    desk: Desk = request.app.state.desk
    session = params["session"]
    after = request.headers.get("last-event-id", "") or params.get("after", "")
    after = after if after.isascii() and after.isprintable() and len(after) <= _LONGEST_ID else "?"
    now = await run_in_threadpool(perform, caller.asked, "chat.events", {"session": session})
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    if desk.streams.is_full:
        raise Refused(429, "too_many", "Too many lines are open already.", "Close some.", retry_after="10")
    return StreamingResponse(
        _lines(desk, caller, session, after or str(now["last"])),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _lines(desk: Desk, caller: Caller, session: str, after: str) -> AsyncIterator[bytes]:
    """Whoever has this open and may answer counts as a person who can be reached."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    # INVARIANT: whoever leaves, at whatever moment, leaves no place taken and nobody reachable behind.
    with Held() as held:
        if not desk.streams.enter():
            return
        held.take(desk.streams.leaving())
        if caller.attends:
            # In a thread: whoever records an answer holds the broker for as long as the disk takes.
            await run_in_threadpool(held.take, desk.pipeline.broker.attending())

        def follow() -> Line:
            return held.take(contextlib.closing(chat_of(caller.asked).subscribe(session, after, tell)))

        line = await run_in_threadpool(follow)
        yield f"retry: 1000\nid: {after}\n\n".encode()
        async for piece in _pieces(desk.streams, caller, line, news):
            yield piece


async def _pieces(streams: Streams, caller: Caller, line: Line, news: asyncio.Event) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    beat = clock() + BEAT_SECONDS
    while not streams.over and caller.holds():
        news.clear()
        found = line.take()
        if found:
            yield b"".join(map(_event, found))
            beat = clock() + BEAT_SECONDS
            continue
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), LOOK_SECONDS)
        if clock() >= beat:
            yield b": still here\n\n"
            beat = clock() + BEAT_SECONDS


def _event(event: Event) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.id.encode(),
        event.kind.encode(),
        encoded({"run": event.run, **event.data}),
    )
