"""Heads that come again are known by their letters; and it makes no difference, but for the time it takes."""

import asyncio
import itertools

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway.http_again import remembered
from checkrein.doors.gateway.http_headers import Head
from checkrein.doors.gateway.http_talk import LARGEST_HEAD, Talk
from patience import PATIENCE

HEAD = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: %b\r\nAuthorization: Bearer t\r\n\r\n"
PAIRS = [(b"host", b"x"), (b"content-length", b"3"), (b"authorization", b"Bearer t")]


def post(body, length=None, token=b"t"):
    head = HEAD.replace(b"Bearer t", b"Bearer " + token)
    return head % (b"%d" % len(body) if length is None else length) + body


def again(data=None, pairs=None):
    return remembered(post(b"abc") if data is None else data, Head("POST", "/mcp", pairs or PAIRS))


@pytest.mark.parametrize("length", [1, 9, 10, 99_999_999])
def test_a_head_is_known_again_whatever_its_length(length):
    head = HEAD % b"%d" % length
    assert again().find(head) == (length, len(head))
    assert again().find(head + b"abc") == (length, len(head))


@pytest.mark.parametrize(
    "digits",
    [b"", b"0", b"03", b"+3", b"-3", b" 3", b"3 ", b"\t3", b"3\t", b"3,3", b"0x3", b"3a", b"1_0", b"1e1"]
    + [
        b"100000000",
        b"9" * 400,
        b"\xb2",
        "\u0663".encode(),
        b"3\r\nContent-Length: 3",
        b"3\n",
        b"3\r",
        b"\r",
    ],
)
@pytest.mark.invariant(
    "every letter but the digits is the same, and the digits are those of one plain number"
)
def test_a_length_that_is_no_plain_number_is_left_to_the_parser(digits):
    assert again().find(post(b"abc", digits)) is None


@pytest.mark.invariant(
    "every letter but the digits is the same, and the digits are those of one plain number"
)
def test_every_letter_of_a_head_counts():
    whole, start = post(b"abc"), post(b"").index(b"0")
    known = again()
    for at in set(range(len(whole) - 3)) - {start}:
        for other in {whole[at] ^ 0x20, 0x00, 0x0D, 0x0A, 0x20, 0x33} - {whole[at]}:
            assert known.find(whole[:at] + bytes([other]) + whole[at + 1 :]) is None
        assert known.find(whole[:at]) is None
        assert known.find(whole[:at] + whole[at + 1 :]) is None


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        (b"", []),
        (b"\r\n" + post(b"abc"), []),
        (post(b"abc").replace(b"POST", b"PUT"), []),
        (post(b"abc").replace(b"/mcp", b"/mcp?"), []),
        (post(b"abc").replace(b"1.1", b"1.0"), []),
        (post(b"abc")[:-6], []),
        (post(b"abc", b"0x3"), []),
        (post(b"abc", b"3 "), []),
        (post(b"abc").replace(b"Content-Length: 3\r\n", b""), [(b"host", b"x")]),
        (post(b"abc", b"3\r\nContent-Length: 3"), [*PAIRS, (b"content-length", b"3")]),
        (post(b"abc"), [*PAIRS, (b"content-length", b"3")]),
        (post(b"abc"), [*PAIRS, (b"expect", b"100-continue")]),
        (post(b"abc"), [*PAIRS, (b"transfer-encoding", b"chunked")]),
        (post(b"abc"), [*PAIRS, (b"upgrade", b"h2c")]),
        (post(b"abc").replace(b" t", b" " + b"t" * 8_200), []),
    ],
)
@pytest.mark.invariant("the request keeps its connection alive, and nothing but its length says how it ends")
def test_an_unusual_head_is_not_remembered(data, pairs):
    assert again(data, pairs) is None


# The whole way, with and without


class Plain(Talk):
    """Reads every head."""

    def _by_heart(self, data, again):
        return data


class Counting(Talk):
    """Counts the requests whose head was not read again."""

    def __init__(self, app, tasks):
        super().__init__(app, tasks)
        self.known = 0

    def _take(self, turn):
        self.known += self._between
        super()._take(turn)


class Wire(asyncio.Transport):
    """Remembers what was written, and whether anybody reads."""

    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written, self.paused, self.closed = [], False, False

    def write(self, data):
        self.written.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False


