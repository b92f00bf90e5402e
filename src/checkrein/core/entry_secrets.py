"""The secrets of calls that are on the record, for masking what is recorded about them later. In memory only.

`Recording` keeps them, `Answering` and `Finishing` ask for them. Nothing here is ever stored.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from checkrein.approval.question_calls import QuestionCalls
from checkrein.ledger.call_secrets import NO_SECRETS, CallSecrets
from checkrein.ledger.redact import Redactor

_MOST = 8_192


class EntrySecrets:
    """By entry, the newest only. Of older ones, what their questions hold is read again."""

    def __init__(self, calls: QuestionCalls, most: int = _MOST) -> None:
        self._calls, self._most = calls, most
        self._known: OrderedDict[str, CallSecrets] = OrderedDict()
        # The writer keeps while doors and the log look.
        self._lock = threading.Lock()

    def keep(self, entry: str, secrets: CallSecrets) -> None:
        with self._lock:
            self._known[entry] = secrets
            while len(self._known) > self._most:
                self._known.popitem(last=False)

    def of(
        self,
        entry: str,
        redactor: Redactor,
        *,
        reported: dict[str, Any] | None = None,
        edited: dict[str, Any] | None = None,
    ) -> CallSecrets:
        """Those of a call and of the arguments a person wrote instead. `reported`: as its agent repeats them.

        None of a call from before a restart that nobody was asked about and no report repeats: its
        arguments are gone, and the tables alone mask what is recorded from then on.
        """
        found = self._known.get(entry)
        if found is None:
            asked = self._calls.asked_call(entry)
            known = [asked.call.arguments, self._calls.edited(entry)] if asked is not None else []
            found = self._found(entry, NO_SECRETS, redactor, *known, reported)
        return found if edited is None else self._found(entry, found, redactor, edited)

    def text(self, text: str) -> str:
        """A line of a log without the secrets of any call that is known."""
        with self._lock:
            known = [each for each in self._known.values() if each]
        return CallSecrets(value for each in known for value in each.values).quoted(text)

    def _found(
        self, entry: str, found: CallSecrets, redactor: Redactor, *arguments: dict[str, Any] | None
    ) -> CallSecrets:
        for each in arguments:
            found |= redactor.find(each)[1] if each else NO_SECRETS
        self.keep(entry, found)
        return found
