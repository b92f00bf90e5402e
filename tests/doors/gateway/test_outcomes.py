"""Outcomes are handed over a few at a time, in order, and all of them before the end."""

import asyncio
import threading

import pytest

from checkrein.call import ToolCall
from checkrein.doors.gateway import outcomes as module
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.errors import StoreError
from checkrein.finishing import About, Finishing
from checkrein.ledger.entries import fold
from checkrein.store import records
from checkrein.store.rules import add_rule
from checkrein.store.trust import trust_of
from doors.gateway.loop_turns import loop_turns
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon


@pytest.fixture(autouse=True)
def allowed(pipeline):
    rule = {"action": "allow", "server": "notes", "pattern": "*"}
    pipeline.store.write(lambda tx: add_rule(tx, "r1", rule, 1.0))


def decide(pipeline, project, number=0):
    call = ToolCall(tool="read", server="notes", door="gateway", project=project, arguments={"n": number})
    return pipeline.decide(call).entry


def outcome(pipeline, entry):
    return fold(records.of_entries(pipeline.store, [entry]))[0].outcome


def test_they_are_recorded_a_moment_later(pipeline, project):
    entry = decide(pipeline, project)

    async def go():
        kept = Outcomes(pipeline, print)
        kept.add(entry, "success")
        assert outcome(pipeline, entry) != "success"
        await soon(lambda: outcome(pipeline, entry) == "success")

    asyncio.run(go())


def test_the_end_waits_for_them(pipeline, project):
    entries = [decide(pipeline, project, number) for number in range(20)]

    async def go():
        kept = Outcomes(pipeline, print)
        for entry in entries:
            kept.add(entry, "failure", evidence="tool error")
        await kept.close()

    asyncio.run(go())
    assert {outcome(pipeline, entry) for entry in entries} == {"failure"}


def test_many_do_not_wait_for_the_moment(pipeline, project, monkeypatch):
    monkeypatch.setattr(module, "MOST", 5)
    monkeypatch.setattr(module, "SECONDS", 3600.0)
    entries = [decide(pipeline, project, number) for number in range(5)]

    async def go():
        kept = Outcomes(pipeline, print)
        for entry in entries:
            kept.add(entry, "success")
        await soon(lambda: outcome(pipeline, entries[-1]) == "success")

    asyncio.run(go())


@pytest.mark.invariant(
    "what is known is used once, so that a second word about a call is looked up and dropped"
)
def test_what_is_known_counts_once_a_second_word_is_dropped(pipeline, project):
    entry = decide(pipeline, project)

    async def go():
        kept = Outcomes(pipeline, print)
        kept.began(entry, About(project, "", ("mcp:notes",), pipeline.clock()))
        kept.add(entry, "success")
        kept.add(entry, "failure")
        await kept.close()

    asyncio.run(go())
    assert outcome(pipeline, entry) == "success"


def test_what_cannot_be_recorded_is_said(pipeline, project, monkeypatch):
    said = []
    entry = decide(pipeline, project)

    def broken(_outcomes):
        raise StoreError("The store is closed.")

    monkeypatch.setattr(pipeline, "finish_soon", broken)

    async def go():
        kept = Outcomes(pipeline, said.append)
        kept.add(entry, "success")
        await kept.close()

    asyncio.run(go())
    assert "The store is closed." in said[0]


def poisoned(monkeypatch):
    """Some outputs cannot be written down."""
    finish = Finishing._finish

    def fails(self, tx, about, done, lessons, force):
        if done.output == "poison":
            raise RuntimeError("it cannot be written down")
        finish(self, tx, about, done, lessons, force)

    monkeypatch.setattr(Finishing, "_finish", fails)


@pytest.mark.invariant("an outcome that cannot be written down takes no other one's along")
def test_one_that_cannot_be_written_down_takes_no_other_along(pipeline, project, monkeypatch):
    entries = [decide(pipeline, project, number) for number in range(3)]
    said = []
    poisoned(monkeypatch)

    async def go():
        made = Outcomes(pipeline, said.append)
        for number, entry in enumerate(entries):
            made.add(entry, "success", output="poison" if number == 1 else "fine")
        await made.close()

    asyncio.run(go())
    pipeline.store.write(lambda _tx: None)
    assert [outcome(pipeline, each) for each in entries] == ["success", "pending", "success"]
    assert len(said) == 1 and "cannot be written down" in said[0]


