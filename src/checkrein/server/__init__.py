"""The one process that decides and writes: a Unix socket in front of the pipeline.

Started by a person (`checkrein serve`, `up`) or by the first hook that finds nobody. Owns the store for as
long as it runs. Every request is answered by a thread of its own; nothing here decides anything.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein import __version__, knocking, warm, wire
from checkrein.agents import Agents
from checkrein.authority import Asked, as_answer, perform
from checkrein.core import approvals
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.doors.hooks.door import HookDoor
from checkrein.doors.hooks.replies import Reply, refuse_unread
from checkrein.doors.hooks.waiting import Waiting
from checkrein.errors import CheckreinError, InputError, StoreBusyError, StoreError
from checkrein.hookclient import client_words
from checkrein.ledger.redact import Redactor
from checkrein.ledger.verify import BackgroundCheck
from checkrein.notifying import Notifier
from checkrein.peers import Peer, peer_of
from checkrein.pipeline import Pipeline
from checkrein.runtime import listen_on_path, socket_path, spool_dir, write_door
from checkrein.server import spool
from checkrein.server.journal import Journal
from checkrein.server.opened import Opened
from checkrein.server.workers import Workers
from checkrein.settings.sources import state_dir
from checkrein.speakers import AgentsOwnHooks, RegisteredClients
from checkrein.store.gently import Gently
from checkrein.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from checkrein.server.http import HttpHooks

REQUEST_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 5.0
_TICK = 2.0
_BACKLOG = 512
_BUSY_SECONDS = 3.0
# How long a thread keeps the interpreter while another wants it; the default would delay a hook by 5 ms.
_SWITCH_SECONDS = 0.0005
_COLLECT_AFTER = 20_000
_PAUSE_SECONDS, _PAUSE_EVERY = 0.002, 50
# No record waits longer for its signature than it may, though we come by every _TICK only.
_SIGN_EARLY = 3 * _TICK


class Server:
    """A pipeline behind a socket."""

    def __init__(self, pipeline: Pipeline, journal: Journal) -> None:
        self.pipeline, self.journal = pipeline, journal
        journal.mask_with(self._masked)
        self.agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        clients = RegisteredClients(state_dir())
        clients.register(client_words())
        speaker = AgentsOwnHooks(self.agents, clients, lambda agent: dialect(agent).process.pipes)
        self.hooks = HookDoor(pipeline, self.agents, speaker)
        self.path = socket_path()
        self._ended = threading.Event()
        self._outdated = False
        self._replaying = threading.Lock()
        self.opened = Opened(pipeline, self.agents, journal.say, self._ended, self.stop)
        self.notifier = Notifier(
            pipeline,
            lambda: pipeline.policies.of("").settings.notify,
            journal.say,
            console=self.opened.console_address,
        )
        self._workers = Workers(self._listen(), self._answer)

    def run(self) -> None:
        """Serve until told to stop."""
        warm.ready()
        self.pipeline.ledger.sign_first_record_later()
        for agent in AGENTS:
            dialect(agent)
        self.replay()
        write_door(self.path)
        self.notifier.start()
        self._workers.start()
        self.journal.say(f"serving on {self.path}, version {__version__}, process {os.getpid()}")
        if self.pipeline.ledger.is_resumed:
            # Beside the first answers: it loads a library.
            threading.Thread(target=self._sign, name="checkrein-signing", daemon=True).start()
        http = self._open_http()
        gc.freeze()
        # A call leaves hundreds of short-lived objects and hardly ever a cycle: look for those less often.
        gc.set_threshold(_COLLECT_AFTER, 20, 20)
        sys.setswitchinterval(_SWITCH_SECONDS)
        check: BackgroundCheck | None = None
        reader = Gently(self.pipeline.store, seconds=_PAUSE_SECONDS, every=_PAUSE_EVERY)
        while not self._ended.wait(_TICK):
            self._tidy()
            self._sign()
            if check is None and not self._ended.is_set():
                # Not at once: a hook that started us waits for its answer.
                check = BackgroundCheck(reader, state_dir(), self.pipeline.ledger, self.journal.say)
                check.start()
                threading.Thread(target=self.opened.open_awaited, daemon=True).start()
        reader.give_up()
        self.notifier.stop()
        if check is not None:
            check.join(_BUSY_SECONDS)
        if http:
            http.stop()
        self.opened.close_console()
        self._workers.stop(seconds=1.0)
        self.opened.close()
        with contextlib.suppress(OSError):
            self.path.unlink()
        self.journal.say("stopped")

    def _masked(self, line: str) -> str:
        """A line for the log, without the secrets of any call."""
        try:
            redactor = self.pipeline.policies.of("").redactor
        except Exception:  # noqa: BLE001 - a line is written whatever is wrong with the settings or the store
            redactor = Redactor()
        return redactor.text(self.pipeline.secrets.text(line))

    def stop(self) -> None:
        self._ended.set()

    def replay(self) -> None:
        """Take in what hooks reported while nobody was here."""
        with self._replaying:
            try:
                count = spool.replay(spool_dir(), self._deliver)
            except StoreError as error:
                self.journal.say(f"reports wait in the spool: {error}")
                return
        if count:
            self.journal.say(f"took in {count} report(s) from the spool")

    def _open_http(self) -> HttpHooks | None:
        """The loopback port, where the user's own file asks for one."""
        port = self.pipeline.policies.loaded("").settings.server.http_port
        if not port:
            return None
        from checkrein.server.http import HttpHooks, token_file

        try:
            made = HttpHooks(port, lambda request, line: self.hooks.handle(request, _NOBODY, line))
        except OSError as error:
            self.journal.say(f"port {port} cannot be used: {error.strerror}")
            return None
        self.journal.say(f"HTTP hooks on 127.0.0.1:{made.port}, token in {token_file()}")
        return made

    def _tidy(self) -> None:
        """Between calls: questions run out, spooled reports come in, an older server makes way."""
        try:
            approvals.sweep(self.pipeline)
            if spool.waiting(spool_dir()):
                self.replay()
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, hooks are still answered
            self.journal.say(f"tidying failed: {type(error).__name__}: {error}")
        if self._moved():
            self.journal.say("the socket is gone; making way for a new server")
            self.stop()
        if self._outdated and not self._busy():
            self.journal.say("a newer version is installed; making way for it")
            self.stop()

    def _sign(self) -> None:
        """Sign what a killed server left, the first record, and later what waits long enough."""
        try:
            self.pipeline.ledger.keep_signed(_SIGN_EARLY)
        except CheckreinError as error:
            self.journal.say(f"signing failed: {error}")

    def _busy(self) -> bool:
        """Whether a call is under way; a client that is merely connected may stay so for days."""
        return bool(self._workers.busy or self.opened.busy)

    def _moved(self) -> bool:
        """Whether nobody can find us any more."""
        try:
            return not os.path.samestat(os.stat(self.path), self._place)  # noqa: PTH116
        except OSError:
            return True

    def _listen(self) -> socket.socket:
        # Whoever holds the store's lock is the only server: what lies there is left over.
        listener = listen_on_path(self.path, _BACKLOG)
        self._place = self.path.stat()
        return listener

    def _deliver(self, request: wire.Request) -> None:
        """A report from the spool; nobody waits for an answer any more."""
        if request.words[:1] == ("hook",) and request.words[2:3] == ("tell",):
            self.hooks.handle(request, Peer(0, os.geteuid()), None)

    def _answer(self, connection: socket.socket) -> None:
        """One request. Whatever goes wrong, a hook gets a refusal and the others notice nothing."""
        try:
            peer = peer_of(connection)
            if peer.uid != os.geteuid():
                # INVARIANT: another user's process is not heard.
                self.journal.say(f"refused a connection from uid {peer.uid}")
                return
            frame = wire.receive(connection, time.monotonic() + REQUEST_SECONDS, alone=True)
            request = wire.decode_request(frame)
            self._outdated = self._outdated or _newer(request.version)
            if request.words == ("mcp",):
                self._hand_over(connection, peer, request.facts)
            else:
                wire.send(connection, self._reply(request, connection, peer))
        except wire.Gone:
            return
        except Exception as error:  # noqa: BLE001 - one bad request ends itself, not its thread
            self.journal.say(f"a request failed: {type(error).__name__}: {error}")

    def _hand_over(self, connection: socket.socket, peer: Peer, facts: dict[str, str]) -> None:
        """An MCP client's pump: agree, then its connection is the gateway's."""
        try:
            gateway = self.opened.gateway()
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the client's user reads it
            self.journal.say(f"the gateway cannot start: {type(error).__name__}: {error}")
            wire.send(connection, wire.encode_answer(b"", f"checkrein: {error}\n".encode(), 2))
            return
        from checkrein.doors.gateway import passing

        passes = facts.get(passing.FACT) == "1" and passing.possible(connection)
        wire.send(connection, wire.encode_answer(passing.AGREED if passes else b"", b"", 0))
        passed = passing.receive(connection) if passes else None
        theirs = socket.socket(fileno=connection.detach())
        try:
            gateway.take(theirs, peer, facts, passed)
        except BaseException:
            theirs.close()
            if passed is not None:
                passed.close()
            raise

    def _reply(self, request: wire.Request, connection: socket.socket, peer: Peer) -> bytes:
        if request.words[0] == "verb" and len(request.words) == 2:
            return self._perform(request.words[1], request.body, connection, peer)
        if request.words[0] != "hook" or len(request.words) != 4:
            raise InputError("This is not a request we know.")
        try:
            line = _Line(connection, request, self._ended)
            reply = self.hooks.handle(request, peer, line)
        except wire.Gone:
            raise
        except Exception as error:  # INVARIANT: an error in the door is a refusal
            if request.words[2] == "tell" or self._ended.is_set():
                # Without an answer a hook keeps its report, and asks the next server for its verdict.
                raise
            self.journal.say(f"a hook call failed: {type(error).__name__}: {error}")
            return _refused(request, f"Checkrein could not judge this call: {error}")
        return wire.encode_answer(reply.stdout, reply.stderr, reply.exit_code)

    def _perform(self, name: str, body: bytes, connection: socket.socket, peer: Peer) -> bytes:
        opened = self.opened
        asked = Asked(
            self.pipeline,
            self.agents,
            peer,
            self.stop,
            opened.console,
            gateway=opened.gateway,
            chat=opened.chat,
            address=opened.api_address,
        )
        if name == "inbox.attend":
            return as_answer(lambda: self._attend(asked, connection))

        def perform_it() -> Any:
            return perform(asked, name, msgspec.json.decode(body, type=dict[str, Any]))

        return as_answer(perform_it, lambda text: self.journal.say(f"{name}: {text}"))

    def _attend(self, asked: Asked, connection: socket.socket) -> None:
        """A person looks at the questions for as long as the connection is open."""
        perform(asked, "server.attend", {})
        with self.pipeline.broker.attending():
            wire.send(connection, b"")
            while wire.is_open(connection) and not self._ended.wait(0.25):
                pass


