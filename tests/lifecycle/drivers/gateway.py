"""An MCP client before the gateway, whose server is in this process.

A client that waits is one of the handshake era whose person is asked elsewhere. One that comes back is
stateless and carries a `requestState` over a restart; or it
calls again, as it was told where nobody can be asked now.
"""

import asyncio
import contextlib
import threading

from checkrein.doors.gateway.messages import HANDSHAKE
from doors.gateway.house import Guest, House, told
from lifecycle.drivers import SERVER, TOOL, Caller, Cannot, Driver
from lifecycle.drivers.in_process import Server
from patience import PATIENCE, until

NAME = f"{SERVER}__{TOOL}"


class Loop:
    """The gateway's own thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def end(self):
        """Cut off whatever is left."""

        async def cut():
            left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            await self.loop.shutdown_default_executor()

        self.do(cut())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.loop.close()


class Gateway(Driver):
    name = "gateway"

    def __init__(self, world):
        super().__init__(world)
        self.server = Server(world)
        self.house = self.loop = None

    def open(self):
        if self.world.pipeline is None or self.world.store.dead:
            self.world.open()
        self.house = House(self.world.pipeline, self.world.folder)
        self.house.specs = {SERVER: {"command": "true", "trusted": True}}
        self.house.write()
        self.loop = Loop()
        # Only the first time: later servers find what was accepted.
        self.loop.do(self.house.open(accept=not self.house.entries()))

    def define(self, description, *, accept=False):
        self.server.offered, self.server.description = description is not None, description

        async def changed():
            self.server.tell()
            await self.house.settled()
            if accept:
                self.house.accept(SERVER)

        self.loop.do(changed())
        until(lambda: not self._offered() if not accept else self._offered())

    def _offered(self):
        async def offered():
            found = self.house.hub.catalogue.tool(NAME)
            return found is not None and found.definition.get("description") == self.server.description

        return self.loop.do(offered())

    def needs_project(self):
        raise Cannot("a client that names no root has no project's folder")

    def same_session(self, caller, arguments=None):
        other = Caller(caller.arguments if arguments is None else arguments)
        other.guest, other.state = caller.guest, None
        return self._sent(other, {})

    def call(self, arguments, *, keeps=False):
        caller = Caller(arguments)
        caller.guest = None if keeps else self.loop.do(self._entered())
        caller.state = None
        return self._sent(caller, {})

    async def _entered(self):
        return await Guest(self.house, HANDSHAKE, capabilities={}, answers={}).enter()

    def _sent(self, caller, more):
        # A stateless client is another one for each request.
        caller.client = caller.guest or self.house.passing(answers={})
        loop = self.loop

        def run(each):
            params = {"name": NAME, "arguments": each.arguments, **more}
            try:
                answer = loop.do(each.client.raw("tools/call", params))
            except asyncio.CancelledError:
                return "broken"
            return self._heard(each, answer)

        return caller.start(run)

    def _heard(self, caller, answer):
        if answer is None:
            return "cancelled"
        if "error" in answer:
            caller.said = answer["error"]["message"]
            broken = "was killed" in caller.said or "disk is full" in caller.said
            return "broken" if broken else caller.told(caller.said)
        result = answer["result"]
        if result.get("resultType") == "input_required":
            caller.state = result["requestState"]
            return "pending"
        text = told(result)
        if result.get("isError"):
            return caller.told(text)
        caller.said = text
        return "result"

    def cut_short(self, arguments, turns):
        """A call that is taken back so many turns of the loop after its question is in the store."""
        store = self.world.store

        async def call():
            client = await self._entered()
            known = store.count("asked")
            task = asyncio.ensure_future(client.raw("tools/call", {"name": NAME, "arguments": arguments}))
            while store.count("asked") == known:
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            client.cancel(client.last)
            assert await task is None

        self.loop.do(call())

    def put_away(self, arguments):
        caller = self.call(arguments, keeps=True)
        assert caller.heard() == "pending"
        return caller

    def back(self, caller):
        if self.house is None:
            self.open()
        if caller.guest is not None:
            caller.guest = self.loop.do(self._entered())
            return self._sent(caller, {})
        more = {} if caller.state is None else {"requestState": caller.state, "inputResponses": {}}
        return self._sent(caller, more)

    def cancel(self, caller):
        async def cancel():
            caller.client.cancel(caller.client.last)

        self.loop.do(cancel())

    def leave(self, caller):
        async def leave():
            caller.client.leave()

        self.loop.do(leave())

    def killed(self):
        if self.house is not None:
            self._ended()

    def close(self):
        if self.house is not None:
            self._ended()

    def _ended(self):
        house, loop = self.house, self.loop
        self.house = self.loop = None
        with contextlib.suppress(Exception):
            loop.do(house.close())
        loop.end()
