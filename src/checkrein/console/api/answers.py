"""How the HTTP API answers: JSON, files, and errors in one form with the status that fits."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from checkrein.console.visits import status_of
from checkrein.errors import CheckreinError

JSON = "application/json"
_FILES = {"json": JSON, "markdown": "text/markdown; charset=utf-8"}


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """Raise to answer at once."""

    def __init__(self, status: int, code: str, message: str, remedy: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.remedy, self.headers = (
            status,
            code,
            message,
            remedy,
            headers,
        )

    def answer(self) -> Response:
        headers = {name.replace("_", "-"): value for name, value in self.headers.items()}
        return problem(self.status, self.code, self.message, self.remedy, headers)


def encoded(value: Any) -> bytes:
    """As JSON, also what is no valid Unicode: a model or a tool may say anything."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode()


def answered(value: Any, status: int) -> Response:
    if status == 204:
        return Response(status_code=204)
    return Response(encoded(value), status, media_type=JSON)


def file(value: dict[str, str], form: str) -> Response:
    """A text to keep; its name may hold anything a title may."""
    kept = f"attachment; filename*=UTF-8''{quote(value['name'].encode('utf-8', 'replace'), safe='')}"
    body = value["text"].encode("utf-8", "replace")
    return Response(body, 200, {"content-disposition": kept}, media_type=_FILES.get(form, "text/plain"))


def problem(
    status: int, code: str, message: str, remedy: str = "", headers: dict[str, str] | None = None
) -> Response:
    told = {"error": {"code": code, "message": message, "remedy": remedy}}
    return Response(encoded(told), status, headers, media_type=JSON)


def failed(error: CheckreinError) -> Response:
    return problem(status_of(error), error.code, error.message, error.remedy)
