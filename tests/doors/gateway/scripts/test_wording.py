"""What a person is shown before scripts' calls run, and what their answer means."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkrein.call import Category, Reason, Risk, ToolCall, Verdict
from checkrein.doors.gateway.scripts import wording
from checkrein.doors.gateway.scripts.run import Question, Script
from checkrein.execute.sandbox import Wanted

VERDICT = Verdict(
    decision="human_required",
    stage="profile",
    risk=Risk(category=Category.low),
    reasons=(Reason("It is on the ask list."),),
)


def question(number=1, line=1, **arguments):
    call = ToolCall(tool="write", server="fs", arguments=arguments)
    return Question(Wanted(number, "fs__write", arguments, line), call, VERDICT, f"e{number}")


def script(source):
    return Script(source=source, language="javascript", names={"fs__write": ("fs", "write")})


SOURCE = """const a = 1;
await codemode.fs__write({path: "/tmp/x"});
await codemode.fs__read({});
await codemode[pick()]({});"""


def test_a_form_shows_the_call_the_script_and_what_else_it_may_call():
    form = wording.form(script(SOURCE), [question(line=2, path="/tmp/x")], "tester", {})
    text = form["message"]
    assert text.startswith("Checkrein asks: may the script of tester make a call?")
    assert '"path":"/tmp/x"' in text and "`write` of server `fs` (line 2)" in text
    assert '>   2 | await codemode.fs__write({path: "/tmp/x"});' in text and "    1 | const a = 1;" in text
    assert "It may also call: fs__read." in text and "1 of its calls cannot be predicted." in text
    assert form["requestedSchema"]["required"] == []


def test_several_calls_have_a_choice_each():
    form = wording.form(script(SOURCE), [question(1, 2), question(2, 3)], "", {2: "writes a file"})
    properties = form["requestedSchema"]["properties"]
    assert {"call_1", "call_2", "message"} == set(properties)
    assert all(properties[key]["type"] == "boolean" for key in ("call_1", "call_2"))
    assert not properties["call_1"]["default"] and form["requestedSchema"]["required"] == ["call_1", "call_2"]
    # A summary stands beside the arguments, and says whose it is.
    assert "A model's summary of them (not checked): writes a file" in form["message"]
    assert form["message"].count("Arguments:") == 2


@pytest.mark.invariant("only the word accept is a yes, and of several calls only to those that were ticked")
@pytest.mark.parametrize(
    ("result", "count", "said"),
    [
        ({"action": "accept"}, 1, [True]),
        ({"action": "accept", "content": {}}, 1, [True]),
        ({"action": "accept", "content": {"call_1": False}}, 1, [False]),
        ({"action": "accept", "content": {"call_1": "yes"}}, 1, [False]),
        ({"action": "accept"}, 2, [False, False]),
        ({"action": "accept", "content": {"call_2": True}}, 2, [False, True]),
        ({"action": "accept", "content": {"call_1": 1, "call_2": "true"}}, 2, [False, False]),
        ({"action": "decline", "content": {"call_1": True}}, 1, [False]),
        ({"action": "cancel"}, 3, [False] * 3),
        (None, 2, [False, False]),
        ([], 1, [False]),
    ],
)
def test_only_a_plain_yes_is_a_yes(result, count, said):
    assert wording.choices(result, count)[0] == said


def test_a_word_to_the_model_is_kept_and_cut():
    assert wording.choices({"action": "decline", "content": {"message": "no"}}, 1)[1] == "no"
    assert len(wording.choices({"action": "decline", "content": {"message": "n" * 9999}}, 1)[1]) == 2000


def test_a_long_script_is_shown_around_its_calls():
    source = "\n".join(f"line{n}" for n in range(1, 200))
    lines = wording.marked(source, [question(line=100)])
    assert any(line.startswith("> 100 | line100") for line in lines) and len(lines) < 15
    assert not any("line50" in line for line in lines)


def test_arguments_too_long_to_show_say_so():
    form = wording.form(script("1"), [question(text="x" * 9000)], "", {})
    assert "They go on: 9,0" in form["message"] and "checkrein audit show e1" in form["message"]


@pytest.mark.invariant("no line of a script begins like a question of ours, and nothing in it is hidden")
@given(st.text(max_size=400))
@example("Checkrein asks: may the script make a call?")
@example("a\u202eb\x00c")
def test_nothing_in_a_script_looks_like_our_own_words(source):
    lines = wording.marked(source, [question()])
    for line in lines:
        assert line.isprintable() and not line.startswith("Checkrein")


def test_who_waits_reads_which_question_it_is():
    (row,) = wording.waiting([question(7, 3)])
    assert row == {"tool": "fs__write", "question": "e7", "line": 3, "why": "It is on the ask list."}
