"""A program's own word on a call, and the verdict with it: it speaks only where no person did.

A gate with a store of its own calls this for every call; `library` does for one that asks the server.
"""

from __future__ import annotations

import msgspec

from checkrein.asking import consented
from checkrein.call import Category, Reason, ToolCall, Verdict
from checkrein.core.decision import Decided, DecisionRequest, Evaluation
from checkrein.pipeline import Pipeline

# Stages that speak where people wrote nothing about a call.
_SILENT = frozenset({"unmatched", "trust_gate", "autonomy"})
_MOST_LET = 256


class Wish(msgspec.Struct, frozen=True):
    """What the program itself says of a call: why a person is asked, or why none need be."""

    hold: str = ""
    let: str = ""
    # Hold only what nobody else spoke for: a person's own rule counts for more.
    mild: bool = False
    # The worst a call may be that runs because the program says so.
    upto: Category = Category.medium


def evaluate(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Evaluation:
    """The verdict with the program's own wish in it, on its way to the record; an ask opens a question."""
    request = DecisionRequest(call, phase)
    found = pipeline.evaluate(request)
    judged, verdict = found.judged, found.verdict
    held = wish.hold and (not wish.mild or verdict.stage in _SILENT)
    if judged is not None and verdict.word == "allow" and held and judged.consent is None:
        consent = pipeline.asking.grant(call, verdict.risk)
        if consent is None:
            asked = msgspec.structs.replace(request, ask_reason=wish.hold)
            return pipeline.add_question(pipeline.evaluate(asked))
        # A person said yes to this for longer than once.
        given = consented(verdict, consent)
        judged = msgspec.structs.replace(judged, verdict=given, consent=consent)
        return msgspec.structs.replace(found, verdict=given, judged=judged)
    if (
        judged is not None
        and verdict.word == "ask"
        and not wish.hold
        and wish.let
        and _may_let(verdict, wish)
    ):
        let = _let(verdict, wish.let)
        return msgspec.structs.replace(
            found, verdict=let, judged=msgspec.structs.replace(judged, verdict=let)
        )
    return pipeline.add_question(found)


def decide(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Decided:
    """The verdict, recorded; an ask is a question that waits."""
    while True:
        if (decided := pipeline.commit(evaluate(pipeline, call, wish, phase))) is not None:
            return decided


def _may_let(verdict: Verdict, wish: Wish) -> bool:
    # INVARIANT: a program's wish never outranks the floor, a phase, or what a person wrote.
    return verdict.stage in _SILENT and verdict.risk.category <= min(wish.upto, Category.high)


_given: dict[tuple[int, str], tuple[Verdict, Verdict]] = {}


def _let(verdict: Verdict, why: str) -> Verdict:
    """The same call allowed because the program says so; the very same verdict gets the very same answer."""
    known = _given.get((id(verdict), why))
    if known is not None and known[0] is verdict:
        return known[1]
    let = msgspec.structs.replace(
        verdict,
        decision="auto_approved",
        stage="program",
        reasons=(Reason(why), *verdict.risk.reasons),
        remedy="",
    )
    if len(_given) >= _MOST_LET:
        _given.clear()
    _given[id(verdict), why] = verdict, let
    return let
