"""A Python program whose gate has a store of its own.

A caller that waits is a plain call; one that comes back kept its pending call as JSON. Cancelling is what an
asynchronous program does. The program's own restart is its server's: both are one process.
"""

import asyncio
import atexit
import threading

from checkrein import Denied, Gate, Suspended
from checkrein.doors.library.embedded import Embedded
from checkrein.doors.library.pending import pending
from checkrein.errors import InputError
from lifecycle.drivers import SERVER, TOOL, Caller, Cannot, Driver
from patience import PATIENCE


class Library(Driver):
    name = "library"

    def __init__(self, world):
        super().__init__(world)
        self.gate, self._tools, self.phase = None, {}, "building"

    def open(self):
        world = self.world
        if world.pipeline is not None and not world.store.dead:
            world.pipeline.close()
        # The authority opens its own store, which this one takes the place of.
        authority = Embedded(world.folder, clock=world.clock)
        world.store, world.pipeline = authority.pipeline.store, authority.pipeline
        world.pipeline.broker.reach(lambda: True)
        project = world.project
        self.gate = Gate(authority=authority, project=project, cwd=project, session="s-1", phase=self.phase)
        for asks in ("wait", "raise"):
            self._tools[asks] = self._wrapped(asks, "")
        # The last one wrapped goes on with a call that waits.
        self._later = self.gate.tool(server=SERVER, name=TOOL, asks="wait")(self._put())

    def _put(self):
        world = self.world

        def put(text: str) -> str:
            return world.tool({"text": text})

        return put

    def _wrapped(self, asks, definition):
        return self.gate.tool(server=SERVER, name=TOOL, asks=asks, definition=definition)(self._put())

    def call(self, arguments, *, keeps=False):
        put = self._tools["raise" if keeps else "wait"]
        return Caller(arguments).start(lambda caller: self._heard(caller, lambda: put(**arguments)))

    def put_away(self, arguments):
        caller = self.call(arguments, keeps=True)
        assert caller.heard() == "pending"
        return caller

    def back(self, caller):
        if self.gate is None:
            self.open()
        kept, gate = pending(caller.kept), self.gate
        return caller.start(lambda each: self._heard(each, lambda: gate.resume(kept)))

    def _heard(self, caller, work):
        try:
            found = work()
        except Denied as denied:
            return caller.told(denied.text)
        except Suspended as suspended:
            caller.kept, caller.said = suspended.pending.json(), suspended.pending.text
            return "pending"
        except InputError as error:
            return caller.told(str(error))
        caller.said = str(found)
        return "result" if caller.said.startswith("ran with") else "answered"

    def cancel(self, caller):
        loop, task = caller.task
        loop.call_soon_threadsafe(task.cancel)

    def cancellable(self, arguments):
        """The same by an asynchronous program, which can take its call back."""
        world, ready = self.world, threading.Event()

        async def put(text: str) -> str:
            return world.tool({"text": text})

        wrapped = self.gate.tool(server=SERVER, name=TOOL, asks="wait")(put)

        def run(caller):
            async def main():
                caller.task = asyncio.get_running_loop(), asyncio.current_task()
                ready.set()
                return await wrapped(**arguments)

            try:
                return self._heard(caller, lambda: asyncio.run(main()))
            except asyncio.CancelledError:
                return "cancelled"

        caller = Caller(arguments).start(run)
        assert ready.wait(PATIENCE)
        return caller

    def nobody(self):
        raise Cannot("a program's question waits until it is answered")

    def switch_phase(self, phase):
        raise Cannot("a call that waits keeps the phase it was made in")

    def leave(self, caller):
        self.cancel(caller)

    def killed(self):
        gate, self.gate = self.gate, None
        if gate is not None:
            atexit.unregister(gate.authority.close)

    def close(self):
        if self.gate is not None:
            self.gate.flush()
            self.gate.close()
            self.gate = None
            self.world.open()
