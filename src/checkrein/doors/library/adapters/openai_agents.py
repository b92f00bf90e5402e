"""The OpenAI Agents SDK: function tools, gated; interrupted runs go on when people have answered.

`Approvals` judges a call where the SDK asks whether it needs approval, and runs it where the SDK invokes it.
An approval of the SDK's alone never runs anything.
"""

from __future__ import annotations

import copy
import inspect
import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from agents import Agent, FunctionTool, RunContextWrapper, RunState
from agents.items import ToolApprovalItem
from agents.result import RunResult, RunResultStreaming
from agents.tool import set_function_tool_failure_error_function, with_function_tool_failure_error_handler
from agents.tool_context import ToolContext

from checkrein.approval import wording
from checkrein.call import ToolCall, digest
from checkrein.core.decision import Decided
from checkrein.doors.library.denial import Suspended
from checkrein.doors.library.driving import drive_async, in_thread
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.doors.library.turn import Turn
from checkrein.errors import CheckreinError, InputError

FORMAT = 1
LOST = "A person's approval of this call is not known here, so it did not run. Make the call again."
UNREADABLE = "The arguments of this call are no JSON object, so it did not run."
_MOST = 4_096
_FOR_EVER = 366 * 86_400.0
_log = logging.getLogger("checkrein")


class Kept(msgspec.Struct, forbid_unknown_fields=True):
    """An interrupted run as data: the SDK's own state, and the questions it waits for."""

    state: dict[str, Any]
    waiting: list[Pending]
    format: int = FORMAT


class Approvals:
    """What gated tools of the SDK share: the calls that were judged, and those that wait."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._allowed = dict[str, Decided]()
        self._waiting = dict[str, Pending]()
        self._used = dict[str, Pending]()

    # -- wrapping ---------------------------------------------------------------------------------------

    def tools(self, tools: Iterable[Any], **options: Any) -> list[FunctionTool]:
        """Function tools, gated. Options are those of `Gate.tool`."""
        return [self.tool(each, **options) for each in tools]

    def tool(self, tool: Any, **options: Any) -> FunctionTool:
        # INVARIANT: a tool that would run past the gate is not wrapped as if it did not.
        if not isinstance(tool, FunctionTool):
            kind = type(tool).__name__
            raise InputError(
                f"A {kind} does not run here and cannot be gated.", remedy="Use a function tool."
            )
        if tool._is_agent_tool:
            remedy = "Gate the tools of the agent it runs."
            raise InputError(f"`{tool.name}` is an agent, which stops and goes on by itself.", remedy=remedy)
        return _Gated(self, tool, self.gate.spec(tool.name, **options, denials="return")).made

    # -- interrupted runs -------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[Pending]:
        """Every question that an interrupted run waits for."""
        return list(self._waiting.values())

    def question(self, item: ToolApprovalItem) -> Pending | None:
        """The question behind one of a run's interruptions."""
        found = (each for each in self._waiting.values() if each.call.call_id == item.call_id)
        return next((each for each in found if each.call.arguments == _read(item.arguments)), None)

    def keep(self, run: RunResult | RunResultStreaming | RunState[Any, Any], **options: Any) -> str:
        """An interrupted run as JSON. Options are those of `RunState.to_json`."""
        state = run if isinstance(run, RunState) else run.to_state()
        ours = [self.question(each) for each in state.get_interruptions()]
        kept = Kept(state.to_json(**options), [each for each in ours if each is not None])
        return msgspec.json.encode(kept).decode()

    async def restore(self, agent: Agent[Any], kept: str | bytes, **options: Any) -> RunState[Any, Any]:
        """The run again, in this process or another. Options are those of `RunState.from_json`."""
        try:
            found = msgspec.json.decode(kept, type=Kept)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"This is no kept run: {error}", remedy="Keep what `keep` gives.") from None
        if found.format != FORMAT:
            raise InputError(f"This run is kept in format {found.format}; this version knows {FORMAT}.")
        for each in found.waiting:
            self._waiting[_key(each.call)] = pending(each)
        return await RunState.from_json(agent, found.state, **options)

    async def settle(
        self, run: RunResult | RunResultStreaming | RunState[Any, Any], *, wait: bool = False
    ) -> RunState[Any, Any]:
        """The run's state with every answer there is; `wait` for the others. What is open stays open."""
        state = run if isinstance(run, RunState) else run.to_state()
        for item in state.get_interruptions():
            question = self.question(item)
            if question is None:
                # INVARIANT: an approval nobody can find a question for is a no.
                unread = _read(item.arguments) is None
                state.reject(item, rejection_message=UNREADABLE if unread else LOST)
                continue
            await self._settle(state, item, question, _FOR_EVER if wait else 0.0)
        return state

    async def _settle(
        self, state: RunState[Any, Any], item: ToolApprovalItem, question: Pending, seconds: float
    ) -> None:
        entry, call = question.entry, question.call
        settled = await in_thread(lambda: self.gate.authority.wait(entry, call, seconds))
        if settled is None:
            return
        if settled.state in ("approved", "answered"):
            state.approve(item)
            return
        spec = self.gate.spec(call.name, asks="raise", denials="return")
        said = await self.gate.resume_async(question, run=_never, spec=spec)
        state.reject(item, rejection_message=str(said))

    # -- one call ---------------------------------------------------------------------------------------

    async def judged(self, spec: Spec, arguments: dict[str, Any], call_id: str) -> bool:
        """Whether the SDK has to interrupt the run for a person."""
        call = self.gate.tool_call(spec, arguments, call_id)
        key = _key(call)
        if key in self._waiting:
            return True
        decided = await self.gate.decide_async(spec, arguments, call_id=call_id)
        if decided.verdict.word != "ask":
            _put(self._allowed, key, decided)
            return False
        turn = Turn(self.gate.authority, spec.manner, call, _never)
        _put(self._waiting, key, turn.pending(decided))
        return True

    async def run(
        self,
        spec: Spec,
        arguments: dict[str, Any],
        call_id: str,
        run: Callable[[dict[str, Any]], Any],
    ) -> Any:
        """Carry out a call the SDK invokes, as it was judged; one nobody judged is judged now."""
        call = self.gate.tool_call(spec, arguments, call_id)
        key = _key(call)
        decided = self._allowed.pop(key, None)
        if decided is not None and decided.verdict.word == "allow":
            turn = Turn(self.gate.authority, spec.manner, call, lambda _changed: lambda: run(arguments))
            return await drive_async(turn.carried(decided.entry, None))
        if decided is not None:
            return wording.refusal(call, decided.verdict, decided.entry)
        question = self._waiting.pop(key, None) or self._used.get(key)
        try:
            if question is not None:
                _put(self._used, key, question)
                await self._answered_by_program(question)
                return await self.gate.resume_async(question, run=run, spec=spec)
            return await self.gate.call_async(spec, arguments, run, call_id=call_id)
        except Suspended as suspended:
            return await self._let_go(suspended.pending)

    async def _answered_by_program(self, question: Pending) -> None:
        """The SDK was told to approve: a gate of the program's own takes that as its person's answer."""
        entry, call = question.entry, question.call
        if await in_thread(lambda: self.gate.authority.wait(entry, call, 0.0)) is not None:
            return
        try:
            await in_thread(lambda: self.gate.answer(question, "yes"))
        except CheckreinError as error:
            # INVARIANT: the server takes no answer from the program that asks, so nothing runs.
            _log.warning("An approval of the program's own does not count: %s", error)

    async def _let_go(self, question: Pending) -> str:
        """The SDK invoked what a person was not asked about; it cannot be interrupted any more."""
        if question.kind == "suspended":
            raise InputError("A tool cannot suspend itself here.", remedy="Give the gate `auto_resume`.")
        entry, call = question.entry, question.call
        try:
            await in_thread(lambda: self.gate.authority.withdraw(entry, call, "the run went on"))
        except CheckreinError as error:
            _log.warning("A question could not be withdrawn: %s", error)
        return LOST


