"""Both clients between a real MCP client and a real server: what passes, who may die, what is left."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from checkrein.runtime import door_file
from hookclient.conftest import clean
from hookclient.test_pump import PIPES, fed, on_linux
from patience import PATIENCE, until
from server.conftest import Serving
from server.handing_over import descriptors, settle

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
}
pytestmark = on_linux
ENDED = b"checkrein: no tools can be offered: the server ended. Run `checkrein doctor`.\n"


@pytest.fixture
def serving(home):
    made = Serving().start()
    yield made
    made.kill(signal.SIGTERM)


@pytest.fixture
def start(client, serving):
    """Starts a pump to the server of this home, and ends it with the test."""
    with contextlib.ExitStack() as stack:

        def start(**more):
            more = {**PIPES, "env": clean(), "bufsize": 0, **more}
            process = stack.enter_context(subprocess.Popen([*client, str(door_file()), "mcp"], **more))
            stack.callback(process.kill)
            return process

        yield start


def ask(number, method="ping", **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def answers(stream, count):
    """This many answers, by their number; anything else a server says is left out."""
    found, rest = [], b""
    while len(found) < count:
        piece = stream.read(1 << 16)
        assert piece, f"it ended after {len(found)} of {count} answers"
        *lines, rest = (rest + piece).split(b"\n")
        found += [each["id"] for each in map(json.loads, lines) if "id" in each]
    return found


def opened(process):
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    assert answers(process.stdout, 1) == [0]
    return process


def before_any(start, serving):
    """How many sockets and pipes the server has without a client, once it has met one: each has three."""
    process = opened(start())
    before = descriptors(serving) - 3
    process.kill()
    settle(serving, before)
    return before


def is_passed(pump, serving):
    """Whether the server has the client's pipes itself."""
    theirs = {os.readlink(f"/proc/{pump.pid}/fd/{fd}") for fd in (0, 1)}
    folder = f"/proc/{serving.process.pid}/fd"
    return theirs <= {os.readlink(f"{folder}/{each}") for each in os.listdir(folder)}


def test_the_server_has_the_clients_own_streams(start, serving):
    process = opened(start())
    assert is_passed(process, serving)
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_file_is_copied(start, serving, tmp_path):
    (tmp_path / "asked").write_bytes(json.dumps(INITIALIZE).encode() + b"\n" + ask(1))
    with (tmp_path / "asked").open("rb") as file:
        process = start(stdin=file)
        assert answers(process.stdout, 2) == [0, 1]
        assert process.wait(PATIENCE) == 0


def test_ten_thousand_lines_in_order_and_none_missing(start):
    process = opened(start())
    whole = b"".join(ask(number) for number in range(1, 10_001))
    writing = fed(process, whole)
    assert answers(process.stdout, 10_000) == list(range(1, 10_001))
    writing.join(PATIENCE)
    assert process.wait(PATIENCE) == 0
    assert process.stdout.read() == b""


def test_large_messages_whose_answers_are_read_late(start):
    process = opened(start())
    whole = b"".join(ask(number, padding="p" * (1 << 20)) for number in range(1, 9))
    writing = fed(process, whole + ask(9, "m" * 200))
    writing.join(PATIENCE)
    assert answers(process.stdout, 9) == list(range(1, 10))
    assert process.wait(PATIENCE) == 0


def test_what_is_said_before_the_end_is_answered_before_the_end(start):
    process = start()
    out, err = process.communicate(json.dumps(INITIALIZE).encode() + b"\n" + ask(1), timeout=PATIENCE)
    assert [json.loads(each)["id"] for each in out.splitlines()] == [0, 1]
    assert (err, process.returncode) == (b"", 0)


@pytest.mark.parametrize("shared", [True, False])
def test_sockets_closed_by_half(start, shared):
    """As runtimes start their children that give them sockets instead of pipes."""
    one, two = socket.socketpair()
    three, four = (one, two) if shared else socket.socketpair()
    with one, two, three, four:
        process = start(stdin=one, stdout=three)
        one.close()
        three.close()
        two.sendall(json.dumps(INITIALIZE).encode() + b"\n" + ask(1))
        two.shutdown(socket.SHUT_WR)
        with four.makefile("rb", buffering=0) as file:
            assert answers(file, 2) == [0, 1]
            assert process.wait(PATIENCE) == 0
            assert file.read(10) == b""


def test_a_pump_that_is_killed_takes_its_client_along(start, serving):
    """INVARIANT: a client whose pump is gone is dropped at once, though its pipes are open elsewhere."""
    before = before_any(start, serving)
    process = opened(start())
    settle(serving, before + 3)
    process.kill()
    settle(serving, before)
    assert not process.stdin.closed


def test_a_server_that_is_killed_is_an_error(start, serving):
    process = opened(start())
    serving.kill()
    assert process.wait(PATIENCE) == 1
    assert (process.stdout.read(), process.stderr.read()) == (b"", ENDED)


def test_a_server_that_stops_is_an_error(start, serving):
    process = opened(start())
    serving.ask("server.stop")
    assert process.wait(PATIENCE) == 1
    assert process.stderr.read() == ENDED


CLIENT = """
import json, subprocess, sys
pump = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pump.stdin.write(sys.argv[1].encode() + b"\\n")
pump.stdin.flush()
pump.stdout.readline()
print(pump.pid, flush=True)
sys.stdin.read()
"""


def test_a_client_that_is_killed_leaves_nothing(client, start, serving):
    before = before_any(start, serving)
    words = [sys.executable, "-c", CLIENT, json.dumps(INITIALIZE), *client, str(door_file()), "mcp"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pump = int(process.stdout.readline())
        settle(serving, before + 3)
        process.kill()
        process.wait(PATIENCE)
    settle(serving, before)
    until(lambda: not is_alive(pump))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_two_hundred_clients_leave_nothing(start, serving):
    before = before_any(start, serving)
    for batch in range(10):
        pumps = [start() for _ in range(20)]
        talking = [threading.Thread(target=opened, args=(each,)) for each in pumps]
        for each in talking:
            each.start()
        for each in talking:
            each.join(PATIENCE)
        for number, each in enumerate(pumps):
            each.kill() if (batch + number) % 3 == 0 else each.stdin.close()
        for each in pumps:
            assert each.wait(PATIENCE) in (0, -signal.SIGKILL)
            each.stdout.close()
            each.stderr.close()
    settle(serving, before)
