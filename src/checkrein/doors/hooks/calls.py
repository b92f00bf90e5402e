"""Finds the entry an agent's later word belongs to: by the call's id, else by what was called with what."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import msgspec

from checkrein.call import ToolCall
from checkrein.core.decision import Decided
from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.query import Filter, entries
from checkrein.store import Reader, records

_KEPT = 4_096
_KEPT_ALIKE = 256
_LOOK_BACK = 1_000
# The same call asked about twice within this time is one call heard twice, not two.
_TWICE_SECONDS = 10.0
Key = tuple[str, str, str]


class Calls:
    """Recently judged calls that have not ended; older ones are looked up in the ledger."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._open: OrderedDict[Key, list[tuple[float, str, Decided]]] = OrderedDict()
        self._lock = threading.Lock()

    def heard(self, call: ToolCall, now: float) -> Decided | None:
        """The verdict just given to this very call, when the agent or a second hook asks again."""
        if not call.call_id:
            return None
        with self._lock:
            found = self._open.get(_key(call))
        if not found:
            return None
        at, same, decided = found[-1]
        # INVARIANT: a verdict is repeated for exactly the same call only, whatever id a payload claims.
        return decided if now - at <= _TWICE_SECONDS and same == call.binding else None

    def opened(self, call: ToolCall, decided: Decided, now: float) -> None:
        words = call.binding
        with self._lock:
            alike = self._open.setdefault(_key(call), [])
            alike.append((now, words, decided))
            del alike[:-_KEPT_ALIKE]
            while len(self._open) > _KEPT:
                self._open.popitem(last=False)

    def rewritten(self, call: ToolCall, decided: Decided, updated: dict[str, Any] | None, now: float) -> None:
        """It will be reported as it ran; without an id nothing else says which one it was."""
        if updated is not None and not call.call_id:
            self.opened(msgspec.structs.replace(call, arguments=updated), decided, now)

    def judged_anew(self, call: ToolCall, decided: Decided) -> str | None:
        """The outcome of a call belongs to its newest verdict, also where the agent names no id.

        The entry of the allow before it; None where there was none.
        """
        same = call.binding
        with self._lock:
            for key in reversed(self._open):
                alike = self._open[key]
                at, words, before = alike[-1]
                if key[0] == call.agent + call.session and words == same and before.verdict.word == "allow":
                    alike[-1] = (at, same, decided)
                    return before.entry
        return None

    def ended(self, call: ToolCall) -> str | None:
        """The entry of a call that ended, the oldest unfinished first; None when we never judged it."""
        with self._lock:
            found = [decided.entry for _, _, decided in self._open.get(_key(call), ())]
        if not found:
            return self._looked_up(call)
        entry = found[0] if len(set(found)) == 1 else self._likeliest(found)
        with self._lock:
            left = [each for each in self._open.pop(_key(call), ()) if each[2].entry != entry]
            if left:
                self._open[_key(call)] = left
        return entry

    def _likeliest(self, found: list[str]) -> str:
        """Of several calls that are alike, the oldest that may have run."""
        folded = fold(records.of_entries(self._reader, found))
        return _oldest_open(sorted(folded, key=lambda each: found.index(each.id)), found[0])

    def _looked_up(self, call: ToolCall) -> str | None:
        """In the ledger, for calls an earlier server judged."""
        fitting: list[Entry] = [
            each
            for each in entries(self._reader, Filter(session=call.session), _LOOK_BACK)
            if _same(each, call)
        ]
        return _oldest_open(fitting[::-1], fitting[-1].id) if fitting else None


def _oldest_open(oldest_first: list[Entry], otherwise: str) -> str:
    """INVARIANT: the outcome of a call that ran is never laid to a refused one while there is another."""
    unfinished = [each for each in oldest_first if each.completed_at is None]
    ran = [each for each in unfinished if each.status != "denied"]
    return next((each.id for each in (*ran, *unfinished)), otherwise)


def _key(call: ToolCall) -> Key:
    return (call.agent + call.session, call.call_id, "" if call.call_id else call.name + call.argument_hash)


def _same(entry: Entry, call: ToolCall) -> bool:
    if entry.agent != call.agent or entry.tool_name != call.name:
        return False
    return entry.call_id == call.call_id if call.call_id else entry.argument_hash == call.argument_hash
