"""An MCP server behind the gateway, in this process: its tool is the world's, its schema the test's."""

import asyncio
import contextlib

from checkrein.doors.gateway.pipes import Gone
from lifecycle.drivers import TOOL

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


class Server:
    """What the server offers now; `None` where the tool is gone."""

    def __init__(self, world):
        self.world, self.description = world, "It puts a text down."
        self.schema, self.offered = SCHEMA, True
        self._pipes = []

    def tools(self):
        found = {"name": TOOL, "description": self.description, "inputSchema": self.schema}
        return [found] if self.offered else []

    def pipe_for(self, _spec, hear, over, *, sign_in=None):
        self._pipes.append(_Pipe(self, hear, over))
        return self._pipes[-1]

    def tell(self):
        """Whoever is connected hears that the tools changed."""
        for each in self._pipes:
            each.say({"method": "notifications/tools/list_changed"})


class _Pipe:
    pid, tail, fault = None, (), None

    def __init__(self, server, hear, over):
        self._server, self._hear, self._over, self.ended = server, hear, over, ""
        self._tasks = set()

    async def open(self):
        """Nothing to start."""

    def send(self, message):
        if self.ended:
            raise Gone(self.ended)
        if "method" in message and "id" in message:
            task = asyncio.get_running_loop().create_task(self._answer(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, message):
        number, method, params = message["id"], message["method"], message.get("params", {})
        if method == "initialize":
            info = {"name": "in-process", "version": "1"}
            caps = {"tools": {"listChanged": True}}
            result = {"protocolVersion": params["protocolVersion"], "capabilities": caps, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": self._server.tools()}
        elif method == "tools/call":
            text = await asyncio.to_thread(self._server.world.tool, params["arguments"])
            result = {"content": [{"type": "text", "text": text}]}
        elif method == "ping":
            result = {}
        else:
            error = {"code": -32601, "message": "Method not found"}
            self.say({"id": number, "error": error})
            return
        self.say({"id": number, "result": result})

    def say(self, message):
        if not self.ended:
            self._hear({"jsonrpc": "2.0", **message})

    async def close(self):
        self.ended = self.ended or "closed"
        tasks = list(self._tasks)
        for each in tasks:
            each.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
