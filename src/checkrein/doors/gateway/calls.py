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
from checkrein.doors.gateway import prompts, roots
from checkrein.doors.gateway.asking import Asking, Settled, waiting_result
from checkrein.doors.gateway.catalogue import Catalogue, Offered
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
from checkrein.judged import Decided
from checkrein.ledger.entries import fold
from checkrein.pipeline import Pipeline
from checkrein.store.records import of_entries


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
        user: str,
        say: Callable[[str], None],
    ) -> None:
        self._pipeline, self._catalogue, self._servers = pipeline, catalogue, servers
        self._relay, self._seal = relay, seal
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
        faults = offered.input.faults(arguments)
        if faults:
            return await self._refused(made.call, "arguments", " ".join(faults), "Correct the arguments.")
        if client.era == STATELESS and params.get("requestState") is not None:
            return await self._came_back(made)
        return await self._first(made)

    async def _first(self, made: Call) -> Any:
        waiting = self._asking.left_open(made.call)
        if waiting is not None and (verdict := self._judge.now(made)).word == "ask":
            return await self._after(made, waiting, verdict)
        considered = self._judge.considered(made)
        decided = (
            considered if isinstance(considered, Decided) else await self._judge.settled(made, considered)
        )
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

    async def _fallen_back(self, made: Call, decided: Decided) -> Any:
        """Nobody can be asked, and the profile whose ask list names the tool says what happens then."""
        profile = decided.verdict.stage == "profile"
        answer = prompts.Answer("approved" if profile else "cancelled", "nobody could be asked")
        await self._asking.fell_back(decided.entry, answer)
        if not profile:
            return _error(wording.unreachable(made.call, decided.verdict, decided.entry))
        settled = self._asking.settled(decided.entry, decided.verdict)
        return await self._answered(made, settled or Settled(decided.entry, decided.verdict))

    # -- asking -----------------------------------------------------------------------------------------

    async def _after(self, made: Call, entry: str, verdict: Verdict) -> Any:
        """A question is open: what comes of it."""
        client = made.client
        settled = await self._asking.so_far(entry, verdict)
        if settled is None and client.era == STATELESS and self._asking.by_client(client):
            return self._input_required(made, entry, verdict)
        if settled is None:
            settled = await self._asking.answer(client, made.flight, made.params, made.call, entry, verdict)
        return await self._answered(made, settled)

    def _input_required(self, made: Call, entry: str, verdict: Verdict) -> Message:
        asked = prompts.approval(made.call, verdict, entry, made.client.agent)
        self._asking.hold_open(made.call, entry)
        state = self._seal().close(
            owner=made.client.owner,
            digest=made.digest,
            kind="ask",
            now=self._pipeline.clock(),
            entry=entry,
        )
        request = {"method": "elicitation/create", "params": asked}
        return {"resultType": "input_required", "inputRequests": {"approval": request}, "requestState": state}

    async def _came_back(self, made: Call) -> Any:
        """A stateless client repeats its call with what it carried for us."""
        try:
            state = self._seal().take(
                made.params.get("requestState"),
                owner=made.client.owner,
                digest=made.digest,
                now=self._pipeline.clock(),
            )
        except ForeignStateError as error:
            remedy = "Send the call again without requestState."
            await self._refused(made.call, "state", error.message, remedy)
            raise
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

    async def _said(self, made: Call, state: State, responses: Message) -> Any:
        verdict = self._judge.now(made)
        settled = await self._asking.so_far(state.entry, verdict)
        if settled is None and not ("approval" in responses and self._asking.by_client(made.client)):
            # Nothing was said, and nobody answered elsewhere meanwhile: the same question again.
            return await self._after(made, state.entry, verdict)
        if settled is None:
            answer = prompts.answer(responses["approval"])
            settled = await self._asking.said(made.call, state.entry, answer, verdict)
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
        found = next(iter(fold(of_entries(self._pipeline.store, [entry]))), None)
        return (
            found is not None
            and found.completed_at is None
            and (found.verdict == "allow" or found.started_at is not None)
        )

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
        # Whoever was to come back for it has.
        self._asking.forget(made.call)
        call, verdict = made.call, settled.verdict
        if settled.state != "approved":
            text = wording.answered(
                call, verdict, settled.entry, settled.state, settled.actor, settled.message
            )
            return _error(text)
        # INVARIANT: a yes is to the tool as it was accepted when it was asked about.
        if why := self._not_accepted(made.offered, made.client):
            self._finish(settled.entry, "cancelled", evidence="definition")
            return await self._refused(call, "definition", why, "Send the call again.")
        arguments = call.arguments if settled.edited is None else settled.edited
        faults = made.offered.input.faults(arguments)
        if faults:
            return await self._refused(
                call, "arguments", " ".join(faults), "Approve it with other arguments."
            )
        # INVARIANT: a deny that came after the yes outranks it.
        edited = msgspec.structs.replace(call, arguments=arguments)
        now = self._pipeline.judge(edited, approved=True).verdict
        if now.word == "deny":
            self._finish(settled.entry, "cancelled", evidence="policy")
            return await self._overruled(call, now)

        def not_wanted(taken: bool) -> None:
            if taken:
                self._finish(settled.entry, "cancelled", evidence="client")

        # INVARIANT: an approved call runs at most once, whatever is clicked, sent again or killed.
        if not await to_its_end(partial(self._pipeline.begin, settled.entry), not_wanted):
            return await self._refused(
                call, "state", "This approval was used before.", "Send the call again."
            )
        return await self._run(made, settled.entry, arguments)

    def _not_accepted(self, offered: Offered, client: Client) -> str:
        """Why a tool that was offered before is not the one that is offered now; nothing where it is."""
        now = self._catalogue.tool(offered.name, client.id)
        if now is not None and now.hash == offered.hash:
            return ""
        return self._catalogue.hidden(offered.name, client.id) or "It is not offered as it was any more."

    # -- carrying out -----------------------------------------------------------------------------------

    async def _run(self, made: Call, entry: str, arguments: Message, more: Message | None = None) -> Any:
        upstream = await self.errands.reach(made.offered, made.client, entry)
        if isinstance(upstream, Came):
            return _error(upstream.text)
        errand = self._errand(made, upstream, entry, arguments)
        if more is not None:
            errand.params = {**errand.params, **more}

        async def recorded(work: Awaitable[Any]) -> Any:
            return self._told(made, await self.errands.watch(made.offered, errand, work))

        return await self._relay.carry(errand, recorded)

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
        return Errand(made.client, made.flight, upstream, "tools/call", params, seconds, bound, entry, edited)

    def _told(self, made: Call, came: Came) -> Any:
        """What came of the call, as its client hears it."""
        if came.kind == "input":
            return came.result
        if came.error is not None:
            self._taint(made)
            raise came.error
        if came.kind != "result":
            return _error(f"{came.text} {UNKNOWN}" if came.kind == "lost" else came.text)
        if not self._taint(made) or not isinstance(came.result, dict):
            return came.result
        meta = came.result.get("_meta")
        mark = {"checkrein/untrusted": made.offered.server}
        return {**came.result, "_meta": {**meta, **mark} if isinstance(meta, dict) else mark}

    def _taint(self, made: Call) -> bool:
        """Whether what the server said is not to be trusted; the session remembers that it read it."""
        if made.trusted:
            return False
        # INVARIANT: a session that read an untrusted result is not trusted with outward calls unasked.
        made.client.visit.tainted_by = made.offered.server
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


def _error(text: str) -> Message:
    """A refusal as a tool's result, so that the model reads it."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
