"""MCP clients on the server's socket: answered once, then handed to the gateway."""

import contextlib
import json
import os
import signal
import socket
import time

import pytest

from checkrein import __version__, wire
from checkrein.errors import CheckreinError
from checkrein.runtime import log_file
from server.conftest import Serving

# Stands in for the gateway: says what it was given, then sends back whatever comes.
GATEWAY = r"""
import json, os, sys, threading, types
from checkrein.errors import StoreError

class Gateway:
    busy = 0

    def __init__(self, pipeline, agents, say):
        self.pipeline, self.agents, self.say = pipeline, agents, say

    def open(self):
        if os.path.exists(os.environ["HOME"] + "/broken"):
            raise StoreError("It is broken.", remedy="Mend it.")
        self.say("gateway started")

    def close(self):
        self.pipeline.store.query("SELECT 1")
        self.say("gateway stopped")

    def servers(self):
        return [{"name": "stand-in"}]

    def take(self, connection, peer, facts):
        if facts["CWD"] == "/refused":
            raise RuntimeError("not this one")
        threading.Thread(target=self.echo, args=(connection, peer, facts), daemon=True).start()

    def echo(self, connection, peer, facts):
        connection.setblocking(True)
        with connection:
            connection.sendall(json.dumps([peer.pid, peer.uid, facts]).encode() + b"\n")
            while piece := connection.recv(1 << 16):
                Gateway.busy = 1 if piece == b"busy" else 0
                connection.sendall(piece)

stand_in = types.ModuleType("checkrein.doors.gateway.gateway")
stand_in.Gateway = Gateway
sys.modules[stand_in.__name__] = stand_in
"""


@pytest.fixture
def handing(home):
    made = Serving(GATEWAY).start()
    yield made
    made.kill(signal.SIGTERM)


@contextlib.contextmanager
def pumped(serving, folder="/p", version=__version__):
    """(connection, what the server answered) as a pump meets them."""
    with serving.connect() as connection:
        connection.settimeout(10)
        wire.send(connection, f"checkrein 1 {version}\nmcp\nCWD={folder}\n\n".encode())
        yield connection, wire.decode_answer(wire.receive(connection, time.monotonic() + 10))


def line(connection):
    with connection.makefile("rb") as file:
        return file.readline()


def said(text, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if text in log_file().read_text():
            return True
        time.sleep(0.02)
    return False


def test_the_gateway_has_the_connection_and_who_is_there(handing):
    with pumped(handing, "/a b") as (connection, answer):
        assert answer == (b"", b"", 0)
        assert json.loads(line(connection)) == [os.getpid(), os.getuid(), {"CWD": "/a b"}]
        connection.sendall(b"raw bytes, no frames")
        assert connection.recv(100) == b"raw bytes, no frames"
        connection.settimeout(None)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b""


def test_no_worker_stays_with_it_however_long_it_lasts(handing, pre):
    with contextlib.ExitStack() as stack:
        for _ in range(300):  # more than there are workers
            connection, _ = stack.enter_context(pumped(handing))
            line(connection)
        handing.ask("phase.set", name="building")
        assert handing.hook(pre("ls"))[2] == 0
    assert log_file().read_text().count("gateway started") == 1


def test_hooks_do_not_need_the_gateway(handing, pre):
    handing.hook(pre("ls"))
    assert not said("gateway started", 0.2)


def test_a_gateway_that_cannot_start_says_why_and_is_tried_again(handing, home):
    (home / "broken").touch()
    with pumped(handing) as (connection, (out, err, code)):
        assert (out, code) == (b"", 2)
        assert b"It is broken." in err
        assert b"Mend it." in err
        assert connection.recv(10) == b""
    (home / "broken").unlink()
    with pumped(handing) as (_, answer):
        assert answer == (b"", b"", 0)


def test_a_connection_the_gateway_does_not_take_is_closed(handing):
    with pumped(handing, "/refused") as (connection, _):
        assert connection.recv(10) == b""
    assert said("not this one")


@pytest.mark.parametrize("words", ["mcp more", "MCP", "mcp "])
def test_other_words_are_not_handed_over(handing, words):
    with handing.connect() as connection:
        connection.settimeout(10)
        wire.send(connection, f"checkrein 1 {__version__}\n{words}\nCWD=/p\n\n".encode())
        assert connection.recv(10) == b""
    assert not said("gateway started", 0.2)


def test_the_gateway_ends_before_the_store(handing):
    """INVARIANT: the gateway ends before the store that records what it does."""
    with pumped(handing) as (connection, _):
        line(connection)
        handing.ask("server.stop")
        assert handing.process.wait(10) == 0
        assert connection.recv(10) == b""
    assert "gateway stopped" in log_file().read_text()
    assert "did not stop well" not in log_file().read_text()


def test_a_client_that_is_merely_connected_does_not_keep_an_old_server(handing):
    with pumped(handing, version="99.0.0") as (connection, _):
        line(connection)
        assert handing.process.wait(10) == 0


def test_a_call_under_way_does(handing):
    with pumped(handing, version="99.0.0") as (connection, _):
        line(connection)
        connection.sendall(b"busy")
        assert connection.recv(10) == b"busy"
        time.sleep(2.5)  # longer than the server takes to look
        assert handing.process.poll() is None
        connection.sendall(b"idle")
        assert handing.process.wait(10) == 0


def test_verbs_reach_the_same_gateway(handing):
    """`upstream.list` asks the running gateway for its servers."""
    with contextlib.suppress(CheckreinError):
        handing.ask("upstream.list")
    assert said("gateway started")
