"""The hook client where there is no compiled one; client.c says what it is for: change both together.

Run by its path with `python -I -S`, once for every tool call, so it imports only what costs next to nothing.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
import time

VERSION = "0.1.0"
FIRST_ANSWER = 10.0
NEXT_FRAME = 15.0
START = 6.0
PAUSE = 0.25
SECONDS_MAX = 86400
AT_ONCE = 64 << 10
PAYLOAD_MAX, REPLY_MAX, HEADER_MAX, DOOR_MAX, LINES_MAX = 8 << 20, 1 << 20, 64 << 10, 128 << 10, 512
MAGIC, SOCKET, SPOOL, PYTHON, ENVIRONMENT = range(5)
MODES = ("gate", "permission", "tell", "status")
PASSED_ON = (
    b"CLAUDE_CODE_SESSION_ATTENDED",
    b"CLAUDE_CODE_ENTRYPOINT",
    b"CLAUDE_PROJECT_DIR",
    b"CLAUDE_PID",
    b"GEMINI_PROJECT_DIR",
)
LIKE_CLAUDE = (
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
    '"permissionDecisionReason":"%s"}}\n'
)
AGENTS = {
    "claude-code": LIKE_CLAUDE,
    "codex": LIKE_CLAUDE,
    "gemini-cli": '{"decision":"deny","reason":"%s"}\n',
    "copilot-cli": '{"permissionDecision":"deny","permissionDecisionReason":"%s"}\n',
    "cursor": '{"permission":"deny","user_message":"%s","agent_message":"%s"}\n',
}


class CannotAskError(Exception):
    """Raise with what happened, and the path or name it happened to."""


class Hook:
    """One event on its way; what is known of it when something fails."""

    mode = "gate"
    agent = ""
    late = ""
    deadline = 0.0
    request = b""
    person_asked = False
    passes = False
    lines: list[bytes] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.began = time.time_ns()

    def run(self, words: list[str]) -> int:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGALRM])
        _signal.signal(_signal.SIGALRM, self.time_is_up)
        self.read_command_line(words)
        pumps = self.mode == "mcp"
        payload, truncated = (b"", False) if pumps else self.read_payload()
        self.door = words[1]
        self.lines = read_door(self.door)
        self.request = self.build_request("" if pumps else words[4], payload, truncated)
        while True:
            server = self.connect_or_start()
            if server and not peer_is_me(server):
                raise CannotAskError("another user listens at ", self.lines[SOCKET])
            code = self.ask(server) if server else None
            if server and code == 0 and pumps:
                self.stand_by(server) if self.passes else self.pump(server)
            if code is not None:
                return 1 if pumps and code else code
            time.sleep(PAUSE)

    def time_is_up(self, _number: int, _frame: object) -> None:
        raise CannotAskError(self.late)

    def wait_at_most(self, seconds: float, what_if_not: str) -> None:
        self.late = what_if_not
        _signal.setitimer(_signal.ITIMER_REAL, max(0.001, min(seconds, self.deadline - time.monotonic())))

    def read_command_line(self, words: list[str]) -> None:
        limit = SECONDS_MAX
        if len(words) == 3 and words[2] == "mcp":
            self.mode = "mcp"
        else:
            _client, _door, agent, mode, seconds = words if len(words) == 5 else [""] * 5
            self.mode = mode if mode in MODES else "gate"
            self.agent = agent if agent in AGENTS else ""
            limit = int(seconds) if seconds.isascii() and seconds.isdigit() and len(seconds) <= 5 else 0
            if mode not in MODES or not self.agent or not 1 <= limit <= SECONDS_MAX:
                raise CannotAskError("its hook is not registered as `checkrein install` does it")
        self.deadline = time.monotonic() + limit
        for descriptor in range(3):
            # The next file opened would take the place of a closed one, and the answer would go there.
            try:
                # The pump never waits in them, and others may share them.
                if not posix.get_blocking(descriptor) and self.mode != "mcp":
                    posix.set_blocking(descriptor, True)
            except OSError:
                raise CannotAskError("the agent closed its hook's input or output") from None

    def read_payload(self) -> tuple[bytes, bool]:
        self.wait_at_most(SECONDS_MAX, "the agent did not finish its message in time")
        pieces: list[bytes] = []
        room = PAYLOAD_MAX
        try:
            while piece := posix.read(0, min(room or REPLY_MAX, REPLY_MAX)):
                if not room:
                    # What is too much is read all the same: the agent must not meet a closed pipe.
                    while posix.read(0, REPLY_MAX):
                        pass
                    return b"".join(pieces), True
                pieces.append(piece)
                room -= len(piece)
        except OSError:
            raise CannotAskError("the agent's message cannot be read") from None
        return b"".join(pieces), False

    def build_request(self, seconds: str, payload: bytes, truncated: bool) -> bytes:
        header = f"checkrein 1 {VERSION}\nhook {self.agent} {self.mode} {seconds}\nSTREAMS=1\n".encode()
        if self.mode == "mcp":
            header = f"checkrein 1 {VERSION}\nmcp\nCWD=".encode() + folder() + b"\n"
            self.passes = can_be_passed(0, posix.O_RDONLY) and can_be_passed(1, posix.O_WRONLY)
            header += b"PASSES=1\n" if self.passes else b""
        for name in PASSED_ON:
            value = posix.environ.get(name)
            if value is not None and b"\n" in value:
                raise CannotAskError("there is a line break in the environment's ", name)
            if value is not None:
                header += name + b"=" + value + b"\n"
        header += b"TRUNCATED=1\n\n" if truncated else b"\n"
        if len(header) >= HEADER_MAX - 4:
            raise CannotAskError("the hook's environment is too large")
        return header + payload

    def connect_or_start(self) -> _socket.socket | None:
        """Of many clients that find no server one takes the lock and starts it; the others wait.

        None when there is still none, but a person is being asked: then it is tried again.
        """
        self.wait_at_most(SECONDS_MAX if self.person_asked else START, "the server did not start in time")
        server = try_to_connect(self.lines[SOCKET])
        if server or (self.person_asked and self.mode == "permission"):
            return server
        if self.mode in ("permission", "status"):
            raise CannotAskError("no server is running")
        import fcntl

        try:
            lock = posix.open(self.door + ".lock", posix.O_RDWR | posix.O_CREAT | posix.O_NOFOLLOW, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            raise CannotAskError("nothing can be locked beside the file ", as_bytes(self.door)) from None
        server = try_to_connect(self.lines[SOCKET]) or start(
            self.lines, self.person_asked, self.mode == "mcp"
        )
        posix.close(lock)
        return server

    def ask(self, server: _socket.socket) -> int | None:
        """The exit code; None when the server ended while a person was asked."""
        self.wait_at_most(FIRST_ANSWER, "the server did not answer in time")
        try:
            server.sendall(len(self.request).to_bytes(4, "big") + self.request)
            while (length := int.from_bytes(get(server, 4), "big")) <= 1:
                if length and self.mode != "mcp":
                    put_streams(server, get(server, 1))  # client.c says what for
                    continue
                # A server said so: when it ends, the next one knows the question.
                self.person_asked = self.mode in ("gate", "permission")
                self.wait_at_most(NEXT_FRAME, self.late)  # a sign of life
            reply = get(server, length) if 5 <= length <= REPLY_MAX else b""
        except OSError:
            server.close()
            if self.person_asked:
                return None
            reply = b""
        if not reply:
            raise CannotAskError("the server broke off")
        out = 5 + int.from_bytes(reply[1:5], "big")
        if reply[0] not in (0, 2) or out > length:
            raise CannotAskError("the server's answer makes no sense")
        self.request = b""  # answered: nothing to keep for later
        self.passes = self.passes and reply[5:out] == b"PASS"
        self.wait_at_most(SECONDS_MAX, "the agent did not take the answer")
        if not ((self.mode == "mcp" or put(1, reply[5:out])) and put(2, reply[out:])):
            raise CannotAskError(self.late)
        return reply[0]

    def stand_by(self, server: _socket.socket) -> None:
        """The server has the client's streams: show that it is there; client.c says how and why."""
        import select

        word = b""
        look = select.poll()
        look.register(server.fileno(), select.POLLIN)
        look.register(1, 0)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        try:
            put_streams(server, b".")
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            ready = dict(look.poll())
            word = server.recv(1) if server.fileno() in ready else b""
            if not word and 1 in ready:
                posix._exit(1)  # nobody reads any more
        except OSError:
            pass
        if not word:
            raise CannotAskError("the server ended")

    def pump(self, server: _socket.socket) -> None:
        """Bytes both ways until the server closes; client.c says how and why."""
        import select

        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        server.setblocking(False)
        fd = server.fileno()
        up, down = Flow(0, fd, AT_ONCE), Flow(fd, 1, select.PIPE_BUF)
        told = broken = False
        while down.waiting or not down.over:
            full, look = bool(down.waiting), select.poll()
            if not (up.over or up.waiting):
                look.register(0, select.POLLIN)
            wanted = (select.POLLOUT if up.waiting else 0) | (0 if down.over or full else select.POLLIN)
            if wanted:
                look.register(fd, wanted)
            look.register(1, select.POLLOUT if full else 0)
            ready = dict(look.poll())
            if 0 in ready:
                up.take_in()
            if up.waiting and not up.pass_on():
                up.waiting, up.over, broken = b"", True, True  # its last words may still be there to read
            if up.over and not (up.waiting or told or broken):
                try:
                    server.shutdown(_socket.SHUT_WR)
                    told = True
                except OSError:
                    broken = True
            if ready.get(fd, 0) & ~select.POLLOUT and not (full or down.over):
                down.take_in()
            elif 1 in ready and not (full and down.pass_on()):
                posix._exit(1)  # nobody reads any more
        if not told:
            raise CannotAskError("the server ended")

    def fail(self, why: str, detail: bytes = b"") -> int:
        # INVARIANT: whatever is unexpected ends here: a gate refuses, the pump ends, the others step aside.
        code = {"gate": 2, "mcp": 1}.get(self.mode, 0)
        _signal.signal(_signal.SIGALRM, lambda _number, _frame: posix._exit(code))
        # Failing does not wait for ever either; a busy disk gets a little longer.
        _signal.setitimer(_signal.ITIMER_REAL, 5.0 if self.mode == "tell" else 1.0)
        if self.mode in ("gate", "mcp"):
            self.refuse(why, detail)
        elif self.mode == "tell" and self.request:
            self.save_for_later()
        elif self.mode == "status":
            put(1, b"checkrein: not running\n")
        return code

    def refuse(self, why: str, detail: bytes) -> None:
        # A path may hold quotes, terminal codes, anything.
        shown = "".join(chr(c) if 32 <= c <= 126 and c not in b'"\\' else "?" for c in detail[:1000])
        reason = f"Checkrein could not judge this call, so it is refused: {why}{shown}. "
        reason += "Ask the user to run `checkrein doctor`."
        if self.mode == "mcp":
            reason = f"checkrein: no tools can be offered: {why}{shown}. Run `checkrein doctor`."
        put(2, reason.encode() + b"\n")  # first: some agents ignore exit code 2 without it
        put(1, AGENTS.get(self.agent, "").replace("%s", reason).encode())

    def save_for_later(self) -> None:
        seconds, nanoseconds = divmod(self.began, 1_000_000_000)
        name = self.lines[SPOOL] + f"/{seconds}.{nanoseconds:09}-{posix.getpid()}".encode()
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_NOFOLLOW
        try:
            part = posix.open(name + b".part", flags, 0o600)
        except OSError:
            return
        try:
            if not put(part, self.request):
                raise OSError
            posix.fsync(part)
            posix.rename(name + b".part", name)
        except OSError:
            posix.unlink(name + b".part")


