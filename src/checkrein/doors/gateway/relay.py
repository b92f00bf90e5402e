"""Passes a request on to a server in whichever era it speaks, and brings back what its client must be asked.

Handshake servers send requests of their own while they work; stateless ones answer that input is required.
Clients are the same two kinds, so there are four ways, all of them here.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from checkrein.doors.gateway import prompts
from checkrein.doors.gateway.clients import Client, Exchange, Flight
from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.keeper import Unreachable
from checkrein.doors.gateway.limits import Limits
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    CONNECTION_KEYS,
    HANDSHAKE,
    INFO_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEVEL_KEY,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    STATELESS,
    STATELESS_VERSIONS,
    VERSION_KEY,
    Message,
    RpcError,
    meta_of,
    notification,
)
from checkrein.doors.gateway.sealing import LONGEST, Seal, State
from checkrein.doors.gateway.upstream import Upstream

CAPABILITY_OF = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
INPUT_REQUIRED = "input_required"
# A server's own state, which has to fit into ours.
_LONGEST_CARRIED = LONGEST // 2
# How often a server may come back with one more question about the same request.
MOST_ROUNDS = 10
# Requests of stateless clients to handshake servers: of all, of one; how long one waits for its client.
MOST_PARKED, MOST_OF_ONE, PARKED_SECONDS = 1_024, 256, 600.0


class Errand(msgspec.Struct):
    """A request on its way to a server: for whom, what, and how long it may take."""

    client: Client
    flight: Flight
    upstream: Upstream
    method: str
    params: Message
    seconds: float
    # What a state for this request is bound to.
    digest: str
    entry: str = ""
    # Of a tool call: what a person wrote in the place of its arguments.
    edited: Message | None = None
    # Of a tool call: the tool's definition as it was accepted.
    definition: str = ""


class Run:
    """A request to a handshake server for a stateless client: it goes on while the client is asked."""

    def __init__(self, errand: Errand) -> None:
        self.id = secrets.token_hex(12)
        self.errand = errand
        self.exchange: Exchange = errand.flight.exchange
        self.task: asyncio.Task[Any] | None = None
        self.wanted: dict[str, tuple[Message, asyncio.Future[Any]]] = {}
        self.news = asyncio.Event()
        self.limit: asyncio.Timeout | None = None
        # Whether the client was sent away to answer something, and when nobody waits for it any more.
        self.away = False
        self.giving_up: asyncio.TimerHandle | None = None

    async def want(self, method: str, params: Message) -> Any:
        """Have the client asked with its next answer; what it says when it comes back."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        key = f"input-{secrets.token_hex(6)}"
        self.wanted[key] = ({"method": method, "params": params}, answer)
        self.news.set()
        try:
            return await answer
        finally:
            self.wanted.pop(key, None)


class Sending(msgspec.Struct):
    """A request on its way to its server, and what will come of it."""

    errand: Errand
    answer: Awaitable[Any]
    # Where the request can outlive its client's.
    run: Run | None = None


