"""The one table of what can be asked of chat."""

import msgspec
import pytest

from checkrein.authority.chat import Chat
from checkrein.authority.chat_requests import REQUESTS, Attachment, Provider, Send, Update


def test_every_request_is_a_method_of_the_chat_and_says_what_it_does():
    methods = {name.rstrip("_") for name in vars(Chat) if not name.startswith("_")} - {"subscribe"}
    assert set(REQUESTS) == methods
    assert all(each.summary.endswith(".") for each in REQUESTS.values())


def test_only_how_things_are_may_be_asked_by_anybody():
    assert [name for name, each in REQUESTS.items() if not each.person] == ["status"]


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_what_is_not_known_is_refused(request_):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "x", "session": "x", "surprise": 1}, request_.params)


@pytest.mark.parametrize(
    "given",
    [
        {"name": "a.txt", "mime_type": "text/plain", "data": "aGk="},
        {"name": "empty.txt", "data": ""},
        {"server": "notes", "uri": "note://1"},
        {"server": "notes", "template": "note://{n}", "arguments": {"n": "1"}},
        {"server": "notes", "prompt": "greet", "arguments": {"who": "Ada"}},
    ],
)
def test_an_attachment_is_one_of_four_things(given):
    assert msgspec.to_builtins(msgspec.convert(given, Attachment)) == given


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"name": "a"},
        {"uri": "note://1"},
        {"data": "", "server": "n", "uri": "x"},
        {"prompt": "p"},
        {"template": "note://{n}"},
        {"server": "n", "uri": "x", "template": "note://{n}"},
    ],
)
def test_an_attachment_is_not_two_of_them_or_none(given):
    with pytest.raises(msgspec.ValidationError, match="attachment"):
        msgspec.convert({"session": "s", "text": "t", "attachments": [given]}, Send)


def test_no_tainted_session_is_called_clean_by_request():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": "x", "tainted_by": ""}, Update)


def test_a_key_is_never_in_what_is_printed():
    assert "s3cret" not in repr(msgspec.convert({"name": "work", "key": "s3cret"}, Provider))
