"""Requests that could be read in two ways, or never end: refused, cut, and never mixed up with others."""

import asyncio
import contextlib

import pytest
import uvloop

from checkrein.doors.gateway.http_talk import LARGEST_HEAD, MOST_BEHIND, MOST_LINES
from doors.gateway.loop_turns import loop_turns
from doors.gateway.talking import body_of, read_by, served
from patience import PATIENCE, soon

GET = b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n"
EVIL = b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST /mcp HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
REFUSED = b"HTTP/1.1 400 Bad Request\r\n"
LAST, LAST_ANSWER = b"GET /last HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def post(body, more=b""):
    return b"POST /mcp HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n%b" % (more, len(body), body)


class App:
    """Says what it heard; one that is `held` waits until it is let go."""

    def __init__(self, held=False, streams=False, reads=True):
        self.heard, self._streams, self._reads = [], streams, reads
        self.go = asyncio.Event()
        if not held:
            self.go.set()

    async def __call__(self, turn):
        body = await body_of(turn) if self._reads else b""
        self.heard.append((turn.head.path, body, dict(turn.head.headers)))
        if self._streams:
            await turn.begin(200, b"")
            await turn.write(b"begun", more=True)
        await self.go.wait()
        if self._streams:
            await turn.write(b"ended", more=False)
        else:
            await turn.answer(200, b"", b"[%b %b]" % (turn.head.path.encode(), body or b""))


def asked(app, *pieces, loop=asyncio.new_event_loop, let_go=True):
    """What comes back for these pieces, and whether the connection ended.

    One more request follows them, under a path of its own: it is answered exactly where the connection lives.
    """

    async def last_of_all(turn):
        if turn.head.path == "/last":
            await turn.answer(200, b"", b"")
        else:
            await app(turn)

    async def go():
        async with served(last_of_all) as (reader, writer, talks, _):
            count = 0
            for piece in pieces:
                writer.write(piece)
                count += len(piece)
                await read_by(talks, count)
                await loop_turns()
            if let_go and isinstance(app, App):
                app.go.set()
            writer.write(LAST)
            found = await come_back(reader)
            return found.removesuffix(LAST_ANSWER), not found.endswith(LAST_ANSWER)

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(go())


