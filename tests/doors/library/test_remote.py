"""A program that talks to the user's server: only a person answers. The rest is in `slow`."""

import json

from doors.library import told_program
from doors.library.told_program import questions

serving, start = told_program.serving, told_program.start


def test_a_person_answers_in_the_inbox_and_the_program_goes_on(serving, start):
    program = start()
    program.tell("pick", 1)
    (question,) = questions(serving)
    assert (question["agent"], question["tool"]) == ("bot", "mcp__python__pick")
    serving.ask("question.answer", id=question["id"], answer="approved", edited={"n": 7})
    assert program.heard() == {"result": 7}
    assert program.ran() == ["7"]
    kinds = [each["kind"] for each in serving.records() if each["entry"] == question["id"]]
    assert kinds == ["decided", "asked", "answered", "started", "finished"]


def test_only_a_person_answers_neither_the_program_nor_what_it_runs(serving, start):
    program = start()
    waiting = program.do("raised", 1)["pending"]
    entry = json.loads(waiting)["entry"]
    assert program.do("pending")["result"] == [entry]
    assert "PersonOnlyError" in program.do("answer", entry)["error"]
    assert "Only a person may do this" in program.do("answer_below", entry)["result"]
    assert len(serving.records("request_refused")) == 2
    assert serving.ask("question.list")[0]["id"] == entry


def test_a_question_is_resumed_by_another_program_and_executes_once(serving, start):
    waiting = start().do("raised", 1)["pending"]
    entry = json.loads(waiting)["entry"]
    serving.ask("question.answer", id=entry, answer="approved")
    second, third = start(), start()
    assert second.do("resume", waiting) == {"result": 1}
    assert "used before" in third.do("resume", waiting)["denied"]
    changed = waiting.replace('"n":1', '"n":2')
    assert "no question about this call" in third.do("resume", changed)["error"]
    assert third.ran() == ["1"]
