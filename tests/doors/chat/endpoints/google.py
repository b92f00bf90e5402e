"""Speaks Gemini's streamGenerateContent, as server-sent events."""

import json

from doors.chat.endpoints import Endpoint

_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
           429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip


class Speech:
    def key(self, headers):
        return headers.get("x-goog-api-key", "")

    def list(self, models, request):
        """One model a page, and one that cannot talk."""
        token = next((each[10:] for each in request.query.split("&") if each.startswith("pageToken=")), "0")
        at = int(token)
        rows = [{"name": f"models/{each}", "supportedGenerationMethods": ["generateContent"]}
                for each in models[at : at + 1]]  # fmt: skip
        rows.append({"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]})
        return {"models": rows, **({"nextPageToken": str(at + 1)} if at + 1 < len(models) else {})}

    def error(self, status, message):
        return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "UNKNOWN")}}

    def refusal(self, why):
        said = {
            "too long": "The input token count (2000000) exceeds the maximum number of tokens allowed (1).",
            "filtered": "Request blocked: SAFETY content_policy.",
        }[why]
        return self.error(400, said)

    def events(self, turn, request):
        def chunk(parts, finish=None, usage=False):
            sent, got = turn.usage
            candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
            counts = {"promptTokenCount": sent, "candidatesTokenCount": got, "totalTokenCount": sent + got}
            return _event({"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}],
                           "modelVersion": request.path.rpartition("/")[2].partition(":")[0],
                           "responseId": "r1", **({"usageMetadata": counts} if usage else {})})  # fmt: skip

        for piece in turn.reasoning:
            yield chunk([{"text": piece, "thought": True}])
        for piece in turn.text:
            yield chunk([{"text": piece}])
        for call in turn.calls:
            arguments = call.arguments if not isinstance(call.arguments, str) else json.loads(call.arguments)
            yield chunk([{"functionCall": {"name": call.name, "args": arguments}}])
        yield chunk([{"text": ""}], "STOP", usage=True)

    def before_the_end(self, events):
        return len(events) - 1

    def malformed(self):
        return 'data: {"candidates": [{"content": {"par\n\n'

    def told_error(self):
        return _event({"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})


def _event(data):
    return f"data: {json.dumps(data)}\r\n\r\n"


def fake_google(script=(), **options):
    return Endpoint(Speech(), script, **options)
