"""A guest's call runs once, and only where the record bears out that it may; whatever comes of it is said."""

import asyncio
import os
import signal

import msgspec
import pytest

from checkrein.call import ToolCall
from checkrein.doors.gateway import bringing as bringing_module
from doors.gateway.house import SERVER
from patience import soon


def run(visitor, work):
    visitor.open()
    asyncio.run(work())


# -- what may run ---------------------------------------------------------------------------------------


def test_an_allowed_call_runs_and_is_on_the_record(visitor):
    async def work():
        call, entry = await visitor.judged("echo", {"n": 0})
        came = await visitor.carry(call, entry)
        assert (came.kind, came.text, came.failed) == ("result", 'said {"n": 0}', False)
        assert came.content["content"][0]["type"] == "text"
        found = await asyncio.to_thread(visitor.record, entry)
        assert (found.result, found.door, found.session_id) == ("success", "chat", "s1")

    run(visitor, work)
    assert visitor.house.ran("echo") == [{"n": 0}]


@pytest.mark.invariant("a verdict lets one call run, once, whoever brings it and however often")
def test_a_verdict_lets_one_call_run_however_often_it_is_brought(visitor, monkeypatch):
    async def work():
        call, entry = await visitor.judged("echo")
        found = await asyncio.gather(*(visitor.carry(call, entry) for _ in range(5)))
        assert sorted(each.kind for each in found) == ["result", *["unsent"] * 4]
        # Nor later, when nobody remembers it but the record.
        await asyncio.to_thread(visitor.record, entry)
        visitor.do(visitor.gateway._guests.bringing._taken.clear)
        again = await visitor.carry(call, entry)
        assert again.kind == "unsent" and "over" in again.text
        assert (await asyncio.to_thread(visitor.record, entry)).result == "success"

    run(visitor, work)
    assert len(visitor.house.ran("echo")) == 1


def test_what_is_remembered_of_calls_does_not_grow_for_ever(visitor, monkeypatch):
    monkeypatch.setattr(bringing_module, "_MOST_KEPT", 3)

    async def work():
        for _ in range(5):
            await visitor.made("echo")
        assert len(visitor.gateway._guests.bringing._taken) == 3

    run(visitor, work)


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"n": 2}},
        {"tool": "env"},
        {"session": "another"},
        {"server": "far"},
        {"door": "gateway"},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.invariant("what runs is the very call that was allowed or approved, as the ledger has it")
def test_what_runs_is_the_very_call_that_was_judged(visitor, change):
    async def work():
        call, entry = await visitor.judged("echo", {"n": 1})
        other = msgspec.structs.replace(call, **change)
        came = await visitor.carry(other, entry)
        assert came.kind == "unsent" and came.failed
        assert (await asyncio.to_thread(visitor.record, entry)).completed_at is None
        # What was judged may still run.
        assert (await visitor.carry(call, entry)).kind == "result"

    run(visitor, work)
    assert [line["arguments"] for line in visitor.house.log() if "tool" in line] == [{"n": 1}]


def test_a_call_is_not_carried_out_under_another_name(visitor):
    async def work():
        call, entry = await visitor.judged("echo")
        came = await visitor.guest.carry(call, "srv__env", entry, progress=print)
        assert came.kind == "unsent" and "another name" in came.text

    run(visitor, work)


def test_an_entry_nobody_knows_lets_nothing_run(visitor):
    async def work():
        call = await visitor.call("echo")
        for entry in ("", "nonsense", "e" * 10_000):
            assert (await visitor.carry(call, entry)).kind == "unsent"

    run(visitor, work)
    assert visitor.house.ran("echo") == []


def test_a_refused_call_does_not_run(visitor, add):
    visitor.allow_no_more()
    add("deny", "echo")

    async def work():
        came = await visitor.made("echo")
        assert came.kind == "unsent" and "Nobody allowed it" in came.text

    run(visitor, work)
    assert visitor.house.ran("echo") == []


