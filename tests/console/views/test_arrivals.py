import html
import json
import re

import pytest

from checkrein.ledger.entries import body_of_row
from checkrein.settings.secrets import list_secrets, secrets_file
from checkrein.settings.servers import read_servers, servers_file
from checkrein.store import records

TOKEN = "ghp_" + "a1B2" * 9
HOSTILE = "<script>alert(1)</script>\u202egnp"


def marks(text):
    return re.findall(r'name="pick" value="([^"]+)"', text)


def everything(visitor):
    """All that any page of the servers says."""
    paths = ("", "/of/notes", "/of/notes/logs", "/secrets", "/import?source=cursor", "/clients", "/rows")
    return "".join(html.unescape(visitor.get(f"/servers{path}").text) for path in paths)


@pytest.fixture
def cursor(home):
    def write(servers):
        path = home / ".cursor" / "mcp.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    return write


def test_secrets_go_to_the_store_and_onto_no_page(visitor, notes, pipeline):
    fields = {
        "name": "notes",
        "line": notes.line,
        "env": f"API_KEY=correct horse\nCITY=Dresden\nGITHUB={TOKEN}",
        "answer": "start",
    }
    assert visitor.post("/servers/add", fields).status == 303
    assert "Kept as secrets: notes.API_KEY, notes.GITHUB." in visitor.get("/servers/of/notes").text
    written = servers_file().read_text(encoding="utf-8")
    assert "${keyring:notes.API_KEY}" in written
    assert set(list_secrets()) == {"notes.API_KEY", "notes.GITHUB"}
    recorded = json.dumps(
        [body_of_row(row) for row in records.after(pipeline.store, 0, ("servers_changed",))]
    )
    for text in (written, recorded, everything(visitor)):
        assert "correct horse" not in text
        assert TOKEN not in text
    assert secrets_file().stat().st_mode & 0o777 == 0o600


def test_an_address_with_headers(visitor):
    fields = {
        "name": "issues",
        "url": "https://mcp.invalid/mcp",
        "headers": f"Authorization: Bearer {TOKEN}",
        "oauth": "yes",
        "trusted": "yes",
        "timeout": "90",
        "share": "client",
        "answer": "write",
    }
    assert visitor.post("/servers/add", fields).status == 303
    made = read_servers().servers["issues"]
    assert made.headers == {"Authorization": "${keyring:issues.Authorization}"}
    assert (made.oauth, made.trusted, made.timeout, made.share, made.enabled) == (
        True,
        True,
        90,
        "client",
        False,
    )
    assert "you vouch for it" in visitor.get("/servers").text


def test_a_sign_in_as_a_client_that_was_registered(visitor):
    fields = {
        "name": "issues",
        "url": "https://mcp.invalid/mcp",
        "oauth_client_id": "our-client",
        "oauth_client_secret": "correct horse",
        "oauth_scope": "read write",
        "oauth_redirect_uri": "http://127.0.0.1:8642/back",
        "answer": "write",
    }
    assert visitor.post("/servers/add", fields).status == 303
    made = read_servers().servers["issues"].oauth
    assert (made.client_id, made.scope) == ("our-client", "read write")
    assert made.client_secret == "${keyring:issues.clientSecret}"
    assert made.redirect_uri == "http://127.0.0.1:8642/back"
    for text in (servers_file().read_text(encoding="utf-8"), visitor.get("/servers/of/issues").text):
        assert "correct horse" not in text


def test_a_registered_client_that_cannot_be_right_comes_back_without_its_secret(visitor):
    fields = {"name": "issues", "url": "https://mcp.invalid/mcp", "oauth_client_secret": "correct horse"}
    answer = visitor.post("/servers/add", {**fields, "oauth_scope": "read"})
    assert answer.status == 400
    assert "clientId" in answer.text and 'value="read"' in answer.text
    assert "secrets again" in answer.text and "correct horse" not in answer.text
    assert read_servers().servers == {} and list_secrets() == {}


def test_a_command_with_a_folder_and_variables_passed_on(visitor, home):
    fields = {"name": "x", "line": "run ~/it", "cwd": str(home), "inherit": "LANG, EDITOR", "answer": "write"}
    assert visitor.post("/servers/add", fields).status == 303
    made = read_servers().servers["x"]
    assert (made.command, made.args) == ("run", (f"{home}/it",))
    assert (made.cwd, made.inherit, made.enabled) == (str(home), ("LANG", "EDITOR"), False)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "x"}, "a command or an address"),
        ({"name": "x", "line": "run", "url": "https://a.invalid/"}, "not both"),
        ({"name": "no good", "line": "run"}, "name"),
        ({"name": "checkrein", "line": "run"}, ""),
        ({"name": "x", "line": "run 'it"}, "quote"),
        ({"name": "x", "line": "run", "timeout": "soon"}, "whole number"),
        ({"name": "x", "url": "ftp://a.invalid"}, "url"),
        ({"name": "x", "line": "run", "share": "nobody"}, "share"),
        ({"name": HOSTILE, "line": HOSTILE, "description": HOSTILE}, ""),
    ],
)
def test_a_server_that_cannot_be_right_comes_back_with_why(visitor, fields, why):
    answer = visitor.post("/servers/add", {**fields, "env": f"API_KEY={TOKEN}"})
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert why in answer.text
    assert TOKEN not in answer.text
    assert "Write the variables, headers and secrets again." in answer.text
    assert "<script>alert" not in answer.text
    assert read_servers().servers == {}
    assert list_secrets() == {}


