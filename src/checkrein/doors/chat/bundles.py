"""A whole conversation as one value: gathered to be taken elsewhere, checked and kept when it comes.

The forms it travels in are in `transfer.py`. What comes is anybody's: nothing is written before all of it is
checked, and it gets ids of its own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from checkrein.doors.chat import OVER, Invocation, Message, Part, Run, Session, Snapshot, history, words
from checkrein.doors.chat.changes import changed
from checkrein.doors.chat.messages import checked_parts, insert_message, standing
from checkrein.doors.chat.rows import columns, messages_of
from checkrein.doors.chat.sessions import SLICE, Sessions, insert_session
from checkrein.errors import InputError, StoreError
from checkrein.ledger.record import new_id
from checkrein.store import Transaction, conversation_runs, conversations
from checkrein.store.conversation_runs import CALL, OPEN_CALL, RUN
from checkrein.store.conversations import COMING, HERE, MESSAGE, SNAPSHOT

_FREE = ("arguments", "edited", "output")
_LATEST = 253_402_300_799.0
_T = TypeVar("_T")


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A session with all that belongs to it."""

    session: Session
    messages: list[Message] = []
    runs: list[Run] = []
    calls: list[Invocation] = []
    snapshots: list[Snapshot] = []


def gathered(sessions: Sessions, id: str) -> Bundle:  # noqa: A002 - the word of the value
    """Everything of a session; of deleted messages only their place."""
    session = sessions.get(id)
    rows = conversations.messages_of(sessions.store, id)
    said = standing(messages_of(rows), conversations.statuses_of(sessions.store, session=id))
    kept = [replace(each, raw="") if not each.deleted else _emptied(each) for each in said]
    there = {each.id for each in said if not each.deleted}
    return Bundle(
        session=session,
        messages=kept,
        runs=sessions.runs_of(id, limit=2**31)[::-1],
        calls=[call for call in sessions.calls_of_session(id) if call.message in there],
        snapshots=sessions.snapshots(id),
    )


def renewed(bundle: Bundle, now: float) -> Bundle:
    """The same under ids of its own, nothing of it under way; raises InputError when it cannot be right."""
    _check_numbers(bundle)
    _check_tree(bundle)
    said, ran = _ids(bundle.messages, "message", now), _ids(bundle.runs, "run", now)
    session = new_id(now)
    return Bundle(
        session=_session(bundle.session, session, _known(said, bundle.session.head, "head"), now),
        messages=[_message(each, said, ran, number) for number, each in enumerate(bundle.messages, 1)],
        runs=[_run(each, session, said, ran) for each in bundle.runs],
        calls=_calls(_as_sent(bundle), session, said, ran),
        snapshots=[
            replace(each, id=new_id(now), cutoff=_known(said, each.cutoff, "cutoff", needed=True))
            for each in bundle.snapshots
        ],
    )


def keep(sessions: Sessions, bundle: Bundle) -> Session:
    """Writes a renewed bundle, slice by slice; until the last one it is there for nobody."""
    store, session = sessions.store, bundle.session
    store.write(lambda tx: insert_session(tx, replace(session, head=""), COMING))
    try:
        for some in _slices(bundle.messages):
            rows = [(columns(each, MESSAGE), _spelled(each)) for each in some]
            store.write(_each(lambda tx, row: insert_message(tx, session.id, row[0], row[1]), rows))
        for runs in _slices([columns(each, RUN) for each in bundle.runs]):
            store.write(_each(lambda tx, row: conversations.insert(tx, "chat_run", row), runs))
        for calls in _slices([columns(each, CALL) for each in bundle.calls]):
            store.write(_each(conversation_runs.add_call, calls))
        for summaries in _slices([columns(each, SNAPSHOT) for each in bundle.snapshots]):
            store.write(_each(lambda tx, row: _insert_snapshot(tx, session.id, row), summaries))
        store.write(lambda tx: _appear(tx, session))
    except BaseException:
        # On a full disk this fails too; what is left then is swept at the next start.
        with contextlib.suppress(StoreError):
            sessions.remove(session.id)
        raise
    return sessions.get(session.id)


def _appear(tx: Transaction, session: Session) -> None:
    conversations.recount(tx, session.id)
    shown = {"presence": HERE, "head": session.head}
    conversations.change(tx, "chat_session", shown, "id = ?", (session.id,))


def _insert_snapshot(tx: Transaction, session: str, values: dict[str, Any]) -> None:
    conversations.insert(tx, "chat_snapshot", {**values, "session": session})


def _each(do: Callable[[Transaction, Any], Any], rows: Sequence[Any]) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for row in rows:
            do(tx, row)

    return work


