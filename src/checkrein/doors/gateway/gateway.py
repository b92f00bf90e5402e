"""The gateway as the server has it: a thread with a loop of its own, and what other threads may ask of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import cached_property
from typing import Any, TypeVar

from checkrein.agents import Agents, own_user
from checkrein.core import approvals
from checkrein.doors.gateway import asking
from checkrein.doors.gateway.front_stdio import StdioFront, Who, identify
from checkrein.doors.gateway.guests import Guest, Guests
from checkrein.doors.gateway.http_port import HttpPort
from checkrein.doors.gateway.hub import Hub
from checkrein.doors.gateway.keeper import Unreachable
from checkrein.doors.gateway.leftovers import sweep
from checkrein.doors.gateway.passing import Passed, leads_to
from checkrein.doors.gateway.sealing import Seal
from checkrein.doors.gateway.sign_in_attempts import Attempt, Attempts, check_address
from checkrein.doors.gateway.signed_in import forget_sign_in
from checkrein.errors import CheckreinError, NotFoundError, StoreError
from checkrein.own_loop import OwnLoop
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.settings.servers import ServerSpec
from checkrein.settings.sources import state_dir

T = TypeVar("T")
_LOOK_SECONDS, _ANSWER_SECONDS = 1.0, 120.0
# How long the loop looks at definitions before it turns to whoever waits.
_AT_A_TIME = 0.01


class Gateway:
    """Started on first need; safe to call from any thread."""

    def __init__(self, pipeline: Pipeline, agents: Agents, say: Callable[[str], None]) -> None:
        self._pipeline, self._agents, self._say = pipeline, agents, say
        name, loop = "checkrein-gateway", _loop_factory()
        self._own = OwnLoop(name, "The gateway", self._serve, say, factory=loop, after=self._after)
        self._hub: Hub | None = None
        self._guests: Guests | None = None
        self._front: StdioFront | None = None
        self._http = HttpPort(pipeline, agents, say)
        self._attempts = Attempts(self._signed_in)

    @cached_property
    def _seal(self) -> Seal:
        return Seal(state_dir() / "gateway", self._pipeline.store)

    # -- the thread -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin; returns when clients can come in."""
        self._own.open()

    def _after(self) -> None:
        if self._guests is not None:
            self._guests.close()

    async def _serve(self, own: OwnLoop) -> None:
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        await asyncio.to_thread(sweep)
        await asyncio.to_thread(self._end_left_behind)
        hub = Hub(self._pipeline, seal=lambda: self._seal, user=own_user(), say=self._say)
        self._hub, self._front, self._guests = hub, StdioFront(hub, self._say), Guests(hub)
        hub.fleet.look()
        hub.scripts.wake()
        own.up()
        try:
            await self._until(own.ending, hub)
        finally:
            await self._close(hub)

    def _end_left_behind(self) -> None:
        """A store that cannot take it now is asked again by the next server."""
        with contextlib.suppress(CheckreinError):
            approvals.end_left_behind(self._pipeline, asking.DOOR, "server ended")

    async def _until(self, ending: asyncio.Event, hub: Hub) -> None:
        while not ending.is_set():
            try:
                await self._http.look(hub)
                hub.fleet.look()
                await self._attempts.keep_only(hub.fleet.specs)
                hub.look_at_rules()
                hub.scripts.look()
            except Exception as error:  # noqa: BLE001 - what fails now is looked at again in a moment
                self._say(f"in the gateway: {type(error).__name__}: {error}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await ending.wait()

    async def _close(self, hub: Hub) -> None:
        hub.subscriptions.end()
        await self._attempts.close()
        await self._http.close()
        if self._front is not None:
            self._front.close()
        await hub.close()

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._say(
            f"in the gateway: {context.get('message')}: {type(error).__name__ if error else ''} {error or ''}"
        )

    def close(self) -> None:
        """End every client's line and every server's process."""
        self._own.close()

    # -- from other threads -----------------------------------------------------------------------------

    def take(
        self,
        connection: socket.socket,
        peer: Peer,
        facts: dict[str, str],  # noqa: ARG002
        passed: Passed | None = None,
    ) -> None:
        """Serve the client at the other end of this socket, or of what it passed, from now on."""
        # INVARIANT: a question is not answered by a program that an agent runs.
        speaks = not self._agents.run_by_agent(peer, talks_to=lambda pid: leads_to(passed, pid))
        self._do(self._taken(connection, identify(peer), speaks, passed))

    async def _taken(
        self, connection: socket.socket, who: Who, speaks_for_person: bool, passed: Passed | None
    ) -> None:
        assert self._front is not None  # noqa: S101 - made before the first client
        await self._front.take(connection, who, speaks_for_person, passed)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._own.do(work, _ANSWER_SECONDS)

    def guest(self, door: str) -> Guest:
        """What another door of this process uses servers by; on whatever loop it runs."""
        guests = self._guests
        if guests is None:
            raise StoreError("The gateway is not running.", remedy="Run `checkrein doctor`.")
        return Guest(door, guests)

    @property
    def busy(self) -> int:
        """Requests under way."""
        return self._http.busy + (self._front.busy if self._front is not None else 0)

    def servers(self) -> list[dict[str, Any]]:
        """How every server does."""
        return self._do(self._servers())

    async def _servers(self) -> list[dict[str, Any]]:
        hub = self._known()
        hub.fleet.look()
        return [self._status(hub, name) for name in hub.fleet.names]

    def _status(self, hub: Hub, name: str) -> dict[str, Any]:
        spec = hub.fleet.spec(name)
        status = hub.fleet.keeper(name).status()
        more = {
            "enabled": spec.enabled,
            "trusted": spec.trusted,
            "share": spec.share,
            "fault": hub.fleet.fault,
        }
        return {**status, **more, **hub.catalogue.counts(name)}

    def start(self, name: str) -> dict[str, Any]:
        return self._do(self._change(name, "start"))

    def stop(self, name: str) -> dict[str, Any]:
        return self._do(self._change(name, "stop"))

    def restart(self, name: str) -> dict[str, Any]:
        return self._do(self._change(name, "restart"))

    async def _change(self, name: str, what: str) -> dict[str, Any]:
        hub = self._known()
        hub.fleet.look()
        keeper = hub.fleet.keeper(name)
        if what in ("stop", "restart"):
            await keeper.stop()
            hub.news.withdrawn(name)
        if what in ("start", "restart"):
            await keeper.start()
            await hub.news.listed()
        return self._status(hub, name)

    def sign_in(self, name: str, actor: str = "") -> dict[str, Any]:
        """Have a person sign in at a server: the address to go to, once it is known; then it goes on."""
        return self._do(self._sign_in(name, actor))

    async def _sign_in(self, name: str, actor: str) -> dict[str, Any]:
        hub = self._known()
        hub.fleet.look()
        seconds = self._pipeline.policies.of("", "gateway").settings.gateway.start_seconds
        return await self._attempts.begin(hub.fleet.spec(name), actor, min(seconds, _ANSWER_SECONDS / 2))

    async def _signed_in(self, attempt: Attempt) -> None:
        """A person came back: the server is started with what they brought, unless they have stopped it."""
        hub, name = self._known(), attempt.spec.name
        hub.fleet.look()
        if hub.fleet.specs.get(name) is None or hub.fleet.spec(name).url != attempt.spec.url:
            forget_sign_in(name)
            raise NotFoundError(f"{name} was removed or changed meanwhile.")
        data = {"change": "signed_in", "server": name, "actor": attempt.actor}
        await asyncio.to_thread(self._pipeline.note, "servers_changed", data)
        if hub.fleet.spec(name).enabled:
            await self._change(name, "restart")

    def sign_in_state(self, name: str) -> dict[str, Any]:
        """How the last attempt to sign in does: waiting, done, or failed and why."""

        async def read() -> dict[str, Any]:
            hub = self._known()
            hub.fleet.look()
            return self._attempts.state(hub.fleet.spec(name))

        return self._do(read())

    def sign_out(self, name: str) -> dict[str, Any]:
        """Forget what a sign-in left; the server goes on without it, if it lets us. Whether there was one."""
        return self._do(self._sign_out(name))

    async def _sign_out(self, name: str) -> dict[str, Any]:
        hub = self._known()
        hub.fleet.look()
        spec = hub.fleet.spec(name)
        check_address(spec)
        await self._attempts.forget(name)
        # Stopped first: a connection that renews its token would bring the file back.
        await self._change(name, "stop")
        forgot = forget_sign_in(name)
        if spec.enabled:
            # That it asks for a sign-in now is no surprise, and its status says so.
            with contextlib.suppress(Unreachable):
                await self._change(name, "start")
        return {**self._status(hub, name), "forgot": forgot}

    def logs(self, name: str, count: int = 50) -> list[str]:
        async def read() -> list[str]:
            return self._known().fleet.keeper(name).logs(count)

        return self._do(read())

    def test(self, spec: ServerSpec) -> dict[str, Any]:
        """Start a server once, beside the others, and see what it offers; nothing of it stays."""
        return self._do(self._tested(spec))

    async def _tested(self, spec: ServerSpec) -> dict[str, Any]:
        from checkrein.doors.gateway.trial import trial

        limits = self._pipeline.policies.of("", "gateway").settings.gateway
        return await trial(spec, limits)

    def browse(self, name: str | None = None) -> list[dict[str, Any]]:
        """Every tool that is offered: its schema, its risk, what policy says about it today."""
        return self._do(self._browsed(name))

    async def _browsed(self, name: str | None) -> list[dict[str, Any]]:
        hub = self._known()
        hub.fleet.look()
        if name is not None:
            hub.fleet.spec(name)
        await hub.fleet.settled(_ANSWER_SECONDS / 4, name)
        await hub.news.listed()
        rows = await _looked_through(hub.catalogue.reviewing(name))
        return [self._browsed_row(hub, row) for row in rows if row["kind"] == "tool"]

    def _browsed_row(self, hub: Hub, row: dict[str, Any]) -> dict[str, Any]:
        name = f"{row['server']}__{row['name']}"
        offered = hub.catalogue.tool(name)
        return {
            **row,
            "tool": row["name"],
            "name": name,
            "hidden": "" if offered is not None else hub.catalogue.hidden(name) or "It is not offered.",
            "definition": offered.definition if offered is not None else None,
            "annotations": offered.annotations if offered is not None else {},
        }

    def review(self, name: str | None = None) -> list[dict[str, Any]]:
        """Definitions that wait for a person, with what changed."""

        async def read() -> list[dict[str, Any]]:
            hub = self._known()
            hub.fleet.look()
            await hub.fleet.settled(_ANSWER_SECONDS / 4, name)
            await hub.news.listed()
            return await _looked_through(hub.catalogue.reviewing(name))

        return self._do(read())

    def accept(self, name: str, picks: list[dict[str, str]], actor: str) -> dict[str, Any]:
        return self._do(self._decided(name, picks, actor, accepted=True))

    def refuse(self, name: str, picks: list[dict[str, str]], actor: str) -> dict[str, Any]:
        return self._do(self._decided(name, picks, actor, accepted=False))

    async def _decided(
        self, name: str, picks: list[dict[str, str]], actor: str, *, accepted: bool
    ) -> dict[str, Any]:
        hub = self._known()
        decide = hub.catalogue.accept if accepted else hub.catalogue.refuse
        hub.news.changed(decide(name, picks, actor))
        return self._status(hub, name)

    def reload(self) -> dict[str, Any]:
        """Read the servers file now."""

        async def read() -> dict[str, Any]:
            hub = self._known()
            changed = hub.fleet.look()
            return {"changed": changed, "fault": hub.fleet.fault, "servers": hub.fleet.names}

        return self._do(read())

    def clients(self) -> list[dict[str, Any]]:
        """Who is connected."""

        async def read() -> list[dict[str, Any]]:
            return [
                {
                    "label": each.label,
                    "owner": each.owner,
                    "agent": each.agent,
                    "era": each.era,
                    "session": each.visit.session,
                    "under_way": len(each.flights),
                }
                for each in self._known().clients.values()
            ]

        return self._do(read())

    def revoke(self, owner: str) -> int:
        """A client's token is taken back: its sessions end at once."""

        async def end() -> int:
            self._http.revoke(owner)
            return self._known().turn_out(owner)

        return self._do(end())

    # -- scripts ----------------------------------------------------------------------------------------

    def eval_run(
        self, source: str, language: str = "javascript", profile: str = "", project: str = "", wait: float = 0
    ) -> dict[str, Any]:
        """Run a person's script; what came of it, or that it still runs or waits."""
        return self._do(self._known().scripts.people.start(source, language, profile, project, wait))

    def runs(self, limit: int = 50) -> list[dict[str, Any]]:
        """Scripts, the newest first."""
        return self._do(self._known().scripts.people.runs(limit))

    def run(self, run_id: str) -> dict[str, Any]:
        """One script with its timeline, masked."""
        return self._do(self._known().scripts.people.run(run_id))

    def resume(self, run_id: str, wait: float = 0) -> dict[str, Any]:
        return self._do(self._known().scripts.people.resume(run_id, wait))

    def cancel(self, run_id: str, actor: str = "") -> dict[str, Any]:
        return self._do(self._known().scripts.people.cancel(run_id, actor))

    @property
    def http_port(self) -> int | None:
        return self._http.port

    def _known(self) -> Hub:
        assert self._hub is not None  # noqa: S101 - the loop runs
        return self._hub


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: the same loop, faster."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _looked_through(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """INVARIANT: what a server made long to look at holds up no client meanwhile."""
    found, until = [], time.monotonic() + _AT_A_TIME
    for row in rows:
        found.append(row)
        if time.monotonic() >= until:
            await asyncio.sleep(0)
            until = time.monotonic() + _AT_A_TIME
    return found
