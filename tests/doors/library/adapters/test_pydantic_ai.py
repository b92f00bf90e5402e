"""A gate in Pydantic AI, with the real framework and a model that says what a script says."""

import asyncio
import datetime
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from checkrein import Denied, suspend
from checkrein.call import DEEPEST, ToolCall
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.pages import page_of
from doors.library.behaviour import CASES
from patience import PATIENCE
from server.conftest import Serving

pydantic_ai = pytest.importorskip(
    "pydantic_ai", reason="Pydantic AI is not installed: its adapter is UNTESTED"
)

from pydantic import TypeAdapter  # noqa: E402
from pydantic_ai import (  # noqa: E402
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ExternalToolset,
    FunctionToolset,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart  # noqa: E402
from pydantic_ai.models.function import FunctionModel  # noqa: E402

from checkrein.doors.library.adapters.pydantic_ai import _other, gated, results, waiting  # noqa: E402

REQUESTS = TypeAdapter(DeferredToolRequests)


class Scripted:
    """A model that makes the calls it is given, and then says what it heard of them."""

    def __init__(self, *calls):
        self.calls = calls
        self.heard = []

    def __call__(self, messages, _info):
        returns = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
        if not returns and len(messages) == 1:
            parts = [ToolCallPart(name, given, f"c{n}") for n, (name, given) in enumerate(self.calls)]
            return ModelResponse(parts=parts)
        self.heard = [(part.content, part.outcome) for part in returns]
        return ModelResponse(parts=[TextPart("done")])


def agent(model, *toolsets, **options):
    return Agent(FunctionModel(model), toolsets=toolsets, output_type=[str, DeferredToolRequests], **options)


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


def kept(result):
    """A run that stopped, as JSON, and read back as another process would."""
    text = ModelMessagesTypeAdapter.dump_json(result.all_messages()), REQUESTS.dump_json(result.output)
    return ModelMessagesTypeAdapter.validate_json(text[0]), REQUESTS.validate_json(text[1])


def test_what_a_rule_allows_runs_without_asking(room, user_settings, garden):
    did, tools = garden
    allow(user_settings, "water")
    model = Scripted(("water", {"bed": "roses"}))
    result = agent(model, gated(room.open(asks="raise"), tools, server="garden")).run_sync("go")
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
    model = Scripted(("Bash", {"command": "rm -rf /"}))

    def bash(command: str) -> str:
        did.append(command)
        return ""

    toolset = FunctionToolset()
    toolset.add_function(bash, name="Bash")
    assert agent(model, gated(room.open(asks="raise"), toolset)).run_sync("go").output == "done"
    [(text, outcome)] = model.heard
    assert "Critical risk is always blocked" in text and (outcome, did) == ("denied", [])
    with pytest.raises(Denied):
        agent(Scripted(*model.calls), gated(room.gate, toolset, denials="raise")).run_sync("go")
    assert {each.result for each in room.entries()} == {"denied"}


def test_a_question_stops_the_run_and_another_process_goes_on(room, garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "roses"}))
    stopped = agent(model, gated(room.open(asks="raise"), tools)).run_sync("go")
    history, requests = kept(stopped)
    assert did == [] and "Checkrein asks" in waiting(requests)["c0"].text
    gate = room.open(asks="raise")
    assert requests.remaining(results(gate, requests)) is not None
    gate.answer(waiting(requests)["c0"], "yes", actor="grace")
    gate = room.open(asks="raise")
    settled = results(gate, requests)
    assert requests.remaining(settled) is None
    again = agent(model, gated(gate, tools))
    assert again.run_sync(message_history=history, deferred_tool_results=settled).output == "done"
    assert (did, model.heard) == ([("roses", 1)], [("roses has 1", "success")])
    entry = room.last()
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")
    assert room.kinds(entry.id) == ["decided", "asked", "answered", "started", "finished"]


