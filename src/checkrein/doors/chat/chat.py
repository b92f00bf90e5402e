"""Chat as the server has it: a thread with a loop of its own, and what other threads may ask of it.

Each method is one request of `authority.chat_requests`, under its name and with its parameters.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import msgspec

from checkrein.agents import user_name
from checkrein.asking import Remember
from checkrein.call import reason_lines
from checkrein.doors.chat import (
    Invocation,
    Message,
    Part,
    Run,
    Session,
    gauge,
    history,
    models,
    routing,
    transfer,
)
from checkrein.doors.chat.agent import Agent
from checkrein.doors.chat.attachments import attached
from checkrein.doors.chat.calling import Calling
from checkrein.doors.chat.compressing import Compressing, fixed_tokens, outcome_view
from checkrein.doors.chat.events import Line, Lines
from checkrein.doors.chat.providers import Picked, Providers
from checkrein.doors.chat.runs import Runs
from checkrein.doors.chat.sessions import UNTITLED, Sessions
from checkrein.doors.chat.shown import call_view, message_view, run_view, session_view
from checkrein.doors.chat.tools import NoTools, Tools, turned_on
from checkrein.errors import CheckreinError, InputError, NotFoundError, StoreError
from checkrein.ledger.record import new_id
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings

T = TypeVar("T")
Facts = dict[str, Any]
_ANSWER_SECONDS, _STOP_SECONDS = 330.0, 10.0
LONGEST_WAIT = 25.0
_TAKEN_UP_SECONDS = 10.0
_LONGEST_TITLE = 60


class Chat:
    """Started on first need; safe to call from any thread."""

    def __init__(
        self,
        pipeline: Pipeline,
        tools: Callable[[], Tools] = NoTools,
        say: Callable[[str], None] = lambda _text: None,
        *,
        providers: Providers | None = None,
    ) -> None:
        self._pipeline, self._say, self._tools = pipeline, say, tools
        self._sessions = Sessions(pipeline.store, pipeline.clock)
        self._lines = Lines(secrets.token_hex(4))
        self._providers = providers or Providers(self._usable)
        self._compressing = Compressing(self._sessions, self._providers)
        calling = Calling(pipeline, self._sessions, self._lines, tools, _me())
        self._calling = calling
        agent = Agent(
            pipeline, self._sessions, self._lines, self._providers, tools, calling, self._compressing
        )
        self._agent = agent
        self._runs = Runs(agent, self._sessions, self._lines, secrets.token_hex(8), say)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # -- the thread -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Begin; returns when it can be asked. Runs that wait go on."""
        up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(up,), name="checkrein-chat", daemon=True)
        self._thread.start()
        up.wait()
        if self._loop is None:
            raise StoreError("Chat could not be started.", remedy="Run `checkrein doctor`.")

    def _run(self, up: threading.Event) -> None:
        try:
            asyncio.run(self._serve(up))
        except Exception as error:  # noqa: BLE001 - the other doors go on without it
            self._say(f"chat ended: {type(error).__name__}: {error}")
        finally:
            self._loop = None
            up.set()

    async def _serve(self, up: threading.Event) -> None:
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # Before anybody asks: what a crash left half imported or half deleted is nobody's.
        await asyncio.to_thread(self._sessions.sweep)
        # Before anybody is heard: a session whose run waits is not taken for a free one.
        await self._runs.resume()
        up.set()
        try:
            await self._ending.wait()
        finally:
            await self._runs.close()
            with contextlib.suppress(Exception):
                await self._providers.close()

    def close(self) -> None:
        """Keep what was written, and end."""
        loop, ending, thread = self._loop, self._ending, self._thread
        if loop is not None and ending is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ending.set)
        if thread is not None:
            thread.join(_STOP_SECONDS)

    @property
    def busy(self) -> int:
        """Answers under way."""
        return len(self._runs.live)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._loop
        if loop is None:
            work.close()
            raise StoreError("Chat is not running.", remedy="Run `checkrein doctor`.")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(_ANSWER_SECONDS)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise StoreError("Chat did not answer in time.", remedy="Try again.") from None
        except concurrent.futures.CancelledError:
            raise StoreError("The server is stopping.", remedy="Try again in a moment.") from None

    def _settings(self) -> Settings:
        return self._pipeline.policies.of("", "chat").settings

    def _usable(self) -> Settings:
        """INVARIANT: no model is asked past a proxy or a certificate that a broken file would have named."""
        force = self._pipeline.policies.of("", "chat")
        if force.policy.fault:
            raise InputError(
                f"The settings cannot be used: {force.policy.fault}", remedy="Run `checkrein config check`."
            )
        return force.settings

    # -- sessions ---------------------------------------------------------------------------------------

    def status(self) -> Facts:
        """Whether a model can answer, and which."""
        try:
            picked = self._providers.pick()
            return {"ready": True, "provider": picked.provider, "model": picked.model, "reason": ""}
        except CheckreinError as error:
            return {"ready": False, "provider": "", "model": "", "reason": str(error)}

    def start(self, *, session: str = "", resource: str = "") -> Facts:
        """A session to talk in: the one named, or a new one."""
        found = self._sessions.get(session) if session else self._sessions.create()
        history = [message_view(each) for each in self._sessions.path(found.id)]
        return {"session": found.id, "thread": found.head, "resource": resource, "history": history}

    def sessions(self, *, archived: bool = False, limit: int = 100, offset: int = 0) -> Facts:
        found = self._sessions.list(archived=archived, limit=limit, offset=offset)
        return {"sessions": [session_view(each) for each in found], "total": self._sessions.count(archived)}

    def create(self, *, title: str = "", model: str = "", project: str = "", system: str = "") -> Facts:
        picked = self._providers.pick(model) if model else Picked("", "")
        made = self._sessions.create(
            title, provider=picked.provider, model=picked.model, project=project, system=system
        )
        return session_view(made)

    def session(self, *, id: str, before: str = "", limit: int = 100) -> Facts:  # noqa: A002 - the request's word
        """A session with its newest messages. What happens meanwhile is told after the event `last`."""
        last = self._lines.last(id)
        session = self._sessions.get(id)
        path = self._sessions.path(id)
        live = self._runs.of_session(id)
        if live is not None and (writing := live.message) is not None:
            path = [each for each in path if each.id != writing.id] + [writing]
        if before:
            at = next((number for number, each in enumerate(path) if each.id == before), None)
            if at is None:
                raise NotFoundError("There is no such message in this conversation.")
            path = path[:at]
        shown = path[-limit:]
        return {
            "session": session_view(session),
            "messages": [message_view(each) for each in shown],
            "earlier": len(path) > len(shown),
            "siblings": {key: list(ids) for key, ids in self._sessions.siblings(id).items()},
            "run": run_view(live.run) if live is not None else None,
            "calls": self._calls(shown),
            "snapshot": self._snapshot(id),
            "last": last,
        }

    def _calls(self, messages: list[Message]) -> Facts:
        runs = dict.fromkeys(each.run for each in messages if each.run)
        return {
            f"{call.run}/{call.call_id}": call_view(call, self._pipeline)
            for run in runs
            for call in self._sessions.calls_of(run)
        }

    def _snapshot(self, session: str) -> Facts | None:
        _, snapshot = self._compressing.standing(session)
        return None if snapshot is None else msgspec.structs.asdict(snapshot)

    def update(self, *, id: str, **changes: Any) -> Facts:  # noqa: A002 - the request's word
        if "model" in changes or "provider" in changes:
            changes |= self._picked(id, changes.pop("provider", None), changes.pop("model", None))
        if "tools_off" in changes:
            changes["tools_off"] = tuple(changes["tools_off"])
        session = self._sessions.update(id, **changes)
        self._lines.tell(id, "session", session=session_view(session))
        return session_view(session)

    def _picked(self, id: str, provider: str | None, model: str | None) -> Facts:  # noqa: A002 - as above
        """A model a person chose for a session; nothing gives the choice back."""
        if not model:
            return {"provider": "", "model": ""}
        if provider is None:
            provider = "" if "/" in model else self._sessions.get(id).provider
        picked = self._providers.pick(f"{provider}/{model}" if provider else model)
        return {"provider": picked.provider, "model": picked.model}

    def delete(self, *, id: str) -> Facts:  # noqa: A002 - as above
        """A run in it is stopped first."""
        live = self._runs.of_session(id)
        if live is not None:
            self._do(self._runs.abort(live.run.id))
        self._sessions.delete(id)
        self._lines.tell(id, "reload")
        return {}

    def search(self, *, query: str, limit: int = 50) -> list[Facts]:
        from checkrein.ledger.entries import moment

        found = [msgspec.structs.asdict(each) for each in self._sessions.search(query, limit=limit)]
        return [{**each, "at": moment(each["at"]) if each["at"] else ""} for each in found]

    # -- talking ----------------------------------------------------------------------------------------

    def send(
        self, *, session: str, text: str, attachments: list[Facts] | None = None, model: str = ""
    ) -> Facts:
        """Say something; the answer comes as events."""
        return self._do(self._sent(session, text, attachments or [], model))

    async def _sent(self, id: str, text: str, attachments: list[Facts], model: str) -> Facts:  # noqa: A002 - as above
        if not text.strip() and not attachments:
            raise InputError("There is nothing to send.")
        await asyncio.to_thread(self._sessions.get, id)
        self._runs.take(id)
        try:
            session = await self._tidied(id)
            choice, picked = self._chosen(session, text, model)
            found = await attached(attachments, self._tools(), id)
            parts = (*((Part(text=text),) if text.strip() else ()), *found.parts)
            if found.tainted_by and not session.tainted_by:
                await asyncio.to_thread(lambda: self._sessions.update(id, tainted_by=found.tainted_by))
            return await self._said(session, parts, session.head, choice, picked)
        except BaseException:
            self._runs.release(id)
            raise

    async def _tidied(self, id: str) -> Session:  # noqa: A002 - as above
        """A session nobody works on, as it is now: what a full disk left undone is done first."""
        await self._agent.tidy(id)
        await asyncio.to_thread(self._runs.end_left, id)
        return await asyncio.to_thread(self._sessions.get, id)

    async def _said(
        self, session: Session, parts: tuple[Part, ...], parent: str, choice: routing.Choice, picked: Picked
    ) -> Facts:
        message = await asyncio.to_thread(
            lambda: self._sessions.add_message(session.id, "user", parts, parent=parent)
        )
        run = self._new_run(session.id, message.id, choice, picked)
        self._lines.tell(session.id, "message", run.id, message=message_view(message))
        await self._named(session, message)
        await self._runs.begin(run)
        return {"run": run.id, "message": message.id}

    async def _named(self, session: Session, message: Message) -> None:
        """A conversation is called what it began with, until somebody names it."""
        title = _short(_text(message)) if session.title == UNTITLED else ""
        if title:
            named = await asyncio.to_thread(partial(self._sessions.update, session.id, title=title))
            self._lines.tell(session.id, "session", session=session_view(named))

    def _chosen(self, session: Session, text: str, model: str) -> tuple[routing.Choice, Picked]:
        """INVARIANT: the model that is picked is the model that answers."""
        own = f"{session.provider}/{session.model}" if session.provider and session.model else session.model
        settings = self._settings()
        choice = routing.choose(text, model or own, settings.chat, settings.model)
        return choice, self._providers.pick(choice.ref)

    def _new_run(self, session: str, message: str, choice: routing.Choice, picked: Picked) -> Run:
        now = self._pipeline.clock()
        return Run(
            id=new_id(now),
            session=session,
            holder=self._runs.holder,
            user_message=message,
            provider=picked.provider,
            model=picked.model,
            persona=choice.persona,
            routed=choice.reason,
            created_at=now,
        )

    def regenerate(self, *, session: str, message: str = "", model: str = "") -> Facts:
        """Another answer beside the one there is; tools that ran are not run again."""
        return self._do(self._regenerated(session, message, model))

    async def _regenerated(self, id: str, message: str, model: str) -> Facts:  # noqa: A002 - as above
        await asyncio.to_thread(self._sessions.get, id)
        self._runs.take(id)
        try:
            session = await self._tidied(id)
            at, asked = _to_answer(await asyncio.to_thread(self._sessions.path, id), message)
            choice, picked = self._chosen(session, _text(asked), model)
            await asyncio.to_thread(self._sessions.rewind, id, at.id)
            run = self._new_run(id, asked.id, choice, picked)
            await self._runs.begin(run)
        except BaseException:
            self._runs.release(id)
            raise
        return {"run": run.id}

    def edit(self, *, session: str, message: str, text: str) -> Facts:
        """Say something else in place of an earlier message; both stay, as branches."""
        return self._do(self._edited(session, message, text))

    async def _edited(self, id: str, message: str, text: str) -> Facts:  # noqa: A002 - as above
        if not text.strip():
            raise InputError("There is nothing to send.")
        old = await asyncio.to_thread(self._sessions.message, message)
        self._runs.take(id)
        try:
            session = await self._tidied(id)
            path = await asyncio.to_thread(self._sessions.path, id)
            if old.role != "user" or message not in {each.id for each in path}:
                raise InputError("Only a message of yours in this conversation can be edited.")
            choice, picked = self._chosen(session, text, "")
            kept = tuple(each for each in old.parts if each.kind == "attachment")
            return await self._said(session, (Part(text=text), *kept), old.parent, choice, picked)
        except BaseException:
            self._runs.release(id)
            raise

    def choose(self, *, session: str, message: str) -> Facts:
        """Show the branch a message belongs to."""
        return self._do(self._chose(session, message))

    async def _chose(self, id: str, message: str) -> Facts:  # noqa: A002 - as above
        self._runs.take(id)
        try:
            found = await asyncio.to_thread(self._sessions.choose, id, message)
        finally:
            self._runs.release(id)
        self._lines.tell(id, "reload")
        return session_view(found)

    def abort(self, *, run: str, actor: str = "") -> Facts:  # noqa: ARG002 - whoever may ask may stop
        return {"aborted": self._do(self._runs.abort(run))}

    # -- answers to calls -------------------------------------------------------------------------------

    def approve(
        self,
        *,
        run: str,
        call: str,
        edited: Facts | None = None,
        remember: Remember | None = None,
        reason: str = "",
        actor: str = "",
        channel: str = "console",
    ) -> Facts:
        """Say yes to a call that waits, or to one with other arguments."""
        found = self._waiting(run, call)
        self._taken_up(found.entry)
        if edited is not None:
            if faults := self._do(self._tools().faults(found.name, edited)):
                raise InputError("The arguments do not fit the tool. " + " ".join(faults))
            # Kept first: a yes to other arguments holds over a restart only if they do.
            self._sessions.change_call(run, call, expect=("pending",), edited=edited)
        answer = self._pipeline.answer(
            found.entry,
            "approved",
            actor=actor,
            channel=channel,
            message=reason,
            edited=edited,
            remember=remember,
        )
        return {"answer": answer}

    def decline(
        self, *, run: str, call: str, reason: str = "", actor: str = "", channel: str = "console"
    ) -> Facts:
        """Say no; the model is told the reason."""
        found = self._waiting(run, call)
        answer = self._pipeline.answer(found.entry, "denied", actor=actor, channel=channel, message=reason)
        return {"answer": answer}

    def _taken_up(self, entry: str) -> None:
        """After a restart: a moment until its run waits for the answer again, and can act on all of it."""
        deadline = time.monotonic() + _TAKEN_UP_SECONDS
        while not self._pipeline.broker.is_awaited(entry) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _waiting(self, run: str, call: str) -> Invocation:
        found = self._sessions.call(run, call)
        if found is None:
            raise NotFoundError("There is no such call.")
        if found.status != "pending" or not found.asked:
            raise InputError(f"This call waits for no answer: it is {found.status}.")
        return found

    # -- following --------------------------------------------------------------------------------------

    def subscribe(self, session: str, after: str, tell: Callable[[], None]) -> Line:
        return self._lines.subscribe(session, after, tell)

    def events(self, *, session: str, after: str = "", wait: float = 0.0) -> Facts:
        """What happened after an event, waiting a while for something to happen."""
        self._sessions.get(session)
        news = threading.Event()
        line = self._lines.subscribe(session, after, news.set)
        try:
            news.clear()
            found = line.take()
            if not found and wait > 0 and news.wait(min(wait, LONGEST_WAIT)):
                found = line.take()
        finally:
            line.close()
        last = found[-1].id if found else after or line.last
        return {"events": [msgspec.structs.asdict(each) for each in found], "last": last}

    # -- tokens and compression -------------------------------------------------------------------------

    def tokens(self, *, session: str, input: str = "", model: str = "") -> Facts:  # noqa: A002 - as above
        """How much of the model's context is used, and by what."""
        found = self._sessions.get(session)
        _, picked = self._chosen(found, input, model)
        known = models.load().model(picked.model)
        system, definitions = self._do(self._fixed(found))
        path, snapshot = self._compressing.standing(session)
        limits = self._compressing.settings(found, known, self._settings().chat)
        return gauge.gauge(
            path, snapshot, model=known, settings=limits, system=system, tools=definitions, pending=input
        ) | {"ref": picked.ref}

    async def _fixed(self, session: Session) -> tuple[str, list[Facts]]:
        """What goes with every request of a session: its instructions and tools."""
        offered = turned_on(await self._tools().tools(session.project), session.tools_off)
        names = history.Names(each.name for each in offered)
        return session.system or self._settings().chat.system, [
            gauge.definition(each, names.theirs(each.name)) for each in offered
        ]

    def preview(self, *, session: str, retention: int | None = None) -> Facts:
        """What compressing would do, in numbers."""
        found = self._sessions.get(session)
        _, picked = self._chosen(found, "", "")
        known = models.load().model(picked.model)
        system, definitions = self._do(self._fixed(found))
        fixed = fixed_tokens(system, definitions, known)
        plan = self._compressing.preview(
            found, known, self._settings().chat, fixed=fixed, retention=retention
        )
        told: Facts = msgspec.to_builtins(plan)
        return told | {"saved_percent": plan.saved_percent}

    def compress(self, *, session: str, retention: int | None = None) -> Facts:
        """Put a summary in the place of older messages, for the model; the history stays."""
        return self._do(self._compressed(session, retention))

    async def _compressed(self, id: str, retention: int | None) -> Facts:  # noqa: A002 - as above
        session = await asyncio.to_thread(self._sessions.get, id)
        _, picked = self._chosen(session, "", "")
        known = models.load().model(picked.model)
        self._runs.take(id)
        try:
            system, definitions = await self._fixed(session)
            fixed = await asyncio.to_thread(fixed_tokens, system, definitions, known)
            outcome = await self._compressing.compress(
                session, picked, known, self._settings().chat, fixed=fixed, retention=retention, force=True
            )
        finally:
            self._runs.release(id)
        told = outcome_view(outcome)
        self._lines.tell(id, "compressed", **told)
        return told

    # -- models and providers ---------------------------------------------------------------------------

    def models(self) -> list[Facts]:
        """Every model that can be picked, with its limits."""
        table = models.load()
        return [{**each, **_limits(table.model(each["model"]))} for each in self._providers.models()]

    def providers(self) -> list[Facts]:
        return self._providers.listed()

    def provider_set(self, *, name: str, actor: str = "", **changes: Any) -> Facts:
        kind = changes.pop("kind", "") or self._providers.config(name).kind
        made = self._providers.set(name, kind, **changes)
        self._note("set", name, actor)
        return made

    def provider_remove(self, *, name: str, actor: str = "") -> Facts:
        self._providers.remove(name)
        self._note("removed", name, actor)
        return {}

    def provider_test(self, *, name: str) -> Facts:
        return self._do(self._providers.test(name))

    def provider_refresh(self, *, name: str) -> list[str]:
        return self._do(self._providers.refresh(name))

    def default(self, *, model: str, actor: str = "") -> Facts:
        picked = self._providers.set_default(model)
        self._note("default", picked.ref, actor)
        return {"provider": picked.provider, "model": picked.model}

    def _note(self, change: str, name: str, actor: str) -> None:
        self._pipeline.note("providers_changed", {"change": change, "provider": name, "actor": actor})

    # -- tools ------------------------------------------------------------------------------------------

    def tools(self, *, session: str) -> list[Facts]:
        """The tools of a session by server, and what the rules say about each."""
        found = self._sessions.get(session)
        servers = {each["name"]: each for each in self._do(self._tools().servers())}
        groups: dict[str, Facts] = {
            name: {
                "server": name,
                "state": each.get("state", ""),
                "error": each.get("error", ""),
                "on": name not in found.tools_off,
                "tools": [],
            }
            for name, each in servers.items()
        }
        for tool in self._do(self._tools().tools(found.project)):
            group = groups.setdefault(
                tool.server,
                {"server": tool.server, "state": "", "error": "", "on": True, "tools": []},
            )
            group["tools"].append(self._tool(tool, found))
        return list(groups.values())

    def _tool(self, tool: Any, session: Session) -> Facts:
        call = Invocation(
            run="",
            call_id="",
            session=session.id,
            message="",
            name=tool.name,
            server=tool.server,
            tool=tool.tool,
            arguments={},
        )
        run = Run(id="", session=session.id, provider=session.provider, model=session.model)
        verdict = self._pipeline.judge(self._calling.call(run, session, call, tool)).verdict
        return {
            "name": tool.name,
            "tool": tool.tool,
            "description": tool.description,
            "schema": tool.schema,
            "on": not {tool.name, tool.server} & set(session.tools_off),
            "policy": verdict.word,
            "why": " ".join(reason_lines(verdict.reasons)),
        }

    def resources(self) -> list[Facts]:
        return self._do(self._tools().resources())

    def prompts(self) -> list[Facts]:
        return self._do(self._tools().prompts())

    # -- out and in -------------------------------------------------------------------------------------

    def export(self, *, id: str, form: str = "json") -> Facts:  # noqa: A002 - as above
        session = self._sessions.get(id)
        write = transfer.export_json if form == "json" else transfer.export_markdown
        ending = "json" if form == "json" else "md"
        return {"text": write(self._sessions, id), "name": f"{_file_name(session.title)}.{ending}"}

    def import_(self, *, text: str, form: str = "json") -> Facts:
        read = transfer.import_json if form == "json" else transfer.import_markdown
        return session_view(read(self._sessions, text))


def _limits(model: models.Model) -> Facts:
    return {"input": model.input, "output": model.output, "known": model.known, "note": model.note}


def _to_answer(path: list[Message], message: str) -> tuple[Message, Message]:
    """What is answered anew when a message is, and the person's message it goes back to."""
    at = next((number for number, each in enumerate(path) if each.id == message), len(path) - 1)
    if message and (at < 0 or path[at].id != message):
        raise NotFoundError("There is no such message in this conversation.")
    while at >= 0 and path[at].role == "assistant":
        at -= 1
    if at < 0:
        raise InputError("There is nothing to answer yet.")
    return path[at], next((each for each in reversed(path[: at + 1]) if each.role == "user"), path[at])


def _text(message: Message) -> str:
    return "\n".join(each.text for each in message.parts if each.kind == "text")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"


def _file_name(title: str) -> str:
    plain = "".join(each if each.isalnum() or each in " -_" else "-" for each in title)
    return "-".join(plain.split())[:60].strip("-") or "chat"


def _me() -> str:
    import os

    return user_name(os.geteuid())
