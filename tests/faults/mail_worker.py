"""A loop that decides as the gateway does, many calls in one moment, and tells each; made to be killed."""

import asyncio
import os
import sys
from functools import partial

from checkrein.call import ToolCall
from checkrein.core.decision import DecisionRequest
from checkrein.doors.gateway.mail import Mail
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.finishing import About
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import rules
from checkrein.store.sqlite import SqliteStore

AT_ONCE = 12
ALLOW = {"action": "allow", "server": "notes", "pattern": "*"}


def say(kind, entry):
    os.write(1, f"{kind} {entry}\n".encode())


async def one(pipeline, mail, outcomes, number):
    """The way of one caller: a verdict, which is told, and then an outcome, of which nobody is told."""
    while True:
        number += 1
        call = ToolCall(tool="read", server="notes", door="gateway", project="/p", arguments={"n": number})
        evaluation = pipeline.evaluate(DecisionRequest(call))
        if not evaluation.plain:
            sys.exit("this is no plain allow")
        work, made = pipeline.commit_work(evaluation), partial(pipeline.committed, evaluation)
        decided = await mail.send(work, made).answer()
        say(decided.verdict.word, decided.entry)
        about = About("/p", "", decided.verdict.risk.domains, pipeline.clock())
        outcomes.began(decided.entry, about)
        outcomes.add(decided.entry, "failure" if number % 7 == 0 else "success")
        await asyncio.sleep(0)


async def main():
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    if pipeline.ledger.broken:
        sys.exit(f"broken: {pipeline.ledger.broken}")
    if not rules.all_rules(pipeline.store):
        pipeline.store.write(lambda tx: rules.add_rule(tx, "r1", ALLOW, 1.0))
    outcomes = Outcomes(pipeline, sys.exit)
    mail = Mail(pipeline.store, outcomes.meanwhile, outcomes.enough)
    await asyncio.gather(*(one(pipeline, mail, outcomes, number * 1000) for number in range(AT_ONCE)))


asyncio.run(main())
