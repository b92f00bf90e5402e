"""A session made when something is first said in it."""

import io

import pytest

from checkrein.cli.chat_asking import ask_chat, sessions
from checkrein.cli.chat_screen import Screen
from checkrein.cli.chat_talk import LONGEST_INPUT, Talk, once, piped
from checkrein.errors import InputError


@pytest.fixture
def talk(server):
    return Talk(Screen())


def test_no_session_is_made_before_something_is_said(talk, capsys):
    assert talk.is_scripted
    assert sessions() == []
    ended, following = talk.say("/say hello")
    assert (ended, following.answer) == ("done", "hello")
    assert [each["id"] for each in sessions()] == [talk.session]
    talk.say("/say again")
    assert len(sessions()) == 1


def test_another_answer_stands_beside_the_first(talk):
    talk.say("/say hello")
    assert talk.again()[0] == "done"
    assert len(ask_chat("session", id=talk.session)["siblings"]) == 2


def test_leaving_begins_another(talk):
    talk.say("/say one")
    first = talk.session
    talk.leave()
    talk.say("/say two")
    assert talk.session != first


def test_what_is_open_is_shown_again(talk, capsys):
    talk.say("/say the plover")
    capsys.readouterr()
    again = Talk(Screen(), session=talk.session)
    again.take_up()
    out = capsys.readouterr().out
    assert "You:" in out
    assert "the plover" in out


def test_an_empty_question_is_none(talk):
    with pytest.raises(InputError):
        once(talk, " \n", "no", as_json=False)


@pytest.mark.usefixtures("home")
def test_a_pipe_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * (LONGEST_INPUT + 2)))
    with pytest.raises(InputError, match="more than"):
        piped()
