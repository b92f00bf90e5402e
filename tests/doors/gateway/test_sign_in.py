import asyncio

import pytest

from checkrein.doors.gateway import sign_in as module
from checkrein.doors.gateway.pipes import PipeError
from checkrein.doors.gateway.sign_in import LARGEST_HEAD, MOST_CONNECTIONS, SignIn
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import soon

PAGE = "https://accounts.example/authorize?x=1"


def run(use, **more):
    """A person was sent away; `use` plays whoever comes back."""
    shown = []

    async def main():
        way = SignIn("mail", shown.append, **more)
        await way.open()
        waiting = asyncio.create_task(way(PAGE))
        await soon(lambda: shown)
        try:
            return await use(way, waiting)
        finally:
            await way.close()
            await asyncio.gather(waiting, return_exceptions=True)
            await soon(lambda: len(asyncio.all_tasks()) == 1)

    return run_on_moved_loop(main())


async def sent(way, raw):
    """All that comes back for these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
    try:
        writer.write(raw)
        return (await reader.read()).decode()
    finally:
        writer.close()


def asking(way, query, *, path=None, host=None, method="GET", version="HTTP/1.1"):
    path = way.redirect_uri.partition(str(way.port))[2] if path is None else path
    host = f"127.0.0.1:{way.port}" if host is None else host
    return f"{method} {path}?{query} {version}\r\nHost: {host}\r\n\r\n".encode()


def test_what_a_browser_brings_back_is_handed_over_and_the_page_repeats_nothing():
    async def use(way, waiting):
        page = await sent(way, asking(way, "code=c%201&state=s&iss=https%3A%2F%2Fa.example&other=<b>"))
        found = await waiting
        assert (found.code, found.state, found.iss) == ("c 1", "s", "https://a.example")
        assert "c 1" not in repr(found)
        head, _, body = page.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 OK") and "You can close this window" in body
        for header in (
            "content-security-policy: default-src 'none'",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "connection: close",
        ):
            assert header in head
        assert "<b>" not in page and "c%20" not in page and "a.example" not in page

    run(use)


@pytest.mark.invariant("only who was sent here by the sign-in page knows the path")
def test_it_listens_on_this_machine_only_under_a_path_nobody_guesses():
    async def use(way, _):
        (listening,) = way._server.sockets
        assert listening.getsockname()[0] == "127.0.0.1"
        assert way.redirect_uri.startswith(f"http://127.0.0.1:{way.port}/callback/")
        assert len(way.redirect_uri.rpartition("/")[2]) >= 43
        return way.redirect_uri

    assert run(use) != run(use)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "state=s",
        "code=a&code=b",
        "code=a&state=s&state=t",
        "code=a&error=b",
        "code=" + "a" * 9000,
        "code=%FF",
        "code=%C3%A9&state=s",
        "&".join(["x=1"] * 40) + "&code=a",
    ],
)
def test_what_cannot_be_an_answer_is_not_taken(query):
    async def use(way, waiting):
        assert (await sent(way, asking(way, query))).startswith("HTTP/1.1 400")
        assert not waiting.done()
        assert (await sent(way, asking(way, "code=a"))).startswith("HTTP/1.1 200")
        assert (await waiting).state is None

    run(use)


@pytest.mark.invariant("an answer is taken once, at exactly this path, under no other name (DNS rebinding)")
def test_other_requests_find_nothing():
    async def use(way, waiting):
        others = [
            {"path": "/"},
            {"path": "/callback/"},
            {"host": "localhost"},
            {"host": f"evil.example:{way.port}"},
            {"method": "POST"},
            {"method": "HEAD"},
        ]
        for each in others:
            assert (await sent(way, asking(way, "code=a", **each))).startswith("HTTP/1.1 404")
        twice = asking(way, "code=a").replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n")
        assert (await sent(way, twice)).startswith("HTTP/1.1 404")
        assert not waiting.done()

    run(use)


@pytest.mark.parametrize(
    "raw",
    [b"\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n", b"\xff\xfe / HTTP/1.1\r\n\r\n", b"x" * 20_000],
)
def test_what_is_no_request_is_told_so(raw):
    async def use(way, waiting):
        assert (await sent(way, raw)).startswith("HTTP/1.1 400")
        assert not waiting.done()

    run(use)


def test_a_head_in_one_piece_may_not_be_longer_than_one_in_many():
    async def use(way, _):
        padded = asking(way, "code=a").replace(b"\r\n\r\n", b"\r\nX: " + b"x" * LARGEST_HEAD + b"\r\n\r\n")
        assert (await sent(way, padded)).startswith("HTTP/1.1 400")

    run(use)


async def turned_away(way):
    try:
        return await sent(way, asking(way, "code=a")) == ""
    except ConnectionError:
        return True


def test_whoever_says_nothing_keeps_nobody_out():
    async def use(way, waiting):
        silent = [await asyncio.open_connection("127.0.0.1", way.port) for _ in range(MOST_CONNECTIONS)]
        await soon(lambda: len(way._visitors) == MOST_CONNECTIONS)
        assert await turned_away(way)
        await pass_seconds(2 * module.HEAD_SECONDS)
        await soon(lambda: not way._visitors)
        assert (await sent(way, asking(way, "code=a"))).startswith("HTTP/1.1 200")
        assert (await waiting).code == "a"
        for _, writer in silent:
            writer.close()

    run(use)


@pytest.mark.invariant("an answer is taken once, at exactly this path, under no other name (DNS rebinding)")
def test_an_answer_is_taken_once_and_then_nobody_listens():
    async def use(way, waiting):
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        await soon(lambda: way._visitors)
        await sent(way, asking(way, "code=first"))
        writer.write(asking(way, "code=second"))
        assert (await reader.read()).startswith(b"HTTP/1.1 404")
        writer.close()
        assert (await waiting).code == "first"
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", way.port)
        with pytest.raises(PipeError, match="asks for another"):
            await way(PAGE)

    run(use)


@pytest.mark.invariant("before somebody was sent away nobody can come back")
def test_before_anybody_was_sent_away_nobody_comes_back():
    async def main():
        way = SignIn("mail", print)
        await way.open()
        assert (await sent(way, asking(way, "code=a"))).startswith("HTTP/1.1 404")
        await way.close()
        await way.close()

    asyncio.run(main())


def test_the_page_said_no():
    async def use(way, waiting):
        page = await sent(
            way, asking(way, "error=access_denied&error_description=because%1B%5B31m+no&state=s")
        )
        assert "not signed in" in page and "access_denied" not in page
        with pytest.raises(PipeError, match=r"said no \(access_denied: because\[31m no\)") as caught:
            await waiting
        assert caught.value.lasting and "sign-in mail" in caught.value.remedy

    run(use)


def test_nobody_comes_back():
    async def use(way, waiting):
        with pytest.raises(PipeError, match=r"within 0\.05 seconds"):
            await waiting
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", way.port)

    run(use, seconds=0.05)
    assert module._span(300) == "5 minutes"


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example@evil.example/x",
        "https://evil.example\\@good.example/x",
        "https://evil.example/\u202ex",
        "https://evil.example/" + "x" * 20_000,
    ],
)
@pytest.mark.invariant("the host a person reads in the address is the one their browser goes to")
def test_nobody_is_sent_to_an_address_that_reads_like_another(url):
    async def main():
        shown = []
        way = SignIn("mail", shown.append)
        with pytest.raises(PipeError, match="no person should be sent to"):
            await way(url)
        assert shown == []

    asyncio.run(main())
