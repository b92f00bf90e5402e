"""A provider that answers at once: OpenAI's streaming protocol in a process of its own, as bare as can be."""

from __future__ import annotations

import asyncio
import json
import sys

WORDS = int(sys.argv[1])
PAUSE = float(sys.argv[2])


def chunk(delta: dict, finish: str | None = None) -> bytes:
    body = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            for number in range(WORDS):
                writer.write(chunk({"role": "assistant", "content": f"word{number} "}))
                await writer.drain()
                if PAUSE:
                    await asyncio.sleep(PAUSE)
            end = b"data: [DONE]\n\n"
            writer.write(chunk({}, "stop") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
