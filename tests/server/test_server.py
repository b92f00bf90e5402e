"""The server as hooks and the command line meet it: a real process, a real socket."""

import contextlib
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading

import pytest

from agent_process import AgentProcess
from checkrein import wire
from checkrein.errors import InputError, NotFoundError
from checkrein.hookclient import client_command
from checkrein.runtime import door_file, log_file, read_door, spool_dir
from patience import PATIENCE
from server.conftest import Serving, decision


def test_a_call_is_answered_and_recorded(building, pre):
    answer, stderr, code = building.hook(pre("ls -la"))
    assert (decision(answer), stderr, code) == ("allow", "", 0)
    decided = building.records("decided")
    assert [(each["data"]["session"], each["data"]["call_id"]) for each in decided] == [("s-1", "toolu_1")]


def test_the_socket_and_its_folder_are_private(serving):
    path = read_door().socket
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(door_file()).st_mode) == 0o600


def test_nonsense_gets_no_answer_and_harms_nobody(building, pre):
    for sent in (
        b"",
        b"\0\0",
        struct.pack(">I", 5) + b"abc",
        struct.pack(">I", 1 << 31),
        struct.pack(">I", 3) + b"abc",
        struct.pack(">I", 13) + b"checkrein 1\n\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        with building.connect() as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(10) == b"", sent
        assert decision(building.hook(pre())[0]) == "allow", sent


@pytest.fixture
def odd(home):
    """A server in whose process something is not as usual."""
    made = []

    def start(prelude):
        made.append(Serving(prelude).start())
        return made[-1]

    yield start
    for each in made:
        each.kill(signal.SIGTERM)


# The kernel says of every connection that it comes from another user.
STRANGERS = """
import os
from checkrein import peers
peers.peer_of = lambda connection: peers.Peer(1, os.geteuid() + 1)
"""


@pytest.mark.invariant("another user's process is not heard")
def test_another_users_process_is_not_heard(odd, pre):
    with pytest.raises(wire.Gone):
        odd(STRANGERS).hook(pre("ls"))
    assert f"refused a connection from uid {os.geteuid() + 1}" in log_file().read_text()


BROKEN = """
from checkrein.doors.hooks.door import HookDoor
HookDoor.handle = lambda *_: 1 / 0
"""


@pytest.mark.invariant("an error in the door is a refusal")
def test_an_error_in_the_door_is_a_refusal(odd, pre):
    serving = odd(BROKEN)
    answer, stderr, code = serving.hook(pre("ls"))
    assert (decision(answer), code) == ("deny", 2)
    assert "could not judge this call" in stderr
    assert serving.hook(pre("ls"), mode="permission") == (None, "", 0)
    # Without an answer the hook keeps its report.
    with pytest.raises(wire.Gone):
        serving.hook(pre("ls"), mode="tell")


def test_stopping_removes_the_socket_and_records_it(serving):
    serving.ask("server.stop")
    assert serving.process.wait(PATIENCE) == 0
    assert not os.path.exists(read_door().socket)
    assert serving.records("server_stopped")


def test_unknown_verbs_and_bad_parameters_are_errors(serving):
    with pytest.raises(InputError, match="no request"):
        serving.ask("rule.burn")
    with pytest.raises(InputError, match="cannot be understood"):
        serving.ask("question.answer", id="x")
    with pytest.raises(NotFoundError):
        serving.ask("question.answer", id="nothing", answer="approved")


def test_an_outcome_is_counted_once_however_often_it_is_reported(building, pre, post, project):
    agent, line = AgentProcess(), client_command(door_file(), "claude-code", "tell", 15)
    building.hook(pre("pytest"))
    try:
        for _ in range(3):
            assert agent.run(line, json.dumps(post("pytest")).encode()) == (0, b"", b"")
    finally:
        agent.end()
    assert len(building.records("finished")) == 1


def test_a_report_from_the_spool_is_taken_in_by_the_next_server(stopped, pre, post, project):
    stopped.start()
    stopped.ask("phase.set", name="building", project=project)
    stopped.hook(pre("pytest"))
    stopped.kill()
    body = b"checkrein 1 0.1.0\nhook claude-code tell 5\n\n" + json.dumps(post("pytest")).encode()
    (spool_dir() / "1.000000000-7").write_bytes(body)
    (spool_dir() / "2.000000000-7").write_bytes(b"garbage")
    (spool_dir() / "3.000000000-7.part").write_bytes(b"half")
    stopped.start()
    stopped.ask("server.about")
    assert [each["data"]["outcome"] for each in stopped.records("finished")] == ["success"]
    left = sorted(path.name for path in spool_dir().iterdir())
    assert left == ["2.000000000-7.unreadable", "3.000000000-7.part"]


def test_fifty_at_once_all_have_their_record(building, pre):
    answers = []

    def one(number):
        answers.append((number, decision(building.hook(pre("ls", call=f"t{number}"))[0])))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(number, "allow") for number in range(50)]
    recorded = {each["data"]["call_id"] for each in building.records("decided")}
    assert recorded == {f"t{number}" for number in range(50)}


def test_the_core_imports_only_what_it_may(home):
    """The server must be able to start inside a hook: nothing heavy before it listens."""
    code = (
        "import sys; before = set(sys.modules); import checkrein.server;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    foreign = set(done.stdout.split()) - set(sys.stdlib_module_names) - {"checkrein"}
    # msgspec takes typing_extensions along where it is installed.
    assert foreign <= {"msgspec", "tree_sitter", "tree_sitter_bash", "typing_extensions"}
    assert not {"asyncio", "http", "ssl", "email", "unittest"} & set(done.stdout.split())
