"""Whatever clients and handlers do, somebody takes the next connection."""

import contextlib
import socket
import threading

import pytest

from checkrein.server.workers import KEPT, Workers
from patience import PATIENCE, until


@pytest.fixture
def pool(tmp_path):
    made = []

    def make(handle, **more):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(tmp_path / "s"))
        listener.listen(64)
        workers = Workers(listener, handle, **more)
        made.append(workers)
        workers.start()
        return workers

    yield make
    for workers in made:
        workers.stop(seconds=PATIENCE)


@pytest.fixture
def knock(tmp_path):
    with contextlib.ExitStack() as open_ones:

        def connect(sent=b""):
            connection = open_ones.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.settimeout(PATIENCE)
            connection.connect(str(tmp_path / "s"))
            connection.sendall(sent)
            return connection

        yield connect


def echo(connection):
    connection.sendall(connection.recv(10))


def is_answered(connection):
    return connection.recv(10) != b""


def test_slow_clients_hold_up_nobody(pool, knock):
    workers = pool(echo)
    slow = [knock() for _ in range(30)]
    assert until(lambda: workers.busy == 30)
    assert is_answered(knock(b"x"))
    for connection in slow:
        connection.sendall(b"y")
    assert all(is_answered(connection) for connection in slow)
    assert until(lambda: workers.busy == 0)
    assert until(lambda: len(workers._threads) <= KEPT + 1)
    assert is_answered(knock(b"x"))


def test_beyond_the_most_the_next_waits_and_is_taken_then(pool, knock):
    workers = pool(echo, most=3)
    slow = [knock() for _ in range(3)]
    assert until(lambda: workers.busy == 3)
    late = knock(b"x")
    assert len(workers._threads) == 3
    slow[0].sendall(b"y")
    assert is_answered(late)


@pytest.mark.invariant("whatever becomes of one connection, its thread lives to take the next")
def test_whatever_becomes_of_one_connection_its_thread_lives_to_take_the_next(pool, knock):
    def breaks(connection):
        if connection.recv(1) == b"!":
            raise RuntimeError("boom")
        connection.sendall(b"fine")

    pool(breaks, most=1)
    for _ in range(5):
        assert not is_answered(knock(b"!"))
    assert is_answered(knock(b"x"))


def test_no_more_threads_is_no_reason_to_stop_taking_connections(pool, knock, monkeypatch):
    workers = pool(echo)

    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(3):
        assert is_answered(knock(b"x"))
    monkeypatch.undo()
    assert len(workers._threads) == 1
    slow = knock()
    assert is_answered(knock(b"x"))
    slow.close()


def test_without_a_first_thread_there_is_no_server(pool, monkeypatch):
    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="nobody could answer"):
        pool(echo)


@pytest.mark.invariant(
    "a thread on its way out counts as nobody, so the last one that waits is never missing"
)
def test_a_thread_on_its_way_out_counts_as_nobody(pool, knock):
    """Bursts make threads come and go; after each, somebody must still be waiting."""
    workers = pool(echo)
    for _ in range(5):
        burst = [knock(b"x") for _ in range(3 * KEPT)]
        assert all(is_answered(connection) for connection in burst)
        assert is_answered(knock(b"x"))
    assert until(lambda: workers.busy == 0)
    with workers._lock:
        assert 1 <= workers._idle == len(workers._threads) <= KEPT + 1


def test_out_of_descriptors_is_a_moment(pool, knock, monkeypatch):
    fails = [3]

    class Short(socket.socket):
        def accept(self):
            if fails[0]:
                fails[0] -= 1
                raise OSError(24, "Too many open files")
            return super().accept()

    monkeypatch.setattr(socket, "socket", Short)
    pool(echo)
    assert is_answered(knock(b"x"))
    assert fails == [0]


def test_stopping_takes_nothing_new_and_waits_once_for_all_not_for_each(pool, knock, monkeypatch):
    workers = pool(echo)
    slow = [knock() for _ in range(6)]
    assert until(lambda: workers.busy == 6)
    join, in_vain = threading.Thread.join, []

    def counted(thread, timeout=None):
        join(thread, timeout)
        if timeout and thread.is_alive():
            in_vain.append(timeout)

    monkeypatch.setattr(threading.Thread, "join", counted)
    workers.stop(seconds=0.05)
    monkeypatch.undo()
    assert len(in_vain) <= 1
    with pytest.raises(OSError):
        knock()
    for connection in slow:
        connection.sendall(b"y")
    assert all(is_answered(connection) for connection in slow)
    assert until(lambda: not workers._threads)
