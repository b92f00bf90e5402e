"""Carries out a script's call that may run: the same connections, time-outs and records as any other call.

The runner hands over what was judged. A call whose fate is unknown is sent again only where that changes
nothing: the accepted definition says that the tool only reads, or that twice is the same as once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from checkrein.call import ToolCall
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.clients import Client, Flight, Visit
from checkrein.doors.gateway.errands import Came
from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.messages import HANDSHAKE, Message, RpcError
from checkrein.doors.gateway.scripts.run import Answered, Run

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

_LONGEST_ERROR = 8_192


class LostError(Exception):
    """Raise when nobody can say whether a call took effect."""


class Carrier:
    """The way of one call to its server and back."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._stand_ins: dict[str, Client] = {}

    async def carry(self, run: Run, offered: Offered, call: ToolCall, entry: str) -> Answered:
        """What the tool said, as the script gets it; raises LostError where its fate is unknown."""
        flight, leave = self._caller(run, call)
        try:
            return await self._sent(run, flight, offered, call, entry)
        finally:
            leave()

    def repeatable(self, offered: Offered) -> bool:
        """Whether sending the call twice does no more than sending it once."""
        hints = offered.annotations
        return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True

    def _caller(self, run: Run, call: ToolCall) -> tuple[Flight, Callable[[], None]]:
        """Whoever waits for the script, on a flight of the call's own; else somebody who cannot be asked."""
        client = run.client
        there = client is not None and self._hub.clients.get(client.id) is client
        if client is None or not there or client.era != HANDSHAKE:
            client = self._stand_in(run)
        flight = Flight(client, call.call_id, _Quiet(run, client))
        # Its end must not be the script's: what a client takes back is the script, not one of its calls.
        flight.task = None
        client.flights[call.call_id] = flight

        def leave() -> None:
            client.flights.pop(call.call_id, None)
            if not client.flights and self._stand_ins.get(run.id) is client:
                del self._stand_ins[run.id]
                self._hub.in_passing.discard(client)
                self._hub.fleet.let_go(client.id)

        return flight, leave

    def _stand_in(self, run: Run) -> Client:
        """The same for all calls of a run that are under way: what is theirs ends with the last of them."""
        client = self._stand_ins.get(run.id)
        if client is None:
            client = self._stand_ins[run.id] = Client(
                era=HANDSHAKE,
                agent=run.row.agent,
                label="script",
                owner=run.row.owner,
                visit=Visit(run.row.session),
                send=_nobody,
            )
            client.id = f"run:{run.id}"
            # Counted among those a server can be asking, so that it asks nobody else in its place.
            self._hub.in_passing.add(client)
        return client

    async def _sent(self, run: Run, flight: Flight, offered: Offered, call: ToolCall, entry: str) -> Answered:
        hub = self._hub
        # As it is now: what becomes of the server meanwhile makes nothing it says trustworthy.
        spec = hub.fleet.specs.get(offered.server)
        trusted = spec is not None and spec.trusted
        seconds = hub.calls.call_seconds()
        params: Message = {"arguments": call.arguments}
        came = await hub.calls.errands.send(hub.relay, offered, flight, params, entry, seconds)
        return await self._told(run, entry, offered, "" if trusted else offered.server, came)

    async def _told(self, run: Run, entry: str, offered: Offered, tainted: str, came: Came) -> Answered:
        """What came of the call, as its script gets it."""
        if came.kind == "lost":
            raise LostError(came.text)
        if came.kind == "input":
            self._hub.calls.outcomes.add(entry, "failure", evidence="tool error")
            text = f"`{offered.name}` wants to ask something, and nobody can be asked in a script."
            return Answered(error=text)
        if came.kind in ("unsent", "silent"):
            return Answered(error=came.text)
        await self._taint(run, tainted)
        if came.error is not None:
            return Answered(error=_said(came.error), tainted_by=tainted)
        if not came.readable:
            return Answered(error="The tool's result cannot be read.", tainted_by=tainted)
        # A script's values and its journal are Unicode.
        result = replace_surrogates(came.result)
        if came.failed:
            text = _text(result) or "The tool failed."
            return Answered(value=result, error=text, tainted_by=tainted)
        # A tool that says what it returns returns that; the others' results are whole, as they came.
        structured = result.get("structuredContent")
        if isinstance(offered.definition.get("outputSchema"), dict) and isinstance(structured, dict):
            return Answered(value=structured, tainted_by=tainted)
        return Answered(value=result, tainted_by=tainted)

    async def _taint(self, run: Run, server: str) -> None:
        if not server:
            return
        # INVARIANT: a script that read an untrusted result is not trusted with outward calls unasked, nor is
        # the session that reads what the script returns.
        run.set(tainted_by=server)
        if run.client is not None:
            await self._hub.visits.taint(run.client.visit, server)


class _Quiet:
    """A nested call's way to its client: questions pass, its progress is not the script's."""

    def __init__(self, run: Run, client: Client) -> None:
        self._run, self._client = run, client

    def send(self, message: Message) -> None:
        if message.get("method") != "notifications/progress":
            (self._run.exchange or self._client).send(message)


def _nobody(_message: Message) -> None:
    """There is no client at the other end."""


def _said(error: RpcError) -> str:
    return str(error.message)[:_LONGEST_ERROR] or "The tool failed."


def _text(result: Any) -> str:
    content = result.get("content") if isinstance(result, dict) else None
    rows = content if isinstance(content, list) else []
    texts = [each.get("text") for each in rows if isinstance(each, dict)]
    return "\n".join(each for each in texts if isinstance(each, str))[:_LONGEST_ERROR]
