"""The user's running server as the authority: every request is one verb over its socket."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from checkrein import knocking, warm
from checkrein.agents import own_user
from checkrein.asking import Remember
from checkrein.authority.library import LONGEST_WAIT
from checkrein.authority.taken import Taken
from checkrein.authority.wish import Wish
from checkrein.call import ToolCall
from checkrein.core.approvals import Settled
from checkrein.core.decision import Decided
from checkrein.errors import CheckreinError, InputError, StoreError
from checkrein.policy import refuse

# How long a question's answer is asked for again while no server can be reached: one may be restarting.
PATIENCE = 30.0
_POLL = 5.0
_PAUSE = 0.2


class Remote:
    """The same words as a store of its own, spoken to the server."""

    near = False

    def __init__(self, agent: str, session: str, project: str) -> None:
        self.user = own_user()
        self._whose = ToolCall(tool="meet", agent=agent, session=session, project=project)
        warm.ready()
        connection = knocking.start()
        # A server that is just ending hears of the program with its first call, or before it answers.
        with contextlib.suppress(StoreError):
            self._meet(connection)

    def _meet(self, connection: socket.socket) -> None:
        """INVARIANT: a program is an agent before its first call too, also where another process asked."""
        knocking.ask(connection, "library.meet", {"call": self._whose})

    def first(self, call: ToolCall, wish: Wish, phase: str) -> Callable[[], Decided]:
        return lambda: self._decide(call, wish, phase)

    def _decide(self, call: ToolCall, wish: Wish, phase: str) -> Decided:
        try:
            found: Decided = self._ask("decide", Decided, call=call, wish=wish, phase=phase)
            return found
        except CheckreinError as error:
            # INVARIANT: a call that nobody could judge is refused.
            why = f"The call could not be judged and recorded: {error.message}"
            return Decided("", refuse("record", why, error.remedy or "Run `checkrein doctor`."))

    def wait(
        self, entry: str, call: ToolCall, seconds: float, stop: threading.Event | None = None
    ) -> Settled | None:
        deadline, lost = time.monotonic() + seconds, 0.0
        while True:
            left = deadline - time.monotonic()
            try:
                found: Settled | None = self._ask(
                    "wait",
                    Settled | None,
                    call=call,
                    entry=entry,
                    seconds=max(0.0, min(left, _POLL, LONGEST_WAIT)),
                )
                lost = 0.0
            except StoreError:
                # Restarting the server loses no question.
                lost = lost or time.monotonic()
                if time.monotonic() - lost > PATIENCE:
                    raise
                found = None
                time.sleep(_PAUSE)
            if found is not None or left <= 0 or (stop is not None and stop.is_set()):
                return found

    def withdraw(self, entry: str, call: ToolCall, why: str) -> None:
        self._ask("withdraw", None, call=call, entry=entry, why=why)

    def take(self, entry: str, call: ToolCall, phase: str, again: bool) -> Taken:
        taken: Taken = self._ask("take", Taken, call=call, entry=entry, phase=phase, again=again)
        return taken

    def pause(self, entry: str, call: ToolCall, step: int, payload: Any, told: str) -> None:
        self._ask("pause", None, call=call, entry=entry, step=step, payload=payload, told=told)

    def go_on(self, entry: str, call: ToolCall, step: int, phase: str, again: bool, told: str) -> Taken:
        about = {"call": call, "entry": entry, "step": step, "phase": phase, "again": again, "told": told}
        taken: Taken = self._ask("go_on", Taken, **about)
        return taken

    def finish(self, entry: str, outcome: str, output: Any, evidence: str) -> None:
        self._ask("finish", None, entry=entry, outcome=outcome, output=output, evidence=evidence)

    def flush(self) -> None:
        """Nothing waits here."""

    def questions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = knocking.ask(knocking.start(), "question.list", {})
        return found

    def answer(
        self,
        entry: str,
        answer: str,
        *,
        call: ToolCall | None = None,  # noqa: ARG002 - the server knows it
        message: str = "",
        edited: dict[str, Any] | None = None,
        remember: Remember | None = None,
        actor: str = "",
    ) -> str:
        """INVARIANT: the server asks who answers, and a program that gates an agent is no person."""
        if actor:
            raise InputError("The server knows who answers; a program cannot say so.")
        self._meet(knocking.start())
        said: dict[str, Any] = {"id": entry, "answer": answer}
        said |= {"result": message} if answer == "answered" else {"message": message}
        said |= {"edited": edited} if edited is not None else {}
        said |= {"remember": remember} if remember is not None else {}
        came: dict[str, Any] = knocking.ask(knocking.start(), "question.answer", said)
        return str(came["answer"])

    def close(self) -> None:
        """The server stays."""

    def _ask(self, verb: str, kind: Any, **params: Any) -> Any:
        value = knocking.ask(knocking.start(), f"library.{verb}", params)
        return None if kind is None else msgspec.convert(value, kind)
