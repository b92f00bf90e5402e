"""The servers behind the gateway: read from the servers file, kept by a keeper each, read again on change.

The gateway's hub reaches them by name. A file that cannot be read changes nothing, and says so.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from checkrein.approval import wording
from checkrein.doors.gateway.keeper import Audience, Keeper, Limits, Unreachable, Wants
from checkrein.doors.gateway.line import READY, STARTING
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.signed_in import forget_sign_in
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError, NotFoundError
from checkrein.settings.servers import ServerSpec, read_servers, stamp
from checkrein.store.facts import Facts

Changed = Callable[[str], None]
# Stands for every client that used a connection and left.
_SOMEBODY = "somebody"


def _signs_in_at(spec: ServerSpec) -> tuple[str, str]:
    return spec.url, spec.client.client_id


class Fleet:
    """Keepers by name. `withdrawn` is told of every server that is gone or another one now."""

    def __init__(
        self, audience: Audience, facts: Facts, limits: Limits, say: Callable[[str], None], withdrawn: Changed
    ) -> None:
        self._audience, self._facts, self._limits, self._say = audience, facts, limits, say
        self._withdrawn = withdrawn
        self._keepers: dict[str, Keeper] = {}
        self._specs: dict[str, ServerSpec] = {}
        self._stamp: tuple[int, ...] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._first: dict[str, asyncio.Task[Any]] = {}
        # Shared connections by the clients that used them.
        self._shared_by: dict[str, WeakSet[Upstream]] = {}
        self.fault = ""

    @property
    def names(self) -> list[str]:
        return sorted(self._specs)

    @property
    def specs(self) -> dict[str, ServerSpec]:
        return dict(self._specs)

    def spec(self, server: str) -> ServerSpec:
        found = self._specs.get(server)
        if found is None:
            raise NotFoundError(f"There is no server {server!r}.", remedy="See `checkrein servers`.")
        return found

    def keeper(self, server: str) -> Keeper:
        self.spec(server)
        return self._keepers[server]

    async def reach(self, server: str, client: Wants) -> Upstream:
        """A ready connection for the client; raises Unreachable."""
        keeper = self._keepers.get(server)
        if keeper is None:
            raise Unreachable(f"There is no server {server!r}.", remedy="See `checkrein servers`.")
        return self._used(keeper.at_hand(client) or await keeper.reach(client), client)

    def at_hand(self, server: str, client: Wants) -> Upstream | None:
        """The same where it is ready now."""
        keeper = self._keepers.get(server)
        found = None if keeper is None else keeper.at_hand(client)
        return None if found is None else self._used(found, client)

    def _used(self, upstream: Upstream, client: Wants) -> Upstream:
        if client.id not in upstream.users:
            upstream.users.add(client.id)
            if not upstream.private_to:
                self._shared_by.setdefault(client.id, WeakSet()).add(upstream)
        return upstream

    def own(self, server: str, client_id: str) -> Upstream | None:
        """A client's private connection to a server, if it is ready."""
        keeper = self._keepers.get(server)
        return None if keeper is None else keeper.own(client_id)

    def owns(self, server: str) -> list[Upstream]:
        """Every client's private connection to a server that is ready."""
        keeper = self._keepers.get(server)
        return [] if keeper is None else keeper.owns()

    def lacking_own(self, client: Wants) -> list[str]:
        """The servers this client is still to have a private connection to."""
        return [name for name in self.names if self._keepers[name].lacks_own(client)]

    def no_tool(self, name: str) -> str:
        """What to say where no server offers such a tool: the one that would may not be up yet."""
        server, _, _ = name.partition("__")
        said = f"There is no tool {wording.plain(name, 160)!r}"
        keeper = self._keepers.get(server)
        state = keeper.status()["state"] if keeper is not None else READY
        if state == READY:
            return f"{said}."
        if state == STARTING:
            return f"{said} yet: its server {server!r} is starting. Try again in a moment."
        return f"{said}: its server {server!r} does not run. A person finds out why with `checkrein servers`."

    def used_by(self, client: Wants) -> list[Upstream]:
        """The ready connections this client's requests go through, and the shared ones it has not used."""
        found: list[Upstream] = []
        for name in self.names:
            upstream = self._keepers[name].at_hand(client) or self._keepers[name].current()
            found += [upstream] if upstream is not None else []
        return found

    def ready(self) -> list[Upstream]:
        """One ready connection of each server, in the order of their names."""
        found = (self._keepers[name].current() for name in self.names)
        return [upstream for upstream in found if upstream is not None]

    def capabilities(self, *, stateless: bool) -> Message:
        """What the servers can do, together; nothing that none of them can."""
        behind = [each.capabilities for each in self.ready()]
        made: Message = {"tools": {"listChanged": True}}
        if any(isinstance(each.get("prompts"), dict) for each in behind):
            made["prompts"] = {"listChanged": True}
        resources = [each["resources"] for each in behind if isinstance(each.get("resources"), dict)]
        if resources:
            subscribe = any(each.get("subscribe") is True for each in resources)
            made["resources"] = {"listChanged": True, "subscribe": subscribe}
        if any(isinstance(each.get("completions"), dict) for each in behind):
            made["completions"] = {}
        if any(isinstance(each.get("logging"), dict) for each in behind) and not stateless:
            made["logging"] = {}
        return made

    async def settled(self, seconds: float, server: str | None = None) -> None:
        """Wait until a server, or every one, has been tried once; but no longer than this."""
        first = self._first if server is None else {server: self._first.get(server)}
        starting = [task for task in first.values() if task is not None and not task.done()]
        if starting:
            await asyncio.wait(starting, timeout=seconds)

    def look(self) -> bool:
        """Read the file again where it changed; whether anything is different now."""
        now = stamp()
        if now == self._stamp:
            return False
        self._stamp = now
        found = read_servers()
        if found.fault:
            # INVARIANT: a broken edit keeps the last good configuration, and says so.
            if found.fault != self.fault:
                self._say(f"the servers file cannot be used, the last good one stays in force: {found.fault}")
            self.fault = found.fault
            return False
        self.fault = ""
        return self._take_over(found.servers)

    def _take_over(self, servers: dict[str, ServerSpec]) -> bool:
        before, self._specs = self._specs, dict(servers)
        changed = before != self._specs
        for name in [*before]:
            after = self._specs.get(name)
            if after is None or after != before[name]:
                # INVARIANT: a sign-in outlives neither the address it was for nor the client it was given to.
                self._retire(name, forget=after is None or _signs_in_at(after) != _signs_in_at(before[name]))
        for name, spec in self._specs.items():
            if name not in self._keepers:
                keeper = Keeper(spec, self._audience, facts=self._facts, limits=self._limits, say=self._say)
                self._keepers[name] = keeper
                if spec.enabled:
                    self._first[name] = self._do(self._begin(keeper))
        return changed

    async def _begin(self, keeper: Keeper) -> None:
        try:
            await keeper.start()
        except CheckreinError as error:
            self._say(f"{keeper.name} could not be started: {error}")

    def _retire(self, name: str, *, forget: bool) -> None:
        keeper = self._keepers.pop(name, None)
        if (first := self._first.pop(name, None)) is not None:
            first.cancel()
        self._withdrawn(name)
        if forget:
            forget_sign_in(name)
        if keeper is not None:
            self._do(self._retired(keeper, forget))

    async def _retired(self, keeper: Keeper, forget: bool) -> None:
        await keeper.retire()
        # A token may have been renewed on the way out.
        if forget and keeper.name not in self._specs:
            forget_sign_in(keeper.name)

    def let_go(self, client_id: str) -> None:
        """A client left. That somebody else used a connection before is still known."""
        for upstream in self._shared_by.pop(client_id, ()):
            upstream.users.discard(client_id)
            # INVARIANT: who is alone with a server now was not alone with it before.
            upstream.users.add(_SOMEBODY)
        for keeper in self._keepers.values():
            keeper.let_go(client_id)

    def _do(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End every server; none of their processes is left."""
        keepers, self._keepers, self._specs = list(self._keepers.values()), {}, {}
        for task in list(self._first.values()):
            task.cancel()
        await asyncio.gather(*(keeper.retire() for keeper in keepers), return_exceptions=True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
