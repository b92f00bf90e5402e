"""Clients: who is at the gateway now, and who may come over HTTP with a token of its own."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein.console import shown
from checkrein.console.shown import Block
from checkrein.console.spans import json_spans
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError

_MOST = 200


def show(visit: Visit) -> Response:
    return _shown(visit)


def add(visit: Visit) -> Response:
    """A new token, on this one answer and on no page after it."""
    try:
        made = visit.desk.ask("client.add", name=visit.form.text("name"))
    except CheckreinError as error:
        return _shown(visit, trouble=str(error), status=400)
    settings = Block(kind="json", title="Settings", spans=json_spans(shown.pretty(made["settings"])))
    # INVARIANT: a token is in the answer to the form that asked for it, and nowhere else.
    return _shown(visit, made={**made, "blocks": [settings]})


def revoke(visit: Visit) -> Response:
    gone = visit.desk.ask("client.revoke", name=visit.named["id"])
    return visit.back("/servers/clients", f"Revoked {gone['name']}. Whatever it had open is closed.")


def _shown(
    visit: Visit, *, made: dict[str, Any] | None = None, trouble: str = "", status: int = 200
) -> Response:
    known = visit.desk.ask("client.list", revoked=True)
    return visit.page(
        "clients.html",
        status,
        connected=visit.desk.connected()[:_MOST],
        tokens=[each for each in known if not each["revoked_at"]],
        revoked=[each for each in known if each["revoked_at"]][-20:][::-1],
        made=made,
        trouble=trouble,
        wanted=visit.form.text("name") if trouble else "",
    )
