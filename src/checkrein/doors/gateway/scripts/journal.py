"""What is written down of a run, before it matters: the script, its calls, its suspended bytes, its end.

The runner and the desk write here. Everything a script says is sealed; the ledger says which bytes count.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from checkrein.call import digest
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.scripts.run import Answered, Run, Script
from checkrein.doors.gateway.scripts.vault import Vault
from checkrein.execute.sandbox import DamagedError, Wanted
from checkrein.ledger.entries import body_of_row
from checkrein.pipeline import Pipeline
from checkrein.store import Transaction
from checkrein.store.records import of_entries
from checkrein.store.runs import (
    ENDED,
    RUNNING,
    CallRow,
    RunRow,
    add_run,
    calls_of,
    claim_run,
    end_run,
    forget_run,
    get_run,
    put_call,
    suspend_run,
)

T = TypeVar("T")
_AGAIN = "Run the script again."
# So many answers are on their way to the record before anybody waits for them.
_MOST_WRITING = 8


class Rest(msgspec.Struct, frozen=True):
    """A script that was put away, and the numbers of the calls it waits for."""

    waiting: tuple[int, ...]
    dumped: bytes


_rest = msgspec.msgpack.Decoder(Rest)


class Journal:
    """The rows of runs, sealed and opened."""

    def __init__(self, pipeline: Pipeline, vault: Vault, mail: Mail) -> None:
        self._pipeline, self._vault, self._mail = pipeline, vault, mail

    # -- runs -------------------------------------------------------------------------------------------

    async def begin(self, row: RunRow, script: Script) -> RunRow:
        """A new run; the row as it was written."""
        made = msgspec.structs.replace(
            row, source=self._vault.put(msgspec.to_builtins(script), row.id, "source")
        )
        data = {
            **_whose(row),
            "language": row.language,
            "source": digest(script.source),
        }

        def work(tx: Transaction) -> None:
            add_run(tx, made)
            self._pipeline.ledger.append(tx, "run_started", data, entry=row.id)

        await self._write(work)
        return made

    def script(self, row: RunRow) -> Script:
        """Raises DamagedError."""
        try:
            return msgspec.convert(self._vault.get(row.source, row.id, "source"), Script)
        except msgspec.ValidationError:
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN) from None

    async def suspend(self, run: Run, rest: Rest, rows: list[CallRow], keep: float) -> bool:
        """Put the script away with the calls it waits for; False when it is not ours any more."""
        await self.written(run)
        rests = run.row.rests + 1
        sealed = self._vault.close(msgspec.msgpack.encode(rest), run.id, "suspended", rests)
        now = self._pipeline.clock()
        row = msgspec.structs.replace(
            run.row, rests=rests, suspended=sealed, changed_at=now, expires_at=now + keep
        )
        data = {
            **_whose(row),
            "rests": rests,
            "bytes": _hash(sealed),
            "waiting": [each.tool for each in rows if each.state == "asked"],
        }

        def work(tx: Transaction) -> bool:
            if not suspend_run(tx, row):
                return False
            for each in rows:
                put_call(tx, each)
            self._pipeline.ledger.append(tx, "run_suspended", data, entry=row.id)
            return True

        done = await self._write(work, durable=True)
        if done:
            run.row = msgspec.structs.replace(row, state="waiting")
            run.journal.update({each.number: each for each in rows})
        return done

    def rest(self, row: RunRow) -> Rest:
        """The suspended script; raises DamagedError where they are not the last ones that were put away."""
        last = ""
        for record in of_entries(self._pipeline.store, [row.id]):
            body = body_of_row(record)
            if body["kind"] == "run_suspended":
                last = str(body["data"].get("bytes", ""))
            elif body["kind"] == "run_ended":
                last = ""
        # INVARIANT: older bytes of the same run, put back with everything beside them, do not run again.
        if not row.suspended or last != _hash(row.suspended):
            raise DamagedError("What is stored of this run is not what was put away last.", remedy=_AGAIN)
        try:
            return _rest.decode(self._vault.open(row.suspended, row.id, "suspended", row.rests))
        except msgspec.MsgspecError:
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN) from None

    async def claim(self, row: RunRow, holder: str) -> bool:
        """Take the run to go on with it; one of all who try succeeds."""
        now = self._pipeline.clock()
        return await self._write(lambda tx: claim_run(tx, row, holder, now), durable=True)

    async def seize(self, run: Run, holder: str) -> bool:
        """Take the run to end it, if it is still ours; it may just have been put away or gone on."""
        ours, now = (holder, run.row.holder), self._pipeline.clock()

        def work(tx: Transaction) -> RunRow | None:
            row = get_run(tx, run.id)
            if row is None or row.state in ENDED or row.holder not in ours:
                return None
            return row if claim_run(tx, row, holder, now) else None

        # INVARIANT: writes come one after another, so that this one sees all that was under way before.
        row = await self._write(work)
        if row is None:
            return False
        run.set(state=RUNNING, holder=holder, rests=row.rests, suspended=row.suspended)
        return True

    async def end(self, run: Run, state: str, result: dict[str, Any], keep: float) -> bool:
        """What came of it, once."""
        await self.written(run)
        now, row = self._pipeline.clock(), run.row
        sealed = self._vault.put(result, row.id, "result")
        data = {**_whose(row), "state": state, "calls": row.calls, "asks": row.asks, "refusals": row.refusals}

        def work(tx: Transaction) -> bool:
            if not end_run(tx, row, state, sealed, now, now + keep):
                return False
            self._pipeline.ledger.append(tx, "run_ended", data, entry=row.id)
            return True

        done = await self._write(work)
        if done:
            run.row = msgspec.structs.replace(row, state=state, result=sealed, suspended="", changed_at=now)
        return done

    def result(self, row: RunRow) -> dict[str, Any]:
        """Raises DamagedError."""
        found = self._vault.get(row.result, row.id, "result")
        if not isinstance(found, dict):
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN)
        return found

    async def forget(self, id: str) -> None:  # noqa: A002 - the word of the table
        await self._write(lambda tx: forget_run(tx, id))

    # -- calls ------------------------------------------------------------------------------------------

    def row(self, run: Run, wanted: Wanted, state: str, entry: str, definition: str = "") -> CallRow:
        """A call as it is written down."""
        pair = run.script.names.get(wanted.name)
        return CallRow(
            run=run.id,
            number=wanted.id,
            tool="__".join(pair) if pair else wanted.name[:160],
            argument_hash=digest(wanted.arguments),
            state=state,
            entry=entry,
            line=wanted.line,
            at=self._pipeline.clock(),
            arguments=self._vault.put([wanted.arguments, definition], run.id, "arguments", wanted.id),
        )

    async def note(self, run: Run, row: CallRow) -> None:
        """A row that is written down before anything comes of it."""
        self._seal(run)
        self._post(run, row)
        await self.written(run)

    async def settle(self, run: Run, row: CallRow, answered: Answered, state: str = "") -> None:
        """What a call came to."""
        state = state or ("denied" if answered.denied else "failed" if answered.error else "done")
        row = msgspec.structs.replace(row, state=state, at=self._pipeline.clock())
        run.known[row.number], run.journal[row.number] = answered, row
        run.unsealed.append((row, answered))
        # INVARIANT: an answer is on the record no later than whatever the script does next: rows are written
        # in order, and the next call, the rest and the end of the script each wait for their own.
        if run.session is None or len(run.writing) > _MOST_WRITING:
            await self.written(run)
        else:
            # While the script goes on, there is time for it.
            asyncio.get_running_loop().call_soon(self._seal_now, run)

    def _seal_now(self, run: Run) -> None:
        try:
            self._seal(run)
        except Exception as error:  # noqa: BLE001 - it is raised where the script would go on
            run.unsealable = error

    def _seal(self, run: Run) -> None:
        """Seal what is not yet; raises, once, what kept something from it."""
        error, run.unsealable = run.unsealable, None
        if error is not None:
            raise error
        while run.unsealed:
            row, answered = run.unsealed.pop(0)
            sealed = self._vault.put(msgspec.to_builtins(answered), run.id, "answer", row.number)
            self._post(run, msgspec.structs.replace(row, answer=sealed))

    def begun(self, run: Run, row: CallRow) -> Callable[[Transaction], None]:
        """A call that may run, as work that goes with the record of its verdict."""
        self._seal(run)
        run.journal[row.number] = row
        return lambda tx: put_call(tx, row)

    def _post(self, run: Run, row: CallRow) -> None:
        run.journal[row.number] = row
        run.writing = [each for each in run.writing if not each.written]
        run.writing.append(self._mail.send_later(lambda tx: put_call(tx, row), _written))

    async def written(self, run: Run) -> None:
        """Wait until every row of the run is on the record; raises what kept one from it."""
        self._seal(run)
        writing, run.writing = run.writing, []
        self._mail.hurry()
        for each in writing:
            await each.answer()

    def asked_for(self, row: CallRow) -> tuple[dict[str, Any], str]:
        """The arguments of a call and the definition it was made for; raises DamagedError."""
        arguments, definition = self._vault.get(row.arguments, row.run, "arguments", row.number)
        # INVARIANT: what was written beside the sealed arguments counts only where it says the same.
        if digest(arguments) != row.argument_hash:
            raise DamagedError("What is stored of this run is not what was written.", remedy=_AGAIN)
        return arguments, definition

    def answer(self, row: CallRow) -> Answered | None:
        """What a call came to, if that is known; raises DamagedError."""
        if not row.answer:
            return None
        try:
            return msgspec.convert(self._vault.get(row.answer, row.run, "answer", row.number), Answered)
        except msgspec.ValidationError:
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN) from None

    def read(self, run: Run) -> None:
        """Everything that is written of the run's calls; raises DamagedError."""
        for row in calls_of(self._pipeline.store, run.id):
            self.asked_for(row)
            run.journal[row.number] = row
            if (answered := self.answer(row)) is not None:
                run.known[row.number] = answered
        # INVARIANT: a script that is taken up again is as tainted, and as often refused, as it was.
        tainted = [each.tainted_by for each in run.known.values() if each.tainted_by]
        refused = sum(bool(each.denied) for each in run.known.values())
        run.set(
            tainted_by=tainted[-1] if tainted else run.row.tainted_by,
            refusals=max(run.row.refusals, refused),
        )

    async def _write(self, work: Callable[[Transaction], T], *, durable: bool = False) -> T:
        return await asyncio.shield(asyncio.wrap_future(self._pipeline.store.submit(work, durable=durable)))


def _written(error: BaseException | None) -> None:
    if error is not None:
        raise error


def _whose(row: RunRow) -> dict[str, Any]:
    return {
        "project": row.project,
        "session": row.session,
        "agent": row.agent,
        "profile": row.profile,
        "owner": row.owner,
    }


def _hash(sealed: str) -> str:
    return hashlib.sha256(sealed.encode()).hexdigest()
