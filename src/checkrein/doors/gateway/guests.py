"""What a door in this process may ask of the gateway: tools, resources and prompts, from any loop.

The gateway hands out guests. A guest judges its calls itself and brings the entry of the verdict; here it is
looked up, and what may run is carried out as any client's call is. Nobody at a guest can be asked anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from checkrein.call import ToolCall
from checkrein.doors.gateway.bringing import Bringing, Brought, as_offered
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.clients import DEFAULT_PROJECT
from checkrein.doors.gateway.errands import UNKNOWN
from checkrein.doors.gateway.json_fallback import replace_surrogates
from checkrein.doors.gateway.messages import RESOURCE_NOT_FOUND, Message, RpcError, request
from checkrein.doors.gateway.resources import PREFIX
from checkrein.doors.gateway.seats import Latest, Seats
from checkrein.doors.gateway.standing import always_denied
from checkrein.doors.gateway.templates import filled, parameters
from checkrein.errors import InputError, NotFoundError, StoreError

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

T = TypeVar("T")
# How long the first list waits for servers that are still starting.
_PATIENCE = 5.0
_MOST_PAGES = 100


class StoppedError(StoreError):
    """Raise when the gateway ends while somebody waits for it."""

    code = "gateway.stopped"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool a person accepted. `definition` is the hash of what they accepted.

    `annotations` are what a call is judged with; the schema is the server's own, not to be changed.
    """

    name: str
    server: str
    tool: str
    description: str
    title: str
    schema: dict[str, Any]
    annotations: dict[str, Any]
    definition: str
    trusted: bool


