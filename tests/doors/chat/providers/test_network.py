import asyncio
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.chat.providers import Picked, Providers
from checkrein.doors.chat.providers.network import certificates, is_direct, is_loopback, route
from checkrein.errors import ConfigError
from checkrein.settings import Connections
from checkrein.settings.sources import config_dir
from doors.chat.endpoints import Turn
from doors.chat.endpoints.anthropic import fake_anthropic
from doors.chat.endpoints.asking import ask, said, settings
from doors.chat.endpoints.google import fake_google
from doors.chat.endpoints.openai import fake_openai
from doors.chat.endpoints.wires import Authority, Proxy

KINDS = {"openai": fake_openai, "anthropic": fake_anthropic, "google": fake_google}
each_kind = pytest.mark.parametrize("kind", KINDS)
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True)
def no_such_name(monkeypatch):
    """Names that only a proxy knows are unknown at once, whatever the machine's own resolver does."""
    look_up = socket.getaddrinfo

    def found(host, *more, **options):
        if str(host).endswith(".example"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def outcome(kind, base_url, **connections):
    """What is said over these wires, or the trouble; the models' list must fare the same."""

    async def go():
        providers = Providers(lambda: settings(**connections))
        providers.set("p", kind, base_url=base_url, key="sk-key-0f-mine-1234")
        try:
            result = said(await ask(await providers.model(Picked("p", "m1"))))
        except Exception as error:
            result = providers.explain(error).kind
        tested = await providers.test("p")
        assert tested["kind"] == (result if not tested["ok"] else "")
        assert tested["ok"] == (result == "Hello")
        await providers.close()
        return result

    return asyncio.run(go())


@each_kind
def test_a_certificate_nobody_vouches_for_is_refused_and_one_of_ours_is_believed(kind, authority):
    with KINDS[kind]([Turn("Hello")], tls=authority.server) as endpoint:
        assert outcome(kind, endpoint.url) == "certificate"
        assert not endpoint.requests
        assert outcome(kind, endpoint.url, ca_files=(str(authority.file),)) == "Hello"
        assert outcome(kind, endpoint.url, ca_files=(str(authority.file),), certificates="files") == "Hello"


def test_a_certificate_for_another_name_is_refused(authority, tmp_path):
    with Proxy() as proxy, fake_openai([Turn("Hello")], tls=authority.server) as endpoint:
        ways = {"proxy": "custom", "proxy_url": f"http://{proxy.address}", "ca_files": (str(authority.file),)}
        assert outcome("openai", f"https://models.example:{endpoint.port}", **ways) == "Hello"
        assert outcome("openai", f"https://other.example:{endpoint.port}", **ways) == "certificate"


@each_kind
def test_a_custom_proxy_is_gone_through(kind, authority):
    with Proxy() as proxy, KINDS[kind]([Turn("Hello")], tls=authority.server) as endpoint:
        url = f"https://models.example:{endpoint.port}"
        ways = {"proxy_url": f"http://{proxy.address}", "ca_files": (str(authority.file),)}
        assert outcome(kind, url, proxy="custom", **ways) == "Hello"
        assert set(proxy.asked) == {("CONNECT", f"models.example:{endpoint.port}")}
        proxy.asked.clear()
        assert outcome(kind, url, proxy="none", **ways) == "network"
        assert outcome(kind, url, proxy="custom", no_proxy=("models.example",), **ways) == "network"
        assert not proxy.asked


def test_a_proxy_may_itself_be_encrypted(authority):
    with Proxy(tls=authority.server) as proxy, fake_openai([Turn("Hello")], tls=authority.server) as endpoint:
        url = f"https://models.example:{endpoint.port}"
        ways = {"proxy": "custom", "proxy_url": f"https://{proxy.address}"}
        assert outcome("openai", url, ca_files=(str(authority.file),), **ways) == "Hello"
        assert proxy.asked
        assert outcome("openai", url, **ways) == "certificate"


def test_what_is_not_encrypted_goes_through_the_proxy_too():
    async def go(endpoint, proxy):
        ways = settings(proxy="custom", proxy_url=proxy.address)
        providers = Providers(lambda: ways)
        providers.set("p", "compatible", base_url=f"http://models.example:{endpoint.port}")
        answer = said(await ask(await providers.model(Picked("p", "m1"))))
        await providers.close()
        return answer

    with Proxy() as proxy, fake_openai([Turn("Hello")]) as endpoint:
        assert asyncio.run(go(endpoint, proxy)) == "Hello"
        assert proxy.asked[0][0] == "POST"


@each_kind
def test_a_proxy_that_wants_a_password_or_is_not_there_is_named_as_the_trouble(kind, authority):
    with (
        Proxy(password="pr0xy-w0rd") as proxy,
        KINDS[kind]([Turn("Hello")], tls=authority.server) as endpoint,
    ):
        url = f"https://models.example:{endpoint.port}"
        ways = {"proxy": "custom", "ca_files": (str(authority.file),)}
        assert outcome(kind, url, proxy_url=f"http://{proxy.address}", **ways) == "proxy"
        assert outcome(kind, url, proxy_url=f"http://me:wrong@{proxy.address}", **ways) == "proxy"
        assert outcome(kind, url, proxy_url=f"http://me:pr0xy-w0rd@{proxy.address}", **ways) == "Hello"
    assert outcome(kind, "https://models.example", proxy_url=f"http://{proxy.address}", **ways) == "proxy"


@each_kind
def test_a_proxy_of_the_environment_is_gone_through_but_never_to_loopback(kind, authority, monkeypatch):
    with Proxy() as proxy, KINDS[kind]([Turn("Hello")], tls=authority.server) as endpoint:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy.address}")
        known = {"ca_files": (str(authority.file),)}
        assert outcome(kind, endpoint.url, **known) == "Hello"
        assert not proxy.asked
        assert outcome(kind, f"https://models.example:{endpoint.port}", **known) == "Hello"
        assert proxy.asked
        monkeypatch.setenv("NO_PROXY", "other.example, .example")
        assert outcome(kind, f"https://models.example:{endpoint.port}", **known) == "network"