class App:
    """Does what the first letter of a body says, and remembers what it saw."""

    def __init__(self):
        self.seen = []

    async def __call__(self, turn):
        pairs = [pair for pair in turn.head.headers if pair[0] != b"content-length"]
        said = [turn.head.method, turn.head.path, pairs, turn.length, turn.keep_alive]
        self.seen.append(said)
        if turn.length == 7:
            # Refused before anybody looked at its body.
            await turn.answer(401, b"", b"no")
            return
        body = b""
        while (part := await turn.part()) is not None:
            body += part[0]
            said.append(part)
            if not part[1]:
                break
        await self._respond(turn, body)

    async def _respond(self, turn, body):
        if body[:1] == b"w":
            for _ in range(5):
                await asyncio.sleep(0)
        if body[:1] == b"s":
            await turn.begin(200, b"")
            await asyncio.sleep(0)
            await turn.write(body, more=False)
        elif body[:1] == b"f":
            raise ValueError("mine")
        else:
            await turn.answer(200, b"", b"[%b]" % body, last=body[:1] == b"l")


async def _talked(kind, pieces):
    app, wire, tasks = App(), Wire(), set()
    talk = kind(app, tasks)
    talk.connection_made(wire)
    for piece, steps in pieces:
        for _ in range(200):
            if not wire.paused:
                break
            await asyncio.sleep(0)
        if wire.paused:
            break
        talk.data_received(piece)
        for _ in range(steps):
            await asyncio.sleep(0)
    for _ in range(200):
        await asyncio.sleep(0)
    left = talk._loose, talk._deaf, talk._headers, wire.closed, wire.paused
    talk.connection_lost(None)
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert not tasks
    return talk, (app.seen, wire.written, left)


def both(*pieces):
    """What came of these pieces; the same with every head read."""
    pieces = [each if isinstance(each, tuple) else (each, 20) for each in pieces]
    talk, found = asyncio.run(_talked(Counting, pieces))
    assert found == asyncio.run(_talked(Plain, pieces))[1]
    return talk.known, found


def tokens(seen):
    return [dict(each[2])[b"authorization"].removeprefix(b"Bearer ") for each in seen]


def test_a_head_is_read_once():
    known, (seen, written, _) = both(post(b"abc"), post(b"de"), post(b"z" * 70_000), post(b"abc"))
    assert known == 3
    assert [each[3] for each in seen] == [3, 2, 70_000, 3]
    assert written[1].endswith(b"\r\n\r\n[de]")


def test_another_head_is_read_and_then_known():
    one, other = post(b"abc"), post(b"abc", token=b"o")
    known, (seen, _, _) = both(one, other, other, one, one)
    assert known == 2
    assert tokens(seen) == [b"t", b"o", b"o", b"t", b"t"]


def test_a_head_is_known_by_its_own_letters_only():
    """Not by those of another that came in one piece with it, nor by those of a body before it."""
    one, other = post(b"abc"), post(b"abc", token=b"o")
    _, (seen, _, _) = both(one + other, one, other)
    assert tokens(seen) == [b"t", b"o", b"t", b"o"]
    _, (seen, _, _) = both(post(b"", b"%d" % len(other)), other + one, other)
    assert tokens(seen) == [b"t", b"t", b"o"]


def test_the_last_request_of_a_connection_is_not_followed_by_another():
    for last in (b"Connection: close", b"Connection: keep-alive, close"):
        request = post(b"abc").replace(b"Host: x", last)
        known, (seen, written, _) = both(request, request)
        assert (known, len(seen), len(written)) == (0, 1, 1)


def test_a_body_may_come_behind_its_head():
    head, whole = post(b"", b"6"), post(b"abcdef")
    known, (seen, written, _) = both(whole, head, b"abc", b"def", head + b"a", b"bcdef", whole)
    assert known == 3 and len(seen) == 4
    assert all(each.endswith(b"[abcdef]") for each in written)


def test_what_comes_behind_a_body_is_another_request():
    both(post(b"abc"), post(b"de") + post(b"gg") + post(b"hi"), post(b"jk"))
    known, (seen, _, _) = both(post(b"abc"), post(b"", b"2"), b"de" + post(b"gg"), post(b"hi"))
    assert len(seen) == 4 and known == 2
    _, (seen, written, _) = both(post(b"abc"), post(b"de") + b"nonsense\r\n\r\n")
    assert len(seen) == 2 and written[-1].startswith(b"HTTP/1.1 400 ")


