"""A client's line of JSON over real sockets: read, kept to its era, held back, let go."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys

import pytest

from checkrein.doors.gateway import front_stdio
from checkrein.doors.gateway.clients import Client, Visit
from checkrein.doors.gateway.front_stdio import StdioFront, Who, identify
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LARGEST,
    PARSE_ERROR,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    response,
)
from checkrein.peers import Peer, lineage
from doors.gateway.ends import WAYS, Ends
from doors.gateway.loop_turns import loop_turns
from patience import PATIENCE, soon

WHO = Who("tester", "tester (pid 7)", "stdio:7-1")
ENVELOPE = {"_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


class Hub:
    """Stands in for the hub: answers with the method, and does what some methods say."""

    def __init__(self):
        self.met, self.heard, self.left, self.begun, self.cancelled = [], [], [], [], []
        self.gate = asyncio.Event()

    def meet(self, *, era, agent, label, owner, send, reader=""):
        made = Client(era=era, agent=agent, label=label, owner=owner, visit=Visit("", reader), send=send)
        self.met.append(made)
        return made

    async def handle(self, client, message, exchange):
        method, params = message["method"], message.get("params", {})
        self.begun.append(method)
        if method in ("wait", "subscriptions/listen"):
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(message["id"])
                raise
        if method == "taken back":
            return None
        if method == "fail":
            raise RpcError(INVALID_PARAMS, "No.", {"why": 1})
        if method == "crash":
            raise RuntimeError("secret inside")
        if method == "unwritable":
            return response(message["id"], {"x": object()})
        if method == "much":
            return response(message["id"], "m" * params["size"])
        if method == "initialize" and params.get("held"):
            await self.gate.wait()
        exchange.send({"jsonrpc": "2.0", "method": "said", "params": {"first": method}})
        return response(message["id"], {"did": method, "era": client.era})

    def hear(self, client, message):
        self.heard.append((list(self.begun), message))
        if message.get("method") == "crash":
            raise RuntimeError("secret inside")

    def leave(self, client):
        self.left.append(client)


class Peers:
    """The other end of a line."""

    def __init__(self, hub, front, ends):
        self.hub, self.front, self.ends = hub, front, ends
        self._read = b""

    async def write(self, *messages):
        raw = b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)
        await asyncio.wait_for(self.ends.write(raw), PATIENCE)

    async def line(self):
        """The next message; None at the end."""
        while b"\n" not in self._read:
            piece = await asyncio.wait_for(self.ends.read(1 << 20), PATIENCE)
            if not piece:
                assert not self._read
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    async def answer(self):
        """The next message that is no notification."""
        while (found := await self.line()) is not None and "method" in found:
            pass
        return found

    async def open(self):
        await self.write(INITIALIZE)
        return await self.answer()

    def close(self):
        self.ends.close_input()


def loops():
    yield asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        import uvloop

        yield uvloop.new_event_loop


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture(params=list(loops()), ids=lambda make: make.__module__.split(".")[0])
def run(request, way):
    """Runs a test with a line over real descriptors; what the front complained of is `said`."""

    def run(test, speaks=True, **more):
        async def body():
            ends, hub = Ends(way), Hub()
            front = StdioFront(hub, said.append, **more)
            await front.take(ends.connection, WHO, speaks, ends.passed)
            try:
                await test(Peers(hub, front, ends))
            finally:
                ends.close()
                front.close()
                await soon(lambda: not front.lines)

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(body(), PATIENCE))

    run.said = said = []
    return run


def ask(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def tell(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


# Lines


def test_requests_are_handled_and_answered(run):
    async def test(peer):
        answer = await peer.open()
        assert answer == {"jsonrpc": "2.0", "id": 0, "result": {"did": "initialize", "era": HANDSHAKE}}
        await peer.write(ask("a", "tools/list"))
        assert (await peer.line())["method"] == "said"
        assert (await peer.line())["id"] == "a"

    run(test)


def test_lines_in_pieces_together_and_with_other_ends(run):
    async def test(peer):
        await peer.open()
        whole = b"".join(json.dumps(ask(n, "x")).encode() + b"\r\n\n  \n" for n in range(20))
        for at in range(0, len(whole), 7):
            await peer.write(whole[at : at + 7])
        assert [(await peer.answer())["id"] for _ in range(20)] == list(range(20))

    run(test)


def test_a_message_of_the_largest_size_and_not_one_byte_more(run):
    async def test(peer):
        await peer.open()
        for size, passes in [(LARGEST, True), (LARGEST + 1, False)]:
            frame = json.dumps(ask(size, "x", y="")).encode()
            await peer.write(frame.replace(b'""', b'"' + b"z" * (size - len(frame)) + b'"') + b"\n")
            answer = await peer.answer()
            assert ("result" in answer) == passes
        assert (answer["id"], answer["error"]["code"]) == (None, INVALID_REQUEST)
        assert await peer.line() is None
        assert peer.hub.left == peer.hub.met

    run(test)


def test_a_line_without_end_is_not_kept(run):
    async def test(peer):
        sending = asyncio.ensure_future(peer.write(b"x" * (LARGEST + 4_000_000)))
        assert (await peer.line())["error"]["code"] == INVALID_REQUEST
        with contextlib.suppress(ConnectionError):
            assert await peer.line() is None
        with contextlib.suppress(ConnectionError):
            await sending

    run(test)


UNREADABLE = ["1e400", "1" * 5001, "[" * 5000 + "]" * 5000, '"cut \\ud83d"']


@pytest.mark.invariant("a request that cannot be read is answered by its id, and never run")
@pytest.mark.parametrize("value", UNREADABLE, ids=["infinite", "digits", "deep", "cut"])
@pytest.mark.parametrize("stateless", [True, False])
def test_a_request_that_cannot_be_read_is_refused_by_its_id(run, value, stateless):
    first = ask(0, "begin", **ENVELOPE) if stateless else INITIALIZE
    meta = json.dumps(ENVELOPE["_meta"] if stateless else {})

    async def test(peer):
        await peer.write(first)
        await peer.answer()
        told = f'{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":{value}}}}}\n'
        asked = f'{{"jsonrpc":"2.0","method":"x","params":{{"x":{value},"_meta":{meta}}},"id":"own"}}\n'
        await peer.write(told.encode(), asked.encode())
        answer = await peer.answer()
        assert (answer["id"], answer["error"]["code"]) == ("own", INVALID_PARAMS)
        assert answer["error"]["message"].startswith("This request holds ")
        await peer.write(ask(2, "after", **ENVELOPE if stateless else {}))
        assert (await peer.answer())["id"] == 2
        assert peer.hub.begun == [first["method"], "after"] and peer.hub.heard == []

    run(test)


def test_an_answer_that_cannot_be_read_is_an_error_to_who_asked(run):
    async def test(peer):
        await peer.open()
        await peer.write(b'{"jsonrpc":"2.0","id":"q1","result":{"x":1e400}}\n')
        await peer.write(b'{"jsonrpc":"2.0","id":"q2","result":{"x":"\\ud83d"}}\n')
        await soon(lambda: len(peer.hub.heard) == 2)
        first, second = (message for _, message in peer.hub.heard)
        assert first["id"] == "q1" and "number" in first["error"]["message"]
        assert second == {"jsonrpc": "2.0", "id": "q2", "result": {"x": "\ufffd"}}

    run(test)


BROKEN = {
    b"nonsense\n": (PARSE_ERROR, None),
    b'{"jsonrpc":"2.0","id":1,"method":"x"\n': (PARSE_ERROR, None),
    b"\xff\xfe\x00\n": (PARSE_ERROR, None),
    b"[" * 100_000 + b"\n": (PARSE_ERROR, None),
    b'[{"jsonrpc":"2.0","id":1,"method":"x"}]\n': (INVALID_REQUEST, None),
    b'{"id":1,"method":"x"}\n': (INVALID_REQUEST, 1),
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"x"}\n': (INVALID_REQUEST, None),
    b'{"jsonrpc":"2.0","id":"q","method":7}\n': (INVALID_REQUEST, "q"),
    b'{"jsonrpc":"2.0","id":"q","method":"x","params":[1]}\n': (INVALID_REQUEST, "q"),
    b'{"jsonrpc":"2.0","id":5}\n': (INVALID_REQUEST, 5),
    b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":7}\n': (
        INVALID_REQUEST,
        123456789012345678901234567890,
    ),
}


@pytest.mark.parametrize(("raw", "expected"), BROKEN.items(), ids=range(len(BROKEN)))
def test_what_is_no_message_is_answered_and_harms_nothing(run, raw, expected):
    async def test(peer):
        await peer.open()
        await peer.write(raw)
        answer = await peer.answer()
        assert (answer["error"]["code"], answer["id"]) == expected
        await peer.write(ask(2, "x"))
        assert (await peer.answer())["id"] == 2

    run(test)


def test_whatever_comes_between_requests_every_one_of_them_is_answered(run):
    chance = random.Random(7)

    async def test(peer):
        await peer.open()
        raw = b""
        for number in range(1, 301):
            junk = chance.randbytes(chance.randrange(60)).replace(b"\n", b"")
            raw += chance.choice([junk + b"\n", b"", b"{}\n", b'{"jsonrpc":"2.0","method":"m"}\n'])
            raw += json.dumps(ask(number, "x")).encode() + b"\n"
        sending = asyncio.ensure_future(in_pieces(peer, raw))
        answered = []
        while len(answered) < 300:
            answer = await peer.answer()
            answered += [answer["id"]] if "result" in answer else []
        assert answered == list(range(1, 301))
        await sending

    async def in_pieces(peer, raw):
        while raw:
            size = chance.choice([1, 10, 1_000, 20_000])
            await peer.write(raw[:size])
            raw = raw[size:]

    run(test)
    assert run.said == []


# Requests


@pytest.mark.invariant("an error is an answer, never a result")
def test_errors_are_answers_and_tell_no_secrets(run):
    async def test(peer):
        await peer.open()
        await peer.write(ask(1, "fail"))
        answer = await peer.answer()
        assert answer["error"] == {"code": INVALID_PARAMS, "message": "No.", "data": {"why": 1}}
        for number, method in enumerate(["crash", "unwritable"]):
            await peer.write(ask(number, method))
            answer = await peer.answer()
            assert (answer["id"], answer["error"]["code"]) == (number, INTERNAL_ERROR)
            assert "secret" not in json.dumps(answer)
        await peer.write(tell("crash"), ask(9, "x"))
        assert (await peer.answer())["id"] == 9

    run(test)
    assert [each.split(":")[0] for each in run.said] == [
        "a request of tester (pid 7) failed",
        "a message to tester (pid 7) cannot be written",
        "a message of tester (pid 7) failed",
    ]


def test_one_slow_request_holds_up_no_other(run):
    async def test(peer):
        await peer.open()
        await peer.write(ask(1, "wait"), ask(2, "x"))
        assert (await peer.answer())["id"] == 2
        assert peer.front.busy == 1
        peer.hub.gate.set()
        assert (await peer.answer())["id"] == 1
        await soon(lambda: peer.front.busy == 0)

    run(test)


def test_what_was_taken_back_has_no_answer(run):
    async def test(peer):
        await peer.open()
        await peer.write(ask(1, "taken back"), ask(2, "x"))
        assert (await peer.answer())["id"] == 2

    run(test)


def test_listening_is_no_work_under_way(run, monkeypatch):
    monkeypatch.setattr(front_stdio, "GRACE_SECONDS", 0.05)

    async def test(peer):
        await peer.write(ask(1, "subscriptions/listen", **ENVELOPE))
        await soon(lambda: peer.hub.begun)
        assert peer.front.busy == 0
        peer.close()
        assert await peer.answer() is None
        await soon(lambda: peer.hub.cancelled == [1])

    run(test)


@pytest.mark.parametrize("speaks", [True, False])
def test_whether_a_person_answers_there_is_said_before_anything_is_handled(run, speaks):
    async def test(peer):
        await peer.open()
        assert [each.speaks_for_person for each in peer.hub.met] == [speaks]

    run(test, speaks)


def test_what_is_told_comes_in_order_and_after_the_requests_before_it(run):
    """A cancellation right behind its request finds it."""

    async def test(peer):
        await peer.open()
        messages = [ask(1, "wait"), tell("notifications/cancelled", requestId=1)]
        messages += [{"jsonrpc": "2.0", "id": "checkrein-1", "result": {}}, tell("last")]
        await peer.write(*messages)
        await soon(lambda: len(peer.hub.heard) == 3)
        assert [message for _, message in peer.hub.heard] == messages[1:]
        assert all("wait" in begun for begun, _ in peer.hub.heard)

    run(test)


# Eras


def test_the_first_request_is_the_handshake(run):
    async def test(peer):
        await peer.write(tell("notifications/initialized"), ask(1, "ping"), ask(2, "tools/list"))
        assert await peer.line() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        answer = await peer.line()
        assert (answer["id"], answer["error"]["code"]) == (2, INVALID_REQUEST)
        assert "initialize" in answer["error"]["message"]
        assert (peer.hub.met, peer.hub.begun, peer.hub.heard) == ([], [], [])
        assert "result" in await peer.open()
        (client,) = peer.hub.met
        assert (client.era, client.agent, client.label, client.owner) == (
            HANDSHAKE,
            "tester",
            "tester (pid 7)",
            "stdio:7-1",
        )

    run(test)


def test_what_follows_the_handshake_waits_for_it(run):
    async def test(peer):
        slow = {**INITIALIZE, "params": {"takes": 0.1}}
        await peer.write(slow, tell("notifications/initialized"), ask(1, "x"))
        await peer.write(ask(2, "y"))
        assert [(await peer.answer())["id"] for _ in range(3)] == [0, 1, 2]
        assert peer.hub.begun == ["initialize", "x", "y"]
        assert len(peer.hub.heard) == 1

    run(test)


def test_an_envelope_opens_the_other_era(run):
    async def test(peer):
        await peer.write(ask(1, "server/discover", **ENVELOPE), ask(2, "tools/list", **ENVELOPE))
        answers = [await peer.answer() for _ in range(2)]
        assert [each["result"]["era"] for each in answers] == [STATELESS] * 2
        assert len(peer.hub.met) == 1
        # One without an envelope is the hub's to refuse: it knows what an envelope needs.
        await peer.write(ask(3, "tools/list"))
        assert (await peer.answer())["id"] == 3

    run(test)


@pytest.mark.parametrize("first", ["initialize", "ping", "tools/list"])
def test_a_connection_that_began_with_the_handshake_takes_no_envelope(run, first):
    async def test(peer):
        await peer.write(ask(1, first), ask(2, "tools/list", **ENVELOPE))
        answers = {}
        for _ in range(2):
            answer = await peer.answer()
            answers[answer["id"]] = answer
        assert answers[2]["error"]["code"] == INVALID_REQUEST

    run(test)


@pytest.mark.parametrize(
    ("params", "data"),
    [
        ({"protocolVersion": "2025-11-25"}, {"supported": ["2026-07-28"], "requested": "2025-11-25"}),
        ({"protocolVersion": 7}, {"supported": ["2026-07-28"]}),
        (ENVELOPE, {"supported": ["2026-07-28"]}),
    ],
)
def test_a_connection_that_began_without_takes_no_handshake(run, params, data):
    async def test(peer):
        await peer.write(ask(1, "tools/list", **ENVELOPE))
        await peer.answer()
        await peer.write(ask(2, "initialize", **params))
        error = (await peer.answer())["error"]
        assert (error["code"], error["data"]) == (UNSUPPORTED_VERSION, data)
        assert peer.hub.begun == ["tools/list"]

    run(test)


def test_an_envelope_on_initialize_makes_it_no_less_a_handshake(run):
    async def test(peer):
        await peer.write(ask(1, "initialize", **ENVELOPE))
        assert (await peer.answer())["result"]["era"] == HANDSHAKE

    run(test)


# Ends


@pytest.mark.invariant("a client that left has nothing under way any more")
def test_a_client_that_leaves_has_nothing_under_way_any_more(run, monkeypatch):
    monkeypatch.setattr(front_stdio, "GRACE_SECONDS", 0.05)

    async def test(peer):
        await peer.open()
        await peer.write(ask(1, "wait"), ask(2, "wait"))
        await soon(lambda: peer.front.busy == 2)
        peer.close()
        assert await peer.answer() is None
        await soon(lambda: sorted(peer.hub.cancelled) == [1, 2])
        assert (peer.hub.left, peer.front.lines) == (peer.hub.met, set())

    run(test)


def test_a_client_that_closes_its_side_hears_what_can_be_answered_at_once(run, monkeypatch):
    # Whoever waited for all of the grace would wait for ever.
    monkeypatch.setattr(front_stdio, "GRACE_SECONDS", 100 * PATIENCE)

    async def test(peer):
        slow = {**INITIALIZE, "params": {"held": True}}
        await peer.write(slow, ask(1, "x"), json.dumps(ask(2, "y")).encode())
        peer.close()
        await loop_turns(50)
        peer.hub.gate.set()
        assert [(await peer.answer())["id"] for _ in range(3)] == [0, 1, 2]
        assert await peer.line() is None
        assert peer.hub.left == peer.hub.met

    run(test)


def test_a_client_that_says_nothing_and_leaves_was_never_met(run):
    async def test(peer):
        peer.close()
        assert await peer.line() is None
        assert (peer.hub.met, peer.hub.left) == ([], [])

    run(test)


@pytest.mark.invariant("a client that does not read what it is sent is not read from either")
def test_a_client_that_does_not_read_is_not_read_from(run):
    async def test(peer):
        await peer.open()
        await peer.write(ask(1, "much", size=4 << 20))
        await soon(lambda: "much" in peer.hub.begun)
        await peer.write(*(ask(n, "x") for n in range(2, 50)))
        # Its pipe fills, and stays full: empty lines, which mean nothing.
        empty = b" " * 65_535 + b"\n"
        taken = [await peer.ends.has_room(empty) for _ in range(100)]
        assert taken[-50:] == [False] * 50 and "x" not in peer.hub.begun
        answers = [(await peer.answer())["id"] for _ in range(49)]
        assert answers == list(range(1, 50))

    run(test)


@pytest.mark.invariant("a client that never reads takes a bounded amount of memory")
def test_a_client_that_never_reads_is_let_go(run):
    async def test(peer):
        await peer.open()
        await peer.write(*(ask(n, "much", size=8 << 20) for n in range(12)))
        await soon(lambda: peer.hub.left)
        assert peer.hub.left == peer.hub.met

    run(test)
    assert run.said == ["tester (pid 7) was let go: it does not read what it is sent"]


def test_there_is_room_for_so_many_and_no_more(run):
    async def test(peer):
        theirs, ours = socket.socketpair()
        with ours:
            ours.setblocking(False)
            await peer.front.take(theirs, WHO, True)
            assert await asyncio.get_running_loop().sock_recv(ours, 1) == b""
        assert "result" in await peer.open()

    run(test, most=1)
    assert len(run.said) == 1


# Who is there


def test_a_client_is_called_by_the_program_that_started_the_pump(tmp_path):
    """Shells in between are nobody; what is shown comes from the system, not from the client."""
    claude = tmp_path / "claude"
    shutil.copy("/bin/sh", claude)
    line = ["-c", f'sh -c "{sys.executable} -c \\"import sys; print(flush=True); sys.stdin.read()\\"; :"; :']
    with subprocess.Popen([claude, *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        (below,) = (
            each
            for each in map(int, filter(str.isdigit, os.listdir("/proc")))
            if [above.pid for above in lineage(each)][2:3] == [process.pid]
        )
        who = identify(Peer(below, os.getuid()))
        process.stdin.close()
    assert (who.agent, who.label) == ("claude", f"claude (pid {process.pid})")
    assert who.owner.startswith(f"stdio:{below}-")
    assert who.owner[len(f"stdio:{below}-") :].isdigit()


def test_a_program_that_has_gone_has_no_name():
    with subprocess.Popen(["/bin/true"]) as gone:
        pass
    assert identify(Peer(gone.pid, 0)) == Who(
        "unknown program", f"unknown program (pid {gone.pid})", f"stdio:{gone.pid}-"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [("node", "agent"), ("MainThread", "agent"), ("python3.12", "agent"), ("Cursor Helper", "Cursor Helper")],
)
def test_scripts_are_called_by_their_own_name(monkeypatch, name, shown):
    process = lineage(os.getpid())[0]
    monkeypatch.setattr(
        front_stdio.peers, "words_of", lambda _pid: ["/usr/bin/node", "--x", "/opt/agent.js", "y"]
    )
    assert front_stdio._name(type(process)(process.pid, 1, "1", name)) == shown


def test_a_name_shows_nothing_but_text():
    process = lineage(os.getpid())[0]
    odd = type(process)(process.pid, 1, "1", "\x1b[31mred\n" + "l" * 99)
    shown = front_stdio._name(odd)
    assert shown.isprintable()
    assert len(shown) == 40


@pytest.mark.invariant("what a client sends and does not wait for takes a bounded amount of memory")
def test_one_client_s_requests_together_take_a_bounded_amount_of_memory(run, monkeypatch):
    monkeypatch.setattr(front_stdio, "MOST_HELD", 100_000)

    async def test(peer):
        await peer.open()
        long = "x" * 70_000
        await peer.write(ask(1, "wait", much=long), ask(2, "echo", much=long), ask(3, "echo"))
        answers = {(found := await peer.answer())["id"]: found for _ in range(2)}
        assert answers[2]["error"]["code"] == INVALID_REQUEST and "result" in answers[3]
        assert "echo" in peer.hub.begun and peer.hub.begun.count("echo") == 1
        peer.hub.gate.set()
        assert "result" in await peer.answer()
        await peer.write(ask(4, "echo", much="x" * 150_000))
        assert "result" in await peer.answer(), "one alone is never too much"

    run(test)
