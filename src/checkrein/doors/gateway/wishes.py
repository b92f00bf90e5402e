"""What servers ask of clients while they work: input, a model's answer, roots.

The hub's news hand over servers' requests. Each reaches the one client it can be about, or nobody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.messages import (
    HANDSHAKE,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Message,
    RpcError,
    failure,
    response,
)
from checkrein.doors.gateway.prompts import foreign
from checkrein.doors.gateway.relay import CAPABILITY_OF, Run, check_capability, pass_back
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

# Questions of one connection that may be open at once; a server that asks more is refused.
MOST_OPEN = 64


class Wishes:
    """Servers' requests on their way to clients, and the answers on their way back."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._open: dict[Upstream, dict[str | int, asyncio.Task[None]]] = {}

    def asked(self, upstream: Upstream, message: Message) -> None:
        number = message["id"]
        mine = self._open.setdefault(upstream, {})
        if number in mine or len(mine) >= MOST_OPEN:
            text = "A request with this id is open, or too many are."
            upstream.respond(failure(number, RpcError(INTERNAL_ERROR, text)))
            return
        mine[number] = asyncio.get_running_loop().create_task(self._answer(upstream, message))
        mine[number].add_done_callback(lambda _task: self._over(upstream, number))

    def _over(self, upstream: Upstream, number: str | int) -> None:
        mine = self._open.get(upstream, {})
        mine.pop(number, None)
        if not mine:
            self._open.pop(upstream, None)

    def taken_back(self, upstream: Upstream, number: Any) -> None:
        """The server does not want to know any more."""
        if isinstance(number, str | int) and (task := self._open.get(upstream, {}).get(number)) is not None:
            task.cancel()

    def ended(self, upstream: Upstream) -> None:
        """Nobody hears the answers: who is still asked need not answer."""
        for task in list(self._open.get(upstream, {}).values()):
            task.cancel()

    async def close(self) -> None:
        tasks = [task for mine in self._open.values() for task in mine.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def holder(self, upstream: Upstream) -> Client | None:
        """The client a server's word can be about; nobody where it could be another's."""
        return self._hub.clients.get(self.held_by(upstream))

    def held_by(self, upstream: Upstream) -> str:
        """Whose a connection is: its own client's, the only one's that used it, or whose request it works on.

        Servers ask while they work on a request. One that others gave up may still be worked on: after
        that nobody can tell.
        """
        if upstream.private_to or len(upstream.users) == 1:
            return upstream.private_to or next(iter(upstream.users))
        runs = [each.errand for each in self._hub.relay.runs.values()]
        working = {each.client.id for each in runs if each.upstream is upstream} | {
            client.id
            for client in (*self._hub.clients.values(), *self._hub.in_passing)
            if any(flight.upstream is upstream for flight in client.flights.values())
        }
        return next(iter(working)) if len(working) == 1 and not upstream.abandoned else ""

    async def _answer(self, upstream: Upstream, message: Message) -> None:
        number = message["id"]
        try:
            result = await self._passed_back(upstream, message["method"], message.get("params") or {})
            upstream.respond(response(number, result))
        except RpcError as error:
            upstream.respond(failure(number, error))
        except CheckreinError as error:
            upstream.respond(failure(number, RpcError(INTERNAL_ERROR, error.message)))
        except asyncio.CancelledError:
            # Its client left, or the server did.
            upstream.respond(failure(number, RpcError(INTERNAL_ERROR, "The client is gone.")))

    async def _passed_back(self, upstream: Upstream, method: str, params: Message) -> Any:
        capability = CAPABILITY_OF.get(method)
        if capability is None:
            raise RpcError(METHOD_NOT_FOUND, f"Clients are not asked {method[:80]!r} through Checkrein.")
        # Whom it asks is as things are now, before anything is learned from it.
        run, client = self._run_of(upstream), self.holder(upstream)
        self._hub.fleet.keeper(upstream.name).needs(capability)
        if run is not None:
            check_capability(run.errand.client, method, params)
            return await run.want(method, foreign(upstream.name, method, params))
        if client is not None and client.era == HANDSHAKE:
            return await pass_back(client, _latest(client, upstream), upstream.name, method, params)
        if capability == "roots":
            return {"roots": []}
        # INVARIANT: a question that could be another client's reaches nobody.
        text = "Several clients share this server, so nobody can tell whom it asks. Try the call again."
        raise RpcError(INTERNAL_ERROR, text)

    def _run_of(self, upstream: Upstream) -> Run | None:
        """The one request of a stateless client that the server can be asking about."""
        runs = [each for each in self._hub.relay.runs.values() if each.errand.upstream is upstream]
        held = self.held_by(upstream)
        return runs[0] if len(runs) == 1 and held == runs[0].errand.client.id else None


def _latest(client: Client, upstream: Upstream) -> Flight | None:
    return next((each for each in reversed(client.flights.values()) if each.upstream is upstream), None)
