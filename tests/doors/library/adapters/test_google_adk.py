"""Google's ADK, the real one, with a scripted model: gated tools, and confirmations a session keeps."""

import asyncio

import pytest

from checkrein import Gate
from checkrein.doors.library.pending import pending
from checkrein.errors import InputError
from checkrein.store.trust import trust_of
from checkrein.testing import ScriptedGate, edit
from doors.library.adapters.lazily import Lazily
from doors.library.adapters.pages import page_of
from doors.library.behaviour import PATHS, Heard, expected, project_for, seed_trust, write_settings
from doors.library.rooms import entries_of, gate_in, recorded

sdk = Lazily("doors.library.adapters.adk_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("google.adk", reason="Google's ADK is not installed")


ALLOW_READ = ['rules=[{action="allow",tool="read_note"}]']


# -- the behaviour suite ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_behaviour_suite(case, tmp_path):
    ran = []

    class Any(sdk.BaseTool):
        def _get_declaration(self):
            return sdk.types.FunctionDeclaration(name=self.name, description=self.description)

        async def run_async(self, *, args, tool_context):
            ran.append(args)
            return {"result": "ok"}

    project = project_for(case, tmp_path)
    write_settings(case)
    with Gate(tmp_path / "gate", project=project, phase=case.phase, asks="raise") as gate:
        seed_trust(case, gate.authority.pipeline.store, project)
        house = sdk.House(
            sdk.gated(gate, [Any(name=case.tool, description="A tool.")]),
            sdk.call(case.tool, **case.arguments),
        )
        events = asyncio.run(house.say())
        entry = recorded(gate.authority.pipeline.store)
        word = "ask" if sdk.asked(events) else "allow" if ran else "deny"
        assert entry.door == "library" and entry.verdict == word
        assert Heard(word, entry.stage, bool(ran)) == expected(case), entry.reasons
        if word == "deny":
            assert "Checkrein" in house.model.told()["c1"]["error"]


# -- waiting in place ---------------------------------------------------------------------------------------


def test_what_a_rule_allows_runs_without_asking_and_is_on_the_record():
    desk = sdk.Desk()
    with ScriptedGate(settings=ALLOW_READ) as gate:
        house = sdk.House(sdk.gated(gate, desk.tools), sdk.call("read_note", name="a"))
        asyncio.run(house.say())
        assert house.model.told() == {"c1": {"note": "a"}} and gate.asked == []
        assert [(each.tool_name, each.verdict, each.result) for each in gate.entries()] == [
            ("mcp__python__read_note", "allow", "success")
        ]


def test_a_no_and_its_reason_reach_the_model():
    desk = sdk.Desk()
    with ScriptedGate({"book": "no: eve is not on the list"}) as gate:
        house = sdk.House(sdk.gated(gate, desk.tools), sdk.call("book", to="eve"))
        asyncio.run(house.say())
        assert desk.booked == [] and "eve is not on the list" in house.model.told()["c1"]["error"]


def test_arguments_are_edited_and_parallel_calls_are_answered_one_by_one():
    desk = sdk.Desk()
    with ScriptedGate({"book": [edit(amount=2), "no: enough"]}, settings=ALLOW_READ) as gate:
        calls = [
            sdk.call("book", "c1", to="ada"),
            sdk.call("book", "c2", to="eve"),
            sdk.call("read_note", "c3", name="n"),
        ]
        house = sdk.House(sdk.gated(gate, desk.tools), calls)
        asyncio.run(house.say())
        told = house.model.told()
        assert len(gate.asked) == 2 and "n" in desk.booked
        assert [each for each in desk.booked if each != "n"] in ([("ada", 2)], [("eve", 2)])
        assert sum("enough" in str(told[each]) for each in ("c1", "c2")) == 1


def test_success_earns_trust_and_what_fails_costs_it():
    desk = sdk.Desk()
    with ScriptedGate(settings=['rules=[{action="allow",pattern="*"}]']) as gate:
        tools = sdk.gated(gate, desk.tools)
        asyncio.run(sdk.House(tools, sdk.call("read_note", name="a")).say())
        with pytest.raises(ValueError, match="it broke"):
            asyncio.run(sdk.House(tools, sdk.call("break_it")).say())
        asyncio.run(sdk.House(tools, sdk.call("say_error")).say())
        # A call the ADK turns away because its arguments do not fit.
        asyncio.run(sdk.House(tools, sdk.call("book")).say())
        assert [each.result for each in gate.entries()] == ["success", "failure", "failure", "failure"]
        (earned,) = trust_of(gate.authority.pipeline.store, gate.project).values()
        assert (earned["successes"], earned["failures"]) == (1, 3)


def test_a_tools_own_require_confirmation_only_asks_for_more():
    desk = sdk.Desk()

    def odd(name):
        if name == "broken":
            raise RuntimeError
        return name != "a"

    tool = sdk.FunctionTool(desk.read_note, require_confirmation=odd)
    calls = [sdk.call("read_note", each, name=each) for each in ("a", "b", "broken")]
    script = {"read_note": lambda each: each["arguments"]["name"] == "b"}
    with ScriptedGate(script, settings=ALLOW_READ) as gate:
        house = sdk.House(sdk.gated(gate, [tool]), calls)
        asyncio.run(house.say())
        assert sorted(desk.booked) == ["a", "b"] and len(gate.asked) == 2


def test_a_toolset_is_gated_tool_by_tool():
    desk = sdk.Desk()

    class Notes(sdk.BaseToolset):
        async def get_tools(self, readonly_context=None):
            return [sdk.FunctionTool(desk.read_note), sdk.FunctionTool(desk.book)]

        async def close(self):
            desk.booked.append("closed")

    with ScriptedGate({"*": "no"}, settings=['rules=[{action="allow",tool="notes_read_note"}]']) as gate:
        tools = sdk.gated(gate, [Notes(tool_name_prefix="notes")])
        calls = [sdk.call("notes_read_note", "c1", name="a"), sdk.call("notes_book", "c2", to="eve")]
        house = sdk.House(tools, calls)
        asyncio.run(house.say())
        assert desk.booked == ["a"] and "error" in house.model.told()["c2"]
        asyncio.run(tools[0].close())
        assert desk.booked == ["a", "closed"]


def test_a_toolset_that_offers_tools_by_itself_is_refused():
    desk = sdk.Desk()

    class Sly(sdk.BaseToolset):
        async def get_tools(self, readonly_context=None):
            return []

        async def process_llm_request(self, *, tool_context, llm_request):
            llm_request.append_tools([sdk.FunctionTool(desk.book)])

        async def close(self):
            pass

    with ScriptedGate("yes") as gate:
        house = sdk.House(sdk.gated(gate, [Sly()]), sdk.call("book", to="eve"))
        with pytest.raises(InputError, match="Sly"):
            asyncio.run(house.say())
        assert desk.booked == []


def test_what_cannot_be_gated_is_refused():
    async def stream():
        yield 1

    with ScriptedGate() as gate:
        for tool in (sdk.google_search, stream, 7):
            with pytest.raises(InputError):
                sdk.gated(gate, [tool])


def test_the_pages_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = page_of("library-google-adk.md")
    sessions = sdk.InMemorySessionService()
    model = sdk.Scripted(turns=[sdk.call("book", room="red")], requests=[])

    async def main():
        await sessions.create_session(app_name="rooms", user_id="u", session_id="s")
        content = sdk.types.Content(role="user", parts=[sdk.types.Part(text="Book the red room.")])
        (wanted,) = await page["say"](content, sessions, model)
        yes = page["confirmation"](wanted, True, edited={"room": "red", "hours": 2})
        assert await page["say"](yes, sessions, model) == {}

    asyncio.run(main())
    assert model.told()["c1"] == {"result": "red is yours for 2"}


# -- confirmations ------------------------------------------------------------------------------------------


def paused(gate, *calls, desk=None):
    desk = desk or sdk.Desk()
    house = sdk.House(sdk.gated(gate, desk.tools), list(calls) or [sdk.call("book", to="ada")])
    return desk, house, asyncio.run(house.say())


def test_an_ask_is_a_confirmation_and_harmless_siblings_run(tmp_path):
    with gate_in(tmp_path, settings=ALLOW_READ) as gate:
        calls = [
            sdk.call("book", "c1", to="ada"),
            sdk.call("book", "c2", to="eve"),
            sdk.call("read_note", "c3", name="n"),
        ]
        desk, house, events = paused(gate, *calls)
        questions = sdk.asked(events)
        assert desk.booked == ["n"] and set(questions) == {"c1", "c2"}
        assert len(gate.pending()) == 2 and len(house.model.requests) == 1
        asyncio.run(
            house.say(
                sdk.confirm(questions["c1"]), sdk.confirm(questions["c2"], False, {"message": "not eve"})
            )
        )
        assert desk.booked == ["n", ("ada", 1)]
        told = house.model.told()
        assert told["c1"] == {"result": "1 for ada"} and "not eve" in told["c2"]["error"]
        found = {each.result: each.answer for each in entries_of(gate) if each.verdict == "ask"}
        assert found["success"] == "approved" and gate.pending() == []


def test_a_confirmation_may_edit_the_arguments(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, house, events = paused(gate)
        payload = {"edited": {"to": "ada", "amount": 3}}
        asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"], True, payload)))
        assert desk.booked == [("ada", 3)]
        with pytest.raises(InputError):
            desk, house, events = paused(gate)
            asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"], True, {"edited": "all"})))
        assert desk.booked == []


def test_what_a_person_said_elsewhere_counts_for_more_than_a_confirmation(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, house, events = paused(gate)
        gate.answer(gate.pending()[0], "no: not today")
        asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"])))
        assert desk.booked == [] and "not today" in house.model.told()["c1"]["error"]


def test_a_confirmation_that_says_no_holds_whatever_else_was_said(tmp_path):
    with gate_in(tmp_path) as gate:
        desk, house, events = paused(gate)
        gate.answer(gate.pending()[0], "yes")
        asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"], False)))
        assert desk.booked == [] and house.model.told()["c1"] == {"error": sdk.REJECTED}


def test_where_the_program_may_not_answer_a_person_is_waited_for(tmp_path, monkeypatch):
    """The server takes no answer from the program that asks: the confirmation only says to go on."""
    with gate_in(tmp_path) as gate:
        desk, house, events = paused(gate)
        answer, tried = gate.authority.answer, asyncio.Event()

        def refuse(*_args, **_more):
            tried.set()
            raise InputError("A program is no person.")

        monkeypatch.setattr(gate.authority, "answer", refuse)

        async def main():
            going = asyncio.create_task(house.say(sdk.confirm(sdk.asked(events)["c1"])))
            await tried.wait()
            assert desk.booked == [] and not going.done()
            question = gate.pending()[0]["id"]
            await asyncio.to_thread(answer, question, "approved")
            await going

        asyncio.run(main())
        assert desk.booked == [("ada", 1)]

        desk, house, events = paused(gate)
        asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"], False)))
        assert desk.booked == [] and gate.pending() == []


def test_a_confirmation_binds_to_the_exact_call(tmp_path):
    """A session whose question is about another call, or gone, has no approval."""
    for change in (lambda text: text.replace("ada", "eve"), lambda _text: None):
        with gate_in(tmp_path) as gate:
            desk, house, events = paused(gate)

            async def meddle(house=house, change=change):
                session = house.sessions.sessions["app"]["u"]["s"]
                session.state[f"{sdk.STATE}c1"] = change(session.state[f"{sdk.STATE}c1"])

            asyncio.run(meddle())
            asyncio.run(house.say(sdk.confirm(sdk.asked(events)["c1"])))
            assert desk.booked == [] and house.model.told()["c1"] == {"error": sdk.LOST}


def test_the_session_keeps_the_question(tmp_path):
    with gate_in(tmp_path) as gate:
        _, house, events = paused(gate)
        kept = pending(asyncio.run(house.state())[f"{sdk.STATE}c1"])
        assert kept.call.arguments == {"to": "ada"} and kept.entry == gate.pending()[0]["id"]
        requested = next(
            each for event in events for each in event.get_function_calls() if each.name == sdk.CONFIRM
        )
        assert requested.args["toolConfirmation"]["payload"] == {"record": kept.entry}
        responses = [each.response for event in events for each in event.get_function_responses()]
        assert responses == [{"error": sdk.WAITS}]