@pytest.mark.invariant("that is for requests that come alone")
def test_who_sends_before_it_was_answered_waits_for_its_turn():
    known, (seen, written, _) = both(post(b"abc"), (post(b"wait"), 0), post(b"next"))
    assert known == 1 and len(seen) == 3
    assert [each[-6:] for each in written[1:]] == [b"[wait]", b"[next]"]


def test_the_body_of_a_request_that_was_refused_is_no_request():
    evil = post(b"abc")
    known, (seen, written, _) = both(evil, post(b"", b"7"), evil[:7], evil, post(b"", b"7") + evil[:6], b"x")
    assert known == 3 and len(seen) == 4
    assert [each[9:12] for each in written] == [b"200", b"401", b"200", b"401"]


@pytest.mark.parametrize(
    "between",
    [
        b"\r\n",
        b"\r\n" * LARGEST_HEAD,
        b"P",
        b"POST /mcp HTTP/1.1\r\n",
        b"GET /mcp HTTP/1.1\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: ",
        post(b"last"),
        post(b"fail"),
        post(b"abc", b"05") + b"de",
        post(b"abc", b"+3"),
        post(b"abc", b"100000000"),
    ],
)
def test_what_comes_between_two_requests_is_not_forgotten(between):
    both(post(b"abc"), between, post(b"abc"), post(b"abc"))
    both(post(b"abc"), post(b"abc") + between, post(b"abc"), post(b"abc"))
    both(between + post(b"abc"), post(b"abc"))


LENGTHS = st.sampled_from([b"+5", b" 5", b"05", b"5 ", b"", b"5,5", b"0", b"00", b"99999999", b"999999999"])
BODIES = st.builds(
    lambda letter, size: letter + b"x" * size,
    st.sampled_from([b"a", b"a", b"w", b"s", b"f", b"l", b"POST /mcp HTTP/1.1\r\n\r\n"]),
    st.sampled_from([0, 1, 4, 6, 6, 99, 70_000]),
)
SAME = BODIES.map(post)
ODD = st.one_of(
    st.builds(post, BODIES, LENGTHS),
    st.builds(
        lambda data, at, byte: data[: at % len(data)] + bytes([byte]) + data[at % len(data) + 1 :],
        st.just(post(b"abcde")),
        st.integers(0, 200),
        st.integers(0, 255),
    ),
    st.sampled_from(
        [
            b"\r\n",
            b"GET /mcp HTTP/1.1\r\n\r\n",
            post(b"abc").replace(b"Host: x", b"Expect: 100-continue"),
            post(b"abc").replace(b"Host: x", b"Connection: close"),
            post(b"abc").replace(b"Host: x", b"Connection: keep-alive"),
            post(b"abc").replace(b"Host: x", b"Connection: Upgrade\r\nUpgrade: h2c"),
            post(b"abc").replace(b"1.1", b"1.0"),
            post(b"", b"0"),
            post(b"abc", token=b"o"),
            post(post(b"abc", token=b"o")),
            post(b"abc").replace(b"Content-Length: ", b"content-length:\t"),
            b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ]
    ),
)


@st.composite
def cut(draw):
    """Requests, mostly with the same head, one after the other; cut where they end, and elsewhere."""
    requests = draw(st.lists(st.one_of(SAME, SAME, SAME, ODD), min_size=1, max_size=8))
    given_ = b"".join(requests)
    ends, at = set(), 0
    for each in requests:
        at += len(each)
        if draw(st.integers(0, 4)):
            ends.add(at)
    ends |= {each % len(given_) for each in draw(st.lists(st.integers(0, 1 << 20), max_size=4))}
    places = sorted(ends | {0, len(given_)})
    steps = st.sampled_from([20, 20, 20, 0, 1, 2])
    return [(given_[a:b], draw(steps)) for a, b in itertools.pairwise(places)]


@settings(max_examples=examples(400), deadline=None)
@given(cut())
def test_however_they_are_cut_all_requests_are_the_same_with_every_head_read(pieces):
    both(*pieces)
