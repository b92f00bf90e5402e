import pytest

from checkrein.store.facts import Facts


@pytest.fixture
def facts(store):
    return Facts(store, lambda: 1.0)


def test_a_fact_is_kept_until_it_is_learned_anew(store, facts):
    assert facts.get("files", "needs", "f1") == frozenset()
    facts.put("files", "needs", "f1", frozenset({"roots"})).result()
    facts.put("files", "needs", "f1", frozenset({"roots", "sampling"})).result()
    facts.put("files", "eras", "f1", frozenset({"stateless"})).result()
    assert facts.get("files", "needs", "f1") == {"roots", "sampling"}
    assert facts.get("files", "eras", "f1") == {"stateless"}
    assert facts.get("mail", "needs", "f1") == frozenset()
    rows = store.query("SELECT server, fact, learned_at FROM server_fact ORDER BY fact")
    assert rows == [("files", "eras", 1.0), ("files", "needs", 1.0)]


def test_what_was_learned_of_another_server_by_that_name_is_not_believed(facts):
    facts.put("files", "needs", "f1", frozenset({"roots"})).result()
    assert facts.get("files", "needs", "f2") == frozenset()


def test_a_fact_that_cannot_be_read_is_none(store, facts):
    for value in ("", "{", "[]", '{"fingerprint": "f1", "words": "roots"}'):
        store.write(
            lambda tx, value=value: tx.execute(
                "INSERT INTO server_fact (server, fact, value, learned_at) VALUES ('files', 'needs', ?, 0) "
                "ON CONFLICT (server, fact) DO UPDATE SET value = excluded.value",
                (value,),
            )
        )
        assert facts.get("files", "needs", "f1") == frozenset()


def test_a_server_can_be_forgotten(facts):
    facts.put("files", "needs", "f1", frozenset({"roots"})).result()
    facts.put("mail", "needs", "f1", frozenset({"roots"})).result()
    assert facts.forget("files").result() == 1
    assert facts.get("files", "needs", "f1") == frozenset()
    assert facts.get("mail", "needs", "f1") == {"roots"}
