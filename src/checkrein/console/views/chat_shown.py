"""A conversation as its page shows it: messages with their parts, calls as cards, sizes and models in words.

Takes what the authority says of it; changes nothing.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from markupsafe import Markup

from checkrein.console import markdown, questions, shown
from checkrein.console.desk import Desk
from checkrein.console.shown import Block
from checkrein.console.spans import json_spans
from checkrein.doors.chat import Part, history
from checkrein.store.questions import get_question

Facts = dict[str, Any]
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
LARGEST_PICTURE = 6_000_000
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
# A call's state in a word a person says; `waiting` is ours for one that waits for them.
_WORDS = {
    "pending": "is looked at",
    "waiting": "waits for you",
    "running": "runs",
    "completed": "done",
    "error": "failed",
    "denied": "refused",
    "cancelled": "cancelled",
}
_STATES = {
    "aborted": "Stopped. This is what had come until then.",
    "interrupted": "The server was stopped here. This is what had come until then.",
    "failed": "The answer broke off here.",
}
_LEAVES = {
    "allow": "allowed by the rules",
    "approved": "allowed by a person",
    "answered": "answered by a person in its place",
    "denied": "refused by a person",
    "deny": "refused by the rules",
    "expired": "nobody answered in time",
    "cancelled": "the question was taken back",
}


def messages(desk: Desk, found: Facts) -> list[Facts]:
    """What is shown of a session: what people and models said; results stand in the cards of their calls."""
    results = _results(found["messages"])
    calls, siblings = found.get("calls") or {}, found.get("siblings") or {}
    said: list[Facts] = []
    for each in found["messages"]:
        if is_shown(each):
            said.append(message(desk, each, calls, siblings.get(each["id"], ()), results))
        elif said:
            said[-1]["last"] = each["id"]
    return said


def is_shown(given: Facts) -> bool:
    """Whatever a model is sent; results stand in the cards of their calls."""
    return given["role"] != "tool" and not given.get("summary")


def message(
    desk: Desk, given: Facts, calls: Facts, siblings: Any = (), results: dict[str, Facts] | None = None
) -> Facts:
    """One message; `mark` changes when what is shown of it does."""
    parts = [
        part
        for at, each in enumerate(given.get("parts") or ())
        if (part := _part(desk, given, at, each, calls, results or {}))
    ]
    cards = " ".join(part["card"]["mark"] for part in parts if part["kind"] == "card")
    source = "\n\n".join(each["text"] for each in given.get("parts") or () if each["kind"] == "text")
    state = given.get("state") or "completed"
    error = given.get("error") or ""
    return {
        "id": given["id"],
        # The last message it stands for: results that follow it are shown in it.
        "last": given["id"],
        "role": given["role"],
        "state": state,
        "ended": _STATES.get(state, ""),
        "error": error,
        "model": "/".join(each for each in (given.get("provider"), given.get("model")) if each),
        "at": shown.epoch(given.get("created_at")),
        "tokens": given.get("output_tokens"),
        "source": plain(source),
        "parts": parts,
        "branch": _branch(given["id"], siblings),
        "mark": f"{state} {len(source)} {len(parts)} {len(siblings)} {bool(error)} {cards}",
    }


def as_written(text: str) -> list[Markup]:
    return [Markup('<p class="asis">{}</p>').format(markdown.readable(text))]


def plain(text: str) -> Markup:
    """A line of ours or of a person's, for a page."""
    return Markup("{}").format(markdown.readable(text))


def as_given(text: str) -> Markup:
    """What a person sent just now, to be written on: not a character of it is another."""
    return Markup("{}").format(text)


def summary(found: Facts) -> Facts | None:
    """What stands for earlier messages when the model is asked, and whether its place is on this page."""
    told = found.get("snapshot")
    if not told:
        return None
    is_here = any(each["id"] == told["cutoff"] for each in found["messages"])
    return {**told, "html": markdown.rendered(told["text"]), "shown": is_here}


def _branch(own: str, siblings: Any) -> Facts | None:
    """Which of several answers, or questions, this is, and those beside it."""
    if own not in siblings or len(siblings) < 2:
        return None
    at = list(siblings).index(own)
    return {
        "number": at + 1,
        "of": len(siblings),
        "before": siblings[at - 1] if at else "",
        "after": siblings[at + 1] if at + 1 < len(siblings) else "",
    }


def _part(
    desk: Desk, given: Facts, at: int, part: Facts, calls: Facts, results: dict[str, Facts]
) -> Facts | None:
    kind = part["kind"]
    if kind in ("text", "reasoning"):
        # What a person wrote is shown as they wrote it.
        make = markdown.blocks if given["role"] == "assistant" else as_written
        return {"kind": kind, "at": at, "blocks": make(part["text"]) if part["text"] else []}
    if kind == "attachment":
        return {"kind": kind, "at": at, **_attachment(part)}
    if kind == "tool_invocation":
        call = calls.get(f"{given.get('run', '')}/{part['tool_call_id']}")
        told = call or _imported(given, part, results.get(part["tool_call_id"]))
        return {"kind": "card", "at": at, "card": card(desk, told)}
    return None


def _attachment(part: Facts) -> Facts:
    given = part.get("data")
    data: Facts = given if isinstance(given, dict) else {}
    name = str(data.get("name") or data.get("uri") or data.get("prompt") or "a file")
    return {
        "name": name,
        "about": " ".join(
            each for each in (str(data.get("server") or ""), part.get("mime_type") or "", size(part)) if each
        ),
        "picture": picture(part.get("mime_type") or "", data.get("base64")),
        "text": _short(str(part.get("text") or ""), 20_000),
    }