@pytest.fixture
def asking(visitor, add):
    """Calls of echo ask."""
    visitor.allow_no_more()
    add("ask", "echo")
    visitor.open()

    async def asked(**more):
        call = await visitor.call("echo", {"n": 1}, **more)
        decided = await asyncio.to_thread(visitor.pipeline.decide, call, asking=True)
        assert decided.asked
        return call, decided.entry

    return asked


def test_an_approved_call_runs_once_it_was_taken(visitor, asking):
    async def work():
        call, entry = await asking()
        assert "Nobody allowed it" in (await visitor.carry(call, entry)).text
        visitor.pipeline.answer(entry, "approved", actor="ada", channel="console")
        # Whoever carries it out takes the yes first: else two could.
        assert "Nobody allowed it" in (await visitor.carry(call, entry)).text
        assert visitor.pipeline.claim(entry)
        assert (await visitor.carry(call, entry)).kind == "result"
        assert (await asyncio.to_thread(visitor.record, entry)).result == "success"

    asyncio.run(work())


@pytest.mark.parametrize("word", ["denied", "expired", "cancelled", "answered"])
def test_whatever_else_is_said_to_a_question_lets_nothing_run(visitor, asking, word):
    async def work():
        call, entry = await asking()
        visitor.pipeline.answer(entry, word, actor="ada", channel="console")
        assert not visitor.pipeline.claim(entry)
        assert (await visitor.carry(call, entry)).kind == "unsent"

    asyncio.run(work())
    assert visitor.house.ran("echo") == []


@pytest.mark.parametrize("readable", [True, False])
def test_arguments_a_person_wrote_run_in_the_place_of_the_others(visitor, asking, readable):
    async def work():
        call, entry = await asking()
        visitor.pipeline.answer(entry, "approved", actor="ada", channel="console", edited={"n": 2})
        assert visitor.pipeline.claim(entry)
        if not readable:
            # The record alone says which arguments were approved.
            lose = "UPDATE question SET sealed_edit = ''"
            await asyncio.to_thread(visitor.pipeline.store.write, lambda tx: tx.execute(lose))
        for arguments in ({"n": 1}, {"n": 3}):
            other = msgspec.structs.replace(call, arguments=arguments)
            assert (await visitor.carry(other, entry)).kind == "unsent"
        edited = msgspec.structs.replace(call, arguments={"n": 2})
        assert (await visitor.carry(edited, entry)).text == 'said {"n": 2}'

    asyncio.run(work())
    assert visitor.house.ran("echo") == [{"n": 2}]


@pytest.mark.invariant("a verdict is about the tool as it was accepted when it was given")
def test_a_verdict_is_about_the_tool_as_it_was_accepted_then(visitor):
    async def work():
        call, entry = await visitor.judged("echo")
        await visitor.made("evolve")
        await soon(lambda: not isinstance(visitor.hub.catalogue.hidden("srv__echo"), type(None)))
        await soon(lambda: visitor.hub.catalogue.hidden("srv__echo"))
        await asyncio.to_thread(visitor.accept, "srv", {"echo"})
        assert (await visitor.guest.tool("srv__echo")).definition != call.definition
        came = await visitor.carry(call, entry)
        assert came.kind == "unsent" and "changed" in came.text
        found = await asyncio.to_thread(visitor.record, entry)
        assert (found.result, found.evidence) == ("cancelled", "definition")
        assert (await visitor.made("echo")).kind == "result"

    run(visitor, work)
    assert len(visitor.house.ran("echo")) == 1


def test_arguments_that_do_not_fit_are_not_sent(visitor):
    async def work():
        came = await visitor.made("strict", {"n": "x"})
        assert came.kind == "unsent" and "`srv__strict` was not called" in came.text

    run(visitor, work)
    assert visitor.house.ran("strict") == []


# -- what comes of it -----------------------------------------------------------------------------------


