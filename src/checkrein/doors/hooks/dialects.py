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
# Programs that run the hooks of another agent's settings; nothing is installed for them.
GUESTS: tuple[str, ...] = ("vscode", "grok")
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
Outcome = Literal["success", "failure", "unknown", "cancelled", "denied", ""]
Evidence = Literal["exit_status", "tool_error", "interruption", "report", ""]
Saying = Literal["allow", "rewrite", "ask", "deny", "block", "inform"]
# "grant": it overrules the agent's own checks. "opinion": those stay in force beside it. "nothing": the agent
# does not heed it. "unknown": nobody has seen what it does.
Meaning = Literal["grant", "opinion", "nothing", "unknown"]
HEEDED: tuple[Meaning, ...] = ("grant", "opinion")
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


class Means(_Part, frozen=True, kw_only=True):
    """What our words mean to the agent at one kind of event, in some of its permission modes."""

    kind: Literal["call", "permission"] = "call"
    # None: in every mode. Empty text is a payload that names no mode.
    modes: tuple[str, ...] | None = None
    allow: Meaning = "unknown"
    rewrite: Meaning = "unknown"
    ask: Meaning = "unknown"
    deny: Meaning = "unknown"
    # Whether a check of its own that stopped calls is followed by a permission event about the next one.
    asks_after_blocks: bool = False

    def of(self, saying: Saying) -> Meaning:
        words: dict[str, Meaning] = {
            "allow": self.allow,
            "rewrite": self.rewrite,
            "ask": self.ask,
            "deny": self.deny,
        }
        return words.get(saying, "unknown")


class Shape(_Part, frozen=True, kw_only=True):
    """Whose a payload is, by the keys it has at the top and those it has not."""

    agent: str
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()


class CertainTool(_Part, frozen=True, kw_only=True):
    """A guest's tool whose meaning is certain: our name for it, and for every argument it may have."""

    tool: str
    # All of these are there.
    arguments: dict[str, str]
    # These may be there, and change nothing about what the tool does.
    besides: tuple[str, ...] = ()


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


_NOWHERE = Hooks(
    user="", project="", timeout_key="", timeout_unit="s", default_timeout=0, register=Register(gate=())
)


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
    means: tuple[Means, ...]
    process: Process
    ask_without_person: Literal["deny", "stop", "allow"]
    rewrite: Literal["whole", "merge", "none"]
    slash: Literal["expansion", "prompt", "none"]
    longest_text: int
    # Nothing is installed for a guest.
    hooks: Hooks = _NOWHERE
    experimental: bool = False
    # What the hook prints where it has no opinion.
    silence: str = ""
    # How a no in its own dialog is known: by a turn that ends while the call has no outcome.
    dialog_no: Literal["turn_end", ""] = ""
    # Other programs that run this agent's hooks, by their payloads; the first shape that fits counts.
    shapes: tuple[Shape, ...] = ()
    # For a guest: what a person does about it, and the only tools of it that are judged.
    guest_remedy: str = ""
    certain: dict[str, CertainTool] = {}
    arguments_as_text: bool = False
    typed: tuple[str, ...] = ()
    tools: dict[str, str] = {}
    mcp: tuple[Mcp, ...] = ()
    outcomes: tuple[Sign, ...] = ()
    unnamed: tuple[Clue, ...] = ()
    implied: dict[str, Implied] = {}
    headless: Headless = Headless()

    def meaning(self, kind: str, mode: str, saying: Saying) -> Meaning:
        """What a word of ours means to it; what no row tells is unknown."""
        row = self._row(kind, mode)
        return row.of(saying) if row is not None else "unknown"

    def asks_after_blocks(self, mode: str) -> bool:
        """Whether a permission event may be about a call that a check of its own stopped."""
        row = self._row("call", mode)
        return row is not None and row.asks_after_blocks

    def _row(self, kind: str, mode: str) -> Means | None:
        rows = (each for each in self.means if each.kind == kind)
        return next((each for each in rows if each.modes is None or mode in each.modes), None)

    @property
    def has_dialog(self) -> bool:
        """Whether it asks its person for us, in any of its modes."""
        return any(each.ask in HEEDED for each in self.means)


@cache
def dialect(agent: str) -> Dialect:
    """The agent's table; only agents and guests we have a table for are known."""
    if agent not in (*AGENTS, *GUESTS):
        raise InputError(f"{agent[:80]!r} is not an agent we know.", remedy=f"Known: {', '.join(AGENTS)}.")
    return msgspec.convert(tomllib.loads((_TABLES / f"{agent}.toml").read_text("utf-8")), Dialect)
