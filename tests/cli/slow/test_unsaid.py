"""What could not be said leaves no empty conversation behind, and is said to the next one all the same."""

import pytest

from checkrein.cli.chat_asking import ask_chat, sessions
from checkrein.cli.chat_screen import Screen
from checkrein.cli.chat_talk import Talk
from checkrein.errors import InputError, NotFoundError


@pytest.fixture
def bare(server):
    """A provider is set up, and nobody said which models it has."""
    ask_chat("provider_set", name="bare", kind="compatible", base_url="http://127.0.0.1:9")


def test_nothing_empty_stays_where_no_model_can_be_asked(bare):
    talk = Talk(Screen())
    with pytest.raises(InputError, match="has no models yet"):
        talk.say("hello")
    assert (talk.session, sessions()) == ("", [])
    talk.open("", "demo/demo")
    assert talk.say("/say here")[0] == "done"


def test_a_conversation_that_was_there_stays(bare):
    made = ask_chat("create", title="Kept")["id"]
    with pytest.raises(InputError, match="has no models yet"):
        Talk(Screen(), session=made).say("hello")
    assert [each["id"] for each in sessions()] == [made]


def test_who_names_a_model_nobody_has_is_told_where_to_look(server):
    with pytest.raises(NotFoundError, match="checkrein chat models"):
        Talk(Screen(), model="nobody/nothing").say("hello")
    assert sessions() == []