class Relay:
    """Carries requests between clients and servers of either era."""

    def __init__(self, seal: Callable[[], Seal], clock: Callable[[], float]) -> None:
        self._seal, self._clock = seal, clock
        self.runs: dict[str, Run] = {}
        self._limits = Limits()

    def begin(self, errand: Errand) -> Sending:
        """A request on its way. Its caller awaits `answer` once and hands the result to `deliver`."""
        if errand.client.era == STATELESS and errand.upstream.era == HANDSHAKE:
            return self._parkable(errand)
        if errand.client.era == STATELESS:
            return Sending(errand, self._pass(errand))
        # Only a stateless server may want to know something before it answers.
        asks = errand.upstream.era == STATELESS
        return Sending(errand, self._converse(errand) if asks else self._send(errand, errand.params))

    async def deliver(self, sending: Sending, handled: Coroutine[Any, Any, Any]) -> Any:
        """The result for the client, however many answers it takes. `handled`: what `answer` came to."""
        run, errand = sending.run, sending.errand
        if run is None:
            return await handled
        # INVARIANT: a request that waits for its client still ends, and is recorded, in one place.
        run.task = asyncio.create_task(handled)
        run.task.add_done_callback(lambda task: self._over(run, task))
        return await self._heard_of(run, errand.client, errand.flight)

    # -- one request, one answer -----------------------------------------------------------------------

    async def _pass(self, errand: Errand) -> Any:
        result = await self._send(errand, errand.params)
        return self._handed_over(errand, result)

    async def _converse(self, errand: Errand) -> Any:
        """A handshake client answers what a stateless server wants to know before it goes on."""
        params, rounds = errand.params, 0
        while wants_input(errand.upstream, result := await self._send(errand, params)):
            result = replace_surrogates(result)
            rounds += 1
            if rounds > MOST_ROUNDS:
                raise RpcError(
                    INTERNAL_ERROR, f"The server asked {MOST_ROUNDS} times and still does not answer."
                )
            params = {
                **errand.params,
                "inputResponses": await self._collect(errand, result),
                "requestState": result.get("requestState"),
            }
            if params["requestState"] is None:
                del params["requestState"]
        return result

    async def _collect(self, errand: Errand, result: Message) -> Message:
        wanted = _input_requests(result)
        if not wanted:
            await asyncio.sleep(0.05)
            return {}
        answers: Message = {}
        for key, each in wanted.items():
            answers[key] = await pass_back(
                errand.client, errand.flight, errand.upstream.name, each["method"], each.get("params") or {}
            )
        return answers

    async def _send(self, errand: Errand, params: Message) -> Any:
        client, flight = errand.client, errand.flight
        token = meta_of(params).get("progressToken")

        def progress(said: Message) -> None:
            flight.exchange.send(notification("notifications/progress", {**said, "progressToken": token}))

        flight.upstream = errand.upstream
        flight.limit = limit = self._limits.begin(errand.seconds)
        try:
            return await errand.upstream.request(
                errand.method,
                forwarded(params),
                seconds=None,
                progress=progress if token is not None else None,
                stateless=envelope(client) if errand.upstream.era == STATELESS else None,
                limit=limit,
            )
        finally:
            limit.end()
            flight.limit = None

    def _handed_over(self, errand: Errand, result: Any) -> Any:
        """A stateless server's question, for a stateless client: its state travels inside ours."""
        if not wants_input(errand.upstream, result):
            return result
        result = replace_surrogates(result)
        for each in _input_requests(result).values():
            check_capability(errand.client, each["method"], each.get("params") or {})
        requests = {
            key: {**each, "params": prompts.foreign(errand.upstream.name, each["method"], each["params"])}
            if isinstance(each.get("params"), dict)
            else each
            for key, each in _input_requests(result).items()
        }
        carried = result.get("requestState", "")
        if not isinstance(carried, str) or len(carried) > _LONGEST_CARRIED:
            raise RpcError(INTERNAL_ERROR, "The server asked for input with a state nobody can carry.")
        made = {**result, "requestState": self.state(errand, "server", carried)}
        return {**made, "inputRequests": requests} if requests else made

    def state(self, errand: Errand, kind: str, carried: str) -> str:
        return self._seal().close(
            owner=errand.client.owner,
            digest=errand.digest,
            kind=kind,
            now=self._clock(),
            entry=errand.entry,
            session=errand.client.visit.session,
            definition=errand.definition,
            carried=carried,
            arguments=errand.edited,
        )

    # -- a request that outlives its client's ----------------------------------------------------------

    def _parkable(self, errand: Errand) -> Sending:
        owner = errand.client.owner
        theirs = sum(each.errand.client.owner == owner for each in self.runs.values())
        if len(self.runs) >= MOST_PARKED or theirs >= MOST_OF_ONE:
            return Sending(errand, _turned_away())
        run = Run(errand)
        self.runs[run.id] = run
        return Sending(errand, self._worked_off(run), run)

    async def _worked_off(self, run: Run) -> Any:
        errand = run.errand
        token = meta_of(errand.params).get("progressToken")

        def progress(said: Message) -> None:
            run.exchange.send(notification("notifications/progress", {**said, "progressToken": token}))

        async with asyncio.timeout(errand.seconds) as limit:
            run.limit = limit
            try:
                result = await errand.upstream.request(
                    errand.method,
                    forwarded(errand.params),
                    seconds=None,
                    progress=progress if token is not None else None,
                )
            finally:
                run.limit = None
        # What kind of result it is, is ours to say: its era knows no kinds.
        return without_kind(result)

    def _over(self, run: Run, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            # Looked at even if nobody comes back for it.
            task.exception()
        # What the server still wanted to know nobody needs to answer any more.
        for _, answer in list(run.wanted.values()):
            answer.cancel()
        run.news.set()

    def _forget(self, run: Run) -> None:
        self.runs.pop(run.id, None)
        if run.giving_up is not None:
            run.giving_up.cancel()
        if run.task is not None:
            run.task.cancel()

    def forget(self, owner: str) -> None:
        """Whoever is responsible for these requests is gone: nobody comes back for them."""
        for run in [each for each in self.runs.values() if each.errand.client.owner == owner]:
            self._forget(run)

    async def close(self) -> None:
        tasks = [run.task for run in self.runs.values() if run.task is not None]
        for run in list(self.runs.values()):
            self._forget(run)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _heard_of(self, run: Run, client: Client, flight: Flight) -> Any:
        """What the client is told now: the result, or what it must answer first."""
        task = run.task
        assert task is not None  # noqa: S101 - made with its task
        flight.upstream, run.exchange, run.away = run.errand.upstream, flight.exchange, False
        try:
            await run.news.wait()
        except asyncio.CancelledError:
            # The client closed its request: nobody will come back for this one.
            self._forget(run)
            raise
        run.news.clear()
        if task.done():
            self._forget(run)
            if task.cancelled():
                raise RpcError(INTERNAL_ERROR, "This request was given up.")
            return task.result()
        run.giving_up = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._forget, run)
        run.exchange, run.away = _NOBODY, True
        if run.limit is not None and not run.limit.expired():
            run.limit.reschedule(None)
        requests = {key: asked for key, (asked, _answer) in run.wanted.items()}
        errand = msgspec.structs.replace(run.errand, client=client)
        state = self.state(errand, "run", run.id)
        return {"resultType": INPUT_REQUIRED, "inputRequests": requests, "requestState": state}

    async def go_on(self, client: Client, flight: Flight, state: State, responses: Message) -> Any:
        """The client came back to a parked request with its answers; its result may be there already."""
        run = self.runs.get(state.carried)
        if run is None or run.errand.client.owner != client.owner or not run.away:
            text = "This request is not waiting any more. Whether it took effect is unknown."
            raise RpcError(INVALID_PARAMS, text)
        if run.giving_up is not None:
            run.giving_up.cancel()
        for key in [key for key in run.wanted if key in responses]:
            _, answer = run.wanted.pop(key)
            if not answer.done():
                answer.set_result(responses[key])
        if run.wanted:
            # What is still not answered is asked again.
            run.news.set()
        if run.limit is not None and not run.limit.expired():
            run.limit.reschedule(asyncio.get_running_loop().time() + run.errand.seconds)
        return await self._heard_of(run, client, flight)

    def drop(self, state: State) -> None:
        """A parked request that must not go on."""
        run = self.runs.get(state.carried)
        if run is not None and run.away:
            self._forget(run)


