"""A program's own word on a call, and the verdict with it: it speaks only where no person did.

A gate with a store of its own calls this for every call; `library` does for one that asks the server.
"""

from __future__ import annotations

from functools import partial

import msgspec

from checkrein.asking import consented
from checkrein.call import Category, Reason, ToolCall, Verdict
from checkrein.judged import Considered, Decided
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


def consider(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Considered | Decided:
    """The verdict with the program's own wish in it, on its way to the record."""
    found = pipeline.consider(call, phase=phase)
    if isinstance(found, Decided):
        return found
    judged, verdict = found.judged, found.judged.verdict
    again = partial(decide, pipeline, call, wish, phase)
    held = wish.hold and (not wish.mild or verdict.stage in _SILENT)
    if verdict.word == "allow" and held and judged.consent is None:
        consent = pipeline.asking.grant(call, verdict.risk)
        if consent is None:
            return pipeline.consider(call, phase=phase, hold=wish.hold, asking=True)
        # A person said yes to this for longer than once.
        judged = msgspec.structs.replace(judged, verdict=consented(verdict, consent), consent=consent)
        return msgspec.structs.replace(found, judged=judged, again=again)
    if verdict.word != "ask":
        return found
    if not wish.hold and wish.let and _may_let(verdict, wish):
        judged = msgspec.structs.replace(judged, verdict=_let(verdict, wish.let))
        return msgspec.structs.replace(found, judged=judged, again=again)
    return pipeline.consider(call, phase=phase, asking=True)


def decide(pipeline: Pipeline, call: ToolCall, wish: Wish, phase: str) -> Decided:
    """The verdict, recorded; an ask is a question that waits."""
    considered = consider(pipeline, call, wish, phase)
    return considered if isinstance(considered, Decided) else pipeline.settle(considered)


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
