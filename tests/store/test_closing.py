"""A store that is closed while other threads read: each read ends, and none begins."""

import threading

import pytest

from checkrein.errors import StoreError
from checkrein.store.sqlite import SqliteStore

LONG = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 300000) SELECT count(*) FROM n"


@pytest.mark.invariant("a read under way ends before its connection is closed")
def test_a_read_under_way_is_not_cut_off(tmp_path):
    for number in range(10):
        store, came, reading = SqliteStore.open(tmp_path / str(number)), [], threading.Event()

        def read(store=store, came=came, reading=reading):
            store.query("SELECT 1")
            reading.set()
            try:
                while True:
                    came.append(store.query(LONG))
            except StoreError:
                came.append("closed")

        thread = threading.Thread(target=read)
        thread.start()
        reading.wait()
        store.close()
        thread.join()
        assert came[-1] == "closed" and all(each == [(300_000,)] for each in came[:-1])
