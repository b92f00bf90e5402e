"""A gate in LangChain and LangGraph, with the real frameworks and a model that says what a script says."""

import asyncio
import json
import os
import subprocess
import sys

import pytest

from checkrein import Denied, suspend
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.pages import page_of
from doors.library.behaviour import CASES
from patience import PATIENCE
from server.conftest import Serving

WHY = "LangChain, LangGraph or its SQLite checkpointer is not installed: the adapter is UNTESTED"
pytest.importorskip("langchain", reason=WHY)
pytest.importorskip("langgraph", reason=WHY)
pytest.importorskip("langgraph.checkpoint.sqlite", reason=WHY)

from langchain.agents import create_agent  # noqa: E402
from langchain.agents.middleware import AgentMiddleware  # noqa: E402
from langchain.agents.structured_output import ToolStrategy  # noqa: E402
from langchain_core.language_models.chat_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langchain_core.tools import StructuredTool, tool  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.graph import START, StateGraph  # noqa: E402
from langgraph.prebuilt import ToolNode  # noqa: E402
from langgraph.types import Command, interrupt  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from checkrein.doors.library.adapters.langchain import (  # noqa: E402
    GateMiddleware,
    GateState,
    reply,
    waiting,
)

THREAD = {"configurable": {"thread_id": "1"}}
GO = {"messages": [("user", "go")]}


class Scripted(BaseChatModel):
    """A model that makes the calls it is given, and then is done."""

    calls: list

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        said = AIMessage("done")
        if not isinstance(messages[-1], ToolMessage):
            calls = [
                {"name": name, "args": given, "id": f"c{n}", "type": "tool_call"}
                for n, (name, given) in enumerate(self.calls)
            ]
            said = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


class Garden:
    """Tools that say what they did."""

    def __init__(self):
        self.did = did = []

        @tool
        def water(bed: str, litres: int = 1) -> str:
            """Waters."""
            did.append((bed, litres))
            return f"{bed} has {litres}"

        @tool
        def dig(bed: str) -> str:
            """Digs."""
            did.append(bed)
            raise OSError("stones")

        self.tools = [water, dig]

    def agent(self, gate, *calls, saver=None, tools=None, before=(), **options):
        return create_agent(
            Scripted(calls=list(calls)),
            tools or self.tools,
            middleware=[*before, GateMiddleware(gate, **options)],
            checkpointer=saver,
        )


@pytest.fixture
def garden():
    return Garden()


@pytest.fixture
def saver(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints")) as made:
        yield made


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


def heard(state):
    return {each.tool_call_id: each for each in state["messages"] if isinstance(each, ToolMessage)}


def resumed(agent, found, **answers):
    """Answer interrupts by the bed their call is about."""
    by_bed = {each.value["checkrein"]["arguments"]["bed"]: each for each in found["__interrupt__"]}
    told = {by_bed[bed].id: reply(by_bed[bed], answer) for bed, answer in answers.items()}
    return agent.invoke(Command(resume=told), THREAD)


ROSES = ("water", {"bed": "roses"})


def test_what_a_rule_allows_runs_without_asking(room, user_settings, garden):
    allow(user_settings, "water")
    found = garden.agent(room.open(asks="raise", tools_of="garden"), ROSES).invoke(GO)
    assert (found["messages"][-1].content, garden.did) == ("done", [("roses", 1)])
    assert heard(found)["c0"].content == "roses has 1" and "checkrein" not in found
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
        garden.agent(room.open(asks="raise", tools_of="garden"), ("water", {"bed": deep})).invoke(GO)
    assert garden.did == []


def test_a_refusal_and_its_reason_reach_the_model(room, garden):
    ran = []
    bash = StructuredTool.from_function(ran.append, name="Bash", description="Runs.", args_schema=SCHEMA)
    gate = room.open(asks="raise")
    found = garden.agent(gate, ("Bash", {"command": "rm -rf /"}), tools=[bash]).invoke(GO)
    message = heard(found)["c0"]
    assert message.status == "error" and "Critical risk is always blocked" in message.content
    with pytest.raises(Denied):
        garden.agent(gate, ("Bash", {"command": "rm -rf /"}), tools=[bash], denials="raise").invoke(GO)
    assert ran == [] and {each.result for each in room.entries()} == {"denied"}


def test_a_question_interrupts_and_another_program_goes_on(room, garden, saver):
    agent = garden.agent(room.open(asks="raise"), ROSES, saver=saver)
    found = agent.invoke(GO, THREAD)
    [question] = found["__interrupt__"]
    assert garden.did == [] and "Checkrein asks" in question.value["checkrein"]["text"]
    # Another program, which finds the interrupt in the checkpoint; nobody has answered yet.
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ROSES, saver=saver)
    [question] = agent.get_state(THREAD).interrupts
    found = agent.invoke(Command(resume=reply(question)), THREAD)
    [question] = found["__interrupt__"]
    gate.answer(waiting([question])[question.id], "yes", actor="grace")
    found = agent.invoke(Command(resume=reply(question)), THREAD)
    assert (garden.did, heard(found)["c0"].content) == ([("roses", 1)], "roses has 1")
    [entry] = room.entries()
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")
    assert room.kinds(entry.id) == ["decided", "asked", "answered", "started", "finished"]