def trust(pipeline, project):
    return trust_of(pipeline.store, project).get("mcp:notes", {}).get("failures", 0)


def test_a_failure_waits_for_no_company(pipeline, project, monkeypatch):
    """Whoever ends us right after a call failed gains nothing by it."""
    monkeypatch.setattr(module, "SECONDS", 3600.0)
    entries = [decide(pipeline, project, number) for number in range(2)]

    async def go():
        kept = Outcomes(pipeline, print)
        kept.add(entries[0], "success")
        kept.add(entries[1], "failure")
        await soon(lambda: outcome(pipeline, entries[1]) == "failure")
        assert outcome(pipeline, entries[0]) == "success"

    asyncio.run(go())
    assert trust(pipeline, project) == 1


@pytest.mark.invariant("trust is never higher because the store was full for a while")
def test_a_failure_that_met_a_full_disk_is_recorded_when_there_is_room(pipeline, project, monkeypatch):
    entries, said, tries = [decide(pipeline, project, number) for number in range(2)], [], []
    finish_soon = pipeline.finish_soon

    def counted(outcomes):
        tries.append(finish_soon(outcomes))
        return tries[-1]

    async def time_passes_until(check):
        while not check():
            await pass_seconds(module.AGAIN_SECONDS)

    monkeypatch.setattr(pipeline, "finish_soon", counted)
    pages = pipeline.store.query("PRAGMA page_count")[0][0]

    async def go():
        kept = Outcomes(pipeline, said.append)
        pipeline.store._writer.execute(f"PRAGMA max_page_count = {pages}")
        full = [decide(pipeline, project, number) for number in range(100, 160)]
        assert pipeline.decide(ToolCall(tool="read", project=project)).verdict.word == "deny" and full
        kept.add(entries[0], "success", output="x" * 4_000)
        kept.add(entries[1], "failure", output="x" * 4_000)
        # It is tried again and again while there is no room.
        await time_passes_until(lambda: len(tries) > 3 and tries[-1].done())
        assert outcome(pipeline, entries[1]) != "failure"
        pipeline.store._writer.execute("PRAGMA max_page_count = 1000000")
        await time_passes_until(lambda: outcome(pipeline, entries[1]) == "failure")
        await kept.close()

    run_on_moved_loop(go())
    assert trust(pipeline, project) == 1 and len(said) == 1 and "full" in said[0]


@pytest.mark.invariant("nor because of what a tool said while it failed")
def test_a_failure_is_recorded_although_what_was_said_cannot_be(pipeline, project, monkeypatch):
    entries, said = [decide(pipeline, project, number) for number in range(2)], []
    poisoned(monkeypatch)

    async def go():
        kept = Outcomes(pipeline, said.append)
        kept.add(entries[0], "success", output="poison")
        kept.add(entries[1], "failure", output="poison")
        await kept.close()

    asyncio.run(go())
    assert [outcome(pipeline, each) for each in entries] == ["pending", "failure"]
    assert trust(pipeline, project) == 1 and len(said) == 2


def test_the_end_also_waits_for_what_was_handed_over_before(pipeline, project, monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    entries = [decide(pipeline, project, number) for number in range(20)]
    held, go_on = threading.Event(), threading.Event()

    def slow(_tx):
        held.set()
        go_on.wait(PATIENCE)

    async def go():
        kept = Outcomes(pipeline, print)
        thread = threading.Thread(target=pipeline.store.write, args=(slow,))
        thread.start()
        held.wait(PATIENCE)
        for entry in entries:
            kept.add(entry, "success")
        closing = asyncio.ensure_future(kept.close())
        await loop_turns()
        assert not closing.done()
        go_on.set()
        await closing
        assert {outcome(pipeline, entry) for entry in entries} == {"success"}
        thread.join()

    asyncio.run(go())


def test_calls_that_never_end_fill_no_memory_and_cost_no_outcome(pipeline, project, monkeypatch):
    monkeypatch.setattr(module, "MOST_BEGUN", 4)
    entries = [decide(pipeline, project, number) for number in range(10)]

    async def go():
        kept = Outcomes(pipeline, print)
        for entry in entries:
            kept.began(entry, About(project, "", ("mcp:notes",), pipeline.clock()))
        assert len(kept._begun) == 4
        for entry in entries:
            kept.add(entry, "failure")
        await kept.close()

    asyncio.run(go())
    assert {outcome(pipeline, entry) for entry in entries} == {"failure"}
    assert trust(pipeline, project) == 10
