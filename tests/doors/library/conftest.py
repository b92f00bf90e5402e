"""What the library's tests stand on: gates in folders of their own, and somebody who answers later."""

import threading

import pytest

from checkrein import Gate
from checkrein.ledger.query import Filter, entries
from checkrein.store import records
from patience import PATIENCE, until


class Room:
    """Makes gates over one folder, as one program after another would, and reads their record."""

    def __init__(self, folder):
        self.folder, self.gate = folder, None

    def open(self, **options):
        self.close()
        self.gate = Gate(self.folder, **options)
        return self.gate

    def close(self):
        if self.gate is not None:
            self.gate.close()
            self.gate = None

    @property
    def pipeline(self):
        return self.gate.authority.pipeline

    def entries(self):
        self.gate.flush()
        return list(entries(self.pipeline.store, Filter()))[::-1]

    def last(self):
        return self.entries()[-1]

    def kinds(self, entry=None):
        self.gate.flush()
        return [row[2] for row in records.after(self.pipeline.store, 0) if entry in (None, row[3])]

    def question(self, number=0):
        """The question that waits, once whoever asked waits for it."""

        def asked():
            found = self.gate.pending()
            return found[number] if len(found) > number and found[number]["awaited"] else None

        return until(asked, failing="no question was asked")


@pytest.fixture
def room(tmp_path):
    made = Room(tmp_path / "gate")
    yield made
    made.close()


@pytest.fixture
def later():
    """Runs something in another thread; calling what it gives waits for the result."""
    threads = []

    def start(work, *arguments):
        came = {}

        def run():
            try:
                came["result"] = work(*arguments)
            except BaseException as error:
                came["error"] = error

        thread = threading.Thread(target=run)
        threads.append(thread)
        thread.start()

        def result():
            thread.join(PATIENCE)
            assert not thread.is_alive()
            if "error" in came:
                raise came["error"]
            return came["result"]

        return result

    yield start
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
