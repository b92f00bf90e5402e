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
from checkrein.ledger.chain import GENESIS, Break, Link, body_of, first_break, seal
from checkrein.ledger.checkpoints import Checkpoint, Signer
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.recent import Recent
from checkrein.ledger.terms import terms_of
from checkrein.store import Reader, Row, Store, Transaction, lookup, records

CHECKPOINT_EVERY = 1000
_PAGE, _FILED = "ledger.page", "ledger.filed"
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
    """What a group adds to the record: its end so far, the rows, and the cards that find them."""

    __slots__ = ("cards", "head", "rows")

    def __init__(self, head: tuple[int, str]) -> None:
        self.head = head
        self.rows: list[Row] = []
        self.cards: list[tuple[str, Sequence[str]]] = []


class Ledger:
    """Appends to the chain inside the caller's transaction, so that a record and its effect are one."""

    def __init__(self, store: Store, signer: Signer, clock: Callable[[], float] = time.time) -> None:
        self.store, self.signer, self.clock = store, signer, clock
        self.broken = ""
        self._signed = 0
        self._last: tuple[int, str] | None = None
        self._unfiled: list[tuple[str, Sequence[str]]] = []
        self._filing = False
        self.recent = Recent()

    def append(
        self, tx: Transaction, kind: str, data: dict[str, Any], *, entry: str = "", terms: Sequence[str] = ()
    ) -> int:
        """One event, sealed to what came before it; its number. A decision is found by its `terms`."""
        if self.broken:
            raise LedgerError(f"The record does not verify: {self.broken}.", remedy=_SET_ASIDE)
        page = tx.scratch.get(_PAGE) or self._page(tx)
        seq, previous = page.head
        seq, at = seq + 1, self.clock()
        body = body_of(seq, at, kind, entry, data)
        sealed = seal(previous, body)
        row = (seq, at, kind, entry, body, sealed)
        records.append(tx, row)
        page.rows.append(row)
        page.head = seq, sealed
        if terms:
            page.cards.append((entry, terms))
        if len(self._unfiled) >= FILE_EVERY and not self._filing:
            tx.after(self._file_soon)
        # Also after one that could not be signed.
        if (seq - self._signed) % CHECKPOINT_EVERY == 0:
            # Durable and on its own: a signed head must be on the disk before its copy is.
            tx.after(self._sign_soon)
        return seq

    def _page(self, tx: Transaction) -> _Page:
        page = tx.scratch[_PAGE] = _Page(self._head(tx))
        tx.after(lambda: self._committed(page))
        return page

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
        seq, head = self._head(tx)
        last = records.last_checkpoint(tx)
        if self.broken or seq == (last[0] if last else 0):
            return None
        made = self.signer.sign(seq, head, self.clock())
        records.add_checkpoint(tx, seq, made.body, made.signature)
        tx.after(lambda: self._kept(seq, made))
        return made

    def open(self, reader: Reader) -> None:
        """Pick up where the record ends: what is not filed yet, and the bounded start-up check."""
        self._last = records.head(reader)
        try:
            self._check_recent(reader)
            unfiled = records.after(reader, lookup.filed(reader), ("decided",))
            self._unfiled = [(row[3], terms_of(body_of_row(row)["data"])) for row in unfiled]
        except LedgerError as error:
            self.broken = self.broken or error.message

    def _check_recent(self, reader: Reader) -> None:
        """Every record since the last checkpoint still follows from it."""
        last = records.last_checkpoint(reader)
        seq, previous = 0, GENESIS
        if last is not None:
            content = Checkpoint(last[1], last[2]).content
            seq, previous = content["seq"], content["hash"]
        self._signed = seq
        result = first_break((Link(*row) for row in records.after(reader, seq)), seq=seq, previous=previous)
        if isinstance(result, Break):
            self.broken = result.reason

    def _file_soon(self) -> None:
        if not self._filing and (filing := self._later(self.file)) is not None:
            self._filing = True
            # INVARIANT: what could not be filed now is filed with the next.
            filing.add_done_callback(self._filed)

    def _sign_soon(self) -> None:
        self._later(self.checkpoint, durable=True)

    def _filed(self, _filing: Future[Any]) -> None:
        self._filing = False

    def _later(self, work: Callable[[Transaction], Any], *, durable: bool = False) -> Future[Any] | None:
        """In a group of its own, when the store is free; a store that is closing does without."""
        with contextlib.suppress(CheckreinError):
            return self.store.submit(work, durable=durable)
        return None

    def _kept(self, seq: int, made: Checkpoint) -> None:
        self._signed = seq
        self.signer.keep(made)

    def _committed(self, page: _Page) -> None:
        self._last = page.head
        self.recent.add(page.rows)
        self._unfiled += page.cards

    def _head(self, tx: Transaction) -> tuple[int, str]:
        """Where the chain ends: in this group, as last committed, or (the first time) as stored."""
        page: _Page | None = tx.scratch.get(_PAGE)
        return (page and page.head) or self._last or records.head(tx) or (0, GENESIS)
