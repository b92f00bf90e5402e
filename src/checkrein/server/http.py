"""The same hooks over loopback HTTP, for agents that call a URL: off unless the user asks for it.

Guarded by a token, and closed to browsers. An agent takes an empty or failed HTTP answer for an agreement, so
the hook program is the better door; this one is for where a program cannot be started.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from checkrein.doors.hooks.replies import Reply, refuse_unread
from checkrein.doors.hooks.waiting import Waiting
from checkrein.errors import CheckreinError
from checkrein.settings.sources import state_dir
from checkrein.wire import LARGEST_PAYLOAD, Request

MODES = ("gate", "permission", "tell")
WAIT_SECONDS = 580.0
_READ_SECONDS = 10.0
_MOST_READ = 64 << 20
Handle = Callable[[Request, Waiting], Reply]


def token_file() -> Path:
    return state_dir() / "http-token"


def token() -> str:
    """The secret a caller shows; made on first use, readable by its owner only."""
    path = token_file()
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    made = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{made}\n")
    return made


class _Patient(Waiting):
    """A caller on the other side of HTTP cannot be told that we are still here; it waits or it goes."""

    # A caller over HTTP has no process to look at, so nothing that it says gives anything.
    words: Sequence[str] = ()

    def __init__(self) -> None:
        self.deadline = time.monotonic() + WAIT_SECONDS

    def streams(self) -> list[int]:
        return []

    def still_here(self) -> bool:
        return True


class HttpHooks:
    """Listens on 127.0.0.1 until stopped."""

    def __init__(self, port: int, handle: Handle) -> None:
        secret = token()

        class Handler(_Handler):
            answer = staticmethod(handle)
            expected = f"Bearer {secret}"

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        Handler.hosts = frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})
        self._thread = threading.Thread(target=self._server.serve_forever, name="checkrein-http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _failed(agent: str, mode: str, error: Exception) -> Reply:
    """INVARIANT: an error is a no in the agent's own words; it takes a mere status code for an agreement."""
    if mode != "gate":
        return Reply(exit_code=2, stderr=b"Checkrein could not take this.")
    try:
        return refuse_unread(agent, f"Checkrein could not judge this call: {error}. Run `checkrein doctor`.")
    except CheckreinError:
        return Reply(exit_code=2, stderr=b"Checkrein could not judge this call.")


class _Handler(BaseHTTPRequestHandler):
    """POST /hooks/AGENT/MODE with the agent's payload; the answer is what its hook would print."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "checkrein", ""
    timeout = _READ_SECONDS
    answer: Handle
    expected = ""
    hosts: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        refused = self._refused()
        if refused:
            self._send(*refused)
            return
        _, _, agent, mode = self.path.split("/")
        try:
            body, facts = self._body(int(self.headers["Content-Length"]))
            request = Request("", ("hook", agent, mode, str(int(WAIT_SECONDS))), facts, body)
            reply = type(self).answer(request, _Patient())
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, a gate stays shut
            reply = _failed(agent, mode, error)
        # INVARIANT: a refusal is never an empty answer, which agents take for an agreement.
        if reply.exit_code and not reply.stdout:
            self._send(403, reply.stderr or b"Refused.")
            return
        self._send(200, reply.stdout or b"{}")

    def _body(self, length: int) -> tuple[bytes, dict[str, str]]:
        """The payload, as the hook program would pass it on: its beginning where it is too long."""
        body = self.rfile.read(min(length, LARGEST_PAYLOAD))
        left = length - len(body)
        # Read to the end, or the caller never sees that it was refused.
        for _ in range(0, min(left, _MOST_READ), LARGEST_PAYLOAD):
            self.rfile.read(min(left, LARGEST_PAYLOAD))
            left -= LARGEST_PAYLOAD
        return body, {"TRUNCATED": "1"} if length > LARGEST_PAYLOAD else {}

    def _refused(self) -> tuple[int, bytes] | None:
        """Why a request is not even read: browsers, strangers, other hosts, other paths, too much."""
        parts = self.path.split("/")
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Host") not in self.hosts or self.headers.get("Origin") is not None:
            return 403, b"Not from a browser, and only by this machine's own name."
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), self.expected.encode()):
            return 401, b"Show the token."
        if len(parts) != 4 or parts[:2] != ["", "hooks"] or parts[3] not in MODES:
            return 404, b"POST /hooks/AGENT/MODE"
        return None if length.isdigit() else (411, b"How long is it?")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing: requests are in the ledger."""