def test_a_server_killed_meanwhile_leaves_a_fate_nobody_knows(visitor):
    async def work():
        call, entry = await visitor.judged("slow", {"seconds": 600})
        waits = asyncio.ensure_future(visitor.carry(call, entry))
        await soon(lambda: visitor.house.ran("slow"))
        os.kill(visitor.gateway.servers()[0]["pid"], signal.SIGKILL)
        came = await waits
        assert came.kind == "lost" and came.failed and "unknown" in came.text
        found = await asyncio.to_thread(visitor.record, entry)
        assert (found.result, found.evidence) == ("unknown", "connection lost")
        assert (await visitor.carry(call, entry)).kind == "unsent"

    run(visitor, work)
    assert len(visitor.house.ran("slow")) == 1


def test_a_tool_that_takes_too_long_is_given_up(visitor):
    visitor.house.server(trusted=True, timeout=0.3)

    async def work():
        call, entry = await visitor.judged("slow")
        came = await visitor.carry(call, entry)
        assert came.kind == "silent" and "0.3 seconds" in came.text and "unknown" in came.text
        assert (await asyncio.to_thread(visitor.record, entry)).result == "timeout"

    run(visitor, work)


def test_a_server_that_is_away_is_said_and_nothing_ran(visitor):
    async def work():
        call, entry = await visitor.judged("echo")
        visitor.gateway.stop("srv")
        came = await visitor.carry(call, entry)
        assert came.kind == "unsent" and "nothing ran" in came.text
        assert (await asyncio.to_thread(visitor.record, entry)).result == "cancelled"

    run(visitor, work)


@pytest.mark.parametrize(
    ("tool", "kind", "text"),
    [
        ("fail", "result", "it failed"),
        ("error", "error", "no such thing"),
        ("odd", "error", "cannot be read"),
    ],
)
def test_a_tools_failure_is_told_in_its_words(visitor, tool, kind, text):
    async def work():
        call, entry = await visitor.judged(tool)
        came = await visitor.carry(call, entry)
        assert came.kind == kind and came.failed and text in came.text
        assert (came.content or {}).get("isError", False) is (tool == "fail")
        assert (await asyncio.to_thread(visitor.record, entry)).result == "failure"

    run(visitor, work)


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_a_tool_that_wants_to_ask_somebody_hears_that_there_is_nobody(visitor, era):
    # It gives up where it is not answered.
    source = SERVER.replace(
        'done(text(json.dumps(ask("elicitation/create", {**FORM, **arguments.get("with", {})}))))',
        'said = ask("elicitation/create", FORM); done(text(json.dumps(said), isError="code" in said))',
    )
    visitor.house.server(trusted=True, source=source, env={"ERAS": era})

    async def work():
        call, entry = await visitor.judged("elicit")
        came = await visitor.carry(call, entry)
        assert came.kind == "input" and came.failed and "nobody it can ask" in came.text
        assert (await asyncio.to_thread(visitor.record, entry)).result == "failure"
        # The next one is not taken for it.
        assert (await visitor.made("fail")).kind == "result"
        assert "roots" in (await visitor.made("roots")).text

    run(visitor, work)


def test_a_tool_that_goes_on_unanswered_has_a_result(visitor):
    async def work():
        # Its result comes whatever becomes of the question.
        visitor.house.let_early_finish()
        came = await visitor.made("early")
        assert (came.kind, came.text) == ("result", "not waited for")

    run(visitor, work)


def test_no_result_of_a_younger_server_says_what_kind_it_is(visitor):
    visitor.house.server(trusted=True, env={"ERAS": "stateless"})

    async def work():
        came = await visitor.made("echo")
        assert came.kind == "result" and "resultType" not in came.content

    run(visitor, work)


def test_a_call_of_no_server_is_nobodys(visitor):
    async def work():
        call = ToolCall(tool="echo", door="chat", session="s1")
        decided = visitor.pipeline.decide(call)
        came = await visitor.guest.carry(call, "srv__echo", decided.entry, progress=print)
        assert came.kind == "unsent"

    run(visitor, work)
