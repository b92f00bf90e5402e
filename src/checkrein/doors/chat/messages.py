"""The messages of conversations: a tree, with branches where something was edited or answered anew.

A part of `Sessions`. What was said is kept whole; the words of it are found once it is not streamed any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import msgspec

from checkrein.doors.chat import Message, MessageState, Part, Role, Session, words
from checkrein.doors.chat.journal import Journal
from checkrein.doors.chat.rows import columns, messages_of, session_of
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.record import new_id
from checkrein.store import Reader, Row, Transaction, conversation_search, conversations
from checkrein.store.conversation_search import WORDS
from checkrein.store.conversations import MESSAGE

_ROLES, _STATES = get_args(Role), get_args(MessageState)
_PARENT, _DELETED = MESSAGE.index("parent"), MESSAGE.index("deleted")


class Messages(Journal):
    """What was said in each conversation. Blocking; every write is one transaction."""

    def add_message(
        self,
        session: str,
        role: Role,
        parts: Iterable[Part],
        *,
        parent: str | None = None,
        id: str | None = None,  # noqa: A002 - the word of the value
        state: MessageState = "completed",
        provider: str = "",
        model: str = "",
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        error: str = "",
        run: str = "",
        raw: str = "",
        move_head: bool = True,
    ) -> Message:
        """One more message after `parent`: the head when it is None, nothing when it is empty."""
        now = self.clock()
        message = Message(
            id or new_id(now),
            role,
            checked_parts(role, state, parts),
            parent=parent or "",
            state=state,
            created_at=now,
            provider=provider,
            model=model,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            error=error,
            run=run,
            raw=raw,
        )
        values = columns(message, MESSAGE)
        spelled = "" if state == "streaming" else words.spelled(words.text_of(message.parts))

        def work(tx: Transaction) -> Message:
            before = session_in(tx, session)
            values["parent"] = before.head if parent is None else _parent(tx, session, parent)
            values["sequence"] = conversations.last_sequence(tx, session) + 1
            insert_message(tx, session, values, spelled)
            moved = {"head": message.id} if move_head else {}
            counts = {"message_count": before.message_count + 1, "updated_at": now}
            latest = max(now, before.last_message_at or now)
            more = {**counts, **moved, "last_message_at": latest}
            conversations.change(tx, "chat_session", more, "id = ?", (session,))
            return _message(tx, message.id)

        return self.store.write(work)

    def rewrite(
        self,
        message_id: str,
        parts: Iterable[Part],
        *,
        state: MessageState | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        error: str | None = None,
        raw: str | None = None,
    ) -> Message:
        """The message as it is by now; its words are found once it does not stream any more."""
        now = self.clock()
        given: dict[str, Any] = {"state": state, "input_tokens": input_tokens, "output_tokens": output_tokens}
        given |= {"error": error, "raw": raw}
        said = tuple(parts)
        values = columns({"parts": said, **{k: v for k, v in given.items() if v is not None}}, MESSAGE)
        spelled = "" if state == "streaming" else words.spelled(words.text_of(said))

        def work(tx: Transaction) -> Message:
            session, number, row = _found(tx, message_id)
            before = messages_of([row])[0]
            checked_parts(before.role, state or before.state, said)
            conversations.change(tx, "chat_message", values, "number = ?", (number,))
            if (state or before.state) != "streaming":
                conversation_search.index(tx, WORDS, number, "" if before.deleted else spelled)
                conversations.change(tx, "chat_session", {"updated_at": now}, "id = ?", (session,))
            elif before.state != "streaming":
                conversation_search.index(tx, WORDS, number, "")
            return _message(tx, message_id)

        return self.store.write(work)

    def message(self, id: str) -> Message:  # noqa: A002 - the word of the value
        return _message(self.store, id)

    def path(self, session: str, until: str | None = None) -> list[Message]:
        """From the first message to the head, or to `until`, without deleted ones; calls as they stand."""
        head = session_in(self.store, session).head
        rows = {row[0]: row for row in conversations.messages_of(self.store, session)}
        at = head if until is None else until
        if at and at not in rows:
            raise NotFoundError(f"There is no message `{at}` in this conversation.")
        found = []
        while at:
            found.append(rows[at])
            at = rows[at][_PARENT]
        found.reverse()
        said = messages_of([row for row in found if not row[_DELETED]])
        return standing(said, conversations.statuses_of(self.store, session=session))

    def siblings(self, session: str) -> dict[str, tuple[str, ...]]:
        """For every message that has branches beside it: all of them with itself, in order."""
        session_in(self.store, session)
        beside: dict[str, list[str]] = {}
        for id, parent, deleted in conversations.tree_of(self.store, session):  # noqa: A001
            if not deleted:
                beside.setdefault(parent, []).append(id)
        return {id: tuple(each) for each in beside.values() if len(each) > 1 for id in each}  # noqa: A001

    def choose(self, session: str, message: str) -> Session:
        """Shows the branch this message is on, down to what was said last there."""
        below, newest = {message}, ""
        for id, parent, deleted in conversations.tree_of(self.store, session):  # noqa: A001
            if id == message or parent in below:
                below.add(id)
                newest = newest if deleted else id
        if not newest:
            raise NotFoundError(f"There is no message `{message}` in this conversation.")

        def work(tx: Transaction) -> Session:
            session_in(tx, session)
            conversations.change(tx, "chat_session", {"head": newest}, "id = ?", (session,))
            return session_in(tx, session)

        return self.store.write(work)

    def rewind(self, session: str, message: str) -> Session:
        """Goes back to a message: what is said next follows it, and stands beside what followed it before."""

        def work(tx: Transaction) -> Session:
            owner, _, _ = _found(tx, message)
            if owner != session:
                raise NotFoundError(f"There is no message `{message}` in this conversation.")
            conversations.change(tx, "chat_session", {"head": message}, "id = ?", (session,))
            return session_in(tx, session)

        return self.store.write(work)

    def delete_message(self, session: str, message: str) -> None:
        """Takes it out of the conversation; what followed it stays, and its words are found no more."""
        now = self.clock()

        def work(tx: Transaction) -> None:
            owner, number, _ = _found(tx, message)
            if owner != session:
                raise NotFoundError(f"There is no message `{message}` in this conversation.")
            conversations.change(tx, "chat_message", {"deleted": True}, "number = ?", (number,))
            conversation_search.index(tx, WORDS, number, "")
            conversations.recount(tx, session)
            head = _standing_above(tx, session_in(tx, session).head)
            conversations.change(tx, "chat_session", {"head": head, "updated_at": now}, "id = ?", (session,))

        self.store.write(work)


def insert_message(tx: Transaction, session: str, values: Mapping[str, Any], spelled: str) -> None:
    if conversations.number_of(tx, "chat_message", values["id"]) is not None:
        raise InputError(f"There is a message `{values['id']}` already.")
    conversations.insert(tx, "chat_message", {**values, "session": session})
    if spelled:
        number = conversations.number_of(tx, "chat_message", values["id"])
        conversation_search.index(tx, WORDS, number or 0, spelled)


def session_in(reader: Reader, id: str) -> Session:  # noqa: A002 - the word of the value
    row = conversations.get_session(reader, id)
    if row is None:
        raise NotFoundError(f"There is no conversation `{id}`.", remedy="It may have been deleted.")
    return session_of(row)


def _found(reader: Reader, id: str) -> tuple[str, int, Row]:  # noqa: A002 - the word of the value
    found = conversations.get_message(reader, id)
    if found is None:
        raise NotFoundError(f"There is no message `{id}`.")
    return found


def _message(reader: Reader, id: str) -> Message:  # noqa: A002 - the word of the value
    said = messages_of([_found(reader, id)[2]])
    return standing(said, conversations.statuses_of(reader, message=id))[0]


def _parent(reader: Reader, session: str, parent: str) -> str:
    if parent and _found(reader, parent)[0] != session:
        raise NotFoundError(f"There is no message `{parent}` in this conversation.")
    return parent


def _standing_above(reader: Reader, head: str) -> str:
    """The message itself, or the nearest before it that is not deleted."""
    while head:
        message = _message(reader, head)
        if not message.deleted:
            break
        head = message.parent
    return head


def checked_parts(role: str, state: str, parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts, if such a message can be."""
    if role not in _ROLES or state not in _STATES:
        raise InputError(f"A message cannot be of `{role}` and `{state}`.")
    said = tuple(parts)
    if role == "user" and not any(part.text.strip() or part.kind != "text" for part in said):
        raise InputError("The message is empty.", remedy="Write something, or attach something.")
    return said


def standing(said: list[Message], statuses: Mapping[tuple[str, str], str]) -> list[Message]:
    """The messages with their calls as they stand now."""
    return [_with_statuses(each, statuses) for each in said] if statuses else said


def _with_statuses(message: Message, statuses: Mapping[tuple[str, str], str]) -> Message:
    if not any(part.kind == "tool_invocation" for part in message.parts):
        return message
    parts = tuple(
        msgspec.structs.replace(part, status=statuses.get((message.run, part.tool_call_id), part.status))
        if part.kind == "tool_invocation"
        else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts)
