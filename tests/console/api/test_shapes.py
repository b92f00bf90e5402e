"""What a real chat answers is what the description says it answers."""

import json

import jsonschema_rs
import msgspec
import pytest

from checkrein.authority.phase import switch
from checkrein.console.api import openapi, shapes
from checkrein.console.serving import Console
from checkrein.doors.chat.chat import Chat
from mcp_stdio import Notes
from patience import until

DOCUMENT = openapi.document(1)


def test_a_failure_is_what_is_sent():
    sent = {"error": {"code": "not_found", "message": "No.", "remedy": ""}}
    assert msgspec.to_builtins(msgspec.convert(sent, shapes.Failure)) == sent


@pytest.fixture
def chat(pipeline, gateway):
    """A real chat, with the built-in model and the gateway's tools."""
    gateway()
    made = Chat(pipeline, lambda: gateway().guest("chat"))
    made.open()
    yield made
    made.close()


@pytest.fixture
def console(pipeline, agents, gateway, chat, serve):
    return serve(Console(pipeline, agents, None, gateway, lambda: chat))


@pytest.fixture
def notes(pipeline, person, gateway, tmp_path, console):
    """A server whose tools a person accepted."""
    switch(pipeline, "building", "ada", "terminal")
    ask = console.desk.ask
    program, *words = Notes(tmp_path).words
    ask("upstream.add", name="notes", entry={"command": program, "args": words})
    found = until(
        lambda: [each for each in ask("upstream.review", name="notes") if each["state"] != "accepted"]
    )
    picks = [{"kind": each["kind"], "name": each["name"], "hash": each["hash"]} for each in found]
    ask("upstream.accept", name="notes", picks=picks)


@pytest.fixture
def get(program):
    """Asks, and holds the answer against its description."""

    def check(method, path, body=None, *, operation=None):
        answer = program(method, path, body)
        template = operation or path.partition("?")[0]
        responses = DOCUMENT["paths"][template][method.lower()]["responses"]
        assert str(answer.status) in responses, answer.body
        assert answer.status < 300, answer.body
        if answer.status == 204:
            return None
        schema = responses[str(answer.status)]["content"]["application/json"]["schema"]
        jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}).validate(answer.json)
        return answer.json

    return check


def wait_over(program, session, kinds=("end", "error", "aborted"), after=""):
    """Follow the session until something of these happens; what happened."""
    line, response = program.listen(f"/sessions/{session}/events?after={after}")
    happened, kind = [], ""
    try:
        while True:
            text = response.readline().decode()
            assert text, happened
            if text.startswith("event: "):
                kind = text.removeprefix("event: ").strip()
            elif text.startswith("data: "):
                happened.append((kind, json.loads(text.removeprefix("data: "))))
                if kind in kinds:
                    return happened
    finally:
        line.close()


def test_a_conversation_over_http_from_its_first_word_to_its_end(get, program):
    assert get("GET", "/status")["ready"]
    session = get("POST", "/sessions", {"title": "Birds"})["id"]
    one = {"operation": "/sessions/{session}"}
    last = get("GET", f"/sessions/{session}/messages", operation="/sessions/{session}/messages")["last"]
    path = f"/sessions/{session}/messages"
    get(
        "POST", path, {"text": "/think hm\n/say The plover sleeps."}, operation="/sessions/{session}/messages"
    )
    happened = wait_over(program, session, after=last)
    text = "".join(data["delta"] for kind, data in happened if kind == "text")
    assert text == "The plover sleeps."
    opened = get("GET", path, operation="/sessions/{session}/messages")
    assert [each["role"] for each in opened["messages"]] == ["user", "assistant"]
    assert get("GET", f"/sessions/{session}", **one)["message_count"] == 2
    assert get("GET", "/sessions")["total"] == 1
    assert get("GET", "/search?q=plover")
    assert get("PATCH", f"/sessions/{session}", {"pinned": True}, **one)["pinned_at"]
    for name in ("tokens", "preview", "tools"):
        get("GET", f"/sessions/{session}/{name}", operation=f"/sessions/{{session}}/{name}")
    get("POST", f"/sessions/{session}/tokens", {"input": "x"}, operation="/sessions/{session}/tokens")
    get("POST", f"/sessions/{session}/compress", {}, operation="/sessions/{session}/compress")
    get("POST", "/providers/demo/refresh", {}, operation="/providers/{name}/refresh")
    for path in ("/models", "/providers", "/resources", "/templates", "/prompts"):
        get("GET", path)
    get("POST", "/providers/demo/test", {}, operation="/providers/{name}/test")
    exported = program("GET", f"/sessions/{session}/export?form=json")
    assert "plover" in exported.body.decode()
    again = get("POST", "/sessions/import", {"text": exported.body.decode()})
    assert again["message_count"] == 2
    assert get("POST", "/start", {"session": session})["history"]
    get("DELETE", f"/sessions/{session}", **one)
    assert program("GET", f"/sessions/{session}").status == 404


