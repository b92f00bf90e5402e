"""One request over HTTP, from its first header to its answer: who asks, for what, what the authority says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from checkrein.authority import perform
from checkrein.console.api import callers, following, openapi
from checkrein.console.api.answers import Refused, answered, failed, file, problem
from checkrein.console.api.callers import Caller
from checkrein.console.api.endpoints import DESCRIPTION, Endpoint, Found, find, parts_of
from checkrein.console.desk import Desk
from checkrein.console.guard import TooLarge
from checkrein.errors import CheckreinError, InputError

METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"]
# How many parts of the path come before the API's own: `/api/v1/…` and `/at/PLACE/chat/api/…`.
_BEFORE_PROGRAMS, _BEFORE_BROWSERS = 3, 5
_LONGEST_QUERY = 65_536
_REFUSED = {
    "change": ("token.reads", "This token only reads.", "Make another with `checkrein chat token add NAME`."),
    "approve": (
        "token.no_approve",
        "This token does not answer questions.",
        "Answer it yourself, or make a token with `checkrein chat token add NAME --approve`.",
    ),
    "person": ("person.only", "Programs do not change this.", "Use the console or `checkrein chat`."),
}


async def for_programs(request: Request) -> Response:
    return await _guarded(request, callers.program, _BEFORE_PROGRAMS)


async def for_browsers(request: Request) -> Response:
    return await _guarded(request, callers.browser, _BEFORE_BROWSERS)


async def _guarded(request: Request, who: Callable[[Request], Awaitable[Caller]], before: int) -> Response:
    """Whatever goes wrong, there is an answer in our form."""
    try:
        return await _answer(request, await who(request), parts_of(request.scope["raw_path"], before))
    except Refused as refused:
        return refused.answer()
    except CheckreinError as error:
        return failed(error)
    except TooLarge:
        return problem(413, "too_large", "This is too large.")
    except Exception as error:  # noqa: BLE001 - whoever asks hears of it, and nobody else suffers
        request.app.state.desk.failed(error)
        return problem(500, "error", f"{type(error).__name__}.", "Please report it.")


async def _answer(request: Request, caller: Caller, parts: list[str]) -> Response:
    desk: Desk = request.app.state.desk
    if parts == [DESCRIPTION.strip("/")] and request.method in ("GET", "HEAD"):
        return answered(openapi.document(desk.port), 200)
    found = find(request.method, parts)
    endpoint = _allowed(found, caller)
    callers.check_type(request)
    params = _checked(endpoint, {**found.path, **await _given(request, endpoint)})
    if endpoint.kind == "stream":
        return await following.answer(request, caller, params)
    value = await run_in_threadpool(perform, caller.asked, f"chat.{endpoint.ask}", params)
    if endpoint.kind == "file":
        return file(value, params.get("form", "json"))
    return answered(value[endpoint.pick] if endpoint.pick else value, endpoint.status)


def _allowed(found: Found, caller: Caller) -> Endpoint:
    if found.endpoint is None and found.allowed:
        allow = ", ".join(found.allowed)
        raise Refused(405, "no_such_method", "This cannot be done here.", f"There is {allow}.", allow=allow)
    if found.endpoint is None:
        raise Refused(404, "not_found", "There is nothing here.", f"See {DESCRIPTION}.")
    if found.endpoint.need not in caller.may:
        raise Refused(403, *_REFUSED[found.endpoint.need])
    return found.endpoint


async def _given(request: Request, endpoint: Endpoint) -> dict[str, Any]:
    """What came in the address or as JSON; never both."""
    if endpoint.method == "GET":
        if len(request.url.query) > _LONGEST_QUERY:
            raise Refused(414, "too_long", "This address is too long.", "Send it with POST where you can.")
        return dict(request.query_params)
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=dict[str, Any]) if body.strip() else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"The body is not a JSON object: {error}.") from None


def _checked(endpoint: Endpoint, given: dict[str, Any]) -> dict[str, Any]:
    """The request's parameters; in an address everything is text."""
    params = {endpoint.named.get(name, name): value for name, value in given.items()} | endpoint.fixed
    try:
        found = msgspec.convert(params, endpoint.params, strict=endpoint.method != "GET")
    except msgspec.ValidationError as error:
        raise InputError(f"The request cannot be understood: {error}.") from None
    checked: dict[str, Any] = msgspec.to_builtins(found)
    return checked
