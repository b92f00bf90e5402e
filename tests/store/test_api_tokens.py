import pytest

from checkrein.errors import InputError, NotFoundError
from checkrein.store.api_tokens import (
    ApiToken,
    add_api_token,
    all_api_tokens,
    living_api_tokens,
    new_api_token,
    note_use,
    revoke_api_token,
)


def put(store, name="notebook", id="t1", at=1.0, **may):
    may = {"may_change": True, "may_answer": False, **may}
    made = ApiToken(id=id, name=name, hash=f"hash of {id}", made_at=at, made_by="ada", **may)
    store.write(lambda tx: add_api_token(tx, made))
    return made


def revoke(store, name):
    return store.write(lambda tx: revoke_api_token(tx, name, "ada", 5.0))


def test_a_token_comes_back_as_it_went_in(store):
    made = [
        put(store),
        put(store, "b", "t2", 2.0, may_change=False),
        put(store, "c", "t3", 3.0, may_answer=True),
    ]
    assert living_api_tokens(store) == made


def test_names_are_unique_among_the_living(store):
    put(store)
    with pytest.raises(InputError, match="already"):
        put(store, id="t2")
    revoke(store, "notebook")
    again = put(store, id="t2", at=2.0)
    assert living_api_tokens(store) == [again]
    assert [each.revoked_by for each in all_api_tokens(store)] == ["ada", ""]


def test_when_it_was_used_is_kept(store):
    put(store)
    store.write(lambda tx: note_use(tx, "t1", 7.0))
    assert living_api_tokens(store)[0].used_at == 7.0


def test_what_is_not_there_cannot_be_revoked(store):
    put(store)
    revoke(store, "t1")
    with pytest.raises(NotFoundError):
        revoke(store, "t1")


def test_tokens_are_long_and_never_the_same():
    made = {new_api_token()[1] for _ in range(50)}
    assert len(made) == 50
    assert all(len(each) > 50 and each.startswith("ckapi_") for each in made)
