"""Where scripts are handed in and asked after: the gateway's own tools, runs that wake up, people's verbs.

The hub hands over calls of our own tools; the gateway asks for people. Scripts themselves are the runner's.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any

from checkrein.doors.gateway import roots
from checkrein.doors.gateway.clients import DEFAULT_PROJECT, Client, Flight, Visit
from checkrein.doors.gateway.messages import INVALID_PARAMS, Message, RpcError
from checkrein.doors.gateway.schemas import Validator, compile_schema
from checkrein.doors.gateway.scripts import offer, results
from checkrein.doors.gateway.scripts.answering import Calls
from checkrein.doors.gateway.scripts.asking import Asking
from checkrein.doors.gateway.scripts.carrying import Carrier
from checkrein.doors.gateway.scripts.engines import Engines
from checkrein.doors.gateway.scripts.journal import Journal
from checkrein.doors.gateway.scripts.judging import Judge
from checkrein.doors.gateway.scripts.people import People
from checkrein.doors.gateway.scripts.run import Narrow, Run, Script, narrowed
from checkrein.doors.gateway.scripts.runner import ForeignError, Runner, StoppedError
from checkrein.doors.gateway.scripts.toolbox import Toolbox, told
from checkrein.doors.gateway.scripts.vault import Vault
from checkrein.doors.gateway.scripts.waiting import Waiting, bound
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.execute.preview import LANGUAGES, Language
from checkrein.execute.sandbox import DamagedError, Ended, Failed, Limits, Step
from checkrein.settings import Settings
from checkrein.settings.sources import state_dir
from checkrein.store.runs import ENDED, WAITING, RunRow, get_run, overdue_runs, unfinished_runs

if TYPE_CHECKING:
    from checkrein.doors.gateway.hub import Hub

_DAY, _SWEEP_SECONDS, _SETTLE_SECONDS = 86_400.0, 3_600.0, 15.0
_AGAIN_SECONDS = 5.0
MOST_LIVE = 256
# The desks of this process that are open: what another one holds is not woken.
_OPEN: set[str] = set()


class Desk:
    """Scripts of one gateway."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._pipeline = hub, hub.pipeline
        self.id = secrets.token_hex(8)
        _OPEN.add(self.id)
        self.toolbox = Toolbox(hub.pipeline, hub.catalogue)
        self._offer = offer.Offer(self.toolbox)
        mail = hub.calls.mail
        self.engines, self.journal = Engines(), Journal(hub.pipeline, Vault(state_dir() / "gateway"), mail)
        judge = Judge(hub.pipeline, hub.catalogue, hub.fleet.no_tool, hub.calls.outcomes, mail, hub.user)
        self.asking = Asking(hub)
        calls = Calls(hub, judge, Carrier(hub), self.asking, self.journal)
        self._runner = Runner(hub, self.engines, calls, self.asking, self.journal, self.id)
        self.live: dict[str, Run] = {}
        self.waiting, self.people = Waiting(hub, self), People(hub, self)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._inputs: dict[str, tuple[Message | None, Validator]] = {}
        # Not yet, however short the machine has been up.
        self._swept = float("-inf")
        # Who started the scripts that are not live yet.
        self._beginning: list[str] = []

    # -- the gateway's own tools ------------------------------------------------------------------------

    def settings(self) -> Settings:
        """The user's; no project has a say in whether there are scripts."""
        return self._pipeline.policies.of(DEFAULT_PROJECT, "eval").settings

    def listed(self) -> list[Message]:
        return self._offer.listed(self.settings())

    def takes(self, name: Any) -> bool:
        """Whether a tool of this name is ours now."""
        return isinstance(name, str) and offer.is_ours(name) and self.schema(name) is not None

    def schema(self, name: str) -> Message | None:
        return offer.schema_of(name, self.settings()) if offer.is_ours(name) else None

    def _input(self, name: str) -> Validator:
        """The check of a tool's arguments, made again only where its schema changed."""
        schema = self.schema(name)
        known = self._inputs.get(name)
        if known is None or known[0] != schema:
            known = self._inputs[name] = schema, compile_schema(schema)
        return known[1]

    async def call(self, client: Client, flight: Flight, params: Message) -> Message:
        project = await roots.project(client, flight)
        name, arguments = params["name"], params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "The arguments are an object.")
        if faults := self._input(name).faults(arguments):
            return results.wrong(" ".join(faults))
        state = await self._hub.taken(client, "tools/call", params, bound(params))
        if state is not None:
            return await self.waiting.came_back(state, client, flight, params)
        if name in (offer.SEARCH, offer.GET):
            return self._found(name, arguments)
        if name == offer.RESUME:
            return await self._resumed(client, flight, params, arguments["run_id"])
        profile = offer.profile_of(name, self.settings()) or ""
        return await self._evaluated(client, flight, params, arguments, profile, project)

    def _found(self, name: str, arguments: Message) -> Message:
        profile, language = arguments.get("profile", ""), arguments.get("language", "javascript")
        unknown: list[str] = []
        following = ""
        if name == offer.SEARCH:
            tools = self.toolbox.found(profile, arguments["query"], arguments.get("limit", 5))
            text = told(tools, arguments.get("detail", "detailed"), language)
        elif "names" in arguments:
            tools, unknown = self.toolbox.named(profile, arguments["names"])
            text = told(tools, "full", language)
        else:
            size = arguments.get("pageSize", 50)
            tools, following = self.toolbox.page(profile, arguments.get("cursor", ""), size)
            text = told(tools, "brief", language)
        structured: Message = {"tools": [each.name for each in tools], "unknown": unknown}
        if following:
            structured["nextCursor"] = following
        return {"content": [{"type": "text", "text": text}], "structuredContent": structured}

    async def _evaluated(
        self, client: Client, flight: Flight, params: Message, arguments: Message, profile: str, project: str
    ) -> Message:
        narrow = narrowed(arguments)
        if isinstance(narrow, str):
            return results.wrong(narrow)
        theirs = sum(each.row.owner == client.owner for each in self.live.values())
        # Those whose first row is being written count: many may come in one moment.
        if theirs + self._beginning.count(client.owner) >= MOST_LIVE:
            return results.wrong(f"{MOST_LIVE} scripts of this client run or wait already.")
        making = self._do(
            self.begin(
                source=arguments["code"],
                language=arguments.get("language", "javascript"),
                profile=profile,
                project=project,
                owner=client.owner,
                agent=client.agent,
                visit=client.visit,
                narrow=narrow,
                client=client,
            )
        )
        self._beginning.append(client.owner)
        making.add_done_callback(lambda _task: self._beginning.remove(client.owner))
        try:
            run = await asyncio.shield(making)
        except asyncio.CancelledError:
            # Its first row may be written already: it begins, and then hears that it was taken back.
            making.add_done_callback(lambda task: self.waiting.begun_in_vain(task, client, flight))
            raise
        except CheckreinError as error:
            return results.wrong(str(error))
        return await self.waiting.wait(run.id, client, flight, params)

    async def _resumed(self, client: Client, flight: Flight, params: Message, run_id: str) -> Message:
        row = get_run(self._pipeline.store, run_id)
        # INVARIANT: a run is shown to whoever started it, and to people; another client hears nothing of it.
        if row is None or row.owner != client.owner:
            return results.wrong("There is no such run.")
        return await self.waiting.wait(run_id, client, flight, params)

    # -- runs -------------------------------------------------------------------------------------------

    async def begin(
        self,
        *,
        source: str,
        language: Language,
        profile: str,
        project: str,
        owner: str,
        agent: str,
        visit: Visit,
        narrow: Narrow = Narrow(),  # noqa: B008 - frozen
        client: Client | None = None,
    ) -> Run:
        """Start a script; it goes on by itself."""
        if len(source.encode(errors="replace")) > Limits().source:
            raise InputError(f"The script is longer than {Limits().source >> 10} KB.")
        now = self._pipeline.clock()
        script = Script(source=source, language=language, names=self.toolbox.names(), narrow=narrow)
        row = RunRow(
            id=f"run-{secrets.token_hex(12)}",
            owner=owner,
            session=visit.session,
            agent=agent,
            project=project,
            profile=profile,
            language=language,
            state="running",
            holder=self.id,
            made_at=now,
            changed_at=now,
            expires_at=now + self._keep(),
            tainted_by=visit.tainted_by,
        )
        run = Run(await self.journal.begin(row, script), script)
        run.client = client
        stubs = self.toolbox.python_check() if language == "python" else ""
        self._live(run, self._runner.start(run, stubs))
        return run

    def _live(self, run: Run, work: Awaitable[Step]) -> None:
        self.live[run.id] = run
        run.task = self._do(self._whole(run, work))

    async def _whole(self, run: Run, work: Awaitable[Step]) -> None:
        """A run to its end, whatever that is; what came of it is written down."""
        try:
            failed = await self._driven(run, work)
            # INVARIANT: no run stays behind that nobody drives; a disk that is full may not be so for long.
            while failed is not None and not await self._failed(run, failed):
                await asyncio.sleep(_AGAIN_SECONDS)
        finally:
            self.live.pop(run.id, None)
            run.tell()

    async def _driven(self, run: Run, work: Awaitable[Step]) -> StoppedError | None:
        """Why it did not come to an end of its own, where it did not."""
        try:
            await self._ended(run, await work)
        except ForeignError:
            # Somebody else goes on with it; whoever waits here reads the rows.
            return None
        except StoppedError as stop:
            return stop
        except DamagedError as error:
            return StoppedError("damaged", str(error))
        except CheckreinError as error:
            return StoppedError("unsupported", str(error))
        except Exception as error:  # noqa: BLE001 - one bad script ends itself, not the gateway
            self._hub.say(f"a script failed: {run.id}: {type(error).__name__}: {error}")
            return StoppedError("crash", "Checkrein could not go on with this script.")
        return None

    async def _ended(self, run: Run, step: Step) -> None:
        if isinstance(step, Ended):
            kept = results.done(run.id, step, run.trail)
            await self.journal.end(run, "done", kept, self._keep())
        elif isinstance(step, Failed):
            await self.journal.end(run, "failed", results.failed(run.id, step, run.trail), self._keep())

    async def _failed(self, run: Run, stop: StoppedError) -> bool:
        """Write down why it failed; whether that could be done, or is not ours to do."""
        step = Failed("error", stop.message, stop.line, run.output)
        kept = results.failed(run.id, step, run.trail, stop.kind)
        try:
            await self.asking.withdraw(run, "the script ended")
            if await self.journal.seize(run, self.id):
                await self.journal.end(run, "failed", kept, self._keep())
        except Exception as error:  # noqa: BLE001 - whatever keeps it from the record, it is tried again
            self._hub.say(f"the end of a script cannot be written: {run.id}: {type(error).__name__}")
            return False
        return True

    async def cancel(self, run_id: str, why: str) -> None:
        """End a run that runs or waits; nothing more of it is called."""
        run = self.live.get(run_id)
        if run is None:
            row = get_run(self._pipeline.store, run_id)
            if row is None:
                raise NotFoundError(f"There is no run {run_id!r}.", remedy="See `checkrein eval runs`.")
            if row.state in ENDED:
                raise InputError(f"{run_id} has ended already.")
            run = self._known(row)
        elif run.task is not None:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)
        if run.over:
            return
        await self.asking.withdraw(run, why)
        if await self.journal.seize(run, self.id):
            kept = results.cancelled(run.id, why, run.output, run.trail)
            await self.journal.end(run, "cancelled", kept, self._keep())
        run.tell()

    def turn_out(self, owner: str) -> None:
        """Whoever started these may not come in any more: their scripts call nothing more."""
        for run in [each for each in self.live.values() if each.row.owner == owner]:
            self.cancel_soon(run, "its client was turned out")

    def _known(self, row: RunRow) -> Run:
        try:
            return Run(row, self.journal.script(row))
        except DamagedError:
            language: Language = "python" if row.language == "python" else LANGUAGES[0]
            return Run(row, Script(source="", language=language, names={}))

    # -- waking up --------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Go on with what an earlier server left: runs that wait, and runs it died under."""
        for row in unfinished_runs(self._pipeline.store):
            if row.holder not in _OPEN and row.id not in self.live:
                run = self._known(row)
                self._live(run, self._woken(run))

    async def _woken(self, run: Run) -> Step:
        self.journal.script(run.row)
        if not run.row.suspended:
            raise StoppedError("crash", "The server was stopped while the script ran.")
        await self._hub.fleet.settled(_SETTLE_SECONDS)
        await self._hub.news.listed()
        return await self._runner.go_on(run)

    def look(self) -> None:
        """Now and then: what nobody came back for goes."""
        if time.monotonic() - self._swept > _SWEEP_SECONDS:
            self._swept = time.monotonic()
            self._do(self.sweep())

    async def sweep(self) -> None:
        # A question that ran out is the script's to hear of first.
        for row in overdue_runs(self._pipeline.store, self._pipeline.clock() - _DAY):
            if row.state in ENDED:
                await self.journal.forget(row.id)
            elif row.state == WAITING:
                await self.cancel(row.id, "Nobody answered in time.")

    # -- ends -------------------------------------------------------------------------------------------

    def _keep(self) -> float:
        return self.settings().evaluation.keep_days * _DAY

    def _do(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel_soon(self, run: Run, why: str) -> None:
        self._do(self.cancel(run.id, why))

    async def close(self) -> None:
        """Nothing runs any more; what waits can be taken up again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.engines.close()
        self.toolbox.close()
        _OPEN.discard(self.id)
