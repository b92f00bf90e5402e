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
from checkrein.doors.gateway.asking import Asking
from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.clients import Client, Flight
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.messages import Message
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.finishing import About
from checkrein.judged import Considered, Decided, Judged
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce
from checkrein.taint import why_held

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
        """What a state of this call is bound to: the tool as it was accepted, and exactly these arguments."""
        return digest(["tools/call", self.offered.name, self.offered.hash, self.call.arguments])


class Judge:
    """The pipeline, as calls of clients meet it."""

    def __init__(self, pipeline: Pipeline, asking: Asking, outcomes: Outcomes, mail: Mail, user: str) -> None:
        self._pipeline, self._asking, self._user = pipeline, asking, user
        self._outcomes, self._mail = outcomes, mail
        self._forces: dict[str, InForce] = {}

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
        found = self._pipeline.consider(made.call, hold=lambda judged: self._hold(made, judged))
        return found.verdict if isinstance(found, Decided) else found.judged.verdict

    def considered(self, made: Call) -> Considered | Decided:
        """The verdict of this moment, which nobody may hear before it is settled."""
        return self._pipeline.consider(
            made.call,
            hold=lambda judged: self._hold(made, judged),
            asking=lambda: (
                self._asking.possible(made.client, made.call.project) or self._falls_back(made.call)
            ),
            force=partial(self._force, made.call.project),
        )

    async def settled(self, made: Call, considered: Considered) -> Decided:
        """The verdict on the record."""
        pipeline = self._pipeline
        if not considered.judged.alone or considered.durable:
            # What waits for the disk does not hold up the others.
            return await to_its_end(partial(pipeline.settle, considered), self._not_wanted)
        # A plain allow, which many calls at once put on the record together.
        letter = self._mail.send(pipeline.settling(considered), partial(pipeline.settled, considered))
        found = await letter.answer(self._not_wanted)
        if found.verdict.word == "allow":
            call, domains = made.call, found.verdict.risk.domains
            self._outcomes.began(found.entry, About(call.project, call.session, domains, pipeline.clock()))
        return found

    def _not_wanted(self, decided: Decided) -> None:
        """A client took its call back before the verdict was on the record: nothing ran."""
        if decided.asked:
            self._asking.withdraw(decided.entry)
        elif decided.verdict.word == "allow":
            self._outcomes.add(decided.entry, "cancelled", evidence="client")

    def _hold(self, made: Call, judged: Judged) -> str:
        return why_held(made.call, judged, made.client.visit.tainted_by)

    def _force(self, project: str) -> InForce:
        """What holds for the calls of this moment of the loop: looked up once, however many they are."""
        found = self._forces.get(project)
        if found is None:
            if not self._forces:
                # INVARIANT: a change takes effect on the next call: nothing that comes later finds this.
                asyncio.get_running_loop().call_soon(self._forces.clear)
            found = self._forces[project] = self._pipeline.policies.of(project, "gateway")
        return found

    def _falls_back(self, call: ToolCall) -> bool:
        profile = self._pipeline.policies.of(call.project, "gateway").policy.profile
        return profile is not None and profile.fallback == "allow"


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
