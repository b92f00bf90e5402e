"""Speaks OpenAI's chat completions, streamed; Azure's too, which differ by address and header only."""

import json

from doors.chat.endpoints import Endpoint


class Speech:
    def key(self, headers):
        return headers.get("api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    def list(self, models, _request):
        return {"object": "list", "data": [{"id": each, "object": "model"} for each in models]}

    def error(self, status, message):
        kinds = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
        return {"error": {"message": message, "type": "error", "code": kinds.get(status)}}

    def refusal(self, why):
        said = {
            "too long": ("This model's maximum context length is 10 tokens.", "context_length_exceeded"),
            "filtered": ("The response was filtered by the content management policy.", "content_filter"),
        }[why]
        return {"error": {"message": said[0], "type": "invalid_request_error", "code": said[1]}}

    def events(self, turn, request):
        model = request.json.get("model", "")

        def chunk(delta, finish=None, **more):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model,
                           "choices": [choice], **more})  # fmt: skip

        yield chunk({"role": "assistant", "content": ""})
        for piece in turn.reasoning:
            yield chunk({"reasoning_content": piece})
        for piece in turn.text:
            yield chunk({"content": piece})
        for index, call in enumerate(turn.calls):
            head = {"index": index, "id": call.id or f"call_{index}", "type": "function"}
            yield chunk({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
            for piece in call.parts:
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls" if turn.calls else "stop")
        sent, got = turn.usage
        usage = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
        yield _event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model,
                      "choices": [], "usage": usage})  # fmt: skip
        yield "data: [DONE]\n\n"

    def before_the_end(self, events):
        return len(events) - 3

    def malformed(self):
        return 'data: {"choices": [{"delta": {"cont\n\n'

    def told_error(self):
        return _event(
            {"error": {"message": "The server had an error.", "type": "server_error", "code": None}}
        )


def _event(data):
    return f"data: {json.dumps(data)}\n\n"


def fake_openai(script=(), **options):
    return Endpoint(Speech(), script, **options)
