import pytest

from checkrein.ledger import recent
from checkrein.ledger.recent import Recent


def row(seq, body="{}"):
    return (seq, 1.0, "decided", f"e{seq}", body, "h")


def test_what_comes_after_is_handed_over_once():
    kept = Recent()
    kept.add([row(3), row(4)])
    kept.add([row(5)])
    assert [each[0] for each in kept.take(3)] == [4, 5]
    assert kept.take(5) is None


@pytest.mark.invariant("there is no gap between what was followed before and what is here")
def test_nothing_is_handed_over_across_a_gap():
    kept = Recent()
    kept.add([row(3)])
    assert kept.take(1) is None


def test_all_of_it_may_be_known_already():
    kept = Recent()
    kept.add([row(3), row(4)])
    assert kept.take(9) == []


def test_what_nobody_takes_is_let_go(monkeypatch):
    kept = Recent()
    monkeypatch.setattr(recent, "MOST_CHARACTERS", 100)
    kept.add([row(1)])
    kept.add([row(2, "x" * 200)])
    kept.add([row(3)])
    assert kept.take(0) is None
