"""What the HTTP API answers, for its description; nothing is converted to these."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Status(msgspec.Struct):
    ready: bool
    provider: str
    model: str
    reason: str


class SessionView(msgspec.Struct):
    """A conversation; times are ISO 8601."""

    id: str
    title: str
    created_at: str
    updated_at: str
    last_message_at: str | None
    archived_at: str | None
    pinned_at: str | None
    color: str
    provider: str
    model: str
    project: str
    system: str
    head: str
    message_count: int
    tools_off: list[str]
    threshold: float | None
    retention_tokens: int | None
    auto_compress: bool | None
    tainted_by: str
    metadata: dict[str, Any]


class PartView(msgspec.Struct, omit_defaults=True):
    kind: Literal["text", "tool_invocation", "tool_result", "attachment", "reasoning", "metadata"] = "text"
    text: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    data: Any = None
    status: str = ""
    error: str = ""
    mime_type: str = ""
    size_bytes: int | None = None


class MessageView(msgspec.Struct):
    id: str
    role: Literal["system", "user", "assistant", "tool"]
    parts: list[PartView] = []
    sequence: int = 0
    deleted: bool = False
    summary: bool = False
    parent: str = ""
    state: Literal["completed", "streaming", "aborted", "interrupted", "failed"] = "completed"
    created_at: str = ""
    provider: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    error: str = ""
    run: str = ""


class RunView(msgspec.Struct):
    """One answer. `holder` names the server that works on it, `routed` says why this model answers."""

    id: str
    session: str
    state: Literal["running", "waiting", "done", "failed", "aborted", "interrupted"]
    holder: str
    user_message: str
    provider: str
    model: str
    persona: str
    routed: str
    rounds: int
    input_tokens: int
    output_tokens: int
    error: str
    created_at: str
    ended_at: str | None


class Offer(msgspec.Struct):
    """What a yes can be remembered as."""

    what: Literal["exact", "family", "tool"]
    label: str


class QuestionView(msgspec.Struct):
    """What a person needs to answer."""

    expires_at: str
    offers: list[Offer]
    risk: str
    reasons: list[str]


class CallView(msgspec.Struct):
    """A tool call. `question` is there while it waits for a person; `entry` is where the record has it.

    `edited` are the arguments a person put in the place of the model's.
    """

    run: str
    call_id: str
    session: str
    message: str
    name: str
    server: str
    tool: str
    arguments: dict[str, Any]
    status: Literal["pending", "running", "completed", "error", "denied", "cancelled"]
    definition: str
    entry: str
    verdict: str
    reason: str
    answered_by: str
    asked: bool
    edited: dict[str, Any] | None
    output: Any
    error: str
    created_at: str
    started_at: str | None
    completed_at: str | None
    milliseconds: int = 0
    question: QuestionView | None = None


class SnapshotView(msgspec.Struct):
    """The summary that stands for everything up to and with the message `cutoff`."""

    id: str
    text: str
    cutoff: str
    tokens: int
    created_at: str
    estimated: bool
    kind: Literal["summary"]


class Started(msgspec.Struct):
    session: str
    thread: str
    resource: str
    history: list[MessageView]


class SessionList(msgspec.Struct):
    sessions: list[SessionView]
    total: int


class SessionOpened(msgspec.Struct):
    """`earlier`: whether there are messages before these. `last`: the event to follow from."""

    session: SessionView
    messages: list[MessageView]
    earlier: bool
    siblings: dict[str, list[str]]
    run: RunView | None
    calls: dict[str, CallView]
    snapshot: SnapshotView | None
    last: str


class Sent(msgspec.Struct):
    run: str
    message: str


class Begun(msgspec.Struct):
    run: str


class Answered(msgspec.Struct):
    """What became of the question: a rule of this moment outranks a yes."""

    answer: str


class Gauge(msgspec.Struct):
    """How full the context is: tokens. `ref` is the model as it is picked, `model` as its limits know it."""

    ref: str
    model: str
    used: int
    limit: int
    threshold: int
    percent: float
    band: Literal["green", "yellow", "orange", "red"]
    breakdown: dict[str, int]
    estimated: bool
    needs_compression: bool
    note: str


class Preview(msgspec.Struct):
    """What compressing would do: messages by id, and tokens before and after.

    `cutoff` is the last message the summary would stand for, `still_over` whether it would not be enough.
    """

    compressed: bool
    needs_compression: bool
    current_tokens: int
    threshold_tokens: int
    limit: int
    summarised: list[str]
    retained: list[str]
    cutoff: str | None
    prior_summary_included: bool
    tokens_before: int
    tokens_after: int
    summary_tokens: int
    still_over: bool
    saved_percent: float
    estimated: bool
    reason: str


class Compressed(msgspec.Struct):
    """Where nothing was compressed the history is whole, and `reason` says why."""

    compressed: bool
    original_tokens: int
    new_tokens: int
    reason: str
    failed: bool
    summarised: int
    summary: str


class Aborted(msgspec.Struct):
    aborted: bool


class Tested(msgspec.Struct):
    """How a provider answered; `kind` says what is wrong, if anything is."""

    ok: bool
    kind: str
    text: str
    seconds: float
    models: list[str]


class OfferedTool(msgspec.Struct):
    name: str
    tool: str
    description: str
    schema: dict[str, Any]
    on: bool
    policy: Literal["allow", "ask", "deny"]
    why: str


class ToolServer(msgspec.Struct):
    """A server's tools; `error` says why it cannot be used, if it cannot."""

    server: str
    state: str
    error: str
    on: bool
    tools: list[OfferedTool]


class Hit(msgspec.Struct):
    """`snippet`: pieces of text, each with whether it is what was looked for."""

    session: str
    title: str
    message: str
    role: str
    at: str
    snippet: list[tuple[bool, str]]


class Model(msgspec.Struct):
    """A model, and the tokens it takes in and answers; `known` says whether that is not just assumed."""

    ref: str
    provider: str
    model: str
    kind: str
    default: bool
    input: int
    output: int
    known: bool
    note: str


class ProviderView(msgspec.Struct):
    name: str
    kind: str
    base_url: str
    api_version: str
    deployment: str
    has_key: bool
    key_from: str
    models: list[str]
    enabled: bool
    default_model: str
    fault: str


class Problem(msgspec.Struct):
    """`code` is stable; `remedy` is what to do next."""

    code: str
    message: str
    remedy: str


class Failure(msgspec.Struct):
    error: Problem
