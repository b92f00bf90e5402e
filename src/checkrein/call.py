"""The values every stage speaks: a call comes in, a risk and a verdict come out.

Frozen data and the two functions that make it comparable (canonical bytes, digest). No I/O, ever.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from checkrein.errors import InputError

Word = Literal["allow", "ask", "deny"]
Decision = Literal["auto_approved", "logged_only", "human_required", "blocked"]

DECISIONS: tuple[Decision, ...] = ("auto_approved", "logged_only", "human_required", "blocked")
WORD_OF: Mapping[Decision, Word] = {
    "auto_approved": "allow",
    "logged_only": "allow",
    "human_required": "ask",
    "blocked": "deny",
}
OUTCOMES = ("success", "failure", "denied", "timeout", "cancelled", "unknown")
GLOBAL_DOMAIN = "_global"
# The recorded risk of a call that was refused before it was judged.
NOT_JUDGED = "unknown"


class Category(enum.IntEnum):
    """How much a call can break, on the scale the autonomy formula uses."""

    low = 1
    medium = 2
    high = 3
    critical = 4


class Effect(msgspec.Struct, frozen=True):
    """One thing a call does to the world: `delete` in scope `project` on target `build/`."""

    kind: str
    scope: str = ""
    target: str = ""


class Reason(msgspec.Struct, frozen=True):
    """A sentence a person can read, with the sentences that support it."""

    text: str
    children: tuple[Reason, ...] = ()


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call, in the same words for every door."""

    tool: str
    arguments: dict[str, Any] = {}
    server: str | None = None
    door: str = "hooks"
    agent: str = ""
    user: str = ""
    session: str = ""
    project: str = ""
    cwd: str = ""
    call_id: str = ""
    annotations: dict[str, Any] = {}
    history: tuple[Effect, ...] = ()
    # The hash of the tool's definition, where a person accepted one.
    definition: str = ""
    # The profile a script's calls are judged by, where it is not the door's own.
    profile: str = ""

    @property
    def name(self) -> str:
        """The tool as a person reads it: `mcp__mail__send` with a server, `Bash` without."""
        return f"mcp__{self.server}__{self.tool}" if self.server is not None else self.tool

    @property
    def argument_hash(self) -> str:
        return digest(self.arguments)

    @property
    def binding(self) -> str:
        """What an approval binds to: this principal, this project, exactly this call in this folder."""
        bound = [
            self.user,
            self.door,
            self.agent,
            self.session,
            self.project,
            self.cwd,
            self.server,
            self.tool,
            self.arguments,
        ]
        if self.definition or self.profile:
            bound.append(self.definition)
        return digest([*bound, self.profile] if self.profile else bound)


class Risk(msgspec.Struct, frozen=True, kw_only=True):
    """What a call can break, and why we think so."""

    category: Category
    domains: tuple[str, ...] = (GLOBAL_DOMAIN,)
    effects: tuple[Effect, ...] = ()
    complexity: float = 0.5
    reasons: tuple[Reason, ...] = ()
    # The commands of a shell line: `go test`; with every word where their effects do not say all.
    commands: tuple[str, ...] = ()
    # False: the call was refused before it was judged; the category is then the strictest there is.
    judged: bool = True

    @property
    def word(self) -> str:
        """The category as it is recorded and read: a call that was not judged has none."""
        return self.category.name if self.judged else NOT_JUDGED


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a call: may it run, who says so, and why."""

    decision: Decision
    stage: str
    risk: Risk
    reasons: tuple[Reason, ...]
    remedy: str = ""
    rule: str | None = None
    autonomy: float | None = None
    trust: dict[str, float] = {}

    @property
    def word(self) -> Word:
        return WORD_OF[self.decision]


def reason_lines(reasons: tuple[Reason, ...]) -> list[str]:
    """A reason tree as lines, parents before children."""
    return [text for reason in reasons for text in (reason.text, *reason_lines(reason.children))]


def tool_call(raw: Any) -> ToolCall:
    """A ToolCall from JSON-like data, `mcp__server__tool` names taken apart; anything odd is refused."""
    if isinstance(raw, Mapping) and not isinstance(raw.get("tool"), str):
        raise InputError("A call needs a `tool` name, and it must be text.")
    try:
        call = msgspec.convert(raw, ToolCall)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"This is not a tool call: {error}") from None
    if call.server is None:
        server, tool = split_name(call.tool)
        if server is not None:
            return msgspec.structs.replace(call, server=server, tool=tool)
    return call


def split_name(name: str) -> tuple[str | None, str]:
    """`mcp__mail__send` is server `mail`, tool `send`; every other name is a tool without a server."""
    if name.startswith("mcp__"):
        server, mark, tool = name[5:].partition("__")
        if mark and server and tool:
            return server, tool
    return None, name


_FOREIGN = re.compile(r"[^0-9A-Za-z_]")


def spelled(name: str) -> str:
    """A name in the letters a program may use for one of its own."""
    found = _FOREIGN.sub("_", name)
    return f"_{found}" if found[:1].isdigit() else found


_canonical = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> bytes:
    """One spelling for equal data: sorted keys, no spaces, UTF-8."""
    try:
        return _canonical(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        # Values JSON cannot hold (lone surrogates, foreign objects) still need a stable spelling.
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr).encode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


# How deep the arguments of a call may be nested; nobody who makes them honestly comes near.
DEEPEST = 128


def is_deep(value: Any, most: int) -> bool:
    """Whether values lie in one another more than `most` times; looks level by level, never recurses."""
    level = [value]
    for _ in range(most + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterator[Any]:
    items: Any = value if isinstance(value, list | tuple) else ()
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, msgspec.Struct):
        items = msgspec.structs.astuple(value)
    return (each for each in items if isinstance(each, dict | list | tuple | msgspec.Struct))
