"""Questions to people: asked once, answered once. Every change of state is a compare-and-set."""

from __future__ import annotations

import msgspec

from checkrein.store import Reader, Transaction

ASKED = "asked"
_COLUMNS = (
    "entry, session, project, binding, asked_at, expires_at, state, answered_at, actor, channel, message, "
    "claimed_at, ended_at"
)
_PLACES = ", ".join("?" * len([*_COLUMNS.split(", "), "sealed_call"]))
# Each call of a conversation's model or of a script is made for itself, also where another is just the same.
_SAME = (
    "CASE WHEN EXISTS (SELECT 1 FROM chat_call WHERE chat_call.entry = question.entry)"
    " OR EXISTS (SELECT 1 FROM run_call WHERE run_call.entry = question.entry AND run_call.state = 'asked')"
    " THEN question.entry ELSE question.binding END"
)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question and, once there is one, its answer.

    `same`: one answer settles every open question that has the same here.
    """

    entry: str
    session: str
    project: str
    binding: str
    asked_at: float
    expires_at: float
    state: str = ASKED
    answered_at: float | None = None
    actor: str = ""
    channel: str = ""
    message: str = ""
    # When the approval was taken for its one run, and when an outcome ended it.
    claimed_at: float | None = None
    ended_at: float | None = None
    same: str = ""

    def __post_init__(self) -> None:
        if not self.same:
            msgspec.structs.force_setattr(self, "same", self.binding)


def add_question(tx: Transaction, question: Question, sealed_call: str = "") -> None:
    values = (*(getattr(question, name) for name in _COLUMNS.split(", ")), sealed_call)
    tx.execute(
        f"INSERT INTO question ({_COLUMNS}, sealed_call) VALUES ({_PLACES})",  # noqa: S608
        values,
    )


def settle(
    tx: Transaction,
    entry: str,
    state: str,
    *,
    now: float,
    actor: str,
    channel: str,
    message: str,
    sealed_edit: str = "",
) -> bool:
    """Answer a question; False when it was answered before, or never asked.

    `sealed_edit`: the arguments that were approved instead of those it was asked about.
    """
    # INVARIANT: nobody sees the answer without the arguments that were approved with it.
    return bool(
        tx.execute(
            "UPDATE question SET state = ?, answered_at = ?, actor = ?, channel = ?, message = ?, "
            "sealed_edit = ? WHERE entry = ? AND state = ?",
            (state, now, actor, channel, message, sealed_edit, entry, ASKED),
        )
    )


def claim_question(tx: Transaction, entry: str, now: float) -> bool:
    """Take an approval for its one run; False when it was taken before, ended, or never given."""
    # INVARIANT: an approval is taken by compare-and-set, once.
    return bool(
        tx.execute(
            "UPDATE question SET claimed_at = ? WHERE entry = ? AND state = 'approved' "
            "AND claimed_at IS NULL AND ended_at IS NULL",
            (now, entry),
        )
    )


def drop_question(tx: Transaction, entry: str, now: float) -> bool:
    """End an approval that will not be used; False when it was taken or ended before, or never given."""
    # INVARIANT: an approval is dropped by compare-and-set, never once its call has started.
    return bool(
        tx.execute(
            "UPDATE question SET ended_at = ? WHERE entry = ? AND state = 'approved' "
            "AND claimed_at IS NULL AND ended_at IS NULL",
            (now, entry),
        )
    )


def end_question(tx: Transaction, entry: str, now: float) -> None:
    """Note that the outcome of an approved call is known."""
    tx.execute("UPDATE question SET ended_at = ? WHERE entry = ? AND ended_at IS NULL", (now, entry))


def reopen_question(tx: Transaction, entry: str) -> None:
    """Note that an approved call runs again, so that its outcome is to come."""
    tx.execute("UPDATE question SET ended_at = NULL WHERE entry = ?", (entry,))


def unended(reader: Reader, before: float, most: int) -> list[Question]:
    """Approvals given before a moment whose call has no outcome, oldest first."""
    where = "state = 'approved' AND ended_at IS NULL AND answered_at < ?"
    return _questions(reader, where, (before,), most)


def sealed_call(reader: Reader, entry: str) -> str:
    """The encrypted call of a question; empty where none was kept."""
    return _sealed(reader, "sealed_call", entry)


def sealed_edit(reader: Reader, entry: str) -> str:
    """The encrypted arguments a person approved instead; empty where they changed none."""
    return _sealed(reader, "sealed_edit", entry)


def _sealed(reader: Reader, column: str, entry: str) -> str:
    found = reader.query(f"SELECT {column} FROM question WHERE entry = ?", (entry,))  # noqa: S608
    return str(found[0][0]) if found else ""


def get_question(reader: Reader, entry: str) -> Question | None:
    found = _questions(reader, "entry = ?", (entry,))
    return found[0] if found else None


def beginning_with(reader: Reader, start: str) -> list[Question]:
    """Questions whose id begins so, settled or not, oldest first."""
    return _questions(reader, "entry >= ? AND entry < ?", (start, f"{start}\U0010ffff"))


def waiting(reader: Reader, session: str | None = None) -> list[Question]:
    """Questions without an answer, oldest first; of one session or of all."""
    if session is None:
        return _questions(reader, f"state = '{ASKED}'", ())
    return _questions(reader, f"state = '{ASKED}' AND session = ?", (session,))


def count_of(reader: Reader, session: str) -> int:
    """How many questions of a session have no answer yet."""
    sql = f"SELECT count(*) FROM question WHERE state = '{ASKED}' AND session = ?"  # noqa: S608
    return int(reader.query(sql, (session,))[0][0])


def settled_with(reader: Reader, question: Question) -> list[Question]:
    """Open questions that an answer to this one settles, oldest first; itself while it is open."""
    found = asked_about(reader, question.binding)
    return [each for each in found if each.same == question.same]


def count_waiting(reader: Reader, now: float) -> int:
    """How many answers are waited for."""
    sql = f"SELECT count(DISTINCT {_SAME}) FROM question WHERE state = '{ASKED}' AND expires_at > ?"  # noqa: S608
    return int(reader.query(sql, (now,))[0][0])


def asked_about(reader: Reader, binding: str) -> list[Question]:
    """Open questions about exactly this call, oldest first."""
    return _questions(reader, f"binding = ? AND state = '{ASKED}'", (binding,))


def about(reader: Reader, binding: str) -> list[Question]:
    """Every question about exactly this call, answered or not, oldest first."""
    return _questions(reader, "binding = ?", (binding,))


def asked_since(reader: Reader, moment: float) -> frozenset[str]:
    """The bindings of every question asked after a moment."""
    rows = reader.query("SELECT DISTINCT binding FROM question WHERE asked_at > ?", (moment,))
    return frozenset(row[0] for row in rows)


def answered_about(reader: Reader, binding: str, since: float) -> list[Question]:
    """Questions about exactly this call that were answered after a moment, oldest first."""
    return _questions(reader, f"binding = ? AND state <> '{ASKED}' AND answered_at > ?", (binding, since))


def unclaimed(reader: Reader) -> list[Question]:
    """Questions that are open, or approved and not taken, oldest first."""
    free = "state = 'approved' AND claimed_at IS NULL AND ended_at IS NULL"
    return _questions(reader, f"state = '{ASKED}' OR ({free})", ())


def _questions(
    reader: Reader, where: str, given: tuple[object, ...], most: int | None = None
) -> list[Question]:
    limit = "" if most is None else f" LIMIT {most:d}"
    sql = f"SELECT {_COLUMNS}, {_SAME} FROM question WHERE {where} ORDER BY asked_at, entry{limit}"  # noqa: S608
    rows = reader.query(sql, given)
    names = [*_COLUMNS.split(", "), "same"]
    return [Question(**dict(zip(names, row, strict=True))) for row in rows]
