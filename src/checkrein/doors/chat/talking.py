"""What a person says in a conversation: something new, something else, again, stop, yes and no."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from checkrein.asking import Remember
from checkrein.doors.chat import (
    Invocation,
    Message,
    Part,
    Run,
    Session,
    routing,
)
from checkrein.doors.chat.attachments import attached
from checkrein.doors.chat.engine import Engine, Facts
from checkrein.doors.chat.providers import Picked
from checkrein.doors.chat.sessions import UNTITLED
from checkrein.doors.chat.shown import message_view, session_view
from checkrein.errors import CheckreinError, ConflictError, InputError, NotFoundError
from checkrein.ledger.record import new_id
from checkrein.store.questions import ASKED, get_question

_TAKEN_UP_SECONDS = 10.0
_LONGEST_TITLE = 60


class Talking(Engine):
    """Everything that begins or ends an answer of a model, or lets a call run."""

    def send(
        self, *, session: str, text: str, attachments: list[Facts] | None = None, model: str = ""
    ) -> Facts:
        """Say something; the answer comes as events."""
        return self._do(self._sent(session, text, attachments or [], model))

    def stream(
        self, *, session: str, text: str, attachments: list[Facts] | None = None, model: str = ""
    ) -> str:
        """The same, for who only wants to follow the answer: the id of its run, at once."""
        run: str = self.send(session=session, text=text, attachments=attachments, model=model)["run"]
        return run

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
                tainted = await asyncio.to_thread(
                    partial(self._sessions.update, id, tainted_by=found.tainted_by)
                )
                self._lines.tell(id, "session", session=session_view(tainted))
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
            back = await asyncio.to_thread(self._sessions.rewind, id, at.id)
            # Whoever else looks drops the answer there is before another one begins.
            self._lines.tell(id, "session", session=session_view(back))
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
        """Say yes to a call that waits, or to one with other arguments.

        INVARIANT: a yes is to the one call it was said to, also where its model made the same call twice.
        """
        found = self._waiting(run, call)
        self._taken_up(found.entry)
        if edited is not None:
            if faults := self._do(self._tools().faults(found.name, edited)):
                raise InputError("The arguments do not fit the tool. " + " ".join(faults))
            # Kept first: a yes to other arguments holds over a restart only if they do.
            self._sessions.change_call(run, call, expect=("pending",), edited=edited)
        try:
            answer = self._pipeline.answer(
                found.entry,
                "approved",
                actor=actor,
                channel=channel,
                message=reason,
                edited=edited,
                remember=remember,
            )
        except CheckreinError:
            # Nobody said yes to them: they are not the call's.
            self._sessions.change_call(run, call, expect=("pending",), edited=found.edited)
            raise
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
            asked = get_question(self._pipeline.store, entry)
            if asked is None or asked.state != ASKED:
                return
            time.sleep(0.02)

    def _waiting(self, run: str, call: str) -> Invocation:
        found = self._sessions.call(run, call)
        if found is None:
            raise NotFoundError("There is no such call.")
        if found.status != "pending" or not found.asked:
            raise ConflictError(f"This call waits for no answer: it is {found.status}.")
        return found


def _text(message: Message) -> str:
    return "\n".join(each.text for each in message.parts if each.kind == "text")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1].rstrip()}…"


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
