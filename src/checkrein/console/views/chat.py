"""Conversations: their list, one of them, and everything a person does with one as a whole.

What is said in one, and the answers to its questions: `chat_talk`. What happens in it meanwhile: `chat_live`.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from typing import Any

from starlette.responses import Response

from checkrein.console.views import chat_shown
from checkrein.console.views.chat_attached import LIMITS, attachments
from checkrein.console.views.inbox import SPANS
from checkrein.console.visits import Visit, status_of
from checkrein.errors import CheckreinError, InputError

Facts = dict[str, Any]
PAGE, LISTED, HITS = 60, 100, 40
# How far back a message that was searched for is looked for.
_MOST_PAGES = 40
_MOST = 1_000
COLORS = ("red", "amber", "green", "blue", "violet")
_FORMS = {"json": ("json", "application/json"), "md": ("markdown", "text/markdown; charset=utf-8")}


def show(visit: Visit) -> Response:
    """The list, and a place to begin."""
    return _beginning(visit)


def _beginning(visit: Visit, status: int = 200, **typed: str) -> Response:
    composing = _composing(visit, None) | typed | {"typed": chat_shown.as_given(typed.get("typed", ""))}
    return visit.page("chat.html", status, **_listed(visit), opened=None, **composing, **_alerts(visit, ""))


def one(visit: Visit) -> Response:
    """A conversation; `at` names a message to show, wherever it is."""
    found = _opened(visit)
    return visit.page(
        "chat.html",
        **_listed(visit),
        **_conversation(visit, found),
        **_composing(visit, found["session"]),
        **_alerts(visit, found["session"]["tainted_by"]),
    )


def conversation(visit: Visit) -> Response:
    """What was said, for a page that is open: all it shows, or what came before a message."""
    return visit.page("_chat_conversation.html", **_conversation(visit, _opened(visit)))


def listed(visit: Visit) -> Response:
    """The list, or what was found of some words."""
    return visit.page("_chat_list.html", **_listed(visit))


def alerts(visit: Visit) -> Response:
    """What is wrong now, for a page that is open; `open` names its conversation, if it shows one."""
    own = visit.query.text("open")
    session = visit.desk.ask("chat.session", id=own, limit=1)["session"] if own else {"tainted_by": ""}
    return visit.page("_chat_alerts.html", **_alerts(visit, session["tainted_by"]))


def new(visit: Visit) -> Response:
    """Begin a conversation, with something said already or with nothing."""
    text, files, model = visit.form.text("text"), attachments(visit.form), visit.form.text("model")
    made: Facts | None = None
    try:
        made = visit.desk.ask("chat.create", model=model)
        if text or files:
            visit.desk.ask("chat.send", session=made["id"], text=text, attachments=files)
    except CheckreinError as error:
        # INVARIANT: what somebody wrote is not lost, and nothing empty stays in the list.
        with contextlib.suppress(CheckreinError):
            visit.desk.ask("chat.delete", id=made["id"] if made else "none")
        trouble = f"{error} Attach the files again." if files else str(error)
        return _beginning(visit, status_of(error), typed=text, wanted=model, trouble=trouble)
    return visit.back(f"/chat/{made['id']}")


def change(visit: Visit) -> Response:
    """Rename, pin, archive, colour, another model, other instructions."""
    form = visit.form
    wanted: Facts = {}
    for name in ("title", "color", "system"):
        if name in form.values:
            wanted[name] = form.text(name)
    for name in ("pinned", "archived"):
        if name in form.values:
            wanted[name] = form.text(name) == "1"
    if "model" in form.values:
        provider, _, model = form.text("model").partition("/")
        wanted |= {"provider": provider, "model": model}
    changed = visit.desk.ask("chat.update", id=visit.named["id"], **wanted)
    if visit.piece:
        return visit.page("_chat_done.html", text=changed["title"])
    return visit.back(_where(visit))


def delete(visit: Visit) -> Response:
    visit.desk.ask("chat.delete", id=visit.named["id"])
    return visit.back("/chat", "The conversation is deleted. The record of its calls stays.")


def export(visit: Visit) -> Response:
    """The whole conversation as a file."""
    form, kind = _FORMS.get(visit.named["form"], ("", ""))
    if not form:
        raise InputError("A conversation is exported as json or md.")
    told = visit.desk.ask("chat.export", id=visit.named["id"], form=form)
    name = "".join(
        each if each.isascii() and (each.isalnum() or each in "-_.") else "-" for each in told["name"]
    )
    return Response(
        told["text"].encode("utf-8", "replace"),
        media_type=kind,
        headers={"content-disposition": f'attachment; filename="{name[:120]}"'},
    )


def import_(visit: Visit) -> Response:
    """A conversation from a file; it comes as base64, or as text where no script runs."""
    text, form = visit.form.text("text"), visit.form.text("form", "json")
    if "file" in visit.form.values:
        try:
            text = base64.urlsafe_b64decode(visit.form.text("file")).decode()
        except (binascii.Error, UnicodeError, ValueError):
            raise InputError("The file cannot be read as text.") from None
    made = visit.desk.ask("chat.import", text=text, form=form)
    return visit.back(f"/chat/{made['id']}", f"“{made['title']}” is here.")


def _where(visit: Visit) -> str:
    """The conversation that is open, whichever was changed."""
    here = visit.form.text("here")
    return f"/chat/{here}" if here and "/" not in here else "/chat"


def _listed(visit: Visit) -> Facts:
    query, archived = visit.query.text("q"), visit.query.text("archived") == "1"
    if query:
        hits = visit.desk.ask("chat.search", query=query[:1_000], limit=HITS)
        return {"sessions": [], "hits": hits, "query": query, "archived": archived, "total": len(hits)}
    limit = min(max(visit.query.number("count") or LISTED, LISTED), 1_000)
    found = visit.desk.ask("chat.sessions", archived=archived, limit=limit)
    return {
        "sessions": [{**each, "title": chat_shown.plain(each["title"])} for each in found["sessions"]],
        "hits": None,
        "query": "",
        "archived": archived,
        "total": found["total"],
        "colors": COLORS,
        "open_id": visit.named.get("id") or visit.query.text("open"),
    }


def _opened(visit: Visit) -> Facts:
    """The session with a page of its messages: the newest, those before one, or those around one."""
    ask, own = visit.desk.ask, visit.named["id"]
    before, at = visit.query.text("before"), visit.query.text("at")
    limit = min(max(visit.query.number("count") or PAGE, PAGE), _MOST)
    found: Facts = ask("chat.session", id=own, before=before, limit=limit)
    if not at or _holds(found, at):
        return {**found, "before": before}
    if around := _around(visit, own, at, found):
        return around
    # It is on a branch that is not shown.
    ask("chat.choose", session=own, message=at)
    found = ask("chat.session", id=own, limit=PAGE)
    return {**found, "before": ""} if _holds(found, at) else _around(visit, own, at, found) or found


def _around(visit: Visit, own: str, at: str, found: Facts) -> Facts | None:
    newest = found
    for _ in range(_MOST_PAGES):
        if not found["earlier"] or not found["messages"]:
            return None
        before = found["messages"][0]["id"]
        found = visit.desk.ask("chat.session", id=own, before=before, limit=PAGE)
        if _holds(found, at):
            return {
                **newest,
                **{name: found[name] for name in ("messages", "earlier", "calls")},
                "before": before,
            }
    return None


def _holds(found: Facts, message: str) -> bool:
    return any(each["id"] == message for each in found["messages"])


def _conversation(visit: Visit, found: Facts) -> Facts:
    shown = chat_shown.messages(visit.desk, found)
    return {
        "opened": {**found["session"], "title": chat_shown.plain(found["session"]["title"])},
        "messages": shown,
        "count": len(found["messages"]),
        "unanswered": not found.get("run") and bool(shown) and shown[-1]["role"] == "user",
        "head": found["session"].get("head") or "",
        "earlier": found["messages"][0]["id"] if found.get("earlier") and found["messages"] else "",
        "before": found.get("before") or "",
        "run": found.get("run"),
        "summary": chat_shown.summary(found),
        "spans": SPANS,
        "last": found["last"],
    }


def _composing(visit: Visit, session: Facts | None) -> Facts:
    """What the composer offers. A provider that cannot be read must not close the page."""
    try:
        models = visit.desk.ask("chat.models")
    except CheckreinError:
        models = []
    chosen = "/".join(each for each in (session["provider"], session["model"]) if each) if session else ""
    chosen = chosen or next((each["ref"] for each in models if each.get("default")), "")
    picked = next((each for each in models if each["ref"] == chosen), None)
    offered = {"models": chat_shown.grouped(models), "chosen": chosen, "picked": picked, "limits": LIMITS}
    return {**offered, "typed": "", "wanted": "", "trouble": ""}


def _alerts(visit: Visit, tainted: str) -> Facts:
    """What is wrong, or not set up yet, said before anybody wonders."""
    tainted = chat_shown.plain(tainted)
    try:
        status = visit.desk.ask("chat.status")
        providers = [each for each in visit.desk.ask("chat.providers") if each["kind"] != "scripted"]
    except CheckreinError as error:
        return {"silent": str(error), "unset": False, "faults": [], "tainted": tainted}
    faults = [each for each in providers if each.get("fault")]
    silent = "" if status["ready"] else status["reason"]
    return {"silent": silent, "unset": not providers, "faults": faults, "tainted": tainted}
