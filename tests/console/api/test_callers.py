"""Who may ask over HTTP, and who may not whatever they show."""

import json
import os
import subprocess
import sys

import pytest

from checkrein import peers
from checkrein.ledger.entries import body_of_row
from checkrein.store import records
from patience import PATIENCE, until

from .conftest import Program


def refusals(pipeline):
    return [
        body_of_row(row)["data"]["reason"]
        for row in records.after(pipeline.store, 0)
        if row[2] == "request_refused"
    ]


def test_without_a_token_nobody_comes_in(console, talker, pipeline):
    answer = Program(console, "")("GET", "/sessions")
    assert (answer.status, answer.code) == (401, "token.missing")
    assert answer.headers["www-authenticate"] == 'Bearer realm="checkrein"'
    assert talker.asked == []
    assert refusals(pipeline) == []


@pytest.mark.parametrize("path", ["/sessions", "/openapi.json", "/status", "/nothing", "/sessions/s1/events"])
def test_a_token_that_opens_nothing_is_recorded(console, talker, pipeline, path):
    answer = Program(console, "ckapi_123_wrong")("GET", path)
    assert (answer.status, answer.code) == (401, "token.unknown")
    assert refusals(pipeline) == ["a program showed a token that opens nothing"]


@pytest.mark.parametrize("change", [str.upper, lambda token: token[:-1], lambda token: token + "x"])
def test_a_token_counts_whole_or_not_at_all(make, change):
    whole = make()
    assert whole("GET", "/sessions").status == 200
    assert Program(whole.console, change(whole.token))("GET", "/sessions").status == 401


def test_two_tokens_are_none(program):
    line = Program(program.console, "")
    both = f"Bearer {program.token}"
    assert line("GET", "/sessions", Authorization=both).status == 200
    assert line("GET", "/sessions", Authorization=f"{both}, {both}").status == 401


def test_a_revoked_token_opens_nothing(make, person):
    program = make("old")
    assert program("GET", "/sessions").status == 200
    person("token.revoke", name="old")
    assert program("GET", "/sessions").status == 401


def test_when_a_token_was_used_is_seen(make, person):
    program = make("ci")
    assert person("token.list")[0]["used_at"] is None
    program("GET", "/sessions")
    assert person("token.list")[0]["used_at"]


CHANGES = [
    ("POST", "/sessions", {}),
    ("POST", "/sessions/s1/messages", {"text": "x"}),
    ("PATCH", "/sessions/s1", {"title": "x"}),
    ("DELETE", "/sessions/s1", None),
    ("POST", "/runs/r1/abort", {}),
    ("POST", "/runs/r1/calls/c1/approve", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_who_only_reads_changes_nothing(make, talker, method, path, body):
    program = make("reader", read_only=True)
    assert program("GET", "/sessions").status == 200
    answer = program(method, path, body)
    assert (answer.status, answer.code.split(".")[0]) == (403, "token")
    assert [name for name, _ in talker.asked] == ["sessions"]


@pytest.mark.parametrize("word", ["approve", "decline"])
def test_a_token_answers_only_if_a_person_said_it_may(make, talker, word):
    answer = make()("POST", f"/runs/r1/calls/c1/{word}", {})
    assert (answer.status, answer.code) == (403, "token.no_approve")
    assert "--approve" in answer.json["error"]["remedy"]
    assert talker.asked == []
    assert make("may", approve=True)("POST", f"/runs/r1/calls/c1/{word}", {}).status == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/providers/work", {"base_url": "http://evil.example"}),
        ("DELETE", "/providers/work", None),
        ("POST", "/default", {"model": "x"}),
    ],
)
def test_no_token_changes_where_a_key_is_sent_to(program, talker, method, path, body):
    answer = program(method, path, body)
    assert (answer.status, answer.code) == (403, "person.only")
    assert talker.asked == []


ASK = """
import http.client, sys
line = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
line.request("GET", sys.argv[3], None, {"Authorization": "Bearer " + sys.argv[2]})
answer = line.getresponse()
print(answer.status, answer.read().decode())
"""