def test_resuming_twice_runs_once(room, garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "roses"}))
    gate = room.open(asks="raise")
    history, requests = kept(agent(model, gated(gate, tools)).run_sync("go"))
    settled = results(gate, requests, {"c0": True})
    for _ in range(2):
        agent(model, gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
    [(text, outcome)] = model.heard
    assert did == [("roses", 1)] and outcome == "denied" and "used before" in text


def test_the_frameworks_own_yes_runs_nothing(room, garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "roses"}))
    gate = room.open(asks="raise")
    stopped = agent(model, gated(gate, tools)).run_sync("go")
    history, requests = kept(stopped)
    # Without our metadata it is a call like any, which asks; with it, the question is still open.
    for metadata in ({}, requests.metadata):
        theirs = DeferredToolResults(approvals={"c0": True}, metadata=metadata)
        again = agent(model, gated(gate, tools)).run_sync(
            message_history=history, deferred_tool_results=theirs
        )
        assert isinstance(again.output, DeferredToolRequests)
    assert did == [] and gate.pending()


def test_a_no_and_its_reason_reach_the_model(room, garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "roses"}), ("water", {"bed": "moss"}))
    gate = room.open(asks="raise")
    history, requests = kept(agent(model, gated(gate, tools)).run_sync("go"))
    settled = results(gate, requests, {"c0": ToolDenied("it rains"), "c1": "answer: it is wet"})
    agent(model, gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
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
        model = Scripted(("plan", {"day": "2026-05-01", "beds": ["roses"]}))
        history, requests = kept(agent(model, gated(gate, [plan])).run_sync("go"))
        settled = results(gate, requests, {"c0": ToolApproved(override_args=override)})
        agent(model, gated(gate, [plan])).run_sync(message_history=history, deferred_tool_results=settled)
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
    model = Scripted(("look", {}), *beds)
    gate = room.open(asks="raise")
    history, requests = kept(agent(model, gated(gate, [*tools, look])).run_sync("go"))
    assert list(waiting(requests)) == ["c1", "c2", "c3"]
    assert list(results(gate, requests, {"c2": "no: later"}).approvals) == ["c2"]
    assert list(results(gate, requests, {"c1": edit(litres=5)({"arguments": {"bed": "a"}})}).approvals) == [
        "c1",
        "c2",
    ]
    with pytest.raises(pydantic_ai.exceptions.UserError):
        agent(model, gated(gate, tools)).run_sync(
            message_history=history, deferred_tool_results=results(gate, requests)
        )
    assert did == []
    settled = results(gate, requests, {"c3": True})
    agent(model, gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
    assert sorted(did) == [("a", 5), ("c", 1)]
    with pytest.raises(InputError, match="No question"):
        results(gate, requests, {"c9": True})


def test_an_answer_binds_to_the_exact_call(room, garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "roses"}), ("water", {"bed": "moss"}))
    gate = room.open(asks="raise")
    history, requests = kept(agent(model, gated(gate, tools)).run_sync("go"))
    good = results(gate, requests, {"c0": True, "c1": "no"})
    changed = ModelMessagesTypeAdapter.validate_json(
        ModelMessagesTypeAdapter.dump_json(history).replace(b"roses", b"lawns")
    )

    def resumed(first=True, ours=None, messages=history):
        given = DeferredToolResults(
            approvals={"c0": first, "c1": False}, metadata=ours or {"c0": good.metadata["c0"]}
        )
        again = agent(model, gated(gate, tools))
        again.run_sync(message_history=messages, deferred_tool_results=given)
        return model.heard[0]

    text, outcome = resumed(ToolApproved(override_args={"bed": "lawn"}))
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
    open_tools = gated(gate, tools, server="garden", needs_approval=False)
    agent(Scripted(("water", {"bed": "a"})), open_tools).run_sync("go")
    with pytest.raises(OSError, match="stones"):
        agent(Scripted(("dig", {"bed": "a"})), open_tools).run_sync("go")
    good, bad = room.entries()
    assert (good.result, bad.result, bad.evidence) == ("success", "failure", "exception")
    assert bad.trust_score_after < good.trust_score_after


