"""The server's own log: when it started and stopped, and what went wrong. No call is ever written here."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from checkrein.ledger.redact import Redactor
from checkrein.runtime import log_file

LARGEST = 1 << 20
# Without waiting: what lies at the path may be no file but a pipe nobody reads.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


class Journal:
    """Appends lines to the log file and shows them to whoever started the server."""

    def __init__(self, show: Callable[[str], None], path: Path | None = None) -> None:
        self._show, self._path = show, path or log_file()
        self._masked: Callable[[str], str] = Redactor().text

    def mask_with(self, masked: Callable[[str], str]) -> None:
        """Have every line masked like this, once it is known what is secret here."""
        self._masked = masked

    def say(self, text: str) -> None:
        # An error may quote what an agent wrote.
        text = self._masked(text)
        # A terminal that was closed, or a full disk, costs the line and not the server.
        with contextlib.suppress(OSError, ValueError):
            self._show(text)
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {' '.join(text.split())}\n"
        with contextlib.suppress(OSError):
            self._turn_over()
            handle = os.open(self._path, _APPEND, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(line.encode("utf-8", "replace"))

    def _turn_over(self) -> None:
        """One older file is kept."""
        try:
            if self._path.stat().st_size > LARGEST:
                self._path.replace(self._path.with_suffix(".log.1"))
        except FileNotFoundError:
            return
