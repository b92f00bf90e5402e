"""Which processes are gated agents, and whether a request comes from one of them.

The agent runs under the same user as the person, so only its ancestry tells them apart: hooks show us the
agent's process, and whatever descends from it is the agent too.
"""

from __future__ import annotations

import os
import pwd
import threading
from collections.abc import Callable
from pathlib import PurePath

import msgspec

from checkrein import peers
from checkrein.ledger.record import Ledger
from checkrein.peers import Peer, Process
from checkrein.store import Store, Transaction
from checkrein.store.agents import (
    Session,
    beginnings,
    forget_processes,
    get_session,
    put_session,
    speaking,
)

_KEPT = 2_048
# How often we look again at ancestors of which one ended while we looked.
_LOOKS = 3
# Whoever adopts a process whose parent has gone.
_ADOPTERS = frozenset({"systemd", "init", "launchd", "tini", "dumb-init", "catatonit"})
_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno"})
# What agents set for the programs they run.
_VARIABLES = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_SANDBOX",
        "GEMINI_CLI",
        "COPILOT_CLI",
        "COPILOT_AGENT_SESSION_ID",
    }
)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def own_user() -> str:
    """The user this process runs for."""
    return user_name(os.geteuid())


class Marks(msgspec.Struct, frozen=True):
    """How an agent's process is recognised among the ancestors of its hook."""

    names: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    headless: tuple[str, ...] = ()
    process_fact: str = ""
    attended_fact: str = ""