def test_waiting_where_the_call_is_made(garden):
    did, tools = garden
    model = Scripted(("water", {"bed": "a"}), ("water", {"bed": "b"}), ("water", {"bed": "c"}))

    def answer(question):
        return {"a": edit(litres=3), "b": lambda _: "no: wet", "c": lambda _: "yes"}[
            question["arguments"]["bed"]
        ](question)

    with ScriptedGate(answer) as gate:
        assert agent(model, gated(gate, tools)).run_sync("go").output == "done"
        assert sorted(did) == [("a", 3), ("c", 1)] and len(gate.asked) == 3
    assert [outcome for _, outcome in model.heard] == ["success", "denied", "success"]


def test_a_tool_that_suspends_itself_goes_on_with_what_it_is_told(room, user_settings):
    allow(user_settings, "plant")
    planted = []

    def plant(bed: str) -> str:
        planted.append(suspend({"which": ["rose", "moss"]}))
        return f"{planted[-1]} in {bed}"

    model = Scripted(("plant", {"bed": "a"}))
    history, requests = kept(agent(model, gated(room.open(asks="raise"), [plant])).run_sync("go"))
    assert waiting(requests)["c0"].payload == {"which": ["rose", "moss"]}
    gate = room.open(asks="raise")
    assert results(gate, requests).approvals == {}
    settled = results(gate, requests, told={"c0": "moss"})
    for _ in range(2):
        agent(model, gated(gate, [plant])).run_sync(message_history=history, deferred_tool_results=settled)
    assert planted == ["moss"] and model.heard[0][1] == "denied"


def test_a_tool_that_requires_approval_in_the_framework_asks_the_gate(room, user_settings):
    allow(user_settings, "water")
    did = []
    toolset = FunctionToolset()

    @toolset.tool_plain(requires_approval=True)
    def water() -> str:
        did.append(1)
        return "wet"

    gate = room.open(asks="raise")
    model = Scripted(("water", {}))
    history, requests = kept(agent(model, gated(gate, toolset)).run_sync("go"))
    assert waiting(requests)["c0"].verdict.word == "ask" and did == []
    settled = results(gate, requests, {"c0": True})
    agent(model, gated(gate, toolset)).run_sync(message_history=history, deferred_tool_results=settled)
    assert did == [1]


def test_a_tool_that_defers_itself_earns_nothing(room, user_settings):
    allow(user_settings, "pick", "look")

    def pick(ctx: RunContext) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired({"why": "money"})
        return "picked"

    def look() -> str:
        raise CallDeferred

    gate = room.open(asks="raise")
    model = Scripted(("pick", {}), ("look", {}))
    stopped = agent(model, gated(gate, [pick, look])).run_sync("go")
    history, requests = kept(stopped)
    assert waiting(requests) == {} and requests.metadata["c0"] == {"why": "money"}
    theirs = DeferredToolResults(approvals={"c0": True}, calls={"c1": "lookped"})
    agent(model, gated(gate, [pick, look])).run_sync(message_history=history, deferred_tool_results=theirs)
    assert [each[0] for each in model.heard] == ["picked", "lookped"]
    assert [each.result for each in room.entries()] == ["cancelled", "cancelled", "success"]


def test_what_runs_outside_is_not_offered_as_gated(room):
    outside = ExternalToolset([ToolDefinition(name="far")])
    with pytest.raises(InputError, match="runs outside"):
        agent(Scripted(), gated(room.open(), outside)).run_sync("go")


CHILD = """
import os, sys
from pathlib import Path
from checkrein import Gate
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from checkrein.doors.library.adapters.pydantic_ai import gated

def water(bed: str, litres: int = 1) -> str: raise AssertionError("it ran")
model = FunctionModel(lambda m, i: ModelResponse(parts=[ToolCallPart("water", {"bed": "roses"}, "c0")]))
gate = Gate(sys.argv[1], asks="raise", project=sys.argv[2])
agent = Agent(model, toolsets=[gated(gate, [water])], output_type=[str, DeferredToolRequests])
result = agent.run_sync("go")
Path(sys.argv[3]).write_bytes(result.all_messages_json())
Path(sys.argv[4]).write_bytes(TypeAdapter(DeferredToolRequests).dump_json(result.output))
os._exit(9)
"""


