"""Programs over HTTP: what they ask arrives, what goes wrong is said in one form."""

import http.client
import json

import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.console.api.endpoints import ENDPOINTS
from checkrein.console.guard import LARGEST_BODY, LARGEST_UPLOAD
from patience import PATIENCE


def test_every_endpoint_asks_what_it_says(program, visitor, talker, console):
    bodies = {
        "send": {"text": "x"},
        "edit": {"text": "x"},
        "import": {"text": "{}"},
        "default": {"model": "a/b"},
    }
    for each in ENDPOINTS:
        if each.kind == "stream":
            continue
        path = each.path
        for name in each.names:
            path = path.replace(f"{{{name}}}", "s1")
        query = "?q=x" if each.ask == "search" else ""
        body = None if each.method in ("GET", "DELETE") else bodies.get(each.ask, {})
        if each.need == "person":
            headers = {"Content-Type": "application/json", "X-Csrf": visitor.csrf}
            sent = json.dumps(body) if body is not None else None
            answer = visitor.request(each.method, f"{visitor.place}/chat/api{path}", sent, headers)
        else:
            answer = program(each.method, path + query, body)
        assert answer.status == each.status, (each.path, answer.body)
        if each.ask not in ("session", "export"):
            assert talker.asked[-1][0].rstrip("_") == each.ask


def test_what_comes_in_an_address_is_read_as_what_it_is(program, talker):
    program("GET", "/sessions?archived=true&limit=5&offset=10")
    assert talker.asked[-1] == ("sessions", {"archived": True, "limit": 5, "offset": 10})


def test_names_in_a_path_may_hold_anything(program, talker):
    program("POST", "/runs/r%2F1/calls/call%7C%20a%2Fb/decline", {"reason": "no"})
    assert talker.asked[-1][1]["run"] == "r/1"
    assert talker.asked[-1][1]["call"] == "call| a/b"


def test_an_answer_bears_the_name_of_the_token(program, talker):
    program("POST", "/runs/r1/calls/c1/approve", {"edited": {"a": 1}, "remember": {"what": "exact"}})
    told = talker.asked[-1][1]
    assert told["edited"] == {"a": 1}
    assert told["channel"] == "api"
    assert told["actor"].endswith("(token ci)")


def test_a_session_alone_and_with_its_messages(program):
    assert program("GET", "/sessions/s1").json == {"id": "s1", "title": "One"}
    assert program("GET", "/sessions/s1/messages").json["messages"] == []


def test_a_deleted_session_leaves_nothing_to_say(program):
    answer = program("DELETE", "/sessions/s1")
    assert (answer.status, answer.body) == (204, b"")


def test_an_export_is_a_file(program):
    answer = program("GET", "/sessions/s1/export?form=markdown")
    assert answer.body == b"# s1\n"
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''One.md"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/nothing", None, 404, "not_found"),
        ("GET", "/sessions/s1/messages/extra/parts", None, 404, "not_found"),
        ("GET", "/sessions//messages", None, 404, "not_found"),
        ("DELETE", "/sessions", None, 405, "no_such_method"),
        ("GET", "/sessions/nobody", None, 404, "not_found"),
        ("GET", "/sessions?limit=0", None, 400, "input.invalid"),
        ("GET", "/sessions?limit=x", None, 400, "input.invalid"),
        ("GET", "/sessions?surprise=1", None, 400, "input.invalid"),
        ("GET", "/search", None, 400, "input.invalid"),
        ("POST", "/sessions/s1/messages", {}, 400, "input.invalid"),
        ("POST", "/sessions/s1/messages", {"text": 7}, 400, "input.invalid"),
        ("POST", "/sessions/s1/messages", ["x"], 400, "input.invalid"),
        ("PATCH", "/sessions/s1", {"tainted_by": ""}, 400, "input.invalid"),
        ("GET", "/sessions/nobody/events", None, 404, "not_found"),
    ],
)
def test_what_is_wrong_is_said(program, method, path, body, status, code):
    answer = program(method, path, body)
    assert answer.status == status, answer.body
    assert answer.code == code
    assert answer.json["error"]["message"]
    assert set(answer.json["error"]) == {"code", "message", "remedy"}


