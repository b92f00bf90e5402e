"""What a person wrote or set is not lost when something else goes wrong."""

import html
import json

import pytest


@pytest.fixture
def ask(console):
    return console.desk.ask


@pytest.fixture
def modelless(ask):
    """A provider is set up, and nobody said which models it has."""
    ask("chat.provider_set", name="bare", kind="compatible", base_url="http://127.0.0.1:9")


def titles(ask):
    return [each["title"] for each in ask("chat.sessions")["sessions"]]


def test_a_first_message_nobody_can_answer_stays_where_it_was_written(visitor, ask, modelless):
    words = "Two lines & a <tag>,\nand a third."
    answer = visitor.post("/chat/new", {"text": words})
    assert answer.status == 400
    assert f">\n{html.escape(words)}</textarea>" in answer.text
    assert "has no models yet" in html.unescape(answer.text)
    assert titles(ask) == []


def test_the_model_that_was_wanted_stays_chosen(visitor, ask, modelless):
    files = json.dumps([{"name": "a.bin", "mime_type": "image/png", "data": "AAAA"}])
    answer = visitor.post("/chat/new", {"text": "look", "attachments": files, "model": "demo/demo"})
    assert answer.status == 400
    assert '<option value="demo/demo" selected' in answer.text
    assert "Attach the files again." in answer.text
    assert titles(ask) == []


def test_attachments_that_cannot_be_read_leave_nothing_in_the_list(visitor, ask):
    assert visitor.post("/chat/new", {"text": "look", "attachments": "nonsense"}).status == 400
    assert titles(ask) == []


def test_a_model_that_is_not_there_leaves_the_message(visitor, ask):
    answer = visitor.post("/chat/new", {"text": "hello there", "model": "nobody/nothing"})
    assert answer.status == 404
    assert "hello there</textarea>" in answer.text
    assert titles(ask) == []


def test_what_is_off_stays_off_while_its_server_is_not_there(visitor, ask):
    own = ask("chat.create", title="Trial")["id"]
    ask("chat.update", id=own, tools_off=["away", "echo__write_note", "gone__send"])
    visitor.piece(
        f"/chat/{own}/offer", {"known": ["echo", "echo__write_note"], "on": ["echo", "echo__write_note"]}
    )
    assert list(ask("chat.session", id=own)["session"]["tools_off"]) == ["away", "gone__send"]
