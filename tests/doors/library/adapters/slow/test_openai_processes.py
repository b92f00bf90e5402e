"""A run of the OpenAI Agents SDK goes on in another process, and runs each call once."""

import pytest

from doors.library.adapters.lazily import Lazily
from doors.library.adapters.programs import stepping

sdk = Lazily("doors.library.adapters.openai_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from checkrein import Gate
from checkrein.doors.library.adapters.openai_agents import Approvals

folder = Path(sys.argv[1])

@function_tool
def book(to: str, amount: int = 1) -> str:
    with (folder / "booked").open("a") as file:
        file.write(f"{to} {amount}\\n")
    return f"booked {to}"

turns = [[function_call("book", {"to": each, "amount": 5}, call_id=each) for each in ("ada", "bob", "eve")]]

async def main(step):
    model = ScriptedModel((turns if step == "begin" else []) + [[assistant_message("done")]])
    with Gate(folder / "gate", project=folder, session="s", asks="raise") as gate:
        approvals = Approvals(gate)
        agent = Agent(name="clerk", model=model, tools=approvals.tools([book]))
        quiet = RunConfig(tracing_disabled=True)
        if step == "begin":
            result = await Runner.run(agent, "go", run_config=quiet)
            (folder / "kept.json").write_text(approvals.keep(result))
            return
        state = await approvals.restore(agent, (folder / "kept.json").read_text())
        if step == "answer":
            ada, bob, eve = approvals.waiting
            gate.answer(ada, "yes")
            gate.answer(bob, "yes", edited={"to": "bob", "amount": 2})
            gate.answer(eve, "no: eve is not on the list")
            return
        result = await Runner.run(agent, await approvals.settle(state), run_config=quiet)
        told = [each for each in model.last_call.input if each.get("type") == "function_call_output"]
        return {each["call_id"]: each["output"] for each in told}
"""


def test_a_run_goes_on_in_another_process_and_twice_runs_once(tmp_path):
    with stepping(PROGRAM, tmp_path) as process:
        process("begin")
        assert not (tmp_path / "booked").exists()
        process("answer")
        told = process("go on")
        assert sorted((tmp_path / "booked").read_text().split("\n")) == ["", "ada 5", "bob 2"]
        assert told["ada"] == "booked ada" and "eve is not on the list" in told["eve"]

        told = process("go on")
        assert sorted((tmp_path / "booked").read_text().split("\n")) == ["", "ada 5", "bob 2"]
        assert "used before" in told["ada"] and "success" in told["ada"]
