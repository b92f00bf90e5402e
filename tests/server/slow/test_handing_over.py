"""MCP clients on the server's socket: answered once, then handed to the gateway."""

import contextlib
import json
import os
import signal
import socket
import sys
import time

import pytest

from checkrein import __version__, wire
from checkrein.errors import CheckreinError
from checkrein.runtime import log_file
from checkrein.settings.sources import state_dir
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.sqlite import SqliteStore
from checkrein.store.tokens import hash_of
from patience import PATIENCE, until
from server.conftest import Serving, until_tidied_twice
from server.handing_over import GATEWAY, descriptors

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def handing(home):
    made = Serving(GATEWAY).start()
    yield made
    made.kill(signal.SIGTERM)


@pytest.fixture(params=["copies", "passes"])
def pumped(request):
    """(the client's line, what the server answered, what the server is told) as a pump meets them."""
    passes = request.param == "passes"

    @contextlib.contextmanager
    def pumped(serving, folder="/p", version=__version__):
        with greeted(serving, folder, version, passes) as (connection, answer):
            if not passes or answer[2]:
                yield connection, answer
                return
            assert answer == (b"PASS", b"", 0)
            ours, theirs = socket.socketpair()
            with ours:
                ours.settimeout(PATIENCE)
                with theirs:
                    socket.send_fds(connection, [b"."], [theirs.fileno()] * 2)
                yield ours, (b"", *answer[1:])

    pumped.facts = {"PASSES": "1"} if passes else {}
    return pumped


@contextlib.contextmanager
def greeted(serving, folder="/p", version=__version__, passes=True):
    """(connection, what the server answered)"""
    with serving.connect() as connection:
        connection.settimeout(PATIENCE)
        more = "PASSES=1\n" if passes else ""
        wire.send(connection, f"checkrein 1 {version}\nmcp\nCWD={folder}\n{more}\n".encode())
        yield connection, wire.decode_answer(wire.receive(connection, time.monotonic() + PATIENCE))


def line(connection):
    with connection.makefile("rb") as file:
        return file.readline()


def said(text):
    return text in log_file().read_text()


def test_the_gateway_has_the_connection_and_who_is_there(handing, pumped):
    with pumped(handing, "/a b") as (connection, answer):
        assert answer == (b"", b"", 0)
        assert json.loads(line(connection)) == [
            os.getpid(),
            os.getuid(),
            {"CWD": "/a b", **pumped.facts},
        ]
        connection.sendall(b"raw bytes, no frames")
        assert connection.recv(100) == b"raw bytes, no frames"
        connection.settimeout(None)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b""


def test_no_worker_stays_with_it_however_long_it_lasts(handing, pre, pumped):
    with contextlib.ExitStack() as stack:
        for _ in range(300):  # more than there are workers
            connection, _ = stack.enter_context(pumped(handing))
            line(connection)
        handing.ask("phase.set", name="building")
        assert handing.hook(pre("ls"))[2] == 0
    assert log_file().read_text().count("gateway started") == 1


def test_hooks_do_not_need_the_gateway(handing, pre):
    handing.hook(pre("ls"))
    handing.ask("server.about")
    assert not said("gateway started")


def test_a_gateway_that_cannot_start_says_why_and_is_tried_again(handing, home, pumped):
    (home / "broken").touch()
    with pumped(handing) as (connection, (out, err, code)):
        assert (out, code) == (b"", 2)
        assert b"It is broken." in err
        assert b"Mend it." in err
        assert connection.recv(10) == b""
    (home / "broken").unlink()
    with pumped(handing) as (_, answer):
        assert answer == (b"", b"", 0)


def test_a_connection_the_gateway_does_not_take_is_closed(handing, pumped):
    with pumped(handing, "/refused") as (connection, _):
        assert connection.recv(10) == b""
    until(lambda: said("not this one"))


@pytest.mark.parametrize("words", ["mcp more", "MCP", "mcp "])
def test_other_words_are_not_handed_over(handing, words):
    with handing.connect() as connection:
        connection.settimeout(PATIENCE)
        wire.send(connection, f"checkrein 1 {__version__}\n{words}\nCWD=/p\n\n".encode())
        assert connection.recv(10) == b""
    handing.ask("server.about")
    assert not said("gateway started")


