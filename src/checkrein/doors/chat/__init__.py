"""The chat door: a person talks to a model that uses tools, and every call of them is judged.

Here are the values its parts hand each other: what is said, what stands for what was said before, and what
happens meanwhile.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "tool_invocation", "tool_result", "attachment", "reasoning", "metadata"]
Status = Literal["", "pending", "running", "completed", "error", "denied", "cancelled"]
# `streaming`: its model still writes it. The last three hold what had come until then.
MessageState = Literal["completed", "streaming", "aborted", "interrupted", "failed"]
RunState = Literal["running", "waiting", "done", "failed", "aborted", "interrupted"]
OVER: tuple[RunState, ...] = ("done", "failed", "aborted", "interrupted")


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
    """One message of a conversation; `summary` marks the one that stands for what was compressed.

    `parent` is the message it answers or follows; what shares a parent are branches. `raw` is the response in
    the provider's own form, where it says more than the parts do.
    """

    id: str
    role: Role
    parts: tuple[Part, ...] = ()
    sequence: int = 0
    deleted: bool = False
    summary: bool = False
    parent: str = ""
    state: MessageState = "completed"
    created_at: float = 0.0
    provider: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    error: str = ""
    run: str = ""
    raw: str = ""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A summary that stands for everything up to and with the message `cutoff`. `tokens` as it is sent."""

    id: str
    text: str
    cutoff: str
    tokens: int
    created_at: float
    estimated: bool = False
    kind: Literal["summary"] = "summary"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation and what a person chose for it. `head` is the last message of the branch that is shown.

    `tools_off` names servers (`server`) and tools (`server__tool`) the model is not offered.
    """

    id: str
    title: str
    created_at: float
    updated_at: float
    last_message_at: float | None = None
    archived_at: float | None = None
    pinned_at: float | None = None
    color: str = ""
    provider: str = ""
    model: str = ""
    project: str = ""
    system: str = ""
    head: str = ""
    message_count: int = 0
    tools_off: tuple[str, ...] = ()
    threshold: float | None = None
    retention_tokens: int | None = None
    auto_compress: bool | None = None
    # The server whose unvouched words this conversation has read, if any.
    tainted_by: str = ""
    metadata: dict[str, Any] = {}


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a run, from the moment the model made it. `entry` is where the record has it."""

    run: str
    call_id: str
    session: str
    message: str
    name: str
    server: str
    tool: str
    arguments: dict[str, Any]
    status: Literal["pending", "running", "completed", "error", "denied", "cancelled"] = "pending"
    definition: str = ""
    entry: str = ""
    # What was said to it and by whom: a rule, a grant, a person.
    verdict: str = ""
    reason: str = ""
    answered_by: str = ""
    # Whether a question of this call waits, or has waited, for a person.
    asked: bool = False
    edited: dict[str, Any] | None = None
    output: Any = None
    error: str = ""
    created_at: float = 0.0
    started_at: float | None = None
    completed_at: float | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of a model, with all the tools it calls for it. `holder` is the server that works on it."""

    id: str
    session: str
    state: RunState = "running"
    holder: str = ""
    user_message: str = ""
    provider: str = ""
    model: str = ""
    persona: str = ""
    routed: str = ""
    rounds: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""
    created_at: float = 0.0
    ended_at: float | None = None


EventKind = Literal[
    "started",
    "text",
    "reasoning",
    "tool_call",
    "approval_required",
    "tool_running",
    "tool_result",
    "message",
    "usage",
    "compressed",
    "notice",
    "session",
    "end",
    "error",
    "aborted",
    "reload",
]


class Event(msgspec.Struct, frozen=True):
    """Something that happened in a session; `id` is `EPOCH-NUMBER` and resumes a line that was lost."""

    id: str
    kind: EventKind
    session: str
    run: str = ""
    data: dict[str, Any] = {}
