"""What each agent is told to run, and when: events, matchers, time limits, as the values its settings hold.

Pure data; `install` writes it, `presence` compares with it. The agents' own names come from their tables.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.doors.hooks.dialects import AGENTS, dialect

# The command for (agent, mode, seconds).
CommandFor = Callable[[str, str, int], str]

PHASES = ("planning", "building", "auditing")
MODES = ("gate", "permission", "tell", "status")
# The answer, also "nobody answered", must arrive before the agent stops waiting.
AFTER_ASKING = 60
TELLING = 15
BEFORE_THE_AGENT = 10
# Claude Code gives 1.5 s unless told otherwise; Codex cuts whatever is more than 3 s.
SHORTER = {("claude-code", "SessionEnd"): 10, ("codex", "SessionEnd"): 3}
STATUS_SECONDS = 2
STATUS_REFRESH = 5
# INVARIANT: a phase command that does not reach the server is stopped, so nobody believes in a phase that
# does not hold. Only the three phase commands are matched; every other slash command stays free.
PHASE_COMMANDS = f"^(checkrein:)?({'|'.join(PHASES)})$"
STOPPED_EVENTS = {("claude-code", "UserPromptExpansion"): PHASE_COMMANDS}
# Copilot takes a matcher for a regular expression and drops the hook on "*"; Cursor's default is everything.
MATCH_ALL = {
    "claude-code": ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"),
    "codex": ("PreToolUse", "PermissionRequest", "PostToolUse"),
    "gemini-cli": ("BeforeTool", "AfterTool"),
}
# One object per event with its handlers inside, or the handlers themselves.
GROUPED = ("claude-code", "codex", "gemini-cli")
COMMAND_KEY = {"copilot-cli": "bash"}
VERSIONED = ("copilot-cli", "cursor")
HANDLER_NAME = "checkrein"


class Registration(msgspec.Struct, frozen=True):
    """One event of an agent: how long the agent waits (seconds), and what happens when nobody answers."""

    event: str
    mode: str
    timeout: int
    matcher: str = ""

    @property
    def seconds(self) -> int:
        """When the client gives up, so that it is the client that answers and not the agent's clock."""
        return self.timeout - min(BEFORE_THE_AGENT, max(1, self.timeout // 2))


class Client(msgspec.Struct, frozen=True):
    """A command line of ours, read back."""

    agent: str
    mode: str
    seconds: int


def registrations(agent: str, wait: int = 300) -> tuple[Registration, ...]:
    """Every event to register; a question may wait `wait` seconds for its answer."""
    register = dialect(agent).hooks.register
    stopped = [event for known, event in STOPPED_EVENTS if known == agent]
    by_mode = (
        ("gate", (*register.gate, *(event for event in stopped if event not in register.gate))),
        ("permission", register.permission),
        ("tell", tuple(event for event in register.tell if event not in stopped)),
    )
    return tuple(_registration(agent, event, mode, wait) for mode, events in by_mode for event in events)


def _registration(agent: str, event: str, mode: str, wait: int) -> Registration:
    longest = TELLING if mode == "tell" else wait + AFTER_ASKING
    everything = "*" if event in MATCH_ALL.get(agent, ()) else ""
    return Registration(
        event=event,
        mode=mode,
        timeout=SHORTER.get((agent, event), longest),
        matcher=STOPPED_EVENTS.get((agent, event), everything),
    )


def entry(agent: str, registration: Registration, command: str) -> dict[str, Any]:
    """What stands in the agent's list for the event."""
    hooks = dialect(agent).hooks
    scale = 1000 if hooks.timeout_unit == "ms" else 1
    handler = {
        **({"type": "command"} if agent != "cursor" else {}),
        **({"name": HANDLER_NAME} if agent == "gemini-cli" else {}),
        COMMAND_KEY.get(agent, "command"): command,
        hooks.timeout_key: registration.timeout * scale,
        **(hooks.fails_closed if registration.mode == "gate" else {}),
    }
    if agent not in GROUPED:
        return handler
    return {**({"matcher": registration.matcher} if registration.matcher else {}), "hooks": [handler]}


def entries(agent: str, command: CommandFor, wait: int = 300) -> dict[str, dict[str, Any]]:
    """Event to entry, in the order they are written."""
    return {
        each.event: entry(agent, each, command(agent, each.mode, each.seconds))
        for each in registrations(agent, wait)
    }


def status_line(command: CommandFor) -> dict[str, Any]:
    """Claude Code's line under the prompt."""
    line = command("claude-code", "status", STATUS_SECONDS)
    return {"type": "command", "command": line, "refreshInterval": STATUS_REFRESH}


def handlers(agent: str, item: Any) -> list[dict[str, Any]]:
    """The handlers in one item of an event's list; none where the item makes no sense."""
    inside = item.get("hooks") if agent in GROUPED and isinstance(item, dict) else [item]
    return [each for each in inside if isinstance(each, dict)] if isinstance(inside, list) else []


def client_of(agent: str, handler: Any) -> Client | None:
    """Our client as this handler runs it; None for everybody else's handler."""
    command = handler.get(COMMAND_KEY.get(agent, "command")) if isinstance(handler, dict) else None
    return recognise(command) if isinstance(command, str) else None


def recognise(command: str) -> Client | None:
    """Our client's command line wherever it was installed; a line that only mentions it is not ours."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[-3:] == ["||", "exit", "2"]:
        words = words[:-3]
    if len(words) not in (5, 8):
        return None
    *program, _door, agent, mode, seconds = words
    if agent in AGENTS and mode in MODES and seconds.isdigit() and _is_client(program):
        return Client(agent, mode, int(seconds))
    return None


def _is_client(program: list[str]) -> bool:
    if len(program) == 1:
        return program[0].rpartition("/")[2] == "checkrein-hook"
    return program[1:3] == ["-I", "-S"] and program[3].endswith("/hookclient/client.py")
