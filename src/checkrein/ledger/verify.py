"""Verifies the whole record: the chain, the signed checkpoints, and that nothing was cut off."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from checkrein.errors import CheckreinError
from checkrein.ledger.chain import GENESIS, Break, Link, first_break, said_in
from checkrein.ledger.checkpoints import Checkpoint, is_signed, kept
from checkrein.ledger.record import Ledger
from checkrein.ledger.terms import terms_of
from checkrein.store import Reader, lookup, records

Progress = Callable[[int], None]
_STEP = 10_000


class Report(msgspec.Struct, frozen=True):
    """What verification found; `broken` is the first record that is not what was written."""

    records: int
    head: str
    checkpoints: int
    broken: Break | None = None

    @property
    def ok(self) -> bool:
        return self.broken is None


class Hidden(Exception):  # noqa: N818 - a finding on its way up
    def __init__(self, found: Break) -> None:
        super().__init__(found.reason)
        self.found = found


def verify(
    reader: Reader,
    folder: Path,
    public: str,
    *,
    witnesses: tuple[Checkpoint, ...] = (),
    progress: Progress | None = None,
) -> Report:
    """Walk every record. `witnesses` are checkpoints kept elsewhere, under the key that signed them."""
    stored = [Checkpoint(body, signature) for _, body, signature in records.checkpoints(reader)]
    known = [*stored, *kept(folder), *witnesses]
    hashes = {each.content["seq"]: each for each in known}
    seen: dict[int, str] = {}
    try:
        result = first_break(_watched(reader, set(hashes), seen, progress))
    except Hidden as hidden:
        result = hidden.found
    if isinstance(result, Break):
        return Report(result.seq - 1, "", len(stored), result)
    seq, head = result
    return Report(seq, head, len(stored), _against(known, seen, seq, public))


class BackgroundCheck(threading.Thread):
    """Verifies the whole record while the product works; a broken one stops the ledger from going on."""

    def __init__(self, reader: Reader, folder: Path, ledger: Ledger) -> None:
        super().__init__(name="checkrein-verify", daemon=True)
        self._reader, self._folder, self._ledger = reader, folder, ledger
        self.report: Report | None = None

    def run(self) -> None:
        try:
            self.report = verify(self._reader, self._folder, self._ledger.signer.public)
            found = self.report.broken.reason if self.report.broken else ""
        except CheckreinError as error:
            found = str(error)
        self._ledger.broken = self._ledger.broken or found


def _watched(
    reader: Reader, wanted: set[int], seen: dict[int, str], progress: Progress | None
) -> Iterator[Link]:
    filed = lookup.filed(reader)
    for row in records.after(reader, 0):
        link = Link(*row)
        if link.seq in wanted:
            seen[link.seq] = link.hash
        if progress and link.seq % _STEP == 0:
            progress(link.seq)
        yield link
        _check_filed(reader, link, filed)


def _check_filed(reader: Reader, link: Link, filed: int) -> None:
    """A sealed decision nobody can find any more was hidden."""
    if link.kind == "decided" and link.seq <= filed:
        terms = terms_of(said_in(link.body)["data"])
        if not lookup.is_filed(reader, link.entry, terms):
            raise Hidden(Break(link.seq, f"record {link.seq} was taken out of the index it is found by"))


def _against(known: list[Checkpoint], seen: dict[int, str], end: int, public: str) -> Break | None:
    """The first checkpoint the record does not agree with."""
    for checkpoint in sorted(known, key=lambda each: int(each.content["seq"])):
        content = checkpoint.content
        seq = content["seq"]
        if not is_signed(checkpoint, public):
            return Break(seq, f"the checkpoint at record {seq} is not signed by this installation's key")
        if seq > end:
            return Break(end + 1, f"the record was cut: it ends at {end}, a checkpoint says it reached {seq}")
        if seen.get(seq, GENESIS) != content["hash"]:
            return Break(seq, f"record {seq} is not the one the checkpoint there was made for")
    return None
