"""Many sessions at once over HTTP, each calling one tool again and again; prints what came of it as JSON.

`crowd.py PORT TOOL SESSIONS CALLS [TOKEN ...]`. Raw sockets, so that the load costs little beside what is
measured; tokens are shared out among the sessions.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "crowd", "version": "1.0"},
}


class Session:
    def __init__(self, port: int, token: str) -> None:
        self.port, self.number = port, 0
        self.headers = {
            "Host": f"127.0.0.1:{port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        found = await self.ask("initialize", INITIALIZE)
        assert "result" in found, found
        self.headers["MCP-Protocol-Version"] = INITIALIZE["protocolVersion"]
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def ask(self, method: str, params: dict) -> dict:
        self.number += 1
        return await self.post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})

    async def post(self, message: dict) -> dict:
        return await self.send("POST", json.dumps(message).encode())

    async def close(self) -> None:
        await self.send("DELETE", b"")
        self.writer.close()

    async def send(self, method: str, body: bytes) -> dict:
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        line = f"{method} /mcp HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(line.encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status, *rest = head.split("\r\n")
        found = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in rest}
        if "mcp-session-id" in found:
            self.headers["Mcp-Session-Id"] = found["mcp-session-id"]
        raw = await self.body(found)
        code = status.split(" ")[1]
        if method == "DELETE" or code == "202":
            return {}
        assert code == "200", (status, raw)
        lines = raw.decode().splitlines()
        events = [line[6:] for line in lines if line.startswith("data: {")]
        return json.loads(events[-1] if events else raw)

    async def body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", 0)))
        raw = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            raw += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")
        return raw


async def main(port: int, tool: str, sessions: int, calls: int, tokens: list[str]) -> dict:
    crowd = [Session(port, tokens[number % len(tokens)] if tokens else "") for number in range(sessions)]
    for each in crowd:
        await each.open()
    times = []

    async def work(session: Session) -> None:
        for number in range(calls):
            begin = time.perf_counter()
            params = {"name": tool, "arguments": {"message": f"call {number}"}}
            found = await session.ask("tools/call", params)
            times.append(time.perf_counter() - begin)
            assert found["result"]["content"][0]["text"] == f"Echo: call {number}", found

    begin = time.perf_counter()
    await asyncio.gather(*(work(each) for each in crowd))
    taken = time.perf_counter() - begin
    times.sort()
    for each in crowd:
        await each.close()
    return {"rate": len(times) / taken, "p50": times[len(times) // 2], "p95": times[int(len(times) * 0.95)]}


if __name__ == "__main__":
    try:
        import uvloop as loops
    except ImportError:
        loops = asyncio
    port, tool, sessions, calls, *tokens = sys.argv[1:]
    print(json.dumps(loops.run(main(int(port), tool, int(sessions), int(calls), tokens))))
