"""Conversations as they are kept: listed, opened, changed, found, followed, taken along."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.doors.chat import (
    Message,
    transfer,
)
from checkrein.doors.chat.engine import Engine, Facts
from checkrein.doors.chat.events import Line
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.providers import Picked
from checkrein.doors.chat.shown import call_view, message_view, run_view, session_view, snapshot_view
from checkrein.doors.chat.whole import whole
from checkrein.errors import CheckreinError, NotFoundError

LONGEST_WAIT = 25.0


class Keeping(Engine):
    """What is there, for whoever looks."""

    def status(self) -> Facts:
        """Whether a model can answer, and which."""
        try:
            picked, missing = self._providers.pick(), self._providers.missing
            if not missing:
                # Who asks is about to talk: what is heavy loads while they think of what to say.
                self._do(self._providers.begin_loading())
            named = {"provider": picked.provider, "model": picked.model}
            return {"ready": not missing, **named, "reason": missing}
        except CheckreinError as error:
            return {"ready": False, "provider": "", "model": "", "reason": str(error)}

    def start(self, *, session: str = "", resource: str = "") -> Facts:
        """A session to talk in: the one named, or a new one."""
        found = self._sessions.get(session) if session else self._sessions.create()
        history = [message_view(each) for each in self._sessions.path(found.id)]
        return {"session": found.id, "thread": found.head, "resource": resource, "history": history}

    def sessions(self, *, archived: bool = False, limit: int = 100, offset: int = 0) -> Facts:
        found = self._sessions.list(archived=archived, limit=limit, offset=offset)
        return {"sessions": [session_view(each) for each in found], "total": self._sessions.count(archived)}

    def create(self, *, title: str = "", model: str = "", project: str = "", system: str = "") -> Facts:
        picked = self._providers.pick(model) if model else Picked("", "")
        made = self._sessions.create(
            title, provider=picked.provider, model=picked.model, project=project, system=system
        )
        return session_view(made)

    def session(self, *, id: str, before: str = "", limit: int = 100) -> Facts:  # noqa: A002 - the request's word
        """A session with its newest messages. What happens meanwhile is told after the event `last`."""
        last = self._lines.last(id)
        session = self._sessions.get(id)
        path = self._sessions.path(id)
        live = self._runs.of_session(id)
        if live is not None and (writing := live.message) is not None:
            path = [each for each in path if each.id != writing.id] + [writing]
        if before:
            at = next((number for number, each in enumerate(path) if each.id == before), None)
            if at is None:
                raise NotFoundError("There is no such message in this conversation.")
            path = path[:at]
        shown = path[-limit:]
        return {
            "session": session_view(session),
            "messages": [message_view(each) for each in shown],
            "earlier": len(path) > len(shown),
            "siblings": {key: list(ids) for key, ids in self._sessions.siblings(id).items()},
            "run": self._run_of(live),
            "calls": self._calls(shown),
            "snapshot": self._snapshot(id),
            "last": last,
        }

    def _run_of(self, live: Live | None) -> Facts | None:
        """The run that is under way; whether it waits for a person is in the store."""
        return None if live is None else run_view(self._sessions.get_run(live.run.id) or live.run)

    def _calls(self, messages: list[Message]) -> Facts:
        runs = dict.fromkeys(each.run for each in messages if each.run)
        return {
            f"{call.run}/{call.call_id}": call_view(call, self._pipeline)
            for run in runs
            for call in self._sessions.calls_of(run)
        }

    def _snapshot(self, session: str) -> Facts | None:
        _, snapshot = self._compressing.standing(session)
        return None if snapshot is None else snapshot_view(snapshot)

    def update(self, *, id: str, **changes: Any) -> Facts:  # noqa: A002 - the request's word
        if "model" in changes or "provider" in changes:
            changes |= self._picked(id, changes.pop("provider", None), changes.pop("model", None))
        if "tools_off" in changes:
            changes["tools_off"] = tuple(changes["tools_off"])
        session = self._sessions.update(id, **changes)
        self._lines.tell(id, "session", session=session_view(session))
        return session_view(session)

    def _picked(self, id: str, provider: str | None, model: str | None) -> Facts:  # noqa: A002 - as above
        """A model a person chose for a session; nothing gives the choice back."""
        if not model:
            return {"provider": "", "model": ""}
        if provider is None:
            provider = "" if "/" in model else self._sessions.get(id).provider
        picked = self._providers.pick(f"{provider}/{model}" if provider else model)
        return {"provider": picked.provider, "model": picked.model}

    def delete(self, *, id: str) -> Facts:  # noqa: A002 - as above
        """A run in it is stopped first."""
        self._do(self._deleted(id))
        self._lines.tell(id, "reload")
        return {}

    async def _deleted(self, id: str) -> None:  # noqa: A002 - as above
        # INVARIANT: no run begins in a session that is on its way out: nobody could answer its questions.
        await self._runs.end(id)
        try:
            await whole(asyncio.to_thread(self._sessions.delete, id))
        finally:
            self._runs.release(id)

    def search(self, *, query: str, limit: int = 50) -> list[Facts]:
        from checkrein.ledger.entries import moment

        found = [msgspec.structs.asdict(each) for each in self._sessions.search(query, limit=limit)]
        return [{**each, "at": moment(each["at"]) if each["at"] else ""} for each in found]

    # -- following --------------------------------------------------------------------------------------

    def subscribe(self, session: str, after: str, tell: Callable[[], None]) -> Line:
        return self._lines.subscribe(session, after, tell)

    def events(self, *, session: str, after: str = "", wait: float = 0.0) -> Facts:
        """What happened after an event, waiting a while for something to happen."""
        self._sessions.get(session)
        news = threading.Event()
        line = self._lines.subscribe(session, after, news.set)
        try:
            news.clear()
            found = line.take()
            if not found and wait > 0 and news.wait(min(wait, LONGEST_WAIT)):
                found = line.take()
        finally:
            line.close()
        last = found[-1].id if found else after or line.last
        return {"events": [msgspec.structs.asdict(each) for each in found], "last": last}

    # -- out and in -------------------------------------------------------------------------------------

    def export(self, *, id: str, form: str = "json") -> Facts:  # noqa: A002 - as above
        session = self._sessions.get(id)
        write = transfer.export_json if form == "json" else transfer.export_markdown
        ending = "json" if form == "json" else "md"
        return {"text": write(self._sessions, id), "name": f"{_file_name(session.title)}.{ending}"}

    def import_(self, *, text: str, form: str = "json") -> Facts:
        read = transfer.import_json if form == "json" else transfer.import_markdown
        return session_view(read(self._sessions, text))


def _file_name(title: str) -> str:
    plain = "".join(each if each.isalnum() or each in " -_" else "-" for each in title)
    return "-".join(plain.split())[:60].strip("-") or "chat"
