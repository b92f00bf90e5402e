"""A client's wait for a script: it is shown the script's questions, hears that time passes, and gets an end.

An end is the result, or word that the script still runs or waits; then it may come back.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from checkrein.call import digest
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, Message, meta_of, notification
from checkrein.doors.gateway.relay import INPUT_REQUIRED
from checkrein.doors.gateway.scripts import results, wording
from checkrein.doors.gateway.scripts.run import Run
from checkrein.doors.gateway.sealing import State
from checkrein.execute.sandbox import DamagedError
from checkrein.store.runs import ENDED, get_run

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub
    from checkrein.doors.gateway.scripts.desk import Desk

_SIGN_OF_LIFE, _LOOK_SECONDS = 5.0, 0.2


class Waiting:
    """Clients that wait for runs."""

    def __init__(self, hub: Hub, desk: Desk) -> None:
        self._hub, self._desk = hub, desk

    async def wait(self, run_id: str, client: Client, flight: Flight, params: Message) -> Message:
        run = self._desk.live.get(run_id)
        if run is not None:
            run.client, run.exchange = client, flight.exchange
        try:
            return await self._waited(run_id, client, flight, params)
        except asyncio.CancelledError:
            self._taken_back(run, client, flight)
            raise
        finally:
            if run is not None and run.exchange is flight.exchange:
                run.exchange = None

    async def _waited(self, run_id: str, client: Client, flight: Flight, params: Message) -> Message:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._desk.settings().evaluation.wait_seconds
        token, rounds, form = meta_of(params).get("progressToken"), 0, _Form(self._desk, client, flight)
        try:
            while (result := await self._result(run_id, client)) is None:
                run = self._desk.live.get(run_id)
                if (asked := await self._input_required(run, client, params)) is not None:
                    return asked
                await form.show(run)
                left = until - loop.time()
                if left <= 0:
                    return results.paused(run_id, _open(run))
                most = _SIGN_OF_LIFE if run is not None else _LOOK_SECONDS
                if not await form.news(run, min(left, most)) and token is not None:
                    rounds += 1
                    said = {"progressToken": token, "progress": rounds, "message": _state(run)}
                    flight.exchange.send(notification("notifications/progress", said))
            return result
        finally:
            await form.close()

    async def _input_required(self, run: Run | None, client: Client, params: Message) -> Message | None:
        """A stateless client's person is asked by its answer: it comes back with theirs."""
        if client.era != STATELESS or run is None or not self._desk.asking.by_client(client):
            return None
        asked = sorted(run.questions.values(), key=lambda each: each.wanted.id)
        if not asked:
            return None
        state = self._hub.seal().close(
            owner=client.owner,
            digest=bound(params),
            kind="script",
            now=self._hub.pipeline.clock(),
            carried=" ".join((run.id, *(each.entry for each in asked))),
        )
        form = await self._desk.asking.form(run, asked, client, {})
        request = {"method": "elicitation/create", "params": form}
        return {"resultType": INPUT_REQUIRED, "inputRequests": {"approval": request}, "requestState": state}

    async def came_back(self, state: State, client: Client, flight: Flight, params: Message) -> Message:
        """A stateless client brings what its person said; nothing said is a question again."""
        run_id, *entries = state.carried.split(" ")
        found = params.get("inputResponses")
        responses = found if isinstance(found, dict) else {}
        if "approval" in responses and self._desk.asking.by_client(client):
            await self._desk.asking.heard(entries, responses["approval"])
        return await self.wait(run_id, client, flight, params)

    async def _result(self, run_id: str, client: Client) -> Message | None:
        run = self._desk.live.get(run_id)
        if run is not None:
            return None
        row = get_run(self._hub.pipeline.store, run_id)
        if row is None:
            return results.wrong("There is no such run.")
        if row.state not in ENDED:
            return None
        # INVARIANT: whoever reads what a script made of untrusted words has read them too.
        if row.tainted_by:
            await self._hub.visits.taint(client.visit, row.tainted_by)
        try:
            return results.shown(self._desk.journal.result(row))
        except DamagedError as error:
            return results.wrong(str(error))

    def begun_in_vain(self, task: asyncio.Task[Run], client: Client, flight: Flight) -> None:
        """Its client was gone before it had begun."""
        if not task.cancelled() and task.exception() is None:
            self._taken_back(task.result(), client, flight)

    def _taken_back(self, run: Run | None, client: Client, flight: Flight) -> None:
        """A request that is taken back ends its script; a client that is gone leaves what waits to wait."""
        if run is None or run.over or not flight.cancelled:
            return
        left = client.era != STATELESS and client.id not in self._hub.clients
        if not left and not (client.era == STATELESS and run.questions):
            self._desk.cancel_soon(run, "the client took it back")


class _Form:
    """The client's own question about whatever a run waits for, while its client waits."""

    def __init__(self, desk: Desk, client: Client, flight: Flight) -> None:
        self._desk, self._client, self._flight = desk, client, flight
        self._task: asyncio.Task[None] | None = None
        self._about: frozenset[str] = frozenset()

    async def show(self, run: Run | None) -> None:
        """Ask about what is new; take away what is answered."""
        asked = frozenset(each.entry for each in run.questions.values()) if run is not None else frozenset()
        if self._task is not None and not self._about & asked:
            await self.close()
        able = self._client.era == HANDSHAKE and self._desk.asking.by_client(self._client)
        if run is None or not asked - self._about or not able:
            return
        await self.close()
        self._about = asked
        work = self._desk.asking.elicit(run, self._client, self._flight)
        self._task = asyncio.get_running_loop().create_task(work)

    async def news(self, run: Run | None, seconds: float) -> bool:
        """Wait for something to happen; whether it did."""
        if run is None:
            await asyncio.sleep(seconds)
            return True
        changed = run.changed
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(changed.wait())]
        if self._task is not None and not self._task.done():
            waiting.append(self._task)
        try:
            done, _ = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting[0].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting[0]
        return bool(done)

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def bound(params: Message) -> str:
    """What a state of this request is bound to."""
    return digest(["scripts", params.get("name"), params.get("arguments") or {}])


def _open(run: Run | None) -> list[dict[str, object]]:
    return wording.waiting(sorted(run.questions.values(), key=lambda each: each.wanted.id)) if run else []


def _state(run: Run | None) -> str:
    return "Waiting for a person's answer." if run is not None and run.questions else "The script runs."