class Flow:
    """One direction of the pump; read only when nothing is left to write."""

    over = False
    waiting: bytes | memoryview = b""

    def __init__(self, source: int, to: int, at_once: int) -> None:
        self.source, self.to, self.at_once = source, to, at_once

    def take_in(self) -> None:
        try:
            self.waiting = memoryview(posix.read(self.source, AT_ONCE))
        except BlockingIOError:
            return
        except OSError:
            self.waiting = b""
        self.over = not self.waiting

    def pass_on(self) -> bool:
        try:
            self.waiting = self.waiting[posix.write(self.to, self.waiting[: self.at_once]) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


def put_streams(server: _socket.socket, word: bytes) -> None:
    streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1))
    server.sendmsg([word], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])


def as_bytes(path: str) -> bytes:
    return path.encode(sys.getfilesystemencoding(), "surrogateescape")


def read_door(path: str) -> list[bytes]:
    try:
        door = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    except (OSError, ValueError):
        raise CannotAskError("Checkrein is not set up: there is no file ", as_bytes(path)) from None
    about = posix.fstat(door)
    regular = about.st_mode & 0o170000 == 0o100000
    # INVARIANT: whoever can write this file chooses the program that is started, so only the user may.
    if not regular or about.st_uid != posix.geteuid() or about.st_mode & 0o022:
        raise CannotAskError("others than the user can write the file ", as_bytes(path))
    content = posix.read(door, DOOR_MAX)
    posix.close(door)
    *lines, rest = content.split(b"\n")
    good = not rest and len(content) < DOOR_MAX and b"\0" not in content
    good = good and ENVIRONMENT <= len(lines) <= LINES_MAX and lines[MAGIC] == b"checkrein-door 1"
    good = good and all(line.startswith(b"/") for line in lines[SOCKET:ENVIRONMENT])
    if not good or any(line.find(b"=") < 1 for line in lines[ENVIRONMENT:]):
        raise CannotAskError("something damaged the file ", as_bytes(path))
    return lines