def test_the_gateway_ends_before_the_store(handing, pumped):
    """INVARIANT: the gateway ends before the store that records what it does."""
    with pumped(handing) as (connection, _):
        line(connection)
        handing.ask("server.stop")
        assert handing.process.wait(PATIENCE) == 0
        assert connection.recv(10) == b""
    assert "gateway stopped" in log_file().read_text()
    assert "did not stop well" not in log_file().read_text()


def test_a_client_that_is_merely_connected_does_not_keep_an_old_server(handing, pumped):
    with pumped(handing, version="99.0.0") as (connection, _):
        line(connection)
        assert handing.process.wait(PATIENCE) == 0


def test_a_call_under_way_does(handing, pumped):
    with pumped(handing, version="99.0.0") as (connection, _):
        line(connection)
        connection.sendall(b"busy")
        assert connection.recv(10) == b"busy"
        until_tidied_twice()
        assert handing.process.poll() is None
        connection.sendall(b"idle")
        assert handing.process.wait(PATIENCE) == 0


def test_verbs_reach_the_same_gateway(handing):
    """`upstream.list` asks the running gateway for its servers."""
    with contextlib.suppress(CheckreinError):
        handing.ask("upstream.list")
    until(lambda: said("gateway started"))


# What is passed


@pytest.fixture
def settled(handing):
    """Sees that a hostile pump leaves nothing open, and that the next client is served."""
    with greeted(handing, passes=False) as (connection, _):
        line(connection)
        # A client of before may be on its way out still, so there are so many at most.
        most = descriptors(handing) - 1
    until(lambda: descriptors(handing) <= most)
    most = descriptors(handing)
    yield handing
    until(lambda: descriptors(handing) <= most, failing=lambda: f"{descriptors(handing)} are open")
    with greeted(handing, passes=False) as (connection, _):
        assert line(connection)


@on_linux
@pytest.mark.parametrize("count", [0, 1, 3, 200])
def test_a_pump_that_passes_another_number_is_sent_away(settled, count):
    reader, writer = os.pipe()
    with greeted(settled) as (connection, _):
        socket.send_fds(connection, [b"."], [reader] * count) if count else connection.sendall(b".")
        assert connection.recv(10) == b""
    os.close(reader)
    os.close(writer)
    until(lambda: said("something else than two descriptors"))


@on_linux
def test_a_pump_that_passes_something_else_is_sent_away(settled):
    with greeted(settled) as (connection, _), open(os.devnull, "r+b") as null:
        socket.send_fds(connection, [b"."], [null.fileno()] * 2)
        assert connection.recv(10) == b""
    until(lambda: said("neither a pipe nor a socket"))


@on_linux
def test_a_pump_that_passes_nothing_is_not_waited_for(settled):
    with greeted(settled) as (connection, _):
        assert connection.recv(10) == b""
    until(lambda: said("did not pass them in time"))


@on_linux
def test_pumps_that_leave_at_every_step_leave_nothing_behind(settled):
    """INVARIANT: whenever a pump goes, nothing of its client stays open."""
    for number in range(30):
        one, two = socket.socketpair()
        with one, two, greeted(settled, "/refused" if number % 3 == 2 else "/p") as (connection, _):
            if number % 3:
                socket.send_fds(connection, [b"."], [one.fileno()] * 2)
    until(lambda: said("not this one"))


def test_the_gateway_opens_by_itself_for_clients_that_come_over_http(home):
    made = Serving(GATEWAY)
    store = SqliteStore.open(state_dir())
    number, token = CLIENTS.new()
    client = GatewayClient(id=number, name="ci", hash=hash_of(token), made_at=1.0, made_by="ada")
    store.write(lambda tx: CLIENTS.add(tx, client))
    store.close()
    made.start()
    try:
        until(lambda: log_file().exists() and said("gateway started"))
    finally:
        made.kill(signal.SIGTERM)


def test_without_clients_or_waiting_scripts_it_stays_shut(home):
    made = Serving(GATEWAY).start()
    try:
        until_tidied_twice()
        assert "gateway started" not in log_file().read_text()
    finally:
        made.kill(signal.SIGTERM)
