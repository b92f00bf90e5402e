"""What the HTTP API has: each method and path, the request of chat it stands for, and who may use it."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import unquote_to_bytes

import msgspec

from checkrein.authority.chat_requests import REQUESTS, Given
from checkrein.console.api import shapes

# `read` is for every token, `change` and `approve` for those made so, `person` for no token at all.
Need = Literal["read", "change", "approve", "person"]
_ID = {"session": "id"}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """`named` says what a name in the path is called in the request; `pick` which part of it is answered."""

    method: str
    path: str
    ask: str
    need: Need = "read"
    status: int = 200
    named: dict[str, str] = {}
    fixed: dict[str, Any] = {}
    pick: str = ""
    summary: str = ""
    # What it is called, where a request is asked for in several ways.
    name: str = ""
    result: Any = dict[str, Any]
    kind: Literal["json", "file", "stream"] = "json"

    @property
    def params(self) -> type[Given]:
        return REQUESTS[self.ask].params

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the path, in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def text(self) -> str:
        return self.summary or REQUESTS[self.ask].summary


def _get(path: str, ask: str, result: Any, **more: Any) -> Endpoint:
    return Endpoint(method="GET", path=path, ask=ask, result=result, **more)


def _post(path: str, ask: str, result: Any, **more: Any) -> Endpoint:
    return Endpoint(method="POST", path=path, ask=ask, result=result, **{"need": "change", **more})


_SESSION, _MESSAGE, _CALL = (
    "/sessions/{session}",
    "/sessions/{session}/messages/{message}",
    "/runs/{run}/calls/{call}",
)
ENDPOINTS: tuple[Endpoint, ...] = (
    _get("/status", "status", shapes.Status),
    _post("/start", "start", shapes.Started, status=201),
    _get("/sessions", "sessions", shapes.SessionList),
    _post("/sessions", "create", shapes.SessionView, status=201),
    _post("/sessions/import", "import", shapes.SessionView, status=201),
    _get(
        _SESSION,
        "session",
        shapes.SessionView,
        named=_ID,
        fixed={"limit": 1, "before": ""},
        pick="session",
        summary="A session, without its messages.",
    ),
    Endpoint(
        method="PATCH", path=_SESSION, ask="update", need="change", named=_ID, result=shapes.SessionView
    ),
    Endpoint(method="DELETE", path=_SESSION, ask="delete", need="change", named=_ID, status=204, result=None),
    _get(f"{_SESSION}/messages", "session", shapes.SessionOpened, named=_ID, name="messages"),
    _post(f"{_SESSION}/messages", "send", shapes.Sent, status=202),
    _post(f"{_SESSION}/regenerate", "regenerate", shapes.Begun, status=202, name="regenerate_last"),
    _post(f"{_MESSAGE}/edit", "edit", shapes.Sent, status=202),
    _post(f"{_MESSAGE}/regenerate", "regenerate", shapes.Begun, status=202),
    _post(f"{_MESSAGE}/choose", "choose", shapes.SessionView),
    _get(
        f"{_SESSION}/events",
        "events",
        str,
        kind="stream",
        summary="What happens in a session, as server-sent events that go on after `Last-Event-ID`.",
    ),
    _get(f"{_SESSION}/tokens", "tokens", shapes.Gauge),
    _post(
        f"{_SESSION}/tokens",
        "tokens",
        shapes.Gauge,
        need="read",
        name="tokens_with",
        summary="The same, with an `input` too long for an address.",
    ),
    _get(f"{_SESSION}/preview", "preview", shapes.Preview),
    _post(f"{_SESSION}/compress", "compress", shapes.Compressed),
    _get(f"{_SESSION}/tools", "tools", list[shapes.ToolServer]),
    _get(f"{_SESSION}/export", "export", str, named=_ID, kind="file"),
    _get("/search", "search", list[shapes.Hit], named={"q": "query"}),
    _post("/runs/{run}/abort", "abort", shapes.Aborted),
    _post(f"{_CALL}/approve", "approve", shapes.Answered, need="approve"),
    _post(f"{_CALL}/decline", "decline", shapes.Answered, need="approve"),
    _get("/models", "models", list[shapes.Model]),
    _get("/providers", "providers", list[shapes.ProviderView]),
    _post("/providers/{name}/test", "provider_test", shapes.Tested),
    _post("/providers/{name}/refresh", "provider_refresh", list[str]),
    # INVARIANT: no token changes where a key is sent to.
    _post("/providers/{name}", "provider_set", Any, need="person"),
    Endpoint(
        method="DELETE",
        path="/providers/{name}",
        ask="provider_remove",
        need="person",
        status=204,
        result=None,
    ),
    _post("/default", "default", Any, need="person"),
    _get("/resources", "resources", list[dict[str, Any]]),
    _get("/templates", "templates", list[dict[str, Any]]),
    _get("/prompts", "prompts", list[dict[str, Any]]),
)
DESCRIPTION = "/openapi.json"


class Found(msgspec.Struct, frozen=True):
    """The endpoint of a request and the names in its path, or what else there is at that path."""

    endpoint: Endpoint | None = None
    path: dict[str, str] = {}
    allowed: tuple[str, ...] = ()


def find(method: str, parts: list[str]) -> Found:
    """`parts` is the path between its slashes, decoded each by itself: an id may hold a slash."""
    allowed: list[str] = []
    for each in ENDPOINTS:
        named = _match(each.path.split("/")[1:], parts)
        if named is None:
            continue
        if each.method == method or (method == "HEAD" and each.method == "GET"):
            return Found(each, named)
        allowed.append(each.method)
    return Found(allowed=tuple(allowed))


def _match(wanted: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(wanted) != len(parts):
        return None
    named: dict[str, str] = {}
    for want, part in zip(wanted, parts, strict=True):
        if want.startswith("{") and part:
            named[want[1:-1]] = part
        elif want != part:
            return None
    return named


def parts_of(raw_path: bytes, before: int) -> list[str]:
    """The path behind its first parts."""
    return [unquote_to_bytes(part).decode("utf-8", "replace") for part in raw_path.split(b"/")[before:]]