def try_to_connect(path: bytes) -> _socket.socket | None:
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        server.connect(path)
        return server
    except (FileNotFoundError, ConnectionRefusedError):
        server.close()
        return None
    except OSError as error:
        # The interpreter looks at the length itself and gives no number.
        long = error.errno is None
        raise CannotAskError(
            "this path is too long for a socket: " if long else "nothing can connect to ", path
        ) from None


def can_be_passed(descriptor: int, way: int) -> bool:
    """Whether the server can use this one itself; client.c says why it is opened again."""
    import fcntl

    try:
        kind = posix.fstat(descriptor).st_mode & 0o170000
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & 3 not in (way, posix.O_RDWR):
            return False
        if kind == 0o140000:
            found = _socket.socket(-1, -1, -1, descriptor)
            about = found.family, found.type
            found.detach()
            return about == (_socket.AF_UNIX, _socket.SOCK_STREAM)
        if kind == 0o010000 and sys.platform == "linux":
            posix.close(posix.open(f"/proc/self/fd/{descriptor}", way | posix.O_NONBLOCK))
    except OSError:
        return False
    return kind == 0o010000


def folder() -> bytes:
    try:
        found = posix.getcwdb()
    except OSError:
        found = b"\n"
    if b"\n" in found:
        raise CannotAskError("the folder it runs in has no usable name")
    return found


