import pytest

from checkrein import earning
from checkrein.policy.trust import TrustState
from checkrein.settings import Settings, Trust
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import put_trust, trust_of

PLAIN = {
    "score": 0.4,
    "successes": 4,
    "failures": 0,
    "total_operations": 4,
    "last_operated_at": 5.0,
    "is_warming_up": False,
    "warmup_remaining": 0,
}


@pytest.fixture
def store():
    made = SqliteStore.open(state_dir())
    yield made
    made.close()


def learned(tx, *given):
    lessons = earning.Lessons(tx)
    after = lessons.learn(*given)
    lessons.keep()
    return after


def put(store, domain, **changes):
    store.write(lambda tx: put_trust(tx, "/p", domain, PLAIN | changes))


def test_an_empty_book_reads_the_initial_score(store):
    book = earning.book(store, "/p", Settings())
    assert (book.states, book.bad, book.inherited) == ({}, {}, 0.3)
    assert earning.book(store, "/p", Settings(trust=Trust(initial_score=0.1))).inherited == 0.1


def test_a_domain_starts_from_the_global_score(store):
    put(store, "_global", score=0.62, successes=20, total_operations=20)
    after = store.write(lambda tx: learned(tx, "/p", ["file_read"], "success", Settings(), 100.0))
    assert after == {"file_read": pytest.approx(0.62 + 0.38 * 0.05)}
    assert trust_of(store, "/p")["_global"]["score"] == 0.62
    assert earning.book(store, "/p", Settings()).bad == {}


@pytest.mark.parametrize(
    "changes",
    [{"score": 0.999}, {"score": 1.0, "successes": 500, "total_operations": 500}, {"score": -1.0}]
    + [{"successes": -4}, {"score": float("inf")}, {"total_operations": 0}],
)
def test_a_bad_record_is_not_used_learned_from_or_lost(store, changes):
    put(store, "file_read", **changes)
    book = earning.book(store, "/p", Settings())
    assert set(book.bad) == {"file_read"}
    assert book.scores(earning.model_for(Settings()), 0.0).of("file_read") == 0.3
    assert store.write(lambda tx: learned(tx, "/p", ["file_read"], "success", Settings(), 9.0)) == {}


def test_text_where_a_score_should_be_is_bad_too(store):
    put(store, "file_read")
    store.write(lambda tx: tx.execute("UPDATE trust SET score = 'high', successes = 'many'"))
    assert set(earning.book(store, "/p", Settings()).bad) == {"file_read"}


@pytest.mark.invariant("`_global` is read as a fallback and never credited")
def test_several_domains_are_each_credited(store):
    after = store.write(lambda tx: learned(tx, "/p", ["a", "b", "_global"], "failure", Settings(), 9.0))
    assert after == {"a": pytest.approx(0.255), "b": pytest.approx(0.255)}


def test_beginning_a_session_wakes_only_sleepers(store):
    put(store, "old", last_operated_at=0.0)
    put(store, "new", last_operated_at=30 * 86_400.0)
    put(store, "_global", last_operated_at=0.0)
    assert store.write(lambda tx: earning.begin_session(tx, "/p", Settings(), 31 * 86_400.0)) == ["old"]
    assert isinstance(earning.book(store, "/p", Settings()).states["old"], TrustState)
