"""Verifies the whole record when a person asks for it, beside the work and with pauses."""

from __future__ import annotations

import threading

from checkrein.errors import CheckreinError, LedgerError
from checkrein.ledger.verify import Report, verify
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.gently import Gently

_PAUSE_SECONDS, _PAUSE_EVERY = 0.001, 20


class Check:
    """At most one check at a time; what the last one found."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.report: Report | None = None
        self.finished_at = 0.0
        self.trouble = ""

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Begin a check; False when one is under way."""
        with self._lock:
            if self.is_running:
                return False
            self._thread = threading.Thread(target=self._run, name="checkrein-console-verify", daemon=True)
            self._thread.start()
            return True

    def join(self, seconds: float) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        ledger = self._pipeline.ledger
        reader = Gently(self._pipeline.store, seconds=_PAUSE_SECONDS, every=_PAUSE_EVERY)
        try:
            report = verify(reader, state_dir(), ledger.signer.public, now=self._pipeline.clock())
            self.report, self.trouble = report, report.trouble
            # INVARIANT: a record found broken is not written on.
            ledger.broken = ledger.broken or (report.broken.reason if report.broken else "")
        except CheckreinError as error:
            self.report, self.trouble = None, str(error)
            if isinstance(error, LedgerError):
                ledger.broken = ledger.broken or self.trouble
        self.finished_at = self._pipeline.clock()
