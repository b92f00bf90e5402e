"""Signing in as a client a person registered: at the SDK's own authorization server, and at a rude one."""

import json
import socket
import time
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("mcp")

from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from checkrein.agents import Agents
from checkrein.doors.gateway import gateway as gateway_module
from checkrein.doors.gateway.gateway import Gateway
from checkrein.doors.gateway.http_oauth import trouble
from checkrein.doors.gateway.signed_in import is_signed_in, keep_sign_in, read_sign_in, sign_in_file
from checkrein.errors import CheckreinError
from checkrein.settings.servers import servers_file
from doors.gateway.provider import Provider, ended, get, signs_in, way_back
from doors.gateway.sdk_site import SdkSite

SECRET = "s3cret/+"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def back():
    """The way back a client was registered with."""
    return f"http://localhost:{free_port()}/oauth/callback"


@pytest.fixture
def write(home):
    def put(entry, name="mail"):
        path = servers_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": {name: entry}}), encoding="utf-8")
        path.chmod(0o600)

    return put


@pytest.fixture
def opened(pipeline, clock, write, monkeypatch):
    """A gateway whose one server is this."""
    monkeypatch.setattr(gateway_module, "_LOOK_SECONDS", 0.05)
    monkeypatch.setenv("MINE", SECRET)
    made = []

    def open_(entry):
        write(entry)
        gateway = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), lambda _: None)
        gateway.open()
        gateway.review()
        made.append(gateway)
        return gateway

    yield open_
    for each in made:
        each.close()


def expire(url):
    kept = read_sign_in("mail", url, "mine")
    kept.expires_at = time.time() - 1
    keep_sign_in("mail", kept)
    return kept


@pytest.mark.parametrize("method", ["client_secret_basic", "none"])
def test_a_registered_client_signs_in_where_nobody_can_register(opened, back, method):
    with SdkSite() as site:
        site.knows(back, method=method)
        secret = {} if method == "none" else {"clientSecret": "${env:MINE}"}
        oauth = {"clientId": "mine", "scope": "plants everything", "redirectUri": back, **secret}
        gateway = opened({"url": site.url, "oauth": oauth})
        assert gateway.servers()[0]["remedy"] == "Run `checkrein servers sign-in mail`."
        code, _, page = signs_in(gateway.sign_in("mail")["url"])
        assert (code, "You can close this window" in page) == (200, True)
        assert (ended(gateway)["state"], gateway.servers()[0]["state"]) == ("done", "ready")
        assert [row["name"] for row in gateway.review("mail")] == ["water"]
        (asked,) = site.memory.asked
        assert (asked.scopes, str(asked.redirect_uri)) == (["plants", "everything"], back)
        # INVARIANT: what is kept of a sign-in never has the client's secret in it.
        assert SECRET not in sign_in_file("mail").read_text()
        before = expire(site.url).tokens
        site.memory.access.clear()
        assert gateway.restart("mail")["state"] == "ready", "renewed, with the secret again"
        assert read_sign_in("mail", site.url, "mine").tokens != before and len(site.memory.asked) == 1


def test_without_a_client_of_ones_own_it_cannot_be_used_and_says_what_to_do(opened, back):
    with SdkSite() as site:
        site.knows(back)
        gateway = opened({"url": site.url, "oauth": True})
        with pytest.raises(CheckreinError, match="does not let programs register") as caught:
            gateway.sign_in("mail")
        assert "clientId" in caught.value.remedy and "header" in caught.value.remedy


def test_a_wrong_secret_is_no_sign_in(opened, back, monkeypatch):
    with SdkSite() as site:
        site.knows(back)
        oauth = {"clientId": "mine", "clientSecret": "${env:MINE}", "redirectUri": back}
        gateway = opened({"url": site.url, "oauth": oauth})
        monkeypatch.setenv("MINE", "another-value")
        signs_in(gateway.sign_in("mail")["url"])
        found = ended(gateway)
        assert found["state"] == "failed" and "no token was given" in found["reason"]
        assert "another-value" not in str(found) and not is_signed_in("mail")


def test_what_the_server_would_like_is_asked_for_where_a_person_names_no_scope(opened, back):
    with SdkSite() as site:
        site.knows(back)
        gateway = opened({"url": site.url, "oauth": {"clientId": "mine", "redirectUri": back}})
        asked = parse_qs(urlsplit(gateway.sign_in("mail")["url"]).query)
        assert asked["scope"] == ["plants"]


