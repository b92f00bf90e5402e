"""A person is asked in the agent's dialog or in ours, and the agent hears what was said."""

import pytest

from checkrein.asking import Remember
from doors.hooks.agent import ATTENDED, later, question, reason, said
from patience import PATIENCE, until


def test_nobody_reachable_is_a_no_that_says_how_to_be_reached(agent):
    answer = agent.call("make release")
    assert said(answer) == "deny"
    assert "checkrein inbox" in reason(answer)
    found = agent.entries()[0]
    assert (found.answer, found.channel) == ("cancelled", "none")
    assert agent.kinds()[-2:] == ["decided", "answered"]


def test_a_person_at_the_agent_sees_its_own_dialog(agent):
    answer = agent.call("make release", facts=ATTENDED)
    assert said(answer) == "ask"
    assert "shell_exec" in reason(answer)
    assert question(agent).entry == agent.entries()[0].id


@pytest.mark.invariant("an ask is only sent to an agent that understands it")
def test_an_agent_that_cannot_ask_never_hears_ask(agent):
    shell = {"tool_name": "Bash", "tool_input": {"command": "make release"}, "tool_use_id": "c1"}
    answer = agent.send("PreToolUse", "gate", agent="codex", facts=ATTENDED, **shell)
    assert answer[2] == 2


@pytest.mark.parametrize(("word", "expected"), [("approved", "allow"), ("denied", "deny")])
def test_the_hook_waits_for_whoever_is_reachable(agent, word, expected):
    with agent.pipeline.broker.attending():
        answers = []
        thread = later(lambda: answers.append(agent.call("make release")))
        entry = question(agent).entry
        agent.pipeline.answer(entry, word, actor="ada", channel="terminal", message="not on a Friday")
        thread.join(PATIENCE)
    assert said(answers[0]) == expected
    if word == "denied":
        assert "not on a Friday" in reason(answers[0])
    assert (agent.entries()[0].answer, agent.entries()[0].actor) == (word, "ada")


def test_edited_arguments_reach_the_agent(agent):
    with agent.pipeline.broker.attending():
        answers = []
        thread = later(lambda: answers.append(agent.call("make release")))
        edited = {"command": "make check"}
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", edited=edited
        )
        thread.join(PATIENCE)
    assert answers[0][0]["hookSpecificOutput"]["updatedInput"] == edited


def test_for_this_session_means_exactly_this_call_until_it_ends(agent):
    with agent.pipeline.broker.attending():
        thread = later(agent.call, "make release")
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", remember=Remember()
        )
        thread.join(PATIENCE)
    assert said(agent.call("make release", call="t2")) == "allow"
    assert said(agent.call("make release --force", call="t3")) == "deny"
    agent.send("SessionEnd", reason="exit")
    assert said(agent.call("make release", call="t4")) == "deny"


# -- the agent's own dialog ----------------------------------------------------------------------------


def test_outside_and_dialog_race_and_the_first_answer_wins(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    entry = question(agent).entry
    until(lambda: agent.pipeline.broker.is_awaited(entry))
    agent.pipeline.answer(entry, "approved", actor="ada", channel="terminal")
    thread.join(PATIENCE)
    assert answers[0][0]["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_a_no_from_outside_closes_the_dialog_with_the_message(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    agent.pipeline.answer(question(agent).entry, "denied", actor="ada", channel="terminal", message="no!")
    thread.join(PATIENCE)
    decision = answers[0][0]["hookSpecificOutput"]["decision"]
    assert decision["behavior"] == "deny"
    assert "no!" in decision["message"]


def test_a_permission_question_that_is_not_ours_stays_with_the_agent(agent):
    assert agent.permission("something else") == ("", "", 0)
