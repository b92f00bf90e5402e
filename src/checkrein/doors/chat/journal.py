"""The runs of conversations and their calls, as values; every change of a state is a compare-and-set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from checkrein.doors.chat import Invocation, Run, RunState, Status
from checkrein.doors.chat.rows import call_of, columns, run_of
from checkrein.errors import InputError, NotFoundError
from checkrein.store import Store, Transaction, conversation_runs, conversations
from checkrein.store.conversation_runs import CALL, RUN

_Value = TypeVar("_Value", Run, Invocation)
_NO_RUN = Run(id="", session="")
_NO_CALL = Invocation(run="", call_id="", session="", message="", name="", server="", tool="", arguments={})
_LASTING = {"id", "session", "run", "call_id", "message"}


class Journal:
    """What runs and calls are and become. Blocking; every write is one transaction."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self.store, self.clock = store, clock

    def add_run(self, run: Run) -> None:
        values = columns(run, RUN)
        session = run.session

        def work(tx: Transaction) -> None:
            if conversations.get_session(tx, session) is None:
                raise NotFoundError(f"There is no conversation `{session}`.")
            conversations.insert(tx, "chat_run", values)

        self.store.write(work)

    def get_run(self, id: str) -> Run | None:  # noqa: A002 - the word of the value
        row = conversation_runs.get_run(self.store, id)
        return run_of(row) if row else None

    def runs_of(self, session: str, limit: int = 20) -> list[Run]:
        """The newest first."""
        return [run_of(row) for row in conversation_runs.runs_of(self.store, session, limit)]

    def unfinished_runs(self) -> list[Run]:
        """Those that run or wait, oldest first."""
        return [run_of(row) for row in conversation_runs.unfinished_runs(self.store)]

    def change_run(
        self,
        id: str,  # noqa: A002 - the word of the value
        *,
        expect: Sequence[RunState],
        expect_holder: str | None = None,
        **changes: Any,
    ) -> bool:
        """Whether the run was in one of these states, held by that holder, and is changed now."""
        values = columns(_changes(_NO_RUN, changes), RUN)
        return self.store.write(
            lambda tx: conversation_runs.change_run(tx, id, expect, expect_holder, values)
        )

    def put_call(self, call: Invocation) -> bool:
        """Writes down a call the model made; False, and nothing changes, when its run has it already."""
        values = columns(call, CALL)
        session = call.session

        def work(tx: Transaction) -> bool:
            if conversations.get_session(tx, session) is None:
                raise NotFoundError(f"There is no conversation `{session}`.")
            return conversation_runs.add_call(tx, values)

        return self.store.write(work)

    def call(self, run: str, call_id: str) -> Invocation | None:
        row = conversation_runs.get_call(self.store, run, call_id)
        return call_of(row) if row else None

    def calls_of(self, run: str) -> list[Invocation]:
        """In the order the model made them."""
        return self._calls("run = ?", run)

    def calls_of_message(self, message: str) -> list[Invocation]:
        return self._calls("message = ?", message)

    def calls_of_session(self, session: str) -> list[Invocation]:
        return self._calls("session = ?", session)

    def call_of_entry(self, entry: str) -> Invocation | None:
        """The call that an entry of the record, or its question, is about."""
        found = self._calls("entry = ?", entry) if entry else []
        return found[-1] if found else None

    def change_call(self, run: str, call_id: str, *, expect: Sequence[Status], **changes: Any) -> bool:
        """Whether the call had one of these statuses and is changed now."""
        values = columns(_changes(_NO_CALL, changes), CALL)
        return self.store.write(lambda tx: conversation_runs.change_call(tx, run, call_id, expect, values))

    def _calls(self, where: str, given: str) -> list[Invocation]:
        return [call_of(row) for row in conversation_runs.calls_where(self.store, where, (given,))]


def _changes(blank: _Value, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes, if they make sense for such a value."""
    if not changes:
        raise InputError("There is nothing to change.")
    unknown = [name for name in changes if name not in blank.__struct_fields__ or name in _LASTING]
    if unknown:
        raise InputError(f"`{unknown[0]}` is nothing that can be changed of it.")
    try:
        msgspec.convert(msgspec.to_builtins(blank) | changes, type(blank))
    except msgspec.ValidationError as error:
        raise InputError(f"This cannot be kept: {error}.") from error
    return changes
