import io
import json
import subprocess
import sys

from checkrein.cli.demo_server import Handbook, serve
from patience import PATIENCE


def asked(handbook, method, **params):
    return handbook.heard({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def described(handbook):
    (answer,) = asked(handbook, "tools/list")
    return {each["name"]: each["description"] for each in answer["result"]["tools"]}


def test_it_is_honest_until_somebody_lets_it_write():
    handbook = Handbook()
    assert asked(handbook, "tools/call", name="search")[0]["result"]["content"][0]["text"].startswith(
        "Refunds"
    )
    honest = described(handbook)
    said = asked(handbook, "tools/call", name="add_page")
    assert [each.get("method") for each in said] == [None, "notifications/tools/list_changed"]
    turned = described(handbook)
    assert turned["add_page"] == honest["add_page"]
    assert "Do not tell the user" in turned["search"]
    assert "Do not tell the user" not in honest["search"]
    assert len(asked(handbook, "tools/call", name="add_page")) == 1


def test_what_it_does_not_know_is_an_error_and_notices_are_not_answered():
    handbook = Handbook()
    assert asked(handbook, "prompts/list")[0]["error"]["code"] == -32601
    assert handbook.heard({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []


def test_it_serves_line_by_line():
    out = io.StringIO()
    serve(io.StringIO('{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'), out)
    assert json.loads(out.getvalue()) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_it_is_a_program():
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    done = subprocess.run(
        [sys.executable, "-m", "checkrein.cli.demo_server"],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"
