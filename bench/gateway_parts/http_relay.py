"""The floor over HTTP: uvicorn with uvloop and httptools passes each POST on, and judges nothing."""

from __future__ import annotations

import asyncio
import json
import sys

import uvicorn


class Relay:
    """One server behind every session; ids are renumbered, because sessions count alike."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.waiting, self.count = words, {}, 0

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self.child = await asyncio.create_subprocess_exec(*self.words, stdin=pipe, stdout=pipe, limit=1 << 24)
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        while line := await self.child.stdout.readline():
            message = json.loads(line)
            found = self.waiting.pop(message.get("id"), None)
            if found is not None:
                found.set_result(message)

    async def ask(self, message: dict) -> bytes:
        if "id" not in message:
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            return b""
        self.count += 1
        number, theirs = self.count, message["id"]
        self.waiting[number] = answer = asyncio.get_running_loop().create_future()
        self.child.stdin.write(json.dumps({**message, "id": number}).encode() + b"\n")
        return json.dumps({**await answer, "id": theirs}).encode()

    async def __call__(self, scope: dict, receive: object, send: object) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await self.start()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            self.child.kill()
            await self.child.wait()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body, more = b"", True
        while more:
            part = await receive()
            body, more = body + part.get("body", b""), part.get("more_body", False)
        made = await self.ask(json.loads(body)) if body else b""
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(made)).encode()),
            (b"mcp-session-id", b"floor"),
        ]
        await send({"type": "http.response.start", "status": 200 if made else 202, "headers": headers})
        await send({"type": "http.response.body", "body": made})


if __name__ == "__main__":
    uvicorn.run(Relay(sys.argv[2:]), host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