class Agents:
    """The sessions we have met, and the processes that speak for them."""

    def __init__(self, store: Store, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._store, self._ledger, self._clock = store, ledger, clock
        self._known: dict[tuple[str, str], Session] = {}
        self._spoken: dict[tuple[int, str], Session] = {}
        self._lock = threading.Lock()

    def known(self, agent: str, session: str) -> Session | None:
        """A session met before, also by an earlier server; None where nobody speaks for it any more."""
        found = self._known.get((agent, session))
        if found is None:
            found = get_session(self._store, agent, session)
            if found is None or not peers.is_alive(found.process, found.process_started):
                return None
            self._keep(found)
        return found

    def meet(
        self, agent: str, session: str, project: str, peer: Peer, marks: Marks, facts: dict[str, str]
    ) -> Session:
        """Note a session and the process that speaks for it; the project stays what it first was."""
        earlier = get_session(self._store, agent, session)
        if earlier is not None and not peer.pid:
            # A report that comes late has no process any more, and says nothing about the one of today.
            return earlier
        speaker = _still_above(peer.pid, earlier) or agent_process(peer.pid, marks, facts)
        met = Session(
            agent=agent,
            id=session,
            project=earlier.project if earlier else project,
            started_at=earlier.started_at if earlier else self._clock(),
            process=speaker.pid if speaker else 0,
            process_started=speaker.started if speaker else "",
            attended=is_attended(speaker, marks, facts),
        )
        self._store.write(lambda tx: put_session(tx, met))
        if peer.pid:
            self._keep(met)
        return met

    def not_a_person(self, peer: Peer) -> str:
        """Why the request cannot be a person's, or nothing."""
        line = _lineage(peer.pid)
        if not line:
            return "its process has gone already"
        spoken = self._speakers()
        for session, process in spoken:
            # INVARIANT: what descends from a gated agent is the agent.
            if any((each.pid, each.started) == (process.pid, process.started) for each in line):
                return f"it comes from inside the {session.agent} session {session.id}"
        # INVARIANT: ancestors nobody can follow to the end are no person's.
        if not peers.is_whole(line):
            return "the processes it comes from cannot be followed to the first one"
        return _detached(line, beginnings(self._store))

    def run_by_agent(
        self, peer: Peer, *, itself: bool = False, talks_to: Callable[[int], bool] = lambda _pid: True
    ) -> str:
        """Why a program speaks for no person although an agent's own client may: an agent runs it.

        An agent starts the programs of its MCP configuration itself, and `talks_to` them; or (`itself`) is
        the client. Whatever else does so inside it is something the agent runs.
        """
        line = _lineage(peer.pid)
        spoken = {(process.pid, process.started) for _, process in self._speakers()}
        place = 0 if itself else 1
        if len(line) > place and (line[place].pid, line[place].started) in spoken:
            above = line[place + 1 :]
            if any((each.pid, each.started) in spoken for each in above):
                return "it comes from inside another agent"
            # INVARIANT: a command that took its shell's place (`exec`) is no program of the configuration.
            spoken_to = itself or talks_to(line[place].pid)
            return "" if spoken_to else "the agent started it, but does not talk to it"
        return self.not_a_person(peer)

    def begun_by_another(self, session: Session) -> str:
        """Why the session speaks for no person: another gated agent started it. Nothing when none did."""
        line = _lineage(session.process) if session.process else []
        if line and not peers.is_whole(line):
            return "the processes this session was started from cannot be followed to the first one"
        above = line[1:]
        for other, process in self._speakers():
            if (other.agent, other.id) != (session.agent, session.id) and any(
                (each.pid, each.started) == (process.pid, process.started) for each in above
            ):
                return f"this session was started from inside the {other.agent} session {other.id}"
        return ""

    def chain_to(self, session: Session, peer: Peer) -> list[Process] | str:
        """The processes from a peer up to the agent of the session, or why there is no such chain."""
        if not session.process:
            return f"the process of the {session.agent} session {session.id} is not known"
        line = _lineage(peer.pid)
        owner = (session.process, session.process_started)
        place = next((number for number, each in enumerate(line) if (each.pid, each.started) == owner), 0)
        if not place:
            return "it does not come from the agent's own process"
        spoken = {(process.pid, process.started) for _, process in self._speakers()}
        if any((each.pid, each.started) in spoken for each in line[place + 1 :]):
            return "it comes from inside another agent"
        return line[: place + 1]

    def refused(self, verb: str, why: str) -> None:
        """Put on the record that something tried what only a person may do."""

        def note(tx: Transaction) -> None:
            self._ledger.append(tx, "request_refused", {"request": verb, "reason": why})

        self._store.write(note, durable=True)

    def _speakers(self) -> list[tuple[Session, Process]]:
        """Every process that spoke for a session and still lives; the numbers of dead ones are forgotten.

        INVARIANT: a later word about a session, whoever says it, makes no living agent a person.
        """
        stored = speaking(self._store)
        claims = [*stored, *self._spoken.copy().values()]
        looked_at = {pid: peers.process(pid) for pid in {each.process for each in claims}}
        living: dict[tuple[int, str], tuple[Session, Process]] = {}
        for each in claims:
            found = looked_at[each.process]
            if found is not None and found.started == each.process_started:
                living.setdefault((found.pid, found.started), (each, found))
        self._forget([each for each in claims if (each.process, each.process_started) not in living])
        return list(living.values())

    def _forget(self, gone: list[Session]) -> None:
        """These processes have ended; whoever speaks for their sessions next is looked for again."""
        if not gone:
            return
        with self._lock:
            for each in gone:
                self._spoken.pop((each.process, each.process_started), None)
                known = self._known.get((each.agent, each.id))
                if known is not None and known.process == each.process:
                    del self._known[each.agent, each.id]
        self._store.write(lambda tx: forget_processes(tx, gone))

    def _keep(self, session: Session) -> None:
        with self._lock:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[session.agent, session.id] = session
            if session.process:
                self._spoken[session.process, session.process_started] = session


def _lineage(pid: int) -> list[Process]:
    """The process and its ancestors; looked at again when one of them ended in the meantime."""
    line = peers.lineage(pid)
    for _ in range(_LOOKS):
        if not line or peers.is_whole(line):
            break
        line = peers.lineage(pid)
    return line


def _still_above(pid: int, earlier: Session | None) -> Process | None:
    """The process that spoke for the session so far, where the hook comes from inside it.

    INVARIANT: nothing an agent runs can say that somebody else, below it, is the agent.
    """
    known = (earlier.process, earlier.process_started) if earlier is not None else (0, "")
    return next((each for each in peers.lineage(pid) if (each.pid, each.started) == known), None)


def agent_process(pid: int, marks: Marks, facts: dict[str, str]) -> Process | None:
    """The agent among the ancestors of its hook that bear its marks: the one it names, else the nearest.

    INVARIANT: no process without an agent's marks becomes an agent; a hook could lock a person out.
    """
    marked = [each for each in peers.lineage(pid)[1:] if _bears(each, marks)]
    said = facts.get(marks.process_fact, "")
    return next((each for each in marked if said == str(each.pid)), marked[0] if marked else None)


def _bears(process: Process, marks: Marks) -> bool:
    """Its own name, that of the program it was started as, or the agent's script in an interpreter.

    A process is called as its first thread is, and that may be called anything: `MainThread`.
    """
    words = peers.words_of(process.pid)[:4]
    program = PurePath(words[0]).name if words else ""
    if process.name in marks.names or program in marks.names:
        return True
    return program in _INTERPRETERS and any(mark in word for mark in marks.scripts for word in words[1:])


def is_attended(speaker: Process | None, marks: Marks, facts: dict[str, str]) -> bool:
    """Whether a person sits before the agent and would see its question."""
    if marks.attended_fact in facts:
        return facts[marks.attended_fact] not in ("", "0", "false")
    if speaker is None or not peers.has_terminal(speaker.pid):
        return False
    words = peers.words_of(speaker.pid)[1:]
    return not any(word.partition("=")[0] in marks.headless for word in words)


def _detached(line: list[Process], begun: list[str]) -> str:
    """A process cut loose from its parents since the first agent began, still carrying an agent's variables.

    A terminal says nothing: whoever can start a process can give it one. Nor does it help to wait until the
    agent has ended.
    """
    if not begun:
        return ""
    oldest = min(map(_age, begun))
    for number, each in enumerate(line):
        above = line[number + 1] if number + 1 < len(line) else None
        adopted = each.parent <= 1 or (above is not None and above.name in _ADOPTERS)
        if adopted and each.pid != 1 and _age(each.started) >= oldest:
            below = (peers.environment_names(one.pid) for one in line[: number + 1])
            marked = _VARIABLES.intersection(set[str]().union(*below))
            return f"it was cut loose from an agent ({', '.join(sorted(marked))} is set)" if marked else ""
    return ""


def _age(started: str) -> int:
    """When a process started, in the system's ticks; a spelling we cannot compare counts as old."""
    return int(started) if started.isdigit() else 0
