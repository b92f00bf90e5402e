"""What the headers of a request to /mcp say, read once; the HTTP front asks here. Pure; never guesses.

A refusal is (status, why). A header that comes twice could be read in two ways, so it is refused.
"""

from __future__ import annotations

from urllib.parse import unquote

import httptools

from checkrein.doors.gateway.tokens import Shown

Headers = list[tuple[bytes, bytes]]
Found = dict[bytes, bytes]
Refusal = tuple[int, str]

VERSION, METHOD, NAME = b"mcp-protocol-version", b"mcp-method", b"mcp-name"
SESSION, LAST_EVENT, PARAM = b"mcp-session-id", b"last-event-id", b"mcp-param-"
MOST_HEADERS = 128
# May come in several lines, which then count as one list.
_LISTS = frozenset({b"accept", b"accept-encoding", b"accept-language", b"cache-control", b"cookie", b"via"})
_JSON = frozenset({b"application/json", b"application/*", b"*/*"})
_EVENTS = frozenset({b"text/event-stream", b"text/*", b"*/*"})
# Clients send the same few texts over and over; what they say is worked out once.
_MOST_KNOWN = 256
_accepted: dict[bytes, tuple[bool, bool]] = {}


class Head:
    """A request as far as its headers: one for all requests of a connection that begin with the same letters.

    INVARIANT: nothing here depends on the length of the body, in which alone they may differ.
    """

    __slots__ = ("_found", "_kinds", "headers", "method", "path", "shown")

    def __init__(self, method: str, path: str, headers: Headers) -> None:
        self.method, self.path, self.headers = method, path, headers
        self._found: tuple[Found, Refusal | None] | None = None
        self._kinds: tuple[bool, tuple[bool, bool]] | None = None
        # The token in it, once somebody looked at that.
        self.shown: Shown | None = None

    def found(self) -> tuple[Found, Refusal | None]:
        """Headers by name, but for the length, and why they are refused, if they are."""
        if self._found is None:
            self._found = read(self.headers)
            self._found[0].pop(b"content-length", None)
        return self._found

    def kinds(self) -> tuple[bool, tuple[bool, bool]]:
        """Whether the body is JSON, and what the client `accepts`."""
        if self._kinds is None:
            found, _ = self.found()
            self._kinds = is_json(found), accepts(found)
        return self._kinds


def read(headers: Headers) -> tuple[Found, Refusal | None]:
    """Headers by name, and why they are refused, if they are."""
    if len(headers) > MOST_HEADERS:
        return {}, (431, f"A request has {MOST_HEADERS} headers at most.")
    found = dict(headers)
    return (found, None) if len(found) == len(headers) else _folded(headers)


def _folded(headers: Headers) -> tuple[Found, Refusal | None]:
    found: Found = {}
    for name, value in headers:
        if name not in found:
            found[name] = value
        elif name in _LISTS:
            found[name] += b", " + value
        else:
            # INVARIANT: a header that decides anything comes once; nobody reads the other copy.
            return found, (400, f"The header {name.decode('latin-1')[:60]} comes twice.")
    return found, None


def hosts(port: int) -> frozenset[bytes]:
    """The names this machine's own clients reach us by."""
    return frozenset(f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost", "[::1]"))


def foreign(found: Found, names: frozenset[bytes]) -> Refusal | None:
    """INVARIANT: a page reached under another name (DNS rebinding) or from another site gets nothing."""
    host = found.get(b"host", b"")
    if host not in names and host.lower() not in names:
        return 403, "This address answers to 127.0.0.1 and localhost only."
    origin = found.get(b"origin")
    if origin is None:
        return None
    scheme, _, place = origin.lower().partition(b"://")
    return None if scheme == b"http" and place in names else (403, "Another site asked for this.")


def accepts(found: Found) -> tuple[bool, bool]:
    """Whether the client takes JSON, and whether it takes an event stream."""
    given = found.get(b"accept", b"")
    known = _accepted.get(given)
    if known is None:
        kinds = {_media_type(each) for each in given.split(b",")}
        known = bool(kinds & _JSON), bool(kinds & _EVENTS)
        if len(_accepted) < _MOST_KNOWN and len(given) < 256:
            _accepted[given] = known
    return known


def is_json(found: Found) -> bool:
    given = found.get(b"content-type", b"")
    return given == b"application/json" or _media_type(given) == b"application/json"


def _media_type(text: bytes) -> bytes:
    return text.partition(b";")[0].strip().lower()


def length(given: bytes) -> int:
    """The announced length of a body; -1 where that says nothing of use."""
    return int(given) if given.isdigit() and len(given) <= 15 else -1


def path_of(url: bytes, headers: Headers) -> str:
    """The path a request is for; raises ValueError, or what httptools raises, where there is none."""
    if not url.startswith(b"/"):
        # INVARIANT: a target that names a host names the one the request says it is for.
        place = url.partition(b"://")[2].partition(b"/")[0]
        if [place] != [value for name, value in headers if name == b"host"]:
            raise ValueError("a request for another host")
    path = httptools.parse_url(url).path.decode("ascii")
    return unquote(path) if "%" in path else path
