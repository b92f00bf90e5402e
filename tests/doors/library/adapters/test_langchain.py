"""A gate in LangChain and LangGraph, with the real frameworks and a model that says what a script says."""

import asyncio
import json

import pytest

from checkrein import Denied, suspend
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.lazily import Lazily
from doors.library.adapters.pages import page_of
from doors.library.behaviour import PATHS

sdk = Lazily("doors.library.adapters.langchain_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    why = "LangChain, LangGraph or its SQLite checkpointer is not installed: the adapter is UNTESTED"
    for name in ("langchain", "langgraph", "langgraph.checkpoint.sqlite"):
        pytest.importorskip(name, reason=why)


WHY = "LangChain, LangGraph or its SQLite checkpointer is not installed: the adapter is UNTESTED"


@pytest.fixture
def garden():
    return sdk.Garden()


@pytest.fixture
def saver(tmp_path):
    with sdk.SqliteSaver.from_conn_string(str(tmp_path / "checkpoints")) as made:
        yield made


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


def test_what_a_rule_allows_runs_without_asking(room, user_settings, garden):
    allow(user_settings, "water")
    found = garden.agent(room.open(asks="raise", tools_of="garden"), sdk.ROSES).invoke(sdk.GO)
    assert (found["messages"][-1].content, garden.did) == ("done", [("roses", 1)])
    assert sdk.heard(found)["c0"].content == "roses has 1" and "checkrein" not in found
    [entry] = room.entries()
    assert (entry.tool_name, entry.call_id, entry.verdict, entry.stage, entry.result, entry.output) == (
        "mcp__garden__water",
        "c0",
        "allow",
        "rules",
        "success",
        "roses has 1",
    )


def test_arguments_too_deep_to_be_looked_at_do_not_run(room, user_settings, garden):
    allow(user_settings, "water")
    deep = json.loads("[" * 200 + "]" * 200)
    with pytest.raises(InputError, match="nested more than 128 deep"):
        garden.agent(room.open(asks="raise", tools_of="garden"), ("water", {"bed": deep})).invoke(sdk.GO)
    assert garden.did == []


def test_a_refusal_and_its_reason_reach_the_model(room, garden):
    ran = []
    bash = sdk.StructuredTool.from_function(ran.append, name="Bash", description="Runs.", args_schema=SCHEMA)
    gate = room.open(asks="raise")
    found = garden.agent(gate, ("Bash", {"command": "rm -rf /"}), tools=[bash]).invoke(sdk.GO)
    message = sdk.heard(found)["c0"]
    assert message.status == "error" and "Critical risk is always blocked" in message.content
    with pytest.raises(Denied):
        garden.agent(gate, ("Bash", {"command": "rm -rf /"}), tools=[bash], denials="raise").invoke(sdk.GO)
    assert ran == [] and {each.result for each in room.entries()} == {"denied"}


def test_a_question_interrupts_and_another_program_goes_on(room, garden, saver):
    agent = garden.agent(room.open(asks="raise"), sdk.ROSES, saver=saver)
    found = agent.invoke(sdk.GO, sdk.THREAD)
    [question] = found["__interrupt__"]
    assert garden.did == [] and "Checkrein asks" in question.value["checkrein"]["text"]
    # Another program, which finds the interrupt in the checkpoint; nobody has answered yet.
    gate = room.open(asks="raise")
    agent = garden.agent(gate, sdk.ROSES, saver=saver)
    [question] = agent.get_state(sdk.THREAD).interrupts
    found = agent.invoke(sdk.Command(resume=sdk.reply(question)), sdk.THREAD)
    [question] = found["__interrupt__"]
    gate.answer(sdk.waiting([question])[question.id], "yes", actor="grace")
    found = agent.invoke(sdk.Command(resume=sdk.reply(question)), sdk.THREAD)
    assert (garden.did, sdk.heard(found)["c0"].content) == ([("roses", 1)], "roses has 1")
    [entry] = room.entries()
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")
    assert room.kinds(entry.id) == ["decided", "asked", "answered", "started", "finished"]


def test_resuming_twice_runs_once(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, sdk.ROSES, saver=saver)
    [question] = agent.invoke(sdk.GO, sdk.THREAD)["__interrupt__"]
    before = agent.get_state(sdk.THREAD).config
    agent.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    # Back to where it waited, and once more.
    found = agent.invoke(sdk.Command(resume={question.id: sdk.reply(question, "yes")}), before)
    if "__interrupt__" in found:
        [question] = found["__interrupt__"]
        found = agent.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    assert garden.did == [("roses", 1)] and "used before" in sdk.heard(found)["c0"].content


def test_a_bare_yes_is_nobodys(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, sdk.ROSES, saver=saver)
    agent.invoke(sdk.GO, sdk.THREAD)
    for told in ("yes", True, {"type": "approve"}, {"checkrein": {"entry": "other", "answer": "yes"}}):
        [question] = agent.invoke(sdk.Command(resume=told), sdk.THREAD)["__interrupt__"]
        assert "another question" in question.value["checkrein"]["trouble"]
    found = agent.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    assert "__interrupt__" not in found and garden.did == [("roses", 1)]


def test_parallel_calls_are_answered_one_by_one(room, user_settings, garden, saver):
    allow(user_settings, "look")
    looked = []

    @sdk.tool
    def look() -> str:
        """Looks."""
        looked.append(1)
        return "green"

    calls = [("look", {}), *(("water", {"bed": bed}) for bed in "abcd")]
    agent = garden.agent(room.open(asks="raise"), *calls, saver=saver, tools=[*garden.tools, look])
    found = agent.invoke(sdk.GO, sdk.THREAD)
    assert len(found["__interrupt__"]) == 4 and looked == [1]
    found = sdk.resumed(agent, found, b="no: it rains")
    assert len(found["__interrupt__"]) == 3 and garden.did == []
    found = sdk.resumed(agent, found, a=edit(litres=5)({"arguments": {"bed": "a"}}), d="answer: it is wet")
    found = sdk.resumed(agent, found, c=True)
    assert (sorted(garden.did), looked) == ([("a", 5), ("c", 1)], [1])
    said = sdk.heard(found)
    assert "They say: it rains" in said["c2"].content and said["c2"].status == "error"
    assert [said[each].content for each in ("c1", "c3", "c4")] == ["a has 5", "c has 1", "it is wet"]
    assert sorted(each.answer or "" for each in room.entries()) == [
        "",
        "answered",
        "approved",
        "approved",
        "denied",
    ]


def test_arguments_that_do_not_fit_are_an_error_the_model_reads(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, sdk.ROSES, saver=saver)
    found = sdk.resumed(
        agent, agent.invoke(sdk.GO, sdk.THREAD), roses={"edited": {"bed": "a", "litres": "many"}}
    )
    assert sdk.heard(found)["c0"].status == "error" and garden.did == []
    assert (room.last().result, room.last().evidence) == ("failure", "tool error")


def test_an_answer_binds_to_the_exact_call(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, sdk.ROSES, saver=saver)
    [question] = agent.invoke(sdk.GO, sdk.THREAD)["__interrupt__"]

    class Meddler(sdk.AgentMiddleware):
        """Changes calls after they were judged."""

        def wrap_tool_call(self, request, handler):
            call = {**request.tool_call, "args": {"bed": "lawn"}}
            return handler(request.override(tool_call=call))

    meddled = garden.agent(gate, sdk.ROSES, saver=saver, before=[Meddler()])
    found = meddled.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    assert garden.did == [] and "changed after it was judged" in sdk.heard(found)["c0"].content
    assert gate.pending() == [] and room.last().answer == "cancelled"


def test_an_allowed_call_that_is_changed_does_not_run(room, user_settings, garden):
    allow(user_settings, "water")

    class Meddler(sdk.AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            call = {**request.tool_call, "args": {"bed": "lawn"}}
            return handler(request.override(tool_call=call))

    found = garden.agent(room.open(asks="raise"), sdk.ROSES, before=[Meddler()]).invoke(sdk.GO)
    assert garden.did == [] and "changed" in sdk.heard(found)["c0"].content
    assert room.last().result == "cancelled"


def test_outcomes_earn_and_cost_trust(room, garden):
    gate = room.open(settings=["doors.library.unmatched=earned"], asks="raise")
    garden.agent(gate, sdk.ROSES, needs_approval=False).invoke(sdk.GO)
    with pytest.raises(OSError, match="stones"):
        garden.agent(gate, ("dig", {"bed": "a"}), needs_approval=False).invoke(sdk.GO)
    good, bad = room.entries()
    assert (good.result, bad.result, bad.evidence) == ("success", "failure", "exception")
    assert bad.trust_score_after < good.trust_score_after


def test_a_node_that_runs_again_has_its_call_judged_again(room, user_settings, garden, saver):
    allow(user_settings, "water", "dig")
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ("dig", {"bed": "a"}), saver=saver)
    with pytest.raises(OSError, match="stones"):
        agent.invoke(sdk.GO, sdk.THREAD)
    with pytest.raises(OSError, match="stones"):
        agent.invoke(None, sdk.THREAD)
    assert [each.result for each in room.entries()] == ["failure", "failure"]
    # What was allowed then is asked about now: nothing waits here, and the model may try again.
    user_settings('[[rules]]\naction = "ask"\ntool = "dig"\n')
    found = agent.invoke(None, sdk.THREAD)
    assert "Make it again" in sdk.heard(found)["c0"].content and gate.pending() == []
    assert garden.did == ["a", "a"]


def test_a_tools_own_interrupt_works_where_the_call_is_allowed(room, user_settings, garden, saver):
    allow(user_settings, "plant")
    planted = []

    @sdk.tool
    def plant() -> str:
        """Plants."""
        planted.append(sdk.interrupt("which?"))
        return planted[-1]

    agent = garden.agent(room.open(asks="raise"), ("plant", {}), saver=saver, tools=[plant])
    [question] = agent.invoke(sdk.GO, sdk.THREAD)["__interrupt__"]
    assert question.value == "which?" and sdk.waiting([question]) == {}
    agent.invoke(sdk.Command(resume="moss"), sdk.THREAD)
    assert planted == ["moss"]
    assert [each.result for each in room.entries()] == ["cancelled", "success"]


def test_a_tool_that_suspends_itself_is_refused(room, user_settings, garden, saver):
    allow(user_settings, "plant")

    @sdk.tool
    def plant() -> str:
        """Plants."""
        return suspend("which?")

    agent = garden.agent(room.open(asks="raise"), ("plant", {}), saver=saver, tools=[plant])
    with pytest.raises(InputError, match="cannot go on in this graph"):
        agent.invoke(sdk.GO, sdk.THREAD)
    assert room.last().result == "cancelled"


def test_waiting_where_the_call_is_made_sync_and_async(garden):
    calls = [("water", {"bed": bed}) for bed in "abc"]
    answers = {"a": edit(litres=3), "b": lambda _: "no: wet", "c": lambda _: "yes"}
    for how in ("sync", "async"):
        garden.did.clear()
        with ScriptedGate(lambda question: answers[question["arguments"]["bed"]](question)) as gate:
            agent = garden.agent(gate, *calls)
            found = agent.invoke(sdk.GO) if how == "sync" else asyncio.run(agent.ainvoke(sdk.GO))
            assert sorted(garden.did) == [("a", 3), ("c", 1)] and len(gate.asked) == 3
        assert [each.status for each in sdk.heard(found).values()] == ["success", "error", "success"]


def test_the_same_without_blocking_a_loop(room, user_settings, garden):
    """Asynchronous tools, an asynchronous condition, an interrupt and a yes."""
    did = []

    @sdk.tool
    async def fill(bed: str) -> str:
        """Fills."""
        await asyncio.sleep(0)
        did.append(bed)
        return bed

    async def dear(given):
        await asyncio.sleep(0)
        return given["bed"] == "roses"

    async def main():
        allow(user_settings, "fill")
        calls = [("fill", {"bed": "roses"}), ("fill", {"bed": "moss"})]
        gate = room.open(asks="raise")
        agent = garden.agent(gate, *calls, saver=sdk.InMemorySaver(), tools=[fill], needs_approval=dear)
        [question] = (await agent.ainvoke(sdk.GO, sdk.THREAD))["__interrupt__"]
        assert did == ["moss"]
        await agent.ainvoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)

    asyncio.run(main())
    assert did == ["moss", "roses"]


