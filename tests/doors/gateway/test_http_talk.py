"""HTTP/1.1 over real sockets and over torn, hostile ones: every request its own response, in order."""

import asyncio
import contextlib

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway.http_turn import MOST_UNREAD
from doors.gateway.loop_turns import loop_turns
from doors.gateway.talking import body_of, read_by, served
from patience import PATIENCE, soon

GET = b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n"


def post(body, more=b""):
    return b"POST /mcp HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n%b" % (more, len(body), body)


async def echo(turn):
    """Says what came."""
    body = await body_of(turn)
    if body is not None:
        await turn.answer(200, b"", f"{turn.head.method} {turn.head.path} ".encode() + body)


def asked(app, *pieces, until=None):
    """Everything that comes back for these pieces, sent one after the other."""

    async def go():
        async with served(app) as (reader, writer, talks, tasks):
            count = 0
            for piece in pieces:
                writer.write(piece)
                count += len(piece)
                await read_by(talks, count)
            if until is None:
                writer.write_eof()
                found = await asyncio.wait_for(reader.read(), PATIENCE)
            else:
                found = await asyncio.wait_for(reader.readuntil(until), PATIENCE)
            writer.close()
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            return found

    return asyncio.run(go())


def test_a_request_is_answered_and_the_next_one_too():
    found = asked(echo, post(b"one"), post(b"two"), until=b"two")
    assert found.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b"POST /mcp one" in found and b"connection: close" not in found


def test_a_request_may_come_byte_by_byte():
    found = asked(echo, *(post(b"slow")[at : at + 1] for at in range(len(post(b"slow")))), until=b"slow")
    assert found.endswith(b"content-length: 14\r\n\r\nPOST /mcp slow")


def test_requests_that_come_at_once_are_answered_in_their_order():
    async def first_slow(turn):
        body = await body_of(turn)
        await loop_turns(50 if body == b"1" else 1)
        await turn.answer(200, b"", b"[%b]" % body)

    found = asked(first_slow, b"".join(post(b"%d" % n) for n in range(1, 6)), until=b"[5]")
    assert [found.index(b"[%d]" % n) for n in range(1, 6)] == sorted(
        found.index(b"[%d]" % n) for n in range(1, 6)
    )


@pytest.mark.invariant("who sends before it was answered is not read any further")
def test_who_sends_before_it_was_answered_is_not_read_any_further():
    async def go():
        hold = asyncio.Event()

        async def slow(turn):
            await body_of(turn)
            await hold.wait()
            await turn.answer(200, b"", b"x")

        async with served(slow) as (_reader, writer, talks, tasks):
            writer.write(post(b"1") + post(b"2"))
            await soon(lambda: talks and talks[0].count and not talks[0].reads)
            await loop_turns()
            assert not talks[0].reads and len(tasks) == 1
            hold.set()
            await soon(lambda: talks[0].reads)

    asyncio.run(go())


def test_chunks_in_and_chunks_out():
    async def stream(turn):
        body = await body_of(turn)
        await turn.begin(200, b"")
        await turn.write(body, more=True)
        await turn.write(b"", more=False)

    given = b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    found = asked(stream, given, until=b"0\r\n\r\n")
    assert b"transfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n" in found


def test_the_head_of_a_stream_does_not_wait_for_its_first_event():
    async def quiet(turn):
        await turn.begin(200, b"x: y\r\n")
        await turn.part()
        await turn.part()

    assert asked(quiet, GET, until=b"\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\nx: y\r\n")


def test_a_long_body_is_read_no_faster_than_it_is_wanted():
    async def go():
        want = asyncio.Event()
        found = []

        async def slow(turn):
            await want.wait()
            found.append(await body_of(turn))
            await turn.answer(200, b"", b"x")

        async with served(slow) as (reader, writer, talks, _):
            body = b"z" * (20 * MOST_UNREAD)
            writer.write(post(body))
            await soon(lambda: talks and talks[0].count and not talks[0].reads)
            await loop_turns()
            assert not talks[0].reads and talks[0].count < 8 * MOST_UNREAD
            want.set()
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\nx"), PATIENCE)
            assert found == [body]

    asyncio.run(go())


def test_a_client_that_leaves_is_noticed_by_who_waits_for_it():
    async def go():
        seen = asyncio.Queue()

        async def wait(turn):
            await body_of(turn)
            seen.put_nowait(await turn.part())
            await turn.answer(200, b"", b"nobody hears it")

        async with served(wait) as (_, writer, talks, tasks):
            writer.write(GET)
            await read_by(talks, len(GET))
            await loop_turns()
            assert seen.empty()
            writer.close()
            assert await asyncio.wait_for(seen.get(), PATIENCE) is None
            await asyncio.gather(*tasks)

    asyncio.run(go())


