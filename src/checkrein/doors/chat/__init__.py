"""The chat door: a person talks to a model that uses tools, and every call of them is judged.

Here are the values its parts hand each other: what is said, and what stands for what was said before.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "tool_invocation", "tool_result", "attachment", "reasoning", "metadata"]
Status = Literal["", "pending", "running", "completed", "error", "denied", "cancelled"]


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a message. `data` holds a call's arguments, a result's output or an attachment's facts."""

    kind: Kind = "text"
    text: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    data: Any = None
    status: Status = ""
    error: str = ""
    mime_type: str = ""
    size_bytes: int | None = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation; `summary` marks the one that stands for what was compressed."""

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    sequence: int = 0
    deleted: bool = False
    summary: bool = False


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that stands for everything up to and with the message `cutoff`. `tokens` as it is sent."""

    id: str
    text: str
    cutoff: str
    tokens: int
    created_at: float
    estimated: bool = False
    kind: Literal["summary"] = "summary"
