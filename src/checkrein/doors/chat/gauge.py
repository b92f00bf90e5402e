"""How full a model's context is: counted as it would be sent, and told in words and bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkrein.doors.chat import Message, Snapshot
from checkrein.doors.chat.compression import Settings, build_context, threshold_tokens
from checkrein.doors.chat.models import Model
from checkrein.doors.chat.tokens import breakdown, counted

Facts = dict[str, Any]
_BANDS = ((70.0, "green"), (90.0, "yellow"), (95.0, "orange"))


def gauge(
    path: Sequence[Message],
    snapshot: Snapshot | None,
    *,
    model: Model,
    settings: Settings,
    system: str,
    tools: Sequence[Any],
    pending: str = "",
) -> Facts:
    """What the next request would take, and of what."""
    context = build_context(path, snapshot)
    shares = breakdown(
        context, instructions=system, tools=tools, encoding=model.encoding, approximate=model.approximate
    )
    typed = counted(pending, model.encoding).tokens if pending else 0
    used = shares.total + typed
    threshold = threshold_tokens(model.input, settings.threshold)
    percent = round(100 * used / model.input, 1)
    return {
        "model": model.name,
        "used": used,
        "limit": model.input,
        "threshold": threshold,
        "percent": percent,
        "band": band(percent),
        "breakdown": {
            "system": shares.system,
            "summary": shares.summary,
            "messages": shares.messages,
            "tools": shares.tools,
            "input": typed,
        },
        "estimated": shares.estimated,
        "needs_compression": used > threshold,
        "note": model.note,
    }


def band(percent: float) -> str:
    return next((word for below, word in _BANDS if percent < below), "red")


def definition(tool: Any, name: str) -> Facts:
    """A tool as every request names it."""
    return {"name": name, "description": tool.description, "parameters": tool.schema}
