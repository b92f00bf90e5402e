"""Who asks over HTTP: a program with a token, which no agent may run, or a browser that signed in."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from checkrein.authority import Asked
from checkrein.console.api.answers import JSON, Refused
from checkrein.console.api.endpoints import Need
from checkrein.console.desk import Desk
from checkrein.console.guard import PEER
from checkrein.console.signin import same
from checkrein.console.visits import signed
from checkrein.peers import Peer
from checkrein.store.api_tokens import ApiToken

CSRF = "x-csrf"
_SAFE = ("GET", "HEAD")
_ALL: frozenset[Need] = frozenset({"read", "change", "approve", "person"})


class Caller(msgspec.Struct, frozen=True):
    """`holds` says whether it may still listen; `attends` whether a person is behind it who can answer."""

    asked: Asked
    may: frozenset[Need]
    holds: Callable[[], bool]
    attends: bool


async def program(request: Request) -> Caller:
    """A program, by its token; the guard has checked the process that shows it."""
    desk: Desk = request.app.state.desk
    shown = request.headers.getlist("authorization")
    # In a thread: the store is read.
    return await run_in_threadpool(_program, desk, shown, getattr(request.state, PEER))


def _program(desk: Desk, shown: list[str], peer: Peer) -> Caller:
    token = desk.holders.holder(shown[0]) if len(shown) == 1 else None
    wait = desk.holders.take(token.id if token else "")
    if wait:
        raise Refused(
            429, "too_many", "These are too many requests.", "Wait a little.", retry_after=str(int(wait) + 1)
        )
    if token is None:
        if shown:
            desk.refused("a program showed a token that opens nothing")
        raise Refused(
            401,
            "token.missing" if not shown else "token.unknown",
            "This needs a token." if not shown else "This token opens nothing.",
            "Make one with `checkrein chat token add NAME`; send it as `Authorization: Bearer TOKEN`.",
            www_authenticate='Bearer realm="checkrein"',
        )
    desk.holders.note(token.id)
    return Caller(
        desk.asked_by(peer, token.name),
        _may(token),
        lambda: desk.holders.is_living(token.id),
        attends=token.may_answer,
    )


def _may(token: ApiToken) -> frozenset[Need]:
    found: set[Need] = {"read"}
    if token.may_change:
        found.add("change")
    if token.may_answer:
        found.add("approve")
    return frozenset(found)


async def browser(request: Request) -> Caller:
    """A browser that signed in; what changes something also shows the token of its own page."""
    desk: Desk = request.app.state.desk
    changes = request.method not in _SAFE
    session = signed(request, use=changes)
    if session is None:
        if changes:
            await run_in_threadpool(desk.refused, "a request came from a browser that is not signed in")
        raise Refused(401, "signed_out", "You are signed out.", "Run `checkrein open`.")
    if changes and not same(request.headers.get(CSRF, ""), session.csrf):
        # INVARIANT: nothing changes without the token only our own pages hold.
        await run_in_threadpool(desk.refused, "a request came without the token of its session")
        raise Refused(403, "not_our_page", "This was not sent from this console, or the page is too old.")
    return Caller(desk.asked, _ALL, lambda: desk.signin.is_open(session), attends=True)


def check_type(request: Request) -> None:
    """A page of another site cannot send JSON without asking first, and would be told no."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method not in _SAFE and request.method != "DELETE" and given != JSON:
        raise Refused(415, "json_only", f"Send JSON, with `Content-Type: {JSON}`.")
