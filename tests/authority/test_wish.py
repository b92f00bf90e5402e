"""What a program says of its own call, and what it cannot outrank."""

import pytest

from authority.program import call, decided
from checkrein.asking import Remember
from checkrein.authority.wish import Wish
from checkrein.call import Category


def test_a_wish_speaks_where_nobody_else_does(pipeline):
    assert decided(pipeline).verdict.stage == "unmatched"
    let = decided(pipeline, wish=Wish(let="mine")).verdict
    assert (let.word, let.stage, let.reasons[0].text) == ("allow", "program", "mine")
    high = call(tool="delete_all")
    assert decided(pipeline, high, Wish(let="mine")).verdict.word == "ask"
    assert decided(pipeline, high, Wish(let="mine", upto=Category.high)).verdict.word == "allow"


@pytest.mark.invariant("a program's wish never outranks the floor, a phase, or what a person wrote")
def test_a_wish_never_outranks_the_floor_or_a_person(pipeline, user_settings):
    everything = Wish(let="mine", upto=Category.critical)
    assert decided(pipeline, call(tool="send_mail"), everything).verdict.stage == "floor"
    for action, word in (("ask", "ask"), ("deny", "deny")):
        user_settings(f'[[rules]]\naction = "{action}"\ntool = "pick"\n')
        found = decided(pipeline, wish=everything).verdict
        assert (found.word, found.stage) == (word, "rules")


def test_a_hold_asks_and_a_mild_one_leaves_a_persons_rule_alone(pipeline, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "pick"\n')
    assert decided(pipeline, wish=Wish(hold="why")).asked
    assert decided(pipeline, wish=Wish(hold="why", mild=True)).verdict.word == "allow"
    user_settings('[doors.library]\nunmatched = "earned"\n[trust]\ninitial_score = 0.5\n')
    read = call(tool="Read", server=None, arguments={"file_path": "a"})
    assert decided(pipeline, read).verdict.word == "allow"
    assert decided(pipeline, read, Wish(hold="why", mild=True)).asked


def test_a_remembered_yes_answers_a_hold_and_is_used_up(pipeline, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "pick"\n')
    held = Wish(hold="why")
    first = decided(pipeline, wish=held)
    with pipeline.broker.awaiting(first.entry):
        how = Remember(span="uses", uses=1)
        pipeline.answer(first.entry, "approved", actor="ada", channel="host", remember=how)
    assert decided(pipeline, wish=held).verdict.stage == "grant"
    assert decided(pipeline, wish=held).asked


def test_a_flood_of_questions_stops_no_call_that_runs_unasked(pipeline, user_settings):
    user_settings("[approval]\nmost_waiting = 1\n")
    assert decided(pipeline).asked
    assert decided(pipeline, call(arguments={"n": 2})).verdict.stage == "flood"
    assert decided(pipeline, call(arguments={"n": 2}), Wish(let="mine")).verdict.word == "allow"
