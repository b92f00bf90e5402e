"""Speaks Anthropic's messages, streamed."""

import json

from doors.chat.endpoints import Endpoint

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class Speech:
    def key(self, headers):
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def list(self, models, request):
        """One model a page, so that whoever asks must turn pages."""
        after = next((each[9:] for each in request.query.split("&") if each.startswith("after_id=")), None)
        at = models.index(after) + 1 if after else 0
        page = models[at : at + 1]
        rows = [{"id": each, "type": "model", "display_name": each} for each in page]
        return {"data": rows, "has_more": at + 1 < len(models), "last_id": page[-1] if page else None}

    def error(self, status, message):
        return {"type": "error", "error": {"type": _TYPES.get(status, "api_error"), "message": message}}

    def refusal(self, why):
        said = {
            "too long": "prompt is too long: 210000 tokens > 200000 maximum",
            "filtered": "Output blocked by content filtering policy (content_policy)",
        }[why]
        return self.error(400, said)

    def events(self, turn, request):
        sent, got = turn.usage
        message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "stop_reason": None,
                   "model": request.json["model"], "stop_sequence": None,
                   "usage": {"input_tokens": sent, "output_tokens": 1}}  # fmt: skip
        yield _event("message_start", {"message": message})
        yield _event("ping", {})
        at = 0
        if turn.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": each} for each in turn.reasoning]
            deltas.append({"type": "signature_delta", "signature": "c2ln"})
            yield from _block(at, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
            at += 1
        if turn.text:
            deltas = [{"type": "text_delta", "text": each} for each in turn.text]
            yield from _block(at, {"type": "text", "text": ""}, deltas)
            at += 1
        for index, call in enumerate(turn.calls):
            block = {"type": "tool_use", "id": call.id or f"toolu_{index}", "name": call.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": each} for each in ("", *call.parts)]
            yield from _block(at, block, deltas)
            at += 1
        reason = "tool_use" if turn.calls else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield _event("message_delta", {"delta": delta, "usage": {"output_tokens": got}})
        yield _event("message_stop", {})

    def before_the_end(self, events):
        return len(events) - 2

    def malformed(self):
        return 'event: content_block_delta\ndata: {"type": "content_block_delta", "ind\n\n'

    def told_error(self):
        return _event("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})


def _block(at, block, deltas):
    yield _event("content_block_start", {"index": at, "content_block": block})
    for delta in deltas:
        yield _event("content_block_delta", {"index": at, "delta": delta})
    yield _event("content_block_stop", {"index": at})


def _event(kind, data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def fake_anthropic(script=(), **options):
    return Endpoint(Speech(), script, **options)
