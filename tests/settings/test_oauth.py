"""The client a person registered: what is taken, in whose spelling, and what is refused."""

import pytest

from checkrein.errors import ConfigError
from checkrein.settings.oauth import OAuthClient
from checkrein.settings.secrets import set_secret
from checkrein.settings.servers import entry, resolve, server_spec

URL = "https://mcp.example.test/mcp"


def made(oauth):
    return server_spec("mail", {"url": URL, "oauth": oauth})


def test_what_the_file_says():
    spec = made({"clientId": "mine", "clientSecret": "${keyring:mail.s}", "scope": "read write"})
    assert spec.oauth == OAuthClient(
        client_id="mine", client_secret="${keyring:mail.s}", scope="read write", redirect_uri=""
    )
    assert spec.client.way_back == "http://127.0.0.1/callback"
    assert server_spec("mail", entry(spec)) == spec
    assert entry(spec)["oauth"] == {
        "clientId": "mine",
        "clientSecret": "${keyring:mail.s}",
        "scope": "read write",
    }


def test_the_spellings_of_other_programs():
    spec = made({"clientId": "mine", "scopes": ["read", "write"], "callbackPort": 8080})
    assert entry(spec)["oauth"] == {
        "clientId": "mine",
        "scope": "read write",
        "redirectUri": "http://localhost:8080/callback",
    }
    assert made({"scopes": "read"}).client.scope == "read"


@pytest.mark.parametrize("oauth", [True, {}, {"clientId": None}, {"scope": ""}])
def test_who_names_no_client_registers_one(oauth):
    spec = made(oauth)
    assert spec.oauth is True and (spec.client, spec.client.way_back) == (OAuthClient(), "")


@pytest.mark.parametrize(
    ("oauth", "part"),
    [
        ("yes", "true, false or an object"),
        ({"clientId": 7}, "oauth.clientId`: must be text"),
        ({"clientid": "a"}, "Did you mean `clientId`?"),
        ({"authServerMetadataUrl": "https://x.test"}, "oauth.authServerMetadataUrl`: is not known"),
        ({"clientSecret": "s"}, "Give the `clientId`"),
        ({"clientId": "a\nb"}, "control character"),
        ({"clientId": "a", "clientSecret": "x\x00"}, "control character"),
        *[
            ({"clientId": "a", "redirectUri": each}, "no address a browser can come back to")
            for each in (
                "https://127.0.0.1/callback",
                "http://evil.example/callback",
                "http://localhost@evil.example/",
                "http://[::1]:9000/",
                "http://127.0.0.1:80/callback",
                "http://127.0.0.1:99999/callback",
                "http://localhost:9000/callback?x=1",
                "http://localhost:9000/call back",
            )
        ],
        ({"clientId": "a", "callbackPort": "x"}, "no address a browser can come back to"),
    ],
)
def test_what_cannot_be_right_is_refused(oauth, part):
    with pytest.raises(ConfigError) as caught:
        made(oauth)
    assert part in str(caught.value)


@pytest.mark.invariant("a client shown by accident shows no secret")
def test_references_are_filled_in_and_no_secret_is_shown(home, monkeypatch):
    set_secret("mail.s", "s3cret-value")
    monkeypatch.setenv("WHO", "mine")
    spec = made({"clientId": "${env:WHO}", "clientSecret": "${keyring:mail.s}"})
    found = resolve(spec)
    assert (found.client.client_id, found.client.client_secret) == ("mine", "s3cret-value")
    assert found.fingerprint == spec.fingerprint
    assert "s3cret-value" not in f"{found!r} {found.client!r}"


def test_another_client_is_another_server_and_a_plain_sign_in_the_same_as_ever():
    prints = {made(each).fingerprint for each in (True, {"clientId": "a"}, {"clientId": "b"})}
    assert len(prints) == 3 and made({}).fingerprint == made(True).fingerprint


def test_a_resolved_client_is_checked_again(monkeypatch):
    monkeypatch.setenv("WHO", "a\r\nb")
    with pytest.raises(ConfigError, match="control character"):
        resolve(made({"clientId": "${env:WHO}"}))
