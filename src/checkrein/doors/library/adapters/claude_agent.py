"""The Claude Agent SDK: every tool of Claude Code, gated by hooks and by `can_use_tool`.

`Approvals.options` adds them. A call is judged here and carried out by Claude Code, which tells what became
of it. Whatever fails here blocks the call.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Self

import msgspec
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from checkrein.call import ToolCall, digest
from checkrein.doors.library.denial import Refusal, Suspended
from checkrein.doors.library.driving import drive_async
from checkrein.doors.library.gate import Gate
from checkrein.doors.library.pending import Pending, pending
from checkrein.doors.library.tools import Spec
from checkrein.doors.library.turn import Turn
from checkrein.errors import InputError

# How long a hook may wait for a person; Claude Code blocks the call when it is over.
WAIT_SECONDS = 86_400.0
WAITS = "This did not run. It waits for a person; make the call again when you are told to. (record "
ANSWERED = "This did not run; a person answers for it: "
# What to say to a session whose run stopped, once people have answered.
GO_ON = "The calls that waited for a person are answered now. Make each of them again, exactly as before."


class ToolFailed(Exception):  # noqa: N818 - what Claude Code says became of a call
    """Claude Code says that a tool failed."""


class Approvals:
    """What one program's clients share: the calls under way, and those that wait for people."""

    def __init__(self, gate: Gate, *, wait_seconds: float = WAIT_SECONDS, **options: Any) -> None:
        """`options` are those of `Gate.tool`, for every tool of Claude Code."""
        self.gate, self._wait_seconds = gate, wait_seconds
        self._options = {"server": None} | options | {"denials": "return"}
        self._errands = dict[str, _Errand]()
        self._waiting = dict[str, Pending]()

    # -- what a client is given -------------------------------------------------------------------------

    def options(self, options: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The options with the gate in them; hooks and a `can_use_tool` that are there already stay."""
        given = options or ClaudeAgentOptions()
        hooks: dict[Any, list[HookMatcher]] = dict(given.hooks or {})
        for event, ours in self.hooks().items():
            hooks[event] = [*ours, *hooks.get(event, [])]
        asked = given.can_use_tool
        if asked is None and not given.permission_prompt_tool_name:
            asked = partial(self.can_use_tool, cwd=os.path.realpath(given.cwd or "."))
        return dataclasses.replace(given, hooks=hooks, can_use_tool=asked)

    def hooks(self) -> dict[str, list[HookMatcher]]:
        """INVARIANT: a hook of ours that fails, or takes too long, blocks the call."""
        return {
            "PreToolUse": [HookMatcher(hooks=[self.before], timeout=self._wait_seconds, on_failure="block")],
            "PostToolUse": [HookMatcher(hooks=[self.after])],
            "PostToolUseFailure": [HookMatcher(hooks=[self.after])],
        }

    # -- runs that stopped ------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[Pending]:
        """Every question that a stopped run waits for."""
        return list(self._waiting.values())

    def keep(self) -> str:
        """The questions as JSON; the conversation is the session Claude Code keeps."""
        return msgspec.json.encode(self.waiting).decode()

    def restore(self, kept: str | bytes) -> None:
        """Questions of another process. Resume the session with `GO_ON` as the prompt."""
        try:
            found = msgspec.json.decode(kept, type=list[Pending])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"These are no questions: {error}", remedy="Keep what `keep` gives.") from None
        for each in found:
            self._waiting[_key(each.call)] = pending(each)

    # -- what Claude Code calls -------------------------------------------------------------------------

    async def before(self, given: Any, _tool_use_id: str | None, _context: Any) -> Any:
        """PreToolUse: whether a call may run, with which arguments."""
        errand = await self._errand(
            given["tool_name"], given["tool_input"], given["tool_use_id"], given.get("cwd", "")
        )
        said: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": errand.word}
        if errand.text:
            said["permissionDecisionReason"] = errand.text
        if errand.changed is not None:
            said["updatedInput"] = errand.changed
        stops = {"continue_": False, "stopReason": errand.text} if errand.suspended is not None else {}
        return {"hookSpecificOutput": said, **stops}

    async def can_use_tool(
        self, name: str, given: dict[str, Any], context: ToolPermissionContext, *, cwd: str = ""
    ) -> PermissionResult:
        """Calls Claude Code asks about itself; one the hook let run with these arguments may."""
        known = self._errands.get(context.tool_use_id) if context.tool_use_id else None
        if known is None or not known.lets(name, given):
            known = await self._errand(name, given, context.tool_use_id or "", cwd)
        if known.word == "allow":
            return PermissionResultAllow(updated_input=known.changed)
        return PermissionResultDeny(message=known.text, interrupt=known.suspended is not None)

    async def after(self, given: Any, _tool_use_id: str | None, _context: Any) -> Any:
        """PostToolUse and PostToolUseFailure: what became of a call."""
        errand = self._errands.pop(given["tool_use_id"], None)
        if errand is not None:
            await errand.ended(given)
        return {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """What nobody will hear of any more is on the record as interrupted."""
        errands, self._errands = list(self._errands.values()), {}
        for each in errands:
            await each.cancel()

    async def _errand(self, name: str, given: dict[str, Any], call_id: str, cwd: str) -> _Errand:
        spec = self.gate.spec(name, **self._options)
        call = self.gate.tool_call(spec, given, call_id)
        call = msgspec.structs.replace(call, cwd=cwd) if cwd else call
        if (before := self._errands.pop(call_id, None)) is not None:
            # What was let run before under this id is another call now.
            await before.cancel()
        errand = _Errand(call)
        await errand.begin(self._steps(spec, call, given, errand))
        if errand.suspended is not None:
            self._waiting[_key(call)] = errand.suspended
        else:
            self._waiting.pop(_key(call), None)
        if errand.word == "allow":
            self._errands[call_id or f"without an id: {id(errand)}"] = errand
        return errand

    def _steps(
        self, spec: Spec, call: ToolCall, given: dict[str, Any], errand: _Errand
    ) -> Coroutine[Any, Any, Any]:
        # INVARIANT: an answer is used for exactly the call it was asked for.
        waits = self._waiting.get(_key(call))
        turn = Turn(self.gate.authority, spec.manner, waits.call if waits else call, errand.prepare)
        if waits is not None:
            return drive_async(turn.again(waits, None))
        # INVARIANT: who looks at a call changes nothing of what is judged.
        looked_at = copy.deepcopy(given)
        return drive_async(turn.fresh(self.gate.wish(spec, call, looked_at, may_wait=True)))


class _Errand:
    """One call: the gate's way of it runs here, while Claude Code carries it out."""

    def __init__(self, call: ToolCall) -> None:
        loop = asyncio.get_running_loop()
        self.call, self.word, self.text = call, "deny", ""
        self.changed: dict[str, Any] | None = None
        self.suspended: Pending | None = None
        self._passed = False
        self._goes: asyncio.Future[dict[str, Any] | None] = loop.create_future()
        self._came: asyncio.Future[Any] = loop.create_future()
        self._task: asyncio.Task[Any] | None = None

    def prepare(self, arguments: dict[str, Any] | None) -> Callable[[], asyncio.Future[Any]]:
        def carry() -> asyncio.Future[Any]:
            """The gate lets the call run; what comes of it comes later."""
            self._goes.set_result(arguments)
            return self._came

        return carry

    def lets(self, name: str, given: dict[str, Any]) -> bool:
        """INVARIANT: one verdict is passed on once, for the very call it was given for."""
        ran = self.call.arguments if self.changed is None else self.changed
        passed, self._passed = self._passed, True
        return not passed and self.call.name == name and digest(ran) == digest(given)

    async def begin(self, steps: Coroutine[Any, Any, Any]) -> None:
        """Until the call may run, may not, or waits for somebody elsewhere."""
        self._task = asyncio.create_task(steps)
        try:
            await asyncio.wait({self._task, self._goes}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            # INVARIANT: where Claude Code does not wait any more, no late yes runs anything.
            await self.cancel()
            raise
        if not self._goes.done():
            self._refused(self._task)
            return
        arguments = self._goes.result()
        self.word = "allow"
        self.changed = None if arguments in (None, self.call.arguments) else arguments

    def _refused(self, task: asyncio.Task[Any]) -> None:
        try:
            came = task.result()
        except Suspended as suspended:
            self.text, self.suspended = f"{WAITS}{suspended.pending.entry})", suspended.pending
            return
        # Claude Code takes no result from a hook, so an answer in the tool's place is a no with that answer.
        self.text = str(came) if isinstance(came, Refusal) else f"{ANSWERED}{came}"

    async def ended(self, given: dict[str, Any]) -> None:
        if given.get("is_interrupt"):
            await self.cancel()
            return
        if given["hook_event_name"] == "PostToolUse":
            self._came.set_result(given.get("tool_response"))
        else:
            self._came.set_exception(ToolFailed(str(given.get("error", ""))))
        await self._over()

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await self._over()

    async def _over(self) -> None:
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.result()
        except (ToolFailed, Suspended):
            return


def _key(call: ToolCall) -> str:
    """Claude makes a call again under another id; everything else is the same."""
    return digest([call.cwd, call.server, call.tool, call.arguments])
