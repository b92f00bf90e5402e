"""The daily JSON lines: one line per call, in the file of the day it was settled, kept beside the ledger.

A copy for people and their tools; the ledger stays the record. The copy is caught up after every commit
and when it is opened, so a crash or a full disk delays lines and never loses or repeats one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path

import msgspec

from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.recent import Recent
from checkrein.store import Row, Store, Transaction, records
from checkrein.store.changes import change_number, set_number

_DAY = re.compile(r"\d{4}-\d\d-\d\d\.jsonl")
_SETTLING = ("decided", "answered", "finished", "closed")
# In the canonical text of a refusal, and hardly anywhere else: of decisions, only refusals settle a line.
_REFUSED = '"verdict":"deny"'
_WATERMARK = "mirror"
# How long lines are collected before they are copied; records read back at once, and the break after them.
_COLLECT, _GROUP, _BREAK = 0.25, 128, 0.005
# So many lines of one commit are written at once.
_FEW = 4
# So many calls without a line are remembered.
_MOST_OPEN = 1_024
_LONGEST_GOODBYE = 5.0
_DAY_SECONDS = 86_400
_encode_lines = msgspec.json.Encoder().encode_lines
Folders = Callable[[str], Path]


class _Line(msgspec.Struct):
    """The part of a line that says how far a file got."""

    settled_by: int = 0


class Mirror:
    """Copies settled entries into each project's folder, in order.

    A few lines follow their commit at once. Many at a time are left to a thread that takes breaks, so that no
    verdict waits for them.
    """

    def __init__(
        self, store: Store, folders: Folders, fallback: Folders, recent: Recent | None = None
    ) -> None:
        """`recent`: what was just written, for one who need not read it back."""
        self._store, self._folders, self._fallback, self._recent = store, folders, fallback, recent
        # The records of calls that have no line yet, as far as they were heard of.
        self._open: dict[str, list[Row]] = {}
        self._position = change_number(store, _WATERMARK)
        self._written: dict[Path, int] = {}
        self._copying = threading.Lock()
        # Whoever ends it finds its thread started, or not begun at all.
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None
        self._many = threading.Event()
        self._closed = False
        self.trouble = ""

    def follow(self, tx: Transaction, lines: int = 1) -> None:
        """Catch up once this group is committed."""
        before = tx.scratch.get(_WATERMARK, 0)
        tx.scratch[_WATERMARK] = before + lines
        if not before:
            tx.after(lambda: self._committed(tx.scratch[_WATERMARK]))

    def _committed(self, lines: int) -> None:
        if lines <= _FEW and not self._many.is_set() and self._copying.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                self._copying.release()
            return
        with self._beginning:
            if self._thread is None and not self._closed:
                made = threading.Thread(target=self._follow_up, name="checkrein-mirror", daemon=True)
                made.start()
                self._thread = made
        self._many.set()

    def _follow_up(self) -> None:
        while not self._closed:
            self._many.wait()
            # Where there are many, more come: fewer, longer copies cost less.
            if not self._closed:
                time.sleep(_COLLECT)
            self._many.clear()
            with self._copying:
                self._catch_up(pause=_BREAK)

    def catch_up(self) -> None:
        """Copy what was settled since last time, now."""
        with self._copying:
            self._catch_up()

    def close(self) -> None:
        """Copy what is left, and end the thread."""
        with self._beginning:
            self._closed = True
        self._many.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_GOODBYE)
            self.catch_up()

    def _catch_up(self, pause: float = 0.0) -> None:
        """Trouble is remembered and tried again later."""
        position = self._position
        try:
            for rows, entries in self._settled(position):
                known = {entry.settled_by: entry for entry in entries}
                settled_now = [(known[row[0]], row[1]) for row in rows if row[0] in known]
                for (project, _), lines in groupby(settled_now, key=_place):
                    self._copy(project, list(lines))
                position = rows[-1][0]
                if pause and not self._closed:
                    time.sleep(pause)
            self.trouble = ""
        except Exception as error:  # noqa: BLE001 - INVARIANT: whatever is wrong with the copy, later lines follow
            self.trouble = f"the daily lines cannot be written: {error}"
        self._position = position

    def _settled(self, position: int) -> Iterator[tuple[list[Row], list[Entry]]]:
        """Records after this one that may settle a line, a few at a time, and the entries they belong to."""
        fresh = self._recent.take(position) if self._recent is not None else None
        if fresh is not None:
            yield from self._heard(fresh)
            return
        self._open.clear()
        head = records.head(self._store)
        settled = records.after(self._store, position, _SETTLING, holding=_REFUSED)
        while group := list(islice(settled, _GROUP)):
            yield group, fold(records.of_entries(self._store, list(dict.fromkeys(row[3] for row in group))))
            position = group[-1][0]
        if head is not None and head[0] > position:
            # Nothing up to here settles a line; what comes next is heard of.
            yield [(head[0], 0.0, "", "")], []

    def _heard(self, fresh: list[Row]) -> Iterator[tuple[list[Row], list[Entry]]]:
        for start in range(0, len(fresh), 2 * _GROUP):
            rows, wanted = fresh[start : start + 2 * _GROUP], dict[str, None]()
            for row in rows:
                _, _, kind, entry, body, _ = row
                if kind == "decided":
                    self._open[entry] = [row]
                elif entry in self._open:
                    self._open[entry].append(row)
                if kind in _SETTLING and (kind != "decided" or _REFUSED in body):
                    wanted[entry] = None
            # INVARIANT: of a call that was not heard of from its beginning, everything is read.
            missing = [entry for entry in wanted if entry not in self._open]
            known = [row for entry in wanted for row in self._open.pop(entry, ())]
            yield rows, fold([*known, *records.of_entries(self._store, missing)])
        while len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def remember(self, tx: Transaction) -> None:
        """Keep the position in the store, so that opening it again starts here."""
        set_number(tx, _WATERMARK, self._position)

    def expire(self, project: str, days: int, now: float) -> None:
        """Remove a project's files older than `days`; 0 keeps them all."""
        with contextlib.suppress(OSError):
            expire(self._folders(project), days, now)

    def _copy(self, project: str, lines: list[tuple[Entry, float]]) -> None:
        """Lines of one project and one day, in order."""
        try:
            self._append(self._folders(project), lines)
        except OSError:
            # A project's own folder may be gone or read-only; ours is the next best place.
            self._append(self._fallback(project), lines)

    def _append(self, folder: Path, lines: list[tuple[Entry, float]]) -> None:
        if folder not in self._written:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._written[folder] = position_of(folder)
        # INVARIANT: a line that was written before is not written again.
        fresh = [entry for entry, _ in lines if (entry.settled_by or 0) > self._written[folder]]
        if not fresh:
            return
        path = folder / f"{_day(lines[0][1])}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            content = _encode_lines(fresh)
            # How far a file got that took only part of it, is read from the file.
            self._written.pop(folder)
            if os.write(descriptor, content) != len(content):
                raise OSError(28, "No space left on device")
            self._written[folder] = fresh[-1].settled_by or 0
        finally:
            os.close(descriptor)


