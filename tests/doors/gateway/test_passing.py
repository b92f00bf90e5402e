"""Descriptors a pump passes: two of the right kind and direction, never waited in; the rest is closed."""

import contextlib
import fcntl
import os
import resource
import socket
import subprocess
import sys

import pytest

from checkrein import wire
from checkrein.doors.gateway import passing
from checkrein.errors import InputError

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="opens descriptors again")


def open_now():
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    return sorted(os.listdir(folder))


@pytest.fixture
def made():
    """Closes what a test opened, and sees that nothing else is left."""
    before = open_now()
    stack = contextlib.ExitStack()
    yield stack
    stack.close()
    assert open_now() == before


@pytest.fixture
def pair(made):
    one, two = socket.socketpair()
    return made.enter_context(one), made.enter_context(two)


@pytest.fixture
def pipe(made):
    fds = os.pipe()
    for fd in fds:
        made.callback(os.close, fd)
    return fds


def kinds():
    yield (
        "file",
        lambda: os.memfd_create("x") if sys.platform == "linux" else os.open(__file__, os.O_RDWR),
        "neither",
    )
    yield "nothing", lambda: os.open("/dev/null", os.O_RDWR), "neither"
    yield "terminal", terminal, "neither"
    yield "datagrams", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach(), "kind"
    yield "network", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach(), "kind"


def terminal():
    master, slave = os.openpty()
    os.close(master)
    return slave


@pytest.mark.parametrize(("make", "why"), [each[1:] for each in kinds()], ids=[each[0] for each in kinds()])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.invariant("else none stays open")
def test_only_pipes_and_local_sockets_are_taken(pair, pipe, make, why, place):
    """INVARIANT: of what we do not take nothing stays open."""
    ours, theirs = pair
    odd = make()
    passed = list(pipe)
    passed[place] = odd
    socket.send_fds(theirs, [b"."], passed)
    os.close(odd)
    with pytest.raises(InputError, match=why):
        passing.receive(ours)


def test_neither_is_taken_the_wrong_way_round(pair, pipe):
    ours, theirs = pair
    socket.send_fds(theirs, [b"."], pipe[::-1])
    with pytest.raises(InputError, match="other way"):
        passing.receive(ours)


@pytest.mark.parametrize("count", [1, 3, 200])
def test_two_are_taken_and_no_other_number(pair, pipe, count):
    ours, theirs = pair
    socket.send_fds(theirs, [b"."], [pipe[0]] * count)
    with pytest.raises(InputError, match="two"):
        passing.receive(ours)


@pytest.mark.parametrize("word", [b".", b"..", b"{}\n"])
def test_bytes_without_descriptors_are_refused(pair, word):
    ours, theirs = pair
    theirs.sendall(word)
    with pytest.raises(InputError, match="two"):
        passing.receive(ours)


def test_more_bytes_than_there_should_be_are_refused(pair, pipe):
    ours, theirs = pair
    socket.send_fds(theirs, [b".."], pipe)
    with pytest.raises(InputError, match="two"):
        passing.receive(ours)


def test_nothing_is_not_waited_for(pair):
    with pytest.raises(InputError, match="in time"):
        passing.receive(pair[0], 0.05)


def test_a_pump_that_left_is_no_fault(pair):
    pair[1].close()
    with pytest.raises(wire.Gone):
        passing.receive(pair[0])


@on_linux
def test_a_client_that_reads_no_more_is_no_fault(pair, pipe, tmp_path):
    ours, theirs = pair
    os.mkfifo(tmp_path / "named")
    reader = os.open(tmp_path / "named", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "named", os.O_WRONLY)
    socket.send_fds(theirs, [b"."], [pipe[0], writer])
    for fd in (reader, writer):
        os.close(fd)
    with pytest.raises(wire.Gone):
        passing.receive(ours)


@pytest.fixture(params=["pipes", "sockets"])
def client(request, pair, made):
    """(passed, (pump's input, pump's output), (client's output, client's input))"""
    ours, theirs = pair
    if request.param == "pipes":
        pump_in, client_out = os.pipe()
        client_in, pump_out = os.pipe()
    else:
        pump_in, client_out = (each.detach() for each in socket.socketpair())
        pump_out, client_in = (each.detach() for each in socket.socketpair())
    for fd in (pump_in, pump_out, client_out, client_in):
        made.callback(os.close, fd)
    socket.send_fds(theirs, [b"."], [pump_in, pump_out])
    passed = passing.receive(ours)
    made.callback(passed.close)
    return passed, (pump_in, pump_out), (client_out, client_in)


