"""Puts a call's question to whoever can answer it first: the client's own person, the console, the terminal.

The questions and answers are the pipeline's; here is only who waits, and how they are told.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from checkrein.call import ToolCall, Verdict
from checkrein.core import approvals
from checkrein.doors.gateway import prompts
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.messages import HANDSHAKE, Message, RpcError, meta_of, notification
from checkrein.errors import InputError, NotFoundError
from checkrein.pipeline import Pipeline
from checkrein.settings import Gateway
from checkrein.store.questions import ASKED, Question, get_question, unclaimed

CHANNEL = "elicitation"
# A client that shows progress hears this often that a person is still being asked.
_SIGN_OF_LIFE = 5.0
DOOR = "gateway"
_NOT_OURS = ""


class Settled(msgspec.Struct, frozen=True):
    """What became of a question; `waits` when nobody could be asked now, and it stays open."""

    entry: str
    verdict: Verdict
    state: str = ASKED
    actor: str = ""
    message: str = ""
    waits: bool = False


class Asking:
    """Who can be asked about a call, and what they said."""

    def __init__(self, pipeline: Pipeline, user: str) -> None:
        self._pipeline, self._user = pipeline, user
        # Questions that are open, or approved and not used, by their call; and when that was read.
        self._unclaimed: tuple[int | None, dict[str, list[Question]]] = (None, {})
        self._keys: dict[str, str] = {}

    def by_client(self, client: Client) -> bool:
        """Whether the client's own person can be asked."""
        return client.speaks_for_person and client.can("elicitation", "form")

    def possible(self, client: Client, project: str) -> bool:
        """Whether anybody can be asked, or the question may wait until somebody can."""
        return (
            self.by_client(client)
            or self._pipeline.broker.reachable
            or self._settings(project).no_person == "wait"
        )

    def left_open(self, call: ToolCall, earlier: frozenset[str] = frozenset()) -> Question | None:
        """The question about exactly this call that its caller was told to come back for.

        Its tool may have another definition by now, and its session a new name: `earlier` are those the same
        caller had before a restart.
        """
        found = self._left_open()
        for question in found.get(_key(call), ()) if found else ():
            # Whoever waits for it has it in hand.
            theirs = question.session == call.session or question.session in earlier
            if theirs and not self._pipeline.broker.is_awaited(question.entry):
                return get_question(self._pipeline.store, question.entry)
        return None

    def _left_open(self) -> dict[str, list[Question]]:
        store = self._pipeline.store
        writes = store.writes_to("question")
        if writes is None or writes != self._unclaimed[0]:
            found = unclaimed(store)
            self._keys = {
                each.entry: self._keys.get(each.entry) or self._key_of(each.entry) for each in found
            }
            by_call: dict[str, list[Question]] = {}
            for each in found:
                if (key := self._keys[each.entry]) != _NOT_OURS:
                    by_call.setdefault(key, []).append(each)
            self._unclaimed = writes, by_call
        return self._unclaimed[1]

    def _key_of(self, entry: str) -> str:
        call = self._pipeline.broker.call(entry)
        return _key(call) if call is not None and call.door == DOOR else _NOT_OURS

    async def answer(
        self, client: Client, flight: Flight, params: Message, call: ToolCall, entry: str, verdict: Verdict
    ) -> Settled:
        """What became of the question, from whoever spoke first; nobody in time is a no."""
        by_client = client.era == HANDSHAKE and self.by_client(client)
        if not by_client and not self._pipeline.broker.reachable and self._is_open(entry):
            # INVARIANT: a call that nobody was asked about does not run.
            return Settled(entry, verdict, waits=True)
        found = await self._first_word(client, flight, params, call, entry, verdict, by_client)
        return self._as_settled(found, verdict)

    async def said(self, entry: str, answer: prompts.Answer, verdict: Verdict) -> Settled:
        """Record what the client's person said, unless somebody was quicker."""
        await asyncio.to_thread(self._record, entry, answer)
        found = self.settled(entry, verdict)
        return found or Settled(entry, verdict, state="denied", message="The question could not be settled.")

    async def fell_back(self, entry: str, answer: prompts.Answer) -> None:
        """Record what the user's profile says in the place of a person who cannot be reached."""
        await asyncio.to_thread(self._record, entry, answer, "fallback")

    async def so_far(self, entry: str, verdict: Verdict) -> Settled | None:
        """What became of the question until now; nothing while it may still be answered."""
        found = get_question(self._pipeline.store, entry)
        if found is not None and found.state == ASKED:
            await asyncio.to_thread(approvals.expire, self._pipeline, found)
        return self.settled(entry, verdict)

    def withdraw(self, entry: str) -> None:
        """Its caller went away before anybody was asked; the answer need not be waited for."""
        asyncio.get_running_loop().run_in_executor(None, self._cancel, entry)

    async def needless(self, entry: str) -> None:
        """Policy decides the call by now, so nobody need answer."""
        why = "policy decides the call by now"
        await asyncio.to_thread(approvals.close, self._pipeline, entry, "cancelled", "policy", why)

    def settled(self, entry: str, verdict: Verdict) -> Settled | None:
        found = get_question(self._pipeline.store, entry)
        return None if found is None or found.state == ASKED else self._as_settled(found, verdict)

    async def _first_word(
        self,
        client: Client,
        flight: Flight,
        params: Message,
        call: ToolCall,
        entry: str,
        verdict: Verdict,
        by_client: bool,
    ) -> Question:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            # Whoever answers is not troubled by a gateway that has ended.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if told.done() else told.set_result(None))

        with self._pipeline.broker.telling(entry, tell):
            asked = (
                asyncio.create_task(self._elicit(client, flight, call, entry, verdict)) if by_client else None
            )
            try:
                return await self._wait(flight, params, entry, told, asked)
            finally:
                if asked is not None:
                    # Answered elsewhere: the client takes its own question away.
                    asked.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await asked

    async def _wait(
        self,
        flight: Flight,
        params: Message,
        entry: str,
        told: asyncio.Future[None],
        asked: asyncio.Task[prompts.Answer] | None,
    ) -> Question:
        token = meta_of(params).get("progressToken")
        rounds = 0
        while True:
            found = get_question(self._pipeline.store, entry)
            if found is None:
                raise InputError("The question is gone.")
            if found.state != ASKED:
                return found
            left = found.expires_at - self._pipeline.clock()
            if left <= 0:
                await asyncio.to_thread(approvals.expire, self._pipeline, found)
                continue
            waiting: set[asyncio.Future[Any]] = {told} if asked is None else {told, asked}
            await asyncio.wait(waiting, timeout=min(left, _SIGN_OF_LIFE), return_when=asyncio.FIRST_COMPLETED)
            if asked is not None and asked.done():
                answer, asked = await self._heard(asked), None
                if answer is not None:
                    await asyncio.to_thread(self._record, entry, answer)
            elif token is not None and not told.done():
                rounds += 1
                said = {
                    "progressToken": token,
                    "progress": rounds,
                    "message": "Waiting for a person's answer.",
                }
                flight.exchange.send(notification("notifications/progress", said))

    async def _heard(self, asked: asyncio.Task[prompts.Answer]) -> prompts.Answer | None:
        """The client's answer; nothing where it could not ask but somebody else still can."""
        try:
            return asked.result()
        except (RpcError, asyncio.CancelledError) as error:
            if self._pipeline.broker.reachable:
                return None
            return prompts.Answer("denied", f"The client could not ask its person: {error}")

    async def _elicit(
        self, client: Client, flight: Flight, call: ToolCall, entry: str, verdict: Verdict
    ) -> prompts.Answer:
        asked = prompts.approval(call, verdict, entry, client.agent)
        return prompts.answer(await client.ask("elicitation/create", asked, flight))

    async def given_up(self, call: ToolCall, entry: str) -> None:
        """The caller stopped waiting: where it may come back the question stays, else it is withdrawn."""
        if self._settings(call.project).no_person != "wait":
            await asyncio.to_thread(self._cancel, entry)

    def _cancel(self, entry: str) -> None:
        approvals.abandon(self._pipeline, entry, "client", "the client stopped waiting")

    def _record(self, entry: str, answer: prompts.Answer, channel: str = CHANNEL) -> None:
        """Hand an answer to the pipeline; somebody may have been quicker."""
        actor = self._user if channel == CHANNEL else ""
        for remember in (answer.remember, None):
            try:
                self._pipeline.answer(
                    entry,
                    answer.word,
                    actor=actor,
                    channel=channel,
                    message=answer.message,
                    remember=remember,
                )
                return
            except (InputError, NotFoundError):
                # What cannot be remembered still counts for this call.
                if remember is None or not self._is_open(entry):
                    return

    def _is_open(self, entry: str) -> bool:
        found = get_question(self._pipeline.store, entry)
        return found is not None and found.state == ASKED

    def _as_settled(self, found: Question, verdict: Verdict) -> Settled:
        return Settled(found.entry, verdict, found.state, found.actor, found.message)

    def _settings(self, project: str) -> Gateway:
        return self._pipeline.policies.of(project, "gateway").settings.gateway


def _key(call: ToolCall) -> str:
    """What a call is found by, whatever its session is called and whatever definition its tool has."""
    return msgspec.structs.replace(call, definition="", session="").binding


def waiting_result(call: ToolCall, entry: str) -> Message:
    """What a client reads whose call waits for a person who is not there."""
    text = (
        f"`{call.server}__{call.tool}` waits for a person's yes (record {entry}). Nothing has run. "
        "Call it again later with exactly the same arguments to hear the answer; a person answers with "
        "`checkrein inbox` or in the console."
    )
    waiting = {"checkrein/waiting": {"record": entry}}
    return {"content": [{"type": "text", "text": text}], "isError": True, "_meta": waiting}
