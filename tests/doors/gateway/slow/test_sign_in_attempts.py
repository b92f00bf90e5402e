"""Signing in at a real authorization server, for a real gateway, with a browser that follows its pages."""

import json
import socket
import threading
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from checkrein.agents import Agents
from checkrein.doors.gateway import gateway as gateway_module
from checkrein.doors.gateway import sign_in
from checkrein.doors.gateway.gateway import Gateway
from checkrein.doors.gateway.signed_in import is_signed_in, keep_sign_in, read_sign_in, sign_in_file
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.settings.servers import servers_file
from doors.gateway.provider import Provider, ended, get, signs_in, way_back
from patience import PATIENCE, until

pytest.importorskip("mcp")


@pytest.fixture
def provider():
    with Provider() as made:
        yield made


@pytest.fixture
def write(home):
    def put(servers):
        path = servers_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        path.chmod(0o600)

    return put


@pytest.fixture
def gateway(pipeline, clock, provider, write, monkeypatch):
    monkeypatch.setattr(gateway_module, "_LOOK_SECONDS", 0.05)
    write({"mail": provider.entry()})
    made = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), lambda _: None)
    made.open()
    made.review()
    yield made
    made.close()
    assert not [each for each in threading.enumerate() if each.name == "checkrein-gateway"]


def recorded(pipeline):
    rows = pipeline.store.query("SELECT body FROM record WHERE kind = 'servers_changed' ORDER BY seq", ())
    return [json.loads(row[0])["data"] for row in rows]


def status(gateway):
    return gateway.servers()[0]


def test_a_person_signs_in_and_the_server_is_started(gateway, provider, pipeline):
    before = status(gateway)
    assert (before["state"], before["remedy"]) == ("failed", "Run `checkrein servers sign-in mail`.")
    assert provider.clients == {}, "nobody registers who does not sign in"
    found = gateway.sign_in("mail", "ada")
    assert (found["state"], found["signed_in"]) == ("waiting", False)
    assert found["url"].startswith(f"{provider.origin}/authorize?")
    assert gateway.sign_in_state("mail")["url"] == found["url"]
    code, _, page = signs_in(found["url"])
    assert (code, "You can close this window" in page) == (200, True)
    after = ended(gateway)
    assert (after["state"], after["signed_in"], after["url"], after["reason"]) == ("done", True, "", "")
    assert status(gateway)["state"] == "ready"
    assert [row["name"] for row in gateway.review("mail")] == ["go"]
    (data,) = recorded(pipeline)
    assert data == {"change": "signed_in", "server": "mail", "actor": "ada"}
    assert sign_in_file("mail").stat().st_mode & 0o777 == 0o600


