"""Messages in response bodies: decoded by us, whatever pieces they come in, and found again."""

import asyncio
import json

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway.messages import LARGEST, encode, notification, request, response
from checkrein.doors.gateway.pipes import LOST

pytest.importorskip("mcp")
import httpx2
from mcp_types import jsonrpc_message_adapter

from checkrein.doors.gateway import http_bodies
from checkrein.doors.gateway.http_bodies import EventBody, JsonBody, KeptMessages


class Pieces(httpx2.AsyncByteStream):
    def __init__(self, *pieces):
        self.pieces, self.closed = pieces, False

    async def __aiter__(self):
        for each in self.pieces:
            yield each

    async def aclose(self):
        self.closed = True


def read(body):
    async def main():
        found = b"".join([each async for each in body])
        await body.aclose()
        return found

    return asyncio.run(main())


def events(raw):
    """As the package sees them."""

    async def main():
        headers = {"content-type": "text/event-stream"}
        response = httpx2.Response(
            200, headers=headers, stream=Pieces(raw), request=httpx2.Request("GET", "http://x")
        )
        return [each async for each in httpx2.EventSource(response)]

    return asyncio.run(main())


def taken(kept, raw):
    return kept.take(jsonrpc_message_adapter.validate_json(raw))


MESSAGES = [
    response(1, {"content": [], "é": 1.5}),
    response("k", [1]),
    {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m", "own": 2}},
    request(3, "roots/list", {"own": None}),
    request(3, "ping"),
    notification("notifications/x", {"y": [{}]}),
    notification("notifications/x"),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_found_again_with_every_field(message):
    message = {**message, "odd": True}
    kept, body = KeptMessages(pytest.fail), Pieces(encode(message)[:9], encode(message)[9:])
    raw = read(JsonBody(body, kept.keep))
    assert body.closed and taken(kept, raw) == message


@settings(max_examples=examples(150))
@given(
    st.lists(st.sampled_from(MESSAGES), max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "event: message\n", "event:message\nid: 7\n", ": still here\n\n", "retry: 5\n"]),
    st.integers(1, 40),
    st.booleans(),
)
def test_events_are_the_same_in_whatever_pieces_they_come(messages, end, before, size, split):
    raw = ""
    for each in messages:
        text = json.dumps(each, ensure_ascii=False)
        lines = text.replace(", ", ",\n").split("\n") if split else [text]
        raw += before + "".join(f"data: {line}\n" for line in lines) + "\n"
    raw = raw.replace("\n", end).encode()
    kept = KeptMessages(pytest.fail)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    seen = [each for each in events(read(EventBody(Pieces(*pieces), kept.keep))) if each.data]
    assert [taken(kept, each.data) for each in seen] == messages
    assert [each.id for each in seen] == [each.id for each in events(raw) if each.data]


def test_other_events_are_left_alone():
    raw = b"event: endpoint\ndata: /messages?session=1\n\nid: 4\ndata:\n\ndata: never ended"
    found = read(EventBody(Pieces(raw), pytest.fail))
    assert events(found) == events(raw) and len(events(found)) == 2


def test_what_is_no_message_is_not_read_by_anybody_else():
    kept = KeptMessages(pytest.fail)
    for raw in (b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}', b"<html>", b"[]", b""):
        with pytest.raises(ValueError):
            jsonrpc_message_adapter.validate_json(read(JsonBody(Pieces(raw), kept.keep)))


def test_a_request_that_cannot_be_read_is_answered_and_leaves_no_event():
    sent = []
    kept = KeptMessages(sent.append)
    raw = b'id: 9\ndata: {"jsonrpc":"2.0","id":5,"method":"roots/list","params":{"x":1e400}}\n\n'
    (event,) = events(read(EventBody(Pieces(raw), kept.keep)))
    assert (event.id, event.data) == ("9", "") and sent[0]["id"] == 5


def test_of_an_answer_that_failed_only_its_error_counts():
    kept = KeptMessages(pytest.fail)
    assert read(JsonBody(Pieces(b"<html>"), kept.keep_error)) == b"<html>"
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m", "own": 2}}
    assert taken(kept, read(JsonBody(Pieces(encode(error)), kept.keep_error))) == error


@pytest.mark.invariant("of an event that does not end no more is held than a message may have")
@pytest.mark.parametrize("piece", [b"x" * (1 << 20), b"data: x\n" * (1 << 17), b"id: 1\n" + b"y" * (1 << 20)])
def test_an_event_that_does_not_end_is_given_up(piece):
    with pytest.raises(httpx2.SSEError, match=f"{LARGEST:,}"):
        read(EventBody(Pieces(*[piece] * 18), pytest.fail))


def test_comments_take_no_room():
    assert read(EventBody(Pieces(*[b": still here\n" * 100_000] * 20), pytest.fail)) == b""


def test_what_the_package_never_hands_over_takes_a_bounded_amount_of_memory(monkeypatch):
    monkeypatch.setattr(http_bodies, "MOST_KEPT", 1_000)
    kept = KeptMessages(pytest.fail)
    stand_ins = [kept.keep(encode(response(number, "x" * 300))) for number in range(10)]
    assert taken(kept, stand_ins[9])["result"] == "x" * 300
    assert LOST in taken(kept, stand_ins[0])
