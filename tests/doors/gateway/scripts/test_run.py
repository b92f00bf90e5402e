"""What a caller may want stricter, and what is kept of a run in memory."""

import asyncio

import pytest

from checkrein.doors.gateway.scripts.run import (
    MOST_PATTERNS,
    Answered,
    Narrow,
    Run,
    Script,
    limits_of,
    narrowed,
)
from checkrein.settings import Evaluation
from checkrein.store.runs import CallRow, RunRow


def row(**more):
    given = dict.fromkeys(("owner", "session", "agent", "project", "profile", "holder"), "")
    times = {"made_at": 1.0, "changed_at": 1.0, "expires_at": 9.0}
    return RunRow(id="r", language="python", **{**given, **times, "state": "running", **more})


def test_a_caller_can_be_stricter():
    narrow = narrowed({"deny": ["srv__del*"], "ask": ["srv__echo"], "fatal": True})
    assert narrow.denies("srv__delete") and not narrow.denies("srv__echo")
    assert narrow.asks("srv__echo") and not narrow.asks("srv__delete") and narrow.fatal
    assert narrowed({}) == Narrow()


@pytest.mark.parametrize(
    "wrong",
    [
        {"deny": "srv__echo"},
        {"ask": [1]},
        {"deny": [""]},
        {"fatal": "yes"},
        {"deny": ["x"] * (MOST_PATTERNS + 1)},
        {"ask": ["x" * 999]},
    ],
)
def test_what_cannot_be_meant_is_said(wrong):
    assert isinstance(narrowed(wrong), str)


def test_limits_are_the_users():
    found = limits_of(Evaluation(seconds=5, memory_mb=8, calls=3, output_kb=1, result_kb=2))
    assert (found.seconds, found.memory, found.calls) == (5, 8 << 20, 3)
    assert (found.output, found.result) == (1024, 2048)


def test_a_trail_says_what_was_called_and_by_whose_leave():
    async def work():
        run = Run(row(), Script(source="", language="python", names={}))
        for number in (2, 1):
            run.journal[number] = CallRow(
                run="r",
                number=number,
                tool=f"t{number}",
                argument_hash="",
                state="done",
                entry="",
                line=number,
                at=1.0,
                arguments="",
            )
        run.known[1] = Answered(verdict="allow")
        assert run.trail == [
            {"tool": "t1", "line": 1, "verdict": "allow", "state": "done"},
            {"tool": "t2", "line": 2, "verdict": "", "state": "done"},
        ]
        changed = run.changed
        run.tell()
        assert changed.is_set() and not run.changed.is_set() and not run.over
        run.set(state="done")
        assert run.over

    asyncio.run(work())
