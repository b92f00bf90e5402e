"""What policy says to a call of a script, at the moment it is made; and the word the script hears.

The runner asks for every call. Verdicts are the pipeline's; here a call is only put into its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec

from checkrein.call import ToolCall, Verdict
from checkrein.doors.gateway.catalogue import Catalogue, Offered
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.doors.gateway.scripts.run import DOOR, Run
from checkrein.execute.sandbox import Wanted
from checkrein.finishing import About
from checkrein.judged import Considered, Decided, Judged
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce
from checkrein.store import Transaction
from checkrein.taint import why_held

Work = Callable[[Transaction], None]
# Why a question is not put: somebody said no a moment ago, or too many wait already.
_WORD_OF_STAGE = {"repeat": "elicitation_declined", "flood": "rate_limited"}


class Judge:
    """The pipeline, as scripts' calls meet it."""

    def __init__(
        self,
        pipeline: Pipeline,
        catalogue: Catalogue,
        no_tool: Callable[[str], str],
        outcomes: Outcomes,
        mail: Mail,
        user: str,
    ) -> None:
        self._pipeline, self._catalogue, self._no_tool = pipeline, catalogue, no_tool
        self._outcomes, self._mail, self._user = outcomes, mail, user

    def offered(self, run: Run, wanted: Wanted) -> Offered | str:
        """The tool as it is now, or why it cannot be called."""
        pair = run.script.names.get(wanted.name)
        if pair is None:
            return f"There is no tool {wanted.name[:160]!r}."
        name = "__".join(pair)
        return self._catalogue.tool(name) or self._catalogue.hidden(name) or self._no_tool(name)

    def call(self, run: Run, wanted: Wanted, offered: Offered | None, trusted: bool) -> ToolCall:
        """A script's call in the words every door uses; the arguments are exactly what would be executed."""
        row, project = run.row, run.row.project
        server, tool = run.script.names.get(wanted.name, ("", wanted.name))
        return ToolCall(
            tool=tool,
            server=server,
            arguments=wanted.arguments,
            door=DOOR,
            agent=row.agent,
            user=self._user,
            session=row.session,
            project=project,
            cwd=project if project.startswith("/") else "",
            call_id=f"{row.id}:{wanted.id}",
            annotations=offered.hints(trusted) if offered is not None else {},
            definition=offered.hash if offered is not None else "",
            profile=row.profile,
        )

    def force(self, run: Run) -> InForce:
        """What is in force for this script now."""
        return self._pipeline.policies.of(run.row.project, DOOR, profile=run.row.profile)

    def consider(self, run: Run, call: ToolCall, possible: Callable[[], bool]) -> Considered | Decided:
        """The verdict of this moment, not recorded yet."""

        def hold(judged: Judged) -> str:
            if run.script.asks(call.server or "", call.tool):
                return "Whoever started the script wants to be asked about this tool."
            return why_held(call, judged, run.row.tainted_by)

        return self._pipeline.consider(call, hold=hold, asking=possible)

    def at_once(self, considered: Considered | Decided) -> bool:
        """Whether it is a plain allow, whose record is one of many and waits for no disk."""
        return isinstance(considered, Considered) and considered.judged.alone and not considered.durable

    async def settle(self, considered: Considered | Decided, also: Work | None = None) -> Decided:
        """Put the verdict on the record; only then it counts. `also` happens with a plain allow, as one."""
        if isinstance(considered, Decided):
            return considered
        # With `also` it was found to be one.
        if also is None and not self.at_once(considered):
            return await asyncio.shield(asyncio.to_thread(self._pipeline.settle, considered))
        pipeline = self._pipeline
        record = pipeline.settling(considered)

        def work(tx: Transaction) -> None:
            # First, so that rows of what went before and of this leave as one statement.
            if also is not None:
                also(tx)
            record(tx)

        letter = self._mail.send(work, partial(pipeline.settled, considered), alone=also is None)
        found = await letter.answer()
        call, domains = considered.call, found.verdict.risk.domains
        if found.verdict.word == "allow":
            about = About(call.project, call.session, domains, self._pipeline.clock())
            self._outcomes.began(found.entry, about)
        return found

    async def refuse(self, call: ToolCall, stage: str, why: str, remedy: str) -> Decided:
        return await asyncio.to_thread(self._pipeline.refuse, call, stage, why, remedy)

    def overruled(self, call: ToolCall) -> Verdict | None:
        """The deny that came after a person's yes, if one did."""
        verdict = self._pipeline.judge(call, approved=True).verdict
        return verdict if verdict.word == "deny" else None

    def word(self, run: Run, verdict: Verdict) -> str:
        """Why a call was refused, in one of the words a script can tell apart."""
        if verdict.stage in _WORD_OF_STAGE:
            return _WORD_OF_STAGE[verdict.stage]
        policy = self.force(run).policy
        for rules in (policy.rules, policy.project_rules):
            for each in rules.rules:
                if verdict.stage == "rules" and each.id == verdict.rule and each.when:
                    return "policy_arg"
        return "denied"

    def falls_back(self, run: Run, verdict: Verdict) -> bool:
        """Whether the profile whose ask list names the tool says yes where nobody can be asked."""
        profile = self.force(run).policy.profile
        return verdict.stage == "profile" and profile is not None and profile.fallback == "allow"

    def fallback(self, run: Run) -> bool:
        profile = self.force(run).policy.profile
        return profile is not None and profile.fallback == "allow"


def edited(call: ToolCall, arguments: dict[str, object]) -> ToolCall:
    return msgspec.structs.replace(call, arguments=arguments)
