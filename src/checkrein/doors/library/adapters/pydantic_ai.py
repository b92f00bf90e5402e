"""Pydantic AI: a toolset whose calls are judged, and the answers its deferred calls go on with.

The framework's own yes runs nothing: what a person said is read from the gate when a call goes on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from pydantic_ai import (
    AbstractToolset,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    FunctionToolset,
    RunContext,
    Tool,
    ToolApproved,
    ToolDenied,
    ToolFailed,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_core import ValidationError

from checkrein.call import digest
from checkrein.doors.library.adapters import HandedOn
from checkrein.doors.library.answers import Answer, said
from checkrein.doors.library.arguments import plain_arguments
from checkrein.doors.library.denial import Denied, Suspended
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.errors import InputError

KEY = "checkrein"


def gated(
    gate: Gate, tools: AbstractToolset[Any] | Sequence[Tool[Any] | Callable[..., Any]], **options: Any
) -> GatedToolset:
    """The tools, gated. Options are those of `gate.tool`, for all of them.

    A refusal is text the model reads, unless `denials="raise"`. A call that is asked about waits where the
    gate says `asks="wait"`; otherwise the run ends with `DeferredToolRequests`.
    """
    toolset = tools if isinstance(tools, AbstractToolset) else FunctionToolset(list(tools))
    denials = options.pop("denials", "return")
    asks = options.pop("asks", None) or gate.manner.asks
    options |= {"denials": "raise", "asks": "wait" if asks == "wait" else "raise"}
    return GatedToolset(toolset, gate, options, raises=denials == "raise")


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """Every call of the tools inside goes through the gate."""

    gate: Gate
    options: dict[str, Any] = field(default_factory=dict)
    raises: bool = False

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        found = await self.wrapped.get_tools(ctx)
        return {name: _ours(tool) for name, tool in found.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        spec = self._spec(name, tool)

        async def run(arguments: dict[str, Any]) -> Any:
            try:
                fitting = await _validated(arguments, tool_args, ctx, tool)
                return await self.wrapped.call_tool(name, fitting, ctx, tool)
            except (ApprovalRequired, CallDeferred) as elsewhere:
                raise HandedOn(elsewhere) from None

        try:
            waits = _waits(ctx)
            if waits is None:
                return await self.gate.call_async(spec, tool_args, run, call_id=ctx.tool_call_id or "")
            found, told = waits
            if other := _other(found, spec, tool_args, ctx):
                return ToolDenied(f"{other} Nothing ran; make the call again. (record {found.entry})")
            return await self.gate.resume_async(found, told, run=run, spec=spec)
        except Suspended as suspended:
            raise ApprovalRequired({KEY: msgspec.to_builtins(suspended.pending)}) from None
        except Denied as denied:
            if self.raises:
                raise
            return ToolDenied(denied.text)
        except HandedOn as handed:
            raise handed.value from None

    def _spec(self, name: str, tool: ToolsetTool[Any]) -> Spec:
        held = bool((tool.tool_def.metadata or {}).get(KEY))
        return self.gate.spec(name, **self.options | ({"require_approval": True} if held else {}))


def _ours(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    """The tool as one that comes to the gate first: there is one question, and the gate asks it."""
    definition = tool.tool_def
    if definition.kind == "external":
        # INVARIANT: what runs where the gate cannot see it is not offered as gated.
        why = f"`{definition.name}` runs outside, where no gate can hold it."
        raise InputError(why, remedy="Gate it where it runs, and leave it out here.")
    if definition.kind != "unapproved":
        return tool
    metadata = {**(definition.metadata or {}), KEY: True}
    return replace(tool, tool_def=replace(definition, kind="function", metadata=metadata))


def _waits(ctx: RunContext[Any]) -> tuple[Pending, Any] | None:
    """The call that waited and what its tool is told, where this is one that goes on."""
    metadata = ctx.tool_call_metadata
    if not ctx.tool_call_approved or not isinstance(metadata, dict) or KEY not in metadata:
        return None
    return pending(metadata[KEY]), metadata.get("told")


def _other(found: Pending, spec: Spec, tool_args: dict[str, Any], ctx: RunContext[Any]) -> str:
    """INVARIANT: an answer to one call lets no other call go on, also where the history was changed."""
    call = found.call
    if (call.server, call.tool, call.call_id) != (spec.server, spec.name, ctx.tool_call_id or ""):
        return "A person was asked about another call."
    if found.kind == "approval" and call.argument_hash != digest(plain_arguments(tool_args, [])):
        return "These arguments are not those a person was asked about."
    return ""


async def _validated(
    arguments: dict[str, Any], given: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
) -> dict[str, Any]:
    """Arguments as the tool takes them; a person's are checked as a model's are."""
    if arguments is given or digest(arguments) == digest(plain_arguments(given, [])):
        return given
    try:
        fitting = tool.args_validator.validate_json(
            msgspec.json.encode(arguments), context=ctx.validation_context
        )
    except ValidationError as error:
        raise ToolFailed(f"The arguments a person wrote do not fit the tool: {error}") from None
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(ctx, **fitting)
        if inspect.isawaitable(checked):
            await checked
    made: dict[str, Any] = fitting
    return made


# -- deferred calls -----------------------------------------------------------------------------------------


def waiting(requests: DeferredToolRequests) -> dict[str, Pending]:
    """The gate's questions in there, by tool call id."""
    return {
        each.tool_call_id: pending(requests.metadata[each.tool_call_id][KEY])
        for each in requests.approvals
        if KEY in requests.metadata.get(each.tool_call_id, {})
    }


def results(
    gate: Gate,
    requests: DeferredToolRequests,
    answers: Mapping[str, Any] | None = None,
    *,
    told: Mapping[str, Any] | None = None,
) -> DeferredToolResults:
    """What to run the agent with again: every call whose question is settled, by tool call id.

    `answers` are given to the gate first: `ToolApproved`, `ToolDenied`, True, False, "no: why". `told` is for
    tools that suspended themselves. `requests.remaining(results)` says what still waits; the framework goes
    on when nothing does.
    """
    found, made = waiting(requests), DeferredToolResults()
    for call_id, answer in (answers or {}).items():
        if call_id not in found:
            raise InputError(f"No question waits for call {call_id!r}.")
        gate.answer(found[call_id], _answer(answer))
    for call_id, each in found.items():
        metadata = {KEY: msgspec.to_builtins(each)}
        if each.kind == "suspended":
            if call_id not in (told or {}):
                continue
            metadata["told"] = (told or {})[call_id]
        elif gate.authority.wait(each.entry, each.call, 0.0) is None:
            continue
        made.approvals[call_id] = ToolApproved()
        made.metadata[call_id] = metadata
    return made


def _answer(raw: Any) -> Answer:
    if isinstance(raw, ToolApproved):
        return Answer(edited=raw.override_args)
    if isinstance(raw, ToolDenied):
        return Answer(answer="denied", message=raw.message)
    return said(raw)
