"""A signed-in browser at a page: who it is, what it sent, and how it is answered.

Handlers are plain functions from a Visit to a response; they run in threads, so they may wait for the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from checkrein.console import rendering
from checkrein.console.desk import Desk
from checkrein.console.forms import Fields, fields
from checkrein.console.signin import Signed, cookies_of, same
from checkrein.errors import CheckreinError, ConflictError, NotFoundError, PersonOnlyError, StoreError
from checkrein.store import records
from checkrein.store.questions import count_waiting

# Whoever asked could do nothing about these: a provider or a server elsewhere failed, or was silent.
_ELSEWHERE = {"provider.failed": 502, "provider.silent": 504, "server.unreachable": 502, "server.failed": 502}
_LONGEST_QUERY = 16_384
_FORM = "application/x-www-form-urlencoded"


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a signed-in browser."""

    desk: Desk
    session: Signed
    path: str
    named: dict[str, str] = {}
    query: Fields = Fields()
    form: Fields = Fields()
    # The newest record before anything was read: from here on the page hears what happens.
    seq: int = 0
    # A script asks for a piece of a page; everybody else for the whole.
    piece: bool = False

    def url(self, path: str, **query: Any) -> str:
        """An address below this browser's own place."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return f"/at/{self.session.place}{path}" + (f"?{urlencode(given, errors='replace')}" if given else "")

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """A whole page, or a piece of one."""
        common = {
            "url": self.url,
            "csrf": self.session.csrf,
            "here": self.path.split("/")[1] or "inbox",
            "now": self.desk.now(),
            "actor": self.desk.actor,
        }
        if not name.startswith("_"):
            common |= {"seq": self.seq, "told": self.session.hear(), "waiting": waiting_count(self.desk)}
        return rendering.page(name, status, **common, **values)

    def back(self, path: str, told: str = "", kind: str = "good", **query: Any) -> Response:
        """To a page, with something said on it."""
        if told:
            self.session.tell(kind, told)
        return RedirectResponse(self.url(path, **query), 303)


Handler = Callable[[Visit], Response]


def waiting_count(desk: Desk) -> int:
    return count_waiting(desk.store, desk.now())


def endpoint(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """A handler as Starlette calls it: signed in, forms checked, errors in plain words."""

    async def answer(request: Request) -> Response:
        # What an open page fetches by itself keeps nobody signed in.
        session = signed(request, use=request.method == "POST" or not _is_piece(request))
        desk: Desk = request.app.state.desk
        if session is None:
            if request.method == "POST":
                await run_in_threadpool(desk.refused, "a form came from a browser that is not signed in")
            return signed_out()
        try:
            form = await form_of(request)
        except CheckreinError as error:
            return failed(error)
        if request.method == "POST" and not same(form.text("csrf"), session.csrf):
            # INVARIANT: nothing changes without the token only our own pages hold.
            await run_in_threadpool(desk.refused, "a form came without the token of its session")
            text = "The form was not sent from this console, or is too old. Go back and reload the page."
            return rendering.page("plain.html", 403, title="Not done", text=text)
        return await run_in_threadpool(_answered, handler, request, session, form)

    return answer


def signed(request: Request, *, use: bool = True) -> Signed | None:
    """The session this request belongs to."""
    desk: Desk = request.app.state.desk
    cookies = cookies_of("; ".join(request.headers.getlist("cookie")))
    return desk.signin.session(cookies, request.path_params["place"], use=use)


def signed_out() -> Response:
    return rendering.page("signed_out.html", 401)


def _is_piece(request: Request) -> bool:
    return request.headers.get("x-piece") == "1"


async def form_of(request: Request) -> Fields:
    """What a form sent; nothing where no form was."""
    if request.method != "POST":
        return Fields()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        return Fields()
    return fields(await request.body())


def _answered(handler: Handler, request: Request, session: Signed, form: Fields) -> Response:
    place = f"/at/{session.place}"
    desk: Desk = request.app.state.desk
    try:
        head = records.head(desk.store)
        visit = Visit(
            desk=desk,
            seq=head[0] if head else 0,
            session=session,
            path=request.url.path.removeprefix(place) or "/",
            named={name: str(value) for name, value in request.path_params.items()},
            query=fields(request.url.query[:_LONGEST_QUERY].encode()),
            form=form,
            piece=_is_piece(request),
        )
        return handler(visit)
    except CheckreinError as error:
        if _is_piece(request):
            return rendering.page("_error.html", status_of(error), message=error.message, remedy=error.remedy)
        return failed(error, place)


def failed(error: CheckreinError, place: str = "") -> Response:
    """An error as a page of its own, with the way back."""
    return rendering.page(
        "plain.html",
        status_of(error),
        title="Not done",
        text=error.message,
        remedy=error.remedy,
        back=f"{place}/" if place else "",
    )


def status_of(error: CheckreinError) -> int:
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, PersonOnlyError):
        return 403
    if isinstance(error, StoreError):
        return 503
    return 409 if isinstance(error, ConflictError) else _ELSEWHERE.get(error.code, 400)