# A caller over HTTP has no process we could ask the kernel for.
_NOBODY = Peer(0, os.geteuid())


class _Line(Waiting):
    """The connection of a hook that waits for a person."""

    def __init__(self, connection: socket.socket, request: wire.Request, ended: threading.Event) -> None:
        self._connection, self._ended = connection, ended
        self.words, self._has_streams = request.words[1:], wire.STREAMS in request.facts
        seconds = float(self.words[2])
        self.deadline = time.monotonic() + max(1.0, seconds - 3.0)
        # The first sign of life goes out at once: a hook that got one comes back when we end.
        self._said = float("-inf")

    def streams(self) -> list[int]:
        if not self._has_streams:
            return []
        return wire.ask_for_streams(self._connection, time.monotonic() + REQUEST_SECONDS)

    def still_here(self) -> bool:
        if not wire.is_open(self._connection):
            return False
        if time.monotonic() - self._said >= KEEP_ALIVE_SECONDS:
            self._said = time.monotonic()
            try:
                wire.send(self._connection, b"")
            except wire.Gone:
                return False
        if self._ended.is_set():
            # INVARIANT: a server that ends withdraws no question: the hook comes back to the next one.
            raise wire.Gone("the server ends")
        return True


def serve(say: Callable[[str], None], *, on_demand: bool = False) -> None:
    """Run a server until it is stopped; with `on_demand`, quietly leave when one is there already."""
    journal = Journal(say)
    store = _opened(on_demand)
    if store is None:
        return
    pipeline = Pipeline(store, state_dir())
    try:
        server = Server(pipeline, journal)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda *_: server.stop())
        server.run()
    except CheckreinError as error:
        journal.say(str(error))
        raise
    finally:
        pipeline.close()


def _opened(on_demand: bool) -> SqliteStore | None:
    """The store; None when another server has it already. A command that writes has it for a moment only."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return SqliteStore.open(state_dir(), wait=0.05 if on_demand else _BUSY_SECONDS)
        except StoreBusyError:
            if on_demand and knocking.is_running():
                return None
            if not on_demand or time.monotonic() > deadline:
                raise


def _refused(request: wire.Request, reason: str) -> bytes:
    """What a hook hears when we fail: a gate stays shut, everybody else is not held up."""
    reply = refuse_unread(request.words[1], f"{reason} Run `checkrein doctor`.")
    reply = reply if request.words[2] == "gate" else Reply()
    return wire.encode_answer(reply.stdout, reply.stderr, reply.exit_code)


def _newer(version: str) -> bool:
    """Whether a client comes from a later release than this server."""
    return _numbers(version) > _numbers(__version__)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:4])
