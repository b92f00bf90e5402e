"""What an agent told its hook, in our own words: bytes in, one Event out, or a plain sentence why not.

Pure reading: the dialect says where things are, nothing is looked up, guessed at or changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from checkrein.call import is_deep, split_name
from checkrein.doors.hooks.dialects import GUESTS, Dialect, Mcp, Paths, Sign, dialect
from checkrein.errors import InputError

# A sign is looked for at one end of an output only, however long the output is.
LOOK_AT = 2000
GLIMPSE_AT = 1 << 16
# How deep a payload may be nested.
_DEEPEST = 500
# Some programs on Windows begin a text with it.
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# How much of a payload nobody knows is named.
_KEYS_NAMED, _KEYS_NAMED_TEXT = 12, 300
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_TEXTS = (
    "session",
    "cwd",
    "prompt_id",
    "call_id",
    "prompt",
    "command",
    "command_arguments",
    "file",
    "source",
    "mode",
    "subagent",
)
_GLIMPSES = {
    "session": rb"session_id|sessionId|conversation_id",
    "cwd": rb"cwd",
    "tool": rb"tool_name|toolName",
    "event": rb"hook_event_name|hookName",
}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an agent told us, in the same words for every agent."""

    agent: str
    name: str
    kind: str
    session: str = ""
    cwd: str = ""
    prompt_id: str = ""
    call_id: str = ""
    tool: str = ""
    server: str | None = None
    arguments: dict[str, Any] = {}
    outcome: str = ""
    evidence: str = ""
    output: Any = None
    prompt: str = ""
    command: str = ""
    command_arguments: str = ""
    file: str = ""
    source: str = ""
    mode: str = ""
    subagent: str = ""


def read(agent: str, payload: bytes, event: str = "", servers: Sequence[str] = ()) -> Event:
    """The event in a payload.

    `event` is its name where the payload carries none; `servers` are MCP servers known by name, for agents
    whose tool names do not show where the server's name ends.
    """
    raw = decode(payload)
    return event_of(speaker(agent, raw), raw, event, servers)


def speaker(agent: str, raw: Mapping[str, Any]) -> str:
    """Whose payload came to the agent's hook: other programs read its settings and run its hooks."""
    shapes = dialect(agent).shapes
    for each in shapes:
        if all(key in raw for key in each.has) and not any(key in raw for key in each.lacks):
            return each.agent
    # INVARIANT: a payload of no known shape is read in nobody's words.
    if shapes:
        raise InputError(f"Its shape is that of no program we know. {_keys_of(raw)}")
    return agent


def event_of(agent: str, raw: dict[str, Any], event: str = "", servers: Sequence[str] = ()) -> Event:
    """The event in a decoded payload of the agent's own."""
    table = dialect(agent)
    name = _text(raw, table.fields.event) or event or _unnamed(table, raw)
    kind = table.events.get(name, "other")
    found: dict[str, Any] = {key: _text(raw, getattr(table.fields, key)) for key in _TEXTS}
    # Cursor leaves the folder empty at times, and names it elsewhere.
    found["cwd"] = next((text for path in table.fields.cwd if (text := _text(raw, (path,)))), "")
    # INVARIANT: a slash command counts only as typed by a person, never in a prompt written for a sub-agent.
    if table.slash == "prompt" and kind == "prompt" and not found["subagent"]:
        found["command"], found["command_arguments"] = _typed(table, found["prompt"])
    found["command"] = found["command"].removeprefix("/")
    told = Event(agent=agent, name=name, kind=kind, **found)
    if kind in ("call", "permission", "done", "failed"):
        return _with_call(table, raw, told, servers)
    return told


def decode(payload: bytes) -> dict[str, Any]:
    """The payload as the JSON object it must be."""
    return _object(payload.removeprefix(_BYTE_ORDER_MARK))


def _keys_of(raw: Mapping[str, Any]) -> str:
    names = ", ".join(sorted(raw)[:_KEYS_NAMED])
    return f"Its keys: {names[:_KEYS_NAMED_TEXT]}." if names else "It is empty."


def _object(payload: bytes) -> dict[str, Any]:
    # Of a key written twice the last counts, as in the JSON readers of the agents themselves.
    try:
        raw = msgspec.json.decode(payload)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"The hook payload is not one JSON document: {why[:200]}.") from None
    # INVARIANT: however deep this Python reads, what is judged and recorded everywhere is all that is read.
    if payload.count(b"[") + payload.count(b"{") > _DEEPEST and is_deep(raw, _DEEPEST):
        raise InputError("The hook payload is nested too deeply.")
    if not isinstance(raw, dict):
        raise InputError("The hook payload is not a JSON object.")
    return raw


def _at(raw: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(raw, dict):
            raw = raw.get(step)
        elif isinstance(raw, list) and step.isdigit() and int(step) < len(raw):
            raw = raw[int(step)]
        else:
            return None
    return raw


def _first(raw: Mapping[str, Any], paths: Paths) -> tuple[str, Any]:
    """The first path that leads somewhere, and what is there; null is nowhere."""
    for path in paths:
        value = _at(raw, path)
        if value is not None:
            return path, value
    return "", None


def _text(raw: Mapping[str, Any], paths: Paths) -> str:
    path, value = _first(raw, paths)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"`{path}` in the hook payload must be text.")
    return value


def _unnamed(table: Dialect, raw: Mapping[str, Any]) -> str:
    return next((clue.event for clue in table.unnamed if all(key in raw for key in clue.has)), "")


