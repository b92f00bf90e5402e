"""Runs that are alive on this server: begun, followed, stopped, and taken up again after a restart.

One run at a time in a session. `chat` calls it on the loop; the work itself is the agent's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from checkrein.doors.chat import OVER, Message, Run
from checkrein.doors.chat.agent import Agent
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import message_view
from checkrein.errors import CheckreinError, ConflictError

MOST = 256
_STOP_SECONDS = 5.0
INTERRUPTED = "The server was stopped while the model answered. What had come is kept; try again."


class Runs:
    """Every run this server works on."""

    def __init__(
        self, agent: Agent, sessions: Sessions, lines: Lines, holder: str, say: Callable[[str], None]
    ) -> None:
        self._agent, self._sessions, self._lines = agent, sessions, lines
        self.holder, self._say = holder, say
        self.live: dict[str, Live] = {}
        self._busy: set[str] = set()

    def of_session(self, session: str) -> Live | None:
        # A copy: other threads ask too.
        return next((each for each in list(self.live.values()) if each.run.session == session), None)

    def check_free(self, session: str) -> None:
        """INVARIANT: one answer at a time: what a run builds on is not changed under it."""
        if session in self._busy:
            raise ConflictError("A model is answering here already.", remedy="Wait for it, or stop it first.")
        if len(self.live) >= MOST:
            raise ConflictError(f"{MOST} answers are under way already.", remedy="Try again in a moment.")

    def take(self, session: str) -> None:
        """Keep a session for a run that is about to begin."""
        self.check_free(session)
        self._busy.add(session)

    def release(self, session: str) -> None:
        self._busy.discard(session)

    def end_left(self, session: str) -> None:
        """Runs of a session that is taken, whose end could not be written when they came to it."""
        now = self._sessions.clock()
        for each in self._sessions.runs_of(session):
            if each.state not in OVER:
                self._sessions.change_run(each.id, expect=(each.state,), state="failed", ended_at=now)

    async def begin(self, run: Run) -> Live:
        """Work on a run whose session is taken."""
        await asyncio.to_thread(self._sessions.add_run, run)
        return self._set_going(run)

    def _set_going(self, run: Run) -> Live:
        live = Live(run)
        self._busy.add(run.session)
        self.live[run.id] = live
        live.task = asyncio.get_running_loop().create_task(self._worked(live))
        return live

    async def _worked(self, live: Live) -> None:
        try:
            await self._agent.work(live)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - one run's trouble ends nothing else
            self._say(f"a chat run ended badly: {type(error).__name__}: {error}")
        finally:
            self.live.pop(live.run.id, None)
            self._busy.discard(live.run.session)

    async def abort(self, run: str) -> bool:
        """Stop a run; returns when it is over. False when it was over before."""
        live = self.live.get(run)
        if live is None or live.task is None:
            return False
        # Once only: how it ends is not cut off by somebody who clicks again.
        if not live.aborted:
            live.aborted = True
            live.task.cancel()
        await asyncio.wait([live.task])
        return True

    async def end(self, session: str) -> None:
        """Stop what is under way in a session, and keep it: nothing begins there until it is released."""
        while session in self._busy:
            live = self.of_session(session)
            # Where there is none, one is being made ready.
            await (asyncio.sleep(0.01) if live is None else self.abort(live.run.id))
        self._busy.add(session)

    # -- after a restart --------------------------------------------------------------------------------

    async def resume(self) -> None:
        """Go on with what waits for people or tools; say so where an answer was cut off."""
        for run in await asyncio.to_thread(self._sessions.unfinished_runs):
            try:
                await self._resumed(run)
            except CheckreinError as error:
                self._say(f"a chat run cannot go on: {error}")

    async def _resumed(self, run: Run) -> None:
        # INVARIANT: exactly one server goes on with a run.
        mine = await asyncio.to_thread(
            lambda: self._sessions.change_run(
                run.id, expect=("running", "waiting"), expect_holder=run.holder, holder=self.holder
            )
        )
        if not mine:
            return
        path = await asyncio.to_thread(self._sessions.path, run.session)
        last = path[-1] if path else None
        waits = last is not None and last.run == run.id and last.state == "completed"
        if waits and run.session not in self._busy:
            self._set_going(run)
            return
        await self._interrupted(run, last)

    async def _interrupted(self, run: Run, last: Message | None) -> None:
        now = self._sessions.clock()
        await self._agent.stopped(run)

        def end() -> Message | None:
            self._sessions.change_run(
                run.id, expect=("running", "waiting"), state="interrupted", error=INTERRUPTED, ended_at=now
            )
            if last is None or last.state != "streaming":
                return None
            return self._sessions.rewrite(last.id, last.parts, state="interrupted", error=INTERRUPTED)

        message = await asyncio.to_thread(end)
        if message is not None:
            self._lines.tell(run.session, "message", run.id, message=message_view(message))
        self._lines.tell(run.session, "error", run.id, error="interrupted", text=INTERRUPTED, retry=True)

    async def close(self) -> None:
        """The server ends: what was written is kept, what waits goes on waiting."""
        tasks = [each.task for each in self.live.values() if each.task is not None]
        for live in self.live.values():
            if live.task is not None and not live.aborted:
                live.task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
