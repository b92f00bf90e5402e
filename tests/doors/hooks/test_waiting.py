"""Hooks wait for as long as there is something to wait for; then the question is over."""

from checkrein.core import approvals
from checkrein.doors.hooks import waiting as waiting_module
from checkrein.peers import Process
from checkrein.store.questions import waiting
from doors.hooks.agent import ATTENDED, Line, later, question, reason, said
from patience import PATIENCE


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


def test_a_no_in_the_dialog_is_known_when_the_agent_goes_on(agent):
    agent.call("make release", facts=ATTENDED)
    agent.send("UserPromptSubmit", prompt="do something else")
    assert (agent.entries()[0].answer, agent.entries()[0].channel) == ("cancelled", "agent")


def test_questions_nobody_waits_for_expire(agent, clock):
    agent.call("make release", facts=ATTENDED)
    clock.now += 301
    approvals.sweep(agent.pipeline)
    assert agent.entries()[0].answer == "expired"
