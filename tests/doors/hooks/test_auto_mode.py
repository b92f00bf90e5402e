"""In Claude Code's auto mode an `allow` overrules its safety classifier: only a person's word says it."""

import json
from pathlib import Path

import pytest

import payloads
from checkrein.asking import Remember
from doors.hooks.agent import ATTENDED, later, question, said
from patience import PATIENCE, until

AUTO = {"permission_mode": "auto"}
SILENT = ("", "", 0)
RULE = '[[rules]]\ntool = "Bash"\naction = "%s"\nwhen = [{ path = "command", equals = "make release" }]\n'


def permission(agent, command="make release", mode="auto", **more):
    fields = {"tool_name": "Bash", "tool_input": {"command": command}, "permission_mode": mode}
    return agent.send("PermissionRequest", "permission", **fields, **more)


def decision(answer):
    return answer[0]["hookSpecificOutput"]["decision"]


@pytest.mark.invariant("nothing but a person's own word overrules an agent's own checks")
def test_an_earned_allow_leaves_the_classifier_in_force(agent):
    assert agent.call("ls", **AUTO) == SILENT
    (found,) = agent.entries()
    assert (found.verdict, found.stage) == ("allow", "autonomy")


def test_a_verdict_nobody_heard_is_recorded_and_its_outcome_credited(agent):
    assert agent.call("pytest", **AUTO) == SILENT
    agent.done("pytest", **AUTO)
    (found,) = agent.entries()
    assert (found.verdict, found.result) == ("allow", "success")
    assert found.trust_score_after == pytest.approx(0.335)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"])
def test_in_every_other_mode_an_earned_allow_is_said(agent, mode):
    assert said(agent.call("ls", permission_mode=mode)) == "allow"


def test_a_mode_nobody_knows_hears_no_allow_and_no_ask(agent, user_settings):
    user_settings(RULE % "allow")
    assert agent.call("ls", permission_mode="swift") == SILENT
    assert agent.call("make release", call="t2", permission_mode="swift") == SILENT
    assert said(agent.call("make clean", call="t3", permission_mode="swift", facts=ATTENDED)) == "deny"


def test_a_rule_of_a_person_is_said(agent, user_settings):
    user_settings(RULE % "allow")
    assert said(agent.call("make release", **AUTO)) == "allow"
    assert agent.entries()[0].stage == "rules"


def test_an_entry_of_a_profile_is_said(agent, user_settings):
    user_settings('[doors.hooks]\nprofile = "mine"\n[profiles.mine]\nallow = ["Bash"]\n')
    assert said(agent.call("make release", **AUTO)) == "allow"
    assert agent.entries()[0].stage == "profile"


def test_an_approval_and_the_grant_that_follows_are_said(agent):
    answers = []
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(agent.call("make release", **AUTO)))
        entry = question(agent).entry
        agent.pipeline.answer(entry, "approved", actor="ada", channel="terminal", remember=Remember())
        thread.join(PATIENCE)
    assert said(answers[0]) == "allow"
    assert said(agent.call("make release", call="t2", **AUTO)) == "allow"
    assert agent.entries()[1].stage == "grant"


def test_a_yes_that_no_person_gave_is_not_said(agent):
    answers = []
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(agent.call("make release", **AUTO)))
        agent.pipeline.answer(question(agent).entry, "approved", actor="", channel="machine")
        thread.join(PATIENCE)
    assert answers == [SILENT]


def test_an_unaccepted_project_file_says_nothing_for_its_person(agent, project):
    Path(project, "checkrein.toml").write_text('[[rules]]\ntool = "Bash"\naction = "allow"\n')
    assert agent.call("ls", **AUTO) == SILENT


def test_ask_and_deny_are_said_as_ever(agent):
    assert said(agent.call("make release", facts=ATTENDED, **AUTO)) == "ask"
    assert said(agent.call("curl https://x.example", call="t2", **AUTO)) == "deny"


def test_a_persons_edit_reaches_the_agent(agent):
    answers, edited = [], {"command": "make check"}
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(agent.call("make release", **AUTO)))
        entry = question(agent).entry
        agent.pipeline.answer(entry, "approved", actor="ada", channel="terminal", edited=edited)
        thread.join(PATIENCE)
    output = answers[0][0]["hookSpecificOutput"]
    assert (output["permissionDecision"], output["updatedInput"]) == ("allow", edited)


@pytest.mark.parametrize(
    "rules", ["", '[[rules]]\ntool = "Agent"\naction = "allow"\n'], ids=["earned", "rule"]
)
def test_the_router_changes_no_call(agent, user_settings, rules):
    user_settings(rules)
    answer = agent.call(tool="Agent", arguments={"prompt": "look around"}, **AUTO)
    if rules:
        assert said(answer) == "allow" and "updatedInput" not in answer[0]["hookSpecificOutput"]
    else:
        assert answer == SILENT
    assert "routed" in agent.kinds()


