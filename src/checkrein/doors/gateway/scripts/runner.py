"""Drives one script from call to call: every call is judged, asked about or carried out, then answered.

The desk starts runs and wakes them. A script that must wait for a person is put away before anybody is
asked; whoever claims it when the answers are there goes on with it, once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from checkrein.call import digest
from checkrein.doors.gateway.scripts.answering import Calls, Pending
from checkrein.doors.gateway.scripts.asking import Asking
from checkrein.doors.gateway.scripts.engines import Engines
from checkrein.doors.gateway.scripts.journal import Journal, Rest
from checkrein.doors.gateway.scripts.run import Answered, Question, Run, limits_of
from checkrein.execute.sandbox import Answer, DamagedError, Paused, Step, Tool, Wanted
from checkrein.settings import Evaluation
from checkrein.store import questions as stored
from checkrein.store.questions import get_question
from checkrein.store.runs import RUNNING, CallRow, get_run

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub


class StoppedError(Exception):
    """Raise when a script is brought to its end, with what to say about it."""

    def __init__(self, kind: str, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.kind, self.message, self.line = kind, message, line


class ForeignError(Exception):
    """Raise when somebody else goes on with this run."""


class Runner:
    """The way of every script on this server; `holder` is this server's name in the rows of its runs."""

    def __init__(
        self, hub: Hub, engines: Engines, calls: Calls, asking: Asking, journal: Journal, holder: str
    ) -> None:
        self._hub, self._engines, self._calls = hub, engines, calls
        self._asking, self._journal, self._holder = asking, journal, holder

    async def start(self, run: Run, stubs: str) -> Step:
        """A script from its first line to its end."""
        engine = self._engines.of(run.script.language)
        run.session = await engine.open(_tools(run), limits_of(self._settings(run)), stubs=stubs)
        return await self._drive(run, run.session.start(run.script.source))

    async def go_on(self, run: Run) -> Step:
        """A script that was put away, from there to its end."""
        rest = self._journal.rest(run.row)
        self._journal.read(run)
        # What was called after the last rest counts too.
        run.set(calls=max(run.row.calls, len(run.journal)))
        for number in rest.waiting:
            row = run.journal.get(number)
            if row is not None and row.state == "asked":
                await self._ask_again(run, number, row)
        run.tell()
        return await self._drive(run, self._continued(run, rest.waiting))

    async def _ask_again(self, run: Run, number: int, row: CallRow) -> None:
        wanted = self._wanted(run, number)
        if get_question(self._hub.pipeline.store, row.entry) is not None:
            _, definition = self._journal.asked_for(row)
            run.questions[number] = self._calls.question(run, wanted, row.entry, definition)
            return
        # The server ended after the script was put away and before anybody was asked.
        if (found := await self._calls.asked_late(run, wanted)) is not None:
            run.questions[number] = found

    async def _drive(self, run: Run, first: Awaitable[Step]) -> Step:
        try:
            step = await first
            while isinstance(step, Paused):
                run.output = step.output
                step = await self._next(run, step)
            return step
        finally:
            under_way = list(run.working.values())
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            session, run.session = run.session, None
            if session is not None:
                await session.close()

    async def _next(self, run: Run, step: Paused) -> Step:
        """Answer what can be answered now; where a person must be asked, put the script away first."""
        pending: list[Pending] = []
        alone = len(step.wanted) == 1
        for wanted in step.wanted:
            if wanted.id in run.journal:
                self._check_same(run, wanted)
                if wanted.id not in run.working and wanted.id not in run.known:
                    # Begun before the server ended.
                    self._work(run, wanted.id, self._calls.unknown(run, wanted))
            elif wanted.id not in run.working:
                await self._new(run, wanted, pending, alone)
        self._check_refusals(run)
        if pending:
            return await self._rested(run, step, pending)
        ready = [each.id for each in step.wanted if each.id in run.known]
        if not ready:
            working = [run.working[each.id] for each in step.wanted if each.id in run.working]
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            # What comes in with the first goes on with it.
            await asyncio.sleep(0)
            for task in working:
                if task.done():
                    task.result()
            ready = [each.id for each in step.wanted if each.id in run.known]
        return await self._resumed(run, ready)

    async def _new(self, run: Run, wanted: Wanted, pending: list[Pending], alone: bool) -> None:
        settings = self._settings(run)
        run.set(calls=run.row.calls + 1)
        if run.row.calls > settings.calls:
            raise StoppedError("calls", f"The script made more than {settings.calls} calls.", wanted.line)
        found = await self._calls.judged(run, wanted, settings)
        if found is None:
            return
        if found.evaluation is not None:
            pending.append(found)
        elif alone:
            # The script waits for nothing else.
            await self._calls.execute(run, found)
        else:
            self._work(run, wanted.id, self._calls.execute(run, found))

    def _work(self, run: Run, number: int, work: Coroutine[Any, Any, Answered]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        run.working[number] = task
        task.add_done_callback(lambda _task: run.working.pop(number, None))

    async def _resumed(self, run: Run, numbers: Iterable[int]) -> Step:
        session = run.session
        if session is None:
            raise StoppedError("crash", "The script is not there any more.")
        return await session.resume({number: _answer(run.known[number]) for number in numbers})

    # -- waiting for people -----------------------------------------------------------------------------

    async def _rested(self, run: Run, step: Paused, pending: list[Pending]) -> Step:
        session, run.session = run.session, None
        if session is None:
            raise StoppedError("crash", "The script is not there any more.")
        waiting = tuple(each.id for each in step.wanted)
        rows = [
            self._journal.row(run, each.wanted, "asked", each.entry, each.offered.hash) for each in pending
        ]
        # INVARIANT: nobody is asked before the script is put away, so that nothing that waits can be lost.
        keep = self._settings(run).keep_days * 86_400
        if not await self._journal.suspend(run, Rest(waiting, await session.dump()), rows, keep):
            raise ForeignError
        for each in pending:
            found = await self._calls.asked(run, each)
            if isinstance(found, Question):
                run.questions[each.wanted.id] = found
            elif found is not None:
                self._work(run, each.wanted.id, self._calls.execute(run, found))
        run.tell()
        return await self._continued(run, waiting)

    async def _continued(self, run: Run, waiting: tuple[int, ...]) -> Step:
        """Wait for people and for calls under way, claim the run, carry out what was approved, go on."""
        settled = await self._answers(run, waiting)
        under_way = [run.working[number] for number in waiting if number in run.working]
        await asyncio.gather(*under_way)
        row = get_run(self._hub.pipeline.store, run.id)
        # INVARIANT: exactly one goes on with a run, however many wait for its answers.
        # A row with another holder was claimed since we read it: claiming it again would take it from them.
        if row is None or (row.rests, row.holder) != (run.row.rests, run.row.holder):
            raise ForeignError
        if not await self._journal.claim(row, self._holder):
            raise ForeignError
        run.set(state=RUNNING, holder=self._holder, suspended=row.suspended)
        rest = self._journal.rest(row)
        await self._carried_out(run, waiting, settled)
        self._check_refusals(run)
        engine = self._engines.of(run.script.language)
        run.session = await engine.load(rest.dumped, _tools(run), limits_of(self._settings(run)))
        return await self._resumed(run, waiting)

    async def _answers(self, run: Run, waiting: tuple[int, ...]) -> list[tuple[Question, stored.Question]]:
        asked = [run.questions[number] for number in waiting if number in run.questions]

        async def one(question: Question) -> tuple[Question, stored.Question]:
            found = await self._asking.answer(question)
            run.questions.pop(question.wanted.id, None)
            run.tell()
            return question, found

        return list(await asyncio.gather(*(one(each) for each in asked)))

    async def _carried_out(
        self, run: Run, waiting: tuple[int, ...], settled: list[tuple[Question, stored.Question]]
    ) -> None:
        for question, found in settled:
            pending = await self._calls.answered(run, question, found)
            if pending is not None:
                self._work(run, question.wanted.id, self._calls.execute(run, pending))
        for number in waiting:
            if number not in run.known and number not in run.working:
                await self._left_over(run, self._wanted(run, number))
        await asyncio.gather(*(run.working[number] for number in waiting if number in run.working))

    async def _left_over(self, run: Run, wanted: Wanted) -> None:
        """A call from before the server ended: begun, or not even asked about."""
        if run.journal[wanted.id].state != "asked":
            self._work(run, wanted.id, self._calls.unknown(run, wanted))
            return
        # It needed no question when the script was taken up. Whether it may run is said now that it can.
        pending = await self._calls.judged(run, wanted, self._settings(run), asking=False)
        if pending is not None:
            self._work(run, wanted.id, self._calls.execute(run, pending))

    # -- what must hold ---------------------------------------------------------------------------------

    def _wanted(self, run: Run, number: int) -> Wanted:
        """A call as it was made before the script was put away."""
        row = run.journal.get(number)
        if row is None:
            raise DamagedError("A call of this run is not in its journal.", remedy="Run the script again.")
        names = {"__".join(pair): name for name, pair in run.script.names.items()}
        arguments, _ = self._journal.asked_for(row)
        return Wanted(number, names.get(row.tool, row.tool), arguments, row.line)

    def _check_same(self, run: Run, wanted: Wanted) -> None:
        """INVARIANT: an answer from the journal goes only to the very call it was an answer to."""
        row, pair = run.journal[wanted.id], run.script.names.get(wanted.name)
        if pair is None or row.tool != "__".join(pair) or row.argument_hash != digest(wanted.arguments):
            raise StoppedError(
                "diverged", "The script went another way than before the server was stopped.", wanted.line
            )

    def _check_refusals(self, run: Run) -> None:
        """INVARIANT: a refusal that ends the script cannot be caught by it."""
        if not run.row.refusals:
            return
        most = 1 if run.script.narrow.fatal else self._settings(run).fatal_denials
        if most and run.row.refusals >= most:
            last = [each for each in run.trail if str(each["verdict"]).startswith("denied")][-1]
            raise StoppedError(
                "denied", f"`{last['tool']}` was refused ({last['verdict']}), which ends it.", last["line"]
            )

    def _settings(self, run: Run) -> Evaluation:
        """How much a script may do, looked up again every second: it is no verdict."""
        now, known = time.monotonic(), run.settings
        if known is None or now >= known[0]:
            found = self._hub.pipeline.policies.of(run.row.project, "eval").settings.evaluation
            known = run.settings = now + 1.0, found
        return known[1]


def _tools(run: Run) -> list[Tool]:
    return [Tool(name) for name in run.script.names]


def _answer(answered: Answered) -> Answer:
    return Answer(answered.value, answered.error, answered.denied, answered.said)
