"""The API over a real chat: every answer is what the description says, and a fault has the status it is."""

import socket

import jsonschema_rs
import pytest

from chat_ground import Models, Talk, Tools, tool
from checkrein.console.api import openapi
from checkrein.console.api.endpoints import find, parts_of
from checkrein.console.serving import Console
from checkrein.doors.gateway.keeper import Unreachable
from checkrein.doors.gateway.pipes import PipeError
from checkrein.errors import StoreError
from checkrein.settings.sources import user_file


def strict(schema):
    """The same description, under which nothing is answered that it does not name."""
    if isinstance(schema, dict):
        found = {name: strict(each) for name, each in schema.items()}
        closed = isinstance(found.get("properties"), dict) and "additionalProperties" not in found
        return found | ({"additionalProperties": False} if closed else {})
    return [strict(each) for each in schema] if isinstance(schema, list) else schema


DOCUMENT = strict(openapi.document(7331))


def described(operation, status):
    """A validator for what an operation answers with a status; None where it answers no JSON."""
    answer = operation["responses"][str(status)]
    if "$ref" in answer:
        answer = DOCUMENT["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    schema = answer.get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return None
    return jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]})


@pytest.fixture
def talk(pipeline):
    put = tool("notes__put", schema={"type": "object", "required": ["text"]})
    made = Talk(pipeline, Tools(pipeline, tool("notes__get"), put), Models())
    yield made
    made.chat.close()


@pytest.fixture
def console(pipeline, agents, talk, serve):
    return serve(Console(pipeline, agents, chat=lambda: talk.chat))


@pytest.fixture
def asks(program):
    """Asks, and holds what comes back against the description; keeps which operations were looked at."""

    def asks(method, path, body=None, status=None):
        answer = program(method, path, body)
        found = find(method, parts_of(path.partition("?")[0].encode(), 1)).endpoint
        operation = DOCUMENT["paths"][found.path][method.lower()]
        assert status in (None, answer.status), answer.body
        assert str(answer.status) in operation["responses"], (path, answer.status, answer.body)
        asks.seen.add((method, found.path))
        validator = described(operation, answer.status)
        if validator is None:
            return answer.body
        faults = [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(answer.json)]
        assert not faults, (method, path, faults)
        return answer.json

    asks.seen = set()
    return asks


def test_every_answer_is_as_it_is_described(asks, talk):
    asks("GET", "/status")
    session = asks("POST", "/sessions", {"title": "Birds"}, 201)["id"]
    talk.id, talk.last = session, talk.chat.session(id=session)["last"]
    asks("POST", "/start", {"session": session}, 201)
    at = f"/sessions/{session}"
    run = asks("POST", f"{at}/messages", {"text": '/say hi\n/call notes__put {"text": "a"}'}, 202)["run"]
    (call,) = talk.asked()
    asks("GET", f"{at}/messages")
    asks("POST", f"/runs/{run}/calls/{call['call_id']}/approve", {"reason": "fine"})
    talk.over(run)
    second = asks("POST", f"{at}/messages", {"text": '/call notes__put {"text": "b"}'}, 202)["run"]
    (call,) = talk.asked()
    asks("POST", f"/runs/{second}/calls/{call['call_id']}/decline", {"reason": "no"})
    talk.over(second)
    opened = asks("GET", f"{at}/messages")
    first = next(each["id"] for each in opened["messages"] if each["role"] == "user")
    talk.over(asks("POST", f"{at}/messages/{first}/edit", {"text": "/slow 1\n/long 40"}, 202)["run"])
    talk.over(asks("POST", f"{at}/regenerate", {}, 202)["run"])
    last = asks("GET", f"{at}/messages")["messages"][-1]["id"]
    talk.over(asks("POST", f"{at}/messages/{last}/regenerate", {}, 202)["run"])
    asks("POST", f"{at}/messages/{first}/choose", {})
    third = asks("POST", f"{at}/messages", {"text": "/slow 50\n/long 400"}, 202)["run"]
    talk.until("text", run=third)
    asks("GET", f"{at}/messages")
    asks("POST", f"/runs/{third}/abort", {})
    asks("GET", at)
    asks("PATCH", at, {"title": "Other", "pinned": True, "archived": True, "metadata": {"a": [1]}})
    asks("GET", "/sessions?archived=true")
    asks("GET", f"{at}/tokens?input=x")
    asks("POST", f"{at}/tokens", {"input": "x"})
    asks("GET", f"{at}/preview")
    asks("POST", f"{at}/compress", {})
    asks("GET", f"{at}/messages")
    asks("GET", f"{at}/tools")
    text = asks("GET", f"{at}/export?form=json").decode()
    asks("POST", "/sessions/import", {"text": text, "form": "json"}, 201)
    assert asks("GET", "/search?q=word1")
    asks("GET", "/models")
    asks("GET", "/providers")
    asks("POST", "/providers/demo/test", {})
    asks("POST", "/providers/demo/refresh", {})
    asks("GET", "/resources")
    asks("GET", "/templates")
    asks("GET", "/prompts")
    asks("DELETE", at, status=204)
    asks("GET", at, status=404)
    asks("GET", "/sessions?limit=0", status=400)
    every = {(method.upper(), path) for path, ways in DOCUMENT["paths"].items() for method in ways}
    assert every - asks.seen == {("GET", "/sessions/{session}/events")}


