"""A server that ends while a person is asked: the client finds the next one and asks the same again."""

import os
import subprocess
import sys
import threading

import pytest

from hookclient.servers import KEEP_ALIVE, Server, frame, times_waited
from hookclient.test_client import failed, on_linux, refused
from patience import PATIENCE, until

ALLOW = frame(0, b'{"ok":1}', b"seen")
WAITING = ["gate", "permission"]
# Stands in for the Python of the door file: dies while starting, as often as the file says; then answers.
DYING = """#!{python}
import os, socket, sys
left = open({folder!r} + "/lives").read()
open({folder!r} + "/lives", "w").write(left[1:])
if left:
    os.kill(os.getpid(), 9) if left[0] == "k" else sys.exit(0)
listener = socket.socket(socket.AF_UNIX)
listener.bind({folder!r} + "/socket")
listener.listen(64)
connection, _ = listener.accept()
connection.recv(1 << 20)
connection.sendall({answer!r})
"""


def answers(*replies):
    """One reply after the other, the last again and again."""
    rest, lock = list(replies), threading.Lock()

    def say(connection):
        with lock:
            reply = rest.pop(0) if len(rest) > 1 else rest[0]
        connection.sendall(reply)

    return say


@pytest.mark.parametrize("mode", WAITING)
@pytest.mark.parametrize(
    "broken", [KEEP_ALIVE, KEEP_ALIVE * 3, KEEP_ALIVE + b"\0\0", KEEP_ALIVE + ALLOW[:-1]]
)
def test_the_same_request_is_sent_again(client, door, serve, mode, broken):
    server = serve(answers(broken, ALLOW))
    result = door.run(client, mode, b'{"tool":"Bash"}')
    assert (result.returncode, result.stdout, result.stderr) == (0, b'{"ok":1}', b"seen")
    assert len(server.requests) == 2
    assert server.requests[0] == server.requests[1]


def test_once_a_person_is_asked_no_end_is_the_last(client, door, serve):
    """Also when the next server ends before it says anything."""
    server = serve(answers(KEEP_ALIVE, b"", b"", KEEP_ALIVE, b"\0", ALLOW))
    assert door.run(client).stdout == b'{"ok":1}'
    assert len(server.requests) == 6


def test_it_tries_a_few_times_a_second_and_no_longer_than_it_may(client, door, serve):
    """It pauses for a quarter of a second between two tries: no more than five begin within one."""
    server = serve(KEEP_ALIVE)
    refused(door.run(client, seconds=1))
    assert 1 <= len(server.requests) <= 5


@pytest.mark.parametrize("mode", ["tell", "status"])
def test_who_asks_nobody_does_not_come_back(client, door, serve, mode):
    server = serve(answers(KEEP_ALIVE, ALLOW))
    failed(door.run(client, mode), mode, door)
    assert len(server.requests) == 1


@pytest.mark.parametrize("mode", WAITING)
@pytest.mark.parametrize("reply", [b"", b"\0\0", ALLOW[:-1]])
def test_without_a_sign_that_a_person_is_asked_the_end_is_a_failure(client, door, serve, mode, reply):
    """INVARIANT: a server that breaks off before it asked anybody has refused."""
    server = serve(answers(reply, ALLOW))
    failed(door.run(client, mode), mode, door)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "nonsense", [frame(1, b"{}"), b"\0\0\0\4\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\7\0\0\0\0\3{}"]
)
def test_nonsense_is_a_refusal_also_after_a_sign_of_life(client, door, serve, nonsense):
    server = serve(answers(KEEP_ALIVE, KEEP_ALIVE + nonsense, ALLOW))
    refused(door.run(client))
    assert len(server.requests) == 2


def test_silence_of_the_next_server_is_a_refusal(with_limits, door, serve, late):
    says = iter([lambda connection: connection.sendall(KEEP_ALIVE)])

    def falls_silent(connection):
        next(says, late)(connection)

    serve(falls_silent)
    assert "in time" in refused(door.run(with_limits(FIRST_ANSWER=1)))


@pytest.mark.parametrize("lives", ["", "k", "kk", "0", "k0"])
def test_the_next_server_is_started_however_often_that_takes(client, door, lives):
    """Killed while starting, or gone because another was quicker and ended then."""
    door.python.write_text(
        DYING.format(python=sys.executable, folder=str(door.path.parent), answer=ALLOW), encoding="utf-8"
    )
    door.python.chmod(0o700)
    door.path.with_name("lives").write_text(lives)
    first = Server(door.socket, lambda connection: end(first, door, connection))
    result = door.run(client)
    assert (result.returncode, result.stdout) == (0, b'{"ok":1}'), result.stderr


def end(server, door, connection):
    """Ask a person, and be gone."""
    door.socket.unlink()
    server.listener.close()
    connection.sendall(KEEP_ALIVE)


@on_linux
def test_a_dialog_waits_for_a_server_that_others_start(client, door):
    door.python.write_text(f"#!/bin/sh\ntouch '{door.path}.started'\n", encoding="utf-8")
    door.python.chmod(0o700)
    first = Server(door.socket, lambda connection: end(first, door, connection))
    words = door.words(client, "permission")
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        until(lambda: first.requests and not door.socket.exists())
        before = times_waited(process.pid)
        # It heard the end, and paused twice without a server.
        until(lambda: times_waited(process.pid) >= before + 4)
        assert process.poll() is None
        second = Server(door.socket, ALLOW)
        assert process.wait(PATIENCE) == 0
        assert process.stdout.read() == b'{"ok":1}'
    second.close()
    assert not os.path.exists(f"{door.path}.started")


def test_a_dialog_nobody_starts_a_server_for_stays_with_the_agent(client, door):
    first = Server(door.socket, lambda connection: end(first, door, connection))
    result = door.run(client, "permission", seconds=1)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
