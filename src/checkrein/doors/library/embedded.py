"""An authority of the program's own: a store, a chain and a lock in one folder, in this process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from checkrein import warm
from checkrein.agents import Agents, user_name
from checkrein.asking import Remember
from checkrein.authority import Asked, library, myself, question
from checkrein.authority.library import DOOR, Settled, Taken, Wish
from checkrein.call import ToolCall, digest
from checkrein.errors import InputError, NotFoundError, StoreBusyError
from checkrein.finishing import About, Outcome
from checkrein.judged import Decided
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.query import Filter, entries
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce, Policies
from checkrein.store import Reader, records
from checkrein.store.sqlite import SqliteStore

CHANNEL = "host"
LOCK_SECONDS = 3.0
# How many of the newest calls are looked through for those whose program ended before they did.
_LOOK_BACK = 1_000


class _Ours(InForce, frozen=True):
    """What holds in a store of its own, whose folder is no place for tools."""

    folder: str = ""

    def own_folders(self, project: str) -> tuple[str, ...]:
        return (*super().own_folders(project), self.folder)


class _Policies(Policies):
    def __init__(self, reader: Reader, overrides: Sequence[str], folder: Path) -> None:
        super().__init__(reader, overrides)
        self._folder = os.path.realpath(folder)

    def _compile(self, project: str, door: str, phase: str | None, profile: str) -> InForce:
        found = super()._compile(project, door, phase, profile)
        return _Ours(**msgspec.structs.asdict(found), folder=self._folder)


class Embedded:
    """One pipeline, in this process, for this process alone."""

    # Deciding and reporting are quick enough to be done on an event loop.
    near = True

    def __init__(
        self, folder: Path, *, settings: Sequence[str] = (), clock: Callable[[], float] | None = None
    ) -> None:
        try:
            store = SqliteStore.open(folder, wait=LOCK_SECONDS)
        except StoreBusyError as error:
            remedy = "Give each program a folder of its own, or share the server: Gate(server=True)."
            raise StoreBusyError(error.message, remedy=remedy) from None
        self.folder, self.user = folder, user_name(os.geteuid())
        given = {} if clock is None else {"clock": clock}
        self.pipeline = Pipeline(store, folder, overrides=settings, **given)
        # INVARIANT: no tool changes the record that judges it.
        self.pipeline.policies = _Policies(store, settings, folder)
        self._begun: dict[str, About] = {}
        warm.ready()
        self._close_open_ones()

    def first(self, call: ToolCall, wish: Wish, phase: str) -> Decided | Callable[[], Decided]:
        """The verdict, or (where recording it waits for the disk) how to come to it."""
        considered = library.consider(self.pipeline, call, wish, phase)
        if isinstance(considered, Decided):
            return considered
        if considered.judged.alone and not considered.durable:
            decided = self.pipeline.settle(considered)
            self._began(call, decided)
            return decided
        return lambda: self._began(call, self.pipeline.settle(considered))

    def _began(self, call: ToolCall, decided: Decided) -> Decided:
        """What an allowed call's outcome will be about, so that it need not be looked up."""
        if decided.verdict.word == "allow":
            domains, now = decided.verdict.risk.domains, self.pipeline.clock()
            self._begun[decided.entry] = About(call.project, call.session, domains, now)
        return decided

    def wait(
        self, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
    ) -> Settled | None:
        return library.wait(self.pipeline, entry, call, seconds, stop)

    def withdraw(self, entry: str, call: ToolCall, why: str) -> None:
        library.withdraw(self.pipeline, entry, call, why)

    def take(self, entry: str, call: ToolCall, phase: str, again: bool) -> Taken:
        path = self._edit(entry)
        edited = None
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            edited = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        taken = library.take(self.pipeline, entry, call, phase, edited=edited, again=again)
        if not again:
            path.unlink(missing_ok=True)
        return taken

    def pause(self, entry: str, call: ToolCall, step: int, payload: Any) -> None:
        self._begun.pop(entry, None)
        library.pause(self.pipeline, entry, call, step, payload)

    def go_on(self, entry: str, call: ToolCall, step: int, phase: str, again: bool) -> Taken:
        return library.go_on(self.pipeline, entry, call, step, phase, again=again)

    def finish(self, entry: str, outcome: str, output: Any, evidence: str) -> None:
        # What is known is used once: a second word about a call is looked up and dropped.
        about = self._begun.pop(entry, None)
        library.finish(self.pipeline, Outcome(entry, outcome, output, evidence, about))

    def questions(self) -> list[dict[str, Any]]:
        pipeline = self.pipeline
        agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
        found: list[dict[str, Any]] = question.list_(Asked(pipeline, agents, myself()), {})
        return found

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        call: ToolCall | None = None,
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str:
        """What the program's own person says; what became of it."""
        pipeline = self.pipeline
        call = call or pipeline.broker.call(entry)
        if call is not None:
            library.bound(pipeline, entry, call)
        elif edited is not None:
            raise InputError("The call is not at hand.", remedy="Answer what `Suspended.pending` says.")
        waiting = pipeline.broker.awaiting(entry, call) if call else contextlib.nullcontext()
        said = {"actor": actor or self.user, "channel": CHANNEL, "message": message, "remember": remember}
        if edited is not None:
            self._keep_edit(entry, edited)
        with waiting:
            came_to = pipeline.answer(entry, answer, edited=edited, **said)  # type: ignore[arg-type]
        if edited is not None:
            self._note_edit(entry, edited)
        return came_to

    def close(self) -> None:
        self.pipeline.close()

    def _edit(self, entry: str) -> Path:
        if not entry.isalnum():
            raise NotFoundError(f"There is no call {entry!r}.")
        return self.folder / "edits" / entry

    def _keep_edit(self, entry: str, edited: dict[str, Any]) -> None:
        """Arguments a person wrote, until the call runs: the record keeps them masked only."""
        path = self._edit(entry)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(edited))
            file.flush()
            os.fsync(handle)

    def _note_edit(self, entry: str, edited: dict[str, Any]) -> None:
        """Which arguments were approved, so that kept ones can be told from others."""
        data = {"argument_hash": digest(edited)}
        self.pipeline.store.write(
            lambda tx: self.pipeline.ledger.append(tx, "edited", data, entry=entry), durable=True
        )

    def _close_open_ones(self) -> None:
        """INVARIANT: a call whose program ended before it did is on the record as unknown."""
        left = [
            Outcome(each.id, "unknown", None, "the program ended")
            for each in entries(self.pipeline.store, Filter(), _LOOK_BACK)
            if each.door == DOOR and each.completed_at is None and self._ran(each.id, each.verdict)
        ]
        if left:
            self.pipeline.finish_soon(left).result()

    def _ran(self, entry: str, verdict: str) -> bool:
        kinds = [body_of_row(row)["kind"] for row in records.of_entries(self.pipeline.store, [entry])]
        waits = kinds.count("suspended") > kinds.count("resumed")
        return not waits and (verdict == "allow" or "started" in kinds)
