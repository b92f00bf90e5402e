"""What both hook clients do: carry the event, hand over the answer, and fail as their mode says."""

import ast
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ground import examples

import checkrein
from checkrein.hookclient import client as python_client
from hookclient.conftest import SOURCE, clean
from hookclient.servers import KEEP_ALIVE, frame, meaning, wait_until_read
from patience import PATIENCE

AGENTS = ["claude-code", "codex", "gemini-cli", "copilot-cli", "cursor"]
MODES = ["gate", "permission", "tell", "status"]
ALLOW = frame(0, b'{"ok":1}', b"seen")
NONSENSE = frame(1, b"{}")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def reason_of(agent, stdout):
    said = json.loads(stdout)
    if agent in ("claude-code", "codex"):
        inner = said.pop("hookSpecificOutput")
        assert not said
        assert (inner.pop("hookEventName"), inner.pop("permissionDecision")) == ("PreToolUse", "deny")
        return inner["permissionDecisionReason"]
    if agent == "gemini-cli":
        assert said["decision"] == "deny"
        return said["reason"]
    if agent == "copilot-cli":
        assert said["permissionDecision"] == "deny"
        return said["permissionDecisionReason"]
    assert said["permission"] == "deny"
    assert said["user_message"] == said["agent_message"]
    return said["user_message"]


def refused(result, agent="claude-code"):
    """The reason, once everything about the refusal is as it has to be."""
    assert result.returncode == 2, result
    reason = reason_of(agent, result.stdout)
    assert result.stderr.decode() == reason + "\n"
    assert "checkrein doctor" in reason
    return reason


def failed(result, mode, door):
    """INVARIANT: whatever is unexpected: a gate refuses, the other modes step aside."""
    if mode == "gate":
        return refused(result)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (b"checkrein: not running\n" if mode == "status" else b"")
    assert len(door.spooled()) == (1 if mode == "tell" else 0)
    return ""


# The way there


def test_the_request_is_one_frame_with_header_and_payload(client, door, serve):
    server = serve(ALLOW)
    door.run(client, "permission", b'{"tool":"Bash"}', agent="gemini-cli", seconds=7)
    header = f"checkrein 1 {checkrein.__version__}\nhook gemini-cli permission 7\nSTREAMS=1\n\n"
    assert server.requests == [header.encode() + b'{"tool":"Bash"}']


@pytest.mark.parametrize("payload", [b"", b"\0\0a\0", b"\xff\xfe\n\n\x80", bytes(range(256)) * 40])
def test_any_bytes_pass_through(client, door, serve, payload):
    server = serve(ALLOW)
    assert door.run(client, stdin=payload).returncode == 0
    assert server.requests[0].split(b"\n\n", 1)[1] == payload


def test_only_the_listed_environment_is_sent(client, door, serve):
    server = serve(ALLOW)
    listed = {
        "CLAUDE_CODE_SESSION_ATTENDED": "0",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_PROJECT_DIR": "/a b/ü",
        "CLAUDE_PID": "",
        "GEMINI_PROJECT_DIR": "/g=h",
    }
    env = clean(**listed, CLAUDE_CODE_MESSAGING_TOKEN="secret", TRUNCATED="1")
    assert door.run(client, env=env).returncode == 0
    lines = server.requests[0].split(b"\n\n")[0].decode().split("\n")
    assert lines[2] == "STREAMS=1"
    assert lines[3:] == [f"{name}={value}" for name, value in listed.items()]


def test_a_line_break_in_the_environment_cannot_forge_a_header(client, door, serve):
    server = serve(ALLOW)
    result = door.run(client, env=clean(CLAUDE_PROJECT_DIR="/p\nTRUNCATED=1"))
    assert "CLAUDE_PROJECT_DIR" in refused(result)
    assert server.requests == []


def test_an_environment_that_does_not_fit_is_refused(client, door, serve):
    serve(ALLOW)
    assert "too large" in refused(door.run(client, env=clean(CLAUDE_PROJECT_DIR="/" + "p" * 70_000)))


@pytest.mark.parametrize("extra", [0, 1, 3_000_000])
def test_more_than_8_mib_is_cut_and_says_so(client, door, serve, extra):
    server = serve(ALLOW)
    payload = random.Random(1).randbytes(8 << 20) + b"x" * extra
    assert door.run(client, stdin=payload).returncode == 0
    header, _, rest = server.requests[0].partition(b"\n\n")
    assert rest == payload[: 8 << 20]
    assert header.endswith(b"\nTRUNCATED=1") == bool(extra)


# The answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("code", [0, 2])
def test_the_answer_is_handed_over(client, door, serve, mode, code):
    serve(frame(code, b"out\0\xff\n", b"err\n"))
    result = door.run(client, mode)
    assert (result.returncode, result.stdout, result.stderr) == (code, b"out\0\xff\n", b"err\n")
    assert door.spooled() == []