def test_whoever_is_signed_in_is_asked_nothing(gateway, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    again = gateway.sign_in("mail")
    assert (again["state"], again["url"], again["signed_in"]) == ("done", "", True)
    assert len(provider.clients) == 1


def test_asking_twice_leads_to_the_same_page(gateway):
    assert gateway.sign_in("mail")["url"] == gateway.sign_in("mail")["url"]


def test_a_token_is_renewed_by_itself_and_by_each_connection_in_turn(gateway, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    for _ in range(2):
        kept = read_sign_in("mail", provider.url)
        kept.expires_at = time.time() - 1
        keep_sign_in("mail", kept)
        provider.tokens.clear()
        assert gateway.restart("mail")["state"] == "ready"
        assert read_sign_in("mail", provider.url).tokens["refresh_token"] in provider.renewals
    assert len(provider.asked("/authorize")) == 1


def test_a_token_that_cannot_be_renewed_now_is_not_forgotten(gateway, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    kept = read_sign_in("mail", provider.url)
    kept.expires_at = time.time() - 1
    keep_sign_in("mail", kept)
    provider.broken = 503
    with pytest.raises(CheckreinError, match=r"cannot be renewed now \(HTTP 503\)"):
        gateway.restart("mail")
    assert status(gateway)["state"] in ("waiting", "starting"), "it is tried again by itself"
    provider.broken = 0
    assert gateway.restart("mail")["state"] == "ready"


def test_a_sign_in_that_was_taken_back_is_asked_for_again(gateway, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    kept = read_sign_in("mail", provider.url)
    kept.expires_at = time.time() - 1
    keep_sign_in("mail", kept)
    provider.renewals.clear()
    with pytest.raises(CheckreinError, match="asks for a sign-in"):
        gateway.restart("mail")
    assert status(gateway)["state"] == "failed"
    signs_in(gateway.sign_in("mail")["url"])
    assert ended(gateway)["state"] == "done" and status(gateway)["state"] == "ready"


def test_an_answer_is_taken_once(gateway):
    url = way_back(gateway.sign_in("mail")["url"])
    assert get(url)[0] == 200
    with pytest.raises(OSError):
        get(url)
    assert ended(gateway)["state"] == "done"
    with pytest.raises(OSError):
        get(url)


def test_only_the_exact_path_is_answered(gateway):
    found = gateway.sign_in("mail")
    url = way_back(found["url"])
    path = urlsplit(url).path
    for other in (
        "/",
        "/callback",
        path[:-1],
        f"{path}/",
        f"{path}x",
        f"/{path}",
        "/favicon.ico",
        path.upper(),
    ):
        assert get(url.replace(path, other))[0] == 404
    assert get(url, method="POST")[0] == 404
    assert get(url, headers={"Host": f"evil.example:{found['port']}"})[0] == 404
    assert gateway.sign_in_state("mail")["state"] == "waiting"
    assert get(url)[0] == 200 and ended(gateway)["state"] == "done"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"state": "forged"}, "not the answer to our question"),
        ({"state": None}, "not the answer to our question"),
        ({"iss": "https://evil.example"}, "failed"),
        ({"iss": None}, "failed"),
        ({"code": "made-up"}, "no token was given"),
    ],
)
def test_an_answer_to_another_question_signs_nobody_in(gateway, provider, changes, why):
    provider.changes = changes
    signs_in(gateway.sign_in("mail")["url"])
    found = ended(gateway)
    assert (found["state"], found["signed_in"]) == ("failed", False)
    assert why in found["reason"] and "checkrein servers sign-in mail" in found["remedy"]
    assert provider.tokens == set() and not sign_in_file("mail").exists()


def test_a_no_of_the_sign_in_page_is_told_in_plain_words(gateway, provider):
    provider.refused = "access_denied"
    code, _, page = signs_in(gateway.sign_in("mail")["url"])
    assert code == 200 and "not signed in" in page and "access_denied" not in page and "<b>" not in page
    found = ended(gateway)
    assert "said no (access_denied: no[31m <b>way</b>)" in found["reason"] and "\x1b" not in found["reason"]
    provider.refused = ""
    signs_in(gateway.sign_in("mail")["url"])
    assert ended(gateway)["state"] == "done"


def test_nobody_comes_back(gateway, monkeypatch):
    monkeypatch.setattr(sign_in, "WAIT_SECONDS", 0.2)
    found = gateway.sign_in("mail")
    after = ended(gateway)
    assert after["state"] == "failed" and "Nobody came back" in after["reason"]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", found["port"]), PATIENCE).close()


def test_metadata_of_another_issuer_is_not_believed(gateway, provider):
    provider.metadata["issued"]["issuer"] = "https://evil.example"
    with pytest.raises(CheckreinError, match="failed"):
        gateway.sign_in("mail")
    assert gateway.sign_in_state("mail")["state"] == "failed" and provider.clients == {}


