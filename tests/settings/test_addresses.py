import pytest

from checkrein.settings import Connections, Notify, Settings
from checkrein.settings.addresses import fault_in_service, fault_in_webhook, masked, shown

TOKEN = "T0KEN-0f-mine"


@pytest.mark.parametrize(
    "url", ["https://example.com/x?y=1", "http://127.0.0.1:8080/", "http://[::1]/", "http://localhost:1"]
)
def test_a_webhook_is_encrypted_or_on_this_machine(url):
    assert fault_in_webhook(url) == ""


@pytest.mark.invariant("what an agent wants to run leaves this machine encrypted, or not at all")
@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "http://127.0.0.1@example.com/",
        "https://user:secret@example.com/",
        "https://example.com\\@127.0.0.1/",
        "ftp://127.0.0.1/",
        "https://",
        "https://exam ple.com/",
        "https://example.com/\r\nX: y",
        "https://example.com:99999/",
        "https://[::1/",
        "https://bücher.example/",
        "/relative",
        "",
    ],
)
def test_nothing_else_is_a_webhook(url):
    assert fault_in_webhook(url)


def test_a_service_has_a_kind():
    assert fault_in_service("slack://a/b/c") == ""
    assert "slack://" in fault_in_service("just words".replace(" ", ""))
    assert "ASCII" in fault_in_service("slack://a\nb")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        (f"tgram://{TOKEN}/1", "tgram://[masked]"),
        (f"mailto://me:{TOKEN}@example.com", "mailto://[masked]"),
        (f"https://example.com:8443/{TOKEN}?key={TOKEN}", "https://example.com:8443/[masked]"),
        (f"https://{TOKEN}@example.com/", "https://[masked]"),
        (TOKEN, "[masked]"),
    ],
)
def test_an_address_shows_no_secret(url, seen):
    assert masked(url) == seen


@pytest.mark.invariant("the value of a secret is never shown, not in an error either")
def test_settings_are_shown_without_secrets_and_otherwise_whole():
    settings = Settings(notify=Notify(urls=(f"slack://{TOKEN}",), webhook_urls=(f"https://h/{TOKEN}",)))
    seen = shown(settings)
    assert seen.notify.urls == ("slack://[masked]",)
    assert TOKEN not in repr(seen)
    assert seen.trust == settings.trust


def test_a_single_secret_is_shown_masked_too():
    seen = shown(Settings(connections=Connections(proxy_url=f"http://me:{TOKEN}@proxy:3128")))
    assert seen.connections.proxy_url == "http://[masked]"
    assert shown(Settings()).connections.proxy_url == ""
