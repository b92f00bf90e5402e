"""The tools the gateway offers itself: `eval`, one for each profile, discovery, and coming back to a run.

The hub lists them beside the servers' tools. A profile is bound to its tool here: no argument names another.
"""

from __future__ import annotations

from typing import Any

from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.scripts.toolbox import DETAILS, Toolbox
from checkrein.execute.preview import LANGUAGES
from checkrein.settings import Settings

EVAL, PREFIX = "eval", "codemode_eval_"
SEARCH, GET, RESUME = "search_tools", "get_tools", "resume_run"
_TOKENS = 1_500
MOST_FOUND, MOST_ON_A_PAGE = 20, 200
_ABOUT = """\
Runs a script that calls tools, and returns its result: many calls, loops and conditions in one step.
JavaScript (default) or TypeScript: a function body with `return`, statements whose last expression is the \
result, or an async arrow function; `await codemode.NAME({...})`, Promise.all, setTimeout, console.log.
Python: `await codemode.NAME(key=value)` or `NAME(key=value)`, asyncio.gather, print; the last expression or \
a top-level `return` is the result. No class inheritance, no `yield`, no `del`, no imports but \
asyncio, json, re, math, datetime, yaml.
A tool without an output type returns {content: [{type: "text", text}]}. A tool's error is thrown and can be \
caught. A refused call throws ToolCallDeniedError (toolName, reason) or PermissionError: report it, do not \
work around it.
There is no network, no file system and no clock worth trusting: everything goes through tools, and every \
call is checked when it is made. A call may wait for a person; then the answer is {status: "paused", \
run_id}: call resume_run with it.
"""


class Offer:
    """What is listed at the moment."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def listed(self, settings: Settings) -> list[Message]:
        if not settings.evaluation.enabled:
            return []
        profiles = sorted(settings.profiles)
        return [
            self._eval(EVAL, "", settings),
            *(self._eval(f"{PREFIX}{name}", name, settings) for name in profiles),
            *({"name": name, **_FIXED[name], "inputSchema": schema_of(name, settings)} for name in _FIXED),
        ]

    def _eval(self, name: str, profile: str, settings: Settings) -> Message:
        under = profile or settings.doors["eval"].profile
        bound = f"Calls are checked against the profile `{under}`.\n" if under else ""
        declared = self._toolbox.declared(profile, "javascript", _TOKENS)
        return {
            "name": name,
            "title": f"Run a script ({under})" if under else "Run a script",
            "description": f"{_ABOUT}{bound}Tools:\n{declared}",
            "inputSchema": schema_of(name, settings),
        }


def is_ours(name: str) -> bool:
    """Whether a tool of this name could be ours; cheap, for every call asks."""
    return name in (EVAL, SEARCH, GET, RESUME) or name.startswith(PREFIX)


def schema_of(name: str, settings: Settings) -> Message | None:
    """What a tool of ours takes; None where it is not offered."""
    if not settings.evaluation.enabled:
        return None
    profiles = sorted(settings.profiles)
    if name == SEARCH:
        return _object(
            {
                "query": {"type": "string", "description": "A few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": 5},
                "detail": {"type": "string", "enum": list(DETAILS), "default": "detailed"},
                **_common(profiles),
            },
            ["query"],
        )
    if name == GET:
        names = {"type": "array", "items": {"type": "string"}, "maxItems": 100}
        return _object(
            {
                "names": names,
                "cursor": {"type": "string", "description": "`nextCursor` of the page before."},
                "pageSize": {"type": "integer", "minimum": 1, "maximum": MOST_ON_A_PAGE, "default": 50},
                **_common(profiles),
            },
            [],
        )
    if name == RESUME:
        return _object({"run_id": {"type": "string"}}, ["run_id"])
    return None if profile_of(name, settings) is None else _SCRIPT


def profile_of(name: str, settings: Settings) -> str | None:
    """The profile an eval tool is bound to, "" for the default; None where the name is no eval tool."""
    if name == EVAL:
        return ""
    profile = name.removeprefix(PREFIX)
    return profile if name.startswith(PREFIX) and profile in settings.profiles else None


def _common(profiles: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "language": {"type": "string", "enum": list(LANGUAGES), "default": "javascript"},
    }
    if profiles:
        # Which tools are shown, not what may be called.
        made["profile"] = {"type": "string", "enum": profiles}
    return made


def _object(properties: dict[str, Any], required: list[str]) -> Message:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _patterns(said: str) -> Message:
    return {"type": "array", "items": {"type": "string"}, "maxItems": 100, "description": said}


_FIXED: dict[str, Message] = {
    SEARCH: {
        "title": "Find tools for scripts",
        "description": "Finds the tools scripts can call, by what they do.",
        "annotations": {"readOnlyHint": True},
    },
    GET: {
        "title": "Read tools for scripts",
        "description": "The full declarations of tools scripts can call; without names all of them in "
        "short, page by page.",
        "annotations": {"readOnlyHint": True},
    },
    RESUME: {
        "title": "Come back to a script",
        "description": "Waits for a script that was paused, and returns its result.",
    },
}
_SCRIPT = _object(
    {
        "code": {"type": "string", "description": "The script."},
        "language": {"type": "string", "enum": list(LANGUAGES), "default": "javascript"},
        "fatal": {
            "type": "boolean",
            "default": False,
            "description": "End the script at the first refused call instead of throwing.",
        },
        "deny": _patterns("Tools to refuse besides what policy refuses; `*` matches anything."),
        "ask": _patterns("Tools to ask a person about besides what policy asks about."),
    },
    ["code"],
)
