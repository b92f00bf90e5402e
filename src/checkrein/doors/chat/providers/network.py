"""The one way out to models: through the proxy the settings name, believing the certificates they name.

`clients` hands the client made here to every provider's library, so that all of it holds for model calls.
Importing this loads httpx2.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from checkrein.doors.chat.providers.bounds import bounded
from checkrein.errors import ConfigError
from checkrein.settings import Connections
from checkrein.settings.secrets import expanded

# As many conversations at once as a server may ever hold.
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=30)
_PORTS = {"http": 80, "https": 443}
_REQUEST_SECONDS = 30.0


class Route(msgspec.Struct, frozen=True):
    """Which proxy leads to an address. `proxies` by scheme; `direct` names what is reached without."""

    proxies: dict[str, str] = {}
    direct: tuple[str, ...] = ()
    loopback_direct: bool = True

    def proxy_for(self, scheme: str, host: str, port: int | None) -> str:
        """The address of the proxy, or nothing."""
        proxy = self.proxies.get(scheme) or self.proxies.get("all", "")
        # INVARIANT: what is on this machine is never looked for at a proxy the environment names.
        if not proxy or (self.loopback_direct and is_loopback(host)):
            return ""
        return "" if is_direct(host, port or _PORTS.get(scheme, 0), self.direct) else proxy

    def __repr__(self) -> str:
        # INVARIANT: a proxy's password is in no text.
        return f"Route({len(self.proxies)} proxies)"


def route(settings: Connections) -> Route:
    """What the settings and the environment say; raises ConfigError when a proxy cannot be used."""
    if settings.proxy == "none":
        return Route()
    if settings.proxy == "custom":
        proxy = expanded(settings.proxy_url, "connections.proxy_url").strip()
        if not proxy:
            remedy = "Name one, or set `connections.proxy` to `environment` or `none`."
            raise ConfigError("connections.proxy_url", None, "is empty.", remedy)
        return Route(
            {"all": _usable(proxy, "connections.proxy_url")}, settings.no_proxy, loopback_direct=False
        )
    found = {scheme: _variable(f"{scheme}_proxy") for scheme in ("http", "https", "all")}
    proxies = {
        scheme: _usable(each, f"connections.proxy ({scheme}_proxy)") for scheme, each in found.items() if each
    }
    return Route(proxies, (*settings.no_proxy, *_variable("no_proxy").split(",")))


def is_direct(host: str, port: int, entries: Iterable[str]) -> bool:
    """Whether one of the entries of a `no_proxy` list names a host."""
    return any(_names(entry.strip().lower(), _bare(host), port) for entry in entries if entry.strip())


def is_loopback(host: str) -> bool:
    bare = _bare(host)
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    address = _address(bare)
    return address is not None and address.is_loopback


def certificates(settings: Connections) -> ssl.SSLContext:
    """Whom connections believe; raises ConfigError naming the file that cannot be used."""
    if settings.certificates == "files":
        if not settings.ca_files:
            remedy = "Name a file, or set `connections.certificates` to `system`."
            raise ConfigError("connections.ca_files", None, "is empty.", remedy)
        context: Any = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        import truststore

        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in settings.ca_files:
        _believe(context, name)
    # INVARIANT: there is no setting under which a certificate goes unchecked.
    made: ssl.SSLContext = context
    return made


def http_client(settings: Connections) -> httpx2.AsyncClient:
    """A client for every provider. It follows no redirect: a key is for the address it was given for."""
    timeout = httpx2.Timeout(
        settings.timeout_seconds,
        connect=settings.connect_seconds,
        write=_REQUEST_SECONDS,
        pool=settings.connect_seconds,
    )

    async def patient(request: httpx2.Request) -> None:
        # INVARIANT: whatever a library asks for, a silent endpoint is given up at our own time.
        request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        request.headers["accept-encoding"] = "identity"

    return httpx2.AsyncClient(
        transport=_Routed(route(settings), certificates(settings)),
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [patient]},
    )


class _Routed(httpx2.AsyncBaseTransport):
    """Sends each request the way its address is reached."""

    def __init__(self, where: Route, context: ssl.SSLContext) -> None:
        self._route, self._context = where, context
        self._ways: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        proxy = self._route.proxy_for(url.scheme, url.host, url.port)
        if proxy not in self._ways:
            self._ways[proxy] = self._way(proxy)
        try:
            response = await self._ways[proxy].handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if proxy and not _is_about_certificates(error):
                raise httpx2.ProxyError("The proxy cannot be reached.", request=request) from error
            raise
        try:
            return bounded(response)
        except BaseException:
            await response.aclose()
            raise

    def _way(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        secured = self._context if proxy.startswith("https://") else None
        through = httpx2.Proxy(proxy, ssl_context=secured) if proxy else None
        return httpx2.AsyncHTTPTransport(
            verify=self._context, trust_env=False, limits=_LIMITS, proxy=through, retries=0
        )

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()


def _is_about_certificates(error: BaseException) -> bool:
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(each):
            return True
        each = each.__cause__ or each.__context__
    return False


def _usable(proxy: str, key: str) -> str:
    whole = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(whole)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fit = False
    if not fit or any(ord(each) < 33 or ord(each) > 126 for each in whole):
        raise ConfigError(key, None, "is no proxy that can be used.", "Write http://HOST:PORT.")
    return whole


def _variable(name: str) -> str:
    """A variable, small letters first; the server's own environment file counts as environment."""
    read: Callable[[str], str] = lambda each: expanded(f"${{env:{each}:-}}", f"connections.proxy ({each})")  # noqa: E731
    return (read(name) or read(name.upper())).strip()


def _believe(context: Any, name: str) -> None:
    path = Path(name).expanduser()
    remedy = "Name a file of certificates in PEM form, by its whole path."
    try:
        text = path.read_text(encoding="ascii", errors="replace")
        context.load_verify_locations(cadata=_certificates_of(text))
    except OSError as error:
        why = "holds no certificate." if isinstance(error, ssl.SSLError) else f"{error.strerror or 'failed'}."
        raise ConfigError("connections.ca_files", None, f"{path}: {why}", remedy) from None
    except ValueError:
        raise ConfigError("connections.ca_files", None, f"{path}: holds no certificate.", remedy) from None


def _certificates_of(text: str) -> str:
    """The certificates alone: whatever else stands in such a file is no concern of ours."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = [f"{begin}{each.partition(end)[0]}{end}\n" for each in text.split(begin)[1:] if end in each]
    if not found:
        raise ValueError("no certificate")
    return "".join(found)


def _names(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    name, wanted = _split(entry)
    if wanted is not None and wanted != port:
        return False
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except (ValueError, TypeError):
            return False
    if _address(name) is not None:
        return False
    # INVARIANT: a name covers what is below it at a dot, and never what merely ends alike.
    if name.startswith(("*.", ".")):
        return host.endswith(f".{name.lstrip('*.')}") and bool(name.lstrip("*."))
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _split(entry: str) -> tuple[str, int | None]:
    """An entry's name and port. More than one colon and no bracket is an IPv6 address."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        port = rest.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, port = entry.partition(":")
    else:
        name, port = entry, ""
    if port and not (port.isascii() and port.isdigit()):
        return "", None
    return name.rstrip("."), int(port) if port else None


def _bare(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped if isinstance(mapped, ipaddress.IPv4Address) else found
