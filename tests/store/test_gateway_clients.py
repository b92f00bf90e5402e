import pytest

from checkrein.errors import InputError, NotFoundError
from checkrein.store.gateway_clients import (
    GatewayClient,
    add_client,
    all_clients,
    hash_of,
    living_clients,
    revoke_client,
)


def put(store, name="laptop", id="c1", at=1.0):
    made = GatewayClient(id=id, name=name, hash=hash_of(f"token of {id}"), made_at=at, made_by="ada")
    store.write(lambda tx: add_client(tx, made))
    return made


def revoke(store, name, now=5.0):
    return store.write(lambda tx: revoke_client(tx, name, "ada", now))


def test_a_client_is_kept_with_the_hash_of_its_token_only(store):
    made = put(store)
    assert living_clients(store) == [made]
    assert "token of" not in str(store.query("SELECT * FROM gateway_client"))
    assert made.hash == hash_of("token of c1") != hash_of("token of c2")


def test_names_are_unique_among_the_living(store):
    put(store)
    with pytest.raises(InputError, match="already"):
        put(store, id="c2")
    revoke(store, "laptop")
    again = put(store, id="c2", at=2.0)
    assert living_clients(store) == [again]


def test_a_revoked_one_stays_for_the_record(store):
    put(store)
    put(store, "phone", "c2", 2.0)
    assert revoke(store, "c1").name == "laptop"
    assert [each.name for each in living_clients(store)] == ["phone"]
    first, second = all_clients(store)
    assert (first.revoked_at, first.revoked_by, second.revoked_at) == (5.0, "ada", None)


def test_what_is_not_there_is_not_revoked(store):
    with pytest.raises(NotFoundError, match="no client 'laptop'"):
        revoke(store, "laptop")
    put(store)
    revoke(store, "laptop")
    with pytest.raises(NotFoundError):
        revoke(store, "laptop")
