"""The chat door: its values, the same after a trip through JSON."""

import msgspec
import pytest

from checkrein.authority.chat_requests import REQUESTS
from checkrein.doors.chat import Message, Part, Snapshot
from checkrein.doors.chat.chat import Chat

CALL = Part(
    kind="tool_invocation", tool_call_id="c1", tool_name="files__read", data={"path": "/a"}, status="pending"
)


def test_a_message_is_the_same_after_a_trip_through_json():
    message = Message("m1", "assistant", (Part(text="so"), CALL), sequence=3)
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_parts_keep_outputs_that_are_false():
    for output in (0, False, "", [], {}):
        part = Part(kind="tool_result", tool_call_id="c1", data=output)
        assert msgspec.json.decode(msgspec.json.encode(part), type=Part).data == output


def test_values_do_not_change():
    with pytest.raises(AttributeError):
        CALL.status = "completed"
    with pytest.raises(AttributeError):
        Snapshot(id="s", text="t", cutoff="m", tokens=1, created_at=0.0).text = "other"


def test_an_unknown_kind_or_role_is_refused():
    for document in (b'{"id":"m","role":"robot"}', b'{"id":"m","role":"user","parts":[{"kind":"gift"}]}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(document, type=Message)


def test_every_request_is_a_method_of_chat():
    for name in REQUESTS:
        assert callable(getattr(Chat, f"{name}_" if name == "import" else name)), name
