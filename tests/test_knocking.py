"""Talking to the server from another process of ours: a real socket, a server that does as a test says."""

import contextlib
import os
import signal
import socket
import threading
import time

import msgspec
import pytest

from checkrein import __version__, errors, knocking, peers, wire
from checkrein.errors import InputError, NotFoundError, PersonOnlyError, StoreError, StoreFullError
from checkrein.runtime import private_folder, socket_path, write_door
from patience import PATIENCE, until


@pytest.fixture
def listening(home):
    """A socket where the server should be; answers every connection with `answer(connection)`."""
    with contextlib.ExitStack() as stack:

        def serve(answer):
            private_folder(socket_path().parent)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(str(socket_path()))
            stack.callback(socket_path().unlink, missing_ok=True)
            listener.listen()
            write_door()

            def run():
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = listener.accept()
                        with connection:
                            answer(connection)

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            stack.callback(thread.join, PATIENCE)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)

        yield serve


def saying(**answer):
    def give(connection):
        wire.receive(connection, time.monotonic() + PATIENCE)
        wire.send(connection, msgspec.json.encode(answer))

    return give


def test_where_no_server_runs_there_is_no_connection(home):
    assert knocking.connect() is None
    assert not knocking.is_running()
    assert not knocking.socket_exists()
    write_door()
    assert knocking.connect() is None


def test_a_verb_and_its_parameters_arrive_and_the_value_comes_back(listening):
    heard = []

    def answer(connection):
        heard.append(wire.decode_request(wire.receive(connection, time.monotonic() + PATIENCE)))
        wire.send(connection, b"")
        wire.send(connection, b'{"value": {"x": [1, null]}}')

    listening(answer)
    assert knocking.socket_exists()
    assert knocking.ask(knocking.connect(), "rule.add", {"rule": {"tool": "ü"}}) == {"x": [1, None]}
    assert (heard[0].version, heard[0].words) == (__version__, ("verb", "rule.add"))
    assert msgspec.json.decode(heard[0].body) == {"rule": {"tool": "ü"}}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("PersonOnlyError", PersonOnlyError),
        ("StoreFullError", StoreFullError),
        ("NotFoundError", NotFoundError),
        ("ConfigError", InputError),
        ("SystemExit", InputError),
        ("annotations", InputError),
        ("Any", InputError),
        ("_shown", InputError),
        ("", InputError),
    ],
)
def test_an_error_is_raised_here_as_it_was_there_and_nothing_else_is(listening, name, kind):
    listening(saying(error=name, message="What happened.", remedy="What helps."))
    with pytest.raises(errors.CheckreinError) as caught:
        knocking.ask(knocking.connect(), "x.y", {})
    assert type(caught.value) is kind
    assert str(caught.value) == "What happened. What helps."


@pytest.mark.parametrize("answer", [lambda _: None, lambda each: each.sendall(b"\0\0")])
def test_a_server_that_leaves_is_an_error_in_words(listening, answer):
    listening(answer)
    with pytest.raises(StoreError, match="did not answer"):
        knocking.ask(knocking.connect(), "x.y", {"big": "x" * 3_000_000})


def test_a_server_that_hangs_is_waited_for_so_long_and_no_longer(listening):
    hang = threading.Event()
    listening(lambda _: hang.wait(PATIENCE))
    for params in ({}, {"more than fits into the socket": "x" * 4_000_000}):
        connection = knocking.connect()
        with pytest.raises(StoreError, match="did not answer"):
            knocking.ask(connection, "x.y", params, seconds=0.2)
        assert connection.gettimeout() <= 0.2
    hang.set()


def test_a_server_that_says_it_is_still_there_is_waited_for(listening, monkeypatch):
    """By the clock of whoever waits, all of it takes longer than one wait may."""
    real, ours, passed = time.monotonic, threading.current_thread(), []

    def moves_on():
        if threading.current_thread() is not ours:
            return real()
        passed.append(0.2 * PATIENCE)
        return real() + sum(passed)

    def answer(connection):
        wire.receive(connection, real() + PATIENCE)
        for _ in range(8):
            wire.send(connection, b"")
        wire.send(connection, b'{"value": "at last"}')

    listening(answer)
    connection = knocking.connect()
    monkeypatch.setattr(time, "monotonic", moves_on)
    assert knocking.ask(connection, "x.y", {}, seconds=PATIENCE) == "at last"
    assert sum(passed) > PATIENCE


def test_another_user_s_server_is_never_spoken_to(listening, monkeypatch):
    heard = []
    listening(lambda connection: heard.append(connection.recv(10)))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StoreError, match="another user"):
        knocking.connect()
    monkeypatch.undo()
    assert heard in ([], [b""])


def test_starting_finds_the_server_that_runs_already(listening):
    listening(lambda _: None)
    knocking.start(seconds=0).close()


@pytest.fixture
def ended():
    """Whatever a test started is not left behind."""
    pids = []
    yield pids.append
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_starting_starts_one_that_outlives_us_and_says_so_when_it_cannot(home, monkeypatch, ended):
    connection = knocking.start(seconds=PATIENCE)
    pid = peers.peer_of(connection).pid
    ended(pid)
    assert knocking.ask(connection, "server.about", {})["pid"] == pid
    assert os.getsid(pid) != os.getsid(0)
    knocking.ask(knocking.connect(), "server.stop", {})
    until(lambda: not knocking.is_running())
    monkeypatch.setattr(knocking, "_SERVER", ("/bin/true",))
    with pytest.raises(StoreError, match="did not start"):
        knocking.start(seconds=0.2)
