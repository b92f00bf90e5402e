"""What an agent reports is recorded once, and only its own hooks report."""

import json

import pytest

from checkrein.agents import own_user
from checkrein.ledger.entries import fold
from checkrein.store import records
from doors.hooks.agent import ATTENDED, Agent, Line, later, question, said
from patience import PATIENCE


def test_ac_012_success_and_failure_move_trust(agent):
    agent.call("pytest")
    agent.done("pytest")
    assert agent.entries()[0].trust_score_after == pytest.approx(0.335)
    agent.call("pytest", call="t2")
    agent.failed("pytest", call="t2")
    assert agent.entries()[1].outcome == "failure"
    assert agent.entries()[1].trust_score_after == pytest.approx(0.335 * 0.85)


def test_an_interruption_is_no_failure(agent):
    agent.call("pytest")
    agent.failed("pytest", is_interrupt=True)
    assert (agent.entries()[0].result, agent.entries()[0].trust_score_after) == ("cancelled", 0.3)


def test_an_outcome_is_found_by_a_door_that_never_saw_the_call(agent, pipeline, project):
    agent.call("pytest")
    fresh = Agent(pipeline, project)
    fresh.done("pytest")
    fresh.done("pytest")
    assert agent.kinds().count("finished") == 1


def test_calls_without_ids_are_matched_oldest_unfinished_first(agent):
    gemini = {"agent": "gemini-cli"}
    shell = {"tool_name": "run_shell_command", "tool_input": {"command": "pytest"}}
    for _ in range(2):
        agent.send("BeforeTool", "gate", **gemini, **shell)
    agent.send("AfterTool", **gemini, **shell, tool_response={"llmContent": "x", "returnDisplay": "x"})
    first, second = agent.entries()
    assert first.completed_at is not None
    assert second.completed_at is None


def test_a_call_that_ran_unjudged_is_on_the_record(agent):
    agent.done("ls", call="never-seen")
    assert "unjudged" in agent.kinds()


def test_a_yes_in_the_dialog_is_known_by_the_outcome(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    question(agent)
    agent.done("make release")
    thread.join(PATIENCE)
    entry = agent.entries()[0]
    assert (entry.answer, entry.channel, entry.outcome) == ("approved", "agent", "success")
    assert answers == [("", "", 0)]


@pytest.mark.invariant("a report answers only what was asked in the agent's own dialog")
def test_a_report_answers_no_question_whose_hook_waits_with_us(agent):
    answers = []
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(agent.call("make release")))
        asked = question(agent)
        agent.done("make release")
        (entry,) = agent.entries()
        assert (entry.answer, entry.completed_at) == (None, None)
        agent.pipeline.answer(asked.entry, "denied", actor="ada", channel="inbox")
        thread.join(PATIENCE)
    assert said(answers[0]) == "deny"


@pytest.mark.invariant("a report answers only what was asked in the agent's own dialog")
def test_a_report_of_a_headless_session_answers_nothing(agent):
    with agent.pipeline.broker.attending():
        line = Line()
        thread = later(agent.call, "make release", line=line)
        question(agent)
        line.open = False
        thread.join(PATIENCE)
    agent.done("make release")
    (entry,) = agent.entries()
    assert entry.answer == "cancelled"


@pytest.mark.invariant("a call that was changed in the dialog is no yes to the one we asked about")
def test_a_call_changed_in_the_dialog_is_no_yes_to_the_one_asked_about(agent, user_settings):
    user_settings('[approval]\nremember_native = "session"')
    assert said(agent.call("git commit -m x", "t1", facts=ATTENDED)) == "ask"
    agent.done("git merge x", "t1")
    assert said(agent.call("git commit -m y", "t2", facts=ATTENDED)) == "ask"
    agent.done("git commit -m y", "t2")
    assert said(agent.call("git commit -m z", "t3", facts=ATTENDED)) == "allow"


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"


@pytest.mark.invariant("a person's no in the agent's own dialog is a no on the record, and no failure")
@pytest.mark.parametrize("error", [REJECTED, "User refused permission to run tool"])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_reported_no_is_a_persons_no_and_no_failure(agent, error, interrupted):
    agent.call("make release", facts=ATTENDED)
    agent.failed("make release", error=error, is_interrupt=interrupted)
    (found,) = agent.entries()
    assert (found.answer, found.channel, found.actor) == ("denied", "agent", own_user())
    assert found.trust_score_after is None


def test_a_no_to_a_call_we_did_not_ask_about_costs_nothing(agent):
    agent.call("pytest")
    agent.failed("pytest", error=REJECTED)
    (found,) = agent.entries()
    assert (found.result, found.trust_score_after) == ("denied", found.trust_score_before)


def test_what_an_agent_runs_says_no_for_nobody(agent):
    assert said(agent.call("touch made", facts=ATTENDED)) == "ask"
    agent.speaker.why = "it comes from something the agent runs"
    agent.send("Stop", stop_hook_active=False)
    agent.failed("touch made", error=REJECTED)
    assert agent.entries()[0].answer is None
    agent.speaker.why = ""
    agent.send("Stop", stop_hook_active=False)
    assert agent.entries()[0].answer == "denied"


def test_folding_shows_the_whole_story(agent):
    agent.call("make release", facts=ATTENDED)
    agent.done("make release")
    entry = agent.entries()[0]
    kinds = [row[2] for row in records.of_entries(agent.pipeline.store, [entry.id])]
    assert kinds == ["decided", "asked", "answered", "finished"]
    assert fold(records.of_entries(agent.pipeline.store, [entry.id]))[0].result == "success"


def test_an_event_that_is_not_the_agents_own_word_has_no_effect(agent):
    assert said(agent.call("touch made", facts=ATTENDED)) == "ask"
    agent.speaker.why = "it comes from something the agent runs"
    agent.done("touch made")
    agent.send("Stop", stop_hook_active=False)
    (asked,) = agent.entries()
    assert (asked.answer, asked.completed_at) == (None, None)
    stopped = agent.send("UserPromptExpansion", "gate", command_name="auditing", prompt="/auditing")
    assert stopped[0]["decision"] == "block"
    # Reported, stopped, typed: each is on the record, once.
    agent.done("touch made")
    assert agent.kinds().count("request_refused") == 3
    agent.speaker.why = ""
    agent.done("touch made")
    (ran,) = agent.entries()
    assert (ran.answer, ran.channel, ran.result) == ("approved", "agent", "success")


# -- sessions ------------------------------------------------------------------------------------------


def test_ac_013_stopping_writes_the_trust_file(agent, home):
    agent.call("pytest")
    agent.done("pytest")
    agent.send("Stop", stop_hook_active=False)
    (found,) = (home / "state" / "checkrein" / "trust").rglob("trust-scores.json")
    content = json.loads(found.read_text())
    assert (content["version"], content["domains"]["test_run"]["successes"]) == ("2", 1)


def test_a_session_begins_and_ends_on_the_record(agent):
    agent.send("SessionStart", source="startup")
    agent.call("pytest")
    agent.send("SessionStart", source="compact")
    agent.send("SessionEnd", reason="exit")
    assert agent.kinds().count("session_started") == 1
    assert agent.kinds().count("session_ended") == 1
