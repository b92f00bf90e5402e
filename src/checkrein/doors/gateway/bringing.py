"""Carries out a guest's call: looked up on the record first, executed once, as any client's call is.

A guest judged its call itself and brings the entry of the verdict. What the record does not bear out is not
sent anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from checkrein.call import ToolCall
from checkrein.core.lifecycle import UNDER_WAY, State, state_of
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.errands import UNKNOWN, Came
from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.messages import MISSING_CAPABILITY, Message
from checkrein.doors.gateway.relay import without_kind
from checkrein.doors.gateway.seats import Latest, Seats
from checkrein.errors import CheckreinError
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import get_entry

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

_MOST_KEPT = 10_000


class Brought(msgspec.Struct, frozen=True):
    """What came of a call. `content` is the tool's whole result; `text` its words, or why there are none.

    `unsent`: nothing ran. `silent` and `lost`: nobody knows whether it took effect. `input`: it ended because
    its server wanted to ask somebody.
    """

    kind: Literal["result", "error", "unsent", "silent", "lost", "input"]
    content: Any = None
    text: str = ""
    failed: bool = True


class Bringing:
    """Guests' calls. Lives on the gateway's loop."""

    def __init__(self, hub: Hub, seats: Seats) -> None:
        self._hub, self._seats = hub, seats
        # Entries that were brought here lately: their outcomes may not be on the record yet.
        self._taken: dict[str, None] = {}

    async def carry(self, call: ToolCall, name: str, entry: str, latest: Latest) -> Brought:
        """Execute exactly what was judged under this entry; its outcome is put on the record."""
        if why := self._not_bound(call, name, entry):
            # The entry is another call's, or over: nothing is added to it.
            return _unsent(name, why)
        self._take(entry)
        if latest.over:
            self._hub.calls.outcomes.add(entry, "cancelled", evidence="client")
            return _unsent(name, "It was given up before.")
        offered = as_offered(self._hub, name)
        why = offered if isinstance(offered, str) else _differs(offered, call)
        if isinstance(offered, str) or why:
            self._hub.calls.outcomes.add(entry, "cancelled", evidence="definition", output=why)
            return _unsent(name, why)
        params: Message = {"arguments": call.arguments, "_meta": {"progressToken": entry}}
        seconds = self._hub.pipeline.policies.of("", "gateway").settings.gateway.call_seconds
        send, relay = self._hub.calls.errands.send, self._hub.relay
        with self._seats.flight(call.door, call.session, entry, latest) as (seat, flight):
            came = await send(relay, offered, flight, params, entry, seconds)
            return _brought(came, name, asked=entry in seat.asked)

    def _take(self, entry: str) -> None:
        self._taken[entry] = None
        while len(self._taken) > _MOST_KEPT:
            del self._taken[next(iter(self._taken))]

    def _not_bound(self, call: ToolCall, name: str, entry: str) -> str:
        """Why this entry lets no such call run; nothing where it does."""
        # INVARIANT: a verdict lets one call run, once, whoever brings it and however often.
        if entry in self._taken:
            return "It was brought before."
        if name != f"{call.server}__{call.tool}":
            return "It was judged under another name."
        try:
            found = get_entry(self._hub.pipeline.store, entry)
        except CheckreinError as error:
            return str(error)
        # INVARIANT: what runs is the very call that was allowed or approved, as the ledger has it.
        if found is None or not _is_about(found, call):
            return "The record knows another call by this entry."
        state = state_of(found)
        # An approval is claimed before its call is brought here: that is what lets it run once only.
        if state in UNDER_WAY:
            return ""
        return "It is over." if state in (State.finished, State.unknown) else "Nobody allowed it."


def _is_about(found: Entry, call: ToolCall) -> bool:
    bound = found.edited_hash or found.argument_hash
    known = (found.tool_name, found.door, found.session_id, bound)
    return known == (call.name, call.door, call.session, call.argument_hash)


def as_offered(hub: Hub, name: str) -> Offered | str:
    """The tool as it is now, or why it cannot be called."""
    return hub.catalogue.tool(name) or hub.catalogue.hidden(name) or hub.fleet.no_tool(name)


def _differs(offered: Offered, call: ToolCall) -> str:
    # INVARIANT: a verdict is about the tool as it was accepted when it was given.
    if offered.hash != call.definition:
        return "Its definition changed meanwhile."
    return " ".join(offered.input.faults(call.arguments))


def _unsent(name: str, why: str) -> Brought:
    return Brought("unsent", text=f"`{name[:160]}` was not called, so nothing ran. {why}")


def _brought(came: Came, name: str, *, asked: bool) -> Brought:
    """What came of the call, as its guest hears it."""
    if came.kind in ("unsent", "silent"):
        return Brought(came.kind, text=came.text)
    if came.kind == "lost":
        return Brought("lost", text=f"{came.text} {UNKNOWN}")
    result = replace_surrogates(without_kind(came.result)) if came.readable else None
    said = came.error.message if came.error is not None else _words(result)
    wanted = came.kind == "input" or (came.error is not None and came.error.code == MISSING_CAPABILITY)
    if wanted or (asked and (came.failed or came.error is not None)):
        told = f" It said: {said}" if said else ""
        return Brought(
            "input", result, f"`{name}` wants to ask something, and there is nobody it can ask.{told}"
        )
    if came.error is not None:
        return Brought("error", text=said or "The tool failed.")
    if not isinstance(result, dict):
        return Brought("error", text="The tool's result cannot be read.")
    return Brought("result", result, said or ("The tool failed." if came.failed else ""), came.failed)


def _words(result: Any) -> str:
    content = result.get("content") if isinstance(result, dict) else None
    rows = content if isinstance(content, list) else []
    texts = [each.get("text") for each in rows if isinstance(each, dict)]
    return "\n".join(each for each in texts if isinstance(each, str))
