"""The OpenAI Agents SDK, its scripted model, and the tools of a program."""

# ruff: noqa: F401 - tests take the names of the framework from here, once they run.

import asyncio

from agents import Agent, FunctionTool, RunConfig, Runner, RunState, WebSearchTool, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from checkrein.doors.library.adapters.openai_agents import (
    LOST,
    UNREADABLE,
    Approvals,
)

QUIET = RunConfig(tracing_disabled=True)


class Desk:
    """Tools of a program, and what they did."""

    def __init__(self):
        self.booked = []

        @function_tool
        def book(to: str, amount: int = 1) -> str:
            """Book a room for somebody."""
            self.booked.append((to, amount))
            return f"{amount} for {to}"

        @function_tool
        def read_note(name: str) -> str:
            """Read a note."""
            self.booked.append(name)
            return f"note {name}"

        @function_tool
        def break_it() -> str:
            """Fails."""
            raise ValueError("it broke")

        self.tools = [book, read_note, break_it]


def call(name, id="c1", /, **arguments):
    return function_call(name, arguments, call_id=id)


def script(*turns):
    return ScriptedModel([*([list(each) for each in turns]), [assistant_message("done")]])


def agent_of(approvals, tools, model):
    return Agent(name="clerk", model=model, tools=approvals.tools(tools))


def run(agent, given="go"):
    return asyncio.run(Runner.run(agent, given, run_config=QUIET))


def outputs(model):
    """What the model was told came of its calls, by call id."""
    told = model.last_call.input
    return {each["call_id"]: each["output"] for each in told if each.get("type") == "function_call_output"}