def test_what_is_passed_is_read_and_written(client):
    passed, _, (to, back) = client
    os.write(to, b"hello")
    assert passed.input.read(100) == b"hello"
    assert passed.output.write([b"an", memoryview(b"swer")]) == 6
    assert os.read(back, 100) == b"answer"


def test_it_reaches_no_child_process(client):
    """INVARIANT: what a client passed is nobody's but ours."""
    passed = client[0]
    assert not os.get_inheritable(passed.input.fd)
    assert not os.get_inheritable(passed.output.fd)


def test_it_is_found_as_it_was_left(client):
    passed, pump, _ = client
    passed.close()
    assert [os.get_blocking(fd) for fd in pump] == [True, True]


@on_linux
@pytest.mark.invariant("nobody who shares the client's descriptor can make us wait in it, nor we them")
def test_nobody_can_make_us_wait(client):
    """INVARIANT: nobody who shares the client's descriptor can make us wait in it, nor we them."""
    passed, pump, _ = client
    assert [os.get_blocking(fd) for fd in pump] == [True, True]
    for fd in pump:
        os.set_blocking(fd, True)
    with pytest.raises(BlockingIOError):
        passed.input.read(10)
    with pytest.raises(BlockingIOError):
        while True:
            passed.output.write([b"x" * 65_536])


def test_who_had_it_before_closes_nothing(client):
    """INVARIANT: what was handed on is closed by its last owner only."""
    passed, _, (to, _) = client
    mine = passed.detach()
    passed.close()
    os.write(to, b"still")
    assert mine.input.read(10) == b"still"
    mine.close()
    mine.close()


@on_linux
def test_where_nothing_can_be_opened_again_nothing_is_agreed_to(monkeypatch, tmp_path, pair):
    assert passing.possible(pair[0])
    monkeypatch.setattr(passing, "_OURS", str(tmp_path / "none"))
    assert not passing.possible(pair[0])


def test_where_descriptors_run_low_nothing_is_agreed_to(pair, made):
    """INVARIANT: however many clients there are, there are descriptors for those who copy."""
    high = made.enter_context(socket.socket(fileno=fcntl.fcntl(pair[0], fcntl.F_DUPFD_CLOEXEC, 100)))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    try:
        assert passing.possible(pair[0])
        assert not passing.possible(high)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def given(*ends):
    """What a pump with these ends would have passed."""
    return passing.Passed(*(passing._end(os.dup(fd), way) for fd, way in ends))


@on_linux
@pytest.mark.parametrize("kind", ["pipes", "sockets"])
def test_who_is_at_the_other_ends_is_told(made, kind):
    if kind == "pipes":
        (inner, writes), (reads, outer) = os.pipe(), os.pipe()
        for fd in (inner, writes, reads, outer):
            made.callback(os.close, fd)
    else:
        (one, far), (two, other) = socket.socketpair(), socket.socketpair()
        for each in (one, far, two, other):
            made.enter_context(each)
        inner, outer = one.fileno(), two.fileno()
    found = given((inner, os.O_RDONLY), (outer, os.O_WRONLY))
    made.callback(found.close)
    assert passing.leads_to(found, os.getpid())
    assert not passing.leads_to(found, os.getppid()) and not passing.leads_to(None, os.getpid())


@on_linux
def test_ends_that_lead_to_the_pump_itself_or_to_nobody_do_not_lead_to_who_started_it(made, tmp_path):
    """As a command does that an agent runs with `exec`: its streams are its own, or its accomplice's."""
    code = (
        "import os, socket, sys\n"
        "line = socket.socket(fileno=0)\n"
        "(a, b), (c, d) = os.pipe(), os.pipe()\n"
        "one, two = socket.socketpair()\n"
        "socket.send_fds(line, [b'.'], [a, d])\n"
        "socket.send_fds(line, [b'.'], [one.fileno(), one.fileno()])\n"
        "line.recv(1)\n"
    )
    ours, theirs = socket.socketpair()
    made.enter_context(ours)
    child = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=theirs)
    theirs.close()
    try:
        for _ in range(2):
            found = passing.receive(ours)
            assert not passing.leads_to(found, os.getpid())
            assert passing.leads_to(found, child.pid)
            found.close()
    finally:
        ours.send(b".")
        child.wait()


@on_linux
def test_a_named_pipe_leads_to_nobody(made, tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    fds = [os.open(path, os.O_RDWR) for _ in range(2)]
    for fd in fds:
        made.callback(os.close, fd)
    found = given((fds[0], os.O_RDONLY), (fds[1], os.O_WRONLY))
    made.callback(found.close)
    assert not passing.leads_to(found, os.getpid())