def test_without_a_checkpointer_nothing_runs(room, garden):
    agent = garden.agent(room.open(asks="raise"), sdk.ROSES)
    assert "__interrupt__" in agent.invoke(sdk.GO)
    assert garden.did == []


def test_a_structured_last_word_is_no_call(room, garden):
    model = sdk.Scripted(calls=[("Plan", {"bed": "roses"})])
    middleware = [sdk.GateMiddleware(room.open(asks="raise"))]
    agent = sdk.create_agent(
        model, garden.tools, middleware=middleware, response_format=sdk.ToolStrategy(sdk.Plan)
    )
    assert agent.invoke(sdk.GO)["structured_response"] == sdk.Plan(bed="roses")
    assert room.entries() == []


def test_a_graph_without_an_agent(room, user_settings, garden, saver):
    gate = room.open(asks="raise")
    middleware = sdk.GateMiddleware(gate)

    def graph(judge):
        made = sdk.StateGraph(sdk.GateState)
        made.add_node("model", lambda state: {"messages": [sdk.Scripted(calls=[sdk.ROSES]).invoke("go")]})
        made.add_node("tools", sdk.ToolNode(garden.tools, wrap_tool_call=middleware.wrap_tool_call))
        made.add_edge(sdk.START, "model")
        if judge:
            made.add_node("gate", middleware.after_model)
            made.add_edge("model", "gate")
        made.add_edge("gate" if judge else "model", "tools")
        return made.compile(checkpointer=saver)

    with pytest.raises(InputError, match="has not judged"):
        graph(judge=False).invoke(sdk.GO, {"configurable": {"thread_id": "2"}})
    assert garden.did == []
    judged = graph(judge=True)
    [question] = judged.invoke(sdk.GO, sdk.THREAD)["__interrupt__"]
    judged.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    assert garden.did == [("roses", 1)]