class Known(Provider):
    """Registers nobody; knows one client, with a way back of any port and a secret told as it wants."""

    def __init__(self, method, **more):
        super().__init__(**more)
        self.registers, self.method, self.told = False, method, []
        self.metadata["issued"]["registration_endpoint"] = None
        self.metadata["issued"]["token_endpoint_auth_methods_supported"] = [method]

    def entry(self, **more):
        return {"url": self.url, "oauth": {"clientId": "mine", "clientSecret": "${env:MINE}", **more}}

    def _authorize(self, http_, asked):
        parts = urlsplit(asked["redirect_uri"])
        known = (parts.hostname, parts.path) == ("127.0.0.1", "/callback")
        self.clients = {"mine": [asked["redirect_uri"]] if known else []}
        return super()._authorize(http_, asked)

    def _token(self, http_, form):
        headers = self.seen[-1][2]
        self.told.append((form.get("client_secret"), headers.get("authorization", "").partition(" ")[0]))
        return super()._token(http_, form)


@pytest.mark.parametrize(
    ("method", "told"), [("client_secret_post", (SECRET, "")), ("client_secret_basic", (None, "Basic"))]
)
def test_the_secret_is_told_as_the_provider_wants_it(opened, method, told):
    with Known(method) as provider:
        gateway = opened(provider.entry())
        url = gateway.sign_in("mail")["url"]
        assert SECRET not in url and provider.asked("/register") == []
        signs_in(url)
        assert ended(gateway)["state"] == "done"
        expire(provider.url)
        provider.tokens.clear()
        assert gateway.restart("mail")["state"] == "ready"
        assert provider.told == [told, told]


def test_only_the_answer_to_our_own_question_is_taken_where_the_way_back_is_known(opened):
    with Known("client_secret_post") as provider:
        gateway = opened(provider.entry())
        found = gateway.sign_in("mail")
        back = parse_qs(urlsplit(found["url"]).query)["redirect_uri"][0]
        assert back == f"http://127.0.0.1:{found['port']}/callback"
        for made_up in ("code=x", "code=x&state=y", "error=no&state="):
            assert get(f"{back}?{made_up}")[0] == 404
        assert gateway.sign_in_state("mail")["state"] == "waiting", "nobody spoils it"
        assert get(way_back(found["url"]))[0] == 200
        assert ended(gateway)["state"] == "done"


def test_a_port_that_is_taken_is_said(opened):
    with Known("none") as provider, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        gateway = opened(provider.entry(redirectUri=f"http://127.0.0.1:{port}/callback"))
        with pytest.raises(CheckreinError, match=f"port {port} of this machine cannot be used"):
            gateway.sign_in("mail")


@pytest.mark.invariant("a secret given for one provider is told to no other, whatever the server says later")
def test_a_secret_given_for_one_provider_is_told_to_no_other(opened):
    with Known("client_secret_post") as provider, Known("client_secret_post") as other:
        gateway = opened(provider.entry())
        signs_in(gateway.sign_in("mail")["url"])
        assert ended(gateway)["state"] == "done"
        provider.tokens.clear()
        provider.renewals.clear()
        provider.metadata["server"] = other.origin
        with pytest.raises(CheckreinError, match="asks for a sign-in"):
            gateway.restart("mail")
        with pytest.raises(CheckreinError, match="another provider than before"):
            gateway.sign_in("mail")
        assert other.seen == []
        # A person may say that it is right.
        gateway.sign_out("mail")
        assert gateway.sign_in("mail")["url"].startswith(other.origin)


@pytest.mark.invariant("a sign-in outlives neither the address it was for nor the client it was given to")
def test_another_client_knows_nothing_of_the_sign_in_before(opened, write):
    with Known("client_secret_post") as provider:
        gateway = opened(provider.entry())
        signs_in(gateway.sign_in("mail")["url"])
        assert ended(gateway)["state"] == "done"
        write(provider.entry(scope="less"))
        gateway.reload()
        assert is_signed_in("mail")
        write({"url": provider.url, "oauth": {"clientId": "another"}})
        gateway.reload()
        assert not is_signed_in("mail")


def test_a_reference_without_a_value_is_named_and_nobody_is_sent_away(opened, monkeypatch):
    with Known("client_secret_post") as provider:
        gateway = opened(provider.entry())
        monkeypatch.delenv("MINE")
        with pytest.raises(CheckreinError, match=r"mail.oauth.clientSecret"):
            gateway.sign_in("mail")
        assert provider.asked("/authorize") == []


@pytest.mark.parametrize(
    ("error", "words", "lasting"),
    [
        (OAuthRegistrationError("403"), "does not let programs register themselves", True),
        (OAuthTokenError("Token exchange failed (400): \x1b[2J" + "x" * 999), "no token was given", False),
        (OAuthFlowError("State parameter mismatch: a != secret"), "not the answer to our question", False),
        (OAuthFlowError("Protected resource metadata request failed: HTTP 503"), "HTTP 503", False),
    ],
)
def test_what_goes_wrong_while_signing_in_is_said_in_plain_words(error, words, lasting):
    found = trouble("mail", error)
    assert words in found.message and found.remedy and found.lasting is lasting
    assert len(found.message) < 400 and found.message.isprintable() and "secret" not in found.message
    assert trouble("mail", ValueError("x")) is None