def test_a_line_that_is_no_variable_is_not_repeated(visitor):
    answer = visitor.post("/servers/add", {"name": "x", "line": "run", "env": TOKEN})
    assert answer.status == 400
    assert TOKEN not in answer.text


def test_a_name_is_taken_once(visitor, added):
    assert visitor.post("/servers/add", {"name": "notes", "line": "true"}).status == 400


def test_what_another_program_has_is_shown_then_brought_along(visitor, notes, cursor):
    command, *args = notes.words
    cursor(
        {
            "notes": {"command": command, "args": args, "env": {"API_KEY": "correct horse", "CITY": "Rome"}},
            "other": {"command": "other", "args": ["--flag", HOSTILE]},
            "checkrein": {"command": "checkrein", "args": ["mcp"]},
        }
    )
    page = visitor.get("/servers/import?source=cursor").text
    assert str(notes.said) in html.unescape(page)
    assert "correct horse" not in page
    assert "Rome" not in page
    assert "<script>alert" not in page
    assert "Goes into the secret store: notes.API_KEY." in page
    assert len(marks(page)) == 2
    fields = {"source": "cursor", "pick": marks(page)[0]}
    assert visitor.post("/servers/import/chosen", fields).status == 303
    assert "Imported notes." in visitor.get("/servers").text
    assert list(read_servers().servers) == ["notes"]
    assert "correct horse" not in everything(visitor)
    again = visitor.get("/servers/import?source=cursor").text
    assert "there already" in again
    assert len(marks(again)) == 1


def test_what_became_another_thing_since_it_was_shown_is_not_brought_along(visitor, cursor):
    cursor({"tidy": {"command": "tidy"}})
    seen = marks(visitor.get("/servers/import?source=cursor").text)
    cursor({"tidy": {"command": "tidy", "args": ["--evil"]}})
    assert visitor.post("/servers/import/chosen", {"source": "cursor", "pick": seen}).status == 303
    assert "changed since it was shown" in visitor.get("/servers").text
    assert visitor.post("/servers/import/chosen", {"source": "cursor"}).status == 303
    assert "Choose some first." in visitor.get("/servers").text
    assert read_servers().servers == {}


def test_a_value_an_editor_asked_for_is_asked_for_here(visitor, home):
    path = home / ".config" / "Code" / "User" / "mcp.json"
    path.parent.mkdir(parents=True)
    server = {"command": "true", "env": {"KEY": "${input:key}"}}
    path.write_text(json.dumps({"servers": {"tidy": server}}), encoding="utf-8")
    page = visitor.get("/servers/import?source=vscode").text
    assert "Needs a value afterwards: tidy.key." in page
    answer = visitor.post("/servers/import/chosen", {"source": "vscode", "pick": marks(page)})
    assert answer.headers["location"].endswith("/servers/secrets")
    assert "no value yet" in visitor.get("/servers/secrets").text
    fields = {"name": "tidy.key", "value": "correct horse"}
    assert visitor.post("/servers/secrets/keep", fields).status == 303
    page = visitor.get("/servers/secrets").text
    assert "Kept tidy.key" in page
    assert "no value yet" not in page
    assert "correct horse" not in page


@pytest.mark.parametrize("source", ["cursor", "nobody", "../x", HOSTILE])
def test_where_nothing_is_nothing_is_found(visitor, source):
    from urllib.parse import quote

    answer = visitor.get(f"/servers/import?source={quote(source)}")
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert "<script>alert" not in answer.text
    assert visitor.post("/servers/import/chosen", {"source": source, "pick": "x"}).status == 404


def test_a_file_that_cannot_be_read_is_said(visitor, home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text("{broken", encoding="utf-8")
    assert visitor.get("/servers/import?source=cursor").status == 400


def test_a_broken_file_of_ours_takes_nothing_in(visitor, cursor):
    cursor({"tidy": {"command": "tidy"}})
    servers_file().parent.mkdir(parents=True, exist_ok=True)
    servers_file().write_text("{broken", encoding="utf-8")
    assert visitor.get("/servers/import?source=cursor").status == 400


def test_a_secret_is_forgotten_with_a_tick(visitor):
    visitor.post("/servers/secrets/keep", {"name": "mine", "value": "v"})
    visitor.post("/servers/secrets/forget", {"name": "mine"})
    assert "Tick the box" in visitor.get("/servers/secrets").text
    visitor.post("/servers/secrets/forget", {"name": "mine", "sure": "yes"})
    assert "Forgot mine." in visitor.get("/servers/secrets").text
    assert list_secrets() == {}
    assert visitor.post("/servers/secrets/forget", {"name": "mine", "sure": "yes"}).status == 404
    assert visitor.post("/servers/secrets/keep", {"name": "not a name", "value": TOKEN}).status == 400
