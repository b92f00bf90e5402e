"""Requests of chat as verbs: checked, handed on by name, and only for a person."""

import msgspec
import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.asking import Remember
from checkrein.authority import perform
from checkrein.authority.chat_requests import REQUESTS
from checkrein.errors import CheckreinError, InputError, PersonOnlyError
from talker import Talker

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture
def talker():
    return Talker()


@pytest.fixture
def behind(asked, talker):
    return msgspec.structs.replace(asked, chat=lambda: talker)


@pytest.fixture
def do(behind):
    return lambda name, /, **params: perform(behind, f"chat.{name}", params)


def test_what_is_asked_arrives_whole(do, talker):
    do("sessions")
    do("send", session="s1", text="hi", attachments=[{"name": "a", "data": "aGk="}])
    assert talker.asked == [
        ("sessions", {"archived": False, "limit": 100, "offset": 0}),
        (
            "send",
            {"session": "s1", "text": "hi", "attachments": [{"name": "a", "data": "aGk="}], "model": ""},
        ),
    ]


def test_only_what_changes_is_handed_on(do, talker):
    do("update", id="s1", pinned=True, threshold=None)
    assert talker.asked == [("update", {"id": "s1", "pinned": True, "threshold": None})]


def test_importing_is_a_word_of_python_too(do, talker):
    assert do("import", text="{}")["did"] == "import_"


def test_an_answer_says_whose_it_is_and_where_it_came_from(do, talker, asked):
    do("approve", run="r", call="c", remember={"what": "family", "for": "always"})
    (_, told) = talker.asked[-1]
    assert told["remember"] == Remember(what="family", span="always")
    assert (told["actor"], told["channel"]) == (asked.actor, "terminal")
    do("decline", run="r", call="c", reason="not now")
    assert talker.asked[-1][1] == {
        "run": "r",
        "call": "c",
        "reason": "not now",
        "actor": asked.actor,
        "channel": "terminal",
    }


@pytest.mark.parametrize(
    ("who", "channel", "actor"),
    [({"signed_in": True}, "console", ""), ({"token": "ci"}, "api", " (token ci)")],
)
def test_the_record_can_tell_a_browser_from_a_program(behind, talker, who, channel, actor):
    perform(msgspec.structs.replace(behind, **who), "chat.decline", {"run": "r", "call": "c"})
    told = talker.asked[-1][1]
    assert told["channel"] == channel
    assert told["actor"].endswith(actor)


def test_without_a_server_it_says_so(asked):
    with pytest.raises(InputError, match="running server"):
        perform(asked, "chat.sessions", {})


class Everybody:
    """Agents, all of them."""

    def __init__(self):
        self.told = []

    def not_a_person(self, _peer):
        return "it comes from inside an agent"

    def refused(self, verb, why):
        self.told.append((verb, why))


@pytest.mark.parametrize("name", [name for name, each in REQUESTS.items() if each.person])
def test_an_agent_may_ask_nothing_of_it(behind, talker, name):
    agents = Everybody()
    with pytest.raises(PersonOnlyError):
        perform(msgspec.structs.replace(behind, agents=agents), f"chat.{name}", {})
    assert talker.asked == []
    assert agents.told == [(f"chat.{name}", "it comes from inside an agent")]


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(REQUESTS)), params=st.dictionaries(st.text(), JSON, max_size=4))
def test_whatever_is_asked_there_is_an_answer_or_a_sentence(behind, name, params):
    try:
        perform(behind, f"chat.{name}", params)
    except CheckreinError as error:
        assert error.message
