"""What calls met before can break, remembered for as long as the same question would get the same answer.

`classify` is pure: it depends on the call, the tables and what the file system says about paths. Agents
repeat themselves, so the first two are looked up and the third is asked again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any

import msgspec

from checkrein.call import Effect, Risk, ToolCall, canonical
from checkrein.classify import Tables, classify
from checkrein.classify.tools import says_nothing

KEPT = 1_024
LONGEST = 4_096


class Known(msgspec.Struct, frozen=True):
    """A risk, and all that `classify` saw when it said so."""

    risk: Risk
    tables: Tables
    own: tuple[str, ...]
    history: tuple[Effect, ...]
    # Every path that was resolved, and where it led.
    led: dict[str, str]


class Memory:
    """The risks of recent calls."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, ...], Known] = OrderedDict()
        self._lock = threading.Lock()

    def risk(self, call: ToolCall, tables: Tables, own: tuple[str, ...]) -> Risk:
        """What the call can break, as `classify` says now."""
        return self.known(call, tables, own).risk

    def known(self, call: ToolCall, tables: Tables, own: tuple[str, ...]) -> Known:
        """The same, with what it rests on."""
        key = _key(call)
        found = self._known.get(key) if key else None
        # INVARIANT: a remembered risk is used only where classify would see exactly the same.
        if (
            found is not None
            and found.tables is tables
            and found.own == own
            and found.history == call.history
            and all(os.path.realpath(path) == led for path, led in found.led.items())
        ):
            return found
        led: dict[str, str] = {}

        def resolve(path: str) -> str:
            led[path] = os.path.realpath(path)
            return led[path]

        risk = classify(call, tables=tables, resolve=resolve, own=own)
        made = Known(risk, tables, own, call.history, led)
        if key:
            self._keep(key, made)
        return made

    def _keep(self, key: tuple[Any, ...], known: Known) -> None:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)


def _key(call: ToolCall) -> tuple[Any, ...]:
    """Everything of a call that classify looks at; nothing for long ones, which hardly come twice."""
    if call.server is not None and says_nothing(call.arguments):
        # INVARIANT: arguments are left out only where classify looks past them.
        annotations = canonical(call.annotations) if call.annotations else b""
        return (call.server, call.tool, None, call.cwd, call.project, annotations)
    arguments = canonical(call.arguments)
    if len(arguments) > LONGEST:
        return ()
    annotations = canonical(call.annotations) if call.annotations else b""
    return (call.server, call.tool, arguments, call.cwd, call.project, annotations)
