"""Who may see the console: one-time secrets, then a cookie and a place of its own for each browser.

They and the sessions live in memory and only as hashes; a restart of the server ends them all.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable

import msgspec

LINK_SECONDS = 60.0
IDLE_SECONDS = 12 * 3600.0
COOKIE = "checkrein"
_MOST_LINKS, _MOST_SESSIONS = 16, 32
_MOST_TOLD = 20


class Signed(msgspec.Struct):
    """A browser that signed in: its place, its form token, when it was last used, what it is still told."""

    place: str
    csrf: str
    used_at: float
    told: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def tell(self, kind: str, text: str) -> None:
        """Say something on the next page."""
        self.told = [*self.told, (kind, text)][-_MOST_TOLD:]

    def hear(self) -> list[tuple[str, str]]:
        told, self.told = self.told, []
        return told


class Opened(msgspec.Struct, frozen=True):
    """What a browser gets for a link: the cookie, and the place it is good for."""

    cookie: str
    place: str


class _Link(msgspec.Struct, frozen=True):
    """How long a secret is good, and what is done once it no longer is."""

    until: float
    ended: Callable[[], None]


def _nothing() -> None:
    pass


class SignIn:
    """The table of links and sessions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[bytes, _Link] = {}
        self._sessions: dict[bytes, Signed] = {}

    def link(self, ended: Callable[[], None] = _nothing) -> str:
        """A new secret: 32 random bytes, good for a minute and for one browser.

        `ended` is called once, when it was used, ran out, or had to make room.
        """
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._forget()
            while len(self._links) >= _MOST_LINKS:
                self._end(next(iter(self._links)))
            self._links[_hashed(made)] = _Link(self._clock() + LINK_SECONDS, ended)
        return made

    def open(self, secret: str) -> Opened | None:
        """Turn a link into a session; None for one that is unknown, old or used."""
        wanted = _hashed(secret)
        with self._lock:
            self._forget()
            found = [each for each in self._links if hmac.compare_digest(each, wanted)]
            # INVARIANT: a link opens one session, whoever is first.
            if not found:
                return None
            self._end(found[0])
            while len(self._sessions) >= _MOST_SESSIONS:
                oldest = min(self._sessions, key=lambda each: self._sessions[each].used_at)
                del self._sessions[oldest]
            opened = Opened(secrets.token_urlsafe(32), secrets.token_urlsafe(16))
            session = Signed(opened.place, secrets.token_urlsafe(32), self._clock())
            self._sessions[_hashed(opened.cookie)] = session
        return opened

    def session(self, cookies: list[str], place: str, *, use: bool = True) -> Signed | None:
        """The session one of the cookies stands for, if it belongs to this place and was used lately.

        INVARIANT: a cookie is good only below its own path. Browsers send cookies to every port of a host, so
        a page the agent serves on this machine would get one that is good everywhere.
        """
        with self._lock:
            self._forget()
            for cookie in cookies:
                found = self._sessions.get(_hashed(cookie))
                if found is not None and hmac.compare_digest(found.place.encode(), place.encode()):
                    if use:
                        found.used_at = self._clock()
                    return found
        return None

    def close(self, session: Signed) -> None:
        with self._lock:
            self._sessions = {key: each for key, each in self._sessions.items() if each is not session}

    def is_open(self, session: Signed) -> bool:
        with self._lock:
            self._forget()
            return any(each is session for each in self._sessions.values())

    def forget(self) -> None:
        """Drop what has run out."""
        with self._lock:
            self._forget()

    def end_links(self) -> None:
        """Nobody signs in by what was handed out so far."""
        with self._lock:
            for key in list(self._links):
                self._end(key)

    def _end(self, key: bytes) -> None:
        self._links.pop(key).ended()

    def _forget(self) -> None:
        now = self._clock()
        for key in [key for key, link in self._links.items() if link.until <= now]:
            self._end(key)
        self._sessions = {
            key: each for key, each in self._sessions.items() if each.used_at + IDLE_SECONDS > now
        }


def cookie_header(opened: Opened) -> str:
    # Not `Secure`: loopback has no certificate. The path keeps it from pages on other ports.
    return f"{COOKIE}={opened.cookie}; Path=/at/{opened.place}; HttpOnly; SameSite=Strict"


def cookies_of(header: str) -> list[str]:
    """Every value given for our cookie: another port of this host may have set one of the same name."""
    pairs = (each.strip().partition("=") for each in header.split(";")[:50])
    return [value for name, _, value in pairs if name == COOKIE]


def same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