def size(part: Facts) -> str:
    count = part.get("size_bytes")
    if not isinstance(count, int):
        return ""
    return f"{count:,} bytes" if count < 2_000 else f"{count / 1000:,.0f} KB"


def picture(mime_type: Any, data: Any) -> str:
    """An address that holds the picture itself; nothing for what is no picture a browser may show."""
    if mime_type not in PICTURES or not isinstance(data, str) or not 0 < len(data) <= LARGEST_PICTURE:
        return ""
    # INVARIANT: only base64 of the few kinds that hold no script reaches an address.
    return f"data:{mime_type};base64,{data}" if _BASE64.fullmatch(data) else ""


def _results(found: list[Facts]) -> dict[str, Facts]:
    parts = (part for each in found if each["role"] == "tool" for part in each.get("parts") or ())
    return {part["tool_call_id"]: part for part in parts if part["kind"] == "tool_result"}


def _imported(given: Facts, part: Facts, result: Facts | None) -> Facts:
    """A call of which only the messages tell, as in a conversation from elsewhere."""
    server, _, tool = part["tool_name"].rpartition("__")
    told = result or {}
    return {
        "run": given.get("run") or "",
        "call_id": part["tool_call_id"],
        "message": given["id"],
        "name": part["tool_name"],
        "server": server,
        "tool": tool,
        "arguments": part.get("data"),
        "status": told.get("status") or part.get("status") or "completed",
        "error": told.get("error") or part.get("error") or "",
        "output": history.as_read(msgspec.convert(told, Part)) if told else None,
    }


def card(desk: Desk, call: Facts) -> Facts:
    """A call of a tool, and while it waits for a person, what is asked."""
    question = _question(desk, call)
    state = "waiting" if question else str(call["status"])
    # INVARIANT: what a yes lets run is what is shown; an edit that was tried and did not hold is neither.
    edited = call.get("edited") if call["status"] != "pending" else None
    arguments = edited if edited is not None else call.get("arguments")
    return {
        "key": f"{call.get('run', '')}/{call['call_id']}",
        "run": call.get("run", ""),
        "call": call["call_id"],
        "message": call.get("message", ""),
        "tool": call.get("tool") or call.get("name", ""),
        "server": call.get("server") or "",
        "state": state,
        "word": _WORDS.get(state, state),
        "entry": call.get("entry") or "",
        "leave": _leave(call) if state != "waiting" else "",
        "reason": call.get("reason") or "",
        "took": _took(call),
        "takes": shown.blocks(str(call.get("tool") or ""), arguments if arguments is not None else {}),
        "edited": edited is not None,
        "gives": _output(call.get("output")),
        "pictures": _pictures(call),
        "trouble": call.get("error") or "",
        "arguments": call.get("arguments") or {},
        "question": question,
        "level": question["level"] if question else "",
        "mark": f"{state}:{call.get('entry') or ''}:{call.get('completed_at') or ''}",
    }


def _question(desk: Desk, call: Facts) -> Facts | None:
    """What a person needs to know to answer, as the inbox has it."""
    if call.get("status") != "pending" or not call.get("question"):
        return None
    asked = get_question(desk.store, str(call.get("entry") or ""))
    return questions.card(desk, questions.Open(asked)) if asked is not None else None


def _leave(call: Facts) -> str:
    """By whose leave it ran, or why it did not."""
    verdict, by = str(call.get("verdict") or ""), str(call.get("answered_by") or "")
    if not verdict:
        return ""
    told = _LEAVES.get(verdict, verdict)
    return told.replace("a person", by) if by else told


def _took(call: Facts) -> str:
    count = call.get("milliseconds")
    if not isinstance(count, int | float):
        return ""
    return f"{count} ms" if count < 1_000 else f"{count / 1000:.1f} s"


def _output(output: Any) -> list[Block]:
    """What a tool answered: its texts, then whatever else it said as JSON; pictures are shown apart."""
    if output is None:
        return []
    if not isinstance(output, dict) or not isinstance(output.get("content"), list):
        return [_told(output)]
    found, rest = [], []
    for each in output["content"]:
        if isinstance(each, dict) and each.get("type") == "text":
            found.append(_told(str(each.get("text", ""))))
        elif not (isinstance(each, dict) and picture(each.get("mimeType"), each.get("data"))):
            rest.append(each)
    if rest:
        found.append(_told(rest))
    if "structuredContent" in output and not found:
        found.append(_told(output["structuredContent"]))
    return found or [_told("")]


def _told(value: Any) -> Block:
    if not isinstance(value, str):
        return Block(kind="json", title="answer", spans=json_spans(_short(shown.pretty(value))))
    if value.lstrip()[:1] in ("{", "[") and len(value) < 40_000:
        try:
            return _told(msgspec.json.decode(value.encode()))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
    return Block(kind="text", title="answer", spans=(("", _short(value) or "(nothing)"),))


def _short(text: str, longest: int = 40_000) -> str:
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}\n… {left:,} more characters"


def _pictures(call: Facts) -> list[str]:
    output = call.get("output")
    content = output.get("content") if isinstance(output, dict) else None
    found = [
        picture(each.get("mimeType"), each.get("data"))
        for each in (content if isinstance(content, list) else ())
        if isinstance(each, dict) and each.get("type") == "image"
    ]
    return [each for each in found if each]


def grouped(models: list[Facts]) -> dict[str, list[Facts]]:
    """Models by their provider, each with what its picker says."""
    found: dict[str, list[Facts]] = {}
    for each in models:
        limit = f"{each['input'] // 1000:,}k" if each.get("input") else ""
        about = (
            limit
            if each.get("known")
            else f"limits not known, {limit} taken"
            if limit
            else "limits not known"
        )
        found.setdefault(each["provider"], []).append({**each, "about": about})
    return found
