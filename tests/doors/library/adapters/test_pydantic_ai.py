"""A gate in Pydantic AI, with the real framework and a model that says what a script says."""

import asyncio
import datetime
from types import SimpleNamespace

import pytest

from checkrein import Denied, suspend
from checkrein.call import DEEPEST, ToolCall
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.lazily import Lazily
from doors.library.adapters.pages import page_of
from doors.library.behaviour import PATHS

sdk = Lazily("doors.library.adapters.pydantic_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed: its adapter is UNTESTED")


@pytest.fixture(autouse=True)
def loop():
    """`run_sync` makes an event loop where there is none, and leaves it open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
        asyncio.set_event_loop(None)


@pytest.fixture
def garden():
    """Tools that say what they did."""
    did = []

    def water(bed: str, litres: int = 1) -> str:
        did.append((bed, litres))
        return f"{bed} has {litres}"

    def dig(bed: str) -> str:
        did.append(bed)
        raise OSError("stones")

    return did, [water, dig]


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


def test_what_a_rule_allows_runs_without_asking(room, user_settings, garden):
    did, tools = garden
    allow(user_settings, "water")
    model = sdk.Scripted(("water", {"bed": "roses"}))
    result = sdk.agent(model, sdk.gated(room.open(asks="raise"), tools, server="garden")).run_sync("go")
    assert (result.output, did) == ("done", [("roses", 1)])
    assert model.heard == [("roses has 1", "success")]
    entry = room.last()
    assert (entry.tool_name, entry.call_id, entry.verdict, entry.stage, entry.result, entry.output) == (
        "mcp__garden__water",
        "c0",
        "allow",
        "rules",
        "success",
        "roses has 1",
    )


def test_a_refusal_and_its_reason_reach_the_model(room, garden):
    did, _ = garden
    model = sdk.Scripted(("Bash", {"command": "rm -rf /"}))

    def bash(command: str) -> str:
        did.append(command)
        return ""

    toolset = sdk.FunctionToolset()
    toolset.add_function(bash, name="Bash")
    assert sdk.agent(model, sdk.gated(room.open(asks="raise"), toolset)).run_sync("go").output == "done"
    [(text, outcome)] = model.heard
    assert "Critical risk is always blocked" in text and (outcome, did) == ("denied", [])
    with pytest.raises(Denied):
        sdk.agent(sdk.Scripted(*model.calls), sdk.gated(room.gate, toolset, denials="raise")).run_sync("go")
    assert {each.result for each in room.entries()} == {"denied"}


def test_a_question_stops_the_run_and_another_process_goes_on(room, garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "roses"}))
    stopped = sdk.agent(model, sdk.gated(room.open(asks="raise"), tools)).run_sync("go")
    history, requests = sdk.kept(stopped)
    assert did == [] and "Checkrein asks" in sdk.waiting(requests)["c0"].text
    gate = room.open(asks="raise")
    assert requests.remaining(sdk.results(gate, requests)) is not None
    gate.answer(sdk.waiting(requests)["c0"], "yes", actor="grace")
    gate = room.open(asks="raise")
    settled = sdk.results(gate, requests)
    assert requests.remaining(settled) is None
    again = sdk.agent(model, sdk.gated(gate, tools))
    assert again.run_sync(message_history=history, deferred_tool_results=settled).output == "done"
    assert (did, model.heard) == ([("roses", 1)], [("roses has 1", "success")])
    entry = room.last()
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")
    assert room.kinds(entry.id) == ["decided", "asked", "answered", "started", "finished"]


def test_resuming_twice_runs_once(room, garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "roses"}))
    gate = room.open(asks="raise")
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, tools)).run_sync("go"))
    settled = sdk.results(gate, requests, {"c0": True})
    for _ in range(2):
        sdk.agent(model, sdk.gated(gate, tools)).run_sync(
            message_history=history, deferred_tool_results=settled
        )
    [(text, outcome)] = model.heard
    assert did == [("roses", 1)] and outcome == "denied" and "used before" in text


def test_the_frameworks_own_yes_runs_nothing(room, garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "roses"}))
    gate = room.open(asks="raise")
    stopped = sdk.agent(model, sdk.gated(gate, tools)).run_sync("go")
    history, requests = sdk.kept(stopped)
    # Without our metadata it is a call like any, which asks; with it, the question is still open.
    for metadata in ({}, requests.metadata):
        theirs = sdk.DeferredToolResults(approvals={"c0": True}, metadata=metadata)
        again = sdk.agent(model, sdk.gated(gate, tools)).run_sync(
            message_history=history, deferred_tool_results=theirs
        )
        assert isinstance(again.output, sdk.DeferredToolRequests)
    assert did == [] and gate.pending()


def test_a_no_and_its_reason_reach_the_model(room, garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "roses"}), ("water", {"bed": "moss"}))
    gate = room.open(asks="raise")
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, tools)).run_sync("go"))
    settled = sdk.results(gate, requests, {"c0": sdk.ToolDenied("it rains"), "c1": "answer: it is wet"})
    sdk.agent(model, sdk.gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
    (text, outcome), answered = model.heard
    assert "They say: it rains" in text and (outcome, did) == ("denied", [])
    assert answered == ("it is wet", "success")
    assert [each.answer for each in room.entries()] == ["denied", "answered"]


def test_edited_arguments_run_as_the_tool_takes_them(room):
    came = []

    def plan(day: datetime.date, beds: list[str]) -> str:
        came.append((day, beds))
        return "planned"

    gate = room.open(asks="raise")
    for override in ({"day": "2026-05-02", "beds": ["moss"]}, {"day": "some day", "beds": []}):
        model = sdk.Scripted(("plan", {"day": "2026-05-01", "beds": ["roses"]}))
        history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, [plan])).run_sync("go"))
        settled = sdk.results(gate, requests, {"c0": sdk.ToolApproved(override_args=override)})
        sdk.agent(model, sdk.gated(gate, [plan])).run_sync(
            message_history=history, deferred_tool_results=settled
        )
        outcome = model.heard[0]
        assert came == [(datetime.date(2026, 5, 2), ["moss"])]
    assert "do not fit" in outcome[0] and outcome[1] == "failed"
    assert [each.result for each in room.entries()] == ["success", "failure"]


def test_parallel_calls_are_answered_one_by_one(room, user_settings, garden):
    did, tools = garden
    allow(user_settings, "look")

    def look() -> str:
        return "green"

    beds = [("water", {"bed": bed}) for bed in ("a", "b", "c")]
    model = sdk.Scripted(("look", {}), *beds)
    gate = room.open(asks="raise")
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, [*tools, look])).run_sync("go"))
    assert list(sdk.waiting(requests)) == ["c1", "c2", "c3"]
    assert list(sdk.results(gate, requests, {"c2": "no: later"}).approvals) == ["c2"]
    assert list(
        sdk.results(gate, requests, {"c1": edit(litres=5)({"arguments": {"bed": "a"}})}).approvals
    ) == [
        "c1",
        "c2",
    ]
    with pytest.raises(sdk.pydantic_ai.exceptions.UserError):
        sdk.agent(model, sdk.gated(gate, tools)).run_sync(
            message_history=history, deferred_tool_results=sdk.results(gate, requests)
        )
    assert did == []
    settled = sdk.results(gate, requests, {"c3": True})
    sdk.agent(model, sdk.gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
    assert sorted(did) == [("a", 5), ("c", 1)]
    with pytest.raises(InputError, match="No question"):
        sdk.results(gate, requests, {"c9": True})


def test_an_answer_binds_to_the_exact_call(room, garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "roses"}), ("water", {"bed": "moss"}))
    gate = room.open(asks="raise")
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, tools)).run_sync("go"))
    good = sdk.results(gate, requests, {"c0": True, "c1": "no"})
    changed = sdk.ModelMessagesTypeAdapter.validate_json(
        sdk.ModelMessagesTypeAdapter.dump_json(history).replace(b"roses", b"lawns")
    )

    def resumed(first=True, ours=None, messages=history):
        given = sdk.DeferredToolResults(
            approvals={"c0": first, "c1": False}, metadata=ours or {"c0": good.metadata["c0"]}
        )
        again = sdk.agent(model, sdk.gated(gate, tools))
        again.run_sync(message_history=messages, deferred_tool_results=given)
        return model.heard[0]

    text, outcome = resumed(sdk.ToolApproved(override_args={"bed": "lawn"}))
    assert "not those a person was asked about" in text and outcome == "denied"
    assert "another call" in resumed(ours={"c0": good.metadata["c1"]})[0]
    assert "not those a person was asked about" in resumed(messages=changed)[0]
    forged = good.metadata["c0"]["checkrein"]
    forged = {**forged, "call": {**forged["call"], "arguments": {"bed": "lawns", "litres": 1}}}
    with pytest.raises(InputError, match="no question about this call"):
        resumed(ours={"c0": {"checkrein": forged}}, messages=changed)
    assert did == []
    assert resumed() == ("roses has 1", "success") and did == [("roses", 1)]


def test_outcomes_earn_and_cost_trust(room, garden):
    _, tools = garden
    gate = room.open(settings=["doors.library.unmatched=earned"], asks="raise")
    open_tools = sdk.gated(gate, tools, server="garden", needs_approval=False)
    sdk.agent(sdk.Scripted(("water", {"bed": "a"})), open_tools).run_sync("go")
    with pytest.raises(OSError, match="stones"):
        sdk.agent(sdk.Scripted(("dig", {"bed": "a"})), open_tools).run_sync("go")
    good, bad = room.entries()
    assert (good.result, bad.result, bad.evidence) == ("success", "failure", "exception")
    assert bad.trust_score_after < good.trust_score_after


def test_waiting_where_the_call_is_made(garden):
    did, tools = garden
    model = sdk.Scripted(("water", {"bed": "a"}), ("water", {"bed": "b"}), ("water", {"bed": "c"}))

    def answer(question):
        return {"a": edit(litres=3), "b": lambda _: "no: wet", "c": lambda _: "yes"}[
            question["arguments"]["bed"]
        ](question)

    with ScriptedGate(answer) as gate:
        assert sdk.agent(model, sdk.gated(gate, tools)).run_sync("go").output == "done"
        assert sorted(did) == [("a", 3), ("c", 1)] and len(gate.asked) == 3
    assert [outcome for _, outcome in model.heard] == ["success", "denied", "success"]


def test_a_tool_that_suspends_itself_goes_on_with_what_it_is_told(room, user_settings):
    allow(user_settings, "plant")
    planted = []

    def plant(bed: str) -> str:
        planted.append(suspend({"which": ["rose", "moss"]}))
        return f"{planted[-1]} in {bed}"

    model = sdk.Scripted(("plant", {"bed": "a"}))
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(room.open(asks="raise"), [plant])).run_sync("go"))
    assert sdk.waiting(requests)["c0"].payload == {"which": ["rose", "moss"]}
    gate = room.open(asks="raise")
    assert sdk.results(gate, requests).approvals == {}
    settled = sdk.results(gate, requests, told={"c0": "moss"})
    for _ in range(2):
        sdk.agent(model, sdk.gated(gate, [plant])).run_sync(
            message_history=history, deferred_tool_results=settled
        )
    assert planted == ["moss"] and model.heard[0][1] == "denied"


def test_a_tool_that_requires_approval_in_the_framework_asks_the_gate(room, user_settings):
    allow(user_settings, "water")
    did = []
    toolset = sdk.FunctionToolset()

    @toolset.tool_plain(requires_approval=True)
    def water() -> str:
        did.append(1)
        return "wet"

    gate = room.open(asks="raise")
    model = sdk.Scripted(("water", {}))
    history, requests = sdk.kept(sdk.agent(model, sdk.gated(gate, toolset)).run_sync("go"))
    assert sdk.waiting(requests)["c0"].verdict.word == "ask" and did == []
    settled = sdk.results(gate, requests, {"c0": True})
    sdk.agent(model, sdk.gated(gate, toolset)).run_sync(
        message_history=history, deferred_tool_results=settled
    )
    assert did == [1]


def test_a_tool_that_defers_itself_earns_nothing(room, user_settings):
    allow(user_settings, "pick", "look")

    def pick(ctx: sdk.RunContext) -> str:
        if not ctx.tool_call_approved:
            raise sdk.ApprovalRequired({"why": "money"})
        return "picked"

    def look() -> str:
        raise sdk.CallDeferred

    gate = room.open(asks="raise")
    model = sdk.Scripted(("pick", {}), ("look", {}))
    stopped = sdk.agent(model, sdk.gated(gate, [pick, look])).run_sync("go")
    history, requests = sdk.kept(stopped)
    assert sdk.waiting(requests) == {} and requests.metadata["c0"] == {"why": "money"}
    theirs = sdk.DeferredToolResults(approvals={"c0": True}, calls={"c1": "lookped"})
    sdk.agent(model, sdk.gated(gate, [pick, look])).run_sync(
        message_history=history, deferred_tool_results=theirs
    )
    assert [each[0] for each in model.heard] == ["picked", "lookped"]
    assert [each.result for each in room.entries()] == ["cancelled", "cancelled", "success"]


def test_what_runs_outside_is_not_offered_as_gated(room):
    outside = sdk.ExternalToolset([sdk.ToolDefinition(name="far")])
    with pytest.raises(InputError, match="runs outside"):
        sdk.agent(sdk.Scripted(), sdk.gated(room.open(), outside)).run_sync("go")


def through(case, folder):
    ran = []
    with rooms.gate_for(case, folder) as gate:
        model = sdk.Scripted((case.tool, case.arguments))
        output = (
            sdk.agent(model, sdk.gated(gate, sdk.Anything(case.tool, ran), server=None)).run_sync("go").output
        )
        denied = not isinstance(output, sdk.DeferredToolRequests) and model.heard[0][1] == "denied"
        word = "ask" if isinstance(output, sdk.DeferredToolRequests) else "deny" if denied else "allow"
        return rooms.heard_at(gate, word, bool(ran))


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    rooms.check_adapter(case, *through(case, tmp_path / "adapter"), tmp_path / "bare")


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = sdk.Scripted(("water", {"bed": "roses"}))
    names = page_of("library-pydantic-ai.md", model=sdk.FunctionModel(model))
    names["gate"].close()
    assert model.heard == [("roses has 2", "success")]
    assert capsys.readouterr().out.endswith("done\n")


def test_what_is_nested_too_deep_is_not_taken_for_the_text_that_describes_it():
    def asked(last):
        value = last
        for _ in range(DEEPEST - 1):
            value = [value]
        return {"bed": value}

    spec = SimpleNamespace(server="garden", name="water")
    call = ToolCall(tool="water", server="garden", arguments=asked("['x']"), call_id="c0")
    found, ctx = SimpleNamespace(kind="approval", call=call), SimpleNamespace(tool_call_id="c0")
    assert sdk.other(found, spec, asked("['x']"), ctx) == ""
    with pytest.raises(InputError, match="nested more than 128 deep"):
        sdk.other(found, spec, asked(["x"]), ctx)
