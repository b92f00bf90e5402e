"""Which tools of our own are offered, to whom, and how that changes."""

import asyncio

from checkrein.doors.gateway.scripts.offer import profile_of
from checkrein.settings import Settings
from checkrein.settings.check import apply
from doors.gateway.scripts.bench import HELD, SETTINGS, evaluate, outcome, run
from patience import soon

OURS = {
    "eval",
    "codemode_eval_free",
    "codemode_eval_safe",
    "codemode_eval_supervised",
    "codemode_eval_trusting",
    "search_tools",
    "get_tools",
    "resume_run",
}


async def tools(guest):
    return {each["name"]: each for each in (await guest.ask("tools/list"))["tools"]}


def test_there_is_a_tool_for_each_profile(bench):
    async def work():
        guest = await bench.house.guest()
        found = await tools(guest)
        assert found.keys() >= OURS and "srv__echo" in found
        for name in OURS:
            assert found[name]["inputSchema"]["additionalProperties"] is False
        assert "profile" not in found["eval"]["inputSchema"]["properties"]
        free, safe = found["codemode_eval_free"], found["codemode_eval_safe"]
        assert "srv__delete_all(" in free["description"] and "srv__delete_all(" not in safe["description"]
        assert "srv__echo(" in safe["description"] and "`safe`" in safe["description"]
        assert "asks" in found["codemode_eval_supervised"]["description"]

    run(bench, work)


def test_the_default_profile_binds_the_plain_tool(bench):
    bench.settings(SETTINGS, default_profile='"safe"')

    async def work():
        guest = await bench.house.guest()
        code = "try { await codemode.srv__delete_all({}); } catch (e) { return e.reason; }"
        assert outcome(await evaluate(guest, code)) == "denied"
        assert "`safe`" in (await tools(guest))["eval"]["description"]

    run(bench, work)


def test_without_a_default_profile_the_plain_tool_is_not_restricted_by_one(bench):
    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, "await codemode.srv__delete_all({}); return 'ran'")) == "ran"

    run(bench, work)


def test_new_profiles_come_and_old_ones_go_while_sessions_stay_open(bench):
    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, "return 1")) == 1
        bench.hub.look_at_rules()
        text = SETTINGS.replace("[evaluation.profiles.free]", "[evaluation.profiles.fresh]")
        bench.settings(text)
        bench.hub.look_at_rules()
        assert "notifications/tools/list_changed" in guest.methods()
        found = await tools(guest)
        assert "codemode_eval_fresh" in found and "codemode_eval_free" not in found
        # The session that was open before goes on.
        code = "return (await codemode.srv__echo({})).content[0].text"
        assert outcome(await evaluate(guest, code, "codemode_eval_fresh")) == "said {}"
        assert outcome(await evaluate(guest, code)) == "said {}"
        assert await guest.error("tools/call", {"name": "codemode_eval_free", "arguments": {"code": "1"}})

    run(bench, work)


def test_a_broken_settings_file_offers_nothing_and_refuses_everything(bench):
    async def work():
        guest = await bench.house.guest()
        code = """
await codemode.srv__slow({});
try { await codemode.srv__echo({}); return "ran"; } catch (e) { return e.reason; }"""
        started = asyncio.ensure_future(evaluate(guest, code))
        await soon(lambda: bench.house.ran("slow"))
        bench.settings("[evaluation]\nnonsense = 1\n")
        bench.release()
        assert outcome(await started) == "denied" and bench.house.ran("echo") == []

    run(bench, work, source=HELD)


def test_a_name_is_a_profile_only_where_one_is():
    settings = apply(Settings(), {"evaluation": {"profiles": {"safe": {}}}})
    assert profile_of("eval", settings) == "" and profile_of("codemode_eval_safe", settings) == "safe"
    for name in ("codemode_eval_", "codemode_eval_other", "safe", "evals", ""):
        assert profile_of(name, settings) is None