def test_resuming_twice_runs_once(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ROSES, saver=saver)
    [question] = agent.invoke(GO, THREAD)["__interrupt__"]
    before = agent.get_state(THREAD).config
    agent.invoke(Command(resume=reply(question, "yes")), THREAD)
    # Back to where it waited, and once more.
    found = agent.invoke(Command(resume={question.id: reply(question, "yes")}), before)
    if "__interrupt__" in found:
        [question] = found["__interrupt__"]
        found = agent.invoke(Command(resume=reply(question, "yes")), THREAD)
    assert garden.did == [("roses", 1)] and "used before" in heard(found)["c0"].content


def test_a_bare_yes_is_nobodys(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ROSES, saver=saver)
    agent.invoke(GO, THREAD)
    for told in ("yes", True, {"type": "approve"}, {"checkrein": {"entry": "other", "answer": "yes"}}):
        [question] = agent.invoke(Command(resume=told), THREAD)["__interrupt__"]
        assert "another question" in question.value["checkrein"]["trouble"]
    found = agent.invoke(Command(resume=reply(question, "yes")), THREAD)
    assert "__interrupt__" not in found and garden.did == [("roses", 1)]


def test_parallel_calls_are_answered_one_by_one(room, user_settings, garden, saver):
    allow(user_settings, "look")
    looked = []

    @tool
    def look() -> str:
        """Looks."""
        looked.append(1)
        return "green"

    calls = [("look", {}), *(("water", {"bed": bed}) for bed in "abcd")]
    agent = garden.agent(room.open(asks="raise"), *calls, saver=saver, tools=[*garden.tools, look])
    found = agent.invoke(GO, THREAD)
    assert len(found["__interrupt__"]) == 4 and looked == [1]
    found = resumed(agent, found, b="no: it rains")
    assert len(found["__interrupt__"]) == 3 and garden.did == []
    found = resumed(agent, found, a=edit(litres=5)({"arguments": {"bed": "a"}}), d="answer: it is wet")
    found = resumed(agent, found, c=True)
    assert (sorted(garden.did), looked) == ([("a", 5), ("c", 1)], [1])
    said = heard(found)
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
    agent = garden.agent(gate, ROSES, saver=saver)
    found = resumed(agent, agent.invoke(GO, THREAD), roses={"edited": {"bed": "a", "litres": "many"}})
    assert heard(found)["c0"].status == "error" and garden.did == []
    assert (room.last().result, room.last().evidence) == ("failure", "tool error")


def test_an_answer_binds_to_the_exact_call(room, garden, saver):
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ROSES, saver=saver)
    [question] = agent.invoke(GO, THREAD)["__interrupt__"]

    class Meddler(AgentMiddleware):
        """Changes calls after they were judged."""

        def wrap_tool_call(self, request, handler):
            call = {**request.tool_call, "args": {"bed": "lawn"}}
            return handler(request.override(tool_call=call))

    meddled = garden.agent(gate, ROSES, saver=saver, before=[Meddler()])
    found = meddled.invoke(Command(resume=reply(question, "yes")), THREAD)
    assert garden.did == [] and "changed after it was judged" in heard(found)["c0"].content
    assert gate.pending() == [] and room.last().answer == "cancelled"


