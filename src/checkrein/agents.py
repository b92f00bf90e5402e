"""Which processes are gated agents, and whether a request comes from one of them.

The agent runs under the same user as the person, so only its ancestry tells them apart: hooks show us the
agent's process, and whatever descends from it is the agent too.
"""

from __future__ import annotations

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
    forget_processes,
    get_session,
    put_session,
    speaking,
)

_KEPT = 2_048
# Whoever adopts a process whose parent has gone.
_ADOPTERS = frozenset({"systemd", "init", "launchd", "tini", "dumb-init", "catatonit"})
_INTERPRETERS = frozenset({"node", "nodejs", "bun", "deno"})
# What agents set for the programs they run.
_VARIABLES = frozenset(
    {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "CODEX_SANDBOX", "GEMINI_CLI"}
)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


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
        self._lock = threading.Lock()

    def known(self, agent: str, session: str) -> Session | None:
        """A session met before, also by an earlier server."""
        found = self._known.get((agent, session))
        if found is None:
            found = get_session(self._store, agent, session)
            if found is not None:
                self._keep(found)
        return found

    def meet(
        self, agent: str, session: str, project: str, peer: Peer, marks: Marks, facts: dict[str, str]
    ) -> Session:
        """Note a session and the process that speaks for it; the project stays what it first was."""
        earlier = self.known(agent, session)
        speaker = agent_process(peer.pid, marks, facts)
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
        self._keep(met)
        return met

    def not_a_person(self, peer: Peer) -> str:
        """Why the request cannot be a person's, or nothing."""
        line = peers.lineage(peer.pid)
        if not line:
            return "its process has gone already"
        spoken = self._speakers()
        for session, process in spoken:
            # INVARIANT: what descends from a gated agent is the agent.
            if any((each.pid, each.started) == (process.pid, process.started) for each in line):
                return f"it comes from inside the {session.agent} session {session.id}"
        return _detached(line, [process for _, process in spoken])

    def begun_by_another(self, session: Session) -> str:
        """Why the session speaks for no person: another gated agent started it. Nothing when none did."""
        above = peers.lineage(session.process)[1:] if session.process else []
        for other, process in self._speakers():
            if any((each.pid, each.started) == (process.pid, process.started) for each in above):
                return f"this session was started from inside the {other.agent} session {other.id}"
        return ""

    def refused(self, verb: str, why: str) -> None:
        """Put on the record that something tried what only a person may do."""

        def note(tx: Transaction) -> None:
            self._ledger.append(tx, "request_refused", {"request": verb, "reason": why})

        self._store.write(note, durable=True)

    def _speakers(self) -> list[tuple[Session, Process]]:
        """Every session whose process still lives; the numbers of dead ones are forgotten."""
        living, gone = [], []
        for session in speaking(self._store):
            found = peers.process(session.process)
            if found is not None and found.started == session.process_started:
                living.append((session, found))
            else:
                gone.append(session)
        if gone:
            self._store.write(lambda tx: forget_processes(tx, gone))
        return living

    def _keep(self, session: Session) -> None:
        with self._lock:
            while len(self._known) >= _KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[session.agent, session.id] = session


def agent_process(pid: int, marks: Marks, facts: dict[str, str]) -> Process | None:
    """The agent among the ancestors of its hook: the nearest that bears its marks."""
    line = peers.lineage(pid)[1:]
    said = facts.get(marks.process_fact, "")
    for each in line:
        if said == str(each.pid):
            return each
    for each in line:
        if each.name in marks.names or _runs_script(each, marks.scripts):
            return each
    return None


def _runs_script(process: Process, scripts: tuple[str, ...]) -> bool:
    """Whether an interpreter runs one of the agent's scripts; its thread may be called anything."""
    words = peers.words_of(process.pid)[:4]
    if not words or PurePath(words[0]).name not in _INTERPRETERS:
        return False
    return any(mark in word for mark in scripts for word in words[1:])


def is_attended(speaker: Process | None, marks: Marks, facts: dict[str, str]) -> bool:
    """Whether a person sits before the agent and would see its question."""
    if marks.attended_fact in facts:
        return facts[marks.attended_fact] not in ("", "0", "false")
    if speaker is None or not peers.has_terminal(speaker.pid):
        return False
    return not any(word in marks.headless for word in peers.words_of(speaker.pid)[1:])


def _detached(line: list[Process], speakers: list[Process]) -> str:
    """A process cut loose from its parents since an agent began, still carrying that agent's variables."""
    if line[0].terminal or not speakers:
        return ""
    oldest = min(_age(each) for each in speakers)
    for number, each in enumerate(line):
        above = line[number + 1] if number + 1 < len(line) else None
        adopted = each.parent <= 1 or (above is not None and above.name in _ADOPTERS)
        if adopted and each.pid != 1 and _age(each) >= oldest:
            marked = _VARIABLES & peers.environment_names(line[0].pid)
            return f"it was cut loose from an agent ({', '.join(sorted(marked))} is set)" if marked else ""
    return ""


def _age(process: Process) -> int:
    """When it started, in the system's ticks; a spelling we cannot compare counts as old."""
    return int(process.started) if process.started.isdigit() else 0
