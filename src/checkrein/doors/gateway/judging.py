"""What policy says to a client's call, put on the record; every call of one moment meets the same policy.

The way of `tools/call` asks here. Verdicts are the pipeline's; a call is only put into its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from checkrein.call import ToolCall, Verdict, digest
from checkrein.core.decision import Decided, DecisionRequest, Evaluation
from checkrein.doors.gateway.asking import Asking
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.errors import CheckreinError
from checkrein.finishing import About
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce

T = TypeVar("T")
_NOTHING: Message = {}


class Call(msgspec.Struct):
    """One tool call while it is on its way."""

    client: Client
    flight: Flight
    offered: Offered
    params: Message
    call: ToolCall
    # Whether a person vouches for the server, as it was when the call came.
    trusted: bool

    @property
    def digest(self) -> str:
        """What a state of this call is bound to: the tool, and exactly these arguments."""
        return digest(["tools/call", self.offered.name, self.call.arguments])


class Judge:
    """The pipeline, as calls of clients meet it."""

    def __init__(self, pipeline: Pipeline, asking: Asking, outcomes: Outcomes, mail: Mail, user: str) -> None:
        self._pipeline, self._asking, self._user = pipeline, asking, user
        self._outcomes, self._mail = outcomes, mail
        self._policies: dict[str, InForce] = {}

    def tool_call(
        self,
        client: Client,
        server: str,
        tool: str,
        arguments: Message,
        project: str,
        hints: Message = _NOTHING,
        definition: str = "",
    ) -> ToolCall:
        """A client's call in the words every door uses. `definition`: of the tool as it was accepted."""
        return ToolCall(
            tool=tool,
            server=server,
            arguments=arguments,
            door="gateway",
            agent=client.agent,
            user=self._user,
            session=client.visit.session,
            project=project,
            cwd=project if project.startswith("/") else "",
            annotations=hints,
            definition=definition,
        )

    def now(self, made: Call) -> Verdict:
        """The verdict of this moment, recorded nowhere."""
        return self._pipeline.evaluate(self._request(made)).verdict

    async def decided(self, made: Call) -> Decided:
        """The verdict, on the record; it leaves no earlier."""
        request = self._request(made)
        while True:
            evaluation = self._pipeline.evaluate(request)
            if evaluation.verdict.word == "ask" and self._can_ask(made, evaluation):
                evaluation = self._pipeline.add_question(evaluation)
            if (decided := await self._committed(evaluation)) is not None:
                return decided
            # The policy at hand still holds the rule that was used up.
            request = msgspec.structs.replace(request, policy=None)

    async def _committed(self, evaluation: Evaluation) -> Decided | None:
        pipeline = self._pipeline
        if not evaluation.plain:
            # What waits for the disk does not hold up the others.
            return await to_its_end(partial(pipeline.commit, evaluation), self._not_wanted)
        # A plain allow, which many calls at once put on the record together.
        letter = self._mail.send(pipeline.commit_work(evaluation), partial(pipeline.committed, evaluation))
        found = await letter.answer(self._not_wanted)
        if found.verdict.word == "allow":
            call, domains = evaluation.request.call, found.verdict.risk.domains
            self._outcomes.began(found.entry, About(call.project, call.session, domains, pipeline.clock()))
        return found

    def _not_wanted(self, decided: Decided | None) -> None:
        """A client took its call back before the verdict was on the record: nothing ran."""
        if decided is not None and decided.asked:
            self._asking.withdraw(decided.entry)
        elif decided is not None and decided.verdict.word == "allow":
            self._outcomes.add(decided.entry, "cancelled", evidence="client")

    def _request(self, made: Call) -> DecisionRequest:
        tainted_by = made.client.visit.tainted_by
        return DecisionRequest(made.call, policy=self._policy(made.call.project), tainted_by=tainted_by)

    def _policy(self, project: str) -> InForce | None:
        """What holds for the calls of this moment of the loop: looked up once, however many they are."""
        found = self._policies.get(project)
        if found is None:
            try:
                found = self._pipeline.policies.of(project, "gateway")
            except CheckreinError:
                # Whoever evaluates the call meets the same error, and refuses it.
                return None
            if not self._policies:
                # INVARIANT: a change takes effect on the next call: nothing that comes later finds this.
                asyncio.get_running_loop().call_soon(self._policies.clear)
            self._policies[project] = found
        return found

    def _can_ask(self, made: Call, evaluation: Evaluation) -> bool:
        """Whether somebody can be asked, or the profile that asks says what happens else."""
        project = made.call.project
        return self._asking.possible(made.client, project) or self.falls_back(project, evaluation.verdict)

    def falls_back(self, project: str, verdict: Verdict) -> bool:
        """Whether the profile whose ask list names the tool says yes where nobody can be asked."""
        profile = self._pipeline.policies.of(project, "gateway").policy.profile
        return verdict.stage == "profile" and profile is not None and profile.fallback == "allow"


async def to_its_end(work: Callable[[], T], not_wanted: Callable[[T], None]) -> T:
    """Work that is done to its end, also where nobody waits for it any more."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(partial(_after_all, not_wanted))
        raise


def _after_all(not_wanted: Callable[[T], None], done: asyncio.Future[T]) -> None:
    if not done.cancelled() and done.exception() is None:
        not_wanted(done.result())
