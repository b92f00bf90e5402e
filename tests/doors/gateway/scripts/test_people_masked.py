"""What people read of agents' scripts is masked, whichever way they ask."""

import pytest

from doors.gateway.scripts.bench import evaluate, outcome, run
from patience import soon

CODE = "console.log('api_key=sk-live-0123456789abcdef0123'); return {token: 'hush', x: 1}"


def test_a_person_who_comes_back_to_an_agents_script_reads_it_masked(bench):
    async def work():
        guest = await bench.house.guest()
        # The client gets what its script returned.
        assert outcome(await evaluate(guest, CODE)) == {"token": "hush", "x": 1}
        found = await bench.hub.scripts.people.resume(bench.last_run().id, 1)
        assert found["status"] == "done" and found["result"]["x"] == 1
        assert "hush" not in str(found) and "sk-live" not in str(found)

    run(bench, work)


def test_a_persons_own_script_returns_what_it_returned(bench):
    async def work():
        people = bench.hub.scripts.people
        found = await people.start(CODE, "javascript", "", "", 20)
        assert found["result"] == {"token": "hush", "x": 1}
        await soon(lambda: not bench.hub.scripts.live)
        assert (await people.resume(found["run_id"], 1))["result"] == found["result"]

    run(bench, work)


@pytest.mark.invariant("what people are shown of a script is masked as the record is")
def test_the_script_its_calls_and_its_end_are_shown_masked(bench):
    code = """
await codemode.srv__echo({token: 'hush', note: 'api_key=sk-live-0123456789abcdef0123'});
return {token: 'hush', x: 1};"""

    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, code)) == {"token": "hush", "x": 1}
        shown = await bench.hub.scripts.people.run(bench.last_run().id)
        assert "srv__echo" in shown["source"] and "sk-live" not in str(shown)
        assert "hush" not in str([shown["timeline"], shown["result"]])
        assert shown["result"]["result"]["x"] == 1 and len(shown["timeline"]) == 1

    run(bench, work)
