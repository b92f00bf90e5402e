"""When the head of the record is signed: in the transaction of a record that calls for it, and at the latest
after 64 records or 60 seconds.

The ledger asks for every record it appends, and for every group it commits. By the same rules `audit verify`
knows what a killed server can have left unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from checkrein.errors import LedgerError
from checkrein.ledger.chain import GENESIS, Break, Link, first_break, said_in
from checkrein.ledger.checkpoints import Checkpoint, Signer, is_signed
from checkrein.ledger.copies import Copies, newest_in
from checkrein.store import Reader, Transaction, records

MOST_RECORDS, MOST_SECONDS = 64, 60.0
# The first record that is signed after a kill, and the last one of whatever ends as it should.
RESUMED, CLOSED = "record_resumed", "record_closed"
# What people said and changed, and what ends. A decision counts where it is a refusal.
_AT_ONCE = frozenset(
    {
        "answered",
        "released",
        "granted",
        "grant_revoked",
        "rule_changed",
        "phase_changed",
        "policy_accepted",
        "policy_revoked",
        "request_refused",
        "session_ended",
        RESUMED,
        CLOSED,
    }
)


def is_signed_at_once(kind: str, data: dict[str, Any]) -> bool:
    """Whether a record has its checkpoint in its own transaction."""
    return kind in _AT_ONCE or (kind == "decided" and data.get("verdict") == "deny")


class Tail:
    """The records after the last checkpoint, as a reader meets them."""

    def __init__(self, dense: bool) -> None:
        """`dense`: the last checkpoint was made by these rules, not by an earlier version."""
        self._dense = dense
        self.count, self.since, self.latest = 0, 0.0, 0.0
        self.fault: Break | None = None

    def add(self, link: Link) -> None:
        self.count += 1
        self.since = self.since if self.count > 1 else link.at
        self.latest = link.at
        if self._dense and self.fault is None:
            self.fault = self._fault(link)

    def _fault(self, link: Link) -> Break | None:
        """What no server leaves, however it ends: a checkpoint is written with its record or not at all."""
        try:
            at_once = is_signed_at_once(link.kind, said_in(link.body)["data"])
        except (ValueError, KeyError, AttributeError):
            at_once = False
        # INVARIANT: a record that is signed at once and has no checkpoint was not written by us.
        if at_once:
            return Break(link.seq, f"record {link.seq} ({link.kind}) lacks the checkpoint it is written with")
        if self.count >= MOST_RECORDS:
            return Break(link.seq, f"{MOST_RECORDS} records and more, up to {link.seq}, lack a checkpoint")
        return None


class Pending:
    """What one group of writes has to sign."""

    __slots__ = ("at_once", "covered", "due", "first", "last", "made", "resumed", "since")

    def __init__(self, last: Checkpoint | None, covered: int, since: float | None, first: bool) -> None:
        """`first`: this process has signed nothing yet."""
        self.last, self.covered, self.since, self.first = last, covered, since, first
        self.due: list[tuple[int, str]] = []
        self.made: list[Checkpoint] = []
        self.at_once = self.resumed = False

    def add(self, seq: int, sealed: str, at: float, at_once: bool) -> None:
        """A record of this group."""
        since = self.since = at if self.since is None else self.since
        # INVARIANT: no more than 63 records, and none of a person or a refusal, are committed unsigned.
        if seq - self.covered >= MOST_RECORDS:
            self.due.append((seq, sealed))
            self.covered, self.since, self.at_once = seq, None, False
        # INVARIANT: the first record of a process is signed, so that a cut in front of it is seen.
        elif at_once or self.first or not 0 <= at - since < MOST_SECONDS:
            self.at_once = True

    def heads(self, head: tuple[int, str]) -> list[tuple[int, str]]:
        """The heads to sign, the group's last one where a record calls for it."""
        ends = [head] if self.at_once and head[0] > self.covered else []
        return [*self.due, *ends]


