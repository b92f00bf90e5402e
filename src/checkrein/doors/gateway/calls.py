"""Tool calls on their way through the gateway: judged, asked about, carried out, recorded.

The hub hands over `tools/call`; nothing else of a client's reaches a server's tool. Never decides anything
itself: verdicts are the pipeline's, answers are people's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from checkrein.approval import wording
from checkrein.call import Category, ToolCall, Verdict, digest
from checkrein.doors.gateway import prompts
from checkrein.doors.gateway.asking import Asking, Settled, waiting_result
from checkrein.doors.gateway.catalogue import Catalogue, Offered
from checkrein.doors.gateway.clients import DEFAULT_PROJECT, Client, Flight
from checkrein.doors.gateway.messages import (
    INVALID_PARAMS,
    STATELESS,
    Message,
    RpcError,
    encode,
)
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.doors.gateway.pipes import Gone
from checkrein.doors.gateway.relay import Errand, Relay, onward
from checkrein.doors.gateway.sealing import ForeignStateError, Seal, State
from checkrein.doors.gateway.upstream import Upstream
from checkrein.errors import CheckreinError
from checkrein.pipeline import Considered, Decided, Judged, Pipeline
from checkrein.settings.servers import ServerSpec

# How much of a result the ledger looks at; it keeps less, after masking.
_EXCERPT = 65_536
_OUTWARD = frozenset({"message", "network", "git-remote", "delete"})
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Servers(Protocol):
    """Where calls go: the servers behind the gateway."""

    def spec(self, server: str) -> ServerSpec: ...

    async def reach(self, server: str, client: Client) -> Upstream: ...


class Call(msgspec.Struct):
    """One tool call while it is on its way."""

    client: Client
    flight: Flight
    offered: Offered
    params: Message
    call: ToolCall

    @property
    def digest(self) -> str:
        """What a state of this call is bound to: the tool as it was accepted, and exactly these arguments."""
        return digest(["tools/call", self.offered.name, self.offered.hash, self.call.arguments])


class Calls:
    """The way of `tools/call`."""

    def __init__(
        self,
        pipeline: Pipeline,
        catalogue: Catalogue,
        servers: Servers,
        relay: Relay,
        seal: Callable[[], Seal],
        user: str,
        say: Callable[[str], None],
    ) -> None:
        self._pipeline, self._catalogue, self._servers = pipeline, catalogue, servers
        self._relay, self._seal, self._user, self._say = relay, seal, user, say
        self._asking = Asking(pipeline, user)
        self.outcomes = Outcomes(pipeline, say)
        self._limit = (0.0, 0.0)

    async def call(self, client: Client, flight: Flight, params: Message, project: str) -> Any:
        """The tool's result, or why there is none, in words the model can read."""
        name, arguments = params.get("name"), params.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "A call has a name, and its arguments are an object.")
        offered = self._catalogue.tool(name)
        if offered is None:
            return await self._not_offered(client, name, arguments, project)
        made = Call(client, flight, offered, params, self._tool_call(client, offered, arguments, project))
        faults = offered.input.faults(arguments)
        if faults:
            return await self._refused(made.call, "arguments", " ".join(faults), "Correct the arguments.")
        if client.era == STATELESS and params.get("requestState") is not None:
            return await self._came_back(made)
        return await self._first(made)

    async def _first(self, made: Call) -> Any:
        waiting = self._asking.left_open(made.call)
        if waiting is not None and (verdict := self._pipeline.judge(made.call).verdict).word == "ask":
            return await self._after(made, waiting, verdict)
        decided = await self._decide(made)
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

    def _falls_back(self, call: ToolCall) -> bool:
        profile = self._pipeline.policies.of(call.project, "gateway").policy.profile
        return profile is not None and profile.fallback == "allow"

    async def _fallen_back(self, made: Call, decided: Decided) -> Any:
        """Nobody can be asked, and the profile whose ask list names the tool says what happens then."""
        profile = decided.verdict.stage == "profile"
        answer = prompts.Answer("approved" if profile else "cancelled", "nobody could be asked")
        await self._asking.fell_back(decided.entry, answer)
        if not profile:
            return _error(wording.unreachable(made.call, decided.verdict, decided.entry))
        settled = self._asking.settled(decided.entry, decided.verdict)
        return await self._answered(made, settled or Settled(decided.entry, decided.verdict))

    async def _decide(self, made: Call) -> Decided:
        considered = self._pipeline.consider(
            made.call,
            hold=lambda judged: self._hold(made, judged),
            asking=lambda: (
                self._asking.possible(made.client, made.call.project) or self._falls_back(made.call)
            ),
        )
        return await self._recorded(considered)

    async def _recorded(self, considered: Considered | Decided) -> Decided:
        """The verdict, once its record is committed; what waits for the disk does not hold up the others."""
        if isinstance(considered, Decided):
            return considered
        if not considered.durable:
            return self._pipeline.settle(considered)
        return await asyncio.to_thread(self._pipeline.settle, considered)

    # -- asking -----------------------------------------------------------------------------------------

    async def _after(self, made: Call, entry: str, verdict: Verdict) -> Any:
        """A question is open: what comes of it."""
        client = made.client
        settled = self._asking.settled(entry, verdict)
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
        upstream = await self._servers.reach(made.offered.server, made.client)
        errand = self._errand(made, upstream, state.entry, made.call.arguments)
        if state.kind == "run":
            return await self._relay.go_on(errand, state, responses)
        return await self._continued(made, errand, state, responses)

    async def _said(self, made: Call, state: State, responses: Message) -> Any:
        verdict = self._pipeline.judge(made.call).verdict
        settled = self._asking.settled(state.entry, verdict)
        if settled is None and "approval" not in responses:
            # Nothing was said, and nobody answered elsewhere meanwhile: the same question again.
            return self._input_required(made, state.entry, verdict)
        if settled is None:
            answer = prompts.answer(responses["approval"])
            settled = await self._asking.said(made.call, state.entry, answer, verdict)
        return await self._answered(made, settled)

    async def _continued(self, made: Call, errand: Errand, state: State, responses: Message) -> Any:
        """A stateless server gets its answers; the policy of this moment still has its say."""
        # INVARIANT: a deny that came meanwhile stops a call that is half way.
        verdict = self._pipeline.judge(made.call, approved=True).verdict
        if verdict.word == "deny":
            self._finish(state.entry, "cancelled", evidence="policy")
            return await self._refused(
                made.call, verdict.stage, verdict.reasons[0].text, verdict.remedy or "See `checkrein rules`."
            )
        rest = {key: value for key, value in errand.params.items() if key != "requestState"}
        carried = {"requestState": state.carried} if state.carried else {}
        errand.params = {**rest, "inputResponses": responses, **carried}
        return await self._carried(made, errand)

    async def _answered(self, made: Call, settled: Settled) -> Any:
        if settled.waits:
            return waiting_result(made.call, settled.entry)
        call, verdict = made.call, settled.verdict
        if settled.state != "approved":
            text = wording.answered(
                call, verdict, settled.entry, settled.state, settled.actor, settled.message
            )
            return _error(text)
        arguments = call.arguments if settled.edited is None else settled.edited
        faults = made.offered.input.faults(arguments)
        if faults:
            return await self._refused(
                call, "arguments", " ".join(faults), "Approve it with other arguments."
            )
        # INVARIANT: an approved call runs at most once, whatever is clicked, sent again or killed.
        if not await asyncio.to_thread(self._pipeline.begin, settled.entry):
            return await self._refused(
                call, "state", "This approval was used before.", "Send the call again."
            )
        return await self._run(made, settled.entry, arguments)

    # -- carrying out -----------------------------------------------------------------------------------

    async def _run(self, made: Call, entry: str, arguments: Message) -> Any:
        try:
            upstream = await self._servers.reach(made.offered.server, made.client)
        except CheckreinError as error:
            self._finish(entry, "cancelled", evidence="unreachable", output=str(error))
            return _error(f"The server `{made.offered.server}` cannot be reached, so nothing ran. {error}")
        return await self._carried(made, self._errand(made, upstream, entry, arguments))

    def _errand(self, made: Call, upstream: Upstream, entry: str, arguments: Message) -> Errand:
        # INVARIANT: what is executed is what was judged, and nothing a client put beside it.
        kept = onward(made.params, upstream)
        spec = self._servers.spec(made.offered.server)
        seconds = spec.timeout or self._call_seconds()
        params = {**kept, "name": made.offered.tool, "arguments": arguments}
        return Errand(
            made.client, made.flight, upstream, "tools/call", params, seconds, made.digest, entry=entry
        )

    async def _carried(self, made: Call, errand: Errand) -> Any:
        async def recorded(work: Awaitable[Any]) -> Any:
            return await self._watched(made, errand, work)

        return await self._relay.carry(errand, recorded)

    async def _watched(self, made: Call, errand: Errand, work: Awaitable[Any]) -> Any:
        """The result, with what became of the call on the record."""
        entry, server = errand.entry, made.offered.server
        try:
            result = await work
        except RpcError as error:
            self._finish(entry, "failure", output=error.body, evidence="tool error")
            raise
        except TimeoutError:
            self._finish(entry, "timeout", evidence="no answer")
            text = f"`{server}` did not answer within {errand.seconds:g} seconds. "
            return _error(text + "Whether the call took effect is unknown; look before trying it again.")
        except Gone as gone:
            # INVARIANT: a call whose fate is unknown is recorded as unknown, and never sent again by us.
            self._finish(entry, "unknown", output=str(gone), evidence="connection lost")
            text = f"The connection to `{server}` was lost while it worked ({gone}). "
            return _error(text + "Whether the call took effect is unknown; look before trying it again.")
        except asyncio.CancelledError:
            self._finish(entry, "cancelled", evidence="client")
            raise
        return self._delivered(made, entry, result)

    def _delivered(self, made: Call, entry: str, result: Any) -> Any:
        if isinstance(result, dict) and result.get("resultType") == "input_required":
            return result
        failed = not isinstance(result, dict) or result.get("isError") is True
        excerpt = encode(result)[:_EXCERPT].decode("utf-8", "replace")
        self._finish(
            entry, "failure" if failed else "success", output=excerpt, evidence="tool error" if failed else ""
        )
        spec = self._servers.spec(made.offered.server)
        if not isinstance(result, dict) or spec.trusted:
            return result
        # INVARIANT: a session that read an untrusted result is not trusted with outward calls unasked.
        made.client.visit.tainted_by = made.offered.server
        meta = result.get("_meta")
        mark = {"checkrein/untrusted": made.offered.server}
        return {**result, "_meta": {**meta, **mark} if isinstance(meta, dict) else mark}

    def _finish(self, entry: str, outcome: str, *, output: Any = None, evidence: str = "") -> None:
        self.outcomes.add(entry, outcome, output=output, evidence=evidence)

    # -- what cannot be called --------------------------------------------------------------------------

    async def _not_offered(self, client: Client, name: str, arguments: Message, project: str) -> Any:
        why = self._catalogue.hidden(name)
        if not why:
            raise RpcError(INVALID_PARAMS, f"There is no tool {wording.plain(name, 160)!r}.")
        server, _, tool = name.partition("__")
        call = ToolCall(
            tool=tool or name,
            server=server,
            arguments=arguments,
            door="gateway",
            agent=client.agent,
            user=self._user,
            session=client.visit.session,
            project=project,
        )
        remedy = f"A person looks at it with `checkrein servers review {server}`."
        return await self._refused(call, "definition", why, remedy)

    async def _refused(self, call: ToolCall, stage: str, why: str, remedy: str) -> Message:
        decided = await asyncio.to_thread(self._pipeline.refuse, call, stage, why, remedy)
        return _error(wording.refusal(call, decided.verdict, decided.entry))

    # -- judging ----------------------------------------------------------------------------------------

    def _tool_call(self, client: Client, offered: Offered, arguments: Message, project: str) -> ToolCall:
        spec = self._servers.spec(offered.server)
        # INVARIANT: what a server says of its tools never says that it is trusted.
        annotations = {name: offered.annotations[name] for name in _HINTS if name in offered.annotations}
        return ToolCall(
            tool=offered.tool,
            server=offered.server,
            arguments=arguments,
            door="gateway",
            agent=client.agent,
            user=self._user,
            session=client.visit.session,
            project=project,
            cwd=project if project.startswith("/") else "",
            annotations={**annotations, "pinned": True} if spec.trusted else annotations,
            definition=offered.hash,
        )

    def _hold(self, made: Call, judged: Judged) -> str:
        """Why a person is asked although the call would run: the session has read untrusted words."""
        source = made.client.visit.tainted_by
        if not source or judged.consent is not None or self._settings(made.call.project).taint == "off":
            return ""
        if not _goes_out(made.call, judged.verdict) or _named_exactly(judged, made.call):
            return ""
        return (
            f"This session has read what the server `{source}` returned, and this call can send or destroy."
        )

    def _call_seconds(self) -> float:
        """The user's limit, looked up again every second: it is no verdict."""
        now = time.monotonic()
        if now >= self._limit[0]:
            self._limit = now + 1.0, self._settings(DEFAULT_PROJECT).call_seconds
        return self._limit[1]

    def _settings(self, project: str) -> Any:
        return self._pipeline.policies.of(project, "gateway").settings.gateway


def _goes_out(call: ToolCall, verdict: Verdict) -> bool:
    """Whether a call reaches outside or destroys something."""
    hints = call.annotations
    return (
        verdict.risk.category >= Category.high
        or hints.get("destructiveHint") is True
        or hints.get("openWorldHint") is True
        or any(each.kind in _OUTWARD for each in verdict.risk.effects)
    )


def _named_exactly(judged: Judged, call: ToolCall) -> bool:
    """Whether a person wrote a rule for just this tool of this server, knowing where its words come from."""
    rules = judged.force.policy.rules.rules
    return any(
        each.id == judged.verdict.rule and each.tool == call.tool and each.server == call.server
        for each in rules
    )


def _error(text: str) -> Message:
    """A refusal as a tool's result, so that the model reads it."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
