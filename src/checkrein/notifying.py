"""Tells people who are elsewhere: follows the ledger and hands what they should hear of to their channels.

The pipeline does not know it exists. It reads, never writes, and decides nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from checkrein.approval.channels.bursts import Bursts
from checkrein.approval.channels.notify import Outlet, Say, channels_of, reaches, trouble_with
from checkrein.approval.channels.wording import Subject, gathered
from checkrein.approval.summaries import summary
from checkrein.ledger.entries import Entry, body_of_row, moment
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.settings import Notify
from checkrein.store import records
from checkrein.store.questions import ASKED, get_question, settled_with, waiting

POLL_SECONDS = 0.2
REMIND_SECONDS = 60.0
_KINDS = ("asked", "answered", "decided")
_LEAST_LIFE = 1.5 * REMIND_SECONDS


class Notifier:
    """One thread that reads the ledger, and one for each channel, started when there is something to say."""

    def __init__(
        self,
        pipeline: Pipeline,
        settings_of: Callable[[], Notify],
        say: Say,
        *,
        console: Callable[[], str] = str,
        monotonic: Callable[[], float] = time.monotonic,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """`settings_of`: the user's own settings of this moment. `console`: its address, where it runs."""
        self._pipeline, self._settings_of, self._say, self._console = pipeline, settings_of, say, console
        self._monotonic, self._poll_seconds = monotonic, poll_seconds
        self._outlets: dict[tuple[str, ...], list[Outlet]] = {}
        self._bursts = Bursts()
        self._expiring: dict[str, float] = {}
        self._seen: int | None = None
        self._writes: int | None = -1
        self._said = ""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin with what happens from now on; from now on, too, a person counts as reachable."""
        # Before the first call is judged: the hook that started the server may be the one that asks.
        if channels_of(self._settings_of()):
            self._begin()
        self._pipeline.broker.reach(self._reaches)
        self._thread = threading.Thread(target=self._run, name="checkrein-notify", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; a channel that hangs is left behind."""
        self._pipeline.broker.reach(None)
        self._over.set()
        for each in self._all():
            each.stop()
        if self._thread is not None:
            self._thread.join(2.0)

    def state(self) -> dict[str, Any]:
        """How it goes, for the doctor; nothing secret in it."""
        notify = self._settings_of()
        return {
            "reaches": reaches(notify),
            "trouble": trouble_with(notify),
            "channels": [each.state() for each in self._all()],
        }

    def _reaches(self) -> bool:
        # INVARIANT: whatever is wrong here, a verdict is not: then nobody counts as reachable.
        try:
            return reaches(self._settings_of())
        except Exception:  # noqa: BLE001
            return False

    def _all(self) -> list[Outlet]:
        return [each for outlets in list(self._outlets.values()) for each in outlets]

    def _run(self) -> None:
        while not self._over.wait(self._poll_seconds):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - said once; the next look may be a better one
                self._once(f"notifications: {type(error).__name__}: {error}")

    def _once(self, text: str) -> None:
        if text and text != self._said:
            self._say(text)
        self._said = text

    def look(self) -> None:
        """What happened since the last look, and what it is time for."""
        notify = self._settings_of()
        if not notify.urls and not notify.webhook_urls:
            self._seen = None
            self._expiring.clear()
            self._rearrange(notify)
            return
        if trouble := trouble_with(notify):
            self._once(f"notifications cannot be sent: {trouble}")
        if self._seen is None:
            self._begin()
        self._follow(notify)
        self._remind(notify)
        outlets = self._rearrange(notify)
        for burst in self._bursts.due(self._monotonic()):
            open_ones = [each for each in burst if each.event == "blocked" or self._is_open(each.id)]
            if open_ones:
                made = gathered(open_ones, self._console())
                for outlet in outlets:
                    outlet.put(made)

    def _begin(self) -> None:
        store = self._pipeline.store
        head = records.head(store)
        self._seen, self._writes = head[0] if head else 0, -1
        # Asked before we were here: told then, reminded of now.
        self._expiring = {
            each.entry: each.expires_at for each in waiting(store) if _lasts(each.asked_at, each.expires_at)
        }

    def _rearrange(self, notify: Notify) -> list[Outlet]:
        """The outlets for these settings; those of earlier ones end."""
        key = (*notify.urls, "", *notify.webhook_urls)
        if key not in self._outlets:
            for each in self._all():
                each.stop()
            self._outlets = {key: [Outlet(each, self._say) for each in channels_of(notify)]}
        return self._outlets[key]

    def _follow(self, notify: Notify) -> None:
        store = self._pipeline.store
        writes = store.writes_to("record")
        if writes is not None and writes == self._writes:
            return
        head = records.head(store)
        blocked = "blocked" in notify.events
        for row in records.after(store, self._seen or 0, _KINDS if blocked else _KINDS[:2]):
            self._seen = row[0]
            body = body_of_row(row)
            kind, entry, data = body["kind"], body["entry"], body["data"]
            if kind == "answered":
                self._expiring.pop(entry, None)
            elif kind == "asked":
                self._asked(notify, entry)
            elif data["verdict"] == "deny" and data["risk"] == "critical":
                self._tell("blocked", entry)
        self._seen = max(self._seen or 0, head[0] if head else 0)
        self._writes = writes

    def _asked(self, notify: Notify, entry: str) -> None:
        question = get_question(self._pipeline.store, entry)
        if question is None or question.state != ASKED:
            return
        # The same call asked again is the same question.
        if settled_with(self._pipeline.store, question)[:1] not in ([], [question]):
            return
        if _lasts(question.asked_at, question.expires_at):
            self._expiring[entry] = question.expires_at
        if "asked" in notify.events:
            self._tell("asked", entry, question.expires_at)

    def _remind(self, notify: Notify) -> None:
        now = self._pipeline.clock()
        for entry in [each for each, end in self._expiring.items() if end - now <= REMIND_SECONDS]:
            # INVARIANT: a reminder is sent once.
            end = self._expiring.pop(entry)
            if "expiring" in notify.events and end > now and self._is_open(entry):
                self._tell("expiring", entry, end)

    def _is_open(self, entry: str) -> bool:
        question = get_question(self._pipeline.store, entry)
        return question is not None and question.state == ASKED

    def _tell(self, event: str, entry: str, expires_at: float | None = None) -> None:
        found = get_entry(self._pipeline.store, entry)
        if found is not None:
            self._bursts.add(_subject(event, found, expires_at), self._monotonic())


def _lasts(asked_at: float, expires_at: float) -> bool:
    """A question that lasts hardly longer than its reminder needs none."""
    return expires_at - asked_at >= _LEAST_LIFE


def _subject(event: str, entry: Entry, expires_at: float | None) -> Subject:
    return Subject(
        event=event,
        id=entry.id,
        tool=entry.tool_name,
        input=entry.tool_input,
        risk=entry.risk_category,
        agent=entry.agent,
        session=entry.session_id,
        project=entry.project,
        summary=summary(entry.tool_name, entry.effects, entry.agent),
        reasons=entry.reasons,
        expires_at="" if expires_at is None else moment(expires_at),
    )
