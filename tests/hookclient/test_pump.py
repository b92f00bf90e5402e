"""Both clients as a pump: an MCP client's standard streams are passed on, or copied there and back."""

import contextlib
import fcntl
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import checkrein
from checkrein import peers
from hookclient.conftest import clean
from hookclient.servers import KEEP_ALIVE, Streams, children, frame, sleeps, times_waited, wait_until_read
from hookclient.test_starting import STAND_IN
from patience import PATIENCE, until

GO = frame()
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@contextlib.contextmanager
def pumping(client, door, **more):
    """A pump as an MCP client starts it; ended with the test."""
    more = {**PIPES, "env": clean(), "bufsize": 0, **more}
    with subprocess.Popen([*client, str(door.path), "mcp"], **more) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(params=["copies", "passes"])
def agree(request):
    """Agrees to the connection: what the server talks on from there, in either way."""

    @contextlib.contextmanager
    def agree(connection):
        if request.param == "copies":
            connection.sendall(GO)
            yield connection
        else:
            with Streams(connection) as line:
                yield line

    agree.passes = request.param == "passes"
    return agree


@pytest.fixture
def echo(agree):
    """Agrees, then sends back whatever comes, to its end."""

    def echo(connection):
        with agree(connection) as line:
            while piece := line.recv(1 << 16):
                line.sendall(piece)

    return echo


def read_all(stream, count):
    whole = b""
    while len(whole) < count:
        piece = stream.read(count - len(whole))
        assert piece, f"it ended after {len(whole)} of {count} bytes"
        whole += piece
    return whole


def fed(process, data):
    """Writes to the pump from a thread of its own; the thread, to be joined."""

    def write():
        with process.stdin:
            write_all(process.stdin, data)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def write_all(stream, data):
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def test_it_says_who_it_is_and_where(client, door, serve, tmp_path, echo):
    server = serve(echo)
    with pumping(client, door, cwd=tmp_path, env=clean(CLAUDE_PROJECT_DIR="/p")) as process:
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    head = f"checkrein 1 {checkrein.__version__}\nmcp\nCWD={tmp_path}\nPASSES=1\nCLAUDE_PROJECT_DIR=/p\n\n"
    assert server.requests == [head.encode()]


def test_lines_go_there_and_back(client, door, serve, echo):
    serve(echo)
    with pumping(client, door) as process:
        for line in (b'{"id":1}\n', b"\0\xff\n", b"x" * 5000 + b"\n"):
            process.stdin.write(line)
            assert read_all(process.stdout, len(line)) == line
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_megabytes_both_ways_at_once(client, door, serve, echo):
    serve(echo)
    data = random.Random(1).randbytes(9 << 20)
    with pumping(client, door) as process:
        writing = fed(process, data)
        assert read_all(process.stdout, len(data)) == data
        writing.join(PATIENCE)
        assert process.wait(PATIENCE) == 0


def is_full(writer):
    return not select.select([], [writer], [], 0)[1]


def test_a_reader_that_waits_holds_up_only_its_own_direction(client, door, serve, agree):
    """INVARIANT: answers nobody reads yet never keep what the client says from the server."""
    heard = threading.Event()

    def says_much(connection):
        def talk():
            with contextlib.suppress(OSError):
                line.sendall(b"y" * (4 << 20))

        with agree(connection) as line:
            talking = threading.Thread(target=talk)
            talking.start()
            count = 0
            while count < 300_000:
                count += len(line.recv(1 << 16))
            heard.set()
            talking.join(PATIENCE)
            assert line.recv(1) == b""

    serve(says_much)
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as answers, pumping(client, door, stdout=writer) as process:
        with open(writer, "wb", buffering=0):
            until(lambda: is_full(writer))
        writing = fed(process, b"z" * 300_000)
        assert heard.wait(PATIENCE)
        assert read_all(answers, 4 << 20) == b"y" * (4 << 20)
        writing.join(PATIENCE)
        assert process.wait(PATIENCE) == 0


