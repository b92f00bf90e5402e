"""What happens in a conversation, as an open page is told it: pieces of page, made here and put in there.

Every piece says where it belongs and can come twice. Text that is being written comes block by block, the
first of it at once, then at most as often as an eye follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

from checkrein.console import markdown
from checkrein.console.markdown import Growing
from checkrein.console.views import chat_shown
from checkrein.console.views.inbox import SPANS
from checkrein.console.visits import Visit

Facts = dict[str, Any]
Told = tuple[str, Facts]
PAUSE_SECONDS = 0.06
# A long block is sent whole each time, so it is sent less often.
_CHARACTERS_A_SECOND = 400_000
# So is what takes long to make: most of the time is left for others.
_TIMES = 4.0
_CARDS = ("tool_call", "approval_required", "tool_running", "tool_result")
_STEPS = ("end", "aborted", "usage", "compressed")


class _Written:
    """One part of a message that is being written."""

    def __init__(self, text: str, kind: str) -> None:
        self.kind, self.length, self.due, self.changed = kind, 0, 0.0, False
        self.growing = Growing()
        self.add(text)
        self.growing.step()
        self.changed = False

    def add(self, text: str) -> None:
        self.growing.add(text)
        self.length += len(text)
        self.changed = self.changed or bool(text)


class Teller:
    """Knows what one open page was told of messages that are being written. Not for two threads at once.

    `clock` measures how long a block takes to make.
    """

    def __init__(self, visit: Visit, found: Facts, clock: Callable[[], float] = monotonic) -> None:
        self._visit, self._clock = visit, clock
        self._session = found["session"]
        self._written: dict[tuple[str, int], _Written] = {}
        self._open: set[str] = set()
        self._calls: Facts = dict(found.get("calls") or {})
        for message in found["messages"]:
            if message.get("state") == "streaming":
                self._open.add(message["id"])
                for at, part in enumerate(message["parts"]):
                    if part["kind"] in ("text", "reasoning"):
                        self._written[message["id"], at] = _Written(part["text"], part["kind"])

    def told(self, events: Iterable[Any], now: float) -> list[Told]:
        """What the page is told of these events."""
        found: list[Told] = []
        for each in events:
            if each.kind in ("text", "reasoning"):
                found += self._heard(each)
                continue
            # In the order it happened: what was written comes before what was done about it.
            found += self._step(now, all_of_it=True)
            found += self._other(each.kind, {"run": each.run, **each.data})
        return [*found, *self._step(now)]

    def later(self, now: float) -> list[Told]:
        """What has waited long enough."""
        return self._step(now)

    @property
    def due(self) -> float | None:
        """When something that waits is to be told."""
        return min((each.due for each in self._written.values() if each.changed), default=None)

    def _heard(self, event: Any) -> list[Told]:
        message, part, text = event.data["message"], event.data["part"], event.data["delta"]
        found = self._opened(message, event.run)
        written = self._written.get((message, part))
        if written is None:
            written = self._written[message, part] = _Written("", event.kind)
        at = event.data.get("at", written.length)
        if at > written.length:
            # Some of it was not heard here: the page looks anew.
            return [("fresh", {})]
        written.add(text[written.length - at :])
        return found

    def _opened(self, message: str, run: str) -> list[Told]:
        """A place for a message that begins."""
        if message in self._open:
            return []
        self._open.add(message)
        blank = {"id": message, "role": "assistant", "state": "streaming", "parts": [], "run": run}
        return [("begun", {"message": message, "html": self._message(blank)})]

    def _step(self, now: float, *, all_of_it: bool = False) -> list[Told]:
        found: list[Told] = []
        for (message, part), each in self._written.items():
            if not each.changed or (now < each.due and not all_of_it):
                continue
            begun = self._clock()
            first, blocks = each.growing.step()
            took = self._clock() - begun
            each.changed = False
            each.due = now + max(PAUSE_SECONDS, each.growing.size / _CHARACTERS_A_SECOND, _TIMES * took)
            told = {"message": message, "part": part, "kind": each.kind, "first": first}
            found.append(("blocks", {**told, "html": "".join(blocks)}))
        return found

    def _other(self, kind: str, data: Facts) -> list[Told]:
        if kind == "started":
            about = {name: data.get(name) or "" for name in ("run", "user_message", "persona", "routed")}
            message = data.get("message")
            return [("started", about), *(self._opened(message, data["run"]) if message else ())]
        if kind in _CARDS:
            call = data["call"]
            found = self._opened(call["message"], call["run"]) if call["status"] == "pending" else []
            return [*found, ("card", self._card(call, kind))]
        if kind == "message":
            return [("saved", self._saved(data["message"]))]
        if kind == "session":
            self._session = data["session"]
            about = {
                "head": self._session.get("head") or "",
                "tainted": markdown.readable(self._session.get("tainted_by") or ""),
            }
            return [("session", {**about, "title": self._title()})]
        if kind == "error":
            text = markdown.readable(data["text"])
            return [("trouble", {"run": data["run"], "text": text, "retry": bool(data.get("retry"))})]
        if kind == "notice":
            # A tool says how far it is: no template stands between its words and the page.
            about = {name: data.get(name) or "" for name in ("run", "level")}
            return [("notice", {**about, "text": markdown.readable(data.get("text") or "")})]
        return [(kind, {"run": data["run"]})] if kind in _STEPS else []

    def _saved(self, message: Facts) -> Facts:
        """A message as it is kept: it takes the place of what was written of it."""
        self._open.add(message["id"])
        for key in [key for key in self._written if key[0] == message["id"]]:
            del self._written[key]
        html = self._message(message) if chat_shown.is_shown(message) else ""
        about = {name: message.get(name) or "" for name in ("id", "parent", "role", "state", "run")}
        return {**about, "html": html}

    def _title(self) -> str:
        return markdown.readable(self._session["title"])

    def _message(self, message: Facts) -> str:
        shown = chat_shown.message(self._visit.desk, message, self._calls)
        return self._piece("_chat_message.html", message=shown, opened=self._session)

    def _card(self, call: Facts, kind: str) -> Facts:
        shown = chat_shown.card(self._visit.desk, call)
        self._calls[shown["key"]] = call
        html = self._piece("_chat_card.html", card=shown, opened=self._session)
        about = {name: shown[name] for name in ("key", "message", "state", "word")}
        about["tool"] = markdown.readable(shown["tool"])
        return {**about, "asks": kind == "approval_required", "html": html}

    def _piece(self, name: str, **values: Any) -> str:
        return bytes(self._visit.page(name, **values, spans=SPANS).body).decode()
