"""What is said in a conversation, the answers to what its model wants to do, and what its model is sent."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein.console.forms import Fields
from checkrein.console.views import inbox
from checkrein.console.views.chat_attached import attachments
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError

Facts = dict[str, Any]
MOST_ANSWERS = 50


def send(visit: Visit) -> Response:
    """Say something; the answer comes by itself."""
    text, files = visit.form.text("text"), attachments(visit.form)
    if not text and not files:
        raise InputError("Write something first.")
    visit.desk.ask("chat.send", session=visit.named["id"], text=text, attachments=files)
    return _done(visit, "Sent.")


def edit(visit: Visit) -> Response:
    """Say something else in place of an earlier message; what was said stays beside it."""
    text = visit.form.text("text")
    if not text:
        raise InputError("Write something first.")
    visit.desk.ask("chat.edit", session=visit.named["id"], message=visit.form.text("message"), text=text)
    return _done(visit, "Sent.")


def regenerate(visit: Visit) -> Response:
    """Another answer beside the one there is."""
    visit.desk.ask("chat.regenerate", session=visit.named["id"], message=visit.form.text("message"))
    return _done(visit, "Asked again.")


def choose(visit: Visit) -> Response:
    """Show another branch."""
    visit.desk.ask("chat.choose", session=visit.named["id"], message=visit.form.text("message"))
    return _done(visit, "")


def stop(visit: Visit) -> Response:
    came = visit.desk.ask("chat.abort", run=visit.form.text("run"))
    return _done(visit, "Stopped." if came.get("aborted") else "It was over already.")


def answer(visit: Visit) -> Response:
    """What a person said to one call that waits."""
    form = visit.form
    run, call, word = form.text("run"), form.text("call"), form.text("answer")
    if word in ("approved", "edited"):
        visit.desk.ask("chat.approve", run=run, call=call, **_yes(visit, form, word))
    elif word == "denied":
        visit.desk.ask("chat.decline", run=run, call=call, reason=form.text("message"))
    else:
        raise InputError(f"{word[:40]!r} is no answer.", remedy="Say approved, edited or denied.")
    return _done(visit, "Refused." if word == "denied" else "Allowed.")


def answer_several(visit: Visit) -> Response:
    """The same answer to every call that waits; each is judged for itself."""
    word, chosen = visit.form.text("answer"), visit.form.all("pick")[:MOST_ANSWERS]
    if word not in ("approved", "denied"):
        raise InputError(f"{word[:40]!r} is no answer.", remedy="Say approved or denied.")
    wrong = []
    for each in chosen:
        run, _, call = each.partition("/")
        try:
            visit.desk.ask("chat.approve" if word == "approved" else "chat.decline", run=run, call=call)
        except CheckreinError as error:
            wrong.append(str(error))
    if wrong:
        raise InputError(f"{len(wrong)} of {len(chosen)} were not answered: {wrong[0]}")
    return _done(visit, "Refused." if word == "denied" else "Allowed.")


def _yes(visit: Visit, form: Fields, word: str) -> Facts:
    said: Facts = {}
    if word == "edited":
        said["edited"] = form.json("edited")
        if not isinstance(said["edited"], dict):
            raise InputError("The edited arguments must be a JSON object.")
    if form.text("remember"):
        said["remember"] = inbox.remembered(form, visit.desk.now())
    return said


def gauge(visit: Visit) -> Response:
    """How full the model's context is, with what is being written."""
    found = visit.desk.ask("chat.tokens", session=visit.named["id"], input=visit.form.text("text"))
    return visit.page("_chat_gauge.html", gauge=found)


def preview(visit: Visit) -> Response:
    """What compressing would do, before anybody does it."""
    retention = visit.query.number("retention")
    given = {} if retention is None else {"retention": retention}
    found = visit.desk.ask("chat.preview", session=visit.named["id"], **given)
    return visit.page("_chat_compress.html", plan=found, retention=retention, id=visit.named["id"])


def compress(visit: Visit) -> Response:
    """Put a summary in the place of older messages, and say what came of it."""
    retention = visit.form.number("retention")
    given = {} if retention is None else {"retention": retention}
    came = visit.desk.ask("chat.compress", session=visit.named["id"], **given)
    if not came["compressed"]:
        told = f"Nothing was compressed: {came['reason']}"
        if visit.piece:
            raise InputError(told)
        return visit.back(_here(visit), told, "bad" if came["failed"] else "good")
    return _done(visit, f"Compressed: {came['original_tokens']:,} tokens became {came['new_tokens']:,}.")


def tools(visit: Visit) -> Response:
    """Tools by server: which the model is offered here, and what the rules say to each."""
    found = visit.desk.ask("chat.tools", session=visit.named["id"])
    return visit.page("_chat_tools.html", servers=found, id=visit.named["id"])


def set_tools(visit: Visit) -> Response:
    """The form says what is on; everything else it knew of is off.

    INVARIANT: what is off stays off until it is turned on, also where its server was not there to be shown.
    """
    known, on = visit.form.all("known"), set(visit.form.all("on"))
    before = visit.desk.ask("chat.session", id=visit.named["id"], limit=1)["session"]["tools_off"]
    unseen = [each for each in before if each not in known]
    off = [*(each for each in dict.fromkeys(known) if each not in on), *unseen]
    visit.desk.ask("chat.update", id=visit.named["id"], tools_off=off)
    return _done(visit, "The model is offered what you chose.")


def attach(visit: Visit) -> Response:
    """What servers offer to attach."""
    found: Facts = {}
    for name in ("resources", "templates", "prompts"):
        try:
            found[name] = visit.desk.ask(f"chat.{name}")
        except CheckreinError as error:
            found[name], found["trouble"] = [], str(error)
    prompts = [{**each, "arguments": _asked_for(each.get("arguments"))} for each in found["prompts"]]
    return visit.page("_chat_attach.html", **{**found, "prompts": prompts})


def _asked_for(arguments: Any) -> list[Facts]:
    """What a prompt wants to be told, as far as its server says so in the form it should have."""
    rows = arguments if isinstance(arguments, list) else []
    return [each for each in rows if isinstance(each, dict) and isinstance(each.get("name"), str)]


def _here(visit: Visit) -> str:
    return f"/chat/{visit.named['id']}"


def _done(visit: Visit, told: str) -> Response:
    if visit.piece:
        return visit.page("_chat_done.html", text=told)
    return visit.back(_here(visit))
