"""Which tools whoever starts a script means, whichever way they spell them."""

import asyncio

import pytest

from doors.gateway.house import SERVER
from doors.gateway.scripts.bench import evaluate, outcome

DASHED = SERVER.replace('tool("crash")', 'tool("crash"), tool("get-sum")')
SUM = "try { await codemode.srv__get_sum({}); return 'ran'; } catch (e) { return e.reason; }"


@pytest.mark.parametrize("name", ["srv__get-sum", "srv__get_sum", "srv__get_*"])
def test_a_script_is_narrowed_by_the_tools_own_name_and_by_the_scripts_name_for_it(bench, name):
    """Whoever writes scripts reads the script's names, so those must hold."""

    async def work():
        bench.house.server("srv", source=DASHED, trusted=True)
        async with bench.opened():
            guest = await bench.house.guest(answers={"elicitation/create": {"action": "decline"}})
            assert outcome(await evaluate(guest, SUM, deny=[name])) == "denied"
            assert outcome(await evaluate(guest, SUM, ask=[name])) == "elicitation_declined"
            assert bench.house.ran("get-sum") == []
            assert outcome(await evaluate(guest, SUM, deny=["srv__get_sums"])) == "ran"

    asyncio.run(work())