def start(lines: list[bytes], person_asked: bool, stays: bool) -> _socket.socket | None:
    pid = posix.fork()
    if pid == 0 and stays:
        be_in_between(lines)
    if pid == 0:
        become_server(lines)
    while not (server := try_to_connect(lines[SOCKET])):
        try:
            ended, status = posix.waitpid(pid, posix.WNOHANG)
        except ChildProcessError:
            ended, status = 0, 0
        if ended and person_asked:
            return None
        # Status 0: another server was quicker, and will be listening soon.
        if ended and status:
            raise CannotAskError("the server stopped while starting; it was run by ", lines[PYTHON])
        time.sleep(0.002)
    if stays and not ended_already(pid):
        posix.kill(pid, _signal.SIGKILL)
        posix.waitpid(pid, 0)
    return server


def ended_already(pid: int) -> bool:
    try:
        return bool(posix.waitpid(pid, posix.WNOHANG)[0])
    except ChildProcessError:
        return True


def be_in_between(lines: list[bytes]) -> None:
    """A pump stays, and the server must not stay below it: client.c says why."""
    try:
        pid = posix.fork()
        if pid == 0:
            become_server(lines)
        posix.closerange(0, min(posix.sysconf("SC_OPEN_MAX"), 65536))
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.alarm(int(START) + 1)
        posix._exit(127 if posix.waitpid(pid, 0)[1] else 0)
    finally:
        posix._exit(127)


def become_server(lines: list[bytes]) -> None:
    try:
        null = posix.open("/dev/null", posix.O_RDWR)
        for descriptor in range(3):
            posix.dup2(null, descriptor)
        posix.setsid()
        posix.chdir("/")
        posix.closerange(3, min(posix.sysconf("SC_OPEN_MAX"), 65536))
        for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
            _signal.signal(number, _signal.SIG_DFL)  # what the agent ignores, the server must not
        _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
        words = [lines[PYTHON], b"-I", b"-m", b"checkrein", b"serve", b"--on-demand"]
        environment = dict(line.split(b"=", 1) for line in lines[ENVIRONMENT:])
        posix.execve(lines[PYTHON], words, environment)
    finally:
        posix._exit(127)


def peer_is_me(server: _socket.socket) -> bool:
    # Linux: struct ucred (pid, uid, gid). macOS: LOCAL_PEERCRED, struct xucred (version, uid, ...).
    level, option = (_socket.SOL_SOCKET, _socket.SO_PEERCRED) if sys.platform == "linux" else (0, 1)
    peer = server.getsockopt(level, option, 76)
    return int.from_bytes(peer[4:8], sys.byteorder) == posix.geteuid()


def get(server: _socket.socket, length: int) -> bytes:
    whole = b""
    while len(whole) < length:
        piece = server.recv(length - len(whole))
        if not piece:
            raise ConnectionResetError
        whole += piece
    return whole


def put(descriptor: int, text: bytes) -> bool:
    try:
        while text:
            text = text[posix.write(descriptor, text) :]
        return True
    except OSError:
        return False


def main(words: list[str]) -> int:
    hook = Hook()
    try:
        return hook.run(words)
    except CannotAskError as failure:
        return hook.fail(*failure.args)
    except BaseException as error:  # noqa: BLE001
        return hook.fail(f"the hook client met an unexpected {type(error).__name__}")


if __name__ == "__main__":
    posix._exit(main(sys.argv))
