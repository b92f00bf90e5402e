"""Scripts as people see and run them: from the terminal and the console, with everything masked.

The gateway calls these for the verbs of `authority.run`. A person's own script is judged like any other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from checkrein.authority.run import shown
from checkrein.doors.gateway.clients import DEFAULT_PROJECT, Visit
from checkrein.doors.gateway.scripts import results, wording
from checkrein.doors.gateway.scripts.run import Run
from checkrein.errors import InputError, NotFoundError
from checkrein.execute.preview import LANGUAGES
from checkrein.execute.sandbox import DamagedError
from checkrein.ledger.entries import moment
from checkrein.ledger.events import cut
from checkrein.ledger.redact import Redactor
from checkrein.store.runs import ENDED, CallRow, RunRow, calls_of, get_run, latest_runs

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub
    from checkrein.doors.gateway.scripts.desk import Desk

# Shorter than the gateway's own patience with whoever asks.
_LONGEST_WAIT, _MOST_RUNS, _MOST_SHOWN = 100.0, 1_000, 16_384
PERSON = "person"


class People:
    """What a person asks of scripts."""

    def __init__(self, hub: Hub, desk: Desk) -> None:
        self._hub, self._desk, self._store = hub, desk, hub.pipeline.store

    async def start(
        self, source: str, language: str, profile: str, project: str, wait: float
    ) -> dict[str, Any]:
        """Run a script; nobody's tool is needed, and it need not be turned on for agents."""
        if language not in LANGUAGES:
            raise InputError(f"{language!r} is no language here.", remedy=f"Use {', '.join(LANGUAGES)}.")
        profiles = self._desk.settings().profiles
        if profile and profile not in profiles:
            raise NotFoundError(
                f"There is no profile {profile!r}.", remedy=f"There are: {', '.join(profiles) or 'none'}."
            )
        await self._hub.fleet.settled(min(wait or 1.0, 15.0))
        await self._hub.news.listed()
        run = await self._desk.begin(
            source=source,
            language=language,
            profile=profile,
            project=project or DEFAULT_PROJECT,
            owner=f"{PERSON}:{self._hub.user}",
            agent=PERSON,
            visit=Visit(f"{PERSON}-{self._hub.user}"),
        )
        return await self._waited(run.id, wait)

    async def resume(self, run_id: str, wait: float) -> dict[str, Any]:
        """What came of a run, or that it still runs or waits."""
        self._row(run_id)
        return await self._waited(run_id, wait)

    async def cancel(self, run_id: str, actor: str) -> dict[str, Any]:
        self._row(run_id)
        await self._desk.cancel(run_id, f"{actor or 'A person'} ended it.")
        return self._shown(self._row(run_id))

    async def runs(self, limit: int) -> list[dict[str, Any]]:
        return [self._shown(each) for each in latest_runs(self._store, max(1, min(limit, _MOST_RUNS)))]

    async def run(self, run_id: str) -> dict[str, Any]:
        """A run with its script, its calls and its end, masked."""
        row = self._row(run_id)
        redactor = self._hub.pipeline.policies.of(row.project).redactor
        made = {**self._shown(row), "source": "", "result": None, "timeline": [], "fault": ""}
        try:
            # INVARIANT: what people are shown of a script is masked as the record is.
            made["source"] = redactor.text(self._desk.journal.script(row).source)
            made["timeline"] = [self._step(each, redactor) for each in calls_of(self._store, run_id)]
            if row.state in ENDED:
                made["result"] = cut(redactor.value(self._desk.journal.result(row)), _MOST_SHOWN)
        except DamagedError as error:
            made["fault"] = str(error)
        return made

    async def _waited(self, run_id: str, wait: float) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        until = loop.time() + max(0.0, min(wait, _LONGEST_WAIT))
        while True:
            run = self._desk.live.get(run_id)
            row = self._row(run_id)
            if run is None and row.state in ENDED:
                return self._result(row)
            waiting = _open(run)
            # A person who is asked answers elsewhere: there is nothing to wait for here.
            if loop.time() >= until or waiting:
                found: dict[str, Any] = results.paused(run_id, waiting)["structuredContent"]
                return found
            if run is None:
                await asyncio.sleep(min(0.1, until - loop.time()))
                continue
            try:
                async with asyncio.timeout_at(until):
                    await run.changed.wait()
            except TimeoutError:
                continue

    def _result(self, row: RunRow) -> dict[str, Any]:
        """What came of a run: of a person's own as it is, of an agent's masked."""
        found = self._desk.journal.result(row)
        if row.agent == PERSON and row.owner.startswith(f"{PERSON}:"):
            return found
        masked: dict[str, Any] = self._hub.pipeline.policies.of(row.project).redactor.value(found)
        return masked

    def _row(self, run_id: str) -> RunRow:
        row = get_run(self._store, run_id)
        if row is None:
            raise NotFoundError(f"There is no run {run_id!r}.", remedy="See the list of runs.")
        return row

    def _shown(self, row: RunRow) -> dict[str, Any]:
        return {**shown(row), "waiting": _open(self._desk.live.get(row.id))}

    def _step(self, row: CallRow, redactor: Redactor) -> dict[str, Any]:
        arguments, _ = self._desk.journal.asked_for(row)
        answered = self._desk.journal.answer(row)
        masked, secrets = redactor.find(arguments)
        return {
            "number": row.number,
            "tool": row.tool,
            "line": row.line,
            "state": row.state,
            "entry": row.entry,
            "at": moment(row.at),
            "arguments": cut(masked, _MOST_SHOWN),
            "verdict": answered.verdict if answered is not None else "",
            "error": redactor.text(secrets.quoted(answered.error or answered.denied)) if answered else "",
            "answer": cut(secrets.value(redactor.value(answered.value)), _MOST_SHOWN) if answered else None,
        }


def _open(run: Run | None) -> list[dict[str, Any]]:
    if run is None:
        return []
    return wording.waiting(sorted(run.questions.values(), key=lambda each: each.wanted.id))
