"""Verifies the whole record: chain, checkpoints and their copies, times, triggers, the unsigned end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from checkrein.errors import CheckreinError, LedgerError
from checkrein.ledger.chain import GENESIS, Break, Link, first_break, said_in
from checkrein.ledger.checkpoints import Checkpoint, is_signed
from checkrein.ledger.copies import FILE, kept, newest_copy, newest_in, others_of
from checkrein.ledger.record import Ledger
from checkrein.ledger.signing import CLOSED, MOST_RECORDS, MOST_SECONDS, RESUMED, Tail
from checkrein.ledger.terms import terms_of
from checkrein.ledger.timing import Timing
from checkrein.store import Reader, lookup, records
from checkrein.store.sqlite import is_open_for_writing
from checkrein.store.traces import leftovers, trigger_faults

Progress = Callable[[int], None]
_STEP = 10_000
# A server that is busy signs a little later than it should.
_GRACE = 10.0
UNKNOWABLE = (
    "Not shown: whether code that can read ledger.key wrote another history, or all files were put back to "
    "an earlier state. A checkpoint kept elsewhere shows it: `checkrein audit verify --against FILE`."
)


class Finding(msgspec.Struct, frozen=True):
    """Something a person should know: `seq` is the record it is about, 0 the store as a whole."""

    kind: str
    seq: int
    reason: str


class Report(msgspec.Struct, frozen=True):
    """What verification found.

    `broken` is the first record that is not what was written. `findings` are what an undisturbed store does
    not show, `notes` what it may show. `unsigned` records at the end follow the chain and are not proven.
    `against` is the newest record that a checkpoint kept elsewhere was made for.
    """

    records: int
    head: str
    checkpoints: int
    broken: Break | None = None
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    unsigned: int = 0
    against: int = 0

    @property
    def ok(self) -> bool:
        return self.broken is None and not self.findings

    @property
    def trouble(self) -> str:
        """The first thing that is wrong, in words; empty where nothing is."""
        return self.broken.reason if self.broken else self.findings[0].reason if self.findings else ""


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
    now: float | None = None,
) -> Report:
    """Walk every record. `witnesses` are checkpoints kept elsewhere, under the key that signed them."""
    return _Verification(reader, folder, public, witnesses, time.time() if now is None else now).run(progress)


class _Verification:
    """One look at one store. A server may write meanwhile: what comes after the look began is left out."""

    def __init__(
        self, reader: Reader, folder: Path, public: str, witnesses: tuple[Checkpoint, ...], now: float
    ) -> None:
        self._reader, self._folder, self._public = reader, folder, public
        self._witnesses, self._now = witnesses, now
        self._findings: list[Finding] = []
        self._notes: list[Finding] = []
        self._timing, self._last_kind, self._starts = Timing(), "", list[Link]()
        # Looked at before and after: what is closed or opened meanwhile was not killed.
        self._running = is_open_for_writing(folder)
        # The copies first: whatever is in them was in the store before.
        self._in_file, self._file = kept(folder), folder / FILE
        self._newest, self._newest_at = None, newest_copy(folder)
        try:
            self._newest = newest_in(self._newest_at)
        except LedgerError as error:
            self._find("copy", 0, error.message.removesuffix("."))
        head = records.head(reader)
        self._end = head[0] if head else 0
        # A checkpoint is written with its record: of those up to the end, all are here by now.
        stored = [(seq, Checkpoint(body, mark)) for seq, body, mark in records.checkpoints(reader)]
        after = records.head(reader)
        self._cut = max((seq for seq, _ in stored if seq > (after[0] if after else 0)), default=0)
        self._stored = [each for seq, each in stored if seq <= self._end]

    def run(self, progress: Progress | None) -> Report:
        known = list(dict.fromkeys([*self._stored, *self._in_file, *self._newest_ones(), *self._witnesses]))
        contents = [each.content for each in known]
        covered = max((seq for each in contents if (seq := int(each["seq"])) <= self._end), default=0)
        dense = any(each.previous is not None for each in known)
        seen, tail = dict.fromkeys((int(each["seq"]) for each in contents), ""), Tail(dense)
        try:
            found = first_break(self._watched(seen, tail, covered, progress))
        except Hidden as hidden:
            found = hidden.found
        if isinstance(found, Break):
            return self._report(found.seq - 1, "", found)
        seq, head = found
        broken = self._against(known, seen) or tail.fault
        if broken is None:
            self._look_at_tail(tail, covered, dense)
            self._look_at_copies()
            self._look_at_store()
            for link in self._starts:
                self._look_at_start(link)
        return self._report(seq, head, broken, tail.count)

    def _report(self, seq: int, head: str, broken: Break | None, unsigned: int = 0) -> Report:
        against = max((int(each.content["seq"]) for each in self._witnesses), default=0)
        for kind, seq_, reason in self._timing.found:
            self._find(kind, seq_, reason, note=kind == "clock")
        # What lies before a checkpoint that a person kept has been seen by then.
        vouched = 0 if broken else against
        earlier = [
            each for each in self._findings if 0 < each.seq <= vouched and each.kind in ("time", "start")
        ]
        return Report(
            seq,
            head,
            len(self._stored),
            broken,
            tuple(each for each in self._findings if each not in earlier),
            (*self._notes, *earlier),
            unsigned,
            0 if broken else against,
        )

    def _find(self, kind: str, seq: int, reason: str, *, note: bool = False) -> None:
        (self._notes if note else self._findings).append(Finding(kind, seq, reason))

    def _newest_ones(self) -> list[Checkpoint]:
        return [self._newest] if self._newest and self._end else []

    def _watched(
        self, seen: dict[int, str], tail: Tail, covered: int, progress: Progress | None
    ) -> Iterator[Link]:
        filed = lookup.filed(self._reader)
        for row in records.after(self._reader, 0):
            link = Link(*row)
            if link.seq > self._end:
                return
            if link.seq in seen:
                seen[link.seq] = link.hash
            if progress and link.seq % _STEP == 0:
                progress(link.seq)
            yield link
            _check_filed(self._reader, link, filed)
            self._timing.add(link.seq, link.at)
            self._last_kind = link.kind
            if link.kind == RESUMED:
                self._starts.append(link)
            if link.seq > covered:
                tail.add(link)

    def _look_at_start(self, link: Link) -> None:
        """What a server said about how it found the record."""
        said: dict[str, Any] = said_in(link.body)["data"]
        unsigned, after = said.get("unsigned", 0), said.get("after", 0)
        if said.get("killed"):
            text = f"record {link.seq}: what wrote the record until then was killed. "
            if unsigned:
                text += f"{unsigned} record(s) after {after} were not signed; they followed the chain"
            else:
                text += f"Up to {MOST_RECORDS - 1} unsigned records after {after} may have been cut off"
            self._find("start", link.seq, text, note=unsigned < MOST_RECORDS)
        for doubt in said.get("doubts", ()):
            self._find("start", link.seq, f"record {link.seq}: when a server started, {doubt}")

    def _against(self, known: list[Checkpoint], seen: dict[int, str]) -> Break | None:
        """The first checkpoint the record does not agree with."""
        if self._cut:
            text = f"the record was cut: it ends at {self._end}, a checkpoint says it reached {self._cut}"
            return Break(self._end + 1, text)
        if known and not self._public:
            return Break(1, "ledger.key is gone, so no checkpoint can be checked")
        for checkpoint in sorted(known, key=lambda each: int(each.content["seq"])):
            content = checkpoint.content
            seq = content["seq"]
            if not is_signed(checkpoint, self._public):
                made_anew = content.get("key") != self._public
                why = ": the key or the record was made anew" if made_anew else ""
                return Break(
                    seq, f"the checkpoint at record {seq} is not signed by this installation's key{why}"
                )
            if seq > self._end:
                text = f"the record was cut: it ends at {self._end}, a checkpoint says it reached {seq}"
                return Break(self._end + 1, text)
            if (seen[seq] or GENESIS) != content["hash"]:
                return Break(seq, f"record {seq} is not the one the checkpoint there was made for")
        return None

    def _look_at_tail(self, tail: Tail, covered: int, dense: bool) -> None:
        """The records no checkpoint covers: those that are there, and those that could have been cut off."""
        closed = self._last_kind == CLOSED or not dense
        self._running = self._running or is_open_for_writing(self._folder)
        if not tail.count and (closed or self._running):
            return
        first, age = self._end - tail.count + 1, self._now - tail.since
        which = f"{tail.count} record(s) from {first} on are not signed"
        if not tail.count:
            text = (
                f"the record was not closed: what wrote it was killed. Up to {MOST_RECORDS - 1} records of "
                f"its last {MOST_SECONDS:.0f} s, after record {self._end}, may have been cut off"
            )
            self._find("unsigned", first, text)
            return
        late = tail.count >= MOST_RECORDS or age > MOST_SECONDS + _GRACE or tail.latest > self._now + _GRACE
        if self._running and not late:
            self._find("unsigned", first, f"{which} yet", note=True)
            return
        why = "there is no checkpoint at all"
        if covered:
            why = "what writes the record does not sign it" if self._running else "what wrote them was killed"
        if tail.latest > self._now + _GRACE:
            why += ", and they are dated in the future"
        state = "They follow the chain; that nobody changed, added or removed some is not proven"
        self._find("unsigned", first, f"{which}: {why}. {state}")

    def _look_at_copies(self) -> None:
        """Checkpoints that are in one place and not in another."""
        stored = {each.content["seq"]: each for each in self._stored}
        for each in self._in_file:
            if stored.get(each.content["seq"]) != each:
                seq = each.content["seq"]
                self._find("checkpoint", seq, f"the checkpoint at record {seq} was removed from the store")
        before = 0
        for seq, each in stored.items():
            if each.previous not in (None, before):
                text = f"the checkpoint at record {each.previous}, before the one at {seq}, is missing"
                self._find("checkpoint", int(each.previous or 0), text)
            before = seq
        in_file = {each.content["seq"] for each in self._in_file}
        # The newest copy is written after the file.
        copied = max((*in_file, self._newest.content["seq"] if self._newest else 0))
        lacking = [seq for seq, each in stored.items() if seq not in in_file and each.previous is not None]
        gone = [seq for seq in lacking if seq <= copied]
        for seq in gone:
            self._find("checkpoint", seq, f"the checkpoint at record {seq} was removed from {self._file}")
        if len(gone) < len(lacking):
            text = f"{len(lacking) - len(gone)} checkpoint(s) are not in {self._file} yet"
            self._find("checkpoint", lacking[-1], text, note=True)
        self._look_at_newest(stored)

    def _look_at_newest(self, stored: dict[int, Checkpoint]) -> None:
        """The copy in the user's configuration folder, which pins the key."""
        newest, path = self._newest, self._newest_at
        if newest is not None:
            seq = newest.content["seq"]
            if not self._end:
                text = f"the record was made anew: {path} is of one that reached record {seq}"
                self._find("copy", 0, text)
            elif seq not in stored:
                self._find("checkpoint", seq, f"the checkpoint at record {seq} was removed from the store")
            return
        long_ago = self._now - MOST_SECONDS - _GRACE
        copied = any(each.previous is not None for each in self._in_file) or any(
            each.previous is not None and float(each.content.get("at", 0)) < long_ago
            for each in stored.values()
        )
        if copied and not any(each.kind == "copy" for each in self._findings):
            why = "so nothing shows whether the key was made anew"
            text = f"{path} with the newest checkpoint is missing, {why}"
            self._find("copy", 0, text)
        for other, each in others_of(path, {self._public}):
            if (seq := each.content["seq"]) > self._end:
                self._find("copy", seq, f"{other} is of the same key and reached record {seq}")

    def _look_at_store(self) -> None:
        for text in trigger_faults(self._reader):
            self._find("trigger", 0, text)
        for text in leftovers(self._reader):
            self._find("leftover", 0, text)