# -- after the classifier's third block ------------------------------------------------------------------


@pytest.mark.invariant("an earlier verdict is no yes to a call that the agent's own check stopped")
def test_an_earned_verdict_is_no_yes_to_what_the_classifier_stopped(agent):
    assert agent.call("pytest", **AUTO) == SILENT
    assert permission(agent, "pytest") == SILENT
    assert len(agent.entries()) == 1


def test_what_was_allowed_before_is_denied_by_the_policy_of_now(agent, user_settings):
    assert agent.call("pytest", **AUTO) == SILENT
    user_settings('[[rules]]\ntool = "Bash"\naction = "deny"\n')
    assert decision(permission(agent, "pytest"))["behavior"] == "deny"
    first, second = agent.entries()
    assert (first.result, second.verdict) == ("unknown", "deny")


def test_a_rule_written_meanwhile_runs_it_and_its_outcome_is_the_newest_verdicts(agent, user_settings):
    assert agent.call("pytest", **AUTO) == SILENT
    user_settings('[[rules]]\ntool = "Bash"\naction = "allow"\n')
    assert decision(permission(agent, "pytest")) == {"behavior": "allow"}
    agent.done("pytest", **AUTO)
    first, second = agent.entries()
    assert first.result == "unknown"
    assert (second.stage, second.result) == ("rules", "success")


@pytest.mark.parametrize(("word", "behaviour"), [("approved", "allow"), ("denied", "deny")])
def test_an_ask_is_put_to_whoever_can_be_reached(agent, user_settings, word, behaviour):
    assert agent.call("pytest", **AUTO) == SILENT
    user_settings('[[rules]]\ntool = "Bash"\naction = "ask"\n')
    answers = []
    with agent.pipeline.broker.attending():
        thread = later(lambda: answers.append(permission(agent, "pytest")))
        agent.pipeline.answer(question(agent).entry, word, actor="ada", channel="terminal")
        thread.join(PATIENCE)
    assert decision(answers[0])["behavior"] == behaviour


def test_an_ask_nobody_can_be_reached_for_is_a_no_that_says_so(agent, user_settings):
    user_settings('[[rules]]\ntool = "Bash"\naction = "ask"\n')
    answer = decision(permission(agent, "pytest"))
    assert answer["behavior"] == "deny" and "checkrein inbox" in answer["message"]


def test_beside_the_dialog_of_a_person_the_first_answer_counts(agent, user_settings):
    agent.call("pytest", facts=ATTENDED, **AUTO)
    user_settings('[[rules]]\ntool = "Bash"\naction = "ask"\n')
    answers = []
    thread = later(lambda: answers.append(permission(agent, "pytest")))
    entry = question(agent).entry
    until(lambda: agent.pipeline.broker.is_awaited(entry))
    agent.pipeline.answer(entry, "denied", actor="ada", channel="terminal", message="not now")
    thread.join(PATIENCE)
    assert decision(answers[0]) == {"behavior": "deny", "message": "ada said no. not now"}


def test_a_no_in_that_dialog_is_a_persons_no(agent, user_settings):
    agent.call("pytest", facts=ATTENDED, **AUTO)
    user_settings('[[rules]]\ntool = "Bash"\naction = "ask"\n')
    answers = []
    thread = later(lambda: answers.append(permission(agent, "pytest")))
    question(agent)
    agent.send("Stop", stop_hook_active=False)
    thread.join(PATIENCE)
    assert (agent.entries()[1].answer, agent.entries()[1].channel) == ("denied", "agent")
    assert answers == [SILENT]


def test_in_other_modes_its_dialog_stays_its_own(agent, user_settings):
    user_settings(RULE % "allow")
    assert permission(agent, mode="default") == SILENT
    assert agent.entries() == []


def test_an_agent_that_asks_about_allowed_calls_too_gets_no_second_verdict(agent, user_settings):
    """Copilot CLI sends its permission request also for a call that we allowed."""
    user_settings(RULE % "allow")
    call = {"sessionId": "s-1", "cwd": agent.project, "toolName": "bash"}
    given = {"command": "make release"}
    agent.raw(json.dumps(call | {"toolArgs": given}).encode(), agent="copilot-cli")
    asked = call | {"hookName": "permissionRequest", "toolInput": given, "permissionSuggestions": []}
    assert agent.raw(json.dumps(asked).encode(), "permission", "copilot-cli") == SILENT
    assert [each.stage for each in agent.entries()] == ["rules"]


def test_the_request_of_the_real_client_is_judged(agent, user_settings):
    user_settings('[[rules]]\ntool = "Bash"\naction = "deny"\n')
    raw = json.loads(payloads.payload("claude-code/PermissionRequest.after-third-block"))
    answer = agent.raw(json.dumps(raw | {"cwd": agent.project}).encode(), "permission")
    assert decision(answer)["behavior"] == "deny"