def test_answers_after_the_clients_end_still_come(client, door, serve, agree):
    pumps = []

    def answers_late(connection):
        with agree(connection) as line:
            said = b""
            while piece := line.recv(1 << 16):
                said += piece
            until(lambda: sleeps(pumps[0].pid))
            line.sendall(b"you said " + said)

    serve(answers_late)
    with pumping(client, door) as process:
        pumps.append(process)
        assert process.communicate(b"goodbye\n", timeout=PATIENCE) == (b"you said goodbye\n", b"")
        assert process.returncode == 0


def test_a_server_that_ends_first_is_an_error(client, door, serve, agree):
    def says_little(connection):
        with agree(connection) as line:
            line.sendall(b"last words\n")

    serve(says_little)
    with pumping(client, door) as process:
        assert process.stdout.read() == b"last words\n"
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read() == (
            b"checkrein: no tools can be offered: the server ended. Run `checkrein doctor`.\n"
        )


def test_a_server_that_ends_with_much_unread(client, door, serve, agree):
    def hangs_up(connection):
        with agree(connection) as line:
            line.recv(10)
            line.sendall(b"too long\n")

    serve(hangs_up)
    with pumping(client, door, stdin=subprocess.PIPE) as process:

        def write():
            with contextlib.suppress(OSError):
                write_all(process.stdin, b"x" * (4 << 20))

        writing = threading.Thread(target=write)
        writing.start()
        assert process.stdout.read() == b"too long\n"
        assert process.wait(PATIENCE) == 1
        writing.join(PATIENCE)


def test_a_client_that_reads_no_more_ends_it(client, door, serve, agree):
    ended = threading.Event()

    def waits(connection):
        with agree(connection):
            connection.recv(1)
            ended.set()

    serve(waits)
    with pumping(client, door) as process:
        process.stdout.close()
        assert process.wait(PATIENCE) == 1
        assert process.stderr.read() == b""
        assert ended.wait(PATIENCE)


def test_a_sign_of_life_is_no_answer(client, door, serve, echo):
    def slow(connection):
        connection.sendall(KEEP_ALIVE)
        wait_until_read(connection)
        echo(connection)

    serve(slow)
    with pumping(client, door) as process:
        assert process.communicate(b"hello\n", timeout=PATIENCE)[0] == b"hello\n"


def test_a_refusal_is_shown(client, door, serve):
    serve(frame(2, b"", b"checkrein: the gateway cannot start.\n"))
    with pumping(client, door) as process:
        assert process.communicate(timeout=PATIENCE) == (b"", b"checkrein: the gateway cannot start.\n")
        assert process.returncode == 1


@pytest.mark.parametrize("reply", [b"", b"\0\0", frame(1), b"\xff" * 40])
def test_a_broken_answer_ends_it_with_a_reason(client, door, serve, reply):
    serve(reply)
    with pumping(client, door) as process:
        out, said = process.communicate(timeout=PATIENCE)
        assert (out, process.returncode) == (b"", 1)
        assert said.startswith(b"checkrein: no tools can be offered: the server")


def test_silence_before_it_begins_is_not_waited_for(with_limits, door, serve):
    serve(lambda connection: connection.recv(1))
    with pumping(with_limits(FIRST_ANSWER=0.2), door) as process:
        assert b"in time" in process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 1


def test_silence_afterwards_is(with_limits, door, serve, agree):
    def patient(connection):
        with agree(connection) as line:
            said = line.recv(100)
            time.sleep(1.1)  # longer than the limit of the first answer: the later, the truer
            line.sendall(said)
            assert line.recv(1) == b""

    serve(patient)
    with pumping(with_limits(FIRST_ANSWER=1), door) as process:
        assert process.communicate(b"still there?\n", timeout=PATIENCE)[0] == b"still there?\n"
        assert process.returncode == 0


