"""One configured server: its connections, who shares them, how it does. The hub asks `at_hand`, then `reach`.

A server whose requests back to clients we have met gives each client that can answer them a connection of its
own: over a pipe nothing says which call such a request belongs to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

import checkrein
from checkrein.doors.gateway.line import FAILED, STARTING, Line, status_of
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, Message
from checkrein.doors.gateway.pipes import PipeMaker, pipe_for
from checkrein.doors.gateway.upstream import Listener, Upstream, WrongEra
from checkrein.errors import CheckreinError
from checkrein.settings.servers import ServerSpec, resolve
from checkrein.store.facts import Facts

NEEDS = ("roots", "sampling", "elicitation")
# Declared where we only look: servers show some of their tools to clients that can be asked these.
EVERYTHING: Message = {
    "roots": {"listChanged": True},
    "sampling": {"context": {}, "tools": {}},
    "elicitation": {"form": {}, "url": {}},
}
_NEEDS_FACT, _ERAS_FACT = "needs", "eras"
_PROBE_SECONDS = 10.0
_TEND_SECONDS = 15.0


class Unreachable(CheckreinError):  # noqa: N818 - says what is so, not what went wrong
    """Raise when a server cannot be used now; the message says why."""

    code = "server.unreachable"


class Wants(Protocol):
    """Somebody who needs the server."""

    @property
    def id(self) -> str: ...
    @property
    def era(self) -> str: ...
    @property
    def capabilities(self) -> Message: ...


class Limits(Protocol):
    """How long and how many; the settings' `gateway` section is one."""

    @property
    def start_seconds(self) -> float: ...
    @property
    def idle_seconds(self) -> float: ...
    @property
    def most_private(self) -> int: ...


class Audience(Listener, Protocol):
    """Who hears what goes on behind the gateway."""

    def ready(self, keeper: Keeper, upstream: Upstream) -> None:
        """A connection became ready: a shared one, or the client's it is private to."""
        ...

    def holds(self, server: str, client_id: str) -> bool:
        """Whether the client waits to hear something from its own connection."""
        ...