@lru_cache(maxsize=64)
def _of_day(number: int) -> str:
    return f"{datetime.fromtimestamp(number * _DAY_SECONDS, UTC):%Y-%m-%d}"


def _day(at: float) -> str:
    return _of_day(int(at // _DAY_SECONDS))


def _place(line: tuple[Entry, float]) -> tuple[str, float]:
    """The project and the day a line belongs to."""
    return line[0].project, line[1] // _DAY_SECONDS


@lru_cache(maxsize=1024)
def default_folder(project: str, state: Path) -> Path:
    """A folder of the project's name in the state directory."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(project).name) or "default"
    return state / "audit" / f"{name}-{hashlib.sha256(project.encode()).hexdigest()[:8]}"


def folder_for(project: str, log_dir: str, state: Path) -> Path:
    """`audit.log_dir` (relative paths are inside the project), or the default folder."""
    if not log_dir:
        return default_folder(project, state)
    return Path(project or state) / Path(log_dir).expanduser()


def position_of(folder: Path) -> int:
    """The number of the last record copied here; a last line cut short by a crash is removed."""
    for path in sorted(_files(folder), reverse=True):
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            content = content[: content.rfind(b"\n") + 1]
            os.truncate(path, len(content))
        if content:
            last = content[content.rfind(b"\n", 0, -1) + 1 :]
            try:
                return msgspec.json.decode(last, type=_Line).settled_by
            except msgspec.MsgspecError:
                raise OSError(0, f"{path} ends with a line that is not ours") from None
    return 0


def expire(folder: Path, days: int, now: float) -> list[Path]:
    """Remove files older than `days`; 0 keeps them all."""
    oldest = f"{datetime.fromtimestamp(now, UTC) - timedelta(days=days):%Y-%m-%d}.jsonl"
    gone = [path for path in _files(folder) if days and path.name < oldest]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in folder.iterdir() if _DAY.fullmatch(path.name))
