"""A function tool's own `needs_approval` looks at a call; it changes nothing that is judged."""

import pytest

from checkrein.testing import ScriptedGate
from doors.library.adapters.lazily import Lazily

sdk = Lazily("doors.library.adapters.openai_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("agents", reason="the OpenAI Agents SDK is not installed")


@pytest.mark.parametrize("asks", ["wait", "raise"])
def test_what_a_condition_takes_away_is_judged_all_the_same(asks):
    did = []

    async def needs(_context, given, _call):
        given.pop("amount")
        return False

    @sdk.function_tool(needs_approval=needs)
    def book(to: str, amount: int) -> str:
        did.append((to, amount))
        return "booked"

    with ScriptedGate(settings=['rules=[{action="allow",tool="book"}]'], asks=asks) as gate:
        sdk.run(
            sdk.agent_of(sdk.Approvals(gate), [book], sdk.script([sdk.call("book", to="ada", amount=900)]))
        )
        assert gate.entries()[0].tool_input == {"to": "ada", "amount": 900}
        assert did == [("ada", 900)] and len(gate.entries()) == 1