@pytest.fixture
def silent():
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_provider_nobody_can_reach_is_no_mistake_of_who_asks(asks, talk, unused_port):
    talk.models.set("gone", "compatible", base_url=f"http://127.0.0.1:{unused_port}")
    told = asks("POST", "/providers/gone/refresh", {}, 502)["error"]
    assert told["code"] == "provider.failed" and "connection" in told["message"]


def test_a_provider_that_says_nothing_in_time_is_told_apart(asks, talk, silent):
    folder = user_file().parent
    folder.mkdir(parents=True, exist_ok=True)
    user_file().write_text("[connections]\ntimeout_seconds = 0.2\n")
    talk.models.set("mute", "compatible", base_url=silent)
    assert asks("POST", "/providers/mute/refresh", {}, 504)["error"]["code"] == "provider.silent"


def test_a_provider_without_its_key_is_no_mistake_of_who_asks(asks, talk, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    talk.models.set("keyless", "openai")
    told = asks("POST", "/providers/keyless/refresh", {}, 502)["error"]
    assert told["code"] == "provider.failed" and "OPENAI_API_KEY" in told["message"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unreachable("notes cannot be used now."), 502),
        (PipeError("notes cannot be started."), 502),
        (StoreError("The disk is gone."), 503),
    ],
)
def test_a_server_that_cannot_be_used_is_no_mistake_either(asks, talk, error, status):
    async def fails(*_given):
        raise error

    talk.tools.read = fails
    attached = {"text": "look", "attachments": [{"server": "notes", "uri": "note://1"}]}
    assert asks("POST", f"/sessions/{talk.id}/messages", attached, status)["error"]["code"] == error.code


@pytest.mark.parametrize("error", [TypeError("a secret"), ValueError("a secret"), KeyError("a secret")])
def test_what_breaks_in_chat_is_a_fault_of_ours_and_kept(asks, talk, console, error):
    async def breaks(*_given):
        raise error

    talk.tools.resources = breaks
    told = asks("GET", "/resources", status=500)["error"]
    assert told["code"] == "error" and "secret" not in told["message"]
    assert any("secret" in each for each in console.desk.failures)


def test_an_import_that_is_none_is_a_mistake_of_who_asks(asks):
    for text in ("", "{", "[]", '{"format": "checkrein.chat", "version": 1}', "\x00"):
        asks("POST", "/sessions/import", {"text": text, "form": "json"}, 400)
        asks("POST", "/sessions/import", {"text": text, "form": "markdown"}, 400)


@pytest.mark.parametrize(
    ("attached", "kind"),
    [
        ({"data": "cGx1bXM="}, "text/plain"),
        ({"name": "a.md", "data": "cGx1bXM="}, "text/plain"),
        ({"mime_type": "text/markdown", "data": "cGx1bXM="}, "text/markdown"),
    ],
)
def test_a_file_may_come_without_its_name_and_its_kind(asks, talk, attached, kind):
    sent = asks("POST", f"/sessions/{talk.id}/messages", {"text": "look", "attachments": [attached]}, 202)
    talk.over(sent["run"])
    (part,) = [each for each in talk.messages()[0]["parts"] if each["kind"] == "attachment"]
    assert (part["text"], part["mime_type"]) == ("plums", kind)


def test_a_file_that_is_no_base64_is_a_mistake_of_who_asks(asks, talk):
    attached = {"text": "look", "attachments": [{"data": "nonsense!"}]}
    assert "base64" in asks("POST", f"/sessions/{talk.id}/messages", attached, 400)["error"]["message"]


def test_who_comes_too_late_is_told_so(asks, talk):
    first = asks("POST", f"/sessions/{talk.id}/messages", {"text": '/call notes__put {"text": "a"}'}, 202)
    (call,) = talk.asked()
    told = asks("POST", f"/sessions/{talk.id}/messages", {"text": "more"}, 409)["error"]
    assert told["code"] == "conflict" and told["remedy"]
    at = f"/runs/{first['run']}/calls/{call['call_id']}"
    asks("POST", f"{at}/decline", {}, 200)
    talk.over(first["run"])
    for answer in ("approve", "decline"):
        assert asks("POST", f"{at}/{answer}", {}, 409)["error"]["code"] == "conflict"
    assert talk.tools.ran == []
