"""What a person decided about each version."""

import pytest

from checkrein.doors.gateway import pins as module
from checkrein.doors.gateway.definitions import read
from checkrein.doors.gateway.pins import Pins
from checkrein.errors import StoreError


@pytest.fixture
def pins(pipeline, clock):
    made = Pins(pipeline.store, pipeline.ledger, clock)
    made.load("s")
    return made


def tool(**more):
    return read("s", "tool", {"name": "t", **more})


def seen(pipeline):
    return pipeline.store.query("SELECT count(*) FROM record WHERE kind = 'definitions_seen'")[0][0]


@pytest.mark.invariant("only a row that says so, word for word, makes a version accepted")
def test_new_then_accepted_then_changed_then_refused(pins, clock):
    first, second = tool(), tool(title="T")
    assert pins.state(first) == "new" and pins.first_accepted(first) is None
    pins.see("s", [first])
    assert pins.state(first) == "new"
    pins.decide("s", [first], "accepted", "ada")
    assert pins.state(first) == "accepted" and pins.first_accepted(second) == clock.now
    assert pins.state(second) == "changed" and pins.before(second).hash == first.hash
    pins.decide("s", [second], "refused", "ada")
    assert pins.state(second) == "refused" and pins.state(first) == "accepted"


def test_a_version_nobody_decided_about_does_not_make_the_next_one_a_change(pins):
    pins.see("s", [tool()])
    assert pins.state(tool(title="T")) == "new" and pins.before(tool(title="T")) is None


def test_the_first_acceptance_counts_while_it_stands(pins, clock):
    pins.decide("s", [tool()], "accepted", "ada")
    begun = clock.now
    clock.now += 10
    pins.decide("s", [tool(title="T")], "accepted", "ada")
    assert pins.first_accepted(tool()) == begun
    pins.decide("s", [tool()], "refused", "ada")
    assert pins.first_accepted(tool()) == clock.now


def test_the_version_to_compare_with_is_the_last_accepted_one(pins, clock):
    for title, word in (("1", "accepted"), ("2", "accepted"), ("3", "refused")):
        clock.now += 1
        pins.decide("s", [tool(title=title)], word, "ada")
    assert pins.before(tool(title="4")).hash == tool(title="2").hash


def test_a_server_never_loaded_has_nothing_accepted(pins):
    other = read("other", "tool", {"name": "t"})
    assert pins.state(other) == "unreadable" and not pins.is_read("other")


def test_a_store_that_cannot_be_read_accepts_nothing(pipeline, clock, monkeypatch):
    made = Pins(pipeline.store, pipeline.ledger, clock)
    made.load("s")
    made.decide("s", [tool()], "accepted", "ada")

    def broken(*_):
        raise StoreError("The disk is gone.")

    monkeypatch.setattr(module, "pins_of", broken)
    made.load("s")
    assert made.state(tool()) == "unreadable" and made.first_accepted(tool()) is None
    made.see("s", [tool(title="T")])
    assert seen(pipeline) == 0


def test_a_server_that_changes_all_the_time_is_not_written_about_for_ever(pins, pipeline, clock):
    for number in range(module.MOST_NOTED + 50):
        pins.see("s", [tool(title=str(number))])
    assert seen(pipeline) == module.MOST_NOTED
    clock.now += 3601
    pins.see("s", [tool(title="later")])
    assert seen(pipeline) == module.MOST_NOTED + 1


def test_a_version_seen_earlier_is_found_again(pins):
    pins.see("s", [tool()])
    assert pins.kept("s", "tool", "t", tool().hash) == tool()
    assert pins.kept("s", "tool", "t", "0") is None
    assert pins.kept("other", "tool", "t", tool().hash) is None


@pytest.mark.invariant("a server that never shows the same twice fills neither the disk nor the memory")
def test_a_server_that_never_shows_the_same_twice_fills_nothing(pins, pipeline, clock, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 5_000)
    for number in range(20):
        clock.now += 3_600
        pins.see("s", [tool(description=f"{number}" + "x" * 1_000)])
    kept = pipeline.store.query("SELECT sum(length(definition)) FROM pin")[0][0]
    assert 3_000 < kept <= 5_000 and seen(pipeline) == 4
    later = tool(description="19" + "x" * 1_000)
    assert pins.state(later) == "new"
    pins.decide("s", [later], "accepted", "ada")
    assert pins.state(later) == "accepted", "a person may accept it all the same"