class _Gated:
    """One tool: the SDK's own, and the one the agent gets in its place."""

    def __init__(self, approvals: Approvals, tool: FunctionTool, spec: Spec) -> None:
        self.approvals, self.spec = approvals, spec
        self.held = msgspec.structs.replace(
            spec, wishes=msgspec.structs.replace(spec.wishes, needs=(*spec.wishes.needs, True))
        )
        self.own = tool.needs_approval
        # What fails in the tool reaches the gate first; the tool's own way with failures comes after.
        self.inner = set_function_tool_failure_error_function(copy.copy(tool), None)
        made = copy.copy(tool)
        made.on_invoke_tool = with_function_tool_failure_error_handler(self.invoke, lambda *_: None)
        made.needs_approval = False if spec.manner.asks == "wait" else self.needs_approval
        # Copying binds the failure handling to the copy.
        self.made = copy.copy(made)

    async def needs_approval(self, context: RunContextWrapper[Any], given: dict[str, Any], call: str) -> bool:
        spec = await self._spec(context, given, call)
        return await self.approvals.judged(spec, given, call)

    async def invoke(self, context: ToolContext[Any], text: str) -> Any:
        given = _read(text)
        if given is None:
            return UNREADABLE
        spec = await self._spec(context, given, context.tool_call_id)

        def run(arguments: dict[str, Any]) -> Any:
            changed = text if digest(arguments) == digest(given) else json.dumps(arguments)
            return self.inner.on_invoke_tool(context, changed)

        return await self.approvals.run(spec, given, context.tool_call_id, run)

    async def _spec(self, context: RunContextWrapper[Any], given: dict[str, Any], call: str) -> Spec:
        """The tool's own `needs_approval` only ever asks for more."""
        if isinstance(self.own, bool):
            return self.held if self.own else self.spec
        try:
            # INVARIANT: who looks at a call changes nothing of what is judged.
            found: Any = self.own(context, copy.deepcopy(given), call)
            found = await found if inspect.isawaitable(found) else found
        except Exception:  # noqa: BLE001 - INVARIANT: a function that fails asks a person
            found = True
        return self.held if found else self.spec


def _key(call: ToolCall) -> str:
    """INVARIANT: what was judged or approved is found again for exactly the same call only."""
    return digest([call.call_id, call.server, call.tool, call.arguments])


def _read(text: str | None) -> dict[str, Any] | None:
    """A call's arguments; a model that sends none at all means an empty object."""
    try:
        found = json.loads(text) if text and text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _put(book: dict[str, Any], key: str, value: Any) -> None:
    """Remember; the oldest is forgotten where there are too many, which refuses it."""
    if len(book) >= _MOST:
        del book[next(iter(book))]
    book[key] = value


def _never(_arguments: dict[str, Any] | None = None) -> Any:
    raise InputError("This call is carried out elsewhere.")