def test_an_answer_of_the_largest_size(client, door, serve):
    out = b"x" * ((1 << 20) - 5 - 10)
    serve(frame(0, out, b"y" * 10))
    assert door.run(client).stdout == out


def test_keep_alives_are_no_answer(client, door, serve):
    serve(KEEP_ALIVE * 3 + ALLOW)
    assert door.run(client).stdout == b'{"ok":1}'


def test_an_answer_may_come_in_pieces(client, door, serve):
    def slowly(connection):
        for byte in KEEP_ALIVE + ALLOW:
            connection.sendall(bytes([byte]))
            wait_until_read(connection)

    serve(slowly)
    assert door.run(client).stdout == b'{"ok":1}'


BROKEN = {
    "nothing": b"",
    "half a length": b"\0\0",
    "only a keep-alive": KEEP_ALIVE,
    "cut in the middle": ALLOW[:-1],
    "cut after the length": ALLOW[:4],
    "too short for a frame": struct.pack(">I", 4) + b"\0\0\0\0",
    "too long": struct.pack(">I", (1 << 20) + 1) + b"\0" * ((1 << 20) + 1),
    "much too long": b"\xff\xff\xff\xff" + b"\0" * 100,
    "exit code 1": frame(1, b"{}"),
    "exit code 255": frame(255, b"{}"),
    "stdout longer than the frame": struct.pack(">IBI", 7, 0, 3) + b"{}",
    "stdout of 4 GiB": struct.pack(">IBI", 7, 0, 0xFFFFFFFF) + b"{}",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_a_failure(client, door, serve, mode, reply):
    serve(reply)
    # While a person is asked only the hook's own limit ends it.
    limit = {"seconds": 1} if reply == KEEP_ALIVE else {}
    failed(door.run(client, mode, **limit), mode, door)


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_never_comes_is_a_failure(client, door, serve, late, mode):
    serve(late)
    failed(door.run(client, mode, seconds=1), mode, door)


def test_no_number_of_keep_alives_outlasts_the_overall_limit(client, door, serve):
    def for_ever(connection):
        while True:
            connection.sendall(KEEP_ALIVE)
            wait_until_read(connection)

    serve(for_ever)
    assert "in time" in refused(door.run(client, seconds=1))


def test_silence_before_the_first_answer_is_a_failure(with_limits, door, serve, late):
    serve(late)
    assert "in time" in refused(door.run(with_limits(FIRST_ANSWER=0.2)))


def test_silence_after_a_keep_alive_is_a_failure(with_limits, door, serve, late):
    def falls_silent(connection):
        connection.sendall(KEEP_ALIVE * 3)
        late(connection)

    serve(falls_silent)
    assert "in time" in refused(door.run(with_limits(NEXT_FRAME=0.2)))


def test_signs_of_life_keep_it_waiting(with_limits, door, serve):
    def asks_a_person(connection):
        connection.sendall(KEEP_ALIVE)
        time.sleep(1.1)  # longer than the limit of the first sign: the later, the truer
        connection.sendall(ALLOW)

    serve(asks_a_person)
    assert door.run(with_limits(FIRST_ANSWER=1)).stdout == b'{"ok":1}'


def test_random_answers_never_pass_for_valid_ones(client, door, serve):
    """INVARIANT: only a whole, checked frame is ever handed over."""
    chance = random.Random(7)
    replies = [random_reply(chance) for _ in range(300)]
    assert 20 < sum(meaning(reply) is not None for reply in replies) < 280
    tried = replies[: examples(300)]
    assert len({meaning(reply) is None for reply in tried}) == 2
    server = serve(lambda connection: connection.sendall(now if len(server.requests) == 1 else NONSENSE))
    for now in tried:
        # Where a person is asked it tries once more: the next answer ends that.
        server.requests.clear()
        result, expected = door.run(client), meaning(now)
        if expected is None:
            refused(result)
        else:
            assert (result.returncode, result.stdout, result.stderr) == expected, now


def random_reply(chance):
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(40))
    reply = bytearray(
        frame(chance.choice([0, 0, 2, 1]), b"o" * chance.randrange(9), b"e" * chance.randrange(9))
    )
    for _ in range(chance.choice([0, 0, 1, 2])):
        reply[chance.choice([3, 4, 8, chance.randrange(len(reply))])] = chance.choice([0, 1, 2, 5, 9, 255])
    if chance.random() < 0.3:
        del reply[chance.randrange(len(reply)) :]
    return KEEP_ALIVE * max(0, chance.randrange(24) - 21) + bytes(reply)