def test_what_else_there_is_is_said_too(program):
    assert program("DELETE", "/sessions").headers["allow"] == "GET, POST"


@pytest.mark.parametrize("raw", [b"{", b"\xff", b'{"text": "\xff"}', b"[" * 20_000, b"7", b'"x"'])
def test_what_is_no_json_is_said(program, raw):
    answer = program("POST", "/sessions/s1/messages", raw=raw)
    assert (answer.status, answer.code) == (400, "input.invalid")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"]
)
def test_only_json_is_taken(program, talker, kind):
    assert program("POST", "/sessions", {"title": "x"}, Content_Type=kind).status == 415
    assert talker.asked == []


def test_a_fault_of_ours_is_said_and_kept(program, talker, console):
    def broken(**_):
        raise RuntimeError("oops, a secret")

    talker.models = broken
    answer = program("GET", "/models")
    assert (answer.status, answer.code) == (500, "error")
    assert b"secret" not in answer.body
    assert any("oops" in each for each in console.desk.failures)


def test_what_is_no_text_comes_through(program, talker):
    talker.models = lambda: [{"ref": "\ud800"}]
    assert program("GET", "/models").json == [{"ref": "\ud800"}]


def test_answers_are_kept_by_nobody(program):
    headers = program("GET", "/models").headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def sent_length(program, path, length):
    line = http.client.HTTPConnection("127.0.0.1", program.console.port, timeout=PATIENCE)
    line.putrequest("POST", f"/api/v1{path}")
    line.putheader("Authorization", f"Bearer {program.token}")
    line.putheader("Content-Type", "application/json")
    line.putheader("Content-Length", str(length))
    line.endheaders()
    try:
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())["error"]["code"]
    finally:
        line.close()


def test_more_may_be_sent_where_files_are_sent(program, talker):
    text = "x" * 3_900_000
    files = [{"name": str(number), "data": "y" * 2_500_000} for number in range(4)]
    answer = program("POST", "/sessions/s1/messages", {"text": text, "attachments": files})
    assert answer.status == 202, answer.body
    assert [len(each["data"]) for each in talker.asked[-1][1]["attachments"]] == [2_500_000] * 4
    assert sent_length(program, "/sessions/s1/messages", LARGEST_UPLOAD + 1) == (413, "too_large")
    assert sent_length(program, "/sessions", LARGEST_BODY + 1) == (413, "too_large")


def test_a_body_without_a_length_is_counted(program):
    def pieces():
        for _ in range(LARGEST_UPLOAD // 65_536 + 2):
            yield b"x" * 65_536

    try:
        answer = program("POST", "/sessions/s1/messages", raw=pieces(), Transfer_Encoding="chunked")
    except (BrokenPipeError, ConnectionResetError):
        return
    assert (answer.status, answer.code) == (413, "too_large")


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PATCH", "DELETE", "HEAD"]),
    parts=st.lists(
        st.sampled_from(
            ["sessions", "runs", "calls", "s1", "messages", "..", "%00", "%2e%2e", "%ff", "%F0", "a"]
        ),
        max_size=5,
    ),
    body=st.binary(max_size=40),
)
def test_whatever_is_asked_the_answer_is_ours(make_once, method, parts, body):
    answer = make_once(method, "/" + "/".join(parts), raw=None if method in ("GET", "HEAD") else body)
    assert answer.status in (200, 201, 202, 204, 400, 404, 405, 429), answer.body
    if answer.status >= 400 and method != "HEAD":
        assert answer.json["error"]["message"]


@pytest.fixture
def make_once(make):
    return make("fuzz", approve=True)