def test_a_client_that_reads_slowly_holds_up_its_own_response_only():
    async def go():
        sent = []

        async def much(turn):
            await turn.begin(200, b"")
            for _ in range(200):
                await turn.write(b"x" * 65536, more=True)
                sent.append(1)
            await turn.write(b"", more=False)

        async with served(much) as (reader, writer, talks, tasks):
            writer.write(GET)
            await soon(lambda: talks and talks[0].full)
            # Who did not wait for it would have written all of it by then.
            await loop_turns(500)
            assert len(sent) < 200
            writer.transport.abort()
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            assert reader is not None

    asyncio.run(go())


def test_who_expects_to_be_told_to_go_on_is_told():
    head = post(b"body", b"Expect: 100-continue\r\n").removesuffix(b"body")
    found = asked(echo, head, b"body", until=b"POST /mcp body")
    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /mcp HTTP/1.0\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_the_last_request_of_a_connection_ends_it(request_):
    async def go():
        async with served(echo) as (reader, writer, _, _):
            writer.write(request_)
            return await asyncio.wait_for(reader.read(), PATIENCE)

    found = asyncio.run(go())
    assert b"connection: close\r\n" in found and found.endswith(b"GET /mcp ")


def test_an_answer_may_end_the_connection():
    async def refuse(turn):
        await turn.answer(413, b"", b"no", last=True)

    async def go():
        async with served(refuse) as (reader, writer, _, _):
            writer.write(post(b"x" * 1000)[:200])
            return await asyncio.wait_for(reader.read(), PATIENCE)

    found = asyncio.run(go())
    assert found.startswith(b"HTTP/1.1 413 ") and found.count(b"connection: close\r\n") == 1


def test_what_was_refused_unread_does_not_spoil_the_next_request():
    """The rest of a body nobody wanted is not taken for a request."""

    async def picky(turn):
        if dict(turn.head.headers).get(b"x") == b"no":
            await turn.answer(401, b"", b"no")
            return
        await echo(turn)

    whole = post(b"GET /evil HTTP/1.1\r\n\r\n", b"X: no\r\n")
    found = asked(picky, whole[:-5], whole[-5:], post(b"good"), until=b"good")
    assert b"401" in found and b"evil" not in found


def test_head_has_no_body():
    async def head(turn):
        await turn.answer(405, b"", b"not seen")

    found = asked(head, b"HEAD /mcp HTTP/1.1\r\n\r\n" + GET, until=b"not seen")
    assert found.count(b"content-length: 8\r\n\r\n") == 2 and found.count(b"not seen") == 1


@pytest.mark.parametrize("when", ["before", "during", "never"])
def test_an_application_that_fails_leaves_nobody_waiting(when):
    async def bad(turn):
        if when == "during":
            await turn.begin(200, b"")
        if when != "never":
            raise ValueError("mine")

    async def go():
        async with served(bad) as (reader, writer, _, _):
            writer.write(GET)
            return await asyncio.wait_for(reader.read(), PATIENCE)

    found = asyncio.run(go())
    assert b"mine" not in found
    assert found.startswith(b"HTTP/1.1 200 " if when == "during" else b"HTTP/1.1 500 ")


def test_an_upgrade_is_answered_like_any_request():
    given = b"GET /mcp HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert asked(echo, given, until=b"GET /mcp ").startswith(b"HTTP/1.1 200 OK")


def test_paths_are_decoded():
    assert b"GET /a b " in asked(echo, b"GET /a%20b?q=1 HTTP/1.1\r\n\r\n", until=b"/a b ")


def test_the_connection_ends_after_the_answer_under_way():
    async def go():
        hold = asyncio.Event()

        async def slow(turn):
            await hold.wait()
            await turn.answer(200, b"", b"last")

        async with served(slow) as (reader, writer, talks, _):
            writer.write(GET)
            await read_by(talks, len(GET))
            talks[0].shutdown()
            hold.set()
            found = await asyncio.wait_for(reader.read(), PATIENCE)
            assert found.endswith(b"last") and b"connection: close" in found
        async with served(echo) as (reader, writer, talks, _):
            writer.write(GET)
            await reader.readuntil(b"/mcp ")
            talks[0].shutdown()
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""

    asyncio.run(go())


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.one_of(st.binary(max_size=80), st.sampled_from([GET, post(b"ab"), b"\r\n", b"0\r\n\r\n"])),
        max_size=6,
    )
)
def test_no_bytes_make_it_fall_over(pieces):
    """Whatever comes, nothing is raised and every task ends."""
    trouble = []

    async def go():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: trouble.append(context))
        async with served(echo) as (reader, writer, talks, tasks):
            with contextlib.suppress(OSError):
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0)
                await read_by(talks, sum(map(len, pieces)))
                writer.write_eof()
                await asyncio.wait_for(reader.read(), PATIENCE)
            await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)

    asyncio.run(go())
    assert trouble == []
