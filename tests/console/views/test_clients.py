import html
import http.client
import json
import re

import pytest

from checkrein.ledger.entries import body_of_row
from checkrein.store import records
from patience import PATIENCE


@pytest.fixture(autouse=True)
def port(user_settings, unused_port):
    user_settings(f"[gateway]\nhttp_port = {unused_port}\n")
    return unused_port


def token_in(text):
    return html.unescape(re.search(r'value="(ckrein_[^"]+)"', text)[1])


def knock(port, token):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    kind = "application/json"
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": f"{kind}, text/event-stream",
        "Content-Type": kind,
    }
    try:
        line.request("POST", "/mcp", json.dumps(body), headers)
        return line.getresponse().status
    except ConnectionRefusedError:
        return 0
    finally:
        line.close()


def test_a_token_is_shown_once_opens_the_gateway_and_is_taken_back(visitor, pipeline, port):
    answer = visitor.post("/servers/clients/add", {"name": "laptop"})
    assert answer.status == 200
    token = token_in(answer.text)
    address = re.search(r'value="http://127\.0\.0\.1:(\d+)/mcp"', answer.text)[1]
    assert int(address) == port
    assert "&#34;mcpServers&#34;" in answer.text
    assert knock(port, token) == 200
    page = visitor.get("/servers/clients").text
    assert token not in page
    assert 'data-client="laptop"' in page
    assert 'aria-label="Connected clients"' in page
    kinds = ("client_added", "client_revoked")
    made = re.search(r"/servers/clients/([^/]+)/revoke", page)[1]
    assert visitor.post(f"/servers/clients/{made}/revoke").status == 303
    assert knock(port, token) in (0, 401)
    page = visitor.get("/servers/clients").text
    assert "Revoked laptop." in page
    assert "data-client" not in page
    recorded = [body_of_row(row) for row in records.after(pipeline.store, 0, kinds)]
    assert len(recorded) == 2
    assert token not in json.dumps(recorded)
    assert visitor.post(f"/servers/clients/{made}/revoke").status == 404


@pytest.mark.parametrize("name", ["", "no good", "<script>alert(1)</script>", "x" * 65])
def test_a_name_that_cannot_be_one_comes_back(visitor, name):
    answer = visitor.post("/servers/clients/add", {"name": name})
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert "<script>alert" not in answer.text
    assert "ckrein_" not in answer.text


def test_a_name_is_given_once(visitor):
    assert visitor.post("/servers/clients/add", {"name": "laptop"}).status == 200
    assert visitor.post("/servers/clients/add", {"name": "laptop"}).status == 400


def test_who_is_connected_is_listed(visitor, monkeypatch):
    hostile = "<script>alert(1)</script>\u202e"
    here = {"label": hostile, "agent": hostile, "era": "handshake", "session": "s1", "under_way": 2}
    monkeypatch.setattr(visitor.console.desk, "connected", lambda: [here])
    page = visitor.get("/servers/clients").text
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "Nobody. An agent" not in page
