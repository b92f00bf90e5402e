"""The OpenAI Agents SDK, the real one, with a scripted model: gated tools and interrupted runs."""

import asyncio
import json

import pytest

from checkrein import Gate
from checkrein.errors import InputError
from checkrein.store.trust import trust_of
from checkrein.testing import ScriptedGate, edit
from doors.library.adapters.lazily import Lazily
from doors.library.adapters.pages import page_of
from doors.library.behaviour import PATHS, Heard, expected, project_for, seed_trust, write_settings
from doors.library.rooms import entries_of, gate_in, recorded

sdk = Lazily("doors.library.adapters.openai_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")


ALLOW_READ = ['rules=[{action="allow",tool="read_note"}]']


# -- the behaviour suite -------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_behaviour_suite(case, tmp_path):
    project = project_for(case, tmp_path)
    write_settings(case)
    ran = []

    async def body(_context, text):
        ran.append(text)
        return "ok"

    tool = sdk.FunctionTool(case.tool, "A tool.", {"type": "object"}, body, strict_json_schema=False)
    model = sdk.script([sdk.call(case.tool, **case.arguments)])
    with Gate(tmp_path / "gate", project=project, phase=case.phase, asks="raise") as gate:
        seed_trust(case, gate.authority.pipeline.store, project)
        approvals = sdk.Approvals(gate)
        result = sdk.run(sdk.agent_of(approvals, [tool], model))
        entry = recorded(gate.authority.pipeline.store)
        if result.interruptions:
            word, stage = "ask", approvals.question(result.interruptions[0]).verdict.stage
        else:
            word, stage = ("allow" if ran else "deny"), entry.stage
        assert entry.door == "library" and entry.verdict == word
        assert Heard(word, stage, bool(ran)) == expected(case), entry.reasons


# -- waiting in place ----------------------------------------------------------------------------------------


def test_what_a_rule_allows_runs_without_asking_and_is_on_the_record():
    desk, model = sdk.Desk(), sdk.script([sdk.call("read_note", name="a")])
    with ScriptedGate(settings=ALLOW_READ) as gate:
        assert sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model)).final_output == "done"
        assert sdk.outputs(model) == {"c1": "note a"}
        assert gate.asked == []
        assert [(each.tool_name, each.verdict, each.result) for each in gate.entries()] == [
            ("mcp__python__read_note", "allow", "success")
        ]


def test_a_no_and_its_reason_reach_the_model():
    desk, model = sdk.Desk(), sdk.script([sdk.call("book", to="eve")])
    with ScriptedGate({"book": "no: eve is not on the list"}) as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert desk.booked == []
        assert "eve is not on the list" in sdk.outputs(model)["c1"]


def test_arguments_are_edited_before_the_tool_runs():
    desk, model = sdk.Desk(), sdk.script([sdk.call("book", to="ada", amount=900)])
    with ScriptedGate({"book": edit(amount=9)}) as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert desk.booked == [("ada", 9)]


def test_parallel_calls_are_answered_one_by_one():
    calls = [
        sdk.call("book", "c1", to="ada"),
        sdk.call("book", "c2", to="eve"),
        sdk.call("read_note", "c3", name="n"),
    ]
    desk, model = sdk.Desk(), sdk.script(calls)
    with ScriptedGate(lambda each: each["arguments"]["to"] == "ada", settings=ALLOW_READ) as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        told = sdk.outputs(model)
        assert sorted(map(str, desk.booked)) == sorted(["('ada', 1)", "n"])
        assert told["c1"] == "1 for ada" and "no" in told["c2"] and told["c3"] == "note n"


def test_outcomes_are_recorded_and_the_tools_own_way_with_failures_stays():
    desk, model = sdk.Desk(), sdk.script([sdk.call("break_it")])
    with ScriptedGate("yes") as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert "An error occurred" in sdk.outputs(model)["c1"]
        assert [each.result for each in gate.entries()] == ["failure"]


@pytest.mark.parametrize("asks", ["wait", "raise"])
def test_failure_costs_trust_and_success_earns_it(asks):
    desk = sdk.Desk()
    with ScriptedGate("yes", settings=['rules=[{action="allow",pattern="*"}]'], asks=asks) as gate:
        approvals = sdk.Approvals(gate)
        sdk.run(sdk.agent_of(approvals, desk.tools, sdk.script([sdk.call("read_note", name="a")])))
        sdk.run(sdk.agent_of(approvals, desk.tools, sdk.script([sdk.call("break_it", "c2")])))
        assert [each.result for each in gate.entries()] == ["success", "failure"]
        (earned,) = trust_of(gate.authority.pipeline.store, gate.project).values()
        assert (earned["successes"], earned["failures"]) == (1, 1)


