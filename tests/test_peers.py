"""Who is at the other end, as the system says; with real processes."""

import os
import pty
import shutil
import socket
import subprocess
import sys
import time

import pytest

from checkrein import peers
from checkrein.peers import Process
from patience import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def run():
    """Starts a process, and ends it after the test."""
    started = []

    def start(*words, **more):
        process = subprocess.Popen(words, **more)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def test_the_kernel_says_who_connected(tmp_path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        client.connect(str(tmp_path / "s"))
        connection, _ = listener.accept()
        with connection:
            assert peers.peer_of(connection) == peers.Peer(os.getpid(), os.geteuid())
            assert peers.peer_of(client).uid == os.geteuid()


def test_a_process_is_told_from_a_later_one_with_its_number(run):
    child = run("sleep", "60")
    found = peers.process(child.pid)
    assert (found.pid, found.parent) == (child.pid, os.getpid())
    assert peers.is_alive(child.pid, found.started)
    assert not peers.is_alive(child.pid, found.started + "1")
    child.kill()
    child.wait()
    assert peers.process(child.pid) is None
    assert not peers.is_alive(child.pid, found.started)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 5])
def test_a_number_nobody_has_is_nobody(pid):
    assert peers.process(pid) is None
    assert peers.lineage(pid) == []
    assert peers.words_of(pid) == []
    assert peers.environment_names(pid) == set()
    assert not peers.has_terminal(pid)


def test_a_lineage_goes_from_the_process_to_the_first_one(run):
    code = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    parent = run(sys.executable, "-c", code)

    def below():
        found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
        pairs = [line.split() for line in found.stdout.splitlines()]
        return next((int(pid) for pid, above in pairs if int(above) == parent.pid), None)

    child = until(below)
    line = peers.lineage(child)
    assert [each.pid for each in line[:3]] == [child, parent.pid, os.getpid()]
    assert line[-1].parent == 0
    assert peers.is_whole(line)
    os.kill(child, 9)


def test_a_lineage_with_somebody_missing_is_not_whole(run):
    line = peers.lineage(os.getpid())
    assert not peers.is_whole([])
    assert not peers.is_whole(line[:1])
    child = run("sleep", "60")
    child.kill()
    child.wait()
    assert not peers.is_whole([Process(5, child.pid, "1", "x")])


@linux
@pytest.mark.parametrize("name", ["a) R 1 (b", "x y", ")", "(", "S 0 0 0"])
def test_a_name_can_hold_anything_and_changes_no_other_field(run, tmp_path, name):
    program = tmp_path / name
    shutil.copy("/bin/sleep", program)
    child = run(str(program), "60")
    until(lambda: peers.process(child.pid).name == name)
    found = peers.process(child.pid)
    assert (found.name, found.parent) == (name, os.getpid())
    assert found.started.isdigit()


@linux
def test_the_names_of_variables_are_read_and_never_their_values(run):
    child = run("sleep", "60", env={"CLAUDECODE": "1", "TOKEN": "s3cret=x", "PATH": os.environ["PATH"]})
    until(lambda: peers.words_of(child.pid) == ["sleep", "60"])
    assert peers.environment_names(child.pid) == {"CLAUDECODE", "TOKEN", "PATH"}


def test_a_terminal_is_where_somebody_can_type(run):
    ours, theirs = pty.openpty()
    typed = run("sleep", "60", stdin=theirs)
    piped = run("sleep", "60", stdin=subprocess.PIPE)
    assert peers.has_terminal(typed.pid)
    assert not peers.has_terminal(piped.pid)
    os.close(ours)
    os.close(theirs)


def test_how_long_a_process_has_been_there(run):
    before = time.monotonic()
    young = peers.process(run("sleep", "60").pid)
    started = time.monotonic()
    # The system counts in ticks on one platform, in seconds on the other.
    slack = 0.02 if sys.platform == "linux" else 1.0
    until(lambda: peers.age(young) > 2 * slack)
    least, age, most = time.monotonic() - started, peers.age(young), time.monotonic() - before
    assert least - slack <= age <= most + slack
    assert peers.age(peers.process(os.getpid())) > peers.age(young)
    assert peers.age(Process(1, 0, "no time", "x")) is None
