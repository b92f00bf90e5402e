"""Approvals by script: what users test their own agents with."""

import pytest

from checkrein import Denied
from checkrein.doors.library.answers import Answer
from checkrein.errors import InputError
from checkrein.testing import Script, ScriptedGate, checkrein_gate, edit  # noqa: F401 - a fixture


def question(tool="mcp__python__pay", **arguments):
    return {"id": "q", "tool": tool, "arguments": arguments}


def test_one_answer_for_all():
    script = Script("yes")
    assert script(question()).answer == "approved"
    assert script(question("Bash")).answer == "approved"
    assert script.tools == ["pay", "Bash"]


def test_the_first_line_that_fits_counts_by_name_pattern_and_full_name():
    script = Script({"pay": "no: too dear", "mcp__mail__*": "yes", "*": False})
    assert script(question()) == Answer(answer="denied", message="too dear")
    assert script(question("mcp__mail__send")).answer == "approved"
    assert script(question("Bash")) == Answer(answer="denied")
    assert script.unexpected == []


def test_a_list_answers_one_call_after_another_and_its_last_line_stays():
    script = Script({"pay": ["yes", "no"]})
    assert [script(question()).answer for _ in range(3)] == ["approved", "denied", "denied"]


def test_an_edit_changes_some_arguments():
    answer = Script({"pay": edit(amount=5)})(question(amount=50, to="ada"))
    assert (answer.answer, answer.edited) == ("approved", {"amount": 5, "to": "ada"})


def test_a_function_of_the_question():
    script = Script(lambda each: each["arguments"]["amount"] < 10)
    assert [script(question(amount=n)).answer for n in (5, 50)] == ["approved", "denied"]


def test_what_no_line_is_about_is_a_no_and_is_remembered():
    script = Script({"other": "yes"})
    assert script(question()).answer == "denied"
    assert [each["tool"] for each in script.unexpected] == ["mcp__python__pay"]
    assert Script({"pay": []})(question()).answer == "denied"


def test_an_answer_that_means_nothing_is_an_error():
    with pytest.raises(InputError, match="is no answer"):
        Script("perhaps")(question())


def test_a_scripted_gate_runs_what_the_script_approves_and_keeps_the_record():
    with ScriptedGate({"rename": edit(new="b"), "*": "no: not in a test"}) as gate:
        rename = gate.wrap(lambda old, new: f"{old} is {new}", name="rename")
        drop = gate.wrap(lambda: "dropped", name="drop")
        assert rename("a", new="c") == "a is b"
        with pytest.raises(Denied) as denied:
            drop()
        assert denied.value.reason == "not in a test"
        assert [(each.answer, each.result) for each in gate.entries()] == [
            ("approved", "success"),
            ("denied", "denied"),
        ]
        folder = gate.authority.folder
    assert not folder.exists()


def test_no_settings_of_the_user_count(user_settings):
    user_settings('[[rules]]\npattern = "*"\naction = "deny"\n')
    with ScriptedGate("yes") as gate:
        assert gate.wrap(lambda: "ran", name="look")() == "ran"


def test_settings_of_the_test_count():
    with ScriptedGate("yes", settings=["doors.library.unmatched=earned"]) as gate:
        assert gate.wrap(lambda path: "text", name="read_file")("a.txt") == "text"
        assert gate.asked == []


def test_settings_that_cannot_be_used_refuse_everything():
    with ScriptedGate("yes", settings=["doors.library.unmatched=never"]) as gate:
        look = gate.wrap(lambda: "ran", name="look")
        with pytest.raises(Denied, match="settings cannot be used"):
            look()


def test_the_fixture_makes_gates_that_are_closed_afterwards(checkrein_gate):  # noqa: F811
    first, second = checkrein_gate("yes"), checkrein_gate()
    assert first.wrap(lambda: 1, name="look")() == 1
    with pytest.raises(Denied, match="no line of the script"):
        second.wrap(lambda: 1, name="look")()
