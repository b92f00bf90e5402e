"""Messages in and out: what is none is refused with a reason, what is one keeps every field."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.gateway import messages
from checkrein.doors.gateway.messages import (
    INVALID_REQUEST,
    LARGEST,
    PARSE_ERROR,
    MalformedError,
    RpcError,
    decode,
    encode,
    failure,
    is_request,
    is_response,
    meta_of,
    notification,
    outcome,
    request,
    response,
)


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": "a", "method": "x", "params": {"deep": [1, {"y": None}]}, "odd": True},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 1, "result": None},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m", "own": 2}},
        {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": 2**70, "method": "x"},
    ],
)
def test_a_message_comes_through_with_everything_it_says(message):
    assert decode(json.dumps(message).encode()) == message
    assert json.loads(encode(decode(json.dumps(message).encode()))) == message


@pytest.mark.parametrize(
    ("raw", "code", "known"),
    [
        (b"", PARSE_ERROR, None),
        (b"{", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b'{"a": NaN}', PARSE_ERROR, None),
        (b"[" * 100_000, PARSE_ERROR, None),
        (b'{"a":' * 100_000, PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"x"}]', INVALID_REQUEST, None),
        (b"1", INVALID_REQUEST, None),
        (b'{"id":1,"method":"x"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"1.0","id":"k","method":"x"}', INVALID_REQUEST, "k"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":null}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","result":1}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":{}}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"error":"x"}', INVALID_REQUEST, 1),
    ],
)
def test_what_is_no_message_is_refused_with_its_number_where_it_has_one(raw, code, known):
    with pytest.raises(MalformedError) as found:
        decode(raw)
    assert (found.value.code, found.value.id) == (code, known)


def test_a_message_that_is_too_long_is_not_even_looked_at(monkeypatch):
    monkeypatch.setattr(messages, "_decode", pytest.fail)
    with pytest.raises(MalformedError) as found:
        decode(bytearray(LARGEST + 1))
    assert found.value.code == INVALID_REQUEST


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "error"]), inner)
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_message_or_refused(raw):
    try:
        found = decode(raw)
    except MalformedError as error:
        encode(failure(error.id, error))
        return
    assert found["jsonrpc"] == "2.0" and (is_response(found) or isinstance(found["method"], str))
    assert not is_request(found) or isinstance(found["id"], str | int)
    assert decode(encode(found)) == found


def test_messages_of_our_own():
    assert request(1, "x") == {"jsonrpc": "2.0", "id": 1, "method": "x"}
    assert request(1, "x", {})["params"] == {} and notification("y", {"a": 1})["params"] == {"a": 1}
    assert "params" not in notification("y") and response("k", None)["result"] is None
    assert failure(None, RpcError(1, "m"))["error"] == {"code": 1, "message": "m"}
    assert RpcError(1, "m", {"d": 1}).body["data"] == {"d": 1}


@pytest.mark.parametrize("params", [{}, {"_meta": None}, {"_meta": [1]}, {"_meta": "x"}])
def test_a_meta_that_is_none_is_empty(params):
    assert meta_of(params) == {}


def test_an_outcome_is_the_result_or_the_error_however_odd():
    assert outcome(response(1, {"a": 1})) == {"a": 1}
    for error, code, text in (
        ({"code": -1, "message": "m", "data": 5}, -1, "m"),
        ({}, -32603, "The server sent an error without a message."),
        ({"code": "x", "message": ["m"]}, -32603, "The server sent an error without a message."),
    ):
        with pytest.raises(RpcError) as found:
            outcome({"id": 1, "error": error})
        assert (found.value.code, found.value.message, found.value.data) == (code, text, error.get("data"))