class BackgroundCheck(threading.Thread):
    """Verifies the whole record while the product works; a broken one stops the ledger from going on."""

    def __init__(
        self, reader: Reader, folder: Path, ledger: Ledger, say: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(name="checkrein-verify", daemon=True)
        self._reader, self._folder, self._ledger, self._say = reader, folder, ledger, say
        self.report: Report | None = None

    def run(self) -> None:
        try:
            signer = self._ledger.signer
            self.report = verify(
                self._reader, self._folder, signer.public if signer.exists else "", now=self._ledger.clock()
            )
            found = self.report.broken.reason if self.report.broken else ""
        except CheckreinError as error:
            found = str(error)
        self._ledger.broken = self._ledger.broken or found
        if self._say is not None:
            for text in (found, *(each.reason for each in (self.report.findings if self.report else ()))):
                if text:
                    self._say(f"the record: {text}; see `checkrein audit verify`")


def _check_filed(reader: Reader, link: Link, filed: int) -> None:
    """A sealed decision nobody can find any more was hidden."""
    if link.kind == "decided" and link.seq <= filed:
        terms = terms_of(said_in(link.body)["data"])
        if not lookup.is_filed(reader, link.entry, terms):
            raise Hidden(Break(link.seq, f"record {link.seq} was taken out of the index it is found by"))
