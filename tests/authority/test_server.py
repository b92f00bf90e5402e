import os

import msgspec
import pytest

from checkrein import __version__
from checkrein.authority import perform
from checkrein.errors import InputError


def test_it_says_who_it_is(do):
    assert do("server.about") == {
        "version": __version__,
        "pid": os.getpid(),
        "running": False,
        "ledger": "ok",
        "mirror": "ok",
        "reachable": False,
    }


def test_a_broken_record_is_not_hidden(do, pipeline):
    pipeline.ledger.broken = "record 3 was changed"
    assert do("server.about")["ledger"] == "record 3 was changed"


def test_somebody_at_the_inbox_counts(do, pipeline):
    with pipeline.broker.attending():
        assert do("server.about")["reachable"] is True


def test_it_stops_when_asked_and_says_by_whom(asked, do, recorded):
    with pytest.raises(InputError, match="No server"):
        do("server.stop")
    stopped = []
    running = msgspec.structs.replace(asked, stop=lambda: stopped.append(True))
    assert perform(running, "server.about", {})["running"] is True
    perform(running, "server.stop", {})
    assert stopped == [True]
    assert recorded("server_stopped") == [{"actor": asked.actor}]
