"""Between a conformance suite and the gateway: plain tool names on one side, `server__tool` on the other.

The suites call tools by names of their own and send no token. Names are mapped in tools/list, tools/call,
prompts/list, prompts/get, completion references and the `Mcp-Name` header; `Host` and `Origin` where they
name this port; `Authorization` is added. Everything else passes byte for byte: nothing is repaired here.
"""

import asyncio
import json
import threading

_NAMED = ("tools/call", "prompts/get")
_LISTS = ("tools", "prompts")


class Shim:
    """A loopback port that leads to the gateway's."""

    def __init__(self, port, token, server):
        self.target, self.token, self.prefix = port, token, f"{server}__"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        starting = asyncio.start_server(self._meet, "127.0.0.1", 0, limit=1 << 24)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    @property
    def url(self):
        return f"http://localhost:{self.port}/mcp"

    async def _meet(self, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self.target, limit=1 << 24)
        ways = [
            asyncio.ensure_future(self._requests(reader, back)),
            asyncio.ensure_future(self._answers(there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            writer.close()
            back.close()

    async def _requests(self, reader, writer):
        while True:
            lines = await _head(reader)
            body = await reader.readexactly(int(_value(lines, "content-length") or 0))
            changed = self._inward(body)
            kept = [self._header(line, len(changed)) for line in lines[1:]]
            writer.write(
                _joined([lines[0], *kept, b"Authorization: Bearer " + self.token.encode()]) + changed
            )
            await writer.drain()

    async def _answers(self, reader, writer):
        while True:
            lines = await _head(reader)
            if (_value(lines, "transfer-encoding") or "").lower() == "chunked":
                writer.write(_joined(lines))
                await self._chunks(reader, writer)
            else:
                body = self._outward(await reader.readexactly(int(_value(lines, "content-length") or 0)))
                writer.write(_joined([_resized(line, len(body)) for line in lines]) + body)
            await writer.drain()

    async def _chunks(self, reader, writer):
        """A stream, event by event; what is no event passes as it came."""
        held = b""
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            held += (await reader.readexactly(size + 2))[:-2]
            whole, found, held = held.rpartition(b"\n") if size else (held, b"", b"")
            out = b"\n".join(self._event(line) for line in whole.split(b"\n")) + found if whole else found
            writer.write(
                (b"%x\r\n%b\r\n" % (len(out), out) if out else b"") + (b"" if size else b"0\r\n\r\n")
            )
            await writer.drain()
            if not size:
                return

    def _event(self, line):
        if not line.startswith(b"data: "):
            return line if not line.startswith(b"{") else self._outward(line)
        return b"data: " + self._outward(line[6:].rstrip(b"\r")) + (b"\r" if line.endswith(b"\r") else b"")

    def _header(self, line, size):
        name, _, value = line.partition(b":")
        low = name.lower()
        if low == b"mcp-name" and not value.strip().startswith(b"test://"):
            at = len(value) - len(value.lstrip(b" \t"))
            return name + b":" + value[:at] + self.prefix.encode() + value[at:]
        if low in (b"host", b"origin"):
            ours, theirs = b":%d" % self.port, b":%d" % self.target
            local = any(each + ours in value for each in (b"localhost", b"127.0.0.1"))
            return line.replace(ours, theirs) if local else line
        return _resized(line, size)

    def _inward(self, body):
        message = _object(body)
        params = message.get("params")
        if not isinstance(params, dict):
            return body
        holder = params if message.get("method") in _NAMED else params.get("ref")
        if not isinstance(holder, dict) or not isinstance(holder.get("name"), str):
            return body
        holder["name"] = self.prefix + holder["name"]
        return json.dumps(message).encode()

    def _outward(self, body):
        message = _object(body)
        result = message.get("result")
        found = [each for key in _LISTS for each in (result.get(key, ()) if isinstance(result, dict) else ())]
        if not found:
            return body
        for each in found:
            each["name"] = each["name"].removeprefix(self.prefix)
        return json.dumps(message).encode()


async def _head(reader):
    return (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")


def _joined(lines):
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _value(lines, name):
    for line in lines[1:]:
        key, _, value = line.partition(b":")
        if key.decode().lower() == name:
            return value.decode().strip()
    return None


def _resized(line, size):
    return b"content-length: %d" % size if line.lower().startswith(b"content-length:") else line


def _object(body):
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
