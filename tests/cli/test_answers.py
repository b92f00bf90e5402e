import json

import pytest

from checkrein.call import tool_call
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from deciding import set_user_phase
from patience import PATIENCE, until


@pytest.fixture
def attended(run, server, started):
    """A person has the inbox open; the project is being built."""
    run("phase", "building")
    open_inbox = started("inbox")
    until(lambda: "Waiting" in open_inbox.said())
    return open_inbox


def test_a_yes_lets_the_waiting_call_run(run, attended, agent):
    calling, question = agent.asks("make x")
    assert run("approve", question[:12]) == f"Approved: {question}.\n"
    word, reason = agent.told(calling)
    assert (word, calling.returncode) == ("allow", 0)
    assert "approved it" in reason


def test_a_no_reaches_the_agent_with_its_message(run, attended, agent):
    calling, question = agent.asks("make x")
    came = run.json("deny", question, "--message", "use ninja", "--json")
    assert (came["answer"], came["message"]) == ("denied", "use ninja")
    word, reason = agent.told(calling)
    assert (word, calling.returncode) == ("deny", 2)
    assert "use ninja" in reason


def test_a_person_answers_for_the_tool(run, attended, agent):
    calling, question = agent.asks("make number")
    run("deny", question, "--answer", "it is 1.2.0")
    word, reason = agent.told(calling)
    assert word == "deny"
    assert "it is 1.2.0" in reason
    assert "answers for the tool" in reason


def test_edited_arguments_are_what_runs(run, attended, agent):
    calling, question = agent.asks("make x")
    assert "no JSON object" in run("approve", question, "--edit", "[]", code=2)
    assert "would be refused" in run(
        "approve", question, "--edit", '{"command": "curl https://evil.invalid/"}', code=2
    )
    run("approve", question, "--edit", '{"command": "make y"}')
    out, _ = calling.communicate(timeout=PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["updatedInput"] == {"command": "make y"}


def test_a_yes_for_the_session_asks_no_second_time(run, attended, agent):
    calling, question = agent.asks("make x")
    run("approve", question, "--for", "session")
    assert agent.told(calling)[0] == "allow"
    assert agent.judged("make x", "toolu_2")[0] == "allow"


def test_a_yes_the_policy_overrules_is_said_and_fails(run, attended, agent):
    calling, question = agent.asks("make x")
    run("rules", "add", "deny", "--tool", "Bash")
    assert "Your yes does not count" in run("approve", question, code=1)
    assert agent.told(calling)[0] == "deny"


def test_what_is_gone_or_answered_is_said(run, attended, agent):
    assert "No question 'nobody' waits" in run("approve", "nobody", code=4)
    calling, question = agent.asks("make x")
    run("deny", question)
    agent.told(calling)
    assert "settled already: denied by" in run("approve", question, code=2)
    assert "settled already" in run("deny", question, code=2)


def test_an_answer_nobody_waits_for_is_said_to_be_late(run, project):
    earlier = Pipeline(SqliteStore.open(state_dir()), state_dir())
    call = {"tool": "Bash", "arguments": {"command": "make x"}, "project": project}
    question = earlier.decide(tool_call(call), asking=True).entry
    set_user_phase(earlier, "building")
    earlier.close()
    assert "does not wait for it here any more" in run("approve", question)


def test_an_answer_nobody_waits_for_is_judged_again(run, project):
    earlier = Pipeline(SqliteStore.open(state_dir()), state_dir())
    call = {"tool": "Bash", "arguments": {"command": "make x"}, "project": project}
    question = earlier.decide(tool_call(call), asking=True).entry
    set_user_phase(earlier, "auditing")
    earlier.close()
    assert "does not count" in run("approve", question, code=1)


def test_an_agent_cannot_answer_itself(run, attended, agent):
    calling, question = agent.asks("make x")
    done = agent.run("approve", question)
    assert done.returncode == 7
    run("deny", question)
    assert agent.told(calling)[0] == "deny"
