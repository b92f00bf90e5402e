"""A reader that rests now and then, and stops when it is told to."""

import pytest

from checkrein.store import gently
from checkrein.store.gateway_clients import CLIENTS
from checkrein.store.gently import Gently


def test_it_reads_what_is_there_and_rests_in_between(store, monkeypatch):
    rests = []
    monkeypatch.setattr(gently.time, "sleep", rests.append)
    reader = Gently(store, seconds=0.5, every=3)
    assert [reader.query("SELECT ?", (number,)) for number in range(7)] == [[(n,)] for n in range(7)]
    assert rests == [0.5, 0.5]


def test_it_says_whether_a_table_was_written_to(store):
    reader = Gently(store, seconds=0, every=1)
    assert reader.writes_to(CLIENTS.table) == store.writes_to(CLIENTS.table)


def test_given_up_it_ends_whoever_reads(store):
    reader = Gently(store, seconds=0, every=1)
    reader.query("SELECT 1")
    reader.give_up()
    with pytest.raises(SystemExit):
        reader.query("SELECT 1")