@pytest.mark.parametrize("part", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize(
    "where", ["http://169.254.169.254/latest", "https://10.0.0.1/x", "http://127.0.0.2:1/"]
)
def test_nobody_is_led_into_this_network(gateway, provider, part, where):
    provider.metadata["issued"][part] = where
    if part == "token_endpoint":
        signs_in(gateway.sign_in("mail")["url"])
        assert "is not connected to" in ended(gateway)["reason"]
    else:
        with pytest.raises(CheckreinError, match="is not connected to"):
            gateway.sign_in("mail")
    assert gateway.sign_in_state("mail")["url"] == "" and not is_signed_in("mail")


def test_an_address_that_looks_like_another_is_shown_to_nobody(gateway, provider):
    host = urlsplit(provider.origin).netloc
    provider.metadata["issued"]["authorization_endpoint"] = f"http://accounts.example@{host}/authorize"
    with pytest.raises(CheckreinError, match="no person should be sent to"):
        gateway.sign_in("mail")


def test_a_provider_that_registers_nobody_says_so(gateway, provider):
    provider.registers = False
    with pytest.raises(CheckreinError, match="does not let programs register") as caught:
        gateway.sign_in("mail")
    assert "header" in caught.value.remedy


def test_a_server_that_does_not_take_its_own_token(gateway, provider):
    url = gateway.sign_in("mail")["url"]
    # Whatever it gives is forgotten at once.
    provider.tokens = type("Forgetful", (set,), {"add": lambda *_: None})()
    signs_in(url)
    found = ended(gateway)
    assert found["state"] == "failed" and "does not take the sign-in" in found["reason"]


def test_an_attempt_that_is_given_up_spoils_nothing(gateway, provider, monkeypatch):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    kept = read_sign_in("mail", provider.url)
    kept.expires_at = time.time() - 1
    keep_sign_in("mail", kept)
    monkeypatch.setattr(sign_in, "WAIT_SECONDS", 0.1)
    gateway.sign_in("mail")
    assert ended(gateway)["state"] == "failed"
    assert gateway.restart("mail")["state"] == "ready"


def test_signing_out_forgets_and_starts_again(gateway, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    found = gateway.sign_out("mail")
    assert (found["forgot"], found["state"]) == (True, "failed") and "sign-in" in found["error"]
    assert not sign_in_file("mail").exists() and gateway.review("mail") == []
    assert gateway.sign_in_state("mail")["state"] == "none"
    assert gateway.sign_out("mail")["forgot"] is False


def test_signing_out_gives_up_an_attempt(gateway):
    found = gateway.sign_in("mail")
    gateway.sign_out("mail")
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", found["port"]), PATIENCE).close()
    assert gateway.sign_in_state("mail")["state"] == "none"


def test_removing_a_server_forgets_its_sign_in_and_ends_its_attempt(gateway, write, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    write({})
    gateway.reload()
    assert not sign_in_file("mail").exists()
    with pytest.raises(NotFoundError):
        gateway.sign_in_state("mail")
    write({"mail": provider.entry()})
    port = gateway.sign_in("mail")["port"]
    write({})
    gateway.reload()
    until(lambda: not listens(port), failing="it still listens")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except OSError:
        return False
    return True


def test_a_new_address_knows_nothing_of_the_old_sign_in(gateway, write, provider):
    signs_in(gateway.sign_in("mail")["url"])
    ended(gateway)
    write({"mail": {**provider.entry(), "url": f"{provider.url}/other"}})
    gateway.reload()
    assert not is_signed_in("mail")


def test_a_server_that_was_stopped_stays_so(gateway, write, provider):
    write({"mail": {**provider.entry(), "enabled": False}})
    signs_in(gateway.sign_in("mail")["url"])
    assert ended(gateway)["state"] == "done" and status(gateway)["state"] == "stopped"
    assert gateway.start("mail")["state"] == "ready"
    assert gateway.sign_out("mail")["state"] == "stopped"


def test_servers_without_a_sign_in(gateway, write, provider):
    write({"mail": {"url": provider.url}, "here": {"command": "x", "enabled": False}})
    with pytest.raises(InputError, match="not set up"):
        gateway.sign_in("mail")
    for what in (gateway.sign_in, gateway.sign_out):
        with pytest.raises(InputError, match="a program"):
            what("here")
    with pytest.raises(NotFoundError):
        gateway.sign_in("nobody")
    assert gateway.sign_in_state("here")["state"] == "none"


def test_nobody_is_there_to_be_asked(gateway, provider):
    asked = parse_qs(urlsplit(gateway.sign_in("mail")["url"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["resource"] == [provider.url]
    assert asked["redirect_uri"][0].startswith("http://127.0.0.1:") and len(asked["redirect_uri"][0]) > 60
