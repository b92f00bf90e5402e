"""Writes events to the ledger: canonical, chained, checkpointed. Runs on the store's writer thread."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from checkrein.errors import CheckreinError, LedgerError
from checkrein.ledger.chain import GENESIS, Break, Link, body_of, first_break, seal
from checkrein.ledger.checkpoints import Checkpoint, Signer
from checkrein.store import Reader, Store, Transaction, records

CHECKPOINT_EVERY = 1000
_HEAD = "ledger.head"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_SET_ASIDE = "Run `checkrein audit verify`; to go on, move the store aside and keep it as evidence."


def new_id(now: float) -> str:
    """A short id that sorts by time: milliseconds, then 35 bits of chance."""
    number = (int(now * 1000) << 35) | secrets.randbits(35)
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(75, -1, -5))


class Ledger:
    """Appends to the chain inside the caller's transaction, so that a record and its effect are one."""

    def __init__(self, store: Store, signer: Signer, clock: Callable[[], float] = time.time) -> None:
        self.store, self.signer, self.clock = store, signer, clock
        self.broken = ""
        self._signed = 0

    def append(
        self,
        tx: Transaction,
        kind: str,
        data: dict[str, Any],
        *,
        entry: str = "",
        domains: Sequence[str] = (),
    ) -> int:
        """One event, sealed to what came before it; its number."""
        if self.broken:
            raise LedgerError(f"The record does not verify: {self.broken}.", remedy=_SET_ASIDE)
        seq, previous = self._head(tx)
        seq, at = seq + 1, self.clock()
        body = body_of(seq, at, kind, entry, data)
        sealed = seal(previous, body)
        indexed = [data.get(name, "") for name in ("project", "session", "tool", "decision")]
        records.append(tx, (seq, at, kind, entry, *indexed, body, sealed), domains)
        tx.scratch[_HEAD] = (seq, sealed)
        if seq - self._signed == CHECKPOINT_EVERY:
            tx.after(self._ask_for_checkpoint)
        return seq

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

    def check_recent(self, reader: Reader) -> None:
        """The bounded start-up check: every record since the last checkpoint still follows from it."""
        last = records.last_checkpoint(reader)
        seq, previous = 0, GENESIS
        if last is not None:
            content = Checkpoint(last[1], last[2]).content
            seq, previous = content["seq"], content["hash"]
        self._signed = seq
        result = first_break((Link(*row) for row in records.after(reader, seq)), seq=seq, previous=previous)
        if isinstance(result, Break):
            self.broken = result.reason

    def _ask_for_checkpoint(self) -> None:
        # Durable and on its own: a signed head must be on the disk before its copy is.
        with contextlib.suppress(CheckreinError):
            self.store.submit(self.checkpoint, durable=True)

    def _kept(self, seq: int, made: Checkpoint) -> None:
        self._signed = seq
        self.signer.keep(made)

    @staticmethod
    def _head(tx: Transaction) -> tuple[int, str]:
        return tx.scratch.get(_HEAD) or records.head(tx) or (0, GENESIS)
