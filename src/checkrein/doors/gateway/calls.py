"""Tool calls on their way through the gateway: judged, asked about, carried out, recorded.

The hub hands over `tools/call`; nothing else of a client's reaches a server's tool. Never decides anything
itself: verdicts are the pipeline's, answers are people's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from checkrein.approval import wording
from checkrein.call import ToolCall, Verdict
from checkrein.core.decision import Decided
from checkrein.core.lifecycle import UNDER_WAY, state_of
from checkrein.core.redemption import Approval, CurrentTool, Rejected, redeem
from checkrein.doors.gateway import prompts, roots
from checkrein.doors.gateway.asking import Asking, Settled, waiting_result
from checkrein.doors.gateway.catalogue import Catalogue
from checkrein.doors.gateway.clients import DEFAULT_PROJECT, Client, Flight
from checkrein.doors.gateway.errands import UNKNOWN, Came, Errands, Servers
from checkrein.doors.gateway.inventory import Inventory
from checkrein.doors.gateway.judging import Call, Judge, to_its_end
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.messages import (
    INVALID_PARAMS,
    STATELESS,
    Message,
    RpcError,
)
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.doors.gateway.relay import Errand, Relay
from checkrein.doors.gateway.sealing import ForeignStateError, Seal, State
from checkrein.doors.gateway.upstream import Upstream
from checkrein.doors.gateway.visits import Visits
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.recording import NOBODY
from checkrein.store.questions import ASKED, Question


class Calls:
    """The way of `tools/call`."""

    def __init__(
        self,
        pipeline: Pipeline,
        catalogue: Catalogue,
        servers: Servers,
        inventory: Inventory,
        relay: Relay,
        seal: Callable[[], Seal],
        visits: Visits,
        user: str,
        say: Callable[[str], None],
    ) -> None:
        self._pipeline, self._catalogue, self._servers = pipeline, catalogue, servers
        self._relay, self._seal, self._visits = relay, seal, visits
        self._asking = Asking(pipeline, user)
        self.outcomes = Outcomes(pipeline, say)
        self.errands = Errands(servers, inventory, self.outcomes)
        self.mail = Mail(pipeline.store, self.outcomes.meanwhile, self.outcomes.enough)
        self._judge = Judge(pipeline, self._asking, self.outcomes, self.mail, user)
        self._limit = (0.0, 0.0)

    async def call(self, client: Client, flight: Flight, params: Message) -> Any:
        """The tool's result, or why there is none, in words the model can read."""
        project = await roots.project(client, flight)
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "A call has a name, and its arguments are an object.")
        offered = self._catalogue.tool(name, client.id)
        if offered is None:
            return await self._not_offered(client, name, arguments, project)
        trusted = self._servers.spec(offered.server).trusted
        call = self._judge.tool_call(
            client, offered.server, offered.tool, arguments, project, offered.hints(trusted), offered.hash
        )
        made = Call(client, flight, offered, params, call, trusted)
        if client.era == STATELESS and params.get("requestState") is not None:
            return await self._came_back(made)
        if (waiting := self._asking.left_open(call, client.visit.earlier)) is not None:
            return await self._left_open(made, waiting)
        return await self._first(made)

    async def _first(self, made: Call) -> Any:
        if faults := made.offered.input.faults(made.call.arguments):
            return await self._refused(made.call, "arguments", " ".join(faults), "Correct the arguments.")
        decided = await self._judge.decided(made)
        verdict = decided.verdict
        if verdict.word == "allow":
            return await self._run(made, decided.entry, made.call.arguments)
        if verdict.word == "deny":
            return _error(wording.refusal(made.call, verdict, decided.entry))
        if not decided.asked:
            return _error(wording.unreachable(made.call, verdict, decided.entry))
        if not self._asking.possible(made.client, made.call.project):
            return await self._fallen_back(made, decided)
        return await self._after(made, decided.entry, verdict)

    async def _left_open(self, made: Call, waiting: Question) -> Any:
        """The caller comes back to its question, and to the session it asked in."""
        verdict = self._judge.now(made)
        if waiting.state == ASKED and verdict.word != "ask":
            await self._asking.needless(waiting.entry)
            return await self._first(made)
        made.call = msgspec.structs.replace(made.call, session=waiting.session)
        return await self._after(made, waiting.entry, verdict)

    async def _fallen_back(self, made: Call, decided: Decided) -> Any:
        """Nobody can be asked, and the profile whose ask list names the tool says yes then."""
        await self._asking.fell_back(decided.entry, prompts.Answer("approved", NOBODY))
        settled = self._asking.settled(decided.entry, decided.verdict)
        return await self._answered(made, settled or Settled(decided.entry, decided.verdict))

    # -- asking -----------------------------------------------------------------------------------------

    async def _after(self, made: Call, entry: str, verdict: Verdict) -> Any:
        """A question is open: what comes of it."""
        # Nobody else who makes the same call comes back for this one meanwhile.
        with self._pipeline.broker.awaiting(entry):
            settled = await self._settled(made, entry, verdict)
            if settled is None:
                return self._input_required(made, entry, verdict)
            return await self._answered(made, settled)

    async def _settled(self, made: Call, entry: str, verdict: Verdict) -> Settled | None:
        """The answer; nothing where a stateless client is to bring it."""
        client = made.client
        try:
            # A caller that comes back after a restart is known by the session that asked.
            await self._visits.keep(client.visit)
            settled = await self._asking.so_far(entry, verdict)
            if settled is not None or (client.era == STATELESS and self._asking.by_client(client)):
                return settled
            return await self._asking.answer(client, made.flight, made.params, made.call, entry, verdict)
        except asyncio.CancelledError:
            # INVARIANT: a question whose caller gave up is withdrawn, unless the caller may come back.
            await asyncio.shield(self._asking.given_up(made.call, entry))
            raise

    def _input_required(self, made: Call, entry: str, verdict: Verdict) -> Message:
        asked = prompts.approval(made.call, verdict, entry, made.client.agent)
        state = self._seal().close(
            owner=made.client.owner,
            digest=made.digest,
            kind="ask",
            now=self._pipeline.clock(),
            entry=entry,
            session=made.call.session,
            definition=made.offered.hash,
        )
        request = {"method": "elicitation/create", "params": asked}
        return {"resultType": "input_required", "inputRequests": {"approval": request}, "requestState": state}

    async def _came_back(self, made: Call) -> Any:
        """A stateless client repeats its call with what it carried for us."""
        try:
            state = await self._taken(made)
        except ForeignStateError as error:
            remedy = "Send the call again without requestState."
            await self._refused(made.call, "state", error.message, remedy)
            raise
        # The seal proves whose call it was; after a restart the session has another name.
        made.call = msgspec.structs.replace(made.call, session=state.session or made.call.session)
        found = made.params.get("inputResponses")
        responses = found if isinstance(found, dict) else {}
        if state.kind == "ask":
            return await self._said(made, state, responses)
        why = await self._stopped(made, state)
        if why is not None:
            return why
        if state.kind == "run":
            return await self._relay.go_on(made.client, made.flight, state, responses)
        return await self._continued(made, state, responses)

    async def _taken(self, made: Call) -> State:
        """What the client carried for us, used up."""
        seal, now, text = self._seal(), self._pipeline.clock(), made.params.get("requestState")
        state = seal.read(text, owner=made.client.owner, digest=made.digest, now=now)
        # INVARIANT: a call that is half way goes on with the tool as it was accepted when it began.
        if state.kind != "ask" and state.definition != made.offered.hash:
            raise ForeignStateError("it belongs to another request")
        try:
            await seal.use(state, now=now)
        except asyncio.CancelledError:
            # It cannot be brought again, so nobody comes back for what it belongs to.
            self._relay.drop(state)
            if state.kind == "ask":
                await asyncio.shield(self._asking.given_up(made.call, state.entry))
            raise
        return state

    async def _said(self, made: Call, state: State, responses: Message) -> Any:
        verdict = self._judge.now(made)
        settled = await self._asking.so_far(state.entry, verdict)
        if settled is None and not ("approval" in responses and self._asking.by_client(made.client)):
            # Nothing was said, and nobody answered elsewhere meanwhile: the same question again.
            return await self._after(made, state.entry, verdict)
        if settled is None:
            answer = prompts.answer(responses["approval"])
            settled = await self._asking.said(state.entry, answer, verdict)
        return await self._answered(made, settled)

    async def _stopped(self, made: Call, state: State) -> Message | None:
        """Why a call that is half way goes no further; nothing where it may."""
        # INVARIANT: a deny that came meanwhile stops a call that is half way.
        call = made.call
        if state.arguments is not None:
            call = msgspec.structs.replace(call, arguments=state.arguments)
        verdict = self._pipeline.judge(call, approved=True).verdict
        if verdict.word == "deny":
            if state.kind == "run":
                self._relay.drop(state)
            self._finish(state.entry, "cancelled", evidence="policy")
            return await self._overruled(made.call, verdict)
        # INVARIANT: a call that never began, or has ended, is not sent on, not even after a restart.
        if state.kind != "run" and not self._is_under_way(state.entry):
            return await self._refused(
                made.call, "state", "This call is not under way.", "Send the call again."
            )
        return None

    def _is_under_way(self, entry: str) -> bool:
        found = get_entry(self._pipeline.store, entry)
        return found is not None and state_of(found) in UNDER_WAY

    async def _overruled(self, call: ToolCall, verdict: Verdict) -> Message:
        text, remedy = verdict.reasons[0].text, verdict.remedy or "See `checkrein rules`."
        return await self._refused(call, verdict.stage, text, remedy)

    async def _continued(self, made: Call, state: State, responses: Message) -> Any:
        """A stateless server gets the answers it asked for."""
        carried = {"requestState": state.carried} if state.carried else {}
        more = {"inputResponses": responses, **carried}
        # INVARIANT: what goes on is what was approved, not what the client sent.
        arguments = made.call.arguments if state.arguments is None else state.arguments
        return await self._run(made, state.entry, arguments, more)

    async def _answered(self, made: Call, settled: Settled) -> Any:
        if settled.waits:
            return waiting_result(made.call, settled.entry)
        call, entry = made.call, settled.entry
        if settled.state != "approved":
            text = wording.answered(
                call, settled.verdict, entry, settled.state, settled.actor, settled.message
            )
            return _error(text)
        approved = await self._redeemed(call, entry, self._current(made))
        if isinstance(approved, Rejected):
            return _refusal(call, approved)
        return await self._run(made, entry, approved.arguments)

    async def _redeemed(self, call: ToolCall, entry: str, tool: CurrentTool) -> ToolCall | Rejected:
        def not_wanted(found: ToolCall | Rejected) -> None:
            if not isinstance(found, Rejected):
                self._finish(entry, "cancelled", evidence="client")

        return await to_its_end(partial(redeem, self._pipeline, Approval(entry, call, tool=tool)), not_wanted)

    def _current(self, made: Call) -> CurrentTool:
        """The tool as it is offered now."""
        name, client = made.offered.name, made.client
        now = self._catalogue.tool(name, client.id)
        if now is None:
            hidden = self._catalogue.hidden(name, client.id)
            return CurrentTool(unavailable=hidden or "It is not offered as it was any more.")
        return CurrentTool(now.hash, faults=lambda arguments: " ".join(now.input.faults(arguments)))

    # -- carrying out -----------------------------------------------------------------------------------

    async def _run(self, made: Call, entry: str, arguments: Message, more: Message | None = None) -> Any:
        upstream = await self.errands.reach(made.offered, made.client, entry)
        if isinstance(upstream, Came):
            return _error(upstream.text)
        errand = self._errand(made, upstream, entry, arguments)
        if more is not None:
            errand.params = {**errand.params, **more}
        sending = self._relay.begin(errand)
        return await self._relay.deliver(sending, self._handled(made, errand, sending.answer))

    async def _handled(self, made: Call, errand: Errand, answer: Awaitable[Any]) -> Any:
        """What the server answered, on the record and as its client hears it."""
        return await self._told(made, await self.errands.watch(made.offered, errand, answer))

    def _errand(self, made: Call, upstream: Upstream, entry: str, arguments: Message) -> Errand:
        # INVARIANT: what is executed is what was judged, and nothing a client put beside it.
        given = made.params
        params: Message = {"name": made.offered.tool, "arguments": arguments}
        if "_meta" in given:
            params["_meta"] = given["_meta"]
        if "inputResponses" in given and upstream.era == STATELESS:
            params["inputResponses"] = given["inputResponses"]
        spec = self._servers.spec(made.offered.server)
        seconds = spec.timeout or self.call_seconds()
        edited = None if arguments is made.call.arguments else arguments
        # Only what a stateless client carries is bound to its request.
        bound = made.digest if made.client.era == STATELESS else ""
        return Errand(
            made.client,
            made.flight,
            upstream,
            "tools/call",
            params,
            seconds,
            bound,
            entry,
            edited,
            made.offered.hash,
        )

    async def _told(self, made: Call, came: Came) -> Any:
        """What came of the call, as its client hears it."""
        if came.kind == "input":
            return came.result
        if came.error is not None:
            await self._taint(made)
            raise came.error
        if came.kind != "result":
            return _error(f"{came.text} {UNKNOWN}" if came.kind == "lost" else came.text)
        if not await self._taint(made) or not isinstance(came.result, dict):
            return came.result
        meta = came.result.get("_meta")
        mark = {"checkrein/untrusted": made.offered.server}
        return {**came.result, "_meta": {**meta, **mark} if isinstance(meta, dict) else mark}

    async def _taint(self, made: Call) -> bool:
        """Whether what the server said is not to be trusted; the session remembers that it read it."""
        if made.trusted:
            return False
        # INVARIANT: a session that read an untrusted result is not trusted with outward calls unasked.
        await self._visits.taint(made.client.visit, made.offered.server)
        return True

    def _finish(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        self.outcomes.add(entry, outcome, output=output, evidence=evidence)

    # -- what cannot be called --------------------------------------------------------------------------

    async def _not_offered(self, client: Client, name: str, arguments: Message, project: str) -> Any:
        why = self._catalogue.hidden(name, client.id)
        if not why:
            raise RpcError(INVALID_PARAMS, self._servers.no_tool(name))
        server, _, tool = name.partition("__")
        call = self._judge.tool_call(client, server, tool or name, arguments, project)
        waiting = self._asking.left_open(call, client.visit.earlier)
        if waiting is not None and waiting.state == "approved":
            call = msgspec.structs.replace(call, session=waiting.session)
            # INVARIANT: an approval ends with the tool it was given for.
            found = await self._redeemed(call, waiting.entry, CurrentTool(unavailable=why))
            if isinstance(found, Rejected):
                return _refusal(call, found)
        remedy = f"A person looks at it with `checkrein servers review {server}`."
        return await self._refused(call, "definition", why, remedy)

    async def _refused(self, call: ToolCall, stage: str, why: str, remedy: str) -> Message:
        decided = await asyncio.to_thread(self._pipeline.refuse, call, stage, why, remedy)
        return _error(wording.refusal(call, decided.verdict, decided.entry))

    def call_seconds(self) -> float:
        """The user's limit, looked up again every second: it is no verdict."""
        now = time.monotonic()
        if now >= self._limit[0]:
            self._limit = now + 1.0, self._settings(DEFAULT_PROJECT).call_seconds
        return self._limit[1]

    def _settings(self, project: str) -> Any:
        return self._pipeline.policies.of(project, "gateway").settings.gateway


def _refusal(call: ToolCall, rejected: Rejected) -> Message:
    return _error(wording.refusal(call, rejected.decided.verdict, rejected.decided.entry))


def _error(text: str) -> Message:
    """A refusal as a tool's result, so that the model reads it."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