def test_a_process_that_dies_while_it_waits_loses_nothing(room, garden, tmp_path):
    did, tools = garden
    files = tmp_path / "history", tmp_path / "requests"
    command = [sys.executable, "-c", CHILD, room.folder, os.getcwd(), *files]
    assert subprocess.run([str(each) for each in command], check=False, timeout=PATIENCE).returncode == 9
    history = ModelMessagesTypeAdapter.validate_json(files[0].read_bytes())
    requests = REQUESTS.validate_json(files[1].read_bytes())
    gate, model = room.open(asks="raise"), Scripted()
    settled = results(gate, requests, {"c0": True})
    agent(model, gated(gate, tools)).run_sync(message_history=history, deferred_tool_results=settled)
    assert (did, room.last().result) == ([("roses", 1)], "success")


SERVED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(os.pathsep)
from checkrein import Gate
from checkrein.errors import CheckreinError
from doors.library.adapters.test_pydantic_ai import *

did, folder = [], Path(sys.argv[1])
def water(bed: str) -> str:
    did.append(bed)
    return bed

model = Scripted(("water", {"bed": "roses"}))
with Gate(server=True, asks="raise") as gate:
    ours = agent(model, gated(gate, [water]))
    if not (folder / "history").exists():
        result = ours.run_sync("go")
        (folder / "history").write_bytes(result.all_messages_json())
        (folder / "requests").write_bytes(REQUESTS.dump_json(result.output))
        try:
            results(gate, result.output, {"c0": True})
        except CheckreinError as error:
            print(error, results(gate, result.output).approvals, did)
    else:
        settled = results(gate, REQUESTS.validate_json((folder / "requests").read_bytes()))
        history = ModelMessagesTypeAdapter.validate_json((folder / "history").read_bytes())
        ours.run_sync(message_history=history, deferred_tool_results=settled)
        print(model.heard, did)
"""


def test_with_the_server_only_a_person_answers(tmp_path, home):
    serving = Serving().start()
    try:
        paths = os.pathsep.join(each for each in sys.path if each)
        command = [sys.executable, "-c", SERVED, str(tmp_path), paths]

        def program():
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

        assert "Only a person may do this" in (said := program()) and said.endswith("{} []\n")
        [question] = serving.ask("question.list")
        serving.ask("question.answer", id=question["id"], answer="approved")
        assert program() == "[('roses', 'success')] ['roses']\n"
    finally:
        serving.kill(15)


# -- the behaviour suite ------------------------------------------------------------------------------------


class Anything(FunctionToolset):
    """Whatever tool a case names, with whatever arguments."""

    def __init__(self, name, ran):
        super().__init__()

        def tool(**given) -> str:
            ran.append(given)
            return "ran"

        schema = {"type": "object", "additionalProperties": True}
        self.add_tool(pydantic_ai.Tool.from_schema(tool, name=name, description=None, json_schema=schema))


def through(case, folder):
    ran = []
    with rooms.gate_for(case, folder) as gate:
        model = Scripted((case.tool, case.arguments))
        output = agent(model, gated(gate, Anything(case.tool, ran), server=None)).run_sync("go").output
        denied = not isinstance(output, DeferredToolRequests) and model.heard[0][1] == "denied"
        word = "ask" if isinstance(output, DeferredToolRequests) else "deny" if denied else "allow"
        return rooms.heard_at(gate, word, bool(ran))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    rooms.check_adapter(case, *through(case, tmp_path / "adapter"), tmp_path / "bare")


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = Scripted(("water", {"bed": "roses"}))
    names = page_of("library-pydantic-ai.md", model=FunctionModel(model))
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
    assert _other(found, spec, asked("['x']"), ctx) == ""
    with pytest.raises(InputError, match="nested more than 128 deep"):
        _other(found, spec, asked(["x"]), ctx)