@pytest.mark.parametrize("how", ["pipes", "sockets"])
@pytest.mark.parametrize("blocking", [True, False])
def test_inherited_descriptors_stay_as_they_were_found(client, door, serve, how, blocking, echo):
    """INVARIANT: the pump changes no flag of a descriptor that somebody else may share."""
    serve(echo)
    with contextlib.ExitStack() as stack:
        theirs, ours = zip(*(pair(how, way) for way in ("in", "out")), strict=True)
        for fd in (*theirs, *ours):
            stack.callback(os.close, fd)
        for fd in theirs:
            os.set_blocking(fd, blocking)
        with pumping(client, door, stdin=theirs[0], stdout=theirs[1]) as process:
            os.write(ours[0], b"a line\n")
            assert os.read(ours[1], 100) == b"a line\n"
            assert [os.get_blocking(fd) for fd in theirs] == [blocking] * 2
            process.terminate()
            assert process.wait(PATIENCE) == -signal.SIGTERM
        assert [os.get_blocking(fd) for fd in theirs] == [blocking] * 2


def pair(how, way):
    """(theirs, ours) of a pipe, or of a pair of sockets as Node uses them."""
    if how == "sockets":
        one, two = socket.socketpair()
        return one.detach(), two.detach()
    reader, writer = os.pipe()
    return (reader, writer) if way == "in" else (writer, reader)


@on_linux
@pytest.mark.parametrize("ends", [False, True])
def test_waiting_costs_nothing(client, door, serve, agree, ends):
    """Neither while the server waits to say more, nor while it has ended and nobody reads its last words."""
    # A server may end once pump and socket hold what the pipe behind them does not.
    size, ended = 150_000 if ends else 2 << 20, threading.Event()

    def talks(connection):
        with agree(connection) as line:
            line.sendall(b"w" * size)
        ended.set()

    serve(talks)
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as answers, pumping(client, door, stdout=writer) as process:
        with open(writer, "wb", buffering=0):
            until(lambda: is_full(writer))
        if ends and not agree.passes:
            assert ended.wait(PATIENCE)
        until(lambda: is_always_asleep(process.pid))
        assert len(read_all(answers, size)) == size


def is_always_asleep(pid):
    """However often one looks; and it did not wake up in between."""
    before = times_waited(pid)
    return all(sleeps(pid) for _ in range(500)) and times_waited(pid) == before


@pytest.mark.parametrize("words", [["mcp", "more"], ["MCP"], []])
def test_other_words_are_no_pump(client, door, serve, words):
    server = serve(GO)
    done = subprocess.run(
        [*client, str(door.path), *words], input=b"", capture_output=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, server.requests) == (2, b"", [])


def test_a_closed_stream_is_not_taken_for_the_servers(client, door, serve):
    server = serve(GO)
    line = ["sh", "-c", '"$@" <&-', "sh", *client, str(door.path), "mcp"]
    done = subprocess.run(line, capture_output=True, check=False, timeout=PATIENCE)
    assert (done.returncode, server.requests) == (1, [])
    assert b"closed" in done.stderr


def test_a_folder_whose_name_breaks_the_line_forges_nothing(client, door, serve, tmp_path, echo):
    server = serve(echo)
    odd = tmp_path / "a\nTRUNCATED=1"
    odd.mkdir()
    with pumping(client, door, cwd=odd) as process:
        assert b"no usable name" in process.communicate(timeout=PATIENCE)[1]
        assert (process.returncode, server.requests) == (1, [])


# Passing


def test_only_what_can_be_passed_is_offered(client, door, serve, tmp_path):
    """Files and terminals, and sockets of a kind whose closing may wait, are copied."""
    server = serve(GO)
    (tmp_path / "file").write_bytes(b"")
    master, terminal = os.openpty()
    reader, writer = os.pipe()
    over_network, other = network_pair()
    datagrams, _unused = socket.socketpair(type=socket.SOCK_DGRAM)
    with contextlib.ExitStack() as stack:
        for fd in (master, terminal, reader, writer):
            stack.callback(os.close, fd)
        for each in (over_network, other, datagrams, _unused):
            stack.enter_context(each)
        file = stack.enter_context((tmp_path / "file").open("r+b"))
        for more in (
            {"stdin": file},
            {"stdout": file},
            {"stdin": terminal},
            {"stdout": terminal},
            {"stdin": subprocess.DEVNULL},
            {"stdin": over_network},
            {"stdout": datagrams},
            {"stdin": writer},
        ):
            with pumping(client, door, **more) as process:
                assert process.wait(PATIENCE) in (0, 1)
        assert len(server.requests) == 8
        assert not any(b"PASSES" in each for each in server.requests)
        one, two = socket.socketpair()
        with one, two, pumping(client, door, stdin=one, stdout=one) as process:
            assert process.wait(PATIENCE) == 1
        assert b"\nPASSES=1\n" in server.requests[8]


