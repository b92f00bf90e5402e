"""Google's Agent Development Kit: its tools, gated; an ask is a tool confirmation the session keeps.

`gated` wraps functions, tools and toolsets. A confirmation counts for exactly the call it was requested for,
and one that says no always holds.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from checkrein.core.approvals import Settled
from checkrein.doors.library.denial import Refusal, Suspended
from checkrein.doors.library.driving import in_thread
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.errors import CheckreinError, InputError

# Where the session's state keeps the question of a call: before the call's id.
STATE = "checkrein:"
WAITS = "This tool call waits for a person's approval."
LOST = "A person's approval of this call is not known here, so it did not run. Make the call again."
REJECTED = "This tool call was rejected, so it did not run."
_log = logging.getLogger("checkrein")


def gated(gate: Gate, tools: Iterable[Any], **options: Any) -> list[Any]:
    """What an agent's `tools` may hold, gated. Options are those of `Gate.tool`."""
    return [_gated(gate, each, options) for each in tools]


def _gated(gate: Gate, tool: Any, options: dict[str, Any]) -> Any:
    if isinstance(tool, BaseToolset):
        return GatedToolset(gate, tool, options)
    if isinstance(tool, BaseTool):
        return GatedTool(gate, tool, options)
    if callable(tool):
        return GatedTool(gate, FunctionTool(tool), options)
    raise InputError(f"{type(tool).__name__} is no tool of the ADK.")


class GatedTool(BaseTool):
    """One tool: the model sees the tool's own declaration, its calls come here."""

    def __init__(self, gate: Gate, tool: BaseTool, options: dict[str, Any]) -> None:
        _check(tool)
        super().__init__(
            name=tool.name,
            description=tool.description,
            is_long_running=tool.is_long_running,
            custom_metadata=tool.custom_metadata,
            behavior=tool.behavior,
            response_scheduling=tool.response_scheduling,
        )
        self._gate, self._tool = gate, tool
        self._inner = _unasking(tool)
        self._spec = gate.spec(tool.name, **({"failed": _failed} | options | {"denials": "return"}))

    def _get_declaration(self) -> Any:
        return self._tool._get_declaration()

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        await self._tool.process_llm_request(tool_context=tool_context, llm_request=llm_request)
        # INVARIANT: whatever the model calls by this name comes through the gate.
        for name, each in llm_request.tools_dict.items():
            if each is self._tool:
                llm_request.tools_dict[name] = self

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        spec = await self._asked_for(args, tool_context)
        call_id, confirmation = tool_context.function_call_id or "", tool_context.tool_confirmation

        def run(arguments: dict[str, Any]) -> Any:
            return self._inner.run_async(args=arguments, tool_context=tool_context)

        try:
            if confirmation is not None:
                return _result(await self._go_on(spec, args, tool_context, run))
            return _result(await self._gate.call_async(spec, args, run, call_id=call_id))
        except Suspended as suspended:
            return await self._pause(suspended.pending, tool_context)

    # -- pausing and going on ---------------------------------------------------------------------------

    async def _pause(self, question: Pending, tool_context: ToolContext) -> dict[str, str]:
        if question.kind == "suspended":
            raise InputError("A tool cannot suspend itself here.", remedy="Give the gate `auto_resume`.")
        if tool_context.tool_confirmation is not None or not tool_context.function_call_id:
            # The ADK does not ask about the same call twice.
            await self._withdraw(question)
            return {"error": LOST}
        tool_context.state[STATE + tool_context.function_call_id] = question.json()
        tool_context.request_confirmation(hint=question.text, payload={"record": question.entry})
        tool_context.actions.skip_summarization = True
        return {"error": WAITS}

    async def _go_on(
        self, spec: Spec, args: dict[str, Any], tool_context: ToolContext, run: Callable[..., Any]
    ) -> Any:
        confirmation = tool_context.tool_confirmation
        question = self._question(spec, args, tool_context)
        if question is None:
            # INVARIANT: a confirmation without its question is judged as if there were none.
            call_id = tool_context.function_call_id or ""
            return await self._gate.call_async(spec, args, run, call_id=call_id)
        confirmed = confirmation is not None and confirmation.confirmed
        settled = await self._answer(question, confirmed, confirmation.payload if confirmation else None)
        if not confirmed and (settled is None or settled.state in ("approved", "answered")):
            # INVARIANT: a confirmation that says no holds, whatever else was said.
            return {"error": REJECTED}
        # Where the program may not answer, what a person says is waited for here.
        waits = msgspec.structs.replace(spec, manner=msgspec.structs.replace(spec.manner, asks="wait"))
        return await self._gate.resume_async(question, run=run, spec=waits)

    def _question(self, spec: Spec, args: dict[str, Any], tool_context: ToolContext) -> Pending | None:
        kept = tool_context.state.get(f"{STATE}{tool_context.function_call_id}")
        if kept is None:
            return None
        found = pending(kept)
        call = found.call
        same = (call.server, call.tool, call.arguments) == (spec.server, spec.name, args)
        # INVARIANT: a confirmation counts for exactly the call it was requested for.
        return found if same and call.call_id == tool_context.function_call_id else None

    async def _answer(self, question: Pending, confirmed: bool, payload: Any) -> Settled | None:
        """What the program's person said in the ADK's way; where somebody was quicker, that counts."""
        said = payload if isinstance(payload, dict) else {}
        edited, message = said.get("edited"), said.get("message")
        if edited is not None and not isinstance(edited, dict):
            raise InputError("`edited` in a confirmation's payload are the arguments to run with.")

        def answer() -> None:
            word, text = "yes" if confirmed else "no", message if isinstance(message, str) else ""
            self._gate.answer(question, word, message=text, edited=edited if confirmed else None)

        entry, call = question.entry, question.call

        def so_far() -> Settled | None:
            return self._gate.authority.wait(entry, call, 0.0)

        if (settled := await in_thread(so_far)) is None:
            try:
                await in_thread(answer)
            except CheckreinError as error:
                # INVARIANT: the server takes no answer from the program that asks.
                _log.warning("A confirmation of the program's own does not count: %s", error)
                if not confirmed:
                    await self._withdraw(question)
            settled = await in_thread(so_far)
        found: Settled | None = settled
        return found

    async def _withdraw(self, question: Pending) -> None:
        entry, call = question.entry, question.call
        try:
            await in_thread(lambda: self._gate.authority.withdraw(entry, call, "the program went on"))
        except CheckreinError as error:
            _log.warning("A question could not be withdrawn: %s", error)

    async def _asked_for(self, args: dict[str, Any], tool_context: ToolContext) -> Spec:
        """The tool's own `require_confirmation` only ever asks for more."""
        try:
            wanted = await self._tool.check_require_confirmation(args, tool_context)
        except Exception:  # noqa: BLE001 - INVARIANT: a function that fails asks a person
            wanted = True
        if not wanted:
            return self._spec
        wishes = msgspec.structs.replace(self._spec.wishes, needs=(*self._spec.wishes.needs, True))
        return msgspec.structs.replace(self._spec, wishes=wishes)


