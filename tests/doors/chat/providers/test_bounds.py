"""Endpoints that never stop: every library is handed so much of an answer, and no more."""

import asyncio
import gzip
import re

import httpx2
import pytest

from chat_ground import Talk, Tools, opened, told
from checkrein.doors.chat import responses
from checkrein.doors.chat.providers import Providers, bounds
from doors.chat.endpoints.asking import settings
from doors.chat.endpoints.listening import Listening

# What the system keeps between the two ends is sent too.
MOST, ROOM = 96 << 20, 24 << 20


class Endless(Listening):
    """Says `head`, then `piece` until nobody listens, or far more than anybody should take in."""

    def __init__(self, head, piece, *, status="200 OK", kind="text/event-stream", more="", pause=0.0):
        opening = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}connection: close\r\n\r\n"
        self.head, self.piece, self.pause = opening.encode() + head, piece, pause
        self.sent, self.asked = 0, []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def talk(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.lower())
        if length := re.search(rb"content-length: (\d+)", head.lower()):
            await reader.readexactly(int(length[1]))
        writer.write(self.head)
        while self.piece and self.sent < MOST:
            writer.write(self.piece)
            self.sent += len(self.piece)
            await writer.drain()
            await asyncio.sleep(self.pause)


@pytest.fixture
def converse(monkeypatch):
    """A conversation with an endpoint of that kind."""
    monkeypatch.setattr(responses, "_PAUSES", ())
    made = []

    def begin(endpoint, kind="compatible"):
        endpoint.__enter__()
        providers = Providers(settings)
        providers.set("far", kind, base_url=endpoint.url, key="sk-mine-0123456789abcdef", models=["m1"])
        pipeline = opened()
        talk = Talk(pipeline, Tools(pipeline), models=providers)
        talk.chat.update(id=talk.id, model="far/m1")
        made.append((talk, endpoint))
        return talk

    yield begin
    for talk, endpoint in made:
        talk.close()
        endpoint.__exit__()


LINE = {"head": b"data: ", "piece": b"x" * 65_536}
each_kind = pytest.mark.parametrize("kind", ["compatible", "openai", "anthropic", "google"])


@each_kind
@pytest.mark.parametrize(
    "endless",
    [
        LINE,
        {"head": b"", "piece": b"data: x\n" * 8_000},
        {**LINE, "kind": "application/json", "head": b'{"a": "'},
        {**LINE, "status": "400 Bad Request", "kind": "application/json"},
        {"head": b"", "piece": b"{}\n\n" * 16_000, "status": "500 Failed", "kind": "application/json"},
    ],
    ids=["a line", "an event", "an answer", "an error", "an error in lines"],
)
def test_what_never_ends_is_cut_off_and_told(converse, kind, endless, monkeypatch):
    monkeypatch.setattr(bounds, "LARGEST", 1 << 20)
    endpoint = Endless(**endless)
    talk = converse(endpoint, kind)
    assert talk.finish("hello") == "error"
    (error,) = told(talk, "error")
    assert error["error"] in ("malformed", "refused", "server", "network"), error
    assert endpoint.sent < bounds.LARGEST + ROOM
    talk.check()


@each_kind
def test_an_answer_is_not_taken_packed(converse, kind):
    packed = gzip.compress(b"data: " + b"\0" * (32 << 20))
    endpoint = Endless(packed, b"", more=f"content-encoding: gzip\r\ncontent-length: {len(packed)}\r\n")
    talk = converse(endpoint, kind)
    assert talk.finish("hello") == "error"
    assert told(talk, "error")[0]["error"] in ("malformed", "network")
    assert all(b"accept-encoding: identity\r\n" in each for each in endpoint.asked)
    assert all(each.count(b"accept-encoding:") == 1 for each in endpoint.asked)
    talk.check()


@pytest.mark.parametrize("kind", ["compatible", "openai", "anthropic"])
def test_who_only_says_that_it_is_there_is_given_up(converse, kind, monkeypatch):
    monkeypatch.setattr(responses, "LONGEST_SILENCE", 0.3)
    talk = converse(Endless(b": here\n\n", b": here\n\n", pause=0.05), kind)
    assert talk.finish("hello") == "error"
    assert told(talk, "error")[0]["error"] == "timeout"
    talk.check()


def test_a_summary_and_a_list_are_bounded_too(converse):
    endpoint = Endless(b'{"data": [', b"{}," * 20_000, kind="application/json")
    talk = converse(endpoint)
    assert not talk.chat.provider_test(name="far")["ok"]
    assert endpoint.sent < bounds.LARGEST + ROOM


def of(pieces, kind="text/event-stream", status=200):
    class Pieces(httpx2.AsyncByteStream):
        async def __aiter__(self):
            for each in pieces:
                yield each

    async def read():
        response = httpx2.Response(status, headers={"content-type": kind}, stream=Pieces())
        return b"".join([each async for each in bounds.bounded(response).stream])

    return asyncio.run(read())


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("cut", [1, 2, 3, 1000])
def test_a_long_answer_of_many_events_comes_whole_however_it_is_cut(monkeypatch, end, cut):
    monkeypatch.setattr(bounds, "LARGEST", 100)
    whole = (b"data: " + b"x" * 60 + end) * 20
    assert of([whole[at : at + cut] for at in range(0, len(whole), cut)] if cut < 1000 else [whole]) == whole


def test_an_event_is_as_long_as_it_may_be_and_no_longer(monkeypatch):
    monkeypatch.setattr(bounds, "LARGEST", 100)
    assert len(of([b"x" * 60, b"y" * 40])) == 100
    with pytest.raises(httpx2.DecodingError):
        of([b"x" * 60, b"y" * 41])
    with pytest.raises(httpx2.DecodingError):
        of([b"x\n\n" * 20, b"y\n\n" * 20], "application/json; charset=utf-8")


def test_an_error_is_no_stream_whatever_it_calls_itself(monkeypatch):
    monkeypatch.setattr(bounds, "LARGEST", 100)
    with pytest.raises(httpx2.DecodingError):
        of([b"x\n\n" * 20, b"y\n\n" * 20], status=500)


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain; charset=utf-8", ""])
def test_a_stream_of_small_events_ends_too(monkeypatch, kind):
    monkeypatch.setattr(bounds, "LONGEST", 1_000)
    monkeypatch.setattr(bounds, "LARGEST", 100)
    assert len(of([b"x\n\n"] * 333, kind)) == 999
    with pytest.raises(httpx2.DecodingError):
        of([b"x\n\n"] * 334, kind)
