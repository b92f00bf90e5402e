"""What a person gets to write on, and sends again, is what was written."""

import re
from html import unescape

import pytest

from checkrein.doors.chat import Part

# A heart with its colour, a family, Persian with its joiner; a mark of direction, a hyphen nobody sees.
SIGNS = (
    "I \u2764\ufe0f it, \U0001f468\u200d\U0001f469\u200d\U0001f467, \u0645\u06cc\u200c\u062e\u0648,"
    ' "quotes" & <b>tags</b>\n\n  and lines'
)
UNSEEN = f"{SIGNS} \u200f\u05e9, soft\u00adhyphen"


@pytest.fixture
def ask(console):
    return console.desk.ask


@pytest.fixture
def own(ask):
    return ask("chat.create", title="Plums")["id"]


def sources(page):
    return [unescape(each) for each in re.findall(r'data-source="([^"]*)"', page)]


def field(page, name):
    return unescape(re.search(rf'<textarea name="{name}"[^>]*>\n(.*?)</textarea>', page, re.S)[1])


def test_a_message_is_edited_as_it_was_written(visitor, own, chat):
    chat()._sessions.add_message(own, "user", [Part(text=SIGNS)])
    assert sources(visitor.get(f"/chat/{own}").text) == [SIGNS]


def test_an_answer_is_copied_as_it_is_shown(visitor, own, chat):
    chat()._sessions.add_message(own, "assistant", [Part(text="I ❤️ it\u202eevil")])
    assert sources(visitor.get(f"/chat/{own}").text) == ["I ❤️ it⟨U+202E⟩evil"]


def test_instructions_stay_as_they_are_when_something_else_is_saved(visitor, own, ask):
    ask("chat.update", id=own, system=UNSEEN)
    page = visitor.get(f"/chat/{own}/settings").text
    assert field(page, "system") == f"{SIGNS} ⟨U+200F⟩\u05e9, soft⟨U+00AD⟩hyphen"
    typed = {"system": field(page, "system"), "project": "", "threshold": "80", "retention_tokens": ""}
    assert visitor.post(f"/chat/{own}/settings/keep", typed | {"auto_compress": ""}).status == 303
    session = ask("chat.session", id=own)["session"]
    assert (session["system"], session["threshold"]) == (UNSEEN, 0.8)


def test_instructions_stay_as_they_are_when_something_else_is_wrong(visitor, own):
    typed = {
        "system": UNSEEN,
        "project": "",
        "threshold": "never",
        "retention_tokens": "",
        "auto_compress": "",
    }
    answer = visitor.post(f"/chat/{own}/settings/keep", typed)
    assert answer.status == 400 and field(answer.text, "system") == UNSEEN


def test_a_first_message_that_cannot_be_sent_is_to_the_character_what_it_was(visitor):
    answer = visitor.post("/chat/new", {"text": UNSEEN, "model": "nobody/nothing"})
    assert answer.status == 404 and field(answer.text, "text") == UNSEEN
