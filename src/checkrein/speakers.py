"""Decides whether a hook event is the agent's own word.

The hook door asks here for every event that gives something: an outcome, a prompt, a phase, the end of a
session, the answer a hook comes back for. A verdict is given to any caller, and gives nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from checkrein import peers
from checkrein.agents import Agents
from checkrein.errors import StoreError
from checkrein.peers import Peer, Process
from checkrein.runtime import door_file
from checkrein.store.agents import Session
from checkrein.stream_ends import is_held_by, is_made_by, is_socket, other_holders, pipe_number
from checkrein.wire import close_all

# How an agent that gives its hooks pipes can be told from what it runs (pipes do not name their maker):
# "session": its hooks stay in its own session, and its tools get a session each, which they cannot leave.
# "sequence": it makes a hook's input and output one right after the other; its tools' input is no pipe.
# "": it cannot be told; only sockets are believed.
PipeRule = Literal["session", "sequence", ""]
Streams = Callable[[], list[int]]

# On a busy machine others make pipes in between.
_PIPES_BETWEEN = 64
_REGISTERED = "hook-clients.jsonl"
_MOST_REGISTERED = 64
_SHELLS = frozenset({"ash", "bash", "busybox", "dash", "ksh", "ksh93", "mksh", "sh", "yash", "zsh"})
# What the line of a gate ends with (`hookclient.client_command`).
_REFUSES_WITHOUT_US = " || exit 2"
_LINUX: bool = sys.platform == "linux"


class HookSpeaker(Protocol):
    """Whether a hook speaks for the agent of a session."""

    def refusal(self, session: Session, peer: Peer, words: Sequence[str], streams: Streams) -> str:
        """Why the event is not the agent's own word; nothing when it is.

        `words` are those of the request: what follows the door file in the client's command line.
        `streams` asks the client for its standard input and output.
        """
        ...


class RegisteredClient(msgspec.Struct, frozen=True):
    """A hook client that was installed: the first words of its command line, and what the program holds."""

    words: tuple[str, ...]
    digest: str


class RegisteredClients:
    """The hook clients of this user, written down when they were installed.

    An upgrade replaces the program; hooks that run the earlier one are known by its digest.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / _REGISTERED
        self._read: tuple[tuple[int, int], tuple[RegisteredClient, ...]] | None = None
        self._digests: dict[tuple[int, int, int, int], str] = {}

    def register(self, words: Sequence[str]) -> None:
        """Write down a client, given as the first words of its command line, unless it is known."""
        client = RegisteredClient(tuple(words), self._digest(Path(words[-1])))
        known = self.all()
        if client in known:
            return
        lines = [msgspec.json.encode(each) + b"\n" for each in (*known, client)[-_MOST_REGISTERED:]]
        part = self._file.with_name(f".{self._file.name}-{os.getpid()}")
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.writelines(lines)
            part.replace(self._file)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StoreError(f"{self._file}: {error.strerror}.", remedy="Free some space.") from error

    def all(self) -> tuple[RegisteredClient, ...]:
        """Every registered client; a line that cannot be read is none."""
        try:
            about = self._file.stat()
            mark = about.st_mtime_ns, about.st_size
            if self._read is None or self._read[0] != mark:
                found = []
                for line in self._file.read_bytes().splitlines():
                    with contextlib.suppress(msgspec.MsgspecError):
                        found.append(msgspec.json.decode(line, type=RegisteredClient))
                self._read = mark, tuple(found)
        except OSError:
            return ()
        return self._read[1]

    def runs(self, pid: int, words: Sequence[str]) -> bool:
        """Whether a process with these first words runs a registered client."""
        program = tuple(words)
        fitting = {each.digest for each in self.all() if each.words == program}
        if not fitting:
            return False
        # The Python client is known by its script only: its interpreter runs other programs too.
        script = len(program) > 1 or not _LINUX
        with contextlib.suppress(OSError):
            return self._digest(Path(program[-1] if script else f"/proc/{pid}/exe")) in fitting
        return False

    def _digest(self, path: Path) -> str:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            key = about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size
            if key not in self._digests:
                self._digests[key] = hashlib.sha256(file.read()).hexdigest()
            return self._digests[key]


class AgentsOwnHooks:
    """Believes a registered client that the agent itself started, and that only the agent speaks to."""

    def __init__(
        self, agents: Agents, clients: RegisteredClients, pipe_rule: Callable[[str], PipeRule]
    ) -> None:
        self._agents, self._clients, self._pipe_rule = agents, clients, pipe_rule

    def refusal(self, session: Session, peer: Peer, words: Sequence[str], streams: Streams) -> str:
        """Why the event is not the agent's own word; nothing when it is."""
        chain = self._agents.chain_to(session, peer)
        if isinstance(chain, str):
            return chain
        hook, *between, _agent = chain
        # INVARIANT: what the agent runs does not speak for the agent.
        if not self._is_our_line(hook, between, words):
            return f"it comes from something the {session.agent} session {session.id} runs"
        # INVARIANT: an event counts only if the agent alone wrote it and alone reads the answer.
        passed = streams()
        try:
            private = _is_private([each.pid for each in chain], passed, self._pipe_rule(session.agent))
        finally:
            close_all(passed)
        if not private:
            return f"its input and output do not lead to the {session.agent} session {session.id} alone"
        return ""

    def _is_our_line(self, hook: Process, between: list[Process], words: Sequence[str]) -> bool:
        """Whether a registered client runs with these words, started by the agent or by one shell."""
        said = peers.words_of(hook.pid)
        program = said[: -len(words) - 1]
        if said[len(program) :] != [str(door_file()), *words] or not self._clients.runs(hook.pid, program):
            return False
        return not between or (len(between) == 1 and _is_shell(between[0], shlex.join(said)))


def _is_shell(process: Process, line: str) -> bool:
    """Whether a process is a shell that runs exactly this line."""
    lines = (line, line + _REFUSES_WITHOUT_US)
    said = peers.words_of(process.pid)
    runs_it = len(said) == 3 and said[1].startswith("-") and said[2] in lines
    return runs_it and peers.program_name(process.pid) in _SHELLS


def _is_private(family: list[int], streams: Sequence[int], rule: PipeRule) -> bool:
    """Whether the agent alone can have been at the other ends of a hook's input and output.

    `family` are the processes from the hook up to the agent.
    """
    try:
        return len(streams) == 2 and _lead_to_the_agent(family, streams, rule)
    except (OSError, ValueError):
        return False


def _lead_to_the_agent(family: list[int], streams: Sequence[int], rule: PipeRule) -> bool:
    hook, agent = family[0], family[-1]
    pipes: list[int] = []
    for fd, ours, theirs in zip(streams, (os.O_RDONLY, os.O_WRONLY), (os.O_WRONLY, os.O_RDONLY), strict=True):
        if is_socket(fd):
            if not is_made_by(fd, agent):
                return False
            continue
        number = pipe_number(fd)
        if not number or fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != ours:
            return False
        # The agent still reads the output. It closed the input when everything was said.
        if theirs == os.O_RDONLY and not is_held_by(fd, agent, theirs):
            return False
        pipes.append(number)
    if pipes and other_holders(pipes, family):
        return False
    if is_socket(streams[0]):
        return True
    if rule == "session":
        return os.getsid(hook) == os.getsid(agent)
    return rule == "sequence" and len(pipes) == 2 and 0 < pipes[1] - pipes[0] <= _PIPES_BETWEEN
