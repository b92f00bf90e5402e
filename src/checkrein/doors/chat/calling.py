"""One tool call of a conversation: judged, asked about where it must be, carried out at most once, kept.

The agent hands over each call its model made, and again after a restart whatever is not over yet. Every step
is in the store before the next begins, so nobody does one twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from checkrein.awaiting import answer_to, settle
from checkrein.call import DEEPEST, ToolCall, is_deep, reason_lines
from checkrein.doors.chat import Invocation, Run, RunState, Session, Status, history
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import call_view
from checkrein.doors.chat.tools import Tools
from checkrein.doors.chat.whole import whole
from checkrein.errors import CheckreinError
from checkrein.judged import Considered, Decided, Judged
from checkrein.ledger.entries import Entry, fold
from checkrein.pipeline import Pipeline
from checkrein.store.questions import Question, get_question
from checkrein.store.records import of_entries
from checkrein.taint import why_held

DOOR, CHANNEL = "chat", "chat"
DEFAULT_PROJECT = "default"
UNKNOWN = "Whether the call took effect is unknown; look before trying it again."
FINAL = ("completed", "error", "denied", "cancelled")


class Calling:
    """Calls of all conversations."""

    def __init__(
        self, pipeline: Pipeline, sessions: Sessions, lines: Lines, tools: Callable[[], Tools], user: str
    ) -> None:
        self._pipeline, self._sessions, self._lines = pipeline, sessions, lines
        self._tools, self._user = tools, user
        self._asking: Counter[str] = Counter()

    async def settle(self, run: Run, session: Session, call: Invocation) -> Invocation:
        """What became of a call; returns when it is over, however long a person takes."""
        # INVARIANT: a server that ends takes no question back: who was cut off here is heard by the next one.
        try:
            return await self._settled(run, session, call)
        except CheckreinError as error:
            return await self._broken(call, str(error))
        except Exception as error:  # noqa: BLE001 - one call's trouble is no other's; its text may hold anything
            return await self._broken(call, type(error).__name__)

    async def _broken(self, call: Invocation, why: str) -> Invocation:
        call = await self._again(call)
        if call.status == "running":
            await self._close(call, "unknown", "failed")
            return await self._over(call, "error", error=f"The call broke off: {why}. {UNKNOWN}")
        await self._close(call, "cancelled", "failed")
        return await self._over(call, "error", error=f"The call could not be made: {why}")

    async def _settled(self, run: Run, session: Session, call: Invocation) -> Invocation:
        if call.status in FINAL:
            return call
        tool = await self._tool(call, session)
        if call.status == "running":
            return await self._left_behind(run, session, call, tool)
        wanted = self.call(run, session, call, tool)
        if call.entry and (asked := await asyncio.to_thread(get_question, self._pipeline.store, call.entry)):
            return await self._asked(call, wanted, asked)
        # Judged before a restart and not run: it is judged anew, and the record says so.
        await self._close(call, "cancelled", "server ended")
        refused = await self._refused(session, call, wanted, tool)
        return refused or await self._judged(session, call, wanted)

    async def _tool(self, call: Invocation, session: Session) -> Any:
        """The tool as it is now; after a restart its server may still be starting, as the list knows."""
        found = await self._tools().tool(call.name)
        if isinstance(found, str):
            await self._tools().tools(session.project)
            found = await self._tools().tool(call.name)
        return found

    # -- judging ----------------------------------------------------------------------------------------

    def call(self, run: Run, session: Session, call: Invocation, tool: Any) -> ToolCall:
        """The call in the words every door uses; the arguments are exactly what would be executed."""
        known = not isinstance(tool, str)
        project = session.project or DEFAULT_PROJECT
        return ToolCall(
            tool=call.tool,
            server=call.server,
            arguments=call.arguments,
            door=DOOR,
            agent=f"{run.provider}/{run.model}",
            user=self._user,
            session=session.id,
            project=project,
            cwd=project if project.startswith("/") else "",
            call_id=f"{call.run}:{call.call_id}",
            annotations=tool.annotations if known else {},
            # INVARIANT: a yes is to the tool as it was accepted when it was asked about.
            definition=call.definition or (tool.definition if known else ""),
        )

    async def _refused(
        self, session: Session, call: Invocation, wanted: ToolCall, tool: Any
    ) -> Invocation | None:
        """A refusal that needs no judging, on the record; nothing where the call may be judged."""
        if call.error:
            return await self._refuse(call, wanted, "arguments", call.error, "Correct the arguments.")
        if isinstance(tool, str):
            return await self._refuse(call, wanted, "definition", tool, "Call a tool that is offered.")
        # INVARIANT: a tool that is off in a conversation is not called in it, whatever the model says.
        if {call.server, call.name} & set(session.tools_off):
            why = "This tool is turned off in this conversation."
            return await self._refuse(call, wanted, "session", why, "A person turns it on.")
        if faults := await self._tools().faults(call.name, call.arguments):
            return await self._refuse(call, wanted, "arguments", " ".join(faults), "Correct the arguments.")
        return None

    async def _refuse(
        self, call: Invocation, wanted: ToolCall, stage: str, why: str, remedy: str
    ) -> Invocation:
        decided = await asyncio.to_thread(self._pipeline.refuse, wanted, stage, why, remedy)
        return await self._over(call, "error", error=why, entry=decided.entry, verdict="deny", reason=why)

    async def _judged(self, session: Session, call: Invocation, wanted: ToolCall) -> Invocation:
        def hold(judged: Judged) -> str:
            return why_held(wanted, judged, session.tainted_by)

        considered = self._pipeline.consider(wanted, hold=hold, asking=True)
        decided = await whole(asyncio.to_thread(self._recorded, call, wanted, considered))
        call = await self._again(call)
        if decided.verdict.word == "allow":
            return await self._execute(call, wanted)
        if decided.asked:
            asked = await asyncio.to_thread(get_question, self._pipeline.store, decided.entry)
            if asked is not None:
                return await self._asked(call, wanted, asked)
        return await self._over(call, "denied", error=_refusal(call.reason, decided.verdict.remedy))

    def _recorded(self, call: Invocation, wanted: ToolCall, considered: Considered | Decided) -> Decided:
        """The verdict, on the record and with the call."""
        if isinstance(considered, Decided):
            decided = considered
        else:
            # Before the question is put: after a crash it is found, and not asked a second time.
            self._changed(call, entry=considered.entry, definition=wanted.definition)
            decided = self._pipeline.settle(considered)
        reason = " ".join(reason_lines(decided.verdict.reasons))
        self._changed(call, entry=decided.entry, verdict=decided.verdict.word, reason=reason)
        return decided

    # -- asking -----------------------------------------------------------------------------------------

    async def _asked(self, call: Invocation, wanted: ToolCall, asked: Question) -> Invocation:
        """Wait for a person; what they say is judged by the policy of that moment."""
        if not call.asked:
            call = await self._note(call, asked=True)
        if asked.state == "asked":
            self._pipeline.broker.keep(call.entry, wanted)
            async with self._waiting(call.run):
                self._tell("approval_required", call)
                asked = await answer_to(self._pipeline, call.entry, wanted)
        by = asked.actor if asked.state in ("approved", "denied", "answered") else ""
        call = await self._note(call, answered_by=by)
        if asked.state == "answered":
            return await self._over(call, "completed", output=asked.message, verdict="answered")
        if asked.state != "approved":
            return await self._over(call, "denied", error=_said(asked), verdict=asked.state)
        return await self._approved(call, wanted)

    @asynccontextmanager
    async def _waiting(self, run: str) -> AsyncIterator[None]:
        """While a person is asked, the run is said to wait."""
        self._asking[run] += 1
        await self._run_is(run, "waiting", before="running")
        try:
            yield
        finally:
            self._asking[run] -= 1
            last = not self._asking[run]
            if last:
                del self._asking[run]
        if last:
            await self._run_is(run, "running", before="waiting")

    async def _run_is(self, run: str, state: RunState, *, before: RunState) -> None:
        await whole(asyncio.to_thread(partial(self._sessions.change_run, run, expect=(before,), state=state)))

    async def _approved(self, call: Invocation, wanted: ToolCall) -> Invocation:
        call = await self._note(call, verdict="approved")
        (entry,) = await asyncio.to_thread(self._on_record, call.entry)
        edited = _edited(entry, call, wanted, self._pipeline.broker.edited(call.entry))
        if isinstance(edited, str):
            return await self._dropped(call, "error", edited)
        if edited is not None:
            wanted = msgspec.structs.replace(wanted, arguments=edited)
        # As it is now: hours may have passed.
        session = await asyncio.to_thread(self._sessions.get, call.session)
        tool = await self._tool(call, session)
        if isinstance(tool, str) or tool.definition != wanted.definition:
            why = tool if isinstance(tool, str) else "The tool's definition changed meanwhile."
            return await self._dropped(call, "error", f"It was not called: {why}")
        if {call.server, call.name} & set(session.tools_off):
            return await self._dropped(call, "denied", "The tool was turned off meanwhile.")
        if faults := await self._tools().faults(call.name, wanted.arguments):
            return await self._dropped(call, "error", " ".join(faults))
        # INVARIANT: a deny that came after the yes outranks it.
        verdict = self._pipeline.judge(wanted, approved=True).verdict
        if verdict.word == "deny":
            return await self._dropped(call, "denied", _refusal(" ".join(reason_lines(verdict.reasons))))
        return await self._execute(call, wanted, approved=True, edited=edited)

    async def _dropped(self, call: Invocation, status: str, why: str) -> Invocation:
        """A call that does not run although it was approved; the record says so too."""
        await self._close(call, "cancelled", "changed meanwhile")
        return await self._over(call, status, error=why)

    def _on_record(self, entry: str) -> list[Entry]:
        found = fold(of_entries(self._pipeline.store, [entry]))
        if len(found) != 1:
            raise CheckreinError("The call is not on the record.", remedy="Run `checkrein audit verify`.")
        return found

    # -- carrying out -----------------------------------------------------------------------------------

    async def _execute(
        self,
        call: Invocation,
        wanted: ToolCall,
        *,
        approved: bool = False,
        edited: dict[str, Any] | None = None,
    ) -> Invocation:
        now = self._pipeline.clock()
        # INVARIANT: a call is carried out at most once, whatever is clicked, resumed or restarted.
        if not await self._change(call, ("pending",), status="running", started_at=now, edited=edited):
            return await self._again(call)
        if approved and not await whole(asyncio.to_thread(self._pipeline.begin, call.entry)):
            return await self._over(call, "error", error=f"This approval was used before. {UNKNOWN}")
        call = await self._again(call)
        self._tell("tool_running", call)

        def progress(text: str) -> None:
            self._tell("notice", call, text=text, level="progress")

        came = await self._tools().carry(wanted, call.name, call.entry, progress=progress)
        return await self._came(call, came)

    async def _came(self, call: Invocation, came: Any) -> Invocation:
        if came.kind in ("silent", "lost"):
            text = came.text if UNKNOWN in came.text else f"{came.text} {UNKNOWN}"
            return await self._over(call, "error", error=text)
        if is_deep(came.content, DEEPEST):
            why = "The tool ran, but what it answered is nested too deeply to be read."
            return await self._over(call, "error", error=why)
        if came.kind != "result":
            return await self._over(call, "error", error=came.text or "The tool failed.", output=came.content)
        if came.failed:
            text = history.readable(came.content) or "The tool failed."
            return await self._over(call, "error", error=text, output=came.content)
        return await self._over(call, "completed", output=came.content)

    async def _left_behind(self, run: Run, session: Session, call: Invocation, tool: Any) -> Invocation:
        """A call that was under way when its server ended."""
        why = "The server was stopped while this call was under way."
        hints = {} if isinstance(tool, str) else tool.annotations
        repeatable = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
        await self._close(call, "unknown", "server ended")
        # INVARIANT: a call whose fate is unknown is made again only where twice is the same as once.
        if not repeatable or {call.server, call.name} & set(session.tools_off):
            return await self._over(call, "error", error=f"{why} {UNKNOWN}")
        arguments = call.edited if call.edited is not None else call.arguments
        wanted = msgspec.structs.replace(self.call(run, session, call, tool), arguments=arguments)
        decided = await asyncio.to_thread(self._pipeline.decide, wanted)
        call = await self._note(call, entry=decided.entry)
        if decided.verdict.word != "allow" or wanted.definition != tool.definition:
            await self._close(call, "cancelled", "server ended")
            return await self._over(call, "error", error=f"{why} {UNKNOWN}")
        quiet = self._tools().carry(wanted, call.name, decided.entry, progress=lambda _text: None)
        return await self._came(call, await quiet)

    async def stop(self, call: Invocation) -> None:
        """The run is over before the call: a question is taken back, a call under way is given up."""
        call = await self._again(call)
        if call.status in FINAL:
            return
        if call.entry and call.status == "pending":
            await settle(
                self._pipeline, call.entry, "cancelled", channel=CHANNEL, message="the run was stopped"
            )
        await self._close(call, "cancelled", "client")
        text = f"Stopped while it ran. {UNKNOWN}" if call.status == "running" else "Stopped before it ran."
        await self._over(call, "cancelled", error=text)

    async def _close(self, call: Invocation, outcome: str, evidence: str) -> None:
        """Nothing more comes of what was allowed or approved; an outcome that is known already stays."""

        def close() -> None:
            found = fold(of_entries(self._pipeline.store, [call.entry])) if call.entry else []
            if found and (found[0].verdict == "allow" or found[0].answer == "approved"):
                self._pipeline.finish(call.entry, outcome, evidence=evidence)

        await whole(asyncio.to_thread(close))

    # -- writing down -----------------------------------------------------------------------------------

    async def _over(self, call: Invocation, status: str, **changes: Any) -> Invocation:
        now = self._pipeline.clock()
        await self._change(call, ("pending", "running"), status=status, completed_at=now, **changes)
        call = await self._again(call)
        self._tell("tool_result", call)
        return call

    async def _note(self, call: Invocation, **changes: Any) -> Invocation:
        await self._change(call, ("pending", "running"), **changes)
        return await self._again(call)

    async def _change(self, call: Invocation, expect: tuple[Status, ...], **changes: Any) -> bool:
        def change() -> bool:
            return self._sessions.change_call(call.run, call.call_id, expect=expect, **changes)

        return await whole(asyncio.to_thread(change))

    def _changed(self, call: Invocation, **changes: Any) -> None:
        self._sessions.change_call(call.run, call.call_id, expect=("pending", "running"), **changes)

    async def _again(self, call: Invocation) -> Invocation:
        return await asyncio.to_thread(self._sessions.call, call.run, call.call_id) or call

    def _tell(self, kind: Any, call: Invocation, **data: Any) -> None:
        self._lines.tell(call.session, kind, call.run, call=call_view(call, self._pipeline), **data)


def _edited(
    entry: Entry, call: Invocation, wanted: ToolCall, fresh: dict[str, Any] | None
) -> dict[str, Any] | str | None:
    """The arguments a person wrote instead, if they did; or why the yes to them is worth nothing."""
    if entry.edited_hash is None:
        return None
    for each in (fresh, call.edited):
        # INVARIANT: what is executed is what was approved.
        if (
            each is not None
            and msgspec.structs.replace(wanted, arguments=each).argument_hash == entry.edited_hash
        ):
            return each
    return "A person approved other arguments, and the server was stopped before they were kept. Ask again."


def _refusal(why: str, remedy: str = "") -> str:
    return f"Refused. {why} {remedy}".strip()


def _said(asked: Question) -> str:
    """What the model is told of a no."""
    if asked.state == "expired":
        return "Refused: nobody answered in time."
    if asked.state == "cancelled":
        return "The question was taken back before anybody answered."
    said = f" They said: {asked.message}" if asked.message else ""
    return f"A person refused this call.{said}"
