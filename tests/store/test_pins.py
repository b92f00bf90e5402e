import hashlib

import pytest

from checkrein.store.pins import (
    ACCEPTED,
    MOST_UNDECIDED,
    REFUSED,
    SEEN,
    UNREADABLE,
    Pin,
    decide_pin,
    pins_of,
    see_pins,
)


def pin(text="{}", state=SEEN, name="t", server="s", seen_at=1.0, **more):
    return Pin(server, "tool", name, hashlib.sha256(text.encode()).hexdigest(), text, state, seen_at, **more)


def see(store, *pins):
    return store.write(lambda tx: see_pins(tx, pins))


def decide(store, made):
    store.write(lambda tx: decide_pin(tx, made))


def test_a_version_is_new_once(store):
    assert see(store, pin()) == [pin()]
    assert see(store, pin(seen_at=2.0), pin("[]", seen_at=2.0)) == [pin("[]", seen_at=2.0)]
    assert pins_of(store, "s") == [pin(), pin("[]", seen_at=2.0)]
    assert pins_of(store, "other") == []


def test_seeing_again_takes_no_decision_back(store):
    decided = pin(state=REFUSED, decided_at=3.0, actor="ada")
    decide(store, decided)
    assert see(store, pin(seen_at=9.0)) == []
    assert pins_of(store, "s") == [decided]


def test_a_decision_is_about_one_version_and_the_last_one_stands(store):
    see(store, pin(), pin("[]"))
    for state, at in ((ACCEPTED, 2.0), (REFUSED, 3.0)):
        decide(store, pin(state=state, decided_at=at, actor="ada"))
    assert {each.definition: each.state for each in pins_of(store, "s")} == {"{}": REFUSED, "[]": SEEN}


def test_whoever_changes_all_the_time_gets_no_more_room(store):
    accepted = pin("0", state=ACCEPTED, decided_at=0.5, actor="ada", seen_at=0.5)
    decide(store, accepted)
    see(store, pin("other", name="other"))
    for number in range(1, 20):
        see(store, pin(str(number), seen_at=float(number)))
    kept = [each.definition for each in pins_of(store, "s") if each.name == "t"]
    assert kept == ["0", *(str(number) for number in range(20 - MOST_UNDECIDED, 20))]
    assert "other" in [each.definition for each in pins_of(store, "s")]


def test_the_newest_version_is_kept_when_the_clock_goes_back(store):
    for number in range(10):
        see(store, pin(str(number), seen_at=100.0 - number))
    assert "9" in [each.definition for each in pins_of(store, "s")]


@pytest.mark.invariant("a row that is not wholly what was written accepts nothing")
@pytest.mark.parametrize(
    "change",
    [
        "definition = '{ }'",
        "definition = x'7b7d'",
        "state = 'Accepted'",
        "decided_at = NULL",
        "seen_at = 'long ago'",
    ],
)
def test_a_row_that_is_not_what_was_written_accepts_nothing(store, change):
    decide(store, pin(state=ACCEPTED, decided_at=2.0))
    store.write(lambda tx: tx.execute(f"UPDATE pin SET {change}"))
    (found,) = pins_of(store, "s")
    assert found.state == UNREADABLE
    decide(store, pin(state=ACCEPTED, decided_at=5.0))
    assert [each.state for each in pins_of(store, "s")] == [ACCEPTED]
