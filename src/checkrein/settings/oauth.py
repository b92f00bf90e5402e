"""The client a person registered at a server's provider, where programs cannot register themselves.

`settings.servers` reads it from a server's `oauth`; signing in uses it. Nothing here shows a secret.
"""

from __future__ import annotations

import difflib
import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from checkrein.errors import ConfigError

# Where a browser comes back to unless the person says otherwise; its port may be any (RFC 8252).
USUAL_WAY_BACK = "http://127.0.0.1/callback"
_HOSTS = ("127.0.0.1", "localhost")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WAY_BACK = re.compile(r"[!-~]{1,512}")
_LOWEST_PORT = 1024


class OAuthClient(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What the provider knows us by. References stay references until the server's are resolved."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    redirect_uri: str = ""

    @property
    def way_back(self) -> str:
        """The address the provider was told; empty where it is told a new one each time."""
        return self.redirect_uri or (USUAL_WAY_BACK if self.client_id else "")

    def __repr__(self) -> str:
        # INVARIANT: a client shown by accident shows no secret.
        return f"OAuthClient({self.client_id!r})"


KEYS = tuple(OAuthClient.__struct_encode_fields__)


def in_our_words(name: str, raw: Any) -> Any:
    """The value of `oauth` with the spellings of other programs replaced by ours; raises ConfigError."""
    if not isinstance(raw, dict):
        return raw
    found = dict(raw)
    if "scopes" in found and "scope" not in found:
        found["scope"] = found.pop("scopes")
    if isinstance(scopes := found.get("scope"), list):
        found["scope"] = " ".join(str(each) for each in scopes)
    if "callbackPort" in found and "redirectUri" not in found:
        found["redirectUri"] = f"http://localhost:{found.pop('callbackPort')}/callback"
    for key in found:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.6)
            remedy = f"Did you mean `{near[0]}`?" if near else f"Known are {', '.join(KEYS)}."
            raise wrong(name, key, "is not known.", remedy)
    # An object that says nothing says that there is a sign-in.
    return {key: value for key, value in found.items() if value not in (None, "")} or True


def check(name: str, client: OAuthClient) -> None:
    """What types cannot say."""
    if client.client_secret and not client.client_id:
        raise wrong(name, "clientSecret", "is whose?", "Give the `clientId` it belongs to.")
    for key in ("client_id", "client_secret", "scope"):
        if _CONTROL.search(getattr(client, key)):
            raise wrong(name, _spelled(key), "holds a control character.", "Write it on one line.")
    if client.redirect_uri and not _is_here(client.redirect_uri):
        raise wrong(
            name,
            "redirectUri",
            "is no address a browser can come back to here.",
            f"Write http://127.0.0.1/PATH or http://localhost/PATH, with no port or one from {_LOWEST_PORT}.",
        )


def _is_here(address: str) -> bool:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    plain = _WAY_BACK.fullmatch(address) and not (parts.query or parts.fragment or "@" in parts.netloc)
    here = parts.scheme == "http" and parts.hostname in _HOSTS
    return bool(plain) and here and (port is None or port >= _LOWEST_PORT)


def wrong(name: str, key: str, reason: str, remedy: str) -> ConfigError:
    shown = "".join(each if each.isprintable() else "?" for each in key)[:40]
    return ConfigError(f"{name}.oauth.{shown}", None, reason, remedy)


def _spelled(field: str) -> str:
    return KEYS[OAuthClient.__struct_fields__.index(field)]