def _slices(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (values[first : first + SLICE] for first in range(0, len(values), SLICE))


def _spelled(message: Message) -> str:
    return "" if message.deleted else words.spelled(words.text_of(message.parts))


def _emptied(message: Message) -> Message:
    return replace(message, parts=(), raw="", error="")


def _check_tree(bundle: Bundle) -> None:
    bundle.messages.sort(key=lambda each: each.sequence)
    before: dict[str, int] = {"": -(2**63)}
    for each in bundle.messages:
        # A cycle cannot keep this order either.
        if before.get(each.parent, each.sequence) >= each.sequence:
            raise InputError(f"The message `{each.id[:80]}` does not come after the one it follows.")
        before[each.id] = each.sequence


def _check_numbers(bundle: Bundle) -> None:
    """Every number is one the store can hold, every time one a calendar has."""
    everything = (bundle.session, *bundle.messages, *bundle.runs, *bundle.calls, *bundle.snapshots)
    for each in everything:
        for name in each.__struct_fields__:
            value = None if name in _FREE else getattr(each, name)
            if isinstance(value, float) and not (math.isfinite(value) and 0 <= value <= _LATEST):
                raise InputError(f"`{name}` is no time: {value}.")
            if isinstance(value, int) and not 0 <= value < 2**63:
                raise InputError(f"`{name}` is out of bounds.")


def _ids(values: Sequence[Message] | Sequence[Run], what: str, now: float) -> dict[str, str]:
    found = {each.id: new_id(now) for each in values}
    if len(found) != len(values) or "" in found:
        raise InputError(f"Every {what} needs an id of its own.")
    return found


def _known(ids: dict[str, str], id: str, what: str, *, needed: bool = False) -> str:  # noqa: A002
    if not id and not needed:
        return ""
    if id not in ids:
        raise InputError(f"`{what}` names `{id[:80]}`, and there is no such thing here.")
    return ids[id]


def _session(session: Session, id: str, head: str, now: float) -> Session:  # noqa: A002
    fields = ("title", "color", "provider", "model", "system", "tools_off", "threshold", "retention_tokens")
    given = {name: getattr(session, name) for name in (*fields, "auto_compress")}
    # INVARIANT: what comes from elsewhere counts as words nobody vouched for, and belongs to no project yet.
    origin = {"imported": {"id": session.id, "project": session.project}}
    return Session(
        id=id,
        created_at=session.created_at,
        updated_at=now,
        pinned_at=session.pinned_at,
        head=head,
        tainted_by=session.tainted_by or "import",
        **changed({**given, "metadata": {**session.metadata, **origin}}, now),
    )


def _message(message: Message, said: dict[str, str], ran: dict[str, str], number: int) -> Message:
    parts = message.parts if message.deleted else checked_parts(message.role, message.state, message.parts)
    return replace(
        message,
        parts=tuple(replace(part, status=_ended(part.status)) for part in parts),
        id=said[message.id],
        parent=_known(said, message.parent, "parent"),
        run=ran.get(message.run, ""),
        sequence=number,
        state="interrupted" if message.state == "streaming" else message.state,
        # INVARIANT: nothing comes along that a model is sent and a person is not shown.
        raw="",
        summary=False,
    )


def _run(run: Run, session: str, said: dict[str, str], ran: dict[str, str]) -> Run:
    asked = _known(said, run.user_message, "user_message")
    state = run.state if run.state in OVER else "interrupted"
    return replace(run, id=ran[run.id], session=session, user_message=asked, state=state, holder="")


def _ended(status: Any) -> Any:
    return "cancelled" if status in OPEN_CALL else status


def _as_sent(bundle: Bundle) -> list[Invocation]:
    """The calls, with what the messages say came of them: cards show calls, models are sent messages."""
    parts = {
        (message.run, part.tool_call_id): part
        for message in bundle.messages
        for part in message.parts
        if part.kind == "tool_result" and not message.deleted
    }
    return [_told_by(parts.get((call.run, call.call_id)), call) for call in bundle.calls]


def _told_by(part: Part | None, call: Invocation) -> Invocation:
    return call if part is None else replace(call, output=history.as_read(part), error=part.error)


def _calls(
    calls: Sequence[Invocation], session: str, said: dict[str, str], ran: dict[str, str]
) -> list[Invocation]:
    if len({(call.run, call.call_id) for call in calls}) != len(calls):
        raise InputError("Every call of a run needs an id of its own.")
    return [
        replace(
            call,
            run=_known(ran, call.run, "run", needed=True),
            session=session,
            message=_known(said, call.message, "message", needed=True),
            # INVARIANT: nothing that is imported waits, runs or stands for a call on the record.
            status=_ended(call.status),
            entry="",
        )
        for call in calls
    ]