def _typed(table: Dialect, prompt: str) -> tuple[str, str]:
    for pattern in table.typed:
        seen = _pattern(pattern).search(prompt.strip())
        if seen:
            return seen["command"], seen.groupdict().get("arguments") or ""
    return "", ""


def _with_call(table: Dialect, raw: dict[str, Any], told: Event, servers: Sequence[str]) -> Event:
    must = told.kind in ("call", "permission")
    server, tool = _tool(table, raw, told.name, servers)
    for value, what in ((told.session, "session id"), (tool, "tool name")):
        if must and not value.strip():
            raise InputError(f"The hook payload has no {what}.")
    told = msgspec.structs.replace(
        told,
        tool=tool,
        server=server,
        arguments=_arguments(table, raw, told.name, must),
        output=_first(raw, table.fields.output)[1],
    )
    if table.agent in GUESTS:
        return _certain(table, told)
    return told if must else _ended(table, raw, told)


def _certain(table: Dialect, told: Event) -> Event:
    """The call of a guest in our words.

    INVARIANT: a guest's call is judged only where what its tool does is certain.
    """
    found = table.certain.get(told.tool) if told.server is None else None
    given = told.arguments
    if (
        found is None
        or not found.arguments.keys() <= given.keys() <= {*found.arguments, *found.besides}
        or not all(isinstance(value, str) for value in given.values())
    ):
        raise InputError(f"What its tool {told.tool[:80]!r} does with these arguments is not certain.")
    arguments = {ours: given[theirs] for theirs, ours in found.arguments.items()}
    return msgspec.structs.replace(told, tool=found.tool, arguments=arguments)


def _tool(table: Dialect, raw: dict[str, Any], event: str, servers: Sequence[str]) -> tuple[str | None, str]:
    """INVARIANT: what belongs to an MCP server never takes the name of one of the agent's own tools."""
    name = _text(raw, table.fields.tool)
    server = _text(raw, table.fields.server)
    server_tool = _text(raw, table.fields.server_tool)
    if server and server_tool:
        return server, server_tool
    known = _UNSAFE.sub("_", server)
    implied = table.implied.get(event)
    if not name and implied:
        name = implied.tool
    if not known and name in table.tools:
        return None, table.tools[name]
    for spelling in table.mcp:
        found = _spelled(spelling, name, (known, *servers) if known else servers)
        if found:
            return found
    if known:
        return known, name
    if implied and implied.server is not None:
        return implied.server, name
    return split_name(name)


def _spelled(spelling: Mcp, name: str, servers: Sequence[str]) -> tuple[str, str] | None:
    if not name.startswith(spelling.prefix):
        return None
    rest = name.removeprefix(spelling.prefix)
    heads = [one + spelling.separator for one in (*servers, *spelling.servers)]
    head = max((one for one in heads if rest.startswith(one) and rest != one), key=len, default="")
    if head:
        return head.removesuffix(spelling.separator), rest.removeprefix(head)
    server, _, tool = rest.partition(spelling.separator)
    if server and tool:
        return server, tool
    return (spelling.without_server, rest) if spelling.without_server and rest else None


def _arguments(table: Dialect, raw: dict[str, Any], event: str, must: bool) -> dict[str, Any]:
    implied = table.implied.get(event)
    if implied and implied.arguments:
        return {key: raw[key] for key in implied.arguments if raw.get(key) is not None}
    path, value = _first(raw, table.fields.arguments)
    if isinstance(value, str) and table.arguments_as_text:
        value = _object(value.encode())
    if value is None and not must:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"`{path or table.fields.arguments[0]}` in the hook payload must be an object.")
    return value


def _ended(table: Dialect, raw: dict[str, Any], told: Event) -> Event:
    """INVARIANT: success is never concluded from silence; what no sign tells is unknown."""
    for sign in table.outcomes:
        if sign.kind == told.kind and _about(sign, told):
            outcome = _says(sign, raw)
            if outcome:
                return msgspec.structs.replace(told, outcome=outcome, evidence=sign.evidence)
    return msgspec.structs.replace(told, outcome="unknown")


def _about(sign: Sign, told: Event) -> bool:
    return not sign.tools or ("mcp" if told.server is not None else told.tool) in sign.tools


def _says(sign: Sign, raw: Mapping[str, Any]) -> str:
    """The outcome this sign shows, empty when it is not there."""
    if not sign.paths:
        return sign.outcome
    value = _first(raw, sign.paths)[1]
    if sign.text:
        seen = _search(sign, value) if isinstance(value, str) else None
        if seen is None:
            return ""
        return sign.outcome or ("success" if int(seen["code"]) == 0 else "failure")
    if sign.equals is not None:
        return sign.outcome if type(value) is type(sign.equals) and value == sign.equals else ""
    return sign.outcome if value not in (None, "", [], {}) else ""


def _search(sign: Sign, text: str) -> re.Match[str] | None:
    return _pattern(sign.text).search(text[-LOOK_AT:] if sign.at == "end" else text[:LOOK_AT])


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)


def glimpse(payload: bytes) -> dict[str, str]:
    """What can be made out of a payload nobody could read, for its record; never raises, never looks far."""
    start = bytes(payload[:GLIMPSE_AT])
    seen: dict[str, str] = {}
    for key, names in _GLIMPSES.items():
        found = re.search(rb'"(?:' + names + rb')"\s{0,4}:\s{0,4}"([^"\\\x00-\x1f]{1,300})"', start)
        if found:
            seen[key] = found[1].decode("utf-8", "replace")
    return seen
