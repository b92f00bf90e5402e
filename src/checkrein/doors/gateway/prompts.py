"""What a person reads when a client shows them our question, and what their answer means.

An upstream's own questions pass through here too, so that none of them can look like ours.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.approval import wording
from checkrein.asking import Remember
from checkrein.call import Category, ToolCall, Verdict, canonical
from checkrein.doors.gateway.messages import Message

OURS = "Checkrein asks"
_LONGEST_ARGUMENTS, _LONGEST_MESSAGE = 4_000, 2_000
_ONCE, _SESSION_CALL, _SESSION_TOOL = "once", "this call, for this session", "this tool, for this session"


class Answer(msgspec.Struct, frozen=True):
    """What somebody said to our question."""

    word: str
    message: str = ""
    remember: Remember | None = None


def approval(call: ToolCall, verdict: Verdict, entry: str, client: str) -> Message:
    """The params of our elicitation: server, tool, canonical arguments, risk and reasons."""
    arguments = wording.plain(canonical(call.arguments).decode("utf-8", "replace"), _LONGEST_ARGUMENTS)
    who = wording.plain(client, 80) or "this client"
    lines = [
        f"{OURS}: may {who} run `{call.tool}` of server `{call.server}`?",
        f"Arguments: {arguments}",
        *_unseen(call, arguments, entry),
        *wording.question(call, verdict, entry).splitlines(),
    ]
    choices = [_ONCE, _SESSION_CALL]
    # A tool that can do harm is asked about call by call.
    if verdict.risk.category < Category.high:
        choices.append(_SESSION_TOOL)
    return {
        "mode": "form",
        "message": "\n".join(lines),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "remember": {
                    "type": "string",
                    "title": "If you accept: how far does your yes reach?",
                    "enum": choices,
                    "default": _ONCE,
                },
                "message": {"type": "string", "title": "A word to the model (optional)", "maxLength": 500},
            },
        },
    }


def _unseen(call: ToolCall, shown: str, entry: str) -> list[str]:
    """Says so where a person would approve what they cannot see."""
    if not shown.endswith("…"):
        return []
    size = len(canonical(call.arguments))
    return [
        f"(They go on: {size:,} bytes in all. `checkrein audit show {entry}` shows what is kept of them.)"
    ]


def answer(result: Any) -> Answer:
    """What came back; whatever is not a plain accept is a no."""
    found = result if isinstance(result, dict) else {}
    content = found.get("content")
    given = content if isinstance(content, dict) else {}
    said = given.get("message")
    message = said[:_LONGEST_MESSAGE] if isinstance(said, str) else ""
    # INVARIANT: only the word accept is a yes.
    if found.get("action") != "accept":
        return Answer("denied", message)
    reach = given.get("remember", _ONCE)
    remember = {
        _ONCE: None,
        _SESSION_CALL: Remember(what="exact", span="session"),
        _SESSION_TOOL: Remember(what="tool", span="session"),
    }
    # An answer we did not offer is no yes either.
    if not isinstance(reach, str) or reach not in remember:
        return Answer("denied", "The answer was not one of those offered.")
    return Answer("approved", message, remember[reach])


def foreign(server: str, method: str, params: Message) -> Message:
    """A server's own request as the client gets it: a question says whose it is, in words we choose."""
    if method != "elicitation/create":
        return params
    said = params.get("message")
    lines = said.splitlines() if isinstance(said, str) else []
    # INVARIANT: no line of what a server asks begins like our own question, and nothing in it is hidden.
    text = "\n".join(f"> {_visible(line)}" for line in lines)
    return {**params, "message": f"The server `{server}` asks (not Checkrein):\n{text}"}


def _visible(line: str) -> str:
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in line)
