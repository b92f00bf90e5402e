"""Tokens for programs: shown once, recorded never, and no more able than a person meant."""

import msgspec
import pytest

from checkrein.authority import perform
from checkrein.errors import InputError, NotFoundError, PersonOnlyError
from checkrein.store import records
from checkrein.store.api_tokens import API_TOKENS
from checkrein.store.tokens import hash_of


@pytest.mark.invariant("the record says who may come in, and never with what")
def test_a_token_is_shown_once_and_kept_nowhere(do, pipeline, recorded, asked):
    made = do("token.add", name="notebook")
    (kept,) = API_TOKENS.living(pipeline.store)
    assert kept.hash == hash_of(made["token"])
    assert recorded("token_added") == [
        {"id": kept.id, "name": "notebook", "may": ["read", "change"], "actor": asked.actor}
    ]
    secret = made["token"].split("_", 2)[2]
    everything = "".join(str(row) for row in records.after(pipeline.store, 0))
    listed = str(do("token.list"))
    for text in (everything, listed, str(pipeline.store.query("SELECT * FROM api_token"))):
        assert secret not in text
    assert kept.hash not in everything + listed


@pytest.mark.invariant("a token answers no question unless a person said that it may")
@pytest.mark.parametrize(
    ("given", "may"),
    [
        ({}, ["read", "change"]),
        ({"read_only": True}, ["read"]),
        ({"approve": True}, ["read", "change", "approve"]),
    ],
)
def test_it_may_do_what_was_said_and_answer_only_if_that_was_said(do, given, may):
    assert do("token.add", name="a", **given)["may"] == may


def test_who_only_reads_cannot_answer(do):
    with pytest.raises(InputError, match="cannot approve"):
        do("token.add", name="a", read_only=True, approve=True)


def test_with_it_comes_the_address(asked, do):
    assert do("token.add", name="before")["url"] == ""
    served = msgspec.structs.replace(asked, address=lambda: "http://127.0.0.1:7331")
    made = perform(served, "token.add", {"name": "a"})
    assert made["url"] == "http://127.0.0.1:7331/api/v1"


def test_a_token_is_taken_back_by_name_or_id(do, recorded, pipeline):
    one, two = (do("token.add", name=name) for name in ("a", "b"))
    do("token.revoke", name="a")
    do("token.revoke", name=two["id"])
    assert [each["id"] for each in recorded("token_revoked")] == [one["id"], two["id"]]
    assert do("token.list") == []
    assert all(each["revoked_at"] for each in do("token.list", revoked=True))
    with pytest.raises(NotFoundError):
        do("token.revoke", name="a")


class Everybody:
    def not_a_person(self, _peer):
        return "it comes from inside an agent"

    def refused(self, *_):
        pass


@pytest.mark.parametrize("verb", ["token.add", "token.revoke"])
def test_an_agent_makes_no_token(asked, pipeline, verb):
    with pytest.raises(PersonOnlyError):
        perform(msgspec.structs.replace(asked, agents=Everybody()), verb, {"name": "a"})
    assert API_TOKENS.living(pipeline.store) == []
