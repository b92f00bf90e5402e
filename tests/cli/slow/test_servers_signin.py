"""Signing in as a user meets it: a real server of ours, a real sign-in page, a browser beside it."""

import json
import re
import socket
import webbrowser

import pytest

from checkrein.cli import servers_signin
from checkrein.cli.opening import reading
from checkrein.doors.gateway.signed_in import is_signed_in
from checkrein.store import records
from doors.gateway.provider import Provider, signs_in
from patience import PATIENCE, until

pytest.importorskip("mcp")
from doors.gateway.sdk_site import SdkSite


@pytest.fixture
def provider():
    with Provider() as made:
        yield made


@pytest.fixture
def mail(run, server, provider):
    """A server that wants a sign-in, added as a user does."""
    shown = run("servers", "add", "mail", "--url", provider.url, "--oauth", code=1)
    assert "checkrein servers sign-in mail" in shown
    return provider


def way_of(signing):
    address = re.compile(r"^http://127\.0\.0\.1:\d+/authorize\?\S+$", re.MULTILINE)
    return until(lambda: address.search(signing.said()))[0]


def test_a_person_signs_in(run, mail, started):
    signing = started("servers", "sign-in", "mail", "--no-browser")
    signs_in(way_of(signing))
    assert signing.wait(PATIENCE) == 0
    shown = signing.said()
    assert "Signed in at mail." in shown and "mail: ready" in shown and "servers review mail" in shown
    assert "0 offered, 1 hidden" in run("servers")
    assert run.json("servers", "sign-in", "mail", "--json")["state"] == "done"
    assert "Signed out of mail." in run("servers", "sign-out", "mail")
    assert not is_signed_in("mail")
    assert "Nobody was signed in" in run("servers", "sign-out", "mail")
    assert run.json("servers", "sign-out", "mail", "--json")["forgot"] is False
    with reading() as reader:
        record = "".join(str(row) for row in records.after(reader, 0))
    assert "signed_in" in record and "signed_out" in record and "token-1" not in record


def test_a_person_signs_in_as_a_client_they_registered(run, server, started):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        back = f"http://localhost:{free.getsockname()[1]}/callback"
    with SdkSite() as site:
        site.knows(back)
        shown = run(
            *("servers", "add", "garden", "--url", site.url, "--oauth-client-id", "mine"),
            *("--oauth-client-secret", "s3cret/+", "--oauth-scope", "plants", "--oauth-redirect-uri", back),
            code=1,
        )
        assert "checkrein servers sign-in garden" in shown and "coming back to:         " + back in shown
        signing = started("servers", "sign-in", "garden", "--no-browser")
        signs_in(way_of(signing))
        assert signing.wait(PATIENCE) == 0
        assert "Signed in at garden." in signing.said() and "garden: ready" in signing.said()
        run("servers", "accept", "garden", "--yes")
        assert "1 offered" in run("servers")
        (asked,) = site.memory.asked
        assert (asked.scopes, str(asked.redirect_uri)) == (["plants"], back)
    assert "s3cret" not in run("servers", "--json") + run("audit", "export", "--format", "jsonl")


def test_what_a_script_reads_is_one_answer(mail, started, home):
    signing = started("servers", "sign-in", "mail", "--json")
    signs_in(way_of(signing))
    assert signing.wait(PATIENCE) == 0
    answer = json.loads(signing.said().partition("come back ...")[2])
    assert (answer["state"], answer["signed_in"]) == ("done", True)


def test_a_no_is_an_error_with_its_reason(mail, started):
    mail.refused = "access_denied"
    signing = started("servers", "sign-in", "mail", "--no-browser")
    signs_in(way_of(signing))
    assert signing.wait(PATIENCE) == 1
    assert "said no (access_denied" in signing.said() and "Traceback" not in signing.said()


def test_a_server_that_is_removed_meanwhile(run, mail, started):
    signing = started("servers", "sign-in", "mail", "--no-browser")
    way_of(signing)
    run("servers", "remove", "mail", "--yes")
    assert signing.wait(PATIENCE) != 0
    assert "There is no server 'mail'" in signing.said() or "given up" in signing.said()


def test_servers_without_a_sign_in_say_so(run, server, provider):
    run("servers", "add", "plain", "--url", "https://mcp.example.test/mcp", "--no-start")
    assert "oauth" in run("servers", "sign-in", "plain", code=2)
    assert "There is no server" in run("servers", "sign-in", "nobody", code=4)
    assert "There is no server" in run("servers", "sign-out", "nobody", code=4)


def test_an_agent_signs_nobody_in_and_learns_no_address(mail, agent):
    for words in (("sign-in", "mail", "--json"), ("sign-out", "mail")):
        done = agent.run("servers", *words)
        assert done.returncode == 7 and "authorize" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("no_browser", "far", "tty"),
    [(False, "", True), (False, "", False), (True, "", True), (False, "x", True)],
)
def test_the_browser_is_opened_where_the_person_sits(monkeypatch, capsys, no_browser, far, tty):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(servers_signin.sys.stderr, "isatty", lambda: tty, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", far)
    url = "https://accounts.example/authorize"
    servers_signin._show_way({"url": url, "port": 4711}, no_browser)
    said = capsys.readouterr().err
    assert url in said and ("ssh -L 4711:127.0.0.1:4711" in said) == bool(far)
    assert opened == ([] if no_browser or far or not tty else [url])


def test_an_attempt_somebody_gave_up(monkeypatch):
    monkeypatch.setattr(servers_signin, "ask_server", lambda *_, **__: {"state": "none"})
    with pytest.raises(Exception, match="given up"):
        servers_signin._waited("mail")
