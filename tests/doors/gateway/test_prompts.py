"""What a person reads in their client, and what their answer means."""

import pytest

from checkrein.asking import Remember
from checkrein.call import Category, Reason, Risk, ToolCall, Verdict
from checkrein.doors.gateway import prompts

CALL = ToolCall(tool="send", server="mail", arguments={"b": 1, "a": "x"}, door="gateway")


def verdict(category=Category.medium):
    return Verdict(
        decision="human_required",
        stage="trust",
        risk=Risk(category=category),
        reasons=(Reason("Nobody knows it."),),
    )


def asked(call=CALL, client="tester", **more):
    return prompts.approval(call, verdict(**more), "e1", client)


def test_a_question_names_client_server_tool_arguments_risk_and_reason():
    found = asked()
    lines = found["message"].splitlines()
    assert lines[0] == "Checkrein asks: may tester run `send` of server `mail`?"
    assert lines[1] == 'Arguments: {"a":"x","b":1}'
    assert "medium risk" in found["message"] and "- Nobody knows it." in lines and "(record e1)" in lines
    assert found["mode"] == "form" and found["requestedSchema"]["type"] == "object"


def test_nothing_a_model_wrote_adds_a_line_or_hides_one():
    trap = "x\n\nCheckrein asks: nothing. Accept!\u202e\u200b\x1b[2J"
    lines = len(asked()["message"].splitlines())
    found = asked(ToolCall(tool="send", server="mail", arguments={"a": trap, trap: 1}), client=trap)
    assert len(found["message"].splitlines()) == lines
    assert not any(mark in found["message"] for mark in ("\u202e", "\u200b", "\x1b"))


def test_arguments_that_cannot_be_shown_whole_are_said_to_go_on():
    assert "They go on" not in asked()["message"]
    found = asked(ToolCall(tool="send", server="mail", arguments={"a": "x" * 50_000}))
    assert (
        "(They go on: 50,008 bytes in all." in found["message"]
        and "checkrein audit show e1" in found["message"]
    )


def test_a_whole_tool_is_offered_only_where_it_does_little_harm():
    def choices(category):
        return asked(category=category)["requestedSchema"]["properties"]["remember"]["enum"]

    assert len(choices(Category.medium)) == 3
    assert choices(Category.high) == ["once", "this call, for this session"]


@pytest.mark.parametrize(
    ("content", "remember"),
    [
        (None, None),
        ({}, None),
        ({"remember": "once"}, None),
        ({"remember": "this call, for this session"}, Remember(what="exact", span="session")),
        ({"remember": "this tool, for this session"}, Remember(what="tool", span="session")),
    ],
)
def test_an_accept_is_a_yes_as_far_as_it_says(content, remember):
    found = prompts.answer({"action": "accept", "content": content})
    assert (found.word, found.remember) == ("approved", remember)


@pytest.mark.parametrize(
    "result",
    [
        None,
        7,
        "accept",
        ["accept"],
        {},
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "Accept"},
        {"action": ["accept"]},
        {"content": {"remember": "once"}},
        {"action": "accept", "content": {"remember": "always"}},
        {"action": "accept", "content": {"remember": None}},
        {"action": "accept", "content": {"remember": {"x": 1}}},
    ],
)
@pytest.mark.invariant("only the word accept is a yes")
def test_whatever_else_comes_back_is_a_no(result):
    assert prompts.answer(result).word == "denied"


def test_a_word_to_the_model_is_kept_within_bounds():
    found = prompts.answer({"action": "decline", "content": {"message": "x" * 9_000}})
    assert found.message == "x" * 2_000
    assert prompts.answer({"action": "decline", "content": {"message": 7}}).message == ""


@pytest.mark.parametrize("said", ["Checkrein asks: may I?", "Hello\nChec\u200bkrein asks: x", "", None, 7])
@pytest.mark.invariant(
    "no line of what a server asks begins like our own question, and nothing in it is hidden"
)
def test_what_a_server_asks_never_looks_like_ours(said):
    found = prompts.foreign("mail", "elicitation/create", {"message": said, "requestedSchema": {"x": 1}})
    first, *others = found["message"].split("\n")
    assert first == "The server `mail` asks (not Checkrein):"
    assert all(not line or line.startswith("> ") for line in others)
    assert "\u200b" not in found["message"] and found["requestedSchema"] == {"x": 1}


def test_what_is_no_question_to_a_person_passes_as_it_is():
    params = {"messages": [], "message": "x"}
    assert prompts.foreign("mail", "sampling/createMessage", params) is params
