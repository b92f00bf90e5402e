"""The Messages wire format: Claude Code, and Copilot CLI with a provider of its own.

A tool of a turn may carry the `verdict` of the safety classifier that judges it in Claude Code's auto mode:
"flagged" or "not_flagged", with `why`; without one the classifier ran out of time.
"""

import json
import uuid

from e2e.clients.model import Model

USAGE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 20,
}


class Messages(Model):
    def get(self, path):
        return (200, {"data": [], "has_more": False}) if path.startswith("/v1/models") else super().get(path)

    def post(self, path, body):
        if "count_tokens" in path:
            return 200, "application/json", b'{"input_tokens": 100}'
        messages = body.get("messages") or []
        self.requests.append(body)
        first = next((text_of(each["content"]) for each in messages if each["role"] == "user"), "")
        said = sum(each["role"] == "assistant" for each in messages)
        # Titles and summaries are asked for without tools, and are no part of the script.
        turn = self.pick(first, said) if body.get("tools") else {"text": "ok"}
        message = _message(turn, body.get("model", ""))
        checked = _checked(turn, message) if body.get("safeguards") else {}
        if not body.get("stream"):
            return 200, "application/json", json.dumps(message | checked).encode()
        return 200, "text/event-stream", b"".join(_events(message, checked))

    def results(self):
        """Tool use id to what the model was told came of it."""
        found = {}
        for request in self.requests:
            for message in request.get("messages") or []:
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block.get("type") == "tool_result":
                        found[block["tool_use_id"]] = block
        return found


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content or () if block.get("type") == "text")


def _message(turn, model):
    tools = [
        {
            "type": "tool_use",
            "id": each.get("id") or f"toolu_{uuid.uuid4().hex[:20]}",
            "name": each["name"],
            "input": each["input"],
        }
        for each in turn.get("tools", ())
    ]
    return {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": turn.get("text") or "ok"}, *tools],
        "stop_reason": "tool_use" if tools else "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }


def _checked(turn, message):
    """What the classifier says of the calls of a turn."""
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    said = {}
    for call, each in zip(calls, turn.get("tools", ()), strict=True):
        said[call["id"]] = {"type": "unavailable", "reason": "timeout"}
        if each.get("verdict"):
            why = each.get("why", "so it is")
            said[call["id"]] = {"type": "evaluated", "outcome": each["verdict"], "explanation": why}
    status = {"type": "available", "tool_uses": said}
    return {"safeguard_results": [{"type": "dangerous_tool_use", "status": status}]}


def _events(message, checked):
    start = {**message, "content": [], "stop_reason": None}
    yield _event("message_start", message=start)
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=empty)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None, **checked}
    yield _event("message_delta", delta=ended, usage=USAGE)
    yield _event("message_stop")


def _event(kind, **data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
