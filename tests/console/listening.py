"""One listener for all consoles of a worker: to start and end one of its own takes longer than most tests."""

import asyncio
import threading

import uvicorn

from checkrein.console.app import build
from checkrein.console.serving import Protocol
from checkrein.runtime import listen_on_loopback
from patience import PATIENCE, until


class Listener:
    """Hands what comes to the console of the test that runs."""

    def __init__(self):
        self._socket = listen_on_loopback((0,), 128)
        self.port = self._socket.getsockname()[1]
        self._app = self._loop = None
        self._open = 0
        config = uvicorn.Config(
            self,
            loop="asyncio",
            http=Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        until(lambda: self._server.started)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            self._loop = asyncio.get_running_loop()
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1

    def serve(self, console):
        """Begin: the console's address is this one."""
        console.desk.port = self.port
        self._app = build(console.desk)
        self._life = self._run(self._begun(self._app))

    def end(self, console):
        """The open lines end, and what was asked is answered, before its store is closed."""
        console.desk.feed.stop()
        console.desk.streams.stop()
        until(lambda: not self._open, failing="a request never ended")
        self._run(self._ended(*self._life))
        console.desk.check.join(PATIENCE)
        self._app = None

    def close(self):
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    @staticmethod
    async def _begun(app):
        told, said = asyncio.Queue(), asyncio.Queue()
        living = asyncio.create_task(app({"type": "lifespan", "state": {}}, told.get, said.put))
        await told.put({"type": "lifespan.startup"})
        answer = await said.get()
        assert answer["type"] == "lifespan.startup.complete", answer
        return told, living

    @staticmethod
    async def _ended(told, living):
        await told.put({"type": "lifespan.shutdown"})
        await living
