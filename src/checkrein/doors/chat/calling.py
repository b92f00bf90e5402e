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

from checkrein.call import DEEPEST, ToolCall, is_deep, reason_lines
from checkrein.core.approvals import abandon, answer_to
from checkrein.core.decision import Decided, DecisionRequest, Evaluation
from checkrein.core.lifecycle import UNDER_WAY, State, state_of
from checkrein.core.redemption import Approval, CurrentTool, Rejected, redeem
from checkrein.doors.chat import Invocation, Run, RunState, Session, Status, history
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import call_view
from checkrein.doors.chat.tools import Tools
from checkrein.doors.chat.whole import whole
from checkrein.errors import CheckreinError
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.store.questions import Question, get_question

DOOR, CHANNEL = "chat", "chat"
DEFAULT_PROJECT = "default"
UNKNOWN = "Whether the call took effect is unknown; look before trying it again."
_TURNED_OFF = "The tool was turned off meanwhile."
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
        request = DecisionRequest(wanted, tainted_by=session.tainted_by)
        decided = None
        while decided is None:
            evaluation = self._pipeline.add_question(self._pipeline.evaluate(request))
            decided = await whole(asyncio.to_thread(self._committed, call, wanted, evaluation))
        call = await self._again(call)
        if decided.verdict.word == "allow":
            return await self._execute(call, wanted)
        if decided.asked:
            asked = await asyncio.to_thread(get_question, self._pipeline.store, decided.entry)
            if asked is not None:
                return await self._asked(call, wanted, asked)
        return await self._over(call, "denied", error=_refusal(call.reason, decided.verdict.remedy))

    def _committed(self, call: Invocation, wanted: ToolCall, evaluation: Evaluation) -> Decided | None:
        """The verdict, on the record and with the call."""
        # Before the question is put: after a crash it is found, and not asked a second time.
        self._changed(call, entry=evaluation.entry, definition=wanted.definition)
        decided = self._pipeline.commit(evaluation)
        if decided is not None:
            reason = " ".join(reason_lines(decided.verdict.reasons))
            self._changed(call, entry=decided.entry, verdict=decided.verdict.word, reason=reason)
        return decided

    # -- asking -----------------------------------------------------------------------------------------

    async def _asked(self, call: Invocation, wanted: ToolCall, asked: Question) -> Invocation:
        """Wait for a person; what they say is judged by the policy of that moment."""
        if not call.asked:
            call = await self._note(call, asked=True)
        if asked.state == "asked":
            async with self._waiting(call.run):
                self._tell("approval_required", call)
                asked = await answer_to(self._pipeline, call.entry)
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
        if not await self._change(call, ("pending",), status="running"):
            return await self._again(call)
        return await self._redeemed(call, wanted)

    async def _redeemed(self, call: Invocation, wanted: ToolCall) -> Invocation:
        """Use up the approval, by what holds now: hours may have passed."""
        session = await asyncio.to_thread(self._sessions.get, call.session)
        tool, loop = await self._tool(call, session), asyncio.get_running_loop()

        def faults(arguments: dict[str, Any]) -> str:
            found = self._tools().faults(call.name, arguments)
            return " ".join(asyncio.run_coroutine_threadsafe(found, loop).result())

        if isinstance(tool, str):
            current = CurrentTool(unavailable=tool)
        elif {call.server, call.name} & set(session.tools_off):
            current = CurrentTool(unavailable=_TURNED_OFF)
        else:
            current = CurrentTool(tool.definition, faults=faults)
        # INVARIANT: a call of a conversation that a person approved is carried out at most once.
        found = await whole(
            asyncio.to_thread(redeem, self._pipeline, Approval(call.entry, wanted, tool=current))
        )
        if isinstance(found, Rejected):
            if found.overruled or found.reason == _TURNED_OFF:
                return await self._over(call, "denied", error=_refusal(found.reason, found.remedy))
            return await self._over(call, "error", error=f"It was not called: {found.reason}")
        edited = found.arguments if found.argument_hash != wanted.argument_hash else None
        call = await self._note(call, started_at=self._pipeline.clock(), edited=edited)
        return await self._carried_out(call, found)

    # -- carrying out -----------------------------------------------------------------------------------

    async def _execute(self, call: Invocation, wanted: ToolCall) -> Invocation:
        now = self._pipeline.clock()
        # INVARIANT: a call is carried out at most once, whatever is clicked, resumed or restarted.
        if not await self._change(call, ("pending",), status="running", started_at=now):
            return await self._again(call)
        return await self._carried_out(await self._again(call), wanted)

    async def _carried_out(self, call: Invocation, wanted: ToolCall) -> Invocation:
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
        found = await asyncio.to_thread(get_entry, self._pipeline.store, call.entry)
        if found is not None and state_of(found) is State.approved:
            # It had not begun: the approval is still to be used.
            return await self._redeemed(call, self.call(run, session, call, tool))
        why = "The server was stopped while this call was under way."
        hints = {} if isinstance(tool, str) else tool.annotations
        repeatable = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
        await self._close(call, "unknown", "server ended")
        # INVARIANT: a call whose fate is unknown is made again only where twice is the same as once.
        if not repeatable or {call.server, call.name} & set(session.tools_off):
            return await self._over(call, "error", error=f"{why} {UNKNOWN}")
        edited = await asyncio.to_thread(self._pipeline.broker.edited, call.entry)
        # INVARIANT: where the arguments a person approved are lost, the others do not run.
        if edited is None and found is not None and found.edited_hash is not None:
            return await self._over(call, "error", error=f"{why} {UNKNOWN}")
        arguments = call.arguments if edited is None else edited
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
            await whole(
                asyncio.to_thread(abandon, self._pipeline, call.entry, CHANNEL, "the run was stopped")
            )
        await self._close(call, "cancelled", "client")
        text = f"Stopped while it ran. {UNKNOWN}" if call.status == "running" else "Stopped before it ran."
        await self._over(call, "cancelled", error=text)

    async def _close(self, call: Invocation, outcome: str, evidence: str) -> None:
        """Nothing more comes of what was allowed or approved; an outcome that is known already stays."""

        def close() -> None:
            found = get_entry(self._pipeline.store, call.entry) if call.entry else None
            if found is None:
                return
            if state_of(found) is State.approved:
                self._pipeline.drop(call.entry, evidence=evidence, reason="The call was given up.")
            elif state_of(found) in UNDER_WAY:
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
