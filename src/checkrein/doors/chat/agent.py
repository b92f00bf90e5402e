"""Answers a message: asks the model, carries out the tools it calls, asks it again, until it is done.

`runs` starts one `work` for each run. Where a run stands follows from the store alone: after a restart it
goes on from there. What a model may do is decided in `calling`, nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.doors.chat import Message, Run, Session, gauge, history, models, routing
from checkrein.doors.chat.calling import Calling
from checkrein.doors.chat.compressing import Compressing, fixed_tokens, outcome_view
from checkrein.doors.chat.compression import build_context
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.invocations import Invocations, calls_of
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.providers import Picked, Providers, Trouble
from checkrein.doors.chat.responses import FailedError, Responses
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import message_view, session_view
from checkrein.doors.chat.tools import Tools, turned_on
from checkrein.doors.chat.whole import whole
from checkrein.doors.chat.writing import Pen
from checkrein.errors import CheckreinError
from checkrein.ledger.record import new_id
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


class Agent:
    """Runs of all conversations; one loop, one thread."""

    def __init__(
        self,
        pipeline: Pipeline,
        sessions: Sessions,
        lines: Lines,
        providers: Providers,
        tools: Callable[[], Tools],
        calling: Calling,
        compressing: Compressing,
    ) -> None:
        self._pipeline, self._sessions, self._lines = pipeline, sessions, lines
        self._providers, self._tools, self._compressing = providers, tools, compressing
        self._responses = Responses(providers, lines)
        self._invocations = Invocations(pipeline, sessions, lines, tools, calling)

    def settings(self) -> Settings:
        return self._pipeline.policies.of("", "chat").settings

    async def work(self, live: Live) -> None:
        """From wherever the run stands to its end. Never raises but when the server ends."""
        try:
            await self._tried(live)
        except asyncio.CancelledError:
            if not live.aborted:
                raise
            await self._aborted(live)
        finally:
            live.over.set()

    async def _tried(self, live: Live) -> None:
        try:
            await self._worked(live)
        except FailedError as failed:
            await self._failed(live, failed.trouble, retry=failed.retry)
        except CheckreinError as error:
            await self._failed(live, Trouble("unknown", str(error)), retry=True)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the person is told and the run is over
            text = f"Something went wrong ({type(error).__name__}). Nothing that was said is lost."
            await self._failed(live, Trouble("unknown", text), retry=True)

    async def _worked(self, live: Live) -> None:
        while True:
            session = await asyncio.to_thread(self._sessions.get, live.run.session)
            path = await asyncio.to_thread(self._sessions.path, session.id)
            last = path[-1] if path else None
            if last is None:
                raise FailedError(Trouble("unknown", "There is nothing to answer."), retry=False)
            if last.role == "assistant" and not calls_of(last):
                break
            if last.role == "assistant":
                await self._invocations.carried_out(live.run, session, last)
            else:
                await self._answered(live, session)
        await self._done(live)

    # -- asking the model -------------------------------------------------------------------------------

    async def _answered(self, live: Live, session: Session) -> None:
        settings = self.settings()
        if live.run.rounds >= settings.chat.most_rounds:
            text = f"The model called tools {live.run.rounds} times in a row; it was stopped here."
            raise FailedError(Trouble("limit", f"{text} Say “go on”, or raise `chat.most_rounds`."))
        picked = Picked(live.run.provider, live.run.model)
        client = await self._responses.client(picked)
        offered = await self._offered(session)
        names = history.Names(each.name for each in offered)
        model = models.load().model(picked.model)
        system = session.system or settings.chat.system
        definitions = [gauge.definition(each, names.theirs(each.name)) for each in offered]
        await self._compress_if_needed(live, session, picked, model, system, definitions)
        path, snapshot = await asyncio.to_thread(self._compressing.standing, session.id)
        # INVARIANT: the compressed context is what the model is sent.
        context = build_context(path, snapshot)
        sent = await asyncio.to_thread(history.to_model, context, system, names)
        message = Message(
            new_id(self._pipeline.clock()),
            "assistant",
            parent=path[-1].id,
            state="streaming",
            created_at=self._pipeline.clock(),
            provider=picked.provider,
            model=picked.model,
            run=live.run.id,
        )
        pen = Pen(live, message, self._sessions, self._lines)
        self._tell_started(live, message)
        try:
            response = await self._responses.written(
                live, client, sent, history.definitions(offered, names), pen
            )
            await self._keep(live, pen, response, names)
        except asyncio.CancelledError:
            if live.aborted:
                await self._kept(pen, "aborted")
            else:
                await pen.keep_partial()
            raise
        except FailedError as failed:
            await self._kept(pen, "failed", error=failed.trouble.text)
            raise

    async def _offered(self, session: Session) -> list[Any]:
        try:
            found = await self._tools().tools(session.project)
        except CheckreinError as error:
            self._lines.tell(session.id, "notice", text=f"Tools cannot be had: {error}", level="warning")
            return []
        return turned_on(found, session.tools_off)

    async def _keep(self, live: Live, pen: Pen, response: ModelResponse, names: history.Names) -> None:
        known = await asyncio.to_thread(self._sessions.calls_of, live.run.id)
        response = history.with_own_ids(response, {each.call_id for each in known})
        parts = history.parts_of(response, names)
        if not parts:
            raise FailedError(Trouble("malformed", "The model answered nothing."))
        usage = response.usage
        # A response whose arguments cannot be read would be refused if it were sent again as it came.
        raw = "" if any(each.error for each in parts) else history.raw_of(response)
        message = await pen.end(
            "completed", parts, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, raw=raw
        )
        assert message is not None  # noqa: S101 - it has parts
        await self._invocations.written(live.run, message)
        run = live.run
        await self._change(
            live,
            rounds=run.rounds + 1,
            input_tokens=run.input_tokens + usage.input_tokens,
            output_tokens=run.output_tokens + usage.output_tokens,
        )
        self._tell(live, "message", message=message_view(message))
        self._tell(live, "usage", input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        if response.finish_reason == "length":
            text = "The answer was cut: it reached the most its model can answer at once."
            self._tell(live, "notice", text=text, level="warning")

    async def _kept(self, pen: Pen, state: Any, error: str = "") -> None:
        made = await whole(pen.end(state, error=error))
        if made is not None:
            self._lines.tell(pen.session, "message", made.run, message=message_view(made))

    # -- compression ------------------------------------------------------------------------------------

    async def _compress_if_needed(
        self,
        live: Live,
        session: Session,
        picked: Picked,
        model: models.Model,
        system: str,
        definitions: list[Any],
    ) -> None:
        chat = self.settings().chat
        fixed = await asyncio.to_thread(fixed_tokens, system, definitions, model)
        plan = await asyncio.to_thread(
            lambda: self._compressing.preview(session, model, chat, fixed=fixed, force=False)
        )
        if not plan.compressed:
            return
        self._tell(live, "notice", text="The conversation is being compressed.", level="info")
        outcome = await self._compressing.compress(session, picked, model, chat, fixed=fixed)
        self._tell(live, "compressed", **outcome_view(outcome))

    # -- the end ----------------------------------------------------------------------------------------

    async def _done(self, live: Live) -> None:
        await self._end(live, "done")
        session = await asyncio.to_thread(self._sessions.get, live.run.session)
        self._tell(live, "session", session=session_view(session))
        self._tell(live, "end")

    async def _aborted(self, live: Live) -> None:
        await self.stopped(live.run)
        await self._end(live, "aborted")
        self._tell(live, "aborted")

    async def _failed(self, live: Live, trouble: Trouble, *, retry: bool) -> None:
        with contextlib.suppress(CheckreinError):
            if await self._handed_up(live, trouble):
                return
        await self.stopped(live.run)
        await self._end(live, "failed", error=trouble.text)
        self._tell(live, "error", error=trouble.kind, text=trouble.text, retry=retry)

    async def stopped(self, run: Run) -> None:
        """Nothing of a run is under way any more."""
        # A disk that is full keeps nobody from hearing how it ended.
        with contextlib.suppress(CheckreinError):
            await self._invocations.stopped(run)

    async def tidy(self, session: str) -> None:
        """A run that is over leaves nothing of itself behind."""
        await self._invocations.tidy(session)

    async def _handed_up(self, live: Live, trouble: Trouble) -> bool:
        """Where routing chose the model, the next persona takes over; above the last one is the user."""
        if not live.run.persona:
            return False
        choice = routing.hand_up(live.run.persona, self.settings().chat)
        if choice == "user" or isinstance(choice, str):
            text = f"No persona could do it ({trouble.text}): it is yours to decide."
            self._tell(live, "notice", text=text, level="escalation")
            return False
        try:
            picked = self._providers.pick(choice.ref)
        except CheckreinError:
            return False
        before = live.run.persona
        await self._change(
            live,
            provider=picked.provider,
            model=picked.model,
            persona=choice.persona,
            routed=choice.reason,
            rounds=0,
        )
        text = f"The {before} could not do it ({trouble.text}): the {choice.persona} takes over."
        self._tell(live, "notice", text=text, level="escalation")
        await self._head_back(live)
        await self._tried(live)
        return True

    async def _head_back(self, live: Live) -> None:
        """A message that was cut off is no answer: the next model begins where it began."""
        path = await asyncio.to_thread(self._sessions.path, live.run.session)
        if path and path[-1].role == "assistant" and path[-1].state == "failed":
            await asyncio.to_thread(self._sessions.delete_message, live.run.session, path[-1].id)

    async def _end(self, live: Live, state: Any, error: str = "") -> None:
        now = self._pipeline.clock()
        with contextlib.suppress(CheckreinError):
            await self._change(live, state=state, error=error, ended_at=now)

    async def _change(self, live: Live, **changes: Any) -> None:
        live.set(msgspec.structs.replace(live.run, **changes))
        await whole(
            asyncio.to_thread(
                lambda: self._sessions.change_run(live.run.id, expect=("running", "waiting"), **changes)
            )
        )

    def _tell(self, live: Live, kind: Any, **data: Any) -> None:
        self._lines.tell(live.run.session, kind, live.run.id, **data)

    def _tell_started(self, live: Live, message: Message) -> None:
        run: Run = live.run
        self._tell(
            live,
            "started",
            user_message=run.user_message,
            message=message.id,
            parent=message.parent,
            provider=run.provider,
            model=run.model,
            persona=run.persona,
            routed=run.routed,
        )