def test_branches_over_http(get, program):
    session = get("POST", "/sessions", {})["id"]
    messages = f"/sessions/{session}/messages"

    def turn(path, body, operation):
        last = program("GET", messages).json["last"]
        made = get("POST", path, body, operation=operation)
        wait_over(program, session, after=last)
        return made

    sent = turn(messages, {"text": "/say one"}, "/sessions/{session}/messages")
    first = program("GET", messages).json["messages"][-1]["id"]
    turn(f"/sessions/{session}/regenerate", {}, "/sessions/{session}/regenerate")
    opened = get("GET", messages, operation="/sessions/{session}/messages")
    assert len(opened["siblings"][first]) == 2
    choose = "/sessions/{session}/messages/{message}/choose"
    assert get("POST", f"{messages}/{first}/choose", {}, operation=choose)["head"] == first
    edit = "/sessions/{session}/messages/{message}/edit"
    turn(f"{messages}/{sent['message']}/edit", {"text": "/say two"}, edit)
    assert program("GET", messages).json["messages"][-1]["parts"][0]["text"] == "two"


def test_a_call_is_answered_over_http(get, program, notes, pipeline):
    session = get("POST", "/sessions", {})["id"]
    tools = get("GET", f"/sessions/{session}/tools", operation="/sessions/{session}/tools")
    assert [each["server"] for each in tools] == ["notes"]
    path, messages = f"/sessions/{session}/messages", "/sessions/{session}/messages"
    for word, status in (("approve", "completed"), ("decline", "denied")):
        last = program("GET", path).json["last"]
        run = get("POST", path, {"text": '/call notes__delete_note {"title": "a"}'}, operation=messages)[
            "run"
        ]
        happened = wait_over(program, session, ("approval_required", "error"), last)
        call = happened[-1][1]["call"]
        opened = get("GET", path, operation=messages)
        assert opened["run"]["id"] == run
        assert opened["calls"][f"{run}/{call['call_id']}"]["question"]["offers"]
        asked = f"/runs/{run}/calls/{call['call_id']}/{word}"
        get("POST", asked, {"reason": "so"}, operation=f"/runs/{{run}}/calls/{{call}}/{word}")
        wait_over(program, session, after=last)
        ended = program("GET", path).json["calls"][f"{run}/{call['call_id']}"]
        assert ended["status"] == status
        assert ended["answered_by"]


def test_a_run_is_stopped_over_http(get, program):
    session = get("POST", "/sessions", {})["id"]
    path = f"/sessions/{session}/messages"
    last = program("GET", path).json["last"]
    run = program("POST", path, {"text": "/slow 200\n/long 500"}).json["run"]
    wait_over(program, session, ("text",), last)
    assert get("POST", f"/runs/{run}/abort", {}, operation="/runs/{run}/abort") == {"aborted": True}
    assert wait_over(program, session, after=last)[-1][0] == "aborted"
