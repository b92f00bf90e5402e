"""Writes events to the ledger: canonical, chained, checkpointed. Runs on the store's writer thread."""

from __future__ import annotations

import contextlib
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from checkrein.errors import CheckreinError, LedgerError
from checkrein.ledger.chain import GENESIS, body_of, seal
from checkrein.ledger.checkpoints import Checkpoint, Signer
from checkrein.ledger.copies import Copies
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.recent import Recent
from checkrein.ledger.signing import CLOSED, RESUMED, Pending, Signing, is_signed_at_once
from checkrein.ledger.terms import terms_of
from checkrein.store import Reader, Row, Store, Transaction, lookup, records
from checkrein.store.changes import set_number

_PAGE, _FILED = "ledger.page", "ledger.filed"
_COPIED = "copied"
# How often copying may make a commit wait for the disk that would not have waited.
_COPY_EVERY = 1.0
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_CHANCE = 35
_LOW = (1 << _CHANCE) - 1
# So many are filed at once; half as many, where others write anyway. The more at once, the less each costs;
# until then, whoever searches looks through them one by one.
FILE_EVERY = 256
_SET_ASIDE = "Run `checkrein audit verify`; to go on, move the store aside and keep it as evidence."


class Ids:
    """Short ids that sort by time: milliseconds, then chance; within a millisecond each is above the last."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()
        # Ids are no secrets; they only must not meet. One look at the system's chance is enough.
        self._chance = random.Random(secrets.randbits(256)).getrandbits  # noqa: S311

    def new(self, now: float) -> str:
        moment = int(now * 1000)
        with self._lock:
            if moment == self._last >> _CHANCE:
                self._last += 1 + self._chance(16)
            else:
                self._last = (moment << _CHANCE) | self._chance(_CHANCE - 1)
            return _spelled(self._last)


new_id = Ids().new


def first_id(now: float) -> str:
    """The id no call of this moment or later comes before."""
    return _spelled(max(0, int(now * 1000)) << _CHANCE)


def _spelled(number: int) -> str:
    low = number & _LOW
    return (
        f"{_moment(number >> _CHANCE)}{_ALPHABET[low >> 30]}"
        f"{_PAIRS[low >> 20 & 1023]}{_PAIRS[low >> 10 & 1023]}{_PAIRS[low & 1023]}"
    )


@lru_cache(maxsize=16)
def _moment(number: int) -> str:
    """The part that ids of one millisecond share."""
    pairs = "".join(_PAIRS[number >> shift & 1023] for shift in (30, 20, 10, 0))
    return _ALPHABET[number >> 40 & 31] + pairs


class _Page:
    """What a group adds to the record: its end, the rows, the cards that find them, what is to be signed."""

    __slots__ = ("cards", "head", "pending", "rows")

    def __init__(self, head: tuple[int, str], pending: Pending) -> None:
        self.head, self.pending = head, pending
        self.rows: list[Row] = []
        self.cards: list[tuple[str, Sequence[str]]] = []


class Ledger:
    """Appends to the chain inside the caller's transaction, so that a record and its effect are one."""

    def __init__(
        self,
        store: Store,
        signer: Signer,
        clock: Callable[[], float] = time.time,
        *,
        copies: Copies | None = None,
    ) -> None:
        """`copies`: where checkpoints are copied to once they are on the disk; None copies none."""
        self.store, self.signer, self.clock = store, signer, clock
        self.broken = ""
        self._signing = Signing(signer, copies, clock)
        self._last: tuple[int, str] | None = None
        self._unfiled: list[tuple[str, Sequence[str]]] = []
        self._filing = False
        self._copied_at, self._wrote = 0.0, False
        self.recent = Recent()

    def append(
        self, tx: Transaction, kind: str, data: dict[str, Any], *, entry: str = "", terms: Sequence[str] = ()
    ) -> int:
        """One event, sealed to what came before it; its number. A decision is found by its `terms`."""
        if self.broken:
            raise LedgerError(f"The record does not verify: {self.broken}.", remedy=_SET_ASIDE)
        page = self._page(tx)
        seq = self._add(tx, page, kind, data, entry)
        if terms:
            page.cards.append((entry, terms))
        if len(self._unfiled) >= FILE_EVERY and not self._filing:
            tx.after(self._file_soon)
        return seq

    def _add(self, tx: Transaction, page: _Page, kind: str, data: dict[str, Any], entry: str) -> int:
        seq, previous = page.head
        seq, at = seq + 1, self.clock()
        body = body_of(seq, at, kind, entry, data)
        sealed = seal(previous, body)
        row = (seq, at, kind, entry, body, sealed)
        records.append(tx, row)
        page.rows.append(row)
        page.head = seq, sealed
        page.pending.add(seq, sealed, at, is_signed_at_once(kind, data))
        return seq

    def _page(self, tx: Transaction) -> _Page:
        page: _Page | None = tx.scratch.get(_PAGE)
        if page is None:
            made = page = tx.scratch[_PAGE] = _Page(self._head(tx), self._signing.begin(tx))
            # Nothing here refers to the transaction: it would be garbage that waits for the collector.
            durable = tx.durable
            # INVARIANT: a head is signed in the transaction of the record it covers, or that is not written.
            tx.before_commit(lambda group: self._sign(group, made))
            tx.after(lambda: self._committed(made, durable))
        return page

    def _sign(self, tx: Transaction, page: _Page) -> None:
        if page.pending.at_once or page.pending.due:
            self._resume(tx, page)
            self._signing.sign(tx, page.pending, page.head)

    def _resume(self, tx: Transaction, page: _Page) -> None:
        # INVARIANT: what was found unsigned is signed together with a record that says so.
        if self._signing.owed is not None and not page.pending.resumed:
            page.pending.resumed = True
            self._add(tx, page, RESUMED, self._signing.owed, "")

    def file(self, tx: Transaction) -> None:
        """Put what was recorded earlier into the card index: in bulk, so that no verdict waits for it."""
        if self._unfiled and self._last and _FILED not in tx.scratch:
            tx.scratch[_FILED] = count = len(self._unfiled)
            lookup.file(tx, self._last[0], self._unfiled)
            tx.after(lambda: self._unfiled.__delitem__(slice(count)))

    @property
    def worth_filing(self) -> bool:
        """Whether enough is not filed yet that somebody who writes anyway had better do it."""
        return len(self._unfiled) >= FILE_EVERY // 2 and not self._filing

    def checkpoint(self, tx: Transaction) -> Checkpoint | None:
        """Sign the head, unless there is nothing new to sign or what is there does not verify."""
        if self.broken:
            return None
        page = self._page(tx)
        self._resume(tx, page)
        page.pending.at_once = page.pending.at_once or page.head[0] > page.pending.covered
        self._sign(tx, page)
        return page.pending.made[-1] if page.pending.made else None

    def close(self, tx: Transaction) -> None:
        """Say that nothing is missing after this, where anything was written; the last record is signed."""
        if self._wrote and not self.broken:
            self.append(tx, CLOSED, {})
            tx.after(self._reopen)

    def sign_first_record_later(self) -> None:
        """For a server, whose first answer must not wait for a library: `keep_signed` follows soon."""
        self._signing.first_is_signed_later = True

    @property
    def is_resumed(self) -> bool:
        """Whether the record has to say that what wrote it before was killed."""
        return self._signing.owed is not None and not self.broken

    def keep_signed(self, early: float = 0.0) -> None:
        """Sign what waits too long, `early` seconds before it must be signed, and copy what is signed."""

        def work(tx: Transaction) -> None:
            self.checkpoint(tx)
            self._copy(tx)

        if not self.broken and self._signing.is_due(early):
            self.store.write(work, durable=True)

    def _copy(self, tx: Transaction) -> None:
        # Copies are made of what is on the disk, and an empty commit would wait for none.
        set_number(tx, _COPIED, self._signing.uncopied)
        durable = tx.durable
        tx.after(lambda: self._signing.copy(durable))

    def open(self, reader: Reader) -> None:
        """Pick up where the record ends: what is not filed yet, and the bounded start-up check."""
        self._last = records.head(reader)
        try:
            self.broken = self.broken or self._signing.open(reader, self._last)
            unfiled = records.after(reader, lookup.filed(reader), ("decided",))
            self._unfiled = [(row[3], terms_of(body_of_row(row)["data"])) for row in unfiled]
        except LedgerError as error:
            self.broken = self.broken or error.message

    def _file_soon(self) -> None:
        if not self._filing and (filing := self._later(self.file)) is not None:
            self._filing = True
            # INVARIANT: what could not be filed now is filed with the next.
            filing.add_done_callback(self._filed)

    def _filed(self, _filing: Future[Any]) -> None:
        self._filing = False

    def _later(self, work: Callable[[Transaction], Any], *, durable: bool = False) -> Future[Any] | None:
        """In a group of its own, when the store is free; a store that is closing does without."""
        with contextlib.suppress(CheckreinError):
            return self.store.submit(work, durable=durable)
        return None

    def _reopen(self) -> None:
        self._wrote = False

    def _committed(self, page: _Page, durable: bool) -> None:
        self._last, self._wrote = page.head, self._wrote or bool(page.rows)
        self._signing.committed(page.pending, durable)
        if page.pending.made and self._signing.uncopied and time.monotonic() - self._copied_at >= _COPY_EVERY:
            self._copied_at = time.monotonic()
            self._later(self._copy, durable=True)
        if page.rows:
            self.recent.add(page.rows)
        self._unfiled += page.cards

    def _head(self, tx: Transaction) -> tuple[int, str]:
        """Where the chain ends: in this group, as last committed, or (the first time) as stored."""
        page: _Page | None = tx.scratch.get(_PAGE)
        return (page and page.head) or self._last or records.head(tx) or (0, GENESIS)