class GatedToolset(BaseToolset):
    """A toolset whose tools are gated as they are listed."""

    def __init__(self, gate: Gate, toolset: BaseToolset, options: dict[str, Any]) -> None:
        super().__init__()
        self._gate, self._toolset, self._options = gate, toolset, options

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        found = await self._toolset.get_tools_with_prefix(readonly_context)
        return [GatedTool(self._gate, each, self._options) for each in found]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        before = dict(llm_request.tools_dict)
        await self._toolset.process_llm_request(tool_context=tool_context, llm_request=llm_request)
        # INVARIANT: a toolset adds no tool behind the gate's back.
        if any(before.get(name) is not each for name, each in llm_request.tools_dict.items()):
            kind = type(self._toolset).__name__
            raise InputError(f"A {kind} offers tools the gate does not see.", remedy="Do not use it gated.")

    def get_auth_config(self) -> Any:
        return self._toolset.get_auth_config()

    async def close(self) -> None:
        await self._toolset.close()


def _check(tool: BaseTool) -> None:
    """INVARIANT: a tool that would run past the gate is not wrapped as if it did not."""
    if type(tool).run_async is BaseTool.run_async:
        raise InputError(f"`{tool.name}` runs at the model's provider and cannot be gated.")
    function = getattr(tool, "func", None)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise InputError("A tool that yields its result bit by bit cannot be gated.", remedy="Return it.")


def _unasking(tool: BaseTool) -> BaseTool:
    """The tool as it runs once the gate has decided: it does not ask again."""
    if getattr(tool, "_require_confirmation", False) is False:
        return tool
    inner = copy.copy(tool)
    inner._require_confirmation = False  # type: ignore[attr-defined]
    return inner


def _result(came: Any) -> Any:
    """INVARIANT: a refusal reaches the model as an error."""
    return {"error": str(came)} if isinstance(came, Refusal) else came


def _failed(result: Any) -> bool:
    """The ADK's tools say that something went wrong in their result."""
    return isinstance(result, dict) and bool(result.get("error") or result.get("isError"))
