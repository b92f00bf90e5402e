"""Checkrein decides, for every tool call an AI agent makes, whether it may run, must ask, or is refused.

The public names, imported when they are first used so that importing the package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkrein.call import Reason, Risk, ToolCall, Verdict, tool_call
    from checkrein.doors.library.denial import Denied, Suspended
    from checkrein.doors.library.gate import Gate
    from checkrein.doors.library.suspending import suspend
    from checkrein.errors import CheckreinError
    from checkrein.whatif import explain

__version__ = "0.1.0"
__all__ = [
    "CheckreinError",
    "Denied",
    "Gate",
    "Reason",
    "Risk",
    "Suspended",
    "ToolCall",
    "Verdict",
    "explain",
    "suspend",
    "tool_call",
]

_HOME = {
    "CheckreinError": "errors",
    "Denied": "doors.library.denial",
    "Gate": "doors.library.gate",
    "Reason": "call",
    "Risk": "call",
    "Suspended": "doors.library.denial",
    "ToolCall": "call",
    "Verdict": "call",
    "explain": "whatif",
    "suspend": "doors.library.suspending",
    "tool_call": "call",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'checkrein' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"checkrein.{_HOME[name]}"), name)
