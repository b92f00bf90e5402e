"""The Claude Agent SDK's callbacks: one verdict lets one call run, and every verdict gets an outcome."""

import asyncio

import pytest

from checkrein.testing import ScriptedGate
from doors.library.adapters.lazily import Lazily

sdk = Lazily("doors.library.adapters.claude_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("claude_agent_sdk", reason="The Claude Agent SDK is not installed: UNTESTED")


LS = {"command": "ls"}


def test_a_verdict_of_the_hook_is_passed_on_once():
    async def main(gate):
        approvals = sdk.Approvals(gate)
        await sdk.judged(approvals, sdk.before("Bash", LS))
        context = sdk.ToolPermissionContext(tool_use_id="t1")
        assert await approvals.can_use_tool("Bash", dict(LS), context) == sdk.PermissionResultAllow()
        assert len(gate.entries()) == 1
        assert await approvals.can_use_tool("Bash", dict(LS), context) == sdk.PermissionResultAllow()
        await sdk.told(approvals, sdk.after())
        await approvals.close()

    with ScriptedGate(settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))
        assert [each.result for each in gate.entries()] == ["cancelled", "success"]


def test_calls_without_an_id_are_judged_one_by_one():
    async def main(gate):
        async with sdk.Approvals(gate) as approvals:
            for _ in range(2):
                said = await approvals.can_use_tool("Bash", dict(LS), sdk.ToolPermissionContext())
                assert said == sdk.PermissionResultAllow()

    with ScriptedGate(settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))
        assert [each.result for each in gate.entries()] == ["cancelled", "cancelled"]


def test_a_call_judged_again_and_refused_leaves_no_verdict_open():
    async def main(gate):
        approvals = sdk.Approvals(gate)
        await sdk.judged(approvals, sdk.before("Bash", LS))
        other = await approvals.can_use_tool(
            "Write", {"file_path": "/tmp/a", "content": "x"}, sdk.ToolPermissionContext(tool_use_id="t1")
        )
        assert isinstance(other, sdk.PermissionResultDeny)
        assert gate.entries()[0].result == "cancelled"
        await approvals.close()

    with ScriptedGate("no: keep it", settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))


def test_a_condition_that_changes_its_input_changes_nothing_that_is_judged():
    def needs(given):
        given["command"] = "ls"
        return False

    async def main(gate):
        async with sdk.Approvals(gate, needs_approval=needs) as approvals:
            await sdk.judged(approvals, sdk.before("Bash", {"command": "make world"}))

    with ScriptedGate(settings=sdk.ALLOW_BASH) as gate:
        asyncio.run(main(gate))
        assert gate.entries()[0].tool_input == {"command": "make world"}
