"""A token for a client, from a terminal: it opens the gateway's port, and is taken back."""

import http.client
import json

import pytest

from patience import PATIENCE


def knock(url, token):
    place = url.removeprefix("http://").partition("/")[0]
    line = http.client.HTTPConnection(place, timeout=PATIENCE)
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    try:
        line.request("POST", "/mcp", json.dumps(body), headers)
        answer = line.getresponse()
        answer.read()
        return answer.status
    except ConnectionError:
        return None
    finally:
        line.close()


def test_a_client_is_let_in_seen_and_shown_out(run, server):
    assert "Nobody has a token" in run("clients")
    made = run.json("clients", "add", "laptop", "--json")
    assert knock(made["url"], made["token"]) == 200
    assert knock(made["url"], made["token"] + "x") == 401
    (listed,) = run.json("clients", "list", "--json")
    assert (listed["name"], "token" in listed) == ("laptop", False)
    other = run.json("clients", "add", "phone", "--json")
    assert other["url"] == made["url"]
    assert "Revoked laptop" in run("clients", "revoke", "laptop")
    assert knock(made["url"], made["token"]) == 401
    assert knock(made["url"], other["token"]) == 200
    assert run.json("clients", "revoke", "phone", "--json")["name"] == "phone"
    assert "by " in run("clients", "list", "--revoked")


def test_the_token_is_shown_with_settings_to_paste(run, server):
    text = run("clients", "add", "laptop")
    token = next(line.split()[1] for line in text.splitlines() if line.startswith("Token"))
    settings = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert settings["mcpServers"]["checkrein"]["headers"] == {"Authorization": f"Bearer {token}"}
    assert "checkrein clients revoke laptop" in text
    assert token not in run("clients", "list")


def test_what_cannot_be_is_said(run):
    assert "no client 'nobody'" in run("clients", "revoke", "nobody", code=4)


@pytest.mark.parametrize("words", [("add", "x"), ("revoke", "laptop")])
def test_an_agent_gives_no_tokens_and_takes_none(run, server, agent, words):
    run("clients", "add", "laptop", "--json")
    done = agent.run("clients", *words)
    assert done.returncode == 7
    assert [each["name"] for each in run.json("clients", "list", "--json")] == ["laptop"]