class Signing:
    """The checkpoints of one ledger. Everything but `open` and `is_due` runs on the store's writer thread."""

    def __init__(self, signer: Signer, copies: Copies | None, clock: Callable[[], float]) -> None:
        self.signer, self.copies, self._clock = signer, copies, clock
        self._last: Checkpoint | None = None
        self._covered: int | None = None
        self._since: float | None = None
        self._is_our_key, self._is_first = False, True
        # Whether somebody comes by at once and signs the first record, if it calls for no checkpoint itself.
        self.first_is_signed_later = False
        self._uncopied: list[Checkpoint] = []
        # What the record has to say about how it was found, before anything of it is signed.
        self.owed: dict[str, Any] | None = None

    def open(self, reader: Reader, head: tuple[int, str] | None) -> str:
        """Check what was not signed, and the copies. Return why the record is not to be written on, if so."""
        row = records.last_checkpoint(reader)
        last = self._last = Checkpoint(row[1], row[2]) if row else None
        content: dict[str, Any] = last.content if last else {"seq": 0, "hash": GENESIS}
        self._covered = int(content["seq"])
        # INVARIANT: a checkpoint of a record that is not there keeps no later one from being signed.
        if self._covered > (head[0] if head else 0):
            return f"the record was cut: a checkpoint says it reached {self._covered}"
        dense = last is not None and last.previous is not None
        tail = Tail(dense)
        found = first_break(
            _through(tail, reader, self._covered), seq=self._covered, previous=content["hash"]
        )
        self._since = tail.since if tail.count else None
        fault = found if isinstance(found, Break) else tail.fault
        if fault is not None:
            return fault.reason
        # INVARIANT: a record that was not closed says so once it goes on.
        killed = tail.count > 0 or (dense and records.last_kind(reader) != CLOSED)
        said = {"killed": True, "unsigned": tail.count, "after": self._covered, "doubts": []}
        self.owed = said if killed else None
        return self._compare(reader, head, last, self.copies) if self.copies else ""

    def _compare(
        self, reader: Reader, head: tuple[int, str] | None, last: Checkpoint | None, copies: Copies
    ) -> str:
        """What a copy says against the store, if anything. What is merely odd is owed to the record."""
        in_file = copies.last_in_file()
        if in_file is not None and (why := _disagreement(reader, head, last, in_file)):
            return f"{why} (says {copies.file})"
        doubt, newest = "", None
        try:
            newest = newest_in(copies.newest) if copies.newest else None
            if newest is None and copies.newest and last is not None and last.previous is not None:
                doubt = f"{copies.newest} with the newest checkpoint was missing"
        except LedgerError as error:
            doubt = error.message.removesuffix(".")
        if newest is not None and head is None:
            doubt = f"an earlier record, which reached record {newest.content['seq']}, is gone"
        elif newest is not None and (why := _disagreement(reader, head, last, newest)):
            return f"{why} (says {copies.newest})"
        if doubt:
            earlier = {"earlier": {"body": newest.body, "signature": newest.signature}} if newest else {}
            owed = self.owed or {"killed": False, "unsigned": 0, "after": self._covered}
            self.owed = {**owed, "doubts": [doubt], **earlier}
        copies.repair()
        self._uncopied = _after(reader, in_file.content["seq"] if in_file else 0)
        return ""

    def begin(self, tx: Transaction) -> Pending:
        """What a new group starts from."""
        if self._covered is None:
            row = records.last_checkpoint(tx)
            self._last, self._covered = (Checkpoint(row[1], row[2]), row[0]) if row else (None, 0)
        first = self._is_first and not self.first_is_signed_later
        return Pending(self._last, self._covered, self._since, first)

    def sign(self, tx: Transaction, pending: Pending, head: tuple[int, str]) -> None:
        """Sign what is due. Raises LedgerError; what cannot be signed is not recorded."""
        for seq, sealed in pending.heads(head):
            self._check_key(pending.last)
            previous = int(pending.last.content["seq"]) if pending.last else 0
            made = self.signer.sign(seq, sealed, self._clock(), previous)
            records.add_checkpoint(tx, seq, made.body, made.signature)
            pending.last = made
            pending.made.append(made)
            pending.covered = seq
        pending.due.clear()
        pending.at_once, pending.since = False, None
        pending.first = False

    def committed(self, pending: Pending, durable: bool) -> None:
        self._since = pending.since
        if pending.made:
            self._last, self._covered, self._is_first = pending.last, pending.covered, False
            if pending.resumed:
                self.owed = None
            if self.copies is not None:
                self._uncopied += pending.made
        if self._uncopied:
            self.copy(durable)

    def copy(self, durable: bool) -> None:
        """Copy what was committed, where the disk has it."""
        # INVARIANT: a checkpoint is on the disk before its copy is.
        if durable and self.copies is not None and self._uncopied and self.copies.keep(self._uncopied):
            self._uncopied = []

    @property
    def uncopied(self) -> int:
        """The newest checkpoint that has no copy yet; 0 where every one has."""
        return self._covered or 0 if self._uncopied else 0

    def is_due(self, early: float) -> bool:
        """Whether somebody had better sign or copy now, `early` seconds before it must be done."""
        since = self._since
        old = since is not None and not 0 <= self._clock() - since < MOST_SECONDS - early
        first = since is not None and self._is_first
        return old or first or self.owed is not None or bool(self._uncopied)

    def _check_key(self, last: Checkpoint | None) -> None:
        """The first signature of this process follows one by the same key."""
        if self._is_our_key:
            return
        # INVARIANT: nothing is signed on top of a checkpoint that our key did not sign.
        if last is not None and not (self.signer.exists and is_signed(last, self.signer.public)):
            raise LedgerError(
                "The last checkpoint is not signed by this installation's key, or the key is gone.",
                remedy="Put ledger.key back; to go on, move the store aside and keep it as evidence.",
            )
        self._is_our_key = True


def _through(tail: Tail, reader: Reader, seq: int) -> Iterator[Link]:
    for row in records.after(reader, seq):
        link = Link(*row)
        yield link
        tail.add(link)


def _after(reader: Reader, seq: int) -> list[Checkpoint]:
    return [Checkpoint(body, signature) for _, body, signature in records.checkpoints(reader, after=seq)]


def _disagreement(
    reader: Reader, head: tuple[int, str] | None, last: Checkpoint | None, copy: Checkpoint
) -> str:
    """Where the store is not what a copy of a checkpoint was made for. Signatures are checked elsewhere."""
    said, end = copy.content, head[0] if head else 0
    seq = said["seq"]
    if seq > end:
        return f"the record was cut: it ends at {end}, a checkpoint says it reached {seq}"
    if last is None or last.content["seq"] < seq:
        return f"the checkpoint at record {seq} was removed from the store"
    if last.content.get("key") != said.get("key"):
        return "the record was made anew: the checkpoints are signed by another key"
    found = records.hash_of(reader, seq)
    return "" if found == said["hash"] else f"record {seq} is not the one the checkpoint there was made for"
