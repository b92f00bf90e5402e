"""Lines that begin with a slash."""

import pytest

from checkrein.cli import chat_commands, chat_talk
from checkrein.cli.chat_asking import ask_chat
from checkrein.cli.chat_commands import COMMANDS, obey
from checkrein.cli.chat_screen import Screen
from checkrein.cli.chat_talk import Talk
from checkrein.errors import CheckreinError, InputError


@pytest.fixture
def talk(chat_server):
    return Talk(Screen())


@pytest.fixture
def do(talk, capsys):
    def type_line(line):
        assert obey(talk, line)
        return capsys.readouterr().out

    return type_line


def test_help_names_everything(do):
    text = do("/help")
    assert all(f"/{name}" in text for name in COMMANDS)
    assert "/quit" in text


@pytest.mark.parametrize("line", ["/quit", "/exit", "/q"])
def test_leaving(talk, line):
    assert obey(talk, line) is False


def test_what_is_no_command_goes_to_no_real_model(talk, do, monkeypatch):
    monkeypatch.setattr(Talk, "is_scripted", False)
    assert "There is no /modle" in do("/modle x")
    assert talk.session == ""


def test_two_slashes_send_a_line_as_it_is(talk, do, monkeypatch):
    monkeypatch.setattr(Talk, "is_scripted", False)
    assert do("//say sent") == "sent\n"


def test_the_built_in_model_has_commands_of_its_own(do):
    assert do("/say its own") == "its own\n"


def test_the_title(talk, do):
    do("/say x")
    do("/title The plover")
    assert do("/title") == "The plover\n"


def test_models_are_listed_and_picked(talk, do):
    assert "demo/demo" in do("/model")
    assert "demo/demo" in do("/model demo/demo")
    assert ask_chat("session", id=talk.session)["session"]["model"] == "demo"
    with pytest.raises(CheckreinError):
        obey(talk, "/model nobody/nothing")


def test_the_context_is_measured(do):
    do("/say x")
    assert " % of 32,000 tokens" in do("/tokens")


def test_tools_without_any_say_how_to_get_some(talk, do):
    assert "servers add" in do("/tools")
    do("/tools notes off")
    assert ask_chat("session", id=talk.session)["session"]["tools_off"] == ["notes"]
    do("/tools notes on")
    assert ask_chat("session", id=talk.session)["session"]["tools_off"] == []
    with pytest.raises(InputError, match="on or off"):
        obey(talk, "/tools notes")


def test_sessions_are_opened_and_found(talk, do):
    do("/say the plover")
    first = talk.session
    assert "new conversation" in do("/new")
    do("/say other")
    assert first in do("/open")
    assert "the plover" in do(f"/open {first[:-1]}")
    assert talk.session == first
    assert first in do("/search plover")
    assert "Nothing" in do("/search walrus")


def test_compressing_says_when_there_is_nothing_to_compress(do):
    do("/say x")
    assert "become" not in do("/compress")


def test_compressing_shows_numbers_and_asks(do, monkeypatch):
    for number in range(3):
        do(f"//long {2_500 + number}")
    monkeypatch.setattr(chat_commands, "read", lambda _: "n")
    assert "% less" in do("/compress")
    monkeypatch.setattr(chat_commands, "read", lambda _: "y")
    text = do("/compress")
    assert "tokens become about" in text
    assert "Compressed: " in text


@pytest.mark.parametrize(("name", "begins"), [("a.json", "{"), ("a.md", "#")])
def test_a_conversation_is_written_once(talk, do, home, name, begins):
    do("/say x")
    assert "Written" in do(f"/export {home / name}")
    assert (home / name).read_text().startswith(begins)
    with pytest.raises(InputError):
        obey(talk, f"/export {home / name}")


def test_another_answer(do):
    do("/say once more")
    assert do("/again") == "once more\n"


def test_reading_a_line_says_what_is_asked(monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda prompt: f"typed after {prompt}")
    assert chat_talk.read("> ") == "typed after > "
