"""Calls that run with other arguments than they were judged with: those a person wrote, or a routed model.

Whoever lets an agent run such a call says so here, before the agent hears it.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from checkrein.call import ToolCall
from checkrein.doors.hooks.calls import Calls
from checkrein.judged import Decided


def known_as(calls: Calls, call: ToolCall, decided: Decided, updated: dict[str, Any] | None) -> None:
    """The call will be reported as it ran; without an id nothing else says which one it was."""
    if updated is not None and not call.call_id:
        ran = msgspec.structs.replace(call, arguments=updated)
        calls.opened(ran, decided, time.monotonic())
