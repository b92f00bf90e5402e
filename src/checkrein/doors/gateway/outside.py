"""Where the connections for one server may go. Asked before every connection; names are looked up once.

A server tells its clients where to sign in. Without this it could send us to whatever this machine can reach.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

from checkrein.doors.gateway.pipes import PipeError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Outside:
    """The places one server may lead to: where it is itself, and anything public."""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.home = name, _host(url)
        self._known: dict[str, list[_Address]] = {}

    async def addresses(self, url: str) -> list[str]:
        """What to connect to for this URL, in order; raises PipeError when that is not allowed."""
        parts = urlsplit(url)
        host = _host(url)
        if parts.scheme not in ("http", "https") or not host:
            raise self._refused(url, "it is no http or https address")
        found = await self._looked_up(host)
        # INVARIANT: only what a person wrote into the servers file may be inside this machine or network.
        if host != self.home and not all(is_public(each) for each in found):
            raise self._refused(url, "it is inside this machine or network")
        # INVARIANT: nothing leaves this machine unencrypted.
        if parts.scheme == "http" and not all(each.is_loopback for each in found):
            raise self._refused(url, "it is not encrypted; only https may leave this machine")
        return [str(each) for each in found]

    async def _looked_up(self, host: str) -> list[_Address]:
        # Once: a name that means something else a moment later changes nothing.
        if host not in self._known:
            self._known[host] = await _resolve(host)
        if not self._known[host]:
            raise PipeError(
                f"{self.name}: nobody knows the address of {host}.",
                remedy="Check the url in the servers file, and the network.",
            )
        return self._known[host]

    def _refused(self, url: str, why: str) -> PipeError:
        parts = urlsplit(url)
        shown = f"{parts.scheme}://{parts.hostname or ''}"
        return PipeError(
            f"{self.name}: {shown} is not connected to: {why}.",
            remedy="Change the url in the servers file.",
            lasting=True,
        )


async def _resolve(host: str) -> list[_Address]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found))


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_public(address: _Address) -> bool:
    """Whether an address is out there, for everybody; also one wrapped in another kind."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast
