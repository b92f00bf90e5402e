"""One home for a case: a store that can die or be full at a chosen write, a pipeline over it, its record.

A driver opens its door over `world.pipeline`; `kill` abandons both as a killed server does.
"""

import threading
from typing import NamedTuple

import msgspec

from checkrein.core.approvals import sweep
from checkrein.core.lifecycle import FINAL, State, state_of
from checkrein.errors import StoreError, StoreFullError
from checkrein.ledger.entries import fold
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.questions import waiting
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE, until

DAY = 86_400.0


class FrailStore:
    """A store that refuses a chosen write as a full disk does, or dies right after a chosen record."""

    def __init__(self, store):
        self._store = store
        self.dead = False
        self.writes, self._refused = 0, frozenset()
        self._fatal, self._before = "", 0
        self._counting = threading.Condition()
        self._reading = 0

    def refuse(self, *numbers):
        """Refuse the writes with these numbers, counted from now; the first is 1."""
        with self._counting:
            self.writes, self._refused = 0, frozenset(numbers)

    def die_after(self, kind):
        """Die once another record of this kind is committed, before anybody hears of it."""
        self._fatal, self._before = kind, self.count(kind)

    def count(self, kind):
        return self._store.query("SELECT count(*) FROM record WHERE kind = ?", (kind,))[0][0]

    def die(self):
        self.dead = True

    def _take(self):
        self._check()
        with self._counting:
            self.writes += 1
            if self.writes in self._refused:
                raise StoreFullError("The disk is full; nothing was written.", remedy="Free some space.")

    def _check(self):
        if self.dead:
            raise StoreError("The server was killed.")

    def _watched(self, work):
        def watched(tx):
            tx.after(self._committed)
            return work(tx)

        return watched

    def _committed(self):
        if self._fatal and self.count(self._fatal) > self._before:
            self.dead = True

    def write(self, work, **how):
        self._take()
        found = self._store.write(self._watched(work), **how)
        self._check()
        return found

    def submit(self, work, **how):
        self._take()
        return self._store.submit(self._watched(work), **how)

    def offer(self, offers):
        self._take()
        self._store.offer([each._replace(work=self._watched(each.work)) for each in offers])

    def query(self, sql, parameters=()):
        with self._counting:
            self._check()
            self._reading += 1
        try:
            return self._store.query(sql, parameters)
        finally:
            with self._counting:
                self._reading -= 1
                self._counting.notify_all()

    def writes_to(self, table):
        self._check()
        return self._store.writes_to(table)

    def close(self):
        """Let go of it once nobody reads any more: callers of a door that was cut off may still look."""
        with self._counting:
            self.dead = True
            self._counting.wait_for(lambda: not self._reading, PATIENCE)
        self._store.close()


class World:
    """The store, the pipeline and the clock of one case; `tool` is what every door's tool does."""

    def __init__(self, clock, project, folder=None):
        self.clock, self.project = clock, project
        self.folder = folder or state_dir()
        self.ran, self.on_run = [], None
        self.asked = dict[str, None]()
        self.pipeline = self.store = None

    def open_store(self):
        """A store of its own for whoever opens the folder next."""
        self.store = FrailStore(SqliteStore.open(self.folder))
        return self.store

    def open(self):
        self.pipeline = Pipeline(self.open_store(), self.folder, clock=self.clock)
        self.pipeline.broker.reach(lambda: True)

    def tool(self, arguments):
        """What the tool does, whichever door it is behind."""
        self.ran.append(arguments)
        if self.on_run is not None:
            self.on_run()
        return f"ran with {arguments}"

    def die(self):
        """From this moment nothing of the server works, and nothing it did is tidied up."""
        self.store.die()
        self.wake(*self.asked)

    def wake(self, *entries):
        """Have whoever waits for these questions look at once."""
        for each in entries:
            self.pipeline.broker.settled(each)

    def shut(self):
        """Let go of a store that died."""
        self.store.close()
        self.on_run = None

    # -- the record ---------------------------------------------------------------------------------------

    def entries(self):
        rows = [row for row in records.after(self.store, 0) if row[3]]
        return fold(records.of_entries(self.store, list(dict.fromkeys(row[3] for row in rows))))

    def questions(self):
        return waiting(self.store)

    def question(self, *, awaited=True):
        """The newest open question; where its caller waits, once that is so."""

        def asked():
            found = self.questions()
            ready = found and (not awaited or self.pipeline.broker.is_awaited(found[-1].entry))
            return found[-1:] if ready else ()

        entry = until(asked, failing="no question was asked")[0].entry
        self.asked[entry] = None
        return entry

    def lines(self):
        """Every daily line, by entry."""
        found = {}
        for path in sorted(self.folder.rglob("audit/*/*.jsonl")):
            for line in path.read_bytes().splitlines():
                told = msgspec.json.decode(line)
                found.setdefault(told["id"], []).append(told)
        return found

    def ended(self):
        """What is on the record of every call once all time limits have passed and everything was swept."""
        for _ in range(2):
            self.clock.now += 400 * DAY
            sweep(self.pipeline)
        self.pipeline.mirror.catch_up()
        lines = self.lines()
        return [_told(each, lines.get(each.id, [])) for each in self.entries()]

    def close(self):
        if self.pipeline is None:
            return
        if self.store.dead:
            self.store.close()
        else:
            self.pipeline.close()


class Recorded(NamedTuple):
    """What the record and the daily lines say of one call in the end."""

    state: State
    answer: str | None
    result: str
    evidence: str | None
    lines: tuple[tuple[str, str], ...]
    entry: object

    @property
    def over(self):
        return self.state in FINAL


def _told(entry, lines):
    said = tuple((each["status"], each["result"]) for each in lines)
    return Recorded(state_of(entry), entry.answer, entry.result, entry.evidence, said, entry)