def network_pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        return ours, listener.accept()[0]


@on_linux
def test_a_pipe_the_server_could_not_open_is_copied(client, door, serve):
    """One that another user made, for example."""
    if os.geteuid() == 0:
        pytest.skip("nothing is closed to root")
    server = serve(frame())
    reader, writer = os.pipe()
    os.fchmod(reader, 0)
    with pumping(client, door, stdin=reader) as process:
        os.close(writer)
        process.wait(PATIENCE)
    os.close(reader)
    assert b"PASSES" not in server.requests[0]


def test_what_was_written_before_it_began_is_all_there(client, door, serve):
    """INVARIANT: nothing of the client's is read before it is passed, so nothing is lost or told twice."""
    said, pumps, written = [], [], threading.Event()

    def reads(connection):
        assert written.wait(PATIENCE)
        until(lambda: sleeps(pumps[0].pid))  # it waits for its answer, and could have read meanwhile
        with Streams(connection) as line:
            while piece := line.recv(1 << 16):
                said.append(piece)

    serve(reads)
    whole = b"".join(b"%d\n" % number for number in range(10_000))
    with pumping(client, door) as process:
        pumps.append(process)
        fed(process, whole).join(PATIENCE)
        written.set()
        assert process.wait(PATIENCE) == 0
    assert b"".join(said) == whole


def test_a_word_it_did_not_ask_for_is_no_output(client, door, serve, tmp_path):
    """INVARIANT: only the gateway's messages reach an MCP client's input."""
    serve(frame(0, b"PASS"))
    (tmp_path / "in").touch()
    with (tmp_path / "in").open("rb") as file, pumping(client, door, stdin=file) as process:
        assert process.stdout.read() == b""
        process.wait(PATIENCE)


def test_a_server_that_agrees_and_ends_is_an_error(client, door, serve):
    serve(frame(0, b"PASS"))
    with pumping(client, door) as process:
        assert process.wait(PATIENCE) == 1
        assert b"the server ended" in process.stderr.read()


# Starting


@pytest.fixture
def stand_in(door):
    """A server of the door's Python: agrees, then does as it is told."""

    def install(then):
        script = STAND_IN.format(python=sys.executable, folder=str(door.path.parent), answer=GO)
        assert script.count("connection.close()") == 1
        door.python.write_text(script.replace("connection.close()", then), encoding="utf-8")
        door.python.chmod(0o700)

    return install


@on_linux
def test_a_missing_server_is_started_and_stays_nobodys_child(client, door, stand_in):
    """INVARIANT: whoever ends an MCP client's children does not end the server with them."""
    stand_in("connection.close()")
    with pumping(client, door) as process:
        assert process.wait(PATIENCE) == 1  # the stand-in hangs up after its answer
    (started,) = door.processes()
    above = [each.pid for each in peers.lineage(started)]
    assert process.pid not in above


def test_the_lock_is_free_while_it_pumps(client, door, stand_in):
    stand_in("connection.recv(1)")
    with pumping(client, door) as process:
        until(door.socket.exists)
        with door.path.with_name("door.lock").open("r+") as lock:

            def is_free():
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True

            until(is_free, failing="the lock is still held")
        assert process.poll() is None
        assert children(process.pid) == []


@pytest.mark.parametrize("python", ["/bin/false", "/does/not/exist"])
def test_a_server_that_cannot_start_is_a_quick_failure(with_limits, door, python):
    """No limit is near: only its end can be what is noticed."""
    door.write(python=python)
    with pumping(with_limits(), door) as process:
        out, said = process.communicate(timeout=PATIENCE)
        assert (out, process.returncode) == (b"", 1)
    assert python.encode() in said


def test_without_a_door_it_says_so(client, door):
    door.path.unlink()
    with pumping(client, door) as process:
        out, said = process.communicate(timeout=PATIENCE)
    assert (out, process.returncode) == (b"", 1)
    assert b"not set up" in said
