"""Tokens are handed out and taken back in one way, whoever they are for."""

import pytest

from checkrein.authority import holders
from checkrein.errors import InputError, NotFoundError
from checkrein.store.gateway_clients import CLIENTS


@pytest.mark.parametrize("noun", ["client", "token"])
@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "é", "a" * 65, "a\n", 7, None])
def test_names_are_plain(do, noun, name):
    with pytest.raises(InputError):
        do(f"{noun}.add", name=name)


def test_whoever_chose_a_name_that_cannot_be_is_shown_one_that_can():
    with pytest.raises(InputError, match=r"A client's name has letters.*For example: add laptop"):
        holders.named("a b", "client", "add laptop")
    assert holders.named("a.b-c_9", "client", "add laptop") == "a.b-c_9"


def test_a_token_is_taken_back_and_recorded_in_one_step(do, asked, pipeline, recorded, monkeypatch):
    made = do("client.add", name="laptop")

    def full(*_):
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(type(pipeline.ledger), "append", full)
        with pytest.raises(OSError, match="no room"):
            holders.take_back(asked, CLIENTS, "laptop", "client_revoked")
    assert [each.name for each in CLIENTS.living(pipeline.store)] == ["laptop"]
    gone = holders.take_back(asked, CLIENTS, "laptop", "client_revoked")
    assert recorded("client_revoked") == [{"id": made["id"], "name": "laptop", "actor": asked.actor}]
    assert gone.id == made["id"] and CLIENTS.living(pipeline.store) == []


def test_what_nobody_has_leaves_no_record(asked, recorded):
    with pytest.raises(NotFoundError):
        holders.take_back(asked, CLIENTS, "laptop", "client_revoked")
    assert recorded("client_revoked") == []
