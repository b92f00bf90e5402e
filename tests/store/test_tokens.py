"""Whoever has a token, in either table: kept by its hash, found while it holds."""

import pytest

from checkrein.errors import InputError, NotFoundError
from checkrein.store.api_tokens import API_TOKENS, ApiToken
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.tokens import hash_of, is_token


def client(**facts):
    return GatewayClient(**facts)


def program(**facts):
    return ApiToken(**facts, may_change=True, may_answer=False)


@pytest.fixture(params=[(CLIENTS, client), (API_TOKENS, program)], ids=["client", "token"])
def kind(request):
    return request.param


@pytest.fixture
def table(kind):
    return kind[0]


@pytest.fixture
def put(store, kind):
    table, make = kind

    def add(name="laptop", id="c1", at=1.0):
        made = make(id=id, name=name, hash=hash_of(f"token of {id}"), made_at=at, made_by="ada")
        store.write(lambda tx: table.add(tx, made))
        return made

    return add


@pytest.fixture
def revoke(store, table):
    return lambda name: store.write(lambda tx: table.revoke(tx, name, "ada", 5.0))


def test_only_the_hash_of_a_token_is_kept(store, table, put):
    made = put()
    assert table.living(store) == [made]
    assert "token of" not in str(store.query(f"SELECT * FROM {table.table}"))
    assert is_token("token of c1", made.hash) and not is_token("token of c2", made.hash)


def test_names_are_unique_among_the_living(store, table, put, revoke):
    put()
    with pytest.raises(InputError, match=r"'laptop' already.*revoke laptop"):
        put(id="c2")
    revoke("laptop")
    again = put(id="c2", at=2.0)
    assert table.living(store) == [again]


def test_a_revoked_one_stays_for_the_record(store, table, put, revoke):
    put()
    put("phone", "c2", 2.0)
    assert revoke("c1").name == "laptop"
    assert [each.name for each in table.living(store)] == ["phone"]
    first, second = table.all(store)
    assert (first.revoked_at, first.revoked_by, second.revoked_at) == (5.0, "ada", None)
    assert second.revoked_by == ""


def test_what_is_not_there_is_not_revoked(put, revoke):
    with pytest.raises(NotFoundError, match=r"There is no .* 'laptop'"):
        revoke("laptop")
    put()
    revoke("laptop")
    for name in ("laptop", "c1"):
        with pytest.raises(NotFoundError):
            revoke(name)


def test_tokens_are_long_never_the_same_and_say_whose_they_are(table):
    made = [table.new() for _ in range(50)]
    assert len({token for _, token in made}) == 50
    assert all(len(token) > 50 and table.id_in(token) == made_id for made_id, token in made)


@pytest.mark.parametrize("wrong", ["", "c1", "other_c1_secret", "{prefix}_c1", "{prefix}"])
def test_what_is_no_token_is_nobodys(table, wrong):
    prefix = table.new()[1].partition("_")[0]
    assert table.id_in(wrong.format(prefix=prefix)) == ""


def test_one_kind_of_token_is_not_taken_for_the_other():
    assert API_TOKENS.id_in(CLIENTS.new()[1]) == CLIENTS.id_in(API_TOKENS.new()[1]) == ""
