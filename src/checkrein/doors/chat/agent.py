"""Answers a message: asks the model, carries out the tools it calls, asks it again, until it is done.

`runs` starts one `work` for each run. Where a run stands follows from the store alone: after a restart it
goes on from there. What a model may do is decided in `calling`, nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.doors.chat import Invocation, Message, Part, Run, Session, gauge, history, models, routing
from checkrein.doors.chat.calling import Calling
from checkrein.doors.chat.compressing import Compressing, fixed_tokens, outcome_view
from checkrein.doors.chat.compression import build_context
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.providers import Picked, Providers, Trouble
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.shown import call_view, message_view, session_view
from checkrein.doors.chat.tools import Tools, turned_on
from checkrein.doors.chat.whole import whole
from checkrein.doors.chat.writing import Pen
from checkrein.errors import CheckreinError
from checkrein.ledger.record import new_id
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

# A request that failed before a word came is tried again this often, after these pauses at most.
_PAUSES = (1.0, 4.0)
_LONGEST_PAUSE = 20.0
MOST_CALLS = 64
# Characters of one response, its thoughts and its calls' arguments with it.
LONGEST_ANSWER = 4_000_000
_WORTH_A_RETRY = ("rate", "server", "network", "timeout")


class FailedError(Exception):
    """Raise when a run cannot go on: what the person is told, and whether trying again may help."""

    def __init__(self, trouble: Trouble, *, retry: bool = True) -> None:
        super().__init__(trouble.text)
        self.trouble, self.retry = trouble, retry


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
        self._providers, self._tools, self._calling = providers, tools, calling
        self._compressing = compressing

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
            if last.role == "assistant" and not _calls_of(last):
                break
            if last.role == "assistant":
                await self._carried_out(live, session, last)
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
        client = await self._client(picked)
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
            response = await self._streamed(live, client, sent, history.definitions(offered, names), pen)
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

    async def _client(self, picked: Picked) -> Any:
        try:
            return await self._providers.model(picked)
        except Exception as error:
            raise FailedError(self._providers.explain(error)) from error

    async def _offered(self, session: Session) -> list[Any]:
        try:
            found = await self._tools().tools(session.project)
        except CheckreinError as error:
            self._lines.tell(session.id, "notice", text=f"Tools cannot be had: {error}", level="warning")
            return []
        return turned_on(found, session.tools_off)

    async def _streamed(
        self, live: Live, client: Any, sent: list[Any], parameters: Any, pen: Pen
    ) -> ModelResponse:
        """The whole response; tried again where it failed before its first word."""
        for pause in (*_PAUSES, None):
            try:
                return await self._stream(client, sent, parameters, pen)
            except Exception as error:
                trouble = self._providers.explain(error)
                if pen.begun or pause is None or trouble.kind not in _WORTH_A_RETRY:
                    raise FailedError(trouble) from error
                wait = min(max(pause, trouble.retry_after or 0.0), _LONGEST_PAUSE)
                if trouble.retry_after and trouble.retry_after > _LONGEST_PAUSE:
                    raise FailedError(trouble) from error
                said = f"{trouble.text} Trying again in {wait:g} s."
                self._lines.tell(live.run.session, "notice", live.run.id, text=said, level="warning")
                await asyncio.sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _stream(self, client: Any, sent: list[Any], parameters: Any, pen: Pen) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.messages import (
            PartDeltaEvent,
            PartStartEvent,
            TextPart,
            TextPartDelta,
            ThinkingPart,
            ThinkingPartDelta,
        )

        length = 0
        async with model_request_stream(client, sent, model_request_parameters=parameters) as stream:
            async for event in stream:
                length += _length(event)
                # INVARIANT: no endpoint that never stops fills memory or disk.
                if length > LONGEST_ANSWER:
                    raise CheckreinError("The answer was stopped: it is longer than any model's.")
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart | ThinkingPart):
                    pen.write(event.index, event.part.part_kind, event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    pen.write(event.index, "text", event.delta.content_delta)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ThinkingPartDelta):
                    pen.write(event.index, "thinking", event.delta.content_delta or "")
            return stream.get()

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
        await self._invocations(live, message)
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

    # -- tools ------------------------------------------------------------------------------------------

    async def _invocations(self, live: Live, message: Message) -> list[Invocation]:
        """The calls of a message, each written down once."""
        known = {each.call_id: each for each in await asyncio.to_thread(self._sessions.calls_of, live.run.id)}
        wanted, found = _calls_of(message), list[Invocation]()
        for number, part in enumerate(wanted):
            call = known.get(part.tool_call_id)
            if call is None:
                call = self._invocation(live, message, part, await self._tools().tool(part.tool_name))
                # INVARIANT: no response makes more work than a person could look at.
                call = _too_many(call) if number >= MOST_CALLS else call
                await whole(asyncio.to_thread(self._sessions.put_call, call))
                self._tell(live, "tool_call", call=call_view(call, self._pipeline))
            found.append(call)
        if len(wanted) > MOST_CALLS and wanted[-1].tool_call_id not in known:
            text = f"The model made {len(wanted)} calls at once: only the first {MOST_CALLS} are looked at."
            self._tell(live, "notice", text=text, level="warning")
        return found

    def _invocation(self, live: Live, message: Message, part: Part, known: Any) -> Invocation:
        server, _, tool = part.tool_name.partition("__")
        if not isinstance(known, str):
            server, tool = known.server, known.tool
        return Invocation(
            run=live.run.id,
            call_id=part.tool_call_id,
            session=live.run.session,
            message=message.id,
            name=part.tool_name,
            server=server if tool else "",
            tool=tool or part.tool_name,
            arguments=part.data if isinstance(part.data, dict) else {},
            error=part.error,
            created_at=self._pipeline.clock(),
        )

    async def _carried_out(self, live: Live, session: Session, message: Message) -> None:
        """Every call of a message, beside each other; then what came of them, as one message."""
        calls = await self._invocations(live, message)
        work = [asyncio.ensure_future(self._calling.settle(live.run, session, each)) for each in calls]
        try:
            settled = await asyncio.gather(*work)
        except asyncio.CancelledError:
            await asyncio.wait(work)
            raise
        finally:
            for each in work:
                each.cancel()
        await self._told_results(message, settled, session.id)

    async def _told_results(self, message: Message, calls: Sequence[Invocation], session: str) -> None:
        """What came of the calls of a message, as one message."""
        await self._taint(session, calls)
        parts = [_result(each) for each in calls]
        made = await whole(
            asyncio.to_thread(
                lambda: self._sessions.add_message(session, "tool", parts, parent=message.id, run=message.run)
            )
        )
        self._lines.tell(session, "message", message.run, message=message_view(made))

    async def _taint(self, session: str, calls: Sequence[Invocation]) -> None:
        """INVARIANT: who has read untrusted words is not trusted with outward calls unasked."""
        if (await asyncio.to_thread(self._sessions.get, session)).tainted_by:
            return
        for each in calls:
            tool = await self._tools().tool(each.name) if each.started_at is not None else None
            if each.server and tool is not None and (isinstance(tool, str) or not tool.trusted):
                tainted = await asyncio.to_thread(
                    partial(self._sessions.update, session, tainted_by=each.server)
                )
                self._lines.tell(session, "session", session=session_view(tainted))
                return

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
            await self.tidy(run.session)
            for each in await asyncio.to_thread(self._sessions.calls_of, run.id):
                await self._calling.stop(each)

    async def tidy(self, session: str) -> None:
        """INVARIANT: a run that is over leaves no question, no call under way and none without result."""
        path = await asyncio.to_thread(self._sessions.path, session)
        last = path[-1] if path else None
        run = await asyncio.to_thread(self._sessions.get_run, last.run) if last and last.run else None
        if last is None or run is None or last.role != "assistant" or not _calls_of(last):
            return
        calls = await self._invocations(Live(run), last)
        for each in calls:
            await self._calling.stop(each)
        again = [await asyncio.to_thread(self._sessions.call, run.id, each.call_id) for each in calls]
        await self._told_results(last, [each for each in again if each is not None], session)

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


def _length(event: Any) -> int:
    """What a piece of a response adds to it; one that says nothing counts too."""
    kinds = {
        "part_start": ("part", "content", "args"),
        "part_delta": ("delta", "content_delta", "args_delta"),
    }
    where, *names = kinds.get(event.event_kind, ("",))
    found = [getattr(getattr(event, where, None), name, None) for name in names]
    return 1 + sum(len(each) for each in found if isinstance(each, str))


def _calls_of(message: Message) -> list[Part]:
    return [each for each in message.parts if each.kind == "tool_invocation"]


def _too_many(call: Invocation) -> Invocation:
    why = f"This was not looked at: at most {MOST_CALLS} calls are made at once. Make the others afterwards."
    return msgspec.structs.replace(call, status="error", error=why, completed_at=call.created_at)


def _result(call: Invocation) -> Part:
    """What came of a call, as its model is told."""
    text = (history.readable(call.output) or history.NOTHING) if call.status == "completed" else ""
    if call.edited is not None and call.status in ("completed", "error"):
        changed = f"(A person changed the arguments to {history.as_json(call.edited)} before it ran.)"
        text = f"{changed}\n{text}" if call.status == "completed" else text
    return Part(
        kind="tool_result",
        text=text,
        tool_call_id=call.call_id,
        tool_name=call.name,
        data=call.output,
        status=call.status,
        error=call.error,
    )
