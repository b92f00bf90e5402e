"""What policy says to a script's call, and the word the script hears."""

import pytest

from checkrein.settings.sources import state_dir
from doors.gateway.scripts.bench import SETTINGS, evaluate, outcome, paused, resumed_to_the_end, run
from patience import soon

REASON = "try { await codemode.srv__echo(%s); return 'ran'; } catch (e) { return e.reason ?? e.message; }"


def test_a_call_is_recorded_as_what_it_is(bench):
    async def work():
        guest = await bench.house.guest()
        await evaluate(guest, REASON % "{b: 1, a: 2}", "codemode_eval_free")
        last = await bench.house.last()
        run_id = bench.last_run().id
        assert (last.door, last.server, last.tool_name) == ("eval", "srv", "mcp__srv__echo")
        assert last.call_id.startswith(f"{run_id}:") and last.agent == "tester" and last.user == "ada"
        assert last.tool_input == {"a": 2, "b": 1} and last.session_id == guest.client.visit.session

    run(bench, work)


@pytest.mark.parametrize(
    ("when", "word"),
    [({}, "denied"), ({"when": [{"path": "n", "equals": 1}]}, "policy_arg")],
)
def test_a_rule_about_arguments_is_told_apart_from_one_about_the_tool(bench, add, when, word):
    add("deny", "echo", **when)

    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, REASON % "{n: 1}")) == word

    run(bench, work)


def test_the_profile_of_the_tool_is_the_one_that_counts(bench):
    async def work():
        guest = await bench.house.guest()
        said = {}
        for profile in ("free", "safe", "supervised"):
            said[profile] = outcome(
                await evaluate(guest, REASON.replace("echo", "strict") % "{n: 1}", f"codemode_eval_{profile}")
            )
        assert said == {"free": "ran", "safe": "denied", "supervised": "ran"} and len(guest.asked) == 1

    run(bench, work)


def test_what_the_floor_blocks_no_profile_lets_pass(bench):
    text = SETTINGS + '\n[evaluation.profiles.all]\nallowlist = ["*"]\n'

    async def work():
        bench.settings(text)
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, REASON % "{path: '/tmp/x'}", "codemode_eval_all")) == "ran"
        ours = state_dir() / "checkrein.db"
        assert outcome(await evaluate(guest, REASON % f"{{path: '{ours}'}}", "codemode_eval_all")) == "denied"
        last = await bench.house.last()
        assert (last.stage, last.risk_category) == ("floor", "critical")
        assert bench.house.ran("echo") == [{"path": "/tmp/x"}]

    run(bench, work)


def test_arguments_that_do_not_fit_are_an_error_and_nothing_runs(bench):
    async def work():
        guest = await bench.house.guest()
        code = "try { await codemode.srv__strict({n: 'x'}); } catch (e) { return [e.name, e.message]; }"
        name, message = outcome(await evaluate(guest, code))
        assert name == "Error" and "srv__strict" in message and bench.house.ran("strict") == []
        assert (await bench.house.last()).stage == "arguments"

    run(bench, work)


def test_a_tool_that_changed_meanwhile_is_not_called(bench):
    bench.set(wait_seconds=0.02)

    def changed():
        return {row["name"]: row["state"] for row in bench.hub.catalogue.review("srv")}["echo"] == "changed"

    async def work():
        guest = await bench.house.guest(answers={})
        code = """
await codemode.srv__evolve({});
await codemode.srv__slow({}).catch(() => {});
try { await codemode.srv__echo({}); return "ran"; } catch (e) { return e.message; }"""
        # The question about the second call stands until the change is known.
        said = await paused(guest, code, "eval", ask=["srv__slow"])
        await soon(changed)
        await bench.answer(said["waiting"][0]["question"], "denied")
        found = outcome(await resumed_to_the_end(bench, guest, said["run_id"]))
        assert found != "ran" and bench.house.ran("echo") == []

    run(bench, work)


@pytest.mark.invariant("never used for enforcement")
def test_a_call_is_judged_when_it_is_made_whatever_the_text_shows(bench):
    hidden = """
const name = JSON.parse('["srv__delete", "all"]').join("_");
try { await codemode[name]({}); return "ran"; } catch (e) { return e.reason; }"""
    shown = "if (Date.now() < 0) { await codemode.srv__delete_all({}); } return 'through';"

    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, hidden, "codemode_eval_safe")) == "denied"
        assert outcome(await evaluate(guest, shown, "codemode_eval_safe")) == "through"
        assert bench.house.ran("delete_all") == []

    run(bench, work)