async def come_back(reader):
    """Everything until the connection ends, or its last request is answered."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while not found.endswith(LAST_ANSWER) and (part := await reader.read(65_536)):
            found += part
    return found


def chunks(text):
    return CHUNKED + b"\r\n" + text


TWO_WAYS = {
    "a length and chunks": b"POST /mcp HTTP/1.1\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /mcp HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 0\r\n\r\nabc",
    "one length twice": b"POST /mcp HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    **{
        f"a length {text!r}": b"POST /mcp HTTP/1.1\r\nContent-Length: " + text + b"\r\n\r\nabc"
        for text in (
            b"+3",
            b"-3",
            b"3,3",
            b"0x3",
            b"3 3",
            b"",
            b"3a",
            b"1e1",
            b"18446744073709551619",
            b"\x0b3",
        )
    },
    **{
        f"encoding {text!r}": b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: "
        + text
        + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        for text in (
            *(b"identity", b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"xchunked", b",chunked"),
            *(b"chunked;q=1", b"\x0bchunked", b"identity\r\nTransfer-Encoding: chunked"),
        )
    },
    **{
        f"a chunk {text!r}": chunks(text)
        for text in (
            *(b"0x3\r\nabc\r\n0\r\n\r\n", b"+3\r\nabc\r\n0\r\n\r\n", b"-1\r\nabc\r\n0\r\n\r\n"),
            *(b"3 \r\nabc\r\n0\r\n\r\n", b"3;a=b\nabc\r\n0\r\n\r\n", b"3;a=\0\r\nabc\r\n0\r\n\r\n"),
            *(b"3\r\nabcd\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"10000000000000003\r\nabc\r\n0\r\n\r\n"),
        )
    },
    **{
        f"a header {text!r}": b"GET /mcp HTTP/1.1\r\nHost: x\r\n" + text + b"\r\n\r\n"
        for text in (
            *(b"X: a\r\n b", b"Content-Length:\r\n 3", b"X: a\0b", b"X: a\rb", b"X: a\nY: b", b"X : a"),
            *(b"Content-Length : 3", b"Xabc", b": a", b"X: a\x01b", b"X\0: a", b"X\xff: a", b" X: a"),
        )
    },
    **{
        f"a target {text!r}": b"GET " + text + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        for text in (
            *(b"http://evil.example/mcp", b"http://x@evil.example/mcp", b"http://x:1/mcp", b"http://a@x/mcp"),
            *(b"*", b"x:1", b"mcp", b"?x", b"/mcp\0", b"/m\xffcp"),
        )
    },
    "no host for a whole address": b"GET http://x/mcp HTTP/1.1\r\n\r\n",
    "two hosts for a whole address": b"GET http://x/mcp HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
    "connect": b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n",
    "connect to an address": b"CONNECT http://x/mcp HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare line feeds": b"GET /mcp HTTP/1.1\nHost: x\n\n",
    "another version": b"GET /mcp HTTP/1.2\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("given", TWO_WAYS.values(), ids=TWO_WAYS)
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_read(given):
    app = App()
    found, ended = asked(app, given + EVIL)
    assert found.startswith(REFUSED) and found.count(b"HTTP/1.1 ") == 1 and ended
    assert not [path for path, body, _ in app.heard if body is not None and path == "/evil"]


def test_a_whole_address_that_names_our_host_is_a_path():
    found, _ = asked(App(), b"GET http://x/mcp HTTP/1.1\r\nHost: x\r\n\r\n")
    assert found.endswith(b"[/mcp ]")


@pytest.mark.invariant("what comes behind a body (trailers) is no header of its request")
def test_what_comes_behind_a_body_is_no_header():
    app = App()
    asked(app, chunks(b"3\r\nabc\r\n0\r\nAuthorization: Bearer t\r\nHost: evil\r\n\r\n") + GET)
    assert [heard[1] for heard in app.heard] == [b"abc", b""]
    assert app.heard[0][2] == {b"host": b"x", b"transfer-encoding": b"chunked"}
    assert app.heard[1][2] == {b"host": b"x"}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("body", [post(EVIL, b"Upgrade: h2c\r\nConnection: Upgrade\r\n"), None])
@pytest.mark.invariant("the body of who wishes it is a body, and no request")
def test_the_body_of_who_wishes_another_protocol_is_a_body(loop, apart, body):
    """Some clients wish it with the first request they send."""
    if body is None:
        given = CHUNKED + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
        body = given % (len(EVIL), EVIL)
    head, _, rest = body.partition(b"\r\n\r\n")
    app = App()
    pieces = [head + b"\r\n\r\n", rest, GET] if apart else [body + GET]
    found, ended = asked(app, *pieces, loop=loop)
    assert [heard[:2] for heard in app.heard] == [("/mcp", EVIL), ("/mcp", b"")]
    assert found.count(b"HTTP/1.1 200 OK") == 2 and not ended


def test_who_wishes_another_protocol_and_an_end_gets_the_end():
    found, ended = asked(
        App(), b"GET /mcp HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade, close\r\n\r\n" + EVIL
    )
    assert found.endswith(b"[/mcp ]") and ended


@pytest.mark.parametrize("loop", LOOPS)
def test_what_cannot_be_read_is_said_in_its_turn(loop):
    """Asked properly is answered properly, whatever comes behind it."""
    found, ended = asked(App(held=True), GET + post(b"two") + b"nonsense\r\n\r\n", loop=loop)
    parts = found.split(b"HTTP/1.1 ")[1:]
    assert [part[:3] for part in parts] == [b"200", b"200", b"400"] and ended
    assert parts[0].endswith(b"[/mcp ]") and parts[1].endswith(b"[/mcp two]")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.invariant("that is said in its turn, never within another response")
def test_nothing_is_said_within_another_response(loop):
    found, ended = asked(App(held=True, streams=True), GET, b"nonsense\r\n\r\n", loop=loop)
    first, _, second = found.partition(REFUSED)
    assert first.endswith(b"5\r\nbegun\r\n5\r\nended\r\n0\r\n\r\n") and second and ended


def test_a_body_that_breaks_off_into_nonsense_ends_a_response_that_has_begun():
    found, ended = asked(
        App(held=True, streams=True, reads=False), chunks(b"3\r\nabc\r\n"), b"zz\r\n", let_go=False
    )
    assert found.endswith(b"5\r\nbegun\r\n") and b" 400 " not in found and ended


def test_a_request_that_was_not_read_to_its_end_is_not_answered_by_the_one_before():
    found, ended = asked(App(held=True), GET + chunks(b"3\r\nabc\r\nzz\r\n"))
    parts = found.split(b"HTTP/1.1 ")[1:]
    assert [part[:3] for part in parts] == [b"200", b"400"] and ended


@pytest.mark.invariant("who was not told to send its body may leave it out")
def test_who_was_not_told_to_send_its_body_begins_anew():
    """Whether its body still comes cannot be known: the next request could be taken for it."""

    async def refuse(turn):
        await turn.answer(401, b"", b"no")

    head = post(b"x" * 40, b"Expect: 100-continue\r\n").removesuffix(b"x" * 40)
    found, ended = asked(refuse, head, GET)
    assert found.startswith(b"HTTP/1.1 401 ") and b"connection: close\r\n" in found and ended
    assert found.count(b"HTTP/1.1 ") == 1


def test_an_old_client_is_never_told_to_go_on():
    given = b"POST /mcp HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab"
    found, _ = asked(App(), given)
    assert found.startswith(b"HTTP/1.1 200 OK")


async def flooded(writer, talks, piece, most):
    """Send so much of it, each piece once the one before was read, as long as anybody reads."""
    count = talks[0].count
    for _ in range(0, most, len(piece)):
        if writer.transport.is_closing():
            return
        writer.write(piece)
        count += len(piece)
        await read_by(talks, count)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (GET[:-2], b"X: " + b"a" * 8_000 + b"\r\n"),
        (GET[:-2] + b"X: ", b"a" * 8_000),
        (b"GET /", b"a" * 8_000),
        (chunks(b"3\r\nabc\r\n0\r\n"), b"X: " + b"a" * 8_000 + b"\r\n"),
        (chunks(b"3\r\nabc\r\n0\r\nX: "), b"a" * 8_000),
        (chunks(b"3;"), b"a" * 8_000),
    ],
    ids=["headers", "a header", "an address", "trailers", "a trailer", "an extension"],
)
@pytest.mark.parametrize("busy", [False, True])
def test_what_has_no_end_is_cut_also_while_another_request_is_answered(loop, begin, piece, busy):
    async def go():
        app = App(held=True)
        async with served(app) as (reader, writer, talks, _):
            if busy:
                writer.write(GET)
                await read_by(talks, len(GET))
            writer.write(begin)
            await read_by(talks, busy * len(GET) + len(begin))
            await flooded(writer, talks, piece, 4 * LARGEST_HEAD)
            # A request that waits behind another is not even read.
            assert talks[0]._deaf or not talks[0].reads
            assert talks[0]._loose <= 3 * LARGEST_HEAD
            app.go.set()
            with contextlib.suppress(ConnectionError):
                found = await asyncio.wait_for(reader.read(), PATIENCE)
                assert found.count(b"[/mcp ]") == busy and found.count(REFUSED) <= 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(go())


@pytest.mark.parametrize("end", [b"", b"\r\n"])
@pytest.mark.invariant("headers and trailers without end are cut, also while an earlier request is answered")
def test_short_headers_are_cut_before_they_fill_the_memory(end):
    """Each takes far more room than it has letters."""

    async def go():
        app = App()
        async with served(app) as (reader, writer, talks, _):
            writer.write(GET[:-2] + b"a:\r\n" * (2 * MOST_LINES) + end)
            found = await asyncio.wait_for(reader.read(), PATIENCE)
            assert found.startswith(REFUSED) and app.heard == []
            assert talks[0]._headers == [] and talks[0]._deaf

    asyncio.run(go())


def test_as_many_headers_as_anybody_may_want_to_refuse_are_handed_over():
    app = App()
    asked(app, GET[:-2] + b"".join(b"a%d:\r\n" % number for number in range(MOST_LINES - 1)) + b"\r\n")
    assert len(app.heard[0][2]) == MOST_LINES


def test_a_long_body_in_many_chunks_is_no_head_without_end():
    piece = b"2000\r\n" + b"a" * 0x2000 + b"\r\n"
    found, ended = asked(App(), chunks(piece * 40 + b"0\r\n\r\n"))
    assert found.count(b"a") >= 40 * 0x2000 and not ended


@pytest.mark.parametrize("loop", LOOPS)
def test_requests_wait_behind_one_another_up_to_a_number(loop):
    async def go():
        app, gate = App(), asyncio.Event()

        async def held(turn):
            await gate.wait()
            await app(turn)

        async with served(held) as (reader, writer, talks, _):
            writer.write(GET * (MOST_BEHIND * 4))
            await soon(lambda: talks and len(talks[0]._behind) >= MOST_BEHIND)
            assert len(talks[0]._behind) == MOST_BEHIND
            gate.set()
            found = await asyncio.wait_for(reader.read(), PATIENCE)
            assert found.count(b"[/mcp ]") == MOST_BEHIND + 1 and found.count(REFUSED) == 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(go())


@pytest.mark.parametrize("loop", LOOPS)
def test_every_answer_goes_to_its_own_request_however_they_are_cut(loop):
    given = b"".join(post(b"%d" % n, b"X: %d\r\n" % n) for n in range(40))

    async def go(size):
        async with served(App()) as (reader, writer, *_):
            for at in range(0, len(given), size):
                writer.write(given[at : at + size])
                await asyncio.sleep(0)
            found = await asyncio.wait_for(reader.readuntil(b"[/mcp 39]"), PATIENCE)
            said = [part.partition(b"]")[0] for part in found.split(b"[/mcp ")[1:]]
            assert said == [b"%d" % n for n in range(40)]

    with asyncio.Runner(loop_factory=loop) as runner:
        for size in (1, 7, 64, 1_000, len(given)):
            runner.run(go(size))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_left_is_noticed_although_it_sent_nonsense_before(loop):
    async def go():
        left = asyncio.Event()

        async def listen(turn):
            while await turn.part() is not None:
                pass
            left.set()

        async with served(listen) as (_, writer, talks, _):
            writer.write(GET)
            await read_by(talks, len(GET))
            await loop_turns()
            writer.write(b"nonsense\r\n\r\n")
            await read_by(talks, len(GET) + 12)
            assert not left.is_set()
            writer.close()
            await asyncio.wait_for(left.wait(), PATIENCE)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(go())
