"""Only a person gets the link into the console, and only from a server that can start it."""

import pytest

from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.errors import InputError, PersonOnlyError
from checkrein.store import records


@pytest.fixture
def asked(pipeline):
    def make(console):
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        return Asked(pipeline, agents, myself(), None, console)

    return make


def test_a_link_is_given_and_recorded(pipeline, asked):
    answer = perform(asked(lambda: "http://127.0.0.1:1/signin/x"), "console.open", {})
    assert answer == {"url": "http://127.0.0.1:1/signin/x"}
    assert [row[2] for row in records.after(pipeline.store, 0)] == ["console_opened"]


def test_without_a_server_there_is_none(asked):
    with pytest.raises(InputError, match="No server"):
        perform(asked(None), "console.open", {})


def test_a_passphrase_that_is_set_is_asked_for(asked):
    given = asked(lambda: "http://127.0.0.1:1/signin/x")
    perform(given, "passphrase.set", {"new": "correct horse"})
    with pytest.raises(PersonOnlyError, match="passphrase"):
        perform(given, "console.open", {})
    assert perform(given, "console.open", {"passphrase": "correct horse"})["url"]
