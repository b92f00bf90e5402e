"""A webhook: each notice as JSON, posted to one address and signed with a key of this installation."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from checkrein.approval.channels import Notice, Undelivered
from checkrein.settings.addresses import fault_in_webhook, masked
from checkrein.settings.sources import state_dir

SIGNATURE = "X-Checkrein-Signature"
KEY = "webhook.key"
_SECONDS = 5.0
_LASTING = frozenset(range(300, 500)) - {408, 425, 429}
_encode = msgspec.json.Encoder(order="sorted").encode


def key_file() -> Path:
    return state_dir() / KEY


def key() -> bytes:
    """The secret both sides share: made on first use, readable by its owner only."""
    path = key_file()
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(32)}\n")
    found = path.read_bytes().strip()
    if len(found) < 32:
        raise Undelivered(f"{path} holds no key; remove it and a new one is made", lasting=True)
    return found


def signature(body: bytes, secret: bytes) -> str:
    """`sha256=` and the HMAC of exactly the bytes that are sent."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


class Webhook:
    """One address."""

    def __init__(self, url: str) -> None:
        self.name, self._url = masked(url), url

    def deliver(self, notice: Notice) -> None:
        if why := fault_in_webhook(self._url):
            raise Undelivered(f"the address {why}", lasting=True)
        body = _encode(
            {
                "event": notice.event,
                "delivery": notice.number,
                "sent_at": int(time.time()),
                "title": notice.title,
                "text": notice.body,
                **notice.facts,
            }
        )
        # Loaded when first used: a server that starts inside a hook has no time for it.
        from http.client import HTTPException

        try:
            status = self._post(body, signature(body, key()))
        except (OSError, HTTPException, ValueError) as error:
            # Never the error's own words alone: some quote the address.
            raise Undelivered(f"{type(error).__name__}: {_reason(error)}") from None
        if not 200 <= status < 300:
            # INVARIANT: a redirect is not followed; what an agent wants to run goes where the user said.
            raise Undelivered(f"it answered {status}", lasting=status in _LASTING)

    def _post(self, body: bytes, signed: str) -> int:
        from http.client import HTTPConnection, HTTPSConnection

        parts = urlsplit(self._url)
        host, place = parts.hostname or "", parts.path or "/"
        # Over https the certificate is checked as the system says.
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        made: HTTPConnection = kind(host, parts.port, timeout=_SECONDS)
        with contextlib.closing(made):
            made.request(
                "POST",
                f"{place}?{parts.query}" if parts.query else place,
                body,
                {"Content-Type": "application/json", "User-Agent": "checkrein", SIGNATURE: signed},
            )
            return made.getresponse().status


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return getattr(error, "strerror", None) or "the answer cannot be read"
