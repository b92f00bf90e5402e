"""LangChain and LangGraph, a model that says what a script says, and tools that say what they did."""

# ruff: noqa: F401 - tests take the names of the framework from here, once they run.

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from checkrein.doors.library.adapters import langchain
from checkrein.doors.library.adapters.langchain import (
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


def heard(state):
    return {each.tool_call_id: each for each in state["messages"] if isinstance(each, ToolMessage)}


def resumed(agent, found, **answers):
    """Answer interrupts by the bed their call is about."""
    by_bed = {each.value["checkrein"]["arguments"]["bed"]: each for each in found["__interrupt__"]}
    told = {by_bed[bed].id: reply(by_bed[bed], answer) for bed, answer in answers.items()}
    return agent.invoke(Command(resume=told), THREAD)


ROSES = ("water", {"bed": "roses"})


class Plan(BaseModel):
    """What a model says last."""

    bed: str
