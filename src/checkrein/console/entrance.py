"""Coming in, staying and leaving: the sign-in link, the live line of an open page, signing out."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from checkrein.console.desk import Desk
from checkrein.console.feed import MOST_LISTENERS
from checkrein.console.rendering import page
from checkrein.console.signin import Signed, cookie_header
from checkrein.console.visits import Visit, failed, form_of, signed, signed_out
from checkrein.errors import CheckreinError


async def sign_in(request: Request) -> Response:
    """Turn the secret of a link, or of the form `checkrein open` shows the browser, into a cookie.

    A page that leads on, not a redirect: a browser that came from another site would not send a strict cookie
    along with one.
    """
    desk: Desk = request.app.state.desk
    try:
        secret = request.path_params.get("secret") or (await form_of(request)).text("secret")
    except CheckreinError as error:
        return failed(error)
    opened = desk.signin.open(secret)
    if opened is None:
        await run_in_threadpool(desk.refused, "a sign-in link was used, old or made up")
        text = "This link was used already, or is more than a minute old."
        return page("signed_out.html", 403, text=text)
    response = page("signed_in.html", place=f"/at/{opened.place}/")
    response.headers["set-cookie"] = cookie_header(opened)
    return response


async def outside(_request: Request) -> Response:
    """Any address without a place: a script finds the way back where this browser has signed in."""
    return page("signed_out.html", 401)


async def feed(request: Request) -> Response:
    """What happens, as it happens. While a page listens, a person counts as reachable."""
    session = signed(request, use=False)
    if session is None:
        return signed_out()
    desk: Desk = request.app.state.desk
    if desk.feed.is_full:
        return page(
            "plain.html", 429, title="Too many pages", text=f"{MOST_LISTENERS} pages are open already."
        )
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    after = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else None
    return StreamingResponse(
        _lines(desk, session, after), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


async def _lines(desk: Desk, session: Signed, after: int | None) -> AsyncIterator[bytes]:
    attending: AbstractContextManager[None] = desk.pipeline.broker.attending()
    # In a thread: whoever records an answer holds the broker for as long as the disk takes.
    await run_in_threadpool(attending.__enter__)
    try:
        async with contextlib.aclosing(desk.feed.listen(after)) as pieces:
            async for piece in pieces:
                if not desk.signin.is_open(session):
                    return
                yield piece
    finally:
        attending.__exit__(None, None, None)


def sign_out(visit: Visit) -> Response:
    visit.desk.signin.close(visit.session)
    return page("signed_out.html", 200, text="You are signed out.")
