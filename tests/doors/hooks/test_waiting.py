"""Hooks wait for as long as there is something to wait for; then the question is over."""

import pytest

from checkrein.agents import own_user
from checkrein.core import approvals
from checkrein.doors.hooks import waiting as waiting_module
from checkrein.peers import Process
from checkrein.store.questions import waiting
from doors.hooks.agent import ATTENDED, Line, later, question, reason, said
from patience import PATIENCE, until


def _named(name):
    """A process; another name stands for another one."""
    return Process(pid=hash(name), parent=1, started="9", name=name)


def test_a_hook_that_outlives_its_agent_waits_for_nobody(agent, monkeypatch):
    """Seen by the one that adopted its shell."""
    above = [["hook", "sh", "agent"]]
    monkeypatch.setattr(waiting_module, "lineage", lambda _pid: [_named(each) for each in above[-1]])
    with agent.pipeline.broker.attending():
        answers = []
        thread = later(lambda: answers.append(agent.call("make release")))
        entry = question(agent).entry
        above.append(["hook", "sh", "init"])
        thread.join(PATIENCE)
    assert "stopped waiting" in reason(answers[0])
    assert agent.entries()[0].answer == "cancelled"
    assert not waiting(agent.pipeline.store)
    assert entry == agent.entries()[0].id


def test_a_question_expires_to_no(agent, clock):
    with agent.pipeline.broker.attending():
        answers = []
        thread = later(lambda: answers.append(agent.call("make release")))
        question(agent)
        clock.now += 301
        thread.join(PATIENCE)
    assert "in time" in reason(answers[0])
    assert agent.entries()[0].answer == "expired"


def test_the_hook_gives_up_before_the_agent_would_run_the_tool(agent):
    with agent.pipeline.broker.attending():
        answer = agent.call("make release", line=Line(seconds=0.1))
    assert (said(answer), agent.entries()[0].answer) == ("deny", "expired")


def test_a_hook_that_goes_away_cancels_its_question(agent):
    line = Line()
    with agent.pipeline.broker.attending():
        thread = later(agent.call, "make release", line=line)
        question(agent)
        line.open = False
        thread.join(PATIENCE)
    assert agent.entries()[0].answer == "cancelled"


@pytest.mark.invariant("a person's no in the agent's own dialog is a no on the record, and no failure")
def test_a_no_in_the_dialog_is_known_when_the_turn_ends_and_the_call_never_ran(agent):
    """Claude Code tells nobody about a no."""
    agent.call("make release", facts=ATTENDED)
    agent.send("UserPromptSubmit", prompt="do something else")
    assert agent.entries()[0].answer is None
    agent.send("Stop", stop_hook_active=False)
    (found,) = agent.entries()
    assert (found.answer, found.channel, found.actor) == ("denied", "agent", own_user())
    assert found.trust_score_after is None


def test_what_a_person_types_while_the_call_runs_takes_no_yes_back(agent):
    agent.call("make release", facts=ATTENDED)
    agent.send("UserPromptSubmit", prompt="and then push")
    agent.done("make release")
    agent.send("Stop", stop_hook_active=False)
    (found,) = agent.entries()
    assert (found.answer, found.channel, found.result) == ("approved", "agent", "success")


def test_a_question_of_a_sub_agent_may_still_be_open_in_the_dialog_when_the_turn_ends(agent):
    agent.call("make release", facts=ATTENDED, agent_type="Explore")
    agent.send("Stop", stop_hook_active=False)
    assert agent.entries()[0].answer == "cancelled"


@pytest.mark.invariant(
    "the agent's report answers no question that a hook waits for outside the agent's dialog"
)
def test_a_question_a_hook_waits_for_is_not_answered_by_a_report(agent):
    answers = []
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(agent.call("make release")))
        entry = question(agent).entry
        agent.failed("make release", error="User refused permission to run tool")
        agent.send("Stop", stop_hook_active=False)
        assert (agent.entries()[0].answer, agent.entries()[0].completed_at) == (None, None)
        agent.pipeline.answer(entry, "approved", actor="ada", channel="terminal")
        thread.join(PATIENCE)
    assert said(answers[0]) == "allow"


def test_the_hook_beside_a_dialog_may_outlive_it(agent):
    """Claude Code lets it run on where the person says no with words for the model."""
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    entry = question(agent).entry
    until(lambda: agent.pipeline.broker.is_awaited(entry))
    agent.send("Stop", stop_hook_active=False)
    thread.join(PATIENCE)
    assert (agent.entries()[0].answer, agent.entries()[0].channel) == ("denied", "agent")
    assert answers == [("", "", 0)]


def test_the_same_call_is_asked_about_again_after_a_no_in_the_dialog(agent):
    """The person is there and sees it; a no given elsewhere stands for a while."""
    agent.call("make release", facts=ATTENDED)
    agent.send("Stop", stop_hook_active=False)
    assert said(agent.call("make release", call="t2", facts=ATTENDED)) == "ask"


def test_questions_nobody_waits_for_expire(agent, clock):
    agent.call("make release", facts=ATTENDED)
    clock.now += 301
    approvals.sweep(agent.pipeline)
    assert agent.entries()[0].answer == "expired"
