"""The calls of a message: written down once, settled beside each other, their results told as one message.

The agent hands over a message whose model called tools. What becomes of each call is decided in `calling`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from checkrein.doors.chat import Invocation, Message, Part, Run, Session, history
from checkrein.doors.chat.calling import Calling
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import call_view, message_view, session_view
from checkrein.doors.chat.tools import Tools
from checkrein.doors.chat.whole import whole
from checkrein.pipeline import Pipeline

MOST_CALLS = 64


def calls_of(message: Message) -> list[Part]:
    return [each for each in message.parts if each.kind == "tool_invocation"]


class Invocations:
    """Calls of all conversations, by the message that made them."""

    def __init__(
        self,
        pipeline: Pipeline,
        sessions: Sessions,
        lines: Lines,
        tools: Callable[[], Tools],
        calling: Calling,
    ) -> None:
        self._pipeline, self._sessions, self._lines = pipeline, sessions, lines
        self._tools, self._calling = tools, calling

    async def written(self, run: Run, message: Message) -> list[Invocation]:
        """The calls of a message, each written down once."""
        known = {each.call_id: each for each in await asyncio.to_thread(self._sessions.calls_of, run.id)}
        wanted, found = calls_of(message), list[Invocation]()
        for number, part in enumerate(wanted):
            call = known.get(part.tool_call_id)
            if call is None:
                call = self._made(run, message, part, await self._tools().tool(part.tool_name))
                # INVARIANT: no response makes more work than a person could look at.
                call = _too_many(call) if number >= MOST_CALLS else call
                await whole(asyncio.to_thread(self._sessions.put_call, call))
                self._lines.tell(run.session, "tool_call", run.id, call=call_view(call, self._pipeline))
            found.append(call)
        if len(wanted) > MOST_CALLS and wanted[-1].tool_call_id not in known:
            text = f"The model made {len(wanted)} calls at once: only the first {MOST_CALLS} are looked at."
            self._lines.tell(run.session, "notice", run.id, text=text, level="warning")
        return found

    def _made(self, run: Run, message: Message, part: Part, known: Any) -> Invocation:
        server, _, tool = part.tool_name.partition("__")
        if not isinstance(known, str):
            server, tool = known.server, known.tool
        return Invocation(
            run=run.id,
            call_id=part.tool_call_id,
            session=run.session,
            message=message.id,
            name=part.tool_name,
            server=server if tool else "",
            tool=tool or part.tool_name,
            arguments=part.data if isinstance(part.data, dict) else {},
            error=part.error,
            created_at=self._pipeline.clock(),
        )

    async def carried_out(self, run: Run, session: Session, message: Message) -> None:
        """Every call of a message, beside each other; then what came of them, as one message."""
        calls = await self.written(run, message)
        work = [asyncio.ensure_future(self._calling.settle(run, session, each)) for each in calls]
        try:
            settled = await asyncio.gather(*work)
        except asyncio.CancelledError:
            await asyncio.wait(work)
            raise
        finally:
            for each in work:
                each.cancel()
        await self._told(message, settled, session.id)

    async def tidy(self, session: str) -> None:
        """INVARIANT: a run that is over leaves no question, no call under way and none without result."""
        path = await asyncio.to_thread(self._sessions.path, session)
        last = path[-1] if path else None
        run = await asyncio.to_thread(self._sessions.get_run, last.run) if last and last.run else None
        if last is None or run is None or last.role != "assistant" or not calls_of(last):
            return
        calls = await self.written(run, last)
        for each in calls:
            await self._calling.stop(each)
        again = [await asyncio.to_thread(self._sessions.call, run.id, each.call_id) for each in calls]
        await self._told(last, [each for each in again if each is not None], session)

    async def stopped(self, run: Run) -> None:
        """Nothing of a run is under way any more."""
        await self.tidy(run.session)
        for each in await asyncio.to_thread(self._sessions.calls_of, run.id):
            await self._calling.stop(each)

    async def _told(self, message: Message, calls: Sequence[Invocation], session: str) -> None:
        """What came of the calls of a message, as one message."""
        await self._taint(session, calls)
        parts = [_result(each) for each in calls]
        made = await whole(
            asyncio.to_thread(
                lambda: self._sessions.add_message(session, "tool", parts, parent=message.id, run=message.run)
            )
        )
        self._lines.tell(session, "message", message.run, message=message_view(made))

    async def _taint(self, session: str, calls: Sequence[Invocation]) -> None:
        """INVARIANT: who has read untrusted words is not trusted with outward calls unasked."""
        if (await asyncio.to_thread(self._sessions.get, session)).tainted_by:
            return
        for each in calls:
            tool = await self._tools().tool(each.name) if each.started_at is not None else None
            if each.server and tool is not None and (isinstance(tool, str) or not tool.trusted):
                tainted = await asyncio.to_thread(
                    partial(self._sessions.update, session, tainted_by=each.server)
                )
                self._lines.tell(session, "session", session=session_view(tainted))
                return


def _too_many(call: Invocation) -> Invocation:
    why = f"This was not looked at: at most {MOST_CALLS} calls are made at once. Make the others afterwards."
    return msgspec.structs.replace(call, status="error", error=why, completed_at=call.created_at)


def _result(call: Invocation) -> Part:
    """What came of a call, as its model is told."""
    text = (history.readable(call.output) or history.NOTHING) if call.status == "completed" else ""
    if call.edited is not None and call.status in ("completed", "error"):
        changed = f"(A person changed the arguments to {history.as_json(call.edited)} before it ran.)"
        text = f"{changed}\n{text}" if call.status == "completed" else text
    return Part(
        kind="tool_result",
        text=text,
        tool_call_id=call.call_id,
        tool_name=call.name,
        data=call.output,
        status=call.status,
        error=call.error,
    )
