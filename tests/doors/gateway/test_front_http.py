"""Requests over real sockets, friendly and not, in both eras."""

import asyncio
import contextlib
import json
import math
import os
import socket
import threading

import pytest

from checkrein.doors.gateway import http_answers
from checkrein.doors.gateway.http_sessions import HttpLimits
from checkrein.doors.gateway.messages import LARGEST, notification, request, response
from checkrein.settings.sources import state_dir
from checkrein.store.gateway_clients import CLIENTS
from checkrein.store.sqlite import SqliteStore
from doors.gateway.moved_loop import MovedLoop, pass_seconds
from mcp_http import Running, events
from patience import PATIENCE, until

LISTEN = {"Accept": "text/event-stream"}


def raw(port, data):
    """Whatever comes back for these bytes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as line:
        line.sendall(data)
        return drained(line)


def drained(line):
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := line.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def beginning(front):
    """Whether the front has seen a request begin."""
    return any(each.request is None and each.since < math.inf for each in front.front._lines.values())


@pytest.fixture
def store(home):
    made = SqliteStore.open(state_dir())
    yield made
    made.close()


@pytest.fixture
def serve(store):
    """Fronts with limits of their own; all closed at the end."""
    made = []

    def start(**more):
        limits = more.pop("limits", None)
        made.append(Running(store, HttpLimits(**limits) if limits else None, **more))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def front(serve):
    return serve()


@pytest.fixture
def client(front):
    made = front.client()
    yield made
    made.close()


def test_a_session_from_its_first_to_its_last_message(front, client):
    opened = client.open()
    assert opened.json["result"]["protocolVersion"] == "2025-11-25"
    assert opened.headers["content-type"] == "application/json"
    assert client.send(notification("notifications/initialized")).status == 202
    reply = client.ask("echo", {"a": "é"}, "seven")
    assert (reply.status, reply.json) == (200, response("seven", {"a": "é"}))
    (met,) = front.hub.met
    assert (met.agent.startswith("client-"), met.label) == (True, "test 1")
    assert met.owner.startswith("http:")
    assert client.send(b"", "DELETE").status == 200
    assert front.hub.left == [met.id]
    assert client.ask("echo").status == 404
    assert client.send(b"", "DELETE").status == 404


def test_an_error_of_the_handshake_era_is_an_answer_like_any_other(client):
    client.open()
    reply = client.ask("no/such", {}, 3)
    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (200, 3, -32601)


def test_an_initialize_that_is_refused_opens_no_session(front, client):
    reply = client.ask("initialize", {"refuse": True})
    assert reply.json["error"]["code"] == -32602
    assert "mcp-session-id" not in reply.headers
    assert front.hub.left == [front.hub.met[0].id]
    assert list(front.front.sessions) == []


def test_what_goes_before_the_answer_makes_it_a_stream(client):
    client.open()
    reply = client.ask("say", {"times": 3}, 9)
    assert reply.headers["content-type"] == "text/event-stream"
    assert [each.get("params", {}).get("progress") for each in reply.events] == [0, 1, 2, None]
    assert reply.events[-1] == response(9, {"said": 3})
    assert client.ask("echo").headers["content-type"] == "application/json"


def test_the_client_is_asked_on_the_stream_of_its_request(front, client):
    client.open()
    stream = client.begin("POST", json.dumps(request(5, "ask", {})).encode())
    until(lambda: b"elicitation/create" in stream.peek())
    other = front.beside(client)
    assert other.send(response("q1", {"action": "accept"})).status == 202
    assert events(stream.read())[-1] == response(5, {"action": "accept"})


def test_a_client_that_listens_hears_what_belongs_to_no_request(front, client):
    client.open()
    (met,) = front.hub.met
    for number in range(2):
        front.call(met.send, notification("notifications/tools/list_changed", {"n": number}))
    listener = front.beside(client)
    stream = listener.begin("GET", **LISTEN)
    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    until(lambda: stream.peek().count(b"list_changed") == 2)
    until(lambda: front.front.busy == 0)
    assert client.send(b"", "GET", **LISTEN).status == 409
    front.call(met.send, notification("notifications/last"))
    client.send(b"", "DELETE")
    assert [each["method"] for each in events(stream.read())][-1] == "notifications/last"
    listener.close()


def test_who_stopped_listening_may_listen_again(front, client):
    client.open()
    listener = front.beside(client)
    listener.begin("GET", **LISTEN)
    listener.close()
    until(lambda: next(iter(front.front.sessions)).stream is None)
    stream = listener.begin("GET", **LISTEN)
    assert stream.status == 200
    listener.close()


def test_listening_takes_a_session_and_an_ear(client):
    assert client.send(b"", "GET", **LISTEN).status == 400
    client.open()
    assert client.send(b"", "GET", Accept="application/json").status == 406


UNREADABLE = ["1e400", "1" * 5001, "[" * 5000 + "]" * 5000, '"cut \\ud83d"']


def unreadable(value, **known):
    """The text of a message with this value in its params or its result."""
    message = {"jsonrpc": "2.0", **known, "params" if "method" in known else "result": {"x": "VALUE"}}
    return json.dumps(message).replace('"VALUE"', value).encode()


@pytest.mark.invariant("over HTTP, too, a request that cannot be read is answered by its id, and never run")
@pytest.mark.parametrize("value", UNREADABLE, ids=["infinite", "digits", "deep", "cut"])
def test_a_request_that_cannot_be_read_is_refused_by_its_id(front, client, value):
    stateless = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "echo"}
    reply = client.send(unreadable(value, id=7, method="echo"), **stateless)
    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (400, 7, -32602)
    assert client.send(unreadable(value, method="notifications/x"), **stateless).status == 202
    assert client.send(unreadable(value, id=7, method="initialize")).json["id"] == 7
    client.open()
    reply = client.send(unreadable(value, id="k", method="echo"))
    assert (reply.status, reply.json["id"], reply.json["error"]["code"]) == (200, "k", -32602)
    assert reply.json["error"]["message"].startswith("This request holds ")
    assert client.send(unreadable(value, method="notifications/x")).status == 202
    client.session = "another"
    assert client.send(unreadable(value, id="k", method="echo")).status == 404
    assert [each["method"] for each in front.hub.handled] == ["initialize"] and front.hub.heard == []


def test_an_answer_that_cannot_be_read_is_an_error_to_who_asked(front, client):
    client.open()
    assert client.send(unreadable("1e400", id="q1")).status == 202
    assert client.send(unreadable('"\\ud83d"', id="q2")).status == 202
    first, second = front.hub.heard
    assert (first["id"], first["error"]["code"]) == ("q1", -32602)
    assert second["result"] == {"x": "\ufffd"}
    assert client.send(unreadable("1e400", id="q1"), MCP_Protocol_Version="2026-07-28").status == 400


def test_a_stateless_request_stands_alone(front, client):
    reply = client.alone("echo", {"a": 1})
    assert (reply.status, reply.json["result"]["a"]) == (200, 1)
    assert "mcp-session-id" not in reply.headers
    assert client.alone("no/such").status == 404
    assert client.alone("say", {"times": 2}).events[-1]["result"] == {"said": 2}
    assert list(front.front.sessions) == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"Mcp_Method": "tools/list"}, -32020),
        ({"Mcp_Method": None}, -32020),
        ({"Mcp_Method": "ECHO"}, -32020),
        ({"MCP_Protocol_Version": None}, -32020),
        ({"MCP_Protocol_Version": "2027-01-01"}, -32020),
    ],
)
def test_headers_say_what_the_body_says(front, client, more, code):
    reply = client.alone("echo", {}, 4, **more)
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (400, code, 4)
    assert front.hub.handled == []


def test_versions_nobody_speaks_are_named(client):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "v999",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    reply = client.alone("echo", {"_meta": meta}, MCP_Protocol_Version="v999")
    assert (reply.status, reply.json["error"]["code"]) == (400, -32022)
    assert reply.json["error"]["data"] == {"supported": ["2026-07-28"], "requested": "v999"}
    assert client.send(notification("notifications/x"), MCP_Protocol_Version="v999").status == 400


def test_an_incomplete_envelope_is_named(client):
    reply = client.ask("echo", {}, 8, MCP_Protocol_Version="2026-07-28", Mcp_Method="echo")
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (400, -32602, 8)


def test_an_envelope_that_cannot_be_right_is_refused(front, client):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": [],
    }
    reply = client.alone("echo", {"_meta": meta}, 8)
    assert (reply.status, reply.json["error"]["code"], reply.json["id"]) == (400, -32602, 8)
    assert front.said == []


def test_notifications_alone_are_taken_and_go_nowhere(front, client):
    sent = client.send(notification("notifications/cancelled"), MCP_Protocol_Version="2026-07-28")
    assert sent.status == 202
    assert front.hub.heard == []
    assert client.send(response(1, {}), MCP_Protocol_Version="2026-07-28").status == 400


def test_the_stateless_era_has_no_sessions(client):
    for method in ("GET", "DELETE"):
        reply = client.send(b"", method, MCP_Protocol_Version="2026-07-28", Accept="text/event-stream")
        assert (reply.status, reply.headers["allow"]) == (405, "POST")


def test_parameters_in_headers_are_the_ones_in_the_body(front, client):
    front.hub.schemas["t"] = {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    call = {"name": "t", "arguments": {"region": "eu"}}
    assert client.alone("tools/call", call, Mcp_Param_Region="eu").status == 200
    assert client.alone("tools/call", call, Mcp_Param_Region="=?base64?ZXU=?=").status == 200
    for given in ("us", None, "=?base64?ZXU?="):
        reply = client.alone("tools/call", call, Mcp_Param_Region=given)
        assert (reply.status, reply.json["error"]["code"]) == (400, -32020)
    front.hub.schemas["t"] = {"properties": {}}
    assert client.alone("tools/call", call).status == 200


def test_a_stateless_client_that_leaves_takes_its_request_along(front, client):
    client.line.request("POST", "/mcp", *stateless("wait", {"gate": "never"}, client))
    until(lambda: front.hub.handled)
    client.close()
    until(lambda: front.hub.cancelled == [1])
    assert front.said == []


def stateless(method, params, client):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = json.dumps(request(1, method, {"_meta": meta, **params}))
    return body, client.headers(MCP_Protocol_Version="2026-07-28", Mcp_Method=method)


def test_in_a_session_a_lost_response_cancels_nothing_and_questions_find_another_way(front, client):
    client.open()
    listener = front.beside(client)
    stream = listener.begin("GET", **LISTEN)
    body = json.dumps(request(3, "wait", {"gate": "g", "then_ask": True}))
    client.line.request("POST", "/mcp", body, client.headers())
    until(lambda: len(front.hub.handled) == 2)
    client.close()
    until(lambda: len(front.front._lines) == 1)
    front.hub.gate("g").set()
    until(lambda: b'"late"' in stream.peek())
    assert front.hub.cancelled == []
    until(lambda: next(iter(front.front.sessions)).busy == 0)
    listener.close()


def lost_midway(front, client, **params):
    """A request whose stream was lost after its first event; what the client had read by then."""
    client.open()
    body = json.dumps(request(3, "wait", {"gate": "g", "first_say": True, **params})).encode()
    stream = client.begin("POST", body)
    until(lambda: b"first" in stream.peek())
    had = stream.peek()
    client.close()
    until(lambda: not front.front._lines)
    return had


@pytest.mark.parametrize("when", ["before it goes on", "after it is over"])
def test_who_lost_a_stream_picks_it_up_where_it_was(front, client, when):
    had = lost_midway(front, client, then_say=2, then_ask=True)
    assert had.startswith(b"id: 1-0\nretry: 1000\ndata: \n\n")
    if when == "after it is over":
        front.hub.gate("g").set()
        until(lambda: next(iter(front.front.sessions)).busy == 0)
    stream = client.begin("GET", **LISTEN, Last_Event_ID="1-1")
    front.hub.gate("g").set()
    rest = stream.read()
    assert [each.get("method") for each in events(rest)] == [
        "notifications/progress",
        "notifications/progress",
        "elicitation/create",
        None,
    ]
    assert events(rest)[-1] == response(3, {"waited": True})
    assert b"id: 1-2\n" in rest
    again = client.begin("GET", **LISTEN, Last_Event_ID="1-4")
    assert events(again.read()) == [response(3, {"waited": True})]
    assert front.hub.cancelled == []


def test_a_stream_that_is_read_is_nobody_elses(front, client):
    client.open()
    body = json.dumps(request(3, "wait", {"gate": "g", "first_say": True})).encode()
    stream = client.begin("POST", body)
    assert front.beside(client).send(b"", "GET", **LISTEN, Last_Event_ID="1-0").status == 409
    thief = front.client()
    thief.session = client.session
    assert thief.send(b"", "GET", **LISTEN, Last_Event_ID="1-0").status == 404
    front.hub.gate("g").set()
    assert events(stream.read())[-1] == response(3, {"waited": True})


def test_a_number_of_no_stream_is_a_new_beginning(front, client):
    client.open()
    for last in ("7-0", "x", "1-x", "-", "9" * 50):
        stream = client.begin("GET", **LISTEN, Last_Event_ID=last)
        assert stream.status == 200
        client.close()
        until(lambda: next(iter(front.front.sessions)).stream is None)


def test_older_clients_get_events_without_numbers(client):
    client.open("2025-06-18")
    assert b"id:" not in client.ask("say", {"times": 2}).raw
    assert b"id:" not in client.alone("say", {"times": 2}, Mcp_Session_Id=None).raw


@pytest.mark.parametrize("how", ["its own word", "the end of its session"])
def test_what_the_client_cancels_is_answered_as_cancelled(front, client, how):
    client.open()
    body = json.dumps(request(3, "wait", {"gate": "never"})).encode()
    client.line.request("POST", "/mcp", body, client.headers())
    until(lambda: len(front.hub.handled) == 2)
    other = front.beside(client)
    if how == "its own word":
        assert other.send(notification("notifications/cancelled", {"requestId": 3})).status == 202
    else:
        assert other.send(b"", "DELETE").status == 200
    answer = json.loads(client.line.getresponse().read())
    assert (answer["id"], answer["error"]["code"]) == (3, -32800)
    assert front.hub.cancelled == [3]


def test_a_fault_of_ours_is_an_answer_that_says_nothing_of_the_inside(front, client):
    client.open()
    reply = client.ask("break")
    assert (reply.status, reply.json["error"]["code"]) == (200, -32603)
    assert b"secret" not in reply.raw
    assert "ZeroDivisionError" in front.said[0]
    assert client.token not in "".join(front.said)


def with_forms(client, method="tools/call"):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    return client.alone(method, {"_meta": meta, "name": "t"})


@pytest.mark.parametrize("person", [True, False])
def test_only_a_persons_own_client_speaks_for_them(serve, person):
    asked = []
    front = serve(speaks=lambda peer: asked.append(peer) or person)
    client = front.client()
    client.open()
    assert with_forms(client, "echo").status == 200
    assert with_forms(client).status == 200
    session, echo, call = front.hub.met
    assert (session.speaks_for_person, echo.speaks_for_person, call.speaks_for_person) == (
        person,
        True,
        person,
    )
    assert [(peer.pid, peer.uid) for peer in asked] == [(os.getpid(), os.getuid())]


def test_who_cannot_be_asked_is_not_looked_up_and_speaks_for_nobody(serve):
    asked = []
    front = serve(speaks=lambda peer: asked.append(peer) or True)
    client = front.client()
    info = {"name": "test", "version": "1"}
    params = {"clientInfo": info, "protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}
    assert client.ask("initialize", params).status == 200
    assert front.hub.met[0].speaks_for_person is False and not asked


@pytest.mark.invariant("a question put to a person's client is not answered by a program that an agent runs")
def test_a_question_is_not_answered_by_somebody_else(serve):
    people = [True, False]
    front = serve(speaks=lambda peer: people.pop(0))
    client = front.client()
    client.open()
    stream = client.begin("POST", json.dumps(request(5, "ask", {})).encode())
    until(lambda: b"elicitation/create" in stream.peek())
    other = front.beside(client)
    assert other.send(response("q1", {"action": "accept"})).status == 403
    assert front.hub.heard == []
    assert other.send(notification("notifications/x")).status == 202


def test_who_cannot_be_found_speaks_for_nobody(serve):
    front = serve(speaks=lambda peer: True)
    front.front._entrance.tcp_peers.find = lambda address, port: None
    client = front.client()
    client.open()
    assert front.hub.met[0].speaks_for_person is False


def test_a_session_is_found_with_its_own_token_only(front, client):
    client.open()
    thief = front.client()
    thief.session = client.session
    for method, body in (("POST", request(1, "echo", {})), ("GET", b""), ("DELETE", b"")):
        reply = thief.send(body, method)
        assert reply.status == 404
    guess = front.client(client.token)
    guess.session = "x" * 32
    assert guess.ask("echo").status == 404
    assert client.ask("echo").status == 200


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer ckrein_0_0",
        "Bearer ckrein__",
        "Bearer " + "x" * 5000,
    ],
)
def test_without_a_token_nobody_comes_in(front, client, given):
    reply = client.ask("initialize", Authorization=given)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert front.hub.met == []


def test_a_token_cut_or_changed_is_none(front, client):
    for wrong in (client.token[:-1], client.token + "x", client.token.swapcase(), f"{client.token} x"):
        assert front.client(wrong).ask("initialize").status == 401


@pytest.mark.invariant("with its token all that a client has here ends at once")
def test_with_its_token_everything_of_a_client_ends_at_once(front, store, client):
    client.open()
    listener, waiting = (front.beside(client) for _ in range(2))
    stream = listener.begin("GET", **LISTEN)
    body = json.dumps(request(3, "wait", {"gate": "never"})).encode()
    replies = []
    thread = threading.Thread(target=lambda: replies.append(waiting.send(body)))
    thread.start()
    until(lambda: len(front.hub.handled) == 2)
    token_id = client.token.split("_")[1]
    store.write(lambda tx: CLIENTS.revoke(tx, token_id, "ada", 2.0))
    front.call(front.front.revoke, f"http:{token_id}")
    thread.join(PATIENCE)
    assert replies[0].status == 401
    assert drained_http(stream) == b""
    assert front.hub.left == [front.hub.met[0].id]
    assert list(front.front.sessions) == []
    assert client.ask("echo").status == 401
    listener.close()


def test_a_revoked_token_opens_nothing_with_the_very_next_request_of_its_connection(front, store, client):
    client.open()
    assert [client.ask("echo").status for _ in range(3)] == [200] * 3
    here = client.line.sock.getsockname()
    store.write(lambda tx: CLIENTS.revoke(tx, client.token.split("_")[1], "ada", 2.0))
    handled = len(front.hub.handled)
    assert client.ask("echo").status == 401
    assert client.line.sock.getsockname() == here and len(front.hub.handled) == handled


def drained_http(stream):
    try:
        return stream.read()
    except OSError:
        return b""
    except Exception as error:
        assert type(error).__name__ == "IncompleteRead"
        return error.partial


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_another_name_is_refused_before_anything_else(front, client, host):
    reply = client.ask("initialize", Host=host.format(port=front.port))
    assert reply.status == 403
    assert front.hub.met == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_our_own_names_are_welcome(front, client, name):
    place = f"{name}:{front.port}"
    assert client.ask("initialize", Host=place, Origin=f"http://{place}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_another_origin_is_refused(front, client, origin):
    assert client.ask("initialize", Origin=origin.format(port=front.port)).status == 403


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": None}, 415),
        ({"Content_Type": "application/json; charset=utf-8"}, 200),
        ({"Accept": "application/json"}, 406),
        ({"Accept": "text/event-stream"}, 406),
        ({"Accept": None}, 406),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "*/*"}, 200),
        ({"Accept": "application/json;q=0.9, text/event-stream;q=0.1"}, 200),
        ({"MCP_Protocol_Version": "2025-06-18"}, 200),
        ({"Mcp_Session_Id": "nobody"}, 404),
    ],
)
def test_what_a_post_has_to_say_about_itself(client, more, status):
    assert client.ask("initialize", **more).status == status


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"not json", -32700),
        (b"[" * 100_000, -32700),
        (b'{"a":' * 50_000, -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (json.dumps([request(1, "initialize")]).encode(), -32600),
        (b'"text"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}', -32600),
    ],
)
def test_what_is_no_message_is_refused(front, client, body, code):
    reply = client.send(body)
    assert (reply.status, reply.json["error"]["code"]) == (400, code)
    assert client.open().status == 200
    assert front.said == []


def test_without_a_session_there_is_one_first_message(front, client):
    for body in (request(1, "echo"), notification("initialize"), response(1, {})):
        assert client.send(body).status == 400
    assert front.hub.met == []


def test_other_places_and_ways_are_not_there(front, client):
    assert client.send(b"", "GET", "/health", Authorization=None).json == {"status": "ok"}
    assert client.send(b"", "GET", "/").status == 404
    assert client.send(b"", "POST", "/mcp/").status == 404
    assert client.send(b"", "POST", "/health").status == 404
    for method in ("PUT", "OPTIONS", "PATCH"):
        assert client.send(b"", method).status == 405


def head(front, client, *more, length=None):
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{front.port}",
        f"Authorization: Bearer {client.token}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        *([] if length is None else [f"Content-Length: {length}"]),
        *more,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer else 0


INITIALIZE = json.dumps(request(1, "initialize", {})).encode()


@pytest.mark.parametrize(
    "line",
    [
        "Host: evil.example",
        "Host: 127.0.0.1",
        "Origin: http://a\r\nOrigin: http://b",
        "Authorization: Bearer x",
        "Mcp-Session-Id: a\r\nMcp-Session-Id: b",
        "MCP-Protocol-Version: 2025-11-25\r\nmcp-protocol-version: 2026-07-28",
        "Mcp-Method: a\r\nMCP-METHOD: a",
        "Mcp-Param-X: a\r\nMcp-Param-X: a",
        "Content-Type: application/json",
        "X-Whatever: 1\r\nX-Whatever: 2",
    ],
)
def test_a_header_that_comes_twice_is_refused(front, client, line):
    sent = head(front, client, line, "Connection: close", length=len(INITIALIZE)) + INITIALIZE
    assert status(raw(front.port, sent)) in (400, 403)
    assert front.hub.met == []


def test_lists_may_come_in_several_lines(front, client):
    sent = head(front, client, "Accept: text/html", "Connection: close", length=len(INITIALIZE)) + INITIALIZE
    assert status(raw(front.port, sent)) == 200


def test_each_request_of_a_connection_has_a_length_of_its_own(front, client):
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        for length in (len(INITIALIZE), len(INITIALIZE) + 2):
            line.sendall(head(front, client, length=length) + INITIALIZE.ljust(length))
            assert status(line.recv(65_536)) == 200
        line.sendall(head(front, client, length=LARGEST + 1))
        assert status(drained(line)) == 413
    assert len(front.hub.handled) == 2


def test_too_much_is_refused_before_it_is_read(front, client):
    answer = raw(front.port, head(front, client, length=LARGEST + 1))
    assert status(answer) == 413
    assert b"connection: close" in answer


def test_chunks_are_counted_as_they_come(front, client):
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        line.sendall(head(front, client, "Transfer-Encoding: chunked"))
        chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        answer = b""
        try:
            for _ in range(LARGEST // (1 << 20) + 2):
                line.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"HTTP/1.1 413 "
        assert status(answer or drained(line)) == 413
    assert front.hub.handled == []


def test_a_message_in_chunks_is_a_message(front, client):
    parts = b"".join(b"%x\r\n%s\r\n" % (1, INITIALIZE[at : at + 1]) for at in range(len(INITIALIZE)))
    sent = head(front, client, "Transfer-Encoding: chunked", "Connection: close") + parts + b"0\r\n\r\n"
    assert status(raw(front.port, sent)) == 200


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: -1",),
        ("Content-Length: 99999999999999999999999",),
        ("Transfer-Encoding: chunked, identity",),
    ],
)
def test_lies_about_the_length_are_not_believed(front, client, lines):
    answer = raw(front.port, head(front, client, *lines) + b"0\r\n\r\n")
    assert status(answer) in (0, 400, 413)
    assert front.hub.met == []


def test_chunks_that_are_none_end_the_connection(front, client):
    sent = head(front, client, "Transfer-Encoding: chunked") + b"zz\r\nabc\r\n"
    assert status(raw(front.port, sent)) in (0, 400)
    assert front.hub.met == []


def test_ten_thousand_bytes_of_headers_are_fine_and_a_million_are_not(front, client):
    long = head(front, client, "X-Long: " + "a" * 10_000, "Connection: close", length=len(INITIALIZE))
    assert status(raw(front.port, long + INITIALIZE)) == 200
    many = [f"X-{number}: a" for number in range(500)]
    assert status(raw(front.port, head(front, client, *many, length=len(INITIALIZE)) + INITIALIZE)) == 431
    endless = b"GET /mcp HTTP/1.1\r\nX: " + b"a" * (1 << 20)
    assert status(raw(front.port, endless)) in (0, 400, 431)
    until(lambda: not front.front._lines)


def test_headers_that_never_end_are_not_waited_for(serve):
    front = serve(limits={"head_seconds": 0.1, "beat_seconds": 0.02})
    for sent in (b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: a"):
        assert raw(front.port, sent) == b""
    until(lambda: front.front._lines == {})


def test_a_body_that_never_comes_is_not_waited_for(serve):
    front = serve(limits={"body_seconds": 0.2, "beat_seconds": 0.05})
    client = front.client()
    assert status(raw(front.port, head(front, client, length=100) + b"{")) == 408
    assert front.hub.met == []


@pytest.mark.parametrize("kind", ["websocket", "h2c"])
def test_nothing_else_is_spoken_here(front, client, kind):
    sent = head(front, client, "Connection: Upgrade", f"Upgrade: {kind}", length=len(INITIALIZE)) + INITIALIZE
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        line.sendall(sent)
        assert status(line.recv(65_536)) in (0, 200, 400)
    assert status(raw(front.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) in (0, 400)
    assert status(raw(front.port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200)) in (0, 400)
    assert client.open().status == 200


def test_a_head_has_no_body(front, client):
    answer = client.begin("HEAD")
    assert (answer.status, answer.read()) == (405, b"")
    assert client.open().status == 200


def test_a_body_may_be_announced_first(front, client):
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        line.sendall(head(front, client, "Expect: 100-continue", length=len(INITIALIZE)))
        assert line.recv(100).startswith(b"HTTP/1.1 100 ")
        line.sendall(INITIALIZE)
        assert status(line.recv(1000)) == 200
    refused = raw(front.port, head(front, client, "Expect: 100-continue", length=LARGEST + 1))
    assert status(refused) == 413


def test_a_kept_connection_gets_the_same_care(serve):
    front = serve(loop_factory=MovedLoop)
    client = front.client()
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        line.sendall(head(front, client, length=len(INITIALIZE)) + INITIALIZE)
        until(lambda: front.hub.met)
        assert status(line.recv(65536)) == 200
        line.sendall(b"POST /mcp")
        until(lambda: beginning(front))
        front.run(pass_seconds(2 * HttpLimits().head_seconds))
        assert drained(line) == b""


def test_silence_is_broken_for_who_waits_long(serve):
    front = serve(limits={"quiet_seconds": 0.1, "beat_seconds": 0.02})
    client = front.client()
    client.open()
    stream = client.begin("POST", json.dumps(request(3, "wait", {"gate": "g"})).encode())
    assert stream.headers["content-type"] == "text/event-stream"
    assert [stream.readline()[:3] for _ in range(5)] == [b"id:", b"ret", b"dat", b"\n", b": s"]
    front.hub.gate("g").set()
    assert events(stream.read()) == [response(3, {"waited": True})]
    listening = client.begin("GET", **LISTEN)
    assert [listening.readline()[:1] for _ in range(3)] == [b":", b"\n", b":"]
    client.close()


def test_a_client_that_does_not_read_is_let_go(front, client):
    client.open()
    body = json.dumps(request(3, "flood", {"times": 200, "size": 1 << 20})).encode()
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        session = f"Mcp-Session-Id: {client.session}"
        line.sendall(head(front, client, session, length=len(body)) + body)
        until(lambda: next(iter(front.front.sessions)).busy == 0 and len(front.hub.handled) == 2)
    assert client.ask("echo").status == 200


def test_sessions_are_counted_and_idle_ones_make_way(serve):
    for spare_seconds in (600.0, 0.0):
        front = serve(limits={"sessions": 3, "spare_seconds": spare_seconds})
        client, other = front.client(), front.client()
        for _ in range(3):
            client.open()
            client.session = None
        reply = client.ask("initialize")
        if spare_seconds:
            assert (reply.status, reply.headers["retry-after"]) == (429, "600")
            assert front.hub.left == []
        else:
            assert reply.status == 200
            assert front.hub.left == [front.hub.met[0].id]
        assert other.open().status == 200
        assert len(list(front.front.sessions)) == 4


def test_a_session_nobody_uses_ends(serve):
    front = serve(limits={"session_seconds": 0.2, "beat_seconds": 0.02})
    client = front.client()
    client.open()
    until(lambda: front.hub.left)
    assert client.ask("echo").status == 404


def test_a_minute_has_so_many_requests(serve):
    front = serve(per_minute=30)
    client, other = front.client(), front.client()
    replies = [client.ask("initialize")]
    while replies[-1].status == 200:
        replies.append(client.ask("initialize"))
    # Less than as many sessions as it may have: it is the minute that is over.
    assert 30 < len(replies) <= HttpLimits().sessions
    assert replies[-1].status == 429 and int(replies[-1].headers["retry-after"]) in (1, 2)
    assert other.open().status == 200


def test_so_many_requests_are_under_way_at_once(serve):
    front = serve(limits={"requests": 2})
    client = front.client()
    client.open()
    lines = []
    for number in range(2):
        lines.append(front.beside(client))
        body = json.dumps(request(number, "wait", {"gate": "g"}))
        lines[-1].line.request("POST", "/mcp", body, lines[-1].headers())
    until(lambda: len(front.hub.handled) == 3)
    assert front.front.busy == 2
    assert client.ask("echo").status == 429
    front.hub.gate("g").set()
    assert [each.line.getresponse().status for each in lines] == [200, 200]
    assert client.ask("echo").status == 200


def test_so_many_connections_are_open_at_once(serve):
    front = serve(limits={"connections": 4})
    clients = [front.client() for _ in range(4)]
    for each in clients:
        assert each.open().status == 200
    until(lambda: len(front.front._lines) == 4)
    assert status(raw(front.port, b"GET /health HTTP/1.1\r\n\r\n")) == 503
    for each in clients:
        each.close()
    until(lambda: not front.front._lines)
    assert front.client().open().status == 200


@pytest.mark.invariant("nor more than two of one client's together, however many requests it sends at once")
def test_one_client_s_requests_together_take_a_bounded_amount_of_memory(front, client, monkeypatch):
    monkeypatch.setattr(http_answers, "MOST_HELD", 100_000)
    client.open()
    body = json.dumps(request(1, "wait", {"gate": "g", "much": "x" * 70_000}))
    waiting = front.beside(client)
    waiting.line.request("POST", "/mcp", body, waiting.headers())
    until(lambda: len(front.hub.handled) == 2)
    refused = client.ask("echo", {"much": "x" * 70_000}, 2)
    assert refused.status == 429 and refused.headers["retry-after"] == "1"
    other = front.client()
    assert other.open().status == 200 and other.ask("echo", {"much": "x" * 70_000}).status == 200
    front.hub.gate("g").set()
    assert waiting.line.getresponse().status == 200
    assert front.beside(client).ask("echo", {"much": "x" * 70_000}, 3).status == 200


@pytest.mark.invariant("who has no token keeps nobody out")
def test_who_has_no_token_keeps_nobody_out(serve):
    """A page in a browser, or another user, may hold as many connections as there are, and use them."""
    front = serve(limits={"connections": 4})
    lines = [socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) for _ in range(4)]
    until(lambda: len(front.front._lines) == 4)
    for line in lines:
        line.sendall(f"GET /health HTTP/1.1\r\nhost: 127.0.0.1:{front.port}\r\n\r\n".encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
    client = front.client()
    assert client.open().status == 200 and client.ask("echo").status == 200
    assert lines[0].recv(4096) == b"" and len(front.front._lines) == 4
    for _ in range(8):
        lines.append(socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE))
        lines[-1].sendall(b"GET")
    until(lambda: len(front.front._lines) == 4)
    assert client.ask("echo").status == 200
    for line in lines:
        line.close()


def test_many_at_once_get_their_own_answers(front):
    clients = [front.client() for _ in range(8)]
    wrong = []

    def work(client, name):
        client.open()
        for number in range(50):
            reply = client.ask("echo", {"who": name}, number)
            if reply.json != response(number, {"who": name}):
                wrong.append(reply.raw)
        client.close()

    threads = [threading.Thread(target=work, args=(each, at)) for at, each in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert wrong == []
    assert len({each.session for each in clients}) == 8


@pytest.mark.parametrize("faster", [False, True])
def test_small_answers_leave_at_once(serve, faster):
    loop = {"loop_factory": pytest.importorskip("uvloop").new_event_loop} if faster else {}
    front = serve(**loop)
    front.client().open()
    (line,) = front.front._lines.values()
    wire = line._transport.get_extra_info("socket")
    assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_two_requests_in_one_breath_are_answered_in_turn(front, client):
    client.open()
    sent = b""
    for number in range(3):
        body = json.dumps(request(number, "echo", {})).encode()
        last = ("Connection: close",) if number == 2 else ()
        sent += head(front, client, f"Mcp-Session-Id: {client.session}", *last, length=len(body)) + body
    answer = raw(front.port, sent)
    assert [f'"id":{number}'.encode() in answer for number in range(3)] == [True] * 3
    assert answer.count(b"HTTP/1.1 200") == 3


def test_closing_leaves_nothing(store):
    front = Running(store)
    client = front.client()
    client.open()
    waiting = front.beside(client)
    body = json.dumps(request(3, "wait", {"gate": "never"}))
    waiting.line.request("POST", "/mcp", body, waiting.headers())
    until(lambda: len(front.hub.handled) == 2)
    front.run(front.front.close())
    assert waiting.line.getresponse().status == 503
    assert front.hub.left == [front.hub.met[0].id]
    assert front.hub.cancelled == [3]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE)
    front.close()


def test_another_port_is_taken_when_it_is_in_use(front, store):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = front.run(reopened(front.front, port))
    assert found != port
    assert front.front.url == f"http://127.0.0.1:{found}/mcp"


async def reopened(front, port):
    await front.close()
    return await front.open(port)


def test_it_runs_on_the_faster_loop_too(serve):
    uvloop = pytest.importorskip("uvloop")
    front = serve(loop_factory=uvloop.new_event_loop)
    client = front.client()
    client.open()
    assert client.ask("say", {"times": 2}).events[-1]["result"] == {"said": 2}
    client.line.request("POST", "/mcp", *stateless("wait", {"gate": "never"}, front.client()))
    until(lambda: len(front.hub.handled) == 3)
    client.close()
    until(lambda: front.hub.cancelled == [1])


def test_it_runs_without_httptools(serve, monkeypatch):
    import uvicorn.config

    monkeypatch.setitem(uvicorn.config.HTTP_PROTOCOLS, "auto", "uvicorn.protocols.http.h11_impl:H11Protocol")
    front = serve(loop_factory=MovedLoop)
    client = front.client()
    client.open()
    assert client.ask("say", {"times": 2}).events[-1]["result"] == {"said": 2}
    client.line.request("POST", "/mcp", *stateless("wait", {"gate": "never"}, client))
    until(lambda: len(front.hub.handled) == 3)
    client.close()
    until(lambda: front.hub.cancelled == [1])
    sent = head(front, client, "Host: evil.example", "Connection: close", length=2) + b"{}"
    assert status(raw(front.port, sent)) in (400, 403)
    with socket.create_connection(("127.0.0.1", front.port), timeout=PATIENCE) as line:
        line.sendall(b"POST /mcp HT")
        until(lambda: beginning(front))
        front.run(pass_seconds(2 * HttpLimits().head_seconds))
        assert drained(line) == b""


def test_nothing_of_asyncio_is_left_running(store):
    front = Running(store)
    front.client().open()
    front.run(front.front.close())

    async def others():
        return [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]

    assert front.run(others()) == []
    front.close()
