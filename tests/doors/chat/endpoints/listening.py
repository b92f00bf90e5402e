"""Something that listens on loopback while a test runs, on a thread of its own."""

import asyncio
import threading

from patience import PATIENCE


class Listening:
    """Whoever comes in is served by `talk`, until the test leaves."""

    port, tls = 0, None

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self.thread.start()
        assert ready.wait(PATIENCE)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    async def _serve(self, ready):
        self.loop, self.over, self.tasks = asyncio.get_running_loop(), asyncio.Event(), set()
        server = await asyncio.start_server(self._client, "127.0.0.1", self.port, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await self.over.wait()
        server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def _client(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            writer.transport.abort() if writer.transport.is_closing() else writer.close()
