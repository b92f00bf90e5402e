"""Takes a call that may run to its server, and puts what became of it on the record.

Calls of clients, scripts and guests all go this way; what the caller is told is theirs to word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Literal, Protocol

import msgspec

from checkrein.call import digest
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.inventory import Inventory
from checkrein.doors.gateway.messages import STATELESS, Message, RpcError, encode
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.relay import Errand, Relay, wants_input
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError
from checkrein.settings.servers import ServerSpec

# How much of a result the ledger looks at; it keeps less, after masking.
_EXCERPT = 65_536
UNKNOWN = "Whether the call took effect is unknown; look before trying it again."


class Servers(Protocol):
    """Where calls go: the servers behind the gateway."""

    def spec(self, server: str) -> ServerSpec: ...

    async def reach(self, server: str, client: Client) -> Upstream: ...

    def at_hand(self, server: str, client: Client) -> Upstream | None: ...

    def no_tool(self, name: str) -> str: ...


class Came(msgspec.Struct, frozen=True):
    """What came of a call: an answer (`result`, `error`, `input`), or in `text` why there is none.

    `unsent`: nothing ran. `silent` and `lost`: nobody knows whether it took effect.
    """

    kind: Literal["result", "error", "input", "unsent", "silent", "lost"]
    result: Any = None
    error: RpcError | None = None
    text: str = ""
    failed: bool = False
    readable: bool = True


class Errands:
    """The way of an allowed call to its server and back."""

    def __init__(self, servers: Servers, inventory: Inventory, outcomes: Outcomes) -> None:
        self._servers, self._inventory, self._outcomes = servers, inventory, outcomes

    async def reach(self, offered: Offered, client: Client, entry: str) -> Upstream | Came:
        """A connection where the tool is the accepted one; else why nothing ran."""
        server = offered.server
        ready = self._servers.at_hand(server, client)
        if ready is not None and self._inventory.agrees(ready, offered.tool, offered.hash):
            return ready
        try:
            upstream = await self._servers.reach(server, client)
            differs = await self._inventory.differs(upstream, offered.tool, offered.hash)
            # What was taken out of the servers file meanwhile is sent nothing any more.
            self._servers.spec(server)
        except CheckreinError as error:
            self._outcomes.add(entry, "cancelled", evidence="unreachable", output=str(error))
            text = f"The server `{server}` cannot be reached, so nothing ran. {error}"
            return Came("unsent", text=text)
        except asyncio.CancelledError:
            self._outcomes.add(entry, "cancelled", evidence="client")
            raise
        if differs:
            self._outcomes.add(entry, "cancelled", evidence="definition", output=differs)
            return Came("unsent", text=f"`{offered.name}` was not called, so nothing ran. {differs}")
        return upstream

    async def send(
        self, relay: Relay, offered: Offered, flight: Flight, params: Message, entry: str, seconds: float
    ) -> Came:
        """Have a call of one of ours carried out, for whoever waits on this flight; what came of it.

        `seconds`: how long it may take where its server has no limit of its own.
        """
        client = flight.client
        upstream = await self.reach(offered, client, entry)
        if isinstance(upstream, Came):
            return upstream
        limit = self._servers.spec(offered.server).timeout or seconds
        # INVARIANT: what is executed is what was judged.
        params = {**params, "name": offered.tool}
        # Only what a stateless client carries is bound to its request.
        state = ["tools/call", offered.name, offered.hash, params["arguments"]]
        bound = digest(state) if client.era == STATELESS else ""
        errand = Errand(client, flight, upstream, "tools/call", params, limit, bound, entry)
        sending = relay.begin(errand)
        came: Came = await relay.deliver(sending, self.watch(offered, errand, sending.answer))
        return came

    async def watch(self, offered: Offered, errand: Errand, work: Awaitable[Any]) -> Came:
        """What came of the call, on the record."""
        entry, server, finish = errand.entry, offered.server, self._outcomes.add
        try:
            result = await work
        except RpcError as error:
            finish(entry, "failure", output=error.body, evidence="tool error")
            return Came("error", error=error)
        except TimeoutError:
            finish(entry, "timeout", evidence="no answer")
            text = f"`{server}` did not answer within {errand.seconds:g} seconds. {UNKNOWN}"
            return Came("silent", text=text)
        except Gone as gone:
            # INVARIANT: a call whose fate is unknown is recorded as unknown, and never sent again by us.
            finish(entry, "unknown", output=str(gone), evidence="connection lost")
            return Came("lost", text=f"The connection to `{server}` was lost while it worked ({gone}).")
        except CheckreinError as error:
            finish(entry, "cancelled", output=str(error), evidence="not sent")
            return Came("unsent", text=f"`{offered.name}` was not called, so nothing ran. {error}")
        except asyncio.CancelledError:
            finish(entry, "cancelled", evidence="client")
            raise
        except Exception as error:
            finish(entry, "unknown", output=repr(error), evidence="our error")
            raise
        if wants_input(errand.upstream, result):
            return Came("input", result)
        return self._answered(entry, result)

    def _answered(self, entry: str, result: Any) -> Came:
        failed = not isinstance(result, dict) or result.get("isError") is True
        readable = True
        try:
            excerpt = encode(result)[:_EXCERPT].decode("utf-8", "replace")
        except (RecursionError, ValueError) as error:
            excerpt, readable = f"It cannot be written down: {error}", False
        word, why = ("failure", "tool error") if failed else ("success", "")
        self._outcomes.add(entry, word, output=excerpt, evidence=why)
        return Came("result", result, failed=failed, readable=readable)