def test_an_agent_that_takes_no_answer_gets_a_refusal(client, door, serve):
    serve(ALLOW)
    line = ["sh", "-c", '"$@" >&-', "sh", *door.words(client)]
    result = subprocess.run(line, input=b"{}", stderr=subprocess.PIPE, check=False, timeout=PATIENCE)
    assert result.returncode == 2
    assert b"closed" in result.stderr
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        door.words(client), input=b"{}", stdout=writer, stderr=subprocess.PIPE, check=False, timeout=PATIENCE
    )
    os.close(writer)
    assert result.returncode == 2
    assert b"did not take" in result.stderr


# Failing


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_is_refused_in_its_own_words(client, door, agent):
    door.path.unlink()
    assert str(door.path) in refused(door.run(client, agent=agent), agent)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["DOOR", "nobody", "gate", "5"],
        ["DOOR", "claude-code", "gate"],
        ["DOOR", "claude-code", "gate", "5", "6"],
    ],
)
def test_without_a_known_agent_there_is_only_stderr(client, door, serve, words):
    server = serve(ALLOW)
    given = [str(door.path) if word == "DOOR" else word for word in words]
    result = subprocess.run(
        [*client, *given], input=b"{}", capture_output=True, check=False, timeout=PATIENCE
    )
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"checkrein install" in result.stderr
    assert server.requests == []


@pytest.mark.parametrize("mode", ["Gate", "", "gates"])
def test_an_unknown_mode_is_a_gate(client, door, serve, mode):
    serve(ALLOW)
    refused(door.run(client, mode))


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "1.5", "", " 5", "86401", "999999", "9" * 40])
def test_seconds_that_mean_nothing_are_refused(client, door, serve, seconds):
    serve(ALLOW)
    refused(door.run(client, seconds=seconds))


@pytest.mark.parametrize("mode", ["permission", "tell", "status"])
def test_a_wrong_agent_fails_as_the_mode_does(client, door, serve, mode):
    serve(ALLOW)
    result = door.run(client, mode, agent="nobody")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (b"checkrein: not running\n" if mode == "status" else b"")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "checkrein-door 1",
        "checkrein-door 1\n",
        "checkrein-door 2\n/s\n/p\n/py\n",
        "checkrein-door 1\n/s\n/p\n",
        "checkrein-door 1\n/s\n/p\npy\n",
        "checkrein-door 1\n/s\nspool\n/py\n",
        "checkrein-door 1\n/s\n/p\n/py\nA=1",
        "checkrein-door 1\n/s\n/p\n/py\nA\n",
        "checkrein-door 1\n/s\n/p\n/py\n=1\n",
        "checkrein-door 1\n/s\n/p\n/py\n\n",
        "checkrein-door 1\n/s\0\n/p\n/py\n",
        "checkrein-door 1\r\n/s\r\n/p\r\n/py\r\n",
        "checkrein-door 1\n/s\n/p\n/py\n" + "A=1\n" * 509,
        "checkrein-door 1\n/s\n/p\n/py\nA=" + "x" * (128 << 10) + "\n",
        b"\xff\xfe\0\n" * 9,
    ],
)
def test_a_damaged_door_file_is_a_failure(client, door, content):
    door.put(content)
    assert "damaged" in refused(door.run(client))
    result = door.run(client, "tell")
    assert (result.returncode, result.stdout, door.spooled()) == (0, b"", [])


def test_a_door_file_of_508_variables_is_fine(client, door, serve):
    serve(ALLOW)
    door.write(*(f"A{number}=1" for number in range(508)))
    assert door.run(client).returncode == 0


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_door_file_others_can_write_is_not_used(client, door, serve, mode):
    """INVARIANT: whoever can write this file chooses the program that is started, so only the user may."""
    serve(ALLOW)
    door.path.chmod(mode)
    assert "others" in refused(door.run(client))


def test_a_pipe_or_folder_is_no_door_file(client, door):
    door.path.unlink()
    os.mkfifo(door.path, 0o600)
    refused(door.run(client))
    door.path.unlink()
    door.path.mkdir()
    refused(door.run(client))


def test_a_refusal_is_json_whatever_the_path_holds(client, door):
    for name in [b'q"uo\\te', b"new\nline\t\x1b[31m", b"\xff\xc3\xbc", b"l" * 200]:
        words = [*client, os.fsencode(door.path) + name, "cursor", "gate", "2"]
        result = subprocess.run(words, input=b"", capture_output=True, check=False, timeout=PATIENCE)
        assert refused(result, "cursor").isprintable()


def test_both_clients_say_the_same(compiled, door):
    clients = [compiled("checkrein-hook"), [sys.executable, "-I", "-S", str(SOURCE / "client.py")]]
    cases = [
        ("gate", "claude-code", "60"),
        ("status", "codex", "60"),
        ("gate", "x", "60"),
        ("gate", "cursor", "0"),
    ]
    for change in [lambda: None, lambda: door.put("x"), lambda: door.path.chmod(0o666), door.path.unlink]:
        change()
        for mode, agent, seconds in cases:
            door.python = "/does/not/exist"
            one, two = (door.run(client, mode, agent=agent, seconds=seconds) for client in clients)
            assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr)