class Guests:
    """The guests' side of the hub; lives on its loop. Other threads hand over work with `soon`."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._seats = hub, Seats(hub)
        self.bringing = Bringing(hub, self._seats)
        self._loop = asyncio.get_running_loop()
        self._lock, self._over = threading.Lock(), False
        self._under_way: set[Future[Any]] = set()
        self._waited = False
        self._shown: tuple[Any, Any, list[Tool]] = (None, None, [])

    def soon(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have it done on the gateway's loop."""
        with self._lock:
            if self._over or self._loop.is_closed():
                work.close()
                raise StoreError("The gateway is not running.", remedy="Run `checkrein doctor`.")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def close(self) -> None:
        """The loop is over: nobody waits for it any more."""
        with self._lock:
            self._over, waiting = True, list(self._under_way)
        for each in waiting:
            each.cancel()

    # -- tools ------------------------------------------------------------------------------------------

    async def tools(self, door: str, project: str) -> list[Tool]:
        """What is offered, without what policy refuses whatever the arguments."""
        await self._settled()
        force = self._hub.pipeline.policies.of(project, door)
        listed = self._hub.catalogue.tools()
        if self._shown[0] is not force or self._shown[1] is not listed:
            found = (self._hub.catalogue.tool(each["name"]) for each in listed)
            offered = [each for each in found if each is not None]
            could = [
                each for each in offered if not always_denied(self._hub.pipeline, each, project, door=door)
            ]
            self._shown = force, listed, [self._tool(each) for each in could]
        return list(self._shown[2])

    async def tool(self, name: str) -> Tool | str:
        """The tool as it is now, or why it cannot be called."""
        await self._settled()
        found = as_offered(self._hub, name)
        return found if isinstance(found, str) else self._tool(found)

    async def faults(self, name: str, arguments: dict[str, Any]) -> list[str]:
        await self._settled()
        found = as_offered(self._hub, name)
        return [found] if isinstance(found, str) else found.input.faults(arguments)

    async def servers(self) -> list[dict[str, Any]]:
        self._hub.fleet.look()
        return [self._server(name) for name in self._hub.fleet.names]

    def _server(self, name: str) -> dict[str, Any]:
        spec, status = self._hub.fleet.spec(name), self._hub.fleet.keeper(name).status()
        kept = {key: status[key] for key in ("name", "state", "error", "remedy")}
        counts = self._hub.catalogue.counts(name)
        more = {"tools": counts["offered"], "hidden": counts["hidden"]}
        return {**kept, **more, "enabled": spec.enabled, "trusted": spec.trusted}

    async def _settled(self) -> None:
        if self._waited:
            return
        # Once: what takes longer to start keeps nobody waiting again and again.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._hub.fleet.settled(_PATIENCE)
                await asyncio.sleep(0)
                await self._hub.news.listed()
        self._waited = True

    def _tool(self, offered: Offered) -> Tool:
        said, title = offered.definition.get("description"), offered.definition.get("title")
        schema, trusted = offered.definition.get("inputSchema"), self._trusts(offered.server)
        return Tool(
            name=offered.name,
            server=offered.server,
            tool=offered.tool,
            description=said if isinstance(said, str) else "",
            title=title if isinstance(title, str) else "",
            schema=schema if isinstance(schema, dict) else {"type": "object"},
            annotations=offered.hints(trusted),
            definition=offered.hash,
            trusted=trusted,
        )

    def _trusts(self, server: str) -> bool:
        spec = self._hub.fleet.specs.get(server)
        return spec is not None and spec.trusted

    # -- resources and prompts --------------------------------------------------------------------------

    async def resources(self, door: str, session: str) -> list[dict[str, Any]]:
        """Every server's, each under its own URI."""
        seat, rows = self._seats.seat(door, session), list[dict[str, Any]]()
        for row in await self._listed(door, session, "resources/list", "resources"):
            with contextlib.suppress(RpcError):
                server, uri = await self._hub.resources.whose(seat, row["uri"])
                rows.append({**row, "uri": uri, "server": server, "trusted": self._trusts(server)})
        return rows

    async def templates(self, door: str, session: str) -> list[dict[str, Any]]:
        """Every server's, as it knows them, with their parameters; none that cannot be filled in."""
        rows = list[dict[str, Any]]()
        for row in await self._listed(door, session, "resources/templates/list", "resourceTemplates"):
            if (known := self._hub.resources.template(row["uriTemplate"])) is None:
                continue
            server, own = known
            with contextlib.suppress(InputError):
                asked = [msgspec.structs.asdict(each) for each in parameters(own)]
                more = {"server": server, "trusted": self._trusts(server), "parameters": asked}
                rows.append({**row, "uriTemplate": own, **more})
        return rows

    async def _listed(self, door: str, session: str, method: str, key: str) -> list[dict[str, Any]]:
        await self._settled()
        rows, params = list[dict[str, Any]](), Message()
        for _ in range(_MOST_PAGES):
            page = await self._asked(door, session, method, params)
            rows += page.get(key, [])
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        return rows

    async def read(self, door: str, session: str, server: str, uri: str) -> dict[str, Any]:
        named = f"{PREFIX}{server}:{uri}"
        found = await self._asked(door, session, "resources/read", {"uri": named})
        return self._marked(server, "contents", found)

    async def prompts(self) -> list[dict[str, Any]]:
        """What a person accepted, each under its own name."""
        await self._settled()
        rows = []
        for each in self._hub.catalogue.prompts():
            if (known := self._hub.catalogue.prompt(each["name"])) is not None:
                server, name = known
                rows.append({**each, "name": name, "server": server, "trusted": self._trusts(server)})
        return rows

    async def prompt(
        self, door: str, session: str, server: str, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        offered = f"{server}__{name}"
        if self._hub.catalogue.prompt(offered) != (server, name):
            why = self._hub.catalogue.hidden(offered)
            raise NotFoundError(f"There is no prompt {name[:160]!r} of {server[:80]!r}.", remedy=why)
        found = await self._asked(door, session, "prompts/get", {"name": offered, "arguments": arguments})
        return self._marked(server, "messages", found)

    def _marked(self, server: str, key: str, found: Message) -> dict[str, Any]:
        rows = found.get(key)
        kept = [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []
        return {"server": server, "trusted": self._trusts(server), key: kept}

    async def _asked(self, door: str, session: str, method: str, params: Message) -> Message:
        """As a client asks it, with a client's limits."""
        seat = self._seats.seat(door, session)
        try:
            found = await self._hub.handle(seat, request(seat.number(), method, params), seat)
        finally:
            self._seats.leave_later(seat)
        if found is None:
            raise asyncio.CancelledError
        if (error := found.get("error")) is not None:
            kind = NotFoundError if error["code"] == RESOURCE_NOT_FOUND else InputError
            raise kind(str(error["message"]))
        result = replace_surrogates(found.get("result"))
        return result if isinstance(result, dict) else {}


class Guest:
    """A door that uses the gateway's tools. Awaited on any loop; whoever stops waiting gives it up."""

    def __init__(self, door: str, guests: Guests) -> None:
        self._door, self._guests = door, guests

    async def tools(self, project: str = DEFAULT_PROJECT) -> list[Tool]:
        """Accepted tools that policy could ever let run, their schemas whole."""
        return await self._there(lambda there: there.tools(self._door, project or DEFAULT_PROJECT))

    async def tool(self, name: str) -> Tool | str:
        return await self._there(lambda there: there.tool(name))

    async def faults(self, name: str, arguments: dict[str, Any]) -> list[str]:
        """What is wrong with the arguments, in sentences."""
        return await self._there(lambda there: there.faults(name, arguments))

    async def carry(
        self, call: ToolCall, name: str, entry: str, *, progress: Callable[[str], None]
    ) -> Brought:
        """Execute what was judged under this entry, once; `progress` is told on the loop that waits."""
        if call.door != self._door:
            return Brought("unsent", text="Another door's call is not carried out here.")
        latest = Latest(asyncio.get_running_loop(), progress)
        try:
            return await self._there(lambda there: there.bringing.carry(call, name, entry, latest))
        except StoppedError as error:
            return Brought("lost", text=f"{error.message} {UNKNOWN}")
        finally:
            latest.over = True

    async def resources(self, session: str = "") -> list[dict[str, Any]]:
        return await self._there(lambda there: there.resources(self._door, session))

    async def read(self, server: str, uri: str, session: str = "") -> dict[str, Any]:
        """A resource's `contents`, and whether a person vouches for who wrote them."""
        return await self._there(lambda there: there.read(self._door, session, server, uri))

    async def templates(self, session: str = "") -> list[dict[str, Any]]:
        """Resource templates, each with its `parameters`: their names, and whether they are required."""
        return await self._there(lambda there: there.templates(self._door, session))

    async def read_filled(
        self, server: str, template: str, arguments: dict[str, Any], session: str = ""
    ) -> dict[str, Any]:
        """As `read`, of the resource a template is with these values; with its `uri`."""
        uri = filled(template, arguments)
        return {**await self.read(server, uri, session), "uri": uri}

    async def prompts(self) -> list[dict[str, Any]]:
        return await self._there(lambda there: there.prompts())

    async def prompt(
        self, server: str, name: str, arguments: dict[str, Any], session: str = ""
    ) -> dict[str, Any]:
        """A prompt's `messages`, and whether a person vouches for who wrote them."""
        return await self._there(lambda there: there.prompt(self._door, session, server, name, arguments))

    async def servers(self) -> list[dict[str, Any]]:
        """How every server does, and how many of its tools are offered."""
        return await self._there(lambda there: there.servers())

    async def _there(self, work: Callable[[Guests], Coroutine[Any, Any, T]]) -> T:
        guests = self._guests
        try:
            return await asyncio.wrap_future(guests.soon(work(guests)))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # It was the gateway that ended, not whoever waits.
            raise StoppedError("The gateway was stopped meanwhile.", remedy="Try again.") from None
