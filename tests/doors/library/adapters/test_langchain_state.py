"""A graph's state is kept by others: a question put there in the place of another runs nothing."""

from types import SimpleNamespace

import pytest

from doors.library.adapters.lazily import Lazily

sdk = Lazily("doors.library.adapters.langchain_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    why = "LangChain, LangGraph or its SQLite checkpointer is not installed: the adapter is UNTESTED"
    for name in ("langchain", "langgraph", "langgraph.checkpoint.sqlite"):
        pytest.importorskip(name, reason=why)


@pytest.mark.parametrize("other", [{"bed": "lawn"}, {"bed": 1}])
def test_a_yes_to_another_call_runs_nothing(room, monkeypatch, other):
    gate, ran = room.open(asks="raise"), []
    ours = sdk.GateMiddleware(gate)
    calls = [
        {"name": "water", "args": {"bed": True}, "id": "c0", "type": "tool_call"},
        {"name": "water", "args": other, "id": "c1", "type": "tool_call"},
    ]
    notes = ours.after_model({"messages": [sdk.AIMessage("", tool_calls=calls)]})["checkrein"]
    gate.answer(notes["c1"]["entry"], "yes")
    # The question of one call, with its yes, where the other one's was.
    notes["c0"]["waits"] = notes["c1"]["waits"]
    entry = notes["c1"]["entry"]
    monkeypatch.setattr(sdk.langchain, "interrupt", lambda _shown: {"checkrein": {"entry": entry}})

    def handler(request):
        ran.append(request.tool_call)
        return sdk.ToolMessage("done", tool_call_id=request.tool_call["id"])

    request = sdk.ToolCallRequest(
        tool_call=calls[0], tool=None, state={"checkrein": notes}, runtime=SimpleNamespace()
    )
    message = ours.wrap_tool_call(request, handler)
    assert (ran, message.status) == ([], "error")
    # The other call itself still has its yes.
    request = sdk.ToolCallRequest(
        tool_call=calls[1], tool=None, state={"checkrein": notes}, runtime=SimpleNamespace()
    )
    assert ours.wrap_tool_call(request, handler).content == "done" and len(ran) == 1


def test_a_note_of_a_call_that_reads_almost_the_same_is_not_its_note(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "water"\n')
    gate, ran = room.open(asks="raise"), []
    ours = sdk.GateMiddleware(gate)
    call = {"name": "water", "args": {"bed": 1}, "id": "c0", "type": "tool_call"}
    notes = ours.after_model({"messages": [sdk.AIMessage("", tool_calls=[call])]})["checkrein"]
    changed = {**call, "args": {"bed": True}}
    request = sdk.ToolCallRequest(
        tool_call=changed, tool=None, state={"checkrein": notes}, runtime=SimpleNamespace()
    )
    assert ours.wrap_tool_call(request, ran.append).status == "error" and ran == []
    assert room.last().result == "cancelled"
