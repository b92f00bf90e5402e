"""How `checkrein chat` asks: always the running server, patiently; sessions by the beginning of their id."""

from __future__ import annotations

from typing import Any

from checkrein import knocking
from checkrein.cli.servers_asking import progress
from checkrein.errors import InputError, NotFoundError

# A summary of a long conversation takes a model this long.
PATIENT_SECONDS = 340.0
_MOST = 1_000


def ask_chat(request: str, /, *, doing: str = "", **params: Any) -> Any:
    """What chat answers; the server is started if need be. `doing` is shown when it takes over a second."""
    with progress(doing):
        return knocking.ask(knocking.start(), f"chat.{request}", params, PATIENT_SECONDS)


def sessions(*, archived: bool = False) -> list[dict[str, Any]]:
    """Every session, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        came = ask_chat("sessions", archived=archived, limit=_MOST, offset=len(found))
        found += came["sessions"]
        if not came["sessions"] or len(found) >= came["total"]:
            return found


def session_named(start: str) -> str:
    """The id of the session that is meant: the beginning of it is enough."""
    if not start:
        raise InputError("Say which session.", remedy="See `checkrein chat list`.")
    try:
        return str(ask_chat("session", id=start, limit=1)["session"]["id"])
    except NotFoundError:
        pass
    known = [each["id"] for archived in (False, True) for each in sessions(archived=archived)]
    found = [each for each in known if each.startswith(start)]
    if len(found) > 1:
        raise InputError(f"More than one session begins with {start!r}.", remedy="Give more of its id.")
    if not found:
        raise NotFoundError(f"There is no session {start!r}.", remedy="See `checkrein chat list`.")
    return str(found[0])
