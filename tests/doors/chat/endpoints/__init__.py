"""Endpoints of model providers on loopback that say what a script says, faults included.

    with fake_openai([Turn("Hello there")]) as endpoint:
        endpoint.url, endpoint.requests

Each request takes the next turn; the last one is said again for ever. A turn may also be a function of the
request's JSON.
"""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field

from doors.chat.endpoints.listening import Listening

MODELS = ("first-model", "second-model")


@dataclass
class Call:
    """A tool call; `arguments` as they go over the wire, so they may be broken."""

    name: str
    arguments: object = field(default_factory=dict)
    id: str = ""
    pieces: int = 3

    @property
    def wire(self):
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def parts(self):
        text = self.wire
        step = max(1, -(-len(text) // self.pieces))
        return [text[at : at + step] for at in range(0, len(text), step)]


@dataclass
class Turn:
    """One answer. Text is said word by word, or as the given pieces.

    `fault`: a status such as "429" or "500", "cut" (the connection breaks), "short" (it ends, but not the
    answer), "malformed" (an event is no JSON), "too long", "filtered", "hang" (nothing comes), "error" (told
    within the stream), "redirect".
    """

    text: object = ""
    reasoning: object = ""
    calls: tuple = ()
    usage: tuple = (11, 7)
    fault: str = ""
    retry_after: str = "7"
    first: float = 0.0
    between: float = 0.0

    def __post_init__(self):
        self.text, self.reasoning = _pieces(self.text), _pieces(self.reasoning)
        self.calls = tuple(self.calls)


@dataclass
class Request:
    method: str
    path: str
    query: str
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def _pieces(said):
    if not isinstance(said, str):
        return list(said)
    words = said.split(" ")
    return [word if at == 0 else f" {word}" for at, word in enumerate(words)] if said else []


class Endpoint(Listening):
    """The part all three share: HTTP, streaming and faults. `speech` knows a provider's words."""

    def __init__(self, speech, script=(), *, models=MODELS, key=None, tls=None):
        self.speech, self.script, self.models = speech, list(script) or [Turn("Hello there")], models
        self.key, self.tls = key, tls
        self.requests, self.left = [], 0

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def asked(self):
        """The requests that were for an answer of a model."""
        return [each for each in self.requests if each.method == "POST"]

    async def talk(self, reader, writer):
        while (request := await _read(reader)) is not None:
            self.requests.append(request)
            if not await self._answer(request, reader, writer):
                break

    async def _answer(self, request, reader, writer):
        """Whether the connection stays."""
        if self.key is not None and self.speech.key(request.headers) != self.key:
            return await self._plain(writer, 401, self.speech.error(401, f"Wrong key {self._shown(request)}"))
        if request.method == "GET":
            return await self._plain(writer, 200, self.speech.list(self.models, request))
        turn = self._turn(request)
        await asyncio.sleep(turn.first)
        if turn.fault == "redirect":
            return await self._plain(writer, 307, {}, {"location": f"http://localhost:{self.port}/elsewhere"})
        if turn.fault.isdigit():
            headers = {"retry-after": turn.retry_after} if turn.fault in ("429", "503") else {}
            body = self.speech.error(int(turn.fault), "Something is wrong.")
            return await self._plain(writer, int(turn.fault), body, headers)
        if turn.fault in ("too long", "filtered"):
            return await self._plain(writer, 400, self.speech.refusal(turn.fault))
        watch = asyncio.ensure_future(self._gone(reader))
        try:
            return await self._stream(turn, request, writer, watch)
        except ConnectionError:
            # Whoever is reset hears it first where it writes.
            self.left += not watch.done()
            return False
        finally:
            watch.cancel()

    async def _stream(self, turn, request, writer, watch):
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        await writer.drain()
        if turn.fault == "hang":
            await watch
            return False
        events = list(self.speech.events(turn, request))
        ends = {
            "cut": -(-len(events) // 2),
            "short": self.speech.before_the_end(events),
            "malformed": 2,
            "error": 2,
        }
        for event in events[: ends.get(turn.fault, len(events))]:
            await self._chunk(writer, event)
            if turn.between:
                await asyncio.wait([watch], timeout=turn.between)
            if watch.done():
                return False
        if turn.fault == "malformed":
            await self._chunk(writer, self.speech.malformed())
        if turn.fault == "error":
            await self._chunk(writer, self.speech.told_error())
        if turn.fault == "cut":
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _gone(self, reader):
        """Ends when the client leaves: it has nothing more to say meanwhile."""
        # Whoever leaves with words unread is reset.
        with contextlib.suppress(ConnectionError):
            if await reader.read(1):
                return
        self.left += 1

    def _turn(self, request):
        turn = self.script[0] if len(self.script) == 1 else self.script.pop(0)
        return turn(request.json) if callable(turn) else turn

    def _shown(self, request):
        return self.speech.key(request.headers)

    @staticmethod
    async def _chunk(writer, text):
        data = text.encode()
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await writer.drain()

    @staticmethod
    async def _plain(writer, status, body, headers=None):
        data = json.dumps(body).encode()
        head = [f"HTTP/1.1 {status} Said", "content-type: application/json", f"content-length: {len(data)}"]
        head += [f"{name}: {value}" for name, value in (headers or {}).items()]
        writer.write("\r\n".join([*head, "", ""]).encode() + data)
        await writer.drain()
        return True


async def _read(reader):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, target, _ = head[0].split(" ", 2)
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    path, _, query = target.partition("?")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, query, headers, body)