# -- the behaviour suite ------------------------------------------------------------------------------------


SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}


def through(case, folder):
    ran = []

    def anything(**given):
        ran.append(given)
        return "ran"

    made = sdk.StructuredTool.from_function(anything, name=case.tool, description="Any.", args_schema=SCHEMA)
    with rooms.gate_for(case, folder) as gate:
        call = case.tool, case.arguments
        agent = sdk.Garden().agent(gate, call, saver=sdk.InMemorySaver(), tools=[made], server=None)
        found = agent.invoke(sdk.GO, sdk.THREAD)
        if "__interrupt__" in found:
            word = "ask"
        else:
            word = "deny" if sdk.heard(found)["c0"].status == "error" else "allow"
        return rooms.heard_at(gate, word, bool(ran))


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    rooms.check_adapter(case, *through(case, tmp_path / "adapter"), tmp_path / "bare")


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = page_of("library-langchain.md", model=sdk.Scripted(calls=[sdk.ROSES]))
    other = {"configurable": {"thread_id": "2"}}
    [question] = names["plain"].invoke(sdk.GO, other)["__interrupt__"]
    found = names["plain"].invoke(sdk.Command(resume=sdk.reply(question, "yes")), other)
    names["checkpoints"].__exit__(None, None, None)
    names["gate"].close()
    assert sdk.heard(found)["c0"].content == "roses has 1"
    assert sdk.heard(names["found"])["c0"].content == "roses has 2"
    assert capsys.readouterr().out.endswith("done\n")
