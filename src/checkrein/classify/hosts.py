"""Who a call talks to: loopback, a host the user vouches for, or the outside world.

Addresses only; nothing here opens a connection.
"""

from __future__ import annotations

import re

from checkrein.classify.words import HOLE, Word

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_LOOPBACK = re.compile(
    r"^(?:localhost|.*\.localhost|127(?:\.\d{1,3}){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal)$"
)
_HOST = re.compile(r"^(?:[^@/?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^:/?#\\]*)")


def host_of(text: str) -> str:
    """The host of a URL, `user@host:path` or `host:port`, lower case."""
    match = _HOST.match(_SCHEME.sub("", text, count=1))
    return match.group(1).lower().rstrip(".") if match else ""


def scope_of(word: Word, known_hosts: frozenset[str]) -> tuple[str, str]:
    """The network scope of a URL or host word, and the host as shown.

    INVARIANT: a host we cannot read is an outside host.
    """
    host = host_of(word.text)
    if not host or HOLE in host:
        return "outside", word.shown
    if "\\" in word.text or (HOLE in word.text and _unsafe_hole(word.text)):
        return "outside", host
    if _LOOPBACK.match(host):
        return "loopback", host
    if host in known_hosts or any(
        host.endswith(f".{known[2:]}") for known in known_hosts if known.startswith("*.")
    ):
        return "known", host
    return "outside", host


def _unsafe_hole(text: str) -> bool:
    """A hole before the path starts could still change the host (`http://localhost$X`)."""
    bare = _SCHEME.sub("", text, count=1)
    cut = re.search(r"[/?#]", bare)
    authority = bare[: cut.start()] if cut else bare
    return HOLE in authority and not re.fullmatch(rf"[^{HOLE}@]*:{HOLE}", authority)
