"""A server that is not there is started, once, with nothing of the agent's in its hands."""

import json
import os
import subprocess
import sys

import pytest

from hookclient.conftest import clean
from hookclient.servers import children, frame
from patience import PATIENCE, until

ALLOW = frame(0, b'{"ok":1}')
# Stands in for the Python of the door file: notes what it was given, then serves until the test ends it.
STAND_IN = """#!{python}
import json, os, signal, socket, struct, sys, time
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else []
note = dict(
    words=sys.argv[1:],
    cwd=os.getcwd(),
    sid=os.getsid(0) == os.getpid(),
    fds=[fd for fd in fds if os.path.exists(f"/proc/self/fd/{{fd}}")],
    stdio=[os.readlink(f"/proc/self/fd/{{fd}}") for fd in range(3)] if fds else [],
    environment=open("/proc/self/environ", "rb").read().decode().split("\\0")[:-1] if fds else [],
    ignored=[int(s) for s in (1, 2, 15, 17) if signal.getsignal(s) == signal.SIG_IGN],
    blocked=[int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
)
with open({folder!r} + "/started", "a") as file:
    file.write(json.dumps(note) + "\\n")
time.sleep(0.2)
listener = socket.socket(socket.AF_UNIX)
listener.bind({folder!r} + "/socket")
listener.listen(64)
while True:
    connection, _ = listener.accept()
    connection.recv(1 << 20)
    connection.sendall({answer!r})
    connection.close()
"""


@pytest.fixture
def stand_in(door):
    """Installs the stand-in; gives what was noted at every start."""

    def notes():
        path = door.path.with_name("started")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    script = STAND_IN.format(python=sys.executable, folder=str(door.path.parent), answer=ALLOW)
    door.python.write_text(script, encoding="utf-8")
    door.python.chmod(0o700)
    return notes


@pytest.mark.parametrize("mode", ["gate", "tell"])
@pytest.mark.parametrize("left_over", [False, True])
def test_a_missing_server_is_started(client, door, stand_in, mode, left_over):
    if left_over:
        leave_a_dead_socket(door.socket)
        door.write(python=remove_first(door))
    result = door.run(client, mode)
    assert (result.returncode, result.stdout) == (0, b'{"ok":1}')
    assert len(stand_in()) == 1
    assert door.spooled() == []


def leave_a_dead_socket(path):
    import socket

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def remove_first(door):
    path = door.path.with_name("wrapper")
    path.write_text(f'#!/bin/sh\nrm "{door.socket}"\nexec "{door.python}" "$@"\n', encoding="utf-8")
    path.chmod(0o700)
    return path


@pytest.mark.parametrize("mode", ["permission", "status"])
def test_some_modes_never_start_one(client, door, stand_in, mode):
    result = door.run(client, mode)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (b"" if mode == "permission" else b"checkrein: not running\n")
    assert (door.processes(), stand_in()) == ([], [])


def test_many_at_once_start_one(client, door, stand_in):
    """INVARIANT: one winner."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(door.words(client), **quiet) for _ in range(8)]
    results = [(*process.communicate(timeout=PATIENCE), process.returncode) for process in running]
    assert results == [(b'{"ok":1}', b"", 0)] * 8
    # A second server either still runs, or has left its note.
    assert len(door.processes()) <= 1
    assert len(stand_in()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_server_gets_exactly_what_the_door_file_says(client, door, stand_in):
    door.write("HOME=/h o=me", "EMPTY=", "LC_ALL=C.UTF-8")
    spare = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(spare, True)
    line = ["sh", "-c", 'trap "" HUP INT; exec "$@"', "sh", *door.words(client)]
    env = clean(PYTHONPATH="/evil", LD_PRELOAD_NOT="x")
    result = subprocess.run(
        line, input=b"{}", capture_output=True, env=env, close_fds=False, check=False, timeout=PATIENCE
    )
    os.close(spare)
    assert result.returncode == 0
    (note,) = stand_in()
    assert note["environment"] == ["HOME=/h o=me", "EMPTY=", "LC_ALL=C.UTF-8"]
    assert note["words"] == ["-I", "-m", "checkrein", "serve", "--on-demand"]
    assert (note["cwd"], note["sid"]) == ("/", True)
    assert note["fds"] == [0, 1, 2]
    assert note["stdio"] == ["/dev/null"] * 3
    assert (note["ignored"], note["blocked"]) == ([], [])


def test_the_server_does_not_hold_the_lock(client, door, stand_in):
    import fcntl

    assert door.run(client).returncode == 0
    with door.path.with_name("door.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert os.fstat(lock.fileno()).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", ["gate", "tell"])
def test_a_server_that_dies_at_once_is_a_quick_failure(with_limits, door, mode):
    """No limit is near: only its end can be what is noticed."""
    door.write(python="/bin/false")
    result = door.run(with_limits(), mode)
    assert result.returncode == (2 if mode == "gate" else 0)
    assert (b"/bin/false" in result.stderr) == (mode == "gate")
    assert len(door.spooled()) == (1 if mode == "tell" else 0)


def test_a_python_that_is_not_there(client, door):
    door.write(python="/does/not/exist")
    result = door.run(client)
    assert result.returncode == 2
    assert b"/does/not/exist" in result.stderr


@pytest.fixture
def never_listens(door):
    """A Python of the door file that waits for ever: to open a pipe that has no other end."""
    os.mkfifo(door.path.with_name("pipe"))
    door.python.write_text(f"#!/bin/sh\nread word < '{door.path.with_name('pipe')}'\n", encoding="utf-8")
    door.python.chmod(0o700)


@pytest.mark.usefixtures("never_listens")
def test_a_server_that_never_listens_is_given_up(with_limits, door):
    result = door.run(with_limits(START=0.2))
    assert result.returncode == 2
    assert b"did not start in time" in result.stderr


@pytest.mark.usefixtures("never_listens")
def test_no_server_is_waited_for_longer_than_the_hook_may(with_limits, door):
    result = door.run(with_limits(), seconds=1)
    assert result.returncode == 2
    assert b"in time" in result.stderr


def test_a_server_that_leaves_because_another_was_quicker_is_waited_for(client, door, serve):
    door.python.write_text(f"#!/bin/sh\ntouch '{door.path}.asked'\nexit 0\n", encoding="utf-8")
    door.python.chmod(0o700)
    with subprocess.Popen(door.words(client), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        until(lambda: os.path.exists(f"{door.path}.asked"))
        until(lambda: not children(process.pid), failing="the client did not notice the end")
        serve(ALLOW)
        assert process.wait(PATIENCE) == 0


def test_a_lock_that_is_a_link_is_not_followed(client, door, stand_in, tmp_path):
    door.path.with_name("door.lock").symlink_to(tmp_path / "elsewhere")
    result = door.run(client)
    assert result.returncode == 2
    assert b"locked" in result.stderr
    assert not (tmp_path / "elsewhere").exists()