def ask_apart(program, path, **more):
    words = [sys.executable, "-c", ASK, str(program.console.port), program.token, f"/api/v1{path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE, **more)
    status, _, body = done.stdout.partition(" ")
    return int(status), json.loads(body)


@pytest.mark.parametrize("path", ["/sessions", "/status", "/openapi.json", "/sessions/s1/events"])
def test_what_an_agent_runs_is_refused_and_recorded(make, pipeline, talker, met, path):
    program = make(approve=True)
    if path != "/sessions/s1/events":
        assert ask_apart(program, path)[0] == 200
    before = len(talker.asked)
    met()
    status, body = ask_apart(program, path)
    assert status == 403
    assert body["error"]["code"] == "person.only"
    assert len(talker.asked) == before
    assert refusals(pipeline) == [
        "a program showed the token ci, and it comes from inside the claude-code session s9"
    ]


def test_whose_process_cannot_be_told_is_refused(program, finder):
    finder.answer = lambda *_: None
    assert program("GET", "/sessions").code == "person.only"


def test_another_users_process_is_refused(program, finder):
    finder.answer = lambda *_: peers.Peer(os.getpid(), os.geteuid() + 1)
    answer = program("GET", "/sessions")
    assert answer.status == 403
    assert "another user" in answer.json["error"]["message"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_another_site_is_refused_even_with_a_token(program, talker, origin):
    answer = program("GET", "/sessions", Origin=origin)
    assert (answer.status, answer.code) == (403, "other_site")
    assert talker.asked == []


def test_another_name_of_this_machine_is_refused(program):
    assert program("GET", "/sessions", Host="evil.example").code == "other_host"


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(program, method):
    assert program(method, "/sessions").status == 405


def test_a_cookie_is_no_token(visitor, talker):
    assert visitor.request("GET", "/api/v1/sessions").status == 401


def ours(visitor, method, path, body=None, **headers):
    sent = {"Content-Type": "application/json", "X-Csrf": visitor.csrf}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    content = None if body is None else json.dumps(body)
    return visitor.request(method, f"{visitor.place}/chat/api{path}", content, sent)


def test_our_own_page_asks_the_same(visitor, talker):
    assert ours(visitor, "GET", "/sessions?limit=3").status == 200
    assert ours(visitor, "POST", "/sessions", {"title": "x"}).status == 201
    assert ours(visitor, "PATCH", "/sessions/s1", {"pinned": True}).status == 200
    assert ours(visitor, "POST", "/runs/r1/calls/c1/approve", {}).status == 200
    assert talker.asked[-1][1]["channel"] == "console"
    assert ours(visitor, "DELETE", "/sessions/s1").status == 204


def test_who_is_not_signed_in_gets_nothing(stranger, visitor, talker):
    for method in ("GET", "POST"):
        answer = stranger.request(method, f"{visitor.place}/chat/api/sessions")
        assert answer.status == 401
        assert json.loads(answer.body)["error"]["code"] == "signed_out"
    assert talker.asked == []


@pytest.mark.parametrize(
    "headers",
    [{"X-Csrf": "wrong"}, {"X-Csrf": ""}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}],
)
def test_nothing_changes_for_another_page(visitor, talker, headers):
    answer = ours(visitor, "POST", "/sessions", {}, **headers)
    assert answer.status == 403
    assert talker.asked == []


def test_a_program_that_asks_too_much_waits(make, console, monkeypatch):
    program, other = make("busy"), make("other")
    console.desk.holders._buckets.clear()
    monkeypatch.setattr("checkrein.console.api.holders.PER_MINUTE", 2)
    found = [program("GET", "/models") for _ in range(3)]
    assert [each.status for each in found] == [200, 200, 429]
    assert int(found[-1].headers["retry-after"]) >= 1
    assert other("GET", "/models").status == 200


def test_guessing_tokens_is_slow(console):
    guess = Program(console, "ckapi_1_x")
    codes = [guess("GET", "/models").status for _ in range(60)]
    assert codes == [401] * 60
    until(lambda: guess("GET", "/models").status == 429)
