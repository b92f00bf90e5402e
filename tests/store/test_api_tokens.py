import pytest

from checkrein.errors import NotFoundError
from checkrein.store.api_tokens import API_TOKENS, ApiToken, note_use


def put(store, name="notebook", id="t1", at=1.0, **may):
    may = {"may_change": True, "may_answer": False, **may}
    made = ApiToken(id=id, name=name, hash=f"hash of {id}", made_at=at, made_by="ada", **may)
    store.write(lambda tx: API_TOKENS.add(tx, made))
    return made


def test_a_token_comes_back_as_it_went_in(store):
    made = [
        put(store),
        put(store, "b", "t2", 2.0, may_change=False),
        put(store, "c", "t3", 3.0, may_answer=True),
    ]
    assert API_TOKENS.living(store) == made


def test_when_it_was_used_is_kept(store):
    put(store)
    store.write(lambda tx: note_use(tx, "t1", 7.0))
    assert API_TOKENS.living(store)[0].used_at == 7.0


def test_a_person_is_told_how_to_see_the_tokens(store):
    with pytest.raises(NotFoundError, match=r"no token 'notebook'.*`checkrein chat token list`"):
        store.write(lambda tx: API_TOKENS.revoke(tx, "notebook", "ada", 5.0))


def test_tokens_can_be_told_by_how_they_begin():
    assert API_TOKENS.new()[1].startswith("ckapi_")