@pytest.mark.parametrize("asks", ["wait", "raise"])
def test_a_tools_own_needs_approval_only_asks_for_more(asks):
    async def odd(_context, given, _id):
        return given["name"] != "a"

    desk = sdk.Desk()
    desk.tools[1].needs_approval = odd
    model = sdk.script([sdk.call("read_note", "c1", name="a"), sdk.call("read_note", "c2", name="b")])
    with ScriptedGate("no: not b", settings=ALLOW_READ, asks=asks) as gate:
        result = sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert desk.booked == ["a"]
        assert len(gate.asked) == (asks == "wait")
        assert len(result.interruptions) == (asks == "raise")


def test_a_needs_approval_that_fails_asks():
    def broken(_context, _given, _id):
        raise RuntimeError

    desk, model = sdk.Desk(), sdk.script([sdk.call("read_note", name="a")])
    desk.tools[1].needs_approval = broken
    with ScriptedGate("no", settings=ALLOW_READ) as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert desk.booked == [] and len(gate.asked) == 1


def test_arguments_that_are_no_object_run_nothing():
    desk = sdk.Desk()
    bad = sdk.function_call("book", "{}", call_id="c1")
    bad.arguments = '["ada"]'
    model = sdk.script([bad])
    with ScriptedGate("yes") as gate:
        sdk.run(sdk.agent_of(sdk.Approvals(gate), desk.tools, model))
        assert desk.booked == [] and sdk.outputs(model)["c1"] == sdk.UNREADABLE


def test_tools_that_do_not_run_here_cannot_be_gated():
    with ScriptedGate() as gate:
        approvals = sdk.Approvals(gate)
        with pytest.raises(InputError, match="WebSearchTool"):
            approvals.tool(sdk.WebSearchTool())
        with pytest.raises(InputError, match="is an agent"):
            approvals.tool(sdk.Agent(name="sub").as_tool("sub", "A sub agent."))


def test_the_pages_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = page_of("library-openai-agents.md")
    model = sdk.script([sdk.call("book", "c1", room="red"), sdk.call("book", "c2", room="blue")])
    kept = asyncio.run(page["ask"]("Book two rooms.", model))
    done = asyncio.run(page["go_on"](kept, lambda each: each.call.arguments["room"] == "red", model))
    assert done == "done"
    told = sdk.outputs(model)
    assert told["c1"] == "red is yours for 1" and "said no" in told["c2"]


# -- interrupted runs ----------------------------------------------------------------------------------------


def test_an_ask_interrupts_the_run_and_harmless_siblings_run(tmp_path):
    desk, model = (
        sdk.Desk(),
        sdk.script([sdk.call("book", "c1", to="ada"), sdk.call("read_note", "c2", name="n")]),
    )
    with gate_in(tmp_path, settings=ALLOW_READ) as gate:
        approvals = sdk.Approvals(gate)
        agent = sdk.agent_of(approvals, desk.tools, model)
        result = sdk.run(agent)
        assert [each.tool_name for each in result.interruptions] == ["book"] and desk.booked == ["n"]
        assert [each["id"] for each in gate.pending()] == [approvals.waiting[0].entry]

        # Nobody has answered: the run stops at the same question again.
        result = sdk.run(agent, asyncio.run(approvals.settle(result)))
        assert len(result.interruptions) == 1 and len(gate.pending()) == 1

        gate.answer(approvals.question(result.interruptions[0]), "yes")
        result = sdk.run(agent, asyncio.run(approvals.settle(result)))
        assert result.final_output == "done" and desk.booked == ["n", ("ada", 1)]
        assert sdk.outputs(model) == {"c1": "1 for ada", "c2": "note n"}
        assert [each.result for each in entries_of(gate)] == ["success", "success"]


def test_settle_waits_for_people(tmp_path):
    desk, model = sdk.Desk(), sdk.script([sdk.call("book", to="ada")])
    with gate_in(tmp_path) as gate:
        approvals = sdk.Approvals(gate)
        agent = sdk.agent_of(approvals, desk.tools, model)
        result = sdk.run(agent)

        async def both():
            waits = asyncio.create_task(approvals.settle(result, wait=True))
            await asyncio.sleep(0)
            assert not waits.done()
            await asyncio.to_thread(gate.answer, approvals.waiting[0], "yes")
            return await waits

        assert sdk.run(agent, asyncio.run(both())).final_output == "done"
        assert desk.booked == [("ada", 1)]


