import hashlib
import hmac
import os
import socket
import threading

import pytest

from checkrein.approval.channels import Notice, Undelivered
from checkrein.approval.channels import webhook as webhook_module
from checkrein.approval.channels.webhook import SIGNATURE, Webhook, key, key_file
from checkrein.runtime import private_folder
from checkrein.settings.sources import state_dir

NOTICE = Notice("asked", "A title", "| rm -rf build", {"id": "1", "tool": "Bash"})


@pytest.fixture(autouse=True)
def state():
    return private_folder(state_dir())


def test_a_notice_arrives_as_json_signed_with_the_key_of_this_installation(receiver):
    Webhook(receiver.url).deliver(NOTICE)
    (got,) = receiver.got
    assert got.path == "/in?key=s3cret"
    assert got.headers["Content-Type"] == "application/json"
    told = got.json
    assert (told["event"], told["title"], told["text"], told["id"]) == ("asked", "A title", NOTICE.body, "1")
    secret = key_file().read_text().strip().encode()
    assert got.headers[SIGNATURE] == "sha256=" + hmac.new(secret, got.body, hashlib.sha256).hexdigest()


def test_a_repetition_can_be_told_from_another_notice(receiver):
    channel = Webhook(receiver.url)
    for notice in (NOTICE, NOTICE, Notice("asked", NOTICE.title, NOTICE.body, NOTICE.facts)):
        channel.deliver(notice)
    first, second, third = (each.json["delivery"] for each in receiver.got)
    assert first == second != third


def test_the_key_is_made_once_and_only_for_its_owner():
    assert key() == key()
    assert len(key()) == 64
    assert key_file().stat().st_mode & 0o777 == 0o600


def test_a_key_that_is_none_is_not_used(receiver):
    key_file().write_text("short")
    with pytest.raises(Undelivered, match="holds no key") as caught:
        Webhook(receiver.url).deliver(NOTICE)
    assert caught.value.lasting
    assert receiver.got == []


def test_a_link_in_place_of_the_key_is_not_written_through(state):
    target = state / "elsewhere"
    os.symlink(target, key_file())
    with pytest.raises(OSError):
        key()
    assert not target.exists()


@pytest.mark.parametrize(
    ("status", "lasting"), [(500, False), (503, False), (429, False), (404, True), (400, True)]
)
def test_a_refusal_says_whether_it_will_stay_one(receiver, status, lasting):
    receiver.status = status
    with pytest.raises(Undelivered, match=str(status)) as caught:
        Webhook(receiver.url).deliver(NOTICE)
    assert caught.value.lasting is lasting


@pytest.mark.invariant("a redirect is not followed")
def test_a_redirect_is_not_followed(receiver):
    receiver.status, receiver.headers = 307, {"Location": receiver.url}
    with pytest.raises(Undelivered, match="307"):
        Webhook(receiver.url).deliver(NOTICE)
    assert len(receiver.got) == 1


def test_nothing_is_sent_to_an_address_that_is_not_allowed():
    with pytest.raises(Undelivered, match="must be https") as caught:
        Webhook("http://192.0.2.1/").deliver(NOTICE)
    assert caught.value.lasting


def test_nobody_there_is_no_news_of_the_address(receiver):
    receiver.stop()
    channel = Webhook(receiver.url)
    with pytest.raises(Undelivered, match="refused") as caught:
        channel.deliver(NOTICE)
    assert "s3cret" not in str(caught.value) + channel.name
    assert not caught.value.lasting


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 999999 x\r\n\r\n"])
def test_an_answer_that_is_none_is_no_delivery(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with listener.accept()[0] as line:
                line.recv(65536)
                line.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(Undelivered):
            Webhook(f"http://127.0.0.1:{listener.getsockname()[1]}/").deliver(NOTICE)


def test_an_answer_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(webhook_module, "_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="in time"):
            Webhook(url).deliver(NOTICE)
        # Plain text where encryption is due is no delivery either.
        with pytest.raises(Undelivered):
            Webhook(url.replace("http", "https")).deliver(NOTICE)
