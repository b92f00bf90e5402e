"""Tokens for clients over HTTP: shown once, recorded never, taken back at once."""

import msgspec
import pytest

from checkrein.authority import Asked, perform
from checkrein.errors import InputError, NotFoundError, PersonOnlyError
from checkrein.store import records
from checkrein.store.gateway_clients import CLIENTS
from checkrein.store.tokens import hash_of


class Standing:
    """A gateway as the verbs see it."""

    def __init__(self):
        self.http_port, self.revoked, self.there = None, [], []

    def clients(self):
        return self.there

    def revoke(self, owner):
        self.revoked.append(owner)


@pytest.fixture
def gateway():
    return Standing()


@pytest.fixture
def served(asked, gateway):
    gateway.http_port = 7444
    behind = msgspec.structs.replace(asked, gateway=lambda: gateway)
    return lambda name, /, **params: perform(behind, name, params)


@pytest.mark.invariant("the record says who may come in, and never with what")
def test_a_token_is_shown_once_and_kept_nowhere(do, pipeline, recorded, asked):
    made = do("client.add", name="laptop")
    (kept,) = CLIENTS.living(pipeline.store)
    assert kept.hash == hash_of(made["token"])
    assert recorded("client_added") == [{"id": kept.id, "name": "laptop", "actor": asked.actor}]
    secret = made["token"].split("_", 2)[2]
    everything = "".join(str(row) for row in records.after(pipeline.store, 0))
    for text in (
        everything,
        str(do("client.list")),
        str(pipeline.store.query("SELECT * FROM gateway_client")),
    ):
        assert secret not in text
        assert kept.hash not in everything


def test_with_it_come_the_address_and_settings(do, served):
    assert do("client.add", name="before")["url"] == "http://127.0.0.1:7330/mcp"
    made = served("client.add", name="laptop")
    assert made["url"] == "http://127.0.0.1:7444/mcp"
    assert made["settings"]["mcpServers"]["checkrein"] == {
        "type": "http",
        "url": made["url"],
        "headers": {"Authorization": f"Bearer {made['token']}"},
    }


class Opening(Standing):
    """Its port is open from the second look on."""

    _looks = 0

    @property
    def http_port(self):
        self._looks += 1
        return 7445 if self._looks > 1 else None

    @http_port.setter
    def http_port(self, _port):
        pass


def test_the_address_is_waited_for(asked):
    opening = Opening()
    behind = msgspec.structs.replace(asked, gateway=lambda: opening)
    assert perform(behind, "client.add", {"name": "laptop"})["url"] == "http://127.0.0.1:7445/mcp"


def test_a_name_is_given_once(do, recorded):
    do("client.add", name="laptop")
    with pytest.raises(InputError, match="already"):
        do("client.add", name="laptop")
    assert len(recorded("client_added")) == 1


def test_without_a_port_nobody_gets_a_token(do, user_settings):
    user_settings("[gateway]\nhttp_port = 0")
    with pytest.raises(InputError, match="http_port"):
        do("client.add", name="laptop")


def test_everybody_with_a_token_is_listed_and_how_often_they_are_here(served, gateway):
    one, _ = (served("client.add", name=name) for name in ("laptop", "phone"))
    gateway.there = [{"owner": f"http:{one['id']}"}] * 2 + [{"owner": "stdio:1"}, {}]
    found = {each["name"]: each["connected"] for each in served("client.list")}
    assert found == {"laptop": 2, "phone": 0}


def test_a_token_taken_back_ends_everything_at_once(served, gateway, recorded, pipeline):
    made = served("client.add", name="laptop")
    gone = served("client.revoke", name="laptop")
    assert gone["id"] == made["id"]
    assert gateway.revoked == [f"http:{made['id']}"]
    assert CLIENTS.living(pipeline.store) == []
    assert recorded("client_revoked")[-1]["name"] == "laptop"
    assert served("client.list") == []
    (kept,) = served("client.list", revoked=True)
    assert kept["revoked_at"]
    with pytest.raises(NotFoundError):
        served("client.revoke", name="laptop")
    assert len(recorded("client_revoked")) == 1


def test_without_a_gateway_it_is_taken_back_all_the_same(do, pipeline):
    do("client.add", name="laptop")
    do("client.revoke", name="laptop")
    assert CLIENTS.living(pipeline.store) == []


def test_an_agent_gives_no_tokens_and_takes_none(asked):
    class Agent:
        def not_a_person(self, peer):
            return "it is an agent"

        def refused(self, name, why):
            refused.append(name)

    refused = []
    agent = Asked(asked.pipeline, Agent(), asked.peer)
    for name in ("client.add", "client.revoke"):
        with pytest.raises(PersonOnlyError):
            perform(agent, name, {"name": "laptop"})
    assert refused == ["client.add", "client.revoke"]
    assert perform(agent, "client.list", {}) == []
