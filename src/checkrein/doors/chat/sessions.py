"""The conversations a person keeps: sessions, the tree of their messages, snapshots, search.

The agent, the verbs and the transfer call it, from any thread; every write is one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from checkrein.doors.chat import Message, Part, Session, Snapshot, compression, words
from checkrein.doors.chat.changes import changed
from checkrein.doors.chat.messages import Messages, session_in
from checkrein.doors.chat.rows import clean, columns, session_of, snapshot_of
from checkrein.ledger.record import new_id
from checkrein.store import Transaction, conversation_runs, conversation_search, conversations
from checkrein.store.conversation_search import TITLES
from checkrein.store.conversations import COMING, GOING, HERE, SESSION, SNAPSHOT

UNTITLED = "New chat"
SLICE = 500


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """Something a search found; without a `message` it is the title. True marks what matched."""

    session: str
    title: str
    message: str = ""
    role: str = ""
    at: float = 0.0
    snippet: tuple[tuple[bool, str], ...] = ()


class Sessions(Messages):
    """All conversations. Blocking: who has a loop calls it from a thread."""

    def create(
        self,
        title: str = "",
        *,
        provider: str = "",
        model: str = "",
        project: str = "",
        system: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        now = self.clock()
        chosen = {"title": title or UNTITLED, "provider": provider, "model": model, "project": project}
        values = changed({**chosen, "system": system, "metadata": dict(metadata or {})}, now)
        made = Session(id=new_id(now), created_at=now, updated_at=now, **values)
        return self.store.write(lambda tx: insert_session(tx, made))

    def get(self, id: str) -> Session:  # noqa: A002 - the word of the value
        return session_in(self.store, id)

    def count(self, archived: bool = False) -> int:
        return conversations.count_sessions(self.store, archived=archived)

    def update(self, id: str, **changes: Any) -> Session:  # noqa: A002 - the word of the value
        now = self.clock()
        values = columns(changed(changes, now), SESSION)
        # Where it stands in the list is when something was last said or set, not when it was tidied up.
        if set(changes) - {"pinned", "archived", "color"}:
            values["updated_at"] = now

        def work(tx: Transaction) -> Session:
            before = session_in(tx, id)
            if before.archived_at is not None and values.get("archived_at") is not None:
                values["archived_at"] = before.archived_at
            if before.pinned_at is not None and values.get("pinned_at") is not None:
                values["pinned_at"] = before.pinned_at
            if values:
                conversations.change(tx, "chat_session", values, "id = ?", (id,))
            if "title" in values:
                _index_title(tx, id, values["title"])
            return session_in(tx, id)

        return self.store.write(work)

    def delete(self, id: str) -> None:  # noqa: A002 - the word of the value
        """Everything of a session; what its calls did stays on the record."""

        def hide(tx: Transaction) -> None:
            session_in(tx, id)
            conversations.change(tx, "chat_session", {"presence": GOING}, "id = ?", (id,))
            conversation_runs.end_all(tx, id)

        self.store.write(hide)
        self.remove(id)

    def sweep(self) -> int:
        """Ends what an import or a deletion left half done when its server died; how many there were."""
        left = conversations.sessions_in(self.store, COMING, GOING)
        for id in left:  # noqa: A001
            self.remove(id)
        return len(left)

    def search(self, query: str, *, limit: int = 50, archived: bool = True) -> list[Hit]:
        """Titles, then messages, the newest first, that hold all the words of the query."""
        wanted, limit = words.asked(clean(query)), max(0, min(limit, 500))
        if not wanted or not limit:
            return []
        # Titles leave room for messages, however many of them are called the same.
        most = max(1, limit // 2)
        titles = conversation_search.find_titles(self.store, wanted, limit=most, archived=archived)
        hits = [
            Hit(session=id, title=title, at=at, snippet=words.snippet(title, query))
            for id, title, at in titles  # noqa: A001
        ]
        if len(hits) < limit:
            room = limit - len(hits)
            rows = conversation_search.find_messages(self.store, wanted, limit=room, archived=archived)
            hits += [_hit(row, query) for row in rows]
        return hits

    def snapshots(self, session: str) -> list[Snapshot]:
        """In the order they were made."""
        return [snapshot_of(row) for row in conversations.snapshots_of(self.store, session)]

    def add_snapshot(self, session: str, snapshot: Snapshot) -> None:
        values = {**columns(snapshot, SNAPSHOT), "session": session}

        def work(tx: Transaction) -> None:
            session_in(tx, session)
            conversations.insert(tx, "chat_snapshot", values)

        self.store.write(work)

    def build_context(self, session: str) -> tuple[Message, ...]:
        """What the model is sent of it: the summary in force, then what followed."""
        said = self.path(session)
        return compression.build_context(said, compression.latest(said, self.snapshots(session)))

    def list(self, *, archived: bool = False, limit: int = 100, offset: int = 0) -> list[Session]:
        """Pinned ones first, then the last changed."""
        limit, offset = max(0, limit), max(0, offset)
        rows = conversations.list_sessions(self.store, archived=archived, limit=limit, offset=offset)
        return [session_of(row) for row in rows]

    def remove(self, id: str) -> None:  # noqa: A002 - the word of the value
        """Takes a session away that nobody sees any more."""
        # In slices: whoever else writes has a turn between them.
        while not self.store.write(lambda tx: conversations.remove_some(tx, id, SLICE)):
            pass


def insert_session(tx: Transaction, session: Session, presence: str = HERE) -> Session:
    conversations.insert(tx, "chat_session", {**columns(session, SESSION), "presence": presence})
    _index_title(tx, session.id, session.title)
    return session


def _index_title(tx: Transaction, session: str, title: str) -> None:
    number = conversations.number_of(tx, "chat_session", session)
    conversation_search.index(tx, TITLES, number or 0, words.spelled(title))


def _hit(row: Sequence[Any], query: str) -> Hit:
    session, title, message, role, at, parts = row
    text = words.text_of(msgspec.json.decode(parts, type=tuple[Part, ...]))
    piece = words.snippet(text, query)
    return Hit(session=session, title=title, message=message, role=role, at=at, snippet=piece)
