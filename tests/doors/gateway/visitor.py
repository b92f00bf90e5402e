"""A door beside the gateway, for tests: it judges its calls, then has them carried out by a real gateway."""

import asyncio
import contextlib
import threading

import msgspec

from checkrein.agents import Agents
from checkrein.call import ToolCall
from checkrein.doors.gateway.gateway import Gateway
from checkrein.ledger.query import Filter, entries
from patience import PATIENCE

DOOR = "chat"
# Also what the ordinary one says, with everything a result can hold.
RICH = {
    "content": [
        {"type": "text", "text": "a picture"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "note://one", "name": "one"},
        {"type": "text", "text": "and more"},
    ],
    "structuredContent": {"n": 0, "nothing": None, "deep": [{"x": False}]},
    "_meta": {"who": "knows"},
}


class Visitor:
    """The guest of a gateway, and the record."""

    def __init__(self, pipeline, house, said):
        self.pipeline, self.house, self.said = pipeline, house, said
        self.gateway = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), said.append)
        self.guest = None

    def open(self, accept=True):
        self.gateway.open()
        self.guest = self.gateway.guest(DOOR)
        if accept:
            self.accept()
        return self

    def accept(self, name="srv", tools=None):
        rows = [each for each in self.gateway.review(name) if each["state"] in ("new", "changed")]
        picks = [each for each in rows if tools is None or each["name"] in tools]
        self.gateway.accept(name, picks, "ada")

    def close(self):
        self.gateway.close()
        assert not [each for each in threading.enumerate() if each.name == "checkrein-gateway"]

    @property
    def hub(self):
        return self.gateway._known()

    def do(self, work):
        """Something on the gateway's own loop, and what it returns."""

        async def done():
            return work()

        return self.gateway._do(done())

    async def call(self, name, arguments=None, *, session="s1", project="/p", server="srv", **more):
        """A call in this door's words, of the tool as it is now."""
        tool = await self.guest.tool(f"{server}__{name}")
        known = {} if isinstance(tool, str) else {"definition": tool.definition}
        made = {"tool": name, "server": server, "arguments": arguments or {}, "door": DOOR, "agent": "model"}
        made |= {"user": "ada", "session": session, "project": project, **known, **more}
        return ToolCall(**made)

    async def judged(self, name, arguments=None, **more):
        """The call and the entry of its verdict."""
        call = await self.call(name, arguments, **more)
        decided = await asyncio.to_thread(self.pipeline.decide, call)
        return call, decided.entry

    async def carry(self, call, entry, heard=None):
        heard = [] if heard is None else heard
        return await self.guest.carry(call, f"{call.server}__{call.tool}", entry, progress=heard.append)

    async def made(self, name, arguments=None, *, heard=None, **more):
        """Judge it and have it carried out."""
        call, entry = await self.judged(name, arguments, **more)
        return await self.carry(call, entry, heard)

    def record(self, entry):
        """What the ledger says about a call, once everything known is written down."""
        self.do(lambda: None)
        for done in self.do(self.hub.calls.outcomes.flush):
            done.result(PATIENCE)
        (found,) = [each for each in entries(self.pipeline.store, Filter()) if each.id == entry]
        return found

    def stored(self, entry):
        rows = self.pipeline.store.query("SELECT body FROM record WHERE entry = ? ORDER BY seq", (entry,))
        return [msgspec.json.decode(row[0]) for row in rows]


@contextlib.contextmanager
def elsewhere(work):
    """Runs a coroutine on another loop, in another thread; what it returned is in the list afterwards."""
    found = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(work)))
    thread.start()
    try:
        yield found
    finally:
        thread.join(PATIENCE)
