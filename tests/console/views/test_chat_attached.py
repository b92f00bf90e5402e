import base64
import json
import os
from urllib.parse import urlencode

import pytest

from checkrein.console.forms import Fields
from checkrein.console.guard import LARGEST_UPLOAD
from checkrein.console.views.chat_attached import LIMITS, MOST, attachments
from checkrein.doors.chat.attachments import LARGEST
from checkrein.errors import InputError

PNG = b"\x89PNG\r\n\x1a\n"


def form(value):
    return Fields({"attachments": [value if isinstance(value, str) else json.dumps(value)]})


def test_what_a_script_put_into_the_form():
    one = {"name": "a.txt", "mime_type": "text/plain", "data": "YQ=="}
    assert attachments(form([one])) == [one]
    assert attachments(form("")) == []
    assert attachments(Fields()) == []


@pytest.mark.parametrize("given", ["{", '"a"', "[1]", {"a": 1}, [[]], [{}] * (MOST + 1)])
def test_what_cannot_be_right_is_refused(given):
    with pytest.raises(InputError):
        attachments(form(given))


def in_letters(data):
    return base64.urlsafe_b64encode(data).decode()


def test_letters_an_address_may_have_are_those_of_base64():
    data = bytes(range(256)) * 3
    [found] = attachments(form([{"data": in_letters(data)}]))
    assert base64.b64decode(found["data"], validate=True) == data
    assert attachments(form([{"data": 7}])) == [{"data": 7}]


def test_as_much_as_the_page_says_goes_with_one_message(visitor, console):
    """Whatever is in the files: they are sent in letters of which none becomes three."""
    own = console.desk.ask("chat.create")["id"]
    sizes = LIMITS["largest"], LIMITS["together"] - LIMITS["largest"]
    assert sizes[0] == LARGEST
    files = [PNG + b"\xff" * (sizes[0] - len(PNG)), PNG + os.urandom(sizes[1] - len(PNG))]
    given = [{"name": "a.png", "mime_type": "image/png", "data": in_letters(each)} for each in files]
    sent = {"text": "x" * 1_000_000, "attachments": json.dumps(given)}
    assert len(urlencode(sent)) < LIMITS["letters"] == LARGEST_UPLOAD
    answer = visitor.piece(f"/chat/{own}/send", sent)
    assert answer.status == 200, answer.text
    parts = console.desk.ask("chat.session", id=own)["messages"][0]["parts"]
    assert [each["size_bytes"] for each in parts[1:]] == list(sizes)


def test_one_byte_more_is_refused_in_words(visitor, console):
    own = console.desk.ask("chat.create")["id"]
    given = [{"name": "a.png", "mime_type": "image/png", "data": in_letters(bytes(LARGEST + 1))}]
    answer = visitor.piece(f"/chat/{own}/send", {"attachments": json.dumps(given)})
    assert answer.status == 400
    assert "a.png is larger than 8 MB." in answer.text


def test_a_conversation_as_large_as_the_page_says_is_taken(visitor, console):
    own = console.desk.ask("chat.create", title="Long")["id"]
    text = visitor.get(f"/chat/{own}/export.json").text
    whole = text + " " * (LIMITS["imported"] - len(text))
    answer = visitor.post("/chat/import", {"file": in_letters(whole.encode()), "form": "json"})
    assert answer.status == 303, answer.text
    assert console.desk.ask("chat.sessions")["total"] == 2
