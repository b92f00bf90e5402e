import asyncio
import ipaddress
import socket

import pytest

from checkrein.doors.gateway.outside import Outside, is_public
from checkrein.doors.gateway.pipes import PipeError

PUBLIC = "93.184.216.34"
NAMES = {
    "public.example": [PUBLIC],
    "other.example": ["2606:4700::1111", "1.1.1.1"],
    "inside.example": ["10.0.0.5"],
    "mixed.example": [PUBLIC, "127.0.0.1"],
    "localhost": ["::1", "127.0.0.1"],
}


@pytest.fixture
def lookups(monkeypatch):
    """The names of the world, and which of them were looked up."""
    asked = []

    def getaddrinfo(host, *_, **__):
        asked.append(host)
        if host not in NAMES:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 0, 0, "", (address, 0)) for address in NAMES[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def addresses(home, *urls):
    async def main():
        outside = Outside("x", home)
        return [await outside.addresses(url) for url in urls][-1]

    return asyncio.run(main())


def test_a_public_server_may_lead_to_anything_public(lookups):
    assert addresses("https://public.example/mcp", "https://public.example/mcp") == [PUBLIC]
    assert (
        addresses("https://public.example/mcp", "https://other.example/.well-known/x")
        == NAMES["other.example"]
    )


@pytest.mark.parametrize(
    "url",
    [
        "https://inside.example/",
        "https://mixed.example/",
        "https://localhost/",
        "http://127.0.0.1/",
        "https://127.0.0.1:8443/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1]/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://100.64.0.1/",
    ],
)
@pytest.mark.invariant("only what a person wrote into the servers file may be inside this machine or network")
def test_but_not_to_what_is_inside(lookups, url):
    with pytest.raises(PipeError, match="inside this machine or network") as caught:
        addresses("https://public.example/mcp", url)
    assert caught.value.lasting


@pytest.mark.parametrize(
    "home", ["https://inside.example/mcp", "https://mixed.example/", "http://localhost:1/"]
)
def test_a_server_that_is_inside_itself_may_lead_to_its_own_host_only(lookups, home):
    assert addresses(home, home.replace("/mcp", "/authorize"))
    with pytest.raises(PipeError, match="inside"):
        addresses(home, "https://10.0.0.6/")
    assert addresses(home, "https://public.example/") == [PUBLIC]


@pytest.mark.parametrize("url", ["http://public.example/", "http://inside.example/", "http://mixed.example/"])
@pytest.mark.invariant("nothing leaves this machine unencrypted")
def test_nothing_leaves_this_machine_unencrypted(lookups, url):
    with pytest.raises(PipeError, match="only https"):
        addresses(url, url)


@pytest.mark.parametrize(
    "url", ["ftp://public.example/", "file:///etc/passwd", "https:///x", "javascript:x", ""]
)
def test_what_is_no_web_address_is_refused(lookups, url):
    with pytest.raises(PipeError, match="no http or https"):
        addresses("https://public.example/mcp", url)


def test_a_name_is_looked_up_once(lookups, monkeypatch):
    url = "https://public.example/mcp"

    async def main():
        outside = Outside("x", url)
        first = await outside.addresses(url)
        monkeypatch.setitem(NAMES, "public.example", ["127.0.0.1"])
        assert await outside.addresses(url) == first == [PUBLIC]

    asyncio.run(main())
    assert lookups == ["public.example"]


def test_a_name_nobody_knows_is_said_to_be_one(lookups):
    with pytest.raises(PipeError, match=r"nobody knows the address of nowhere\.example") as caught:
        addresses("https://nowhere.example/", "https://nowhere.example/")
    assert not caught.value.lasting


def test_a_refusal_shows_no_more_of_an_address_than_its_host(lookups):
    with pytest.raises(PipeError) as caught:
        addresses("https://public.example/", "https://user:secret@127.0.0.1/path?token=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "fc00::", "::"])
def test_wrapped_and_unusual_addresses_are_looked_through(address):
    assert is_public(ipaddress.ip_address(address)) is False


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "64:ff9b::5db8:d822"])
def test_public_is_public(address):
    assert is_public(ipaddress.ip_address(address)) is True
