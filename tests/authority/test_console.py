"""Only a person gets the link into the console, and only from a server that can start it."""

import pytest

from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.errors import InputError, PersonOnlyError
from checkrein.store import records


class Running:
    """A console as the authority sees it."""

    port, socket = 1, "/run/x.web"

    def link(self):
        return "http://127.0.0.1:1/signin/x"

    def sign_in_file(self):
        return "/run/x.signin/1.html"


WHERE = {"port": 1, "socket": "/run/x.web"}


@pytest.fixture
def asked(pipeline):
    def make(console=Running):
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        return Asked(pipeline, agents, myself(), None, console)

    return make


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {"url": "http://127.0.0.1:1/signin/x"}),
        ({"file": False}, {"url": "http://127.0.0.1:1/signin/x"}),
        ({"file": True}, {"file": "/run/x.signin/1.html"}),
    ],
)
def test_a_link_or_a_file_is_given_and_recorded(pipeline, asked, given, made):
    assert perform(asked(), "console.open", given) == made | WHERE
    assert [row[2] for row in records.after(pipeline.store, 0)] == ["console_opened"]


def test_without_a_server_there_is_none(asked):
    with pytest.raises(InputError, match="No server"):
        perform(asked(None), "console.open", {})


def test_a_passphrase_that_is_set_is_asked_for(asked):
    given = asked()
    perform(given, "passphrase.set", {"new": "correct horse"})
    with pytest.raises(PersonOnlyError, match="passphrase"):
        perform(given, "console.open", {})
    assert perform(given, "console.open", {"passphrase": "correct horse"})["url"]
