"""What each coding agent calls things: one readable table per agent; no other module knows an agent.

`events.py` reads payloads with a dialect, `replies.py` answers with it, the installer registers with it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from checkrein.errors import InputError
from checkrein.speakers import PipeRule

AGENTS: tuple[str, ...] = ("claude-code", "codex", "gemini-cli", "copilot-cli", "cursor")
_TABLES = Path(__file__).parent / "tables"

Kind = Literal[
    "call",
    "permission",
    "done",
    "failed",
    "session_start",
    "session_end",
    "stop",
    "prompt",
    "expansion",
    "config",
    "subagent",
    "other",
]
Outcome = Literal["success", "failure", "unknown", "cancelled", ""]
Evidence = Literal["exit_status", "tool_error", "interruption", "report", ""]
Saying = Literal["allow", "rewrite", "ask", "deny", "block", "inform"]
Paths = tuple[str, ...]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a table; a key nobody knows is a spelling mistake and refused."""


class Fields(_Part, frozen=True, kw_only=True):
    """Where each common field is: dotted paths, the first that is there counts."""

    event: Paths
    session: Paths
    tool: Paths
    arguments: Paths
    cwd: Paths = ("cwd",)
    prompt_id: Paths = ()
    call_id: Paths = ()
    server: Paths = ()
    server_tool: Paths = ()
    output: Paths = ()
    prompt: Paths = ()
    command: Paths = ()
    command_arguments: Paths = ()
    file: Paths = ()
    source: Paths = ()
    mode: Paths = ()
    subagent: Paths = ()


class Clue(_Part, frozen=True, kw_only=True):
    """What a payload without an event name is, by the keys it has."""

    has: tuple[str, ...]
    event: str


class Implied(_Part, frozen=True, kw_only=True):
    """An event about one certain tool, with the arguments as keys of the payload itself."""

    tool: str = ""
    server: str | None = None
    arguments: tuple[str, ...] = ()


class Mcp(_Part, frozen=True, kw_only=True):
    """One way an agent spells a tool of an MCP server: prefix, server, separator, tool."""

    separator: str
    prefix: str = ""
    servers: tuple[str, ...] = ()
    without_server: str = ""


class Sign(_Part, frozen=True, kw_only=True):
    """One way to see how a call ended."""

    kind: Literal["done", "failed"]
    tools: tuple[str, ...] = ()
    paths: Paths = ()
    equals: bool | str | None = None
    text: str = ""
    at: Literal["start", "end"] = "start"
    outcome: Outcome = ""
    evidence: Evidence = ""


class Answer(_Part, frozen=True, kw_only=True):
    """The words of one answer, its placeholders still empty; without what it `needs` it is silence."""

    stdout: dict[str, Any] = {}
    stderr: str = ""
    exit: Literal[0, 2] = 0
    needs: str = ""


class Register(_Part, frozen=True, kw_only=True):
    """The events to register, by what the hook client does when nobody answers it."""

    gate: tuple[str, ...]
    permission: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()


class Hooks(_Part, frozen=True, kw_only=True):
    """Where the agent looks for hooks, and how long it waits for one (numbers in `timeout_unit`)."""

    user: str
    project: str
    timeout_key: str
    timeout_unit: Literal["s", "ms"]
    default_timeout: float
    register: Register
    timeouts: dict[str, float] = {}
    longest_timeouts: dict[str, float] = {}
    fails_closed: dict[str, Any] = {}


class Headless(_Part, frozen=True, kw_only=True):
    """Signs that nobody sits at the terminal."""

    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class Process(_Part, frozen=True, kw_only=True):
    """How the agent's process is recognised among the ancestors of its hook."""

    names: tuple[str, ...]
    scripts: tuple[str, ...] = ()
    fact: str = ""
    pipes: PipeRule = ""


class Dialect(_Part, frozen=True, kw_only=True):
    """Everything that is particular to one agent."""

    agent: str
    title: str
    gate: str
    events: dict[str, Kind]
    fields: Fields
    replies: dict[Kind, dict[Saying, Answer]]
    hooks: Hooks
    process: Process
    ask: Literal["native", "none"]
    ask_without_person: Literal["deny", "stop", "allow"]
    rewrite: Literal["whole", "merge", "none"]
    slash: Literal["expansion", "prompt", "none"]
    longest_text: int
    experimental: bool = False
    arguments_as_text: bool = False
    typed: tuple[str, ...] = ()
    tools: dict[str, str] = {}
    mcp: tuple[Mcp, ...] = ()
    outcomes: tuple[Sign, ...] = ()
    unnamed: tuple[Clue, ...] = ()
    implied: dict[str, Implied] = {}
    headless: Headless = Headless()


@cache
def dialect(agent: str) -> Dialect:
    """The agent's table; only agents we have a table for are known."""
    if agent not in AGENTS:
        raise InputError(f"{agent[:80]!r} is not an agent we know.", remedy=f"Known: {', '.join(AGENTS)}.")
    return msgspec.convert(tomllib.loads((_TABLES / f"{agent}.toml").read_text("utf-8")), Dialect)