class Keeper:
    """Everything about one server that is not its definition."""

    def __init__(
        self,
        spec: ServerSpec,
        listener: Audience,
        *,
        facts: Facts,
        limits: Limits,
        say: Callable[[str], None],
        connect: PipeMaker | None = None,
    ) -> None:
        self.spec, self._listener, self._facts, self._limits, self._say = spec, listener, facts, limits, say
        self._connect: PipeMaker = connect or pipe_for
        self._needs = facts.get(spec.name, _NEEDS_FACT, spec.fingerprint)
        self._lacks = facts.get(spec.name, _ERAS_FACT, spec.fingerprint)
        self._shared: dict[str, Line] = {}
        self._private: dict[str, Line] = {}
        self._clients: set[str] = set()
        self._kept = False
        self._stopped = not spec.enabled
        self._used_at = float("-inf")
        self._logs: tuple[str, ...] = ()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    def at_hand(self, client: Wants) -> Upstream | None:
        """The connection this client uses, if it is ready; never waits."""
        era = self._era_for(client.era)
        line = self._private.get(client.id) if self._is_private(client, era) else self._shared.get(era)
        found = None if line is None else line.ready
        if found is not None:
            self._used_at = found.used_at
        return found

    def current(self) -> Upstream | None:
        """A shared connection that is ready, whoever it was opened for."""
        return next((found for line in self._shared.values() if (found := line.ready)), None)

    async def reach(self, client: Wants) -> Upstream:
        """A ready connection for this client, opened if need be; raises Unreachable."""
        if self._stopped:
            raise Unreachable(
                f"{self.name} is not running.", remedy=f"Start it with `checkrein servers start {self.name}`."
            )
        if client.era == HANDSHAKE:
            # Who sends single requests never leaves; for them it counts how long ago the last one came.
            self._clients.add(client.id)
        self._used_at = asyncio.get_running_loop().time()
        return await self._in_some_era(client.era, lambda era: self._line_for(client, era))

    async def _in_some_era(self, wanted: str, line_for: Callable[[str], Line]) -> Upstream:
        era, seconds = self._era_for(wanted), self._limits.start_seconds
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await line_for(era).reach(seconds)
                except WrongEra as error:
                    upstream = await self._in_other_era(era, error, line_for)
                return upstream
        except WrongEra as error:
            raise Unreachable(
                f"{self.name} speaks no version of the protocol that we know. {error}",
                remedy="Look for a newer version of it.",
            ) from None
        except TimeoutError:
            raise Unreachable(f"{self.name} did not start within {seconds:g} seconds.") from None
        except Unreachable:
            raise
        except CheckreinError as error:
            raise Unreachable(error.message, remedy=error.remedy) from error

    async def _in_other_era(self, era: str, error: WrongEra, line_for: Callable[[str], Line]) -> Upstream:
        self._drop(self._shared.pop(era, None))
        other = _other(era)
        # What was known may be out of date.
        self._lacks -= {other}
        upstream = await line_for(other).reach(self._limits.start_seconds)
        # Only now is it sure that the server works and just does not speak that era.
        self._lacks = frozenset({era})
        if error.sure:
            self._facts.put(self.name, _ERAS_FACT, self.spec.fingerprint, self._lacks)
        return upstream

    def _era_for(self, wanted: str) -> str:
        return _other(wanted) if wanted in self._lacks else wanted

    def _is_private(self, client: Wants, era: str) -> bool:
        # Each stateless request carries its own envelope, so that such a connection is anybody's.
        if era == STATELESS or self.spec.share == "shared":
            return False
        return self.spec.share == "client" or not self._needs.isdisjoint(client.capabilities)

    def _line_for(self, client: Wants, era: str) -> Line:
        if self._is_private(client, era):
            return self._private_line(client)
        return self._shared_line(era)

    def _shared_line(self, era: str) -> Line:
        line = self._shared.get(era)
        if line is None:
            line = self._shared[era] = self._line(era, self._declared(), wanted=self._is_wanted)
        return line

    def _declared(self) -> Message:
        """What a shared connection says clients can do: whatever makes the server show all it has."""
        return {} if self.spec.share == "shared" else EVERYTHING

    def _private_line(self, client: Wants) -> Line:
        line = self._private.get(client.id)
        if line is None:
            self._make_room()
            whose, capabilities = client.id, client.capabilities
            line = self._line(HANDSHAKE, capabilities, private_to=whose, wanted=lambda: self._is_held(whose))
            self._private[whose] = line
        return line

    def own(self, client_id: str) -> Upstream | None:
        """The client's private connection, if it is ready."""
        line = self._private.get(client_id)
        return None if line is None else line.ready

    def owns(self) -> list[Upstream]:
        return [found for line in self._private.values() if (found := line.ready)]

    def lacks_own(self, client: Wants) -> bool:
        """Whether the client is to have a private connection, and nobody has tried to open one."""
        private = not self._stopped and self._is_private(client, self._era_for(client.era))
        return private and client.id not in self._private

    def _is_held(self, client_id: str) -> bool:
        return not self._stopped and self._listener.holds(self.name, client_id)

    def _is_idle(self, line: Line) -> bool:
        # INVARIANT: who waits to hear of something does not lose the connection it would come by.
        return (line.upstream is None or not line.upstream.busy) and not self._is_held(line.private_to)

    def _make_room(self) -> None:
        if len(self._private) < self._limits.most_private:
            return
        idle = [line for line in self._private.values() if line.state != STARTING and self._is_idle(line)]
        if not idle:
            raise Unreachable(
                f"{self.name} has {len(self._private)} connections of single clients, all in use.",
                remedy="Try again later, or raise `gateway.most_private`.",
            )
        longest = min(idle, key=lambda line: line.upstream.used_at if line.upstream else 0.0)
        self._drop(self._private.pop(longest.private_to))

    def _line(
        self, era: str, capabilities: Message, *, private_to: str = "", wanted: Callable[[], bool]
    ) -> Line:
        self._tend_later()
        return Line(
            self.name,
            era,
            capabilities,
            private_to=private_to,
            open=self._open,
            wanted=wanted,
            say=self._say,
        )

    async def _open(self, line: Line) -> Upstream:
        # A secret may have to be fetched from a keyring, which can take its time.
        spec = await asyncio.to_thread(resolve, self.spec)
        upstream = Upstream(self.name, lambda hear, over: self._connect(spec, hear, over), self)
        upstream.private_to, line.opening = line.private_to, upstream
        seconds = self._limits.start_seconds
        if line.era == STATELESS and line.restarts == 0:
            seconds = min(seconds / 3, _PROBE_SECONDS)
        try:
            info = {"name": "checkrein", "title": "Checkrein", "version": checkrein.__version__}
            await upstream.start(era=line.era, capabilities=line.capabilities, info=info, seconds=seconds)
        finally:
            if not upstream.ready:
                line.tail = upstream.tail
        # After the line knows it too.
        asyncio.get_running_loop().call_soon(self._announce, upstream)
        return upstream

    def _announce(self, upstream: Upstream) -> None:
        if not upstream.ready:
            return
        if not upstream.private_to:
            self._say(f"{self.name} is ready.")
        self._listener.ready(self, upstream)

    def _is_wanted(self) -> bool:
        if self._stopped:
            return False
        recent = asyncio.get_running_loop().time() - self._used_at < self._limits.idle_seconds
        return self._kept or bool(self._clients) or recent

    def asked(self, upstream: Upstream, message: Message) -> None:
        self._listener.asked(upstream, message)

    def heard(self, upstream: Upstream, message: Message) -> None:
        self._listener.heard(upstream, message)

    def ended(self, upstream: Upstream, why: str) -> None:
        for line in (*self._shared.values(), *self._private.values()):
            if line.lost(upstream, why):
                self._logs = line.tail
                break
        if upstream.started:
            self._listener.ended(upstream, why)

    async def start(self) -> None:
        """Have a shared connection and keep it; raises Unreachable, and goes on trying."""
        self._stopped, self._kept = False, True
        await self._in_some_era(HANDSHAKE, self._shared_line)

    async def stop(self) -> None:
        """End every connection; nobody reaches the server until it is started again."""
        self._stopped, self._kept = True, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines = [*self._shared.values(), *self._private.values()]
        self._shared, self._private = {}, {}
        for line in lines:
            self._drop(line)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def retire(self) -> None:
        """The server was removed or is another one now."""
        await self.stop()
        self._clients.clear()

    def let_go(self, client_id: str) -> None:
        """A client left; what was its alone ends."""
        self._clients.discard(client_id)
        self._drop(self._private.pop(client_id, None))

    def needs(self, capability: str) -> None:
        """Learned: the server asks clients for this. From now on those that can give it are kept apart."""
        if capability not in NEEDS or capability in self._needs or self.spec.share != "auto":
            return
        self._needs |= {capability}
        self._facts.put(self.name, _NEEDS_FACT, self.spec.fingerprint, self._needs)

    def _drop(self, line: Line | None) -> None:
        if line is not None:
            self._logs = line.upstream.tail if line.upstream else line.tail
            self._do(line.stop())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tend_later(self) -> None:
        if self._timer is None:
            pause = min(_TEND_SECONDS, max(0.05, self._limits.idle_seconds / 2))
            self._timer = asyncio.get_running_loop().call_later(pause, self._tend)

    def _tend(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for line in list(self._private.values()):
            upstream = line.ready
            unused = upstream is None or now - upstream.used_at > self._limits.idle_seconds
            # One that is held is opened again by itself, unless that cannot help.
            idle = line.state == FAILED or (unused and self._is_idle(line))
            if idle and line.state != STARTING:
                self._drop(self._private.pop(line.private_to))
        for line in (*self._shared.values(), *self._private.values()):
            if line.is_quiet(now):
                self._do(line.check())
        if self._shared or self._private:
            self._tend_later()

    def status(self) -> dict[str, Any]:
        """How it does, for people."""
        return status_of(self.name, [*self._shared.values(), *self._private.values()])

    def logs(self, count: int = 50) -> list[str]:
        """What it wrote beside the messages, the latest last."""
        lines = [*self._shared.values(), *self._private.values()]
        found = next(
            (tail for line in lines if (tail := line.upstream.tail if line.upstream else line.tail)),
            self._logs,
        )
        return list(found[-count:])


def _other(era: str) -> str:
    return STATELESS if era == HANDSHAKE else HANDSHAKE
