"""What policy says to a call of a script, at the moment it is made; and the word the script hears.

The runner asks for every call. Verdicts are the pipeline's; here a call is only put into its words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from checkrein.call import ToolCall, Verdict
from checkrein.core.decision import Decided, DecisionRequest, Evaluation
from checkrein.doors.gateway.catalogue import Catalogue, Offered
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.doors.gateway.scripts.run import DOOR, Run
from checkrein.execute.sandbox import Wanted
from checkrein.finishing import About
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce
from checkrein.store import Transaction

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

    def policy(self, run: Run) -> InForce:
        """The effective policy for this script now."""
        return self._pipeline.policies.of(run.row.project, DOOR, profile=run.row.profile)

    def evaluate(self, run: Run, call: ToolCall) -> Evaluation:
        """The verdict of this moment, not recorded yet."""
        asks = run.script.asks(call.server or "", call.tool)
        reason = "Whoever started the script wants to be asked about this tool." if asks else ""
        return self._pipeline.evaluate(
            DecisionRequest(call, ask_reason=reason, tainted_by=run.row.tainted_by)
        )

    def add_question(self, evaluation: Evaluation) -> Evaluation:
        return self._pipeline.add_question(evaluation)

    async def commit(self, evaluation: Evaluation) -> Decided | None:
        """Record the verdict; only then it counts. None: what it rests on was used up, evaluate again."""
        if evaluation.plain:
            return await self.commit_with(evaluation, None)
        return await asyncio.shield(asyncio.to_thread(self._pipeline.commit, evaluation))

    async def commit_with(self, evaluation: Evaluation, also: Work | None) -> Decided:
        """The same for a plain allow, whose record is one of many; `also` happens in its transaction."""
        pipeline = self._pipeline
        record = pipeline.commit_work(evaluation)

        def work(tx: Transaction) -> None:
            # First, so that rows of what went before and of this leave as one statement.
            if also is not None:
                also(tx)
            record(tx)

        letter = self._mail.send(work, partial(pipeline.committed, evaluation), alone=also is None)
        found = await letter.answer()
        if found.verdict.word == "allow":
            call, domains = evaluation.request.call, found.verdict.risk.domains
            self._outcomes.began(found.entry, About(call.project, call.session, domains, pipeline.clock()))
        return found

    async def refuse(self, call: ToolCall, stage: str, why: str, remedy: str) -> Decided:
        return await asyncio.to_thread(self._pipeline.refuse, call, stage, why, remedy)

    def word(self, run: Run, stage: str, rule: str | None) -> str:
        """Why a call was refused, in one of the words a script can tell apart."""
        if stage in _WORD_OF_STAGE:
            return _WORD_OF_STAGE[stage]
        policy = self.policy(run).policy
        for rules in (policy.rules, policy.project_rules):
            for each in rules.rules:
                if stage == "rules" and each.id == rule and each.when:
                    return "policy_arg"
        return "denied"

    def falls_back(self, run: Run, verdict: Verdict) -> bool:
        """Whether the profile whose ask list names the tool says yes where nobody can be asked."""
        profile = self.policy(run).policy.profile
        return verdict.stage == "profile" and profile is not None and profile.fallback == "allow"
