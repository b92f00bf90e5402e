"""The pages and where they are. `build` makes the whole application around a desk.

Everything of a signed-in browser lies below `/at/PLACE/`, a path only that browser knows: see `signin`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from checkrein.authority.token import API
from checkrein.console import entrance
from checkrein.console.api.calling import METHODS, for_browsers, for_programs
from checkrein.console.desk import Desk
from checkrein.console.guard import Guard, TooLarge
from checkrein.console.rendering import FOLDER, page
from checkrein.console.views import (
    arrivals,
    calls,
    chat,
    chat_live,
    chat_models,
    chat_settings,
    chat_talk,
    clients,
    health,
    inbox,
    policy,
    runs,
    servers,
    sessions,
    trust,
)
from checkrein.console.visits import Handler, endpoint

_FORGET_SECONDS = 1.0
PAGES: dict[str, Handler] = {
    "/": inbox.show,
    "/inbox": inbox.show,
    "/inbox/card/{id}": inbox.card,
    "/inbox/call/{id}": inbox.reveal,
    "/inbox/more": inbox.more,
    "/chat": chat.show,
    "/chat/list": chat.listed,
    "/chat/alerts": chat.alerts,
    "/chat/attach": chat_talk.attach,
    "/chat/models": chat_models.show,
    "/chat/{id}": chat.one,
    "/chat/{id}/conversation": chat.conversation,
    "/chat/{id}/export.{form}": chat.export,
    "/chat/{id}/settings": chat_settings.show,
    "/chat/{id}/preview": chat_talk.preview,
    "/chat/{id}/tools": chat_talk.tools,
    "/calls": calls.show,
    "/calls/rows": calls.rows,
    "/calls/export.{form}": calls.export_all,
    "/calls/{id}": calls.one,
    "/trust": trust.show,
    "/trust/export.json": trust.export,
    "/policy": policy.show,
    "/policy/rule/{id}": policy.rule_form,
    "/sessions": sessions.show,
    "/servers": servers.show,
    "/servers/rows": servers.rows,
    "/servers/import": arrivals.import_form,
    "/servers/secrets": arrivals.secrets,
    "/servers/clients": clients.show,
    "/servers/of/{name}": servers.one,
    "/servers/of/{name}/state": servers.state,
    "/servers/of/{name}/logs": servers.logs,
    "/runs": runs.show,
    "/runs/rows": runs.rows,
    "/runs/{id}": runs.one,
    "/runs/{id}/state": runs.state,
    "/health": health.show,
}
ACTIONS: dict[str, Handler] = {
    "/inbox/answers": inbox.answer_several,
    "/inbox/answer/{id}": inbox.answer,
    "/chat/new": chat.new,
    "/chat/import": chat.import_,
    "/chat/models/keep": chat_models.keep,
    "/chat/models/default": chat_models.default,
    "/chat/models/of/{name}/{what}": chat_models.do,
    "/chat/{id}/send": chat_talk.send,
    "/chat/{id}/edit": chat_talk.edit,
    "/chat/{id}/regenerate": chat_talk.regenerate,
    "/chat/{id}/choose": chat_talk.choose,
    "/chat/{id}/stop": chat_talk.stop,
    "/chat/{id}/answer": chat_talk.answer,
    "/chat/{id}/answers": chat_talk.answer_several,
    "/chat/{id}/gauge": chat_talk.gauge,
    "/chat/{id}/compress": chat_talk.compress,
    "/chat/{id}/offer": chat_talk.set_tools,
    "/chat/{id}/change": chat.change,
    "/chat/{id}/settings/keep": chat_settings.keep,
    "/chat/{id}/delete": chat.delete,
    "/calls/{id}/release": calls.release,
    "/trust/import": trust.import_,
    "/trust/reset": trust.reset,
    "/policy/add": policy.add,
    "/policy/try": policy.try_,
    "/policy/rule/{id}/edit": policy.edit,
    "/policy/rule/{id}/remove": policy.remove,
    "/policy/rule/{id}/move": policy.move,
    "/policy/phase": policy.set_phase,
    "/policy/accept": policy.accept,
    "/policy/withdraw": policy.withdraw,
    "/policy/grant/{id}/revoke": policy.revoke_grant,
    "/servers/add": arrivals.add,
    "/servers/import/chosen": arrivals.import_,
    "/servers/secrets/keep": arrivals.keep_secret,
    "/servers/secrets/forget": arrivals.forget_secret,
    "/servers/clients/add": clients.add,
    "/servers/clients/{id}/revoke": clients.revoke,
    "/servers/of/{name}/decide": servers.decide,
    "/servers/of/{name}/test": servers.test,
    "/servers/of/{name}/remove": servers.remove,
    "/servers/of/{name}/do/{what}": servers.switch,
    "/servers/of/{name}/sign-in": servers.sign_in,
    "/servers/of/{name}/sign-out": servers.sign_out,
    "/runs/{id}/cancel": runs.cancel,
    "/health/verify": health.verify,
    "/health/passphrase": health.passphrase,
    "/sign-out": entrance.sign_out,
}


def routes() -> list[BaseRoute]:
    """Every address there is."""
    inside: list[BaseRoute] = [
        Route("/feed", entrance.feed, methods=["GET"]),
        Route("/chat/{id}/live", chat_live.live, methods=["GET"]),
        Route("/chat/api/{rest:path}", for_browsers, methods=METHODS),
    ]
    inside += [Route(path, endpoint(handler), methods=["GET"]) for path, handler in PAGES.items()]
    inside += [Route(path, endpoint(handler), methods=["POST"]) for path, handler in ACTIONS.items()]
    return [
        Mount("/at/{place}", routes=inside),
        Route(f"{API}/{{rest:path}}", for_programs, methods=METHODS),
        Route("/signin", entrance.sign_in, methods=["POST"]),
        Route("/signin/{secret}", entrance.sign_in, methods=["GET"]),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
        Route("/{rest:path}", entrance.outside, methods=["GET"]),
    ]


def build(desk: Desk) -> ASGIApp:
    """The application; `desk.port` is set before the first request comes."""
    app = Starlette(
        routes=routes(),
        exception_handlers={HTTPException: _no_page, TooLarge: _too_large, Exception: _broken},
        lifespan=_lifespan,
    )
    app.state.desk = desk
    app.router.redirect_slashes = False
    # Outermost: also what is said about a failure is dressed.
    return Guard(
        app,
        desk.hosts,
        judge=desk.judge,
        refused=desk.refused,
        turned_away=desk.turned_away,
        failed=desk.failed,
    )


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    desk: Desk = app.state.desk
    running = [asyncio.create_task(desk.feed.run()), asyncio.create_task(_forget_links(desk))]
    try:
        yield
    finally:
        for each in running:
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each
        desk.signin.end_links()


async def _forget_links(desk: Desk) -> None:
    """Files that sign a browser in go when their time is over, also when nobody asks for anything."""
    while True:
        await asyncio.sleep(_FORGET_SECONDS)
        desk.signin.forget()


async def _no_page(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return page("plain.html", status, title="Nothing here", text="There is no such page.")


async def _too_large(_request: Request, _error: Exception) -> Response:
    return page("plain.html", 413, title="Too large", text="This is too large.")


async def _broken(_request: Request, error: Exception) -> Response:
    text = f"{type(error).__name__}. Please report it; nothing was changed."
    return page("plain.html", 500, title="Something went wrong", text=text)