async def _turned_away() -> Any:
    raise Unreachable("Too many requests are under way.", remedy="Try again later.")


class _Nobody:
    """Where notices go while no request of the client's is open."""

    def send(self, message: Message) -> None:
        """Nobody hears it."""


_NOBODY = _Nobody()


def envelope(client: Client) -> Message:
    """What a stateless server is told about the client behind us."""
    made: Message = {VERSION_KEY: STATELESS_VERSIONS[-1], CAPABILITIES_KEY: _askable(client.capabilities)}
    if client.info:
        made[INFO_KEY] = client.info
    if client.level:
        made[LEVEL_KEY] = client.level
    return made


def _askable(capabilities: Message) -> Message:
    return {name: capabilities[name] for name in CAPABILITY_OF.values() if name in capabilities}


def onward(params: Message, upstream: Upstream) -> Message:
    """Params without what a client carries for us; answers it gives unasked only a stateless server reads."""
    dropped = ("requestState",) if upstream.era == STATELESS else ("requestState", "inputResponses")
    return {key: value for key, value in params.items() if key not in dropped}


def forwarded(params: Message) -> Message:
    """Params for the next connection: without what belongs to this one."""
    meta = meta_of(params)
    if not meta:
        return params
    kept = {
        key: value for key, value in meta.items() if key not in CONNECTION_KEYS and key != "progressToken"
    }
    rest = {key: value for key, value in params.items() if key != "_meta"}
    return {**rest, "_meta": kept} if kept else rest


async def pass_back(client: Client, flight: Flight | None, server: str, method: str, params: Message) -> Any:
    """A server's request to the client it belongs to; the call's own time stands still meanwhile."""
    check_capability(client, method, params)
    asked = prompts.foreign(server, method, params)
    if flight is None:
        return await client.ask(method, asked)
    with flight.waiting():
        return await client.ask(method, asked, flight)


def check_capability(client: Client, method: str, params: Message) -> None:
    capability = CAPABILITY_OF.get(method)
    if capability is None:
        raise RpcError(METHOD_NOT_FOUND, f"A client is not asked {method[:80]!r}.")
    kind = params.get("mode", "form") if capability == "elicitation" else ""
    if not client.can(capability, kind if isinstance(kind, str) else "form"):
        wanted: Message = {"requiredCapabilities": {capability: {}}}
        raise RpcError(
            MISSING_CAPABILITY, f"The client did not declare that it can be asked for {capability}.", wanted
        )


def wants_input(upstream: Upstream, result: Any) -> bool:
    """Whether the server wants its client asked first; in the handshake era no result says so."""
    # INVARIANT: a server's word counts as its question only where its era has such an answer.
    return (
        upstream.era == STATELESS and isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
    )


def without_kind(result: Any) -> Any:
    """A result of or for the handshake era, which knows no kinds of results."""
    if not isinstance(result, dict) or "resultType" not in result:
        return result
    return {key: value for key, value in result.items() if key not in ("resultType", "ttlMs", "cacheScope")}


def _input_requests(result: Message) -> dict[str, Message]:
    found = result.get("inputRequests")
    if not isinstance(found, dict):
        return {}
    if not all(isinstance(each, dict) and isinstance(each.get("method"), str) for each in found.values()):
        raise RpcError(INTERNAL_ERROR, "The server asked for input in a way nobody understands.")
    return found
