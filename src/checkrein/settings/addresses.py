"""Addresses people are told at: which can be used, and how they look where others may read. Pure.

Everything in such an address may be a secret (`tgram://TOKEN/CHAT`), also what looks like a host.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from checkrein.settings import SECTIONS, Settings, keys_of

_HIDDEN = "[masked]"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,31})://", re.IGNORECASE)
_PLAIN = re.compile(r"[\x21-\x7e]+")
_LONGEST = 4096


def fault_in_service(url: str) -> str:
    """Why this is no Apprise URL; whether a service answers there only a try can tell."""
    if not _PLAIN.fullmatch(url) or len(url) > _LONGEST:
        return "holds spaces, control characters or letters outside ASCII; write them as %20"
    return "" if _SCHEME.match(url) else "does not begin like slack:// or mailto://"


def fault_in_webhook(url: str) -> str:
    """Why nothing is posted to this address."""
    if not _PLAIN.fullmatch(url) or len(url) > _LONGEST:
        return "holds spaces, control characters or letters outside ASCII; write them as %20"
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # Reading it is what checks it.
        parts.port  # noqa: B018
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host or "\\" in url:
        return "is not a URL of the kind https://host/path"
    if parts.username is not None or parts.password is not None:
        return "holds a user name, which is not sent; our signature says who we are"
    # INVARIANT: what an agent wants to run leaves this machine encrypted, or not at all.
    return "" if parts.scheme == "https" or _is_here(host) else "must be https, or http on this machine"


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def masked(url: str) -> str:
    """An address as it may be shown: what kind it is, and of a webhook whom it belongs to."""
    found = _SCHEME.match(url)
    if found is None:
        return _HIDDEN
    scheme = found[1].lower()
    if scheme in ("http", "https") and not fault_in_webhook(url):
        parts = urlsplit(url)
        return f"{scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/{_HIDDEN}"
    return f"{scheme}://{_HIDDEN}"


def shown(settings: Settings) -> Settings:
    """The settings as anybody may see them."""
    changes: dict[str, Any] = {}
    for section, struct in SECTIONS.items():
        own = getattr(settings, section)
        secret = [name for name, (_, key) in keys_of(struct).items() if key.secret]
        if secret:
            hidden = {name: _masked(getattr(own, name)) for name in secret}
            changes[section] = msgspec.structs.replace(own, **hidden)
    return msgspec.structs.replace(settings, **changes)


def _masked(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return masked(value) if value else ""
    return tuple(map(masked, value))
