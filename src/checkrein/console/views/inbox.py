"""The inbox: what waits for a person, and every way to answer it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from checkrein.call import split_name
from checkrein.console import questions, shown
from checkrein.console.forms import Fields
from checkrein.console.visits import Visit
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.ledger.query import get_entry
from checkrein.store.questions import get_question

PAGE = 20
SETTLED = 8
CHANNEL = "console"
# How long an answer can be remembered: what the form says, and what that means.
SPANS: dict[str, tuple[str, dict[str, Any]]] = {
    "session": ("this session", {"for": "session"}),
    "1h": ("1 hour", {"for": "until", "seconds": 3600}),
    "8h": ("8 hours", {"for": "until", "seconds": 8 * 3600}),
    "7d": ("7 days", {"for": "until", "seconds": 7 * 86_400}),
    "1": ("1 more use", {"for": "uses", "uses": 1}),
    "5": ("5 uses", {"for": "uses", "uses": 5}),
    "20": ("20 uses", {"for": "uses", "uses": 20}),
    "always": ("always", {"for": "always"}),
}
_WORDS = {"approved": "Approved", "denied": "Denied", "answered": "Answered for the tool"}


def show(visit: Visit) -> Response:
    """The whole inbox, a page at a time."""
    waiting = questions.open_questions(visit.desk)
    last = max(0, (len(waiting) - 1) // PAGE)
    at = min(max(0, (visit.query.number("page") or 1) - 1), last)
    return visit.page(
        "inbox.html",
        cards=[questions.card(visit.desk, each) for each in waiting[at * PAGE : (at + 1) * PAGE]],
        total=len(waiting),
        at=at + 1,
        pages=last + 1,
        settled=questions.lately_settled(visit.desk, SETTLED),
        spans=SPANS,
        limit=PAGE,
    )


def card(visit: Visit) -> Response:
    """One question as it is now: its card, or what became of it."""
    return _card(visit, visit.named["id"])


def reveal(visit: Visit) -> Response:
    """The call of a question as it will run, secrets shown. Nothing keeps this page."""
    found = visit.desk.ask("question.call", id=visit.named["id"])
    _, tool = split_name(found["tool"])
    name = "_revealed.html" if visit.piece else "revealed.html"
    return visit.page(name, id=found["id"], tool=found["tool"], blocks=shown.blocks(tool, found["input"]))


def more(visit: Visit) -> Response:
    """Cards a page does not have yet, as many as it has room for; and how many wait in all."""
    known = set(visit.query.text("known").split(","))
    room = min(PAGE, max(0, visit.query.number("room") or 0))
    waiting = questions.open_questions(visit.desk)
    fresh = [each for each in waiting if each.question.entry not in known][:room]
    cards = [questions.card(visit.desk, each) for each in fresh]
    response = visit.page("_cards.html", cards=cards, spans=SPANS)
    response.headers["x-waiting"] = str(len(waiting))
    return response


def answer(visit: Visit) -> Response:
    """What a person said to one question."""
    came = visit.desk.ask("question.answer", **_answer(visit, visit.named["id"], visit.form))
    if visit.piece:
        return _card(visit, came["id"])
    return visit.back("/", *_told(came))


def answer_several(visit: Visit) -> Response:
    """The same answer to every chosen question; each is judged for itself."""
    chosen = list(dict.fromkeys(visit.form.all("pick")))[:200]
    if not chosen:
        return visit.back("/", "Choose the questions first.", "bad")
    word, message = visit.form.text("answer"), visit.form.text("message")
    if word not in ("approved", "denied"):
        raise InputError(f"{word[:40]!r} is no answer.", remedy="Say approved or denied.")
    said = {"answer": word, "channel": CHANNEL} | ({"message": message} if message else {})
    results = _answered_all(visit, [{"id": each, **said} for each in chosen])
    done = [each for each in results if each.get("answer") == word]
    visit.session.tell("good", f"{_WORDS[word]}: {len(done)} of {len(results)}.")
    for each in results:
        if each.get("error"):
            visit.session.tell("bad", f"{each['id']}: {_error(each['error'])}")
        elif each.get("answer") != word:
            visit.session.tell(*reversed(_told(each)))
    return visit.back("/")


def _answered_all(visit: Visit, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = visit.desk.offered("question.answer_all", answers=answers)
    if found is not None:
        return list(found)
    results: list[dict[str, Any]] = []
    for each in answers:
        try:
            results.append(visit.desk.ask("question.answer", **each))
        except CheckreinError as error:
            results.append({"id": each["id"], "error": str(error)})
    return results


def _error(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)


def _answer(visit: Visit, entry: str, form: Fields) -> dict[str, Any]:
    """The form as the authority wants to hear it."""
    word = form.text("answer")
    said: dict[str, Any] = {"id": entry, "answer": word, "channel": CHANNEL}
    if form.text("message"):
        said["message"] = form.text("message")
    if word == "edited":
        said |= {"answer": "approved", "edited": _edited(visit, entry, form)}
    if word == "answered":
        said["result"] = form.text("result")
    if said["answer"] == "approved" and form.text("remember"):
        said["remember"] = remembered(form, visit.desk.now())
    return said


def _edited(visit: Visit, entry: str, form: Fields) -> dict[str, Any]:
    """The arguments a person wrote; secrets they were not shown are put back."""
    written = form.json("edited")
    if not isinstance(written, dict):
        raise InputError("The edited arguments must be a JSON object.")
    call = visit.desk.pipeline.broker.call(entry)
    found = get_entry(visit.desk.store, entry)
    if call is None or found is None:
        return written
    restored: dict[str, Any] = shown.restored(written, found.tool_input, call.arguments)
    return restored


def remembered(form: Fields, now: float) -> dict[str, Any]:
    """How far a yes reaches, as the authority wants to hear it."""
    what, span = form.text("remember"), SPANS.get(form.text("for", "session"))
    if what not in ("exact", "family", "tool") or span is None:
        raise InputError("What to remember cannot be read.", remedy="Choose one of those offered.")
    meant = dict(span[1])
    if "seconds" in meant:
        meant["until"] = now + meant.pop("seconds")
    return {"what": what, **meant}


def _card(visit: Visit, entry: str) -> Response:
    became = questions.settled(visit.desk, entry)
    if became is not None:
        return visit.page("_settled.html", each=became)
    question = get_question(visit.desk.store, entry)
    if question is None:
        raise NotFoundError(f"There is no question {entry[:40]!r}.")
    found = [questions.card(visit.desk, questions.Open(question))]
    return visit.page("_cards.html", cards=found, spans=SPANS)


def _told(came: dict[str, Any]) -> tuple[str, str]:
    """What a person is told of their answer, and whether that is good news."""
    word, message = came.get("answer", ""), came.get("message", "")
    if word == "denied" and message.startswith("The policy of this moment"):
        return message, "bad"
    text = f"{_WORDS.get(word, word)}."
    if word == "approved" and not came.get("awaited", True):
        text += " Nobody waits for it any more; it counts when the same call comes again."
    return text, "good"