def test_a_proxy_in_our_own_environment_file_counts():
    path = config_dir() / "environment"
    path.parent.mkdir(parents=True)
    path.write_text("https_proxy=proxy.example:3128\nNO_PROXY=a.example\n")
    path.chmod(0o600)
    found = route(Connections(no_proxy=("b.example",)))
    assert found.proxy_for("https", "h", None) == "http://proxy.example:3128"
    assert found.proxy_for("https", "x.a.example", None) == ""
    assert found.proxy_for("https", "b.example", None) == ""
    assert found.proxy_for("http", "h", None) == ""


def test_a_proxys_password_is_in_no_text():
    found = route(Connections(proxy="custom", proxy_url="http://me:pr0xy-w0rd@h:1"))
    assert "pr0xy-w0rd" not in repr(found)
    with pytest.raises(ConfigError) as caught:
        route(Connections(proxy="custom", proxy_url="socks5://me:pr0xy-w0rd@h:1"))
    assert "pr0xy-w0rd" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "ftp://h", "http://", "http://h:99999", "http://h h", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_refused(url):
    with pytest.raises(ConfigError, match="proxy_url"):
        route(Connections(proxy="custom", proxy_url=url))


@pytest.mark.parametrize(
    ("entry", "yes", "no"),
    [
        (
            "example.com",
            ["example.com", "a.example.com", "EXAMPLE.com.", "a.b.example.com"],
            ["notexample.com"],
        ),
        (".example.com", ["a.example.com"], ["example.com", "notexample.com"]),
        ("*.example.com", ["a.example.com"], ["example.com", "notexample.com"]),
        ("example.com:443", ["example.com"], ["example.org"]),
        ("example.com:80", [], ["example.com"]),
        ("10.1.2.3", ["10.1.2.3"], ["10.1.2.30", "a.10.1.2.3"]),
        ("10.0.0.0/8", ["10.255.0.1"], ["11.0.0.1", "example.com"]),
        ("::1", ["::1", "[::1]"], ["::2"]),
        ("[fd00::]:443", ["fd00::"], ["fd01::"]),
        ("fd00::/8", ["fd12::1"], ["fe80::1"]),
        ("*", ["anything.at.all", "10.0.0.1"], []),
        ("", [], ["example.com"]),
        (".", [], ["example.com"]),
        ("*.", [], ["example.com"]),
        ("ample.com", [], ["example.com"]),
        ("example.com:x", [], ["example.com"]),
    ],
)
def test_no_proxy_keeps_to_dots(entry, yes, no):
    assert all(is_direct(host, 443, [entry]) for host in yes)
    assert not any(is_direct(host, 443, [entry]) for host in no)


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 70000))
def test_no_entry_and_no_host_is_too_odd(entry, host, port):
    assert is_direct(host, port, [entry]) in (True, False)
    assert is_loopback(host) in (True, False)


@given(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[a-z]{1,6}\.com", fullmatch=True))
def test_what_merely_ends_alike_is_never_covered(before, name):
    assert not is_direct(before + name, 443, [name, f".{name}", f"*.{name}"])


def test_loopback_has_many_names():
    assert all(
        map(is_loopback, ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "LOCALHOST.", "::ffff:127.0.0.1"])
    )
    assert not any(map(is_loopback, ["localhost.example", "128.0.0.1", "10.0.0.1", "notlocalhost"]))


def test_a_certificate_file_that_cannot_be_used_is_named(tmp_path, authority):
    odd = tmp_path / "odd.pem"
    odd.write_text("hello")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for path in (odd, broken, tmp_path / "missing.pem", tmp_path):
        with pytest.raises(ConfigError, match="ca_files") as caught:
            certificates(Connections(ca_files=(str(path),)))
        assert str(path) in str(caught.value)
        assert outcome("openai", "https://127.0.0.1:1", ca_files=(str(path),)) == "certificate"
    with pytest.raises(ConfigError, match="ca_files"):
        certificates(Connections(certificates="files"))


def test_no_certificate_goes_unchecked(authority):
    for made in (
        certificates(Connections()),
        certificates(Connections(certificates="files", ca_files=(str(authority.file),))),
    ):
        assert made.verify_mode is ssl.CERT_REQUIRED
        assert made.check_hostname


def test_a_changed_certificate_file_takes_effect_on_the_next_call(authority, tmp_path):
    path = tmp_path / "mine.pem"
    path.write_bytes(Authority(tmp_path).file.read_bytes())

    async def go(endpoint):
        providers = Providers(lambda: settings(ca_files=(str(path),)))
        providers.set("p", "openai", base_url=endpoint.url, key="k")
        with pytest.raises(Exception) as caught:
            await ask(await providers.model(Picked("p", "m1")))
        assert providers.explain(caught.value).kind == "certificate"
        path.write_bytes(authority.file.read_bytes() + b"\n")
        assert said(await ask(await providers.model(Picked("p", "m1")))) == "Hello"
        await providers.close()

    with fake_openai([Turn("Hello")], tls=authority.server) as endpoint:
        asyncio.run(go(endpoint))
