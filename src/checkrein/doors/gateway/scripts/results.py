"""What a client reads of a script: its result, its failure, or that it waits. Words and shapes only."""

from __future__ import annotations

from typing import Any

from checkrein.call import canonical
from checkrein.doors.gateway.messages import Message
from checkrein.execute.sandbox import Ended, Failed

_MOST_BLOCKS = 100


def done(run: str, step: Ended, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """What is kept of a script that came to its end."""
    return {"run_id": run, "status": "done", "result": step.value, "output": step.output, "calls": calls}


def failed(run: str, step: Failed, calls: list[dict[str, Any]], kind: str = "") -> dict[str, Any]:
    failure = {"kind": kind or step.kind, "message": step.message, "line": step.line}
    return {"run_id": run, "status": "failed", "error": failure, "output": step.output, "calls": calls}


def cancelled(run: str, why: str, output: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    failure = {"kind": "cancelled", "message": why, "line": 0}
    return {"run_id": run, "status": "cancelled", "error": failure, "output": output, "calls": calls}


def shown(kept: dict[str, Any]) -> Message:
    """What is kept of an ended run, as a tool's result."""
    if kept["status"] == "done":
        content = _content(kept["result"])
    else:
        error = kept["error"]
        where = f" on line {error['line']}" if error["line"] else ""
        content = [_text(f"The script failed ({error['kind']}){where}: {error['message']}")]
    if kept["output"]:
        content.append(_text(f"Console:\n{kept['output']}"))
    made: Message = {"content": content, "structuredContent": kept}
    return made if kept["status"] == "done" else {**made, "isError": True}


def paused(run: str, waiting: list[dict[str, Any]]) -> Message:
    """The script waits, for a person or for its calls."""
    status = "paused" if waiting else "running"
    kept = {"run_id": run, "status": status, "waiting": waiting}
    if waiting:
        names = ", ".join(f"`{each['tool']}`" for each in waiting)
        text = (
            f"The script waits for a person's answer about {names}. Nothing of it is lost: call "
            f"resume_run with run_id {run} to wait again or to read the result. A person answers with "
            "`checkrein inbox` or in the console."
        )
    else:
        text = f"The script still runs. Call resume_run with run_id {run} to wait for its result."
    return {"content": [_text(text)], "structuredContent": kept}


def wrong(text: str) -> Message:
    return {"content": [_text(text)], "isError": True}


def _content(value: Any) -> list[Message]:
    rows = value if isinstance(value, list) and value and all(_is_block(each) for each in value) else [value]
    return [_block(each) for each in rows[:_MOST_BLOCKS]]


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    wants = {"text": "text", "json": "value", "image": "data"}.get(str(value.get("type")))
    return wants is not None and wants in value


def _block(value: Any) -> Message:
    if not _is_block(value):
        return _text(value if isinstance(value, str) else _json(value))
    if value["type"] == "text":
        return _text(value["text"] if isinstance(value["text"], str) else _json(value["text"]))
    if value["type"] == "image" and isinstance(value["data"], str):
        mime = value.get("mimeType")
        return {
            "type": "image",
            "data": value["data"],
            "mimeType": mime if isinstance(mime, str) else "image/png",
        }
    return _text(_json(value.get("value", value)))


def _json(value: Any) -> str:
    return canonical(value).decode("utf-8", "replace")


def _text(text: str) -> Message:
    return {"type": "text", "text": text}