def test_an_allowed_call_that_is_changed_does_not_run(room, user_settings, garden):
    allow(user_settings, "water")

    class Meddler(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            call = {**request.tool_call, "args": {"bed": "lawn"}}
            return handler(request.override(tool_call=call))

    found = garden.agent(room.open(asks="raise"), ROSES, before=[Meddler()]).invoke(GO)
    assert garden.did == [] and "changed" in heard(found)["c0"].content
    assert room.last().result == "cancelled"


def test_outcomes_earn_and_cost_trust(room, garden):
    gate = room.open(settings=["doors.library.unmatched=earned"], asks="raise")
    garden.agent(gate, ROSES, needs_approval=False).invoke(GO)
    with pytest.raises(OSError, match="stones"):
        garden.agent(gate, ("dig", {"bed": "a"}), needs_approval=False).invoke(GO)
    good, bad = room.entries()
    assert (good.result, bad.result, bad.evidence) == ("success", "failure", "exception")
    assert bad.trust_score_after < good.trust_score_after


def test_a_node_that_runs_again_has_its_call_judged_again(room, user_settings, garden, saver):
    allow(user_settings, "water", "dig")
    gate = room.open(asks="raise")
    agent = garden.agent(gate, ("dig", {"bed": "a"}), saver=saver)
    with pytest.raises(OSError, match="stones"):
        agent.invoke(GO, THREAD)
    with pytest.raises(OSError, match="stones"):
        agent.invoke(None, THREAD)
    assert [each.result for each in room.entries()] == ["failure", "failure"]
    # What was allowed then is asked about now: nothing waits here, and the model may try again.
    user_settings('[[rules]]\naction = "ask"\ntool = "dig"\n')
    found = agent.invoke(None, THREAD)
    assert "Make it again" in heard(found)["c0"].content and gate.pending() == []
    assert garden.did == ["a", "a"]


def test_a_tools_own_interrupt_works_where_the_call_is_allowed(room, user_settings, garden, saver):
    allow(user_settings, "plant")
    planted = []

    @tool
    def plant() -> str:
        """Plants."""
        planted.append(interrupt("which?"))
        return planted[-1]

    agent = garden.agent(room.open(asks="raise"), ("plant", {}), saver=saver, tools=[plant])
    [question] = agent.invoke(GO, THREAD)["__interrupt__"]
    assert question.value == "which?" and waiting([question]) == {}
    agent.invoke(Command(resume="moss"), THREAD)
    assert planted == ["moss"]
    assert [each.result for each in room.entries()] == ["cancelled", "success"]


def test_a_tool_that_suspends_itself_is_refused(room, user_settings, garden, saver):
    allow(user_settings, "plant")

    @tool
    def plant() -> str:
        """Plants."""
        return suspend("which?")

    agent = garden.agent(room.open(asks="raise"), ("plant", {}), saver=saver, tools=[plant])
    with pytest.raises(InputError, match="cannot go on in this graph"):
        agent.invoke(GO, THREAD)
    assert room.last().result == "cancelled"


def test_waiting_where_the_call_is_made_sync_and_async(garden):
    calls = [("water", {"bed": bed}) for bed in "abc"]
    answers = {"a": edit(litres=3), "b": lambda _: "no: wet", "c": lambda _: "yes"}
    for how in ("sync", "async"):
        garden.did.clear()
        with ScriptedGate(lambda question: answers[question["arguments"]["bed"]](question)) as gate:
            agent = garden.agent(gate, *calls)
            found = agent.invoke(GO) if how == "sync" else asyncio.run(agent.ainvoke(GO))
            assert sorted(garden.did) == [("a", 3), ("c", 1)] and len(gate.asked) == 3
        assert [each.status for each in heard(found).values()] == ["success", "error", "success"]


def test_the_same_without_blocking_a_loop(room, user_settings, garden):
    """Asynchronous tools, an asynchronous condition, an interrupt and a yes."""
    did = []

    @tool
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
        agent = garden.agent(gate, *calls, saver=InMemorySaver(), tools=[fill], needs_approval=dear)
        [question] = (await agent.ainvoke(GO, THREAD))["__interrupt__"]
        assert did == ["moss"]
        await agent.ainvoke(Command(resume=reply(question, "yes")), THREAD)

    asyncio.run(main())
    assert did == ["moss", "roses"]


def test_without_a_checkpointer_nothing_runs(room, garden):
    agent = garden.agent(room.open(asks="raise"), ROSES)
    assert "__interrupt__" in agent.invoke(GO)
    assert garden.did == []


class Plan(BaseModel):
    """What a model says last."""

    bed: str


def test_a_structured_last_word_is_no_call(room, garden):
    model = Scripted(calls=[("Plan", {"bed": "roses"})])
    middleware = [GateMiddleware(room.open(asks="raise"))]
    agent = create_agent(model, garden.tools, middleware=middleware, response_format=ToolStrategy(Plan))
    assert agent.invoke(GO)["structured_response"] == Plan(bed="roses")
    assert room.entries() == []


def test_a_graph_without_an_agent(room, user_settings, garden, saver):
    gate = room.open(asks="raise")
    middleware = GateMiddleware(gate)

    def graph(judge):
        made = StateGraph(GateState)
        made.add_node("model", lambda state: {"messages": [Scripted(calls=[ROSES]).invoke("go")]})
        made.add_node("tools", ToolNode(garden.tools, wrap_tool_call=middleware.wrap_tool_call))
        made.add_edge(START, "model")
        if judge:
            made.add_node("gate", middleware.after_model)
            made.add_edge("model", "gate")
        made.add_edge("gate" if judge else "model", "tools")
        return made.compile(checkpointer=saver)

    with pytest.raises(InputError, match="has not judged"):
        graph(judge=False).invoke(GO, {"configurable": {"thread_id": "2"}})
    assert garden.did == []
    judged = graph(judge=True)
    [question] = judged.invoke(GO, THREAD)["__interrupt__"]
    judged.invoke(Command(resume=reply(question, "yes")), THREAD)
    assert garden.did == [("roses", 1)]


CHILD = """
import os, sys
sys.path[:0] = sys.argv[4].split(os.pathsep)
from checkrein import Gate
from langgraph.checkpoint.sqlite import SqliteSaver
from doors.library.adapters.test_langchain import GO, ROSES, THREAD, Garden
garden = Garden()
with SqliteSaver.from_conn_string(sys.argv[3]) as saver:
    gate = Gate(sys.argv[1], asks="raise", project=sys.argv[2])
    found = garden.agent(gate, ROSES, saver=saver).invoke(GO, THREAD)
    assert found["__interrupt__"] and not garden.did
    os._exit(9)
"""


def test_a_process_that_dies_while_it_waits_loses_nothing(room, garden, tmp_path):
    file = str(tmp_path / "checkpoints")
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-c", CHILD, str(room.folder), os.getcwd(), file, paths]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 9
    with SqliteSaver.from_conn_string(file) as saver:
        agent = garden.agent(room.open(asks="raise"), ROSES, saver=saver)
        [question] = agent.get_state(THREAD).interrupts
        agent.invoke(Command(resume=reply(question, "yes")), THREAD)
    assert (garden.did, room.last().result) == ([("roses", 1)], "success")


SERVED = """
import os, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from checkrein import Gate
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from doors.library.adapters.test_langchain import GO, ROSES, THREAD, Garden, heard, reply
garden = Garden()
with SqliteSaver.from_conn_string(sys.argv[1]) as saver, Gate(server=True, asks="raise") as gate:
    agent = garden.agent(gate, ROSES, saver=saver)
    waits = agent.get_state(THREAD).interrupts
    if not waits:
        [question] = agent.invoke(GO, THREAD)["__interrupt__"]
        found = agent.invoke(Command(resume=reply(question, "yes")), THREAD)
        print(found["__interrupt__"][0].value["checkrein"]["trouble"], garden.did)
    else:
        found = agent.invoke(Command(resume=reply(waits[0])), THREAD)
        print(heard(found)["c0"].content, garden.did)
"""


def test_with_the_server_only_a_person_answers(tmp_path, home):
    serving = Serving().start()
    try:
        paths = os.pathsep.join(each for each in sys.path if each)
        command = [sys.executable, "-c", SERVED, str(tmp_path / "checkpoints"), paths]

        def program():
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

        assert "Only a person may do this" in (said := program()) and said.endswith("[]\n")
        [question] = serving.ask("question.list")
        serving.ask("question.answer", id=question["id"], answer="approved")
        assert program() == "roses has 1 [('roses', 1)]\n"
    finally:
        serving.kill(15)


# -- the behaviour suite ------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}


def through(case, folder):
    ran = []

    def anything(**given):
        ran.append(given)
        return "ran"

    made = StructuredTool.from_function(anything, name=case.tool, description="Any.", args_schema=SCHEMA)
    with rooms.gate_for(case, folder) as gate:
        call = case.tool, case.arguments
        agent = Garden().agent(gate, call, saver=InMemorySaver(), tools=[made], server=None)
        found = agent.invoke(GO, THREAD)
        if "__interrupt__" in found:
            word = "ask"
        else:
            word = "deny" if heard(found)["c0"].status == "error" else "allow"
        return rooms.heard_at(gate, word, bool(ran))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    rooms.check_adapter(case, *through(case, tmp_path / "adapter"), tmp_path / "bare")


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = page_of("library-langchain.md", model=Scripted(calls=[ROSES]))
    other = {"configurable": {"thread_id": "2"}}
    [question] = names["plain"].invoke(GO, other)["__interrupt__"]
    found = names["plain"].invoke(Command(resume=reply(question, "yes")), other)
    names["checkpoints"].__exit__(None, None, None)
    names["gate"].close()
    assert heard(found)["c0"].content == "roses has 1"
    assert heard(names["found"])["c0"].content == "roses has 2"
    assert capsys.readouterr().out.endswith("done\n")