def test_an_agent_that_never_finishes_its_message(client, door, serve):
    server = serve(ALLOW)
    with subprocess.Popen(
        door.words(client, seconds=1), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"{")
        process.stdin.flush()
        assert process.wait(PATIENCE) == 2
        assert b"did not finish" in process.stderr.read()
    assert server.requests == []


def test_a_socket_path_that_is_too_long(client, door):
    door.socket = "/" + "s" * 200
    door.write()
    assert "too long" in refused(door.run(client))


def test_what_listens_is_no_socket(client, door):
    door.socket.mkdir()
    refused(door.run(client))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_users_server_is_not_believed(client, door):
    """INVARIANT: the peer has to be the same user."""
    code = (
        "import os, socket, sys, time; listener = socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1])\n"
        "os.setuid(65534); listener.listen(1); print(flush=True); listener.accept(); time.sleep(600)"
    )
    words = [sys.executable, "-c", code, str(door.socket)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as stranger:
        try:
            stranger.stdout.readline()
            assert "another user" in refused(door.run(client))
        finally:
            stranger.kill()


# What is kept for later


def test_what_cannot_be_told_is_kept_as_it_would_have_been_sent(client, door, serve):
    serve(b"")
    before = time.time()
    payload = b"\0\xff{}" * 9
    result = door.run(client, "tell", payload, agent="codex", seconds=3, env=clean(CLAUDE_PID="12"))
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    (kept,) = door.spooled()
    header = f"checkrein 1 {checkrein.__version__}\nhook codex tell 3\nSTREAMS=1\nCLAUDE_PID=12\n\n"
    assert kept.read_bytes() == header.encode() + payload
    assert kept.stat().st_mode & 0o777 == 0o600
    seconds, _, rest = kept.name.partition(".")
    nanoseconds, _, pid = rest.partition("-")
    assert before - 1 < int(seconds) + int(nanoseconds) / 1e9 < time.time()
    assert len(nanoseconds) == 9
    assert pid.isdigit()


def test_what_was_answered_is_not_kept(client, door, serve):
    serve(ALLOW)
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        door.words(client, "tell"),
        input=b"{}",
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=PATIENCE,
    )
    os.close(writer)
    assert (result.returncode, result.stderr, door.spooled()) == (0, b"", [])


def test_without_a_spool_folder_it_still_steps_aside(client, door, serve):
    serve(b"")
    door.spool.rmdir()
    result = door.run(client, "tell")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


# The program itself


def test_the_python_client_imports_next_to_nothing():
    """It is run for every call: only what is compiled in, `_socket`; `fcntl` to start, `select` to pump."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "exec(compile(open(sys.argv[1]).read(), 'client', 'exec'), {'__name__': 'client'})\n"
        "print(*set(sys.modules) - before)"
    )
    words = [sys.executable, "-I", "-S", "-c", code, str(SOURCE / "client.py")]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) <= {"_socket"}
    tree = ast.parse((SOURCE / "client.py").read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert named == {"_signal", "_socket", "posix", "sys", "time", "fcntl", "select"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_importing_the_python_client_runs_nothing():
    assert checkrein.__version__ == python_client.VERSION
    assert callable(python_client.main)


@on_linux
def test_with_a_live_server_no_other_program_runs(client, door, serve):
    seen = []

    def look(connection):
        pid, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        children = Path(f"/proc/{pid}/task/{pid}/children")
        seen.append((os.readlink(f"/proc/{pid}/exe"), uid, children.read_text() if children.exists() else ""))
        connection.sendall(ALLOW)

    serve(look)
    assert door.run(client).returncode == 0
    assert seen == [(os.path.realpath(client[0]), os.geteuid(), "")]


def test_a_hook_shows_its_streams_when_it_is_asked_for_them(client, door):
    """The server learns from the kernel who is at their other ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(door.socket))
    listener.listen()
    words = door.words(client, "tell")
    hook = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean())
    with listener, hook:
        hook.stdin.write(b"{}")
        hook.stdin.close()
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE)
            length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
            connection.recv(length, socket.MSG_WAITALL)
            connection.sendall(b"\0\0\0\1S")
            word, streams, _, _ = socket.recv_fds(connection, 8, 4)
            assert (len(word), len(streams)) == (1, 2)
            os.write(streams[1], b"written to its output")
            for each in streams:
                os.close(each)
            connection.sendall(frame(0))
        assert hook.stdout.read() == b"written to its output"
    assert hook.returncode == 0
