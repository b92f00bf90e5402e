"""The Claude Agent SDK, and what Claude Code tells its callbacks."""

# ruff: noqa: F401 - tests take the names of the framework from here, once they run.

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from checkrein.doors.library.adapters.claude_agent import ANSWERED, WAITS, Approvals
from doors.library import rooms

ALLOW_BASH = ['rules=[{action="allow",tool="Bash"}]']


def before(name, arguments, id="t1", **more):
    return {
        "hook_event_name": "PreToolUse",
        "session_id": "session",
        "transcript_path": "",
        "prompt_id": "prompt",
        "tool_name": name,
        "tool_input": arguments,
        "tool_use_id": id,
        **more,
    }


def after(id="t1", **more):
    return {"hook_event_name": "PostToolUse", "tool_use_id": id, "tool_response": "ok", **more}


def failed(id="t1", **more):
    return {"hook_event_name": "PostToolUseFailure", "tool_use_id": id, "error": "exit 3", **more}


async def judged(approvals, given):
    """What the hook says; a call at which the run stops is a `wait`."""
    said = await approvals.before(given, given["tool_use_id"], {"signal": None})
    decided = said["hookSpecificOutput"]
    if "continue_" not in said:
        return decided
    assert said["continue_"] is False and said["stopReason"] == decided["permissionDecisionReason"]
    assert decided["permissionDecision"] == "deny" and WAITS in said["stopReason"]
    return decided | {"permissionDecision": "wait"}


async def told(approvals, given):
    assert await approvals.after(given, given["tool_use_id"], {"signal": None}) == {}


def gate_in(folder, **options):
    return rooms.gate_in(folder, cwd=folder, **options)
