import pytest

from checkrein import earning
from checkrein.call import tool_call
from checkrein.pipeline import Pipeline
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
    lessons = earning.Lessons(tx, earning.CreditLimit())
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


def credited(store, limit, count, at, domain="file_read"):
    """How many of so many successes at one moment raised the score."""
    raised = 0
    for _ in range(count):
        lessons_of = store.write(lambda tx: earned(tx, limit, domain, at))
        raised += bool(lessons_of)
    return raised


def earned(tx, limit, domain, at):
    lessons = earning.Lessons(tx, limit)
    after = lessons.learn("/p", [domain], "success", Settings(), at)
    lessons.keep()
    return after


@pytest.mark.invariant("no burst of successes raises a score further than its limits allow")
def test_a_burst_of_successes_earns_no_more_than_its_limits(store):
    limit = earning.CreditLimit()
    assert credited(store, limit, 30, 1_000.0) == 20
    assert credited(store, limit, 30, 1_059.0) == 0
    assert credited(store, limit, 5, 1_059.0, "docs_write") == 5
    assert credited(store, limit, 30, 1_060.0) == 20
    # A hundred and twenty in any hour, however they are spread.
    assert sum(credited(store, limit, 30, 1_200.0 + 60 * each) for each in range(20)) == 80
    assert credited(store, limit, 30, 1_000.0 + 3_599.0) == 0
    assert credited(store, limit, 1, 1_000.0 + 3_600.0) == 1


@pytest.mark.invariant("no burst of successes raises a score further than its limits allow")
def test_a_failure_always_counts(store):
    limit = earning.CreditLimit()
    credited(store, limit, 30, 1_000.0)
    before = trust_of(store, "/p")["file_read"]["score"]

    def fail(tx):
        lessons = earning.Lessons(tx, limit)
        lessons.learn("/p", ["file_read"], "failure", Settings(), 1_000.0)
        lessons.keep()

    store.write(fail)
    assert trust_of(store, "/p")["file_read"]["score"] == pytest.approx(before * 0.85)


@pytest.mark.invariant("no burst of successes raises a score further than its limits allow")
def test_a_restart_forgets_no_burst(pipeline, project, clock):
    def run(over, count):
        for _ in range(count):
            raw = {"tool": "Bash", "arguments": {"command": "ls"}, "project": project, "session": "s"}
            over.finish(over.decide(tool_call(raw)).entry, "success")
        return trust_of(over.store, project)["file_read"]["successes"]

    assert run(pipeline, 15) == 15
    again = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert run(again, 15) == 20
