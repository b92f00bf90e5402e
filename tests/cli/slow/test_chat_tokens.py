"""A token for a program, from a terminal: the port opens, and closes to it again."""

import json
import urllib.error
import urllib.request

import pytest

from patience import PATIENCE

pytestmark = pytest.mark.usefixtures("server")


def knock(url, token, path="/sessions"):
    asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_program_is_let_in_seen_and_shown_out(run):
    assert "There are none" in run("chat", "token")
    made = run.json("chat", "token", "add", "ci", "--json")
    assert made["may"] == ["read", "change"]
    assert knock(made["url"], made["token"]) == (200, {"sessions": [], "total": 0})
    assert knock(made["url"], made["token"] + "x")[0] == 401
    (listed,) = run.json("chat", "token", "list", "--json")
    assert listed["used_at"]
    assert made["token"] not in run("chat", "token", "list")
    assert "Revoked ci" in run("chat", "token", "revoke", "ci")
    assert knock(made["url"], made["token"])[0] == 401
    assert "by " in run("chat", "token", "list", "--revoked")


def test_it_is_shown_with_what_to_do_next(run):
    text = run("chat", "token", "add", "ci", "--approve")
    assert "read, change, approve" in text
    assert "/openapi.json" in text
    assert "checkrein chat token revoke ci" in text


def test_what_cannot_be_is_said(run):
    assert "cannot approve" in run("chat", "token", "add", "ci", "--read-only", "--approve", code=2)
    assert "no token 'nobody'" in run("chat", "token", "revoke", "nobody", code=4)