def interrupted(folder, gate, **arguments):
    desk, model = sdk.Desk(), sdk.script([sdk.call("book", **(arguments or {"to": "ada"}))])
    approvals = sdk.Approvals(gate)
    agent = sdk.agent_of(approvals, desk.tools, model)
    return desk, model, approvals, agent, sdk.run(agent)


def test_resuming_the_same_state_twice_runs_once(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, model, approvals, agent, result = interrupted(tmp_path, gate)
        kept = approvals.keep(result)
        gate.answer(approvals.waiting[0], "yes")
        sdk.run(agent, asyncio.run(approvals.settle(result)))
        model.enqueue([sdk.assistant_message("done")])
        again = asyncio.run(approvals.restore(agent, kept))
        sdk.run(agent, asyncio.run(approvals.settle(again)))
        assert desk.booked == [("ada", 1)] and "used before" in sdk.outputs(model)["c1"]


def test_an_approval_binds_to_the_exact_call(tmp_path):
    """Whatever makes the SDK invoke the tool with other arguments, the approval is not for those."""
    with gate_in(tmp_path) as gate:
        desk, _, approvals, agent, _ = interrupted(tmp_path, gate)
        gate.answer(approvals.waiting[0], "yes")

        def invoke(**arguments):
            text = json.dumps(arguments)
            context = sdk.ToolContext(None, tool_name="book", tool_call_id="c1", tool_arguments=text)
            return asyncio.run(agent.tools[0].on_invoke_tool(context, text))

        assert invoke(to="eve") == sdk.LOST and invoke(to="ada", amount=2) == sdk.LOST and desk.booked == []
        assert invoke(to="ada") == "1 for ada" and "used before" in invoke(to="ada")
        assert desk.booked == [("ada", 1)] and gate.pending() == []


def test_a_question_that_was_changed_is_no_question(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, _, approvals, agent, result = interrupted(tmp_path, gate)
        gate.answer(approvals.waiting[0], "yes")
        changed = approvals.keep(result).replace("ada", "eve")
        fresh = sdk.Approvals(gate)
        agent = sdk.agent_of(fresh, desk.tools, sdk.script())
        state = asyncio.run(fresh.restore(agent, changed))
        with pytest.raises(InputError, match="no question about this call"):
            asyncio.run(fresh.settle(state))
        assert desk.booked == []


def test_an_approval_the_sdk_was_told_of_counts_as_the_programs_person(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, _, _, agent, result = interrupted(tmp_path, gate)
        state = result.to_state()
        state.approve(state.get_interruptions()[0])
        sdk.run(agent, state)
        assert desk.booked == [("ada", 1)]
        assert [(each.answer, each.result) for each in entries_of(gate)] == [("approved", "success")]


def test_a_standing_approval_of_the_sdks_is_none_of_ours(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, model, _, agent, result = interrupted(tmp_path, gate)
        model.extend([[sdk.call("book", "c2", to="eve")], [sdk.assistant_message("done")]])
        model._steps.pop(0)
        state = result.to_state()
        state.approve(state.get_interruptions()[0], always_approve=True)
        sdk.run(agent, state)
        assert desk.booked == [("ada", 1)] and sdk.outputs(model)["c2"] == sdk.LOST
        assert gate.pending() == []


def test_a_state_without_its_questions_runs_nothing(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, model, approvals, agent, result = interrupted(tmp_path, gate)
        gate.answer(approvals.waiting[0], "yes")
        fresh = sdk.Approvals(gate)
        agent = sdk.agent_of(fresh, desk.tools, model)
        state = asyncio.run(sdk.RunState.from_json(agent, result.to_state().to_json()))
        sdk.run(agent, asyncio.run(fresh.settle(state)))
        assert desk.booked == [] and sdk.outputs(model)["c1"] == sdk.LOST


def test_a_policy_that_denies_by_now_wins(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, model, approvals, agent, result = interrupted(tmp_path, gate)
        gate.answer(approvals.waiting[0], "yes")
        kept = approvals.keep(result)
    with gate_in(tmp_path, settings=['rules=[{action="deny",tool="book"}]']) as gate:
        fresh = sdk.Approvals(gate)
        agent = sdk.agent_of(fresh, desk.tools, model)
        state = asyncio.run(fresh.restore(agent, kept))
        sdk.run(agent, asyncio.run(fresh.settle(state)))
        assert desk.booked == [] and "refused this call" in sdk.outputs(model)["c1"]


@pytest.mark.parametrize("text", ["", "{", '{"state": {}, "waiting": [], "format": 2}', "[1]"])
def test_what_is_no_kept_run_is_refused(text, tmp_path):
    with gate_in(tmp_path) as gate, pytest.raises(InputError):
        asyncio.run(sdk.Approvals(gate).restore(sdk.Agent(name="clerk"), text))
