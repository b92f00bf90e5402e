"""Conversations with the reference servers behind them: in the terminal, over HTTP, over a killed server."""

import json
import os
import signal
import time
import urllib.request

import pytest

from e2e.gateway import parts
from e2e.gateway.gate import Gate
from patience import until

pytestmark = pytest.mark.timeout(240)
OURS = "@modelcontextprotocol"


@pytest.fixture(scope="module")
def gate():
    reference = parts.program("servers", script=f"{OURS}/server-everything/dist/index.js")
    files = parts.program("servers", script=f"{OURS}/server-filesystem/dist/index.js")
    with Gate().entered() as made:
        made.add("reference", reference)
        made.add("guarded", [*files, str(made.project)], allow=False)
        yield made


def said(*lines):
    return "\n".join(lines)


def test_one_question_in_the_terminal_uses_a_tool_a_rule_allows(gate):
    done = gate.checkrein(
        "chat", "--once", said('/call reference__echo {"message": "hello"}', "/then", "/results")
    )
    assert "Echo: hello" in done


def test_a_schema_a_model_gets_wrong_is_told_to_it_and_nothing_runs(gate):
    done = gate.checkrein("chat", "--once", said('/call reference__echo {"massage": 1}', "/then", "/results"))
    assert "message" in done
    assert "Echo:" not in done


def asked(opened):
    return [each for each in opened["calls"].values() if each.get("question")]


class Program:
    """Somebody's own program, with a token that may answer."""

    def __init__(self, gate):
        made = gate.verb("token.add", name="program", approve=True)
        self.url, self.token = made["url"], made["token"]

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def opened(self, session):
        return self.ask("GET", f"/sessions/{session}/messages")


@pytest.fixture(scope="module")
def program(gate):
    return Program(gate)


def test_a_program_asks_waits_and_answers_with_other_arguments(gate, program):
    target, other = gate.project / "asked.txt", gate.project / "approved.txt"
    session = program.ask("POST", "/sessions", {"title": "files"})["id"]
    call = json.dumps({"path": str(target), "content": "written"})
    program.ask("POST", f"/sessions/{session}/messages", {"text": f"/call guarded__write_file {call}"})
    waiting = until(
        lambda: [each for each in program.opened(session)["calls"].values() if each.get("question")]
    )
    assert not target.exists()
    edited = {"path": str(other), "content": "written"}
    path = f"/runs/{waiting[0]['run']}/calls/{waiting[0]['call_id']}/approve"
    assert program.ask("POST", path, {"edited": edited}) == {"answer": "approved"}
    until(lambda: program.opened(session)["run"] is None)
    assert other.read_text() == "written"
    assert not target.exists()


def test_a_server_killed_while_a_call_waits_loses_nothing_and_runs_it_once(gate, program):
    target = gate.project / "lines.txt"
    target.write_text("start\n")
    session = gate.verb("chat.create", title="kill")["id"]
    edit = {"path": str(target), "edits": [{"oldText": "start", "newText": "start\nmore"}]}
    gate.verb(
        "chat.send", session=session, text=f"/call guarded__edit_file {json.dumps(edit)}\n/then\n/say done"
    )
    (call,) = until(lambda: asked(gate.verb("chat.session", id=session)))
    os.kill(gate.verb("server.about")["pid"], signal.SIGKILL)
    time.sleep(0.2)
    (again,) = until(lambda: asked(gate.verb("chat.session", id=session)))
    assert (again["entry"], again["call_id"]) == (call["entry"], call["call_id"])
    gate.verb("chat.approve", run=call["run"], call=call["call_id"])
    until(lambda: gate.verb("chat.session", id=session)["run"] is None)
    assert target.read_text() == "start\nmore\n"
    last = gate.verb("chat.session", id=session)["messages"][-1]
    assert last["parts"][0]["text"] == "done"
