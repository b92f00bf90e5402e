"""The hook door over a real pipeline: every kind of event, answered in the agent's own words."""

import json
import os
import subprocess
import threading
import time

import pytest

from checkrein.agents import Agents
from checkrein.asking import Remember
from checkrein.authority.phase import switch
from checkrein.doors.hooks import door as door_module
from checkrein.doors.hooks.door import HookDoor
from checkrein.ledger.entries import fold
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer, Process
from checkrein.store import records
from checkrein.store.questions import waiting
from checkrein.wire import Request

ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


class Line:
    """A hook process that waits for as long as the test says."""

    def __init__(self, seconds=20.0):
        self.deadline = time.monotonic() + seconds
        self.open = True

    def still_here(self):
        return self.open


class Agent:
    """What an agent would send, and what it hears."""

    def __init__(self, pipeline, project):
        self.pipeline, self.project = pipeline, project
        self.door = HookDoor(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock))
        self.line = Line()
        self.process = os.getpid()

    def send(self, event, mode="tell", agent="claude-code", facts=None, line=None, **fields):
        body = {"session_id": "s-1", "cwd": self.project, "hook_event_name": event} | fields
        return self.raw(json.dumps(body).encode(), mode, agent, facts, line)

    def raw(self, body, mode="gate", agent="claude-code", facts=None, line=None):
        request = Request("0.1.0", ("hook", agent, mode, "30"), facts or {}, body)
        peer = Peer(self.process, os.geteuid())
        reply = self.door.handle(request, peer, line or self.line)
        stdout = json.loads(reply.stdout) if reply.stdout[:1] == b"{" else reply.stdout.decode()
        return stdout, reply.stderr.decode(), reply.exit_code

    def call(self, command="ls", call="t1", tool="Bash", arguments=None, **more):
        given = {"command": command} if arguments is None else arguments
        return self.send("PreToolUse", "gate", tool_name=tool, tool_input=given, tool_use_id=call, **more)

    def done(self, command="ls", call="t1", tool="Bash", arguments=None, **more):
        given = {"command": command} if arguments is None else arguments
        said = {"tool_response": {"stdout": "ok"}} | more
        return self.send("PostToolUse", tool_name=tool, tool_input=given, tool_use_id=call, **said)

    def failed(self, command="ls", call="t1", **more):
        said = {"error": "Exit code 1", "is_interrupt": False} | more
        given = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call}
        return self.send("PostToolUseFailure", **(given | said))

    def permission(self, command, line=None):
        return self.send(
            "PermissionRequest", "permission", line=line, tool_name="Bash", tool_input={"command": command}
        )

    def entries(self):
        return list(entries(self.pipeline.store, Filter()))[::-1]

    def kinds(self):
        return [row[2] for row in records.after(self.pipeline.store, 0)]


@pytest.fixture
def agent(pipeline, project):
    made = Agent(pipeline, project)
    switch(pipeline, "building", "ada", "test", project=project)
    return made


def said(answer):
    return answer[0]["hookSpecificOutput"]["permissionDecision"]


def reason(answer):
    return answer[0]["hookSpecificOutput"]["permissionDecisionReason"]


def later(work, *arguments, **named):
    thread = threading.Thread(target=work, args=arguments, kwargs=named)
    thread.start()
    return thread


def question(agent):
    """The question that waits; where somebody can be reached, once its hook waits too."""
    broker = agent.pipeline.broker
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = waiting(agent.pipeline.store)
        if found and (not broker.reachable or broker.is_awaited(found[0].entry)):
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no question was asked")


# -- verdicts ------------------------------------------------------------------------------------------


def test_allow_and_deny_in_the_agents_words(agent):
    assert said(agent.call("ls")) == "allow"
    answer = agent.call("curl https://x.example", call="t2")
    assert (said(answer), answer[2]) == ("deny", 2)
    assert answer[1].strip() == reason(answer)
    assert [each.decision for each in agent.entries()] == ["logged_only", "blocked"]


def test_ac_032_a_refusal_names_the_call_its_risk_the_reason_and_the_way_out(agent):
    text = reason(agent.call("curl https://x.example"))
    assert "curl https://x.example" in text
    assert "Risk: critical. Decision: blocked" in text
    assert "talks to x.example" in text
    assert "What helps:" in text


def test_the_same_call_heard_twice_is_one_entry(agent):
    agent.call("ls")
    agent.call("ls")
    assert len(agent.entries()) == 1


def test_a_reused_id_with_other_arguments_is_judged_again(agent):
    assert said(agent.call("ls")) == "allow"
    assert said(agent.call("curl https://x.example")) == "deny"
    assert len(agent.entries()) == 2


def test_a_tool_of_a_server_keeps_its_server(agent):
    agent.call(tool="mcp__mail__send", arguments={"to": "x"}, mcp_server={"name": "mail", "source": "user"})
    assert (agent.entries()[0].server, agent.entries()[0].tool_name) == ("mail", "mcp__mail__send")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"{bad",
        b"\xff\xfe{}",
        b'{"a":1}{"b":2}',
        b"[" * 3000,
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":["Bash"],"tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"ls"}',
        b'{"session_id":7,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"Nonsense","tool_name":"Bash","tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{}}',
        b'"' + b"x" * (10 << 20) + b'"',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_hostile_payloads_at_the_gate_are_refused_and_recorded(agent, body):
    stdout, stderr, code = agent.raw(body)
    assert code == 2
    assert stdout["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "cannot be read" in stderr
    assert [(each.decision, each.stage) for each in agent.entries()] == [("blocked", "floor")]


def test_a_truncated_payload_is_refused_and_recorded(agent):
    _, stderr, code = agent.raw(b'{"session_id":"s-9","tool_name":"Write"', facts={"TRUNCATED": "1"})
    assert code == 2
    assert "8 MiB" in stderr
    assert (agent.entries()[0].session_id, agent.entries()[0].tool_name) == ("s-9", "Write")


def test_an_unreadable_report_is_recorded_and_holds_nobody_up(agent):
    assert agent.raw(b"{bad", mode="tell") == ("", "", 0)
    assert "unreadable" in agent.kinds()


# -- outcomes ------------------------------------------------------------------------------------------


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


# -- asking --------------------------------------------------------------------------------------------


def test_nobody_reachable_is_a_no_that_says_how_to_be_reached(agent):
    answer = agent.call("make release")
    assert said(answer) == "deny"
    assert "checkrein inbox" in reason(answer)
    assert agent.entries()[0].answer == "cancelled"


def test_a_person_at_the_agent_sees_its_own_dialog(agent):
    answer = agent.call("make release", facts=ATTENDED)
    assert said(answer) == "ask"
    assert "shell_exec" in reason(answer)
    assert question(agent).entry == agent.entries()[0].id


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
        thread.join(10)
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
        thread.join(10)
    assert answers[0][0]["hookSpecificOutput"]["updatedInput"] == edited


def test_an_edited_call_without_an_id_is_known_by_what_ran(agent):
    def send(event, mode, command, **more):
        given = {"tool_name": "run_shell_command", "tool_input": {"command": command}}
        return agent.send(event, mode, agent="gemini-cli", **given, **more)

    with agent.pipeline.broker.attending():
        thread = later(lambda: send("BeforeTool", "gate", "make release"))
        edited = {"command": "make check"}
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", edited=edited
        )
        thread.join(10)
    send("AfterTool", "tell", "make check", tool_response={"llmContent": "Output: x\nProcess Group PGID: 7"})
    assert "unjudged" not in agent.kinds()
    assert [each.result for each in agent.entries()] == ["success"]


def _named(name):
    """A process; another name stands for another one."""
    return Process(pid=hash(name), parent=1, started="9", name=name)


def test_a_hook_that_outlives_its_agent_waits_for_nobody(agent, monkeypatch):
    """Seen by the one that adopted its shell."""
    above = [["hook", "sh", "agent"]]
    monkeypatch.setattr(door_module, "lineage", lambda _pid: [_named(each) for each in above[-1]])
    with agent.pipeline.broker.attending():
        answers = []
        thread = later(lambda: answers.append(agent.call("make release")))
        entry = question(agent).entry
        above.append(["hook", "sh", "init"])
        thread.join(10)
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
        thread.join(10)
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
        thread.join(10)
    assert agent.entries()[0].answer == "cancelled"


def test_for_this_session_means_exactly_this_call_until_it_ends(agent):
    with agent.pipeline.broker.attending():
        thread = later(agent.call, "make release")
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", remember=Remember()
        )
        thread.join(10)
    assert said(agent.call("make release", call="t2")) == "allow"
    assert said(agent.call("make release --force", call="t3")) == "deny"
    agent.send("SessionEnd", reason="exit")
    assert said(agent.call("make release", call="t4")) == "deny"


def test_outside_and_dialog_race_and_the_first_answer_wins(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    entry = question(agent).entry
    deadline = time.monotonic() + 10
    while not agent.pipeline.broker.is_awaited(entry) and time.monotonic() < deadline:
        time.sleep(0.005)
    agent.pipeline.answer(entry, "approved", actor="ada", channel="terminal")
    thread.join(10)
    assert answers[0][0]["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_a_no_from_outside_closes_the_dialog_with_the_message(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    agent.pipeline.answer(question(agent).entry, "denied", actor="ada", channel="terminal", message="no!")
    thread.join(10)
    decision = answers[0][0]["hookSpecificOutput"]["decision"]
    assert decision["behavior"] == "deny"
    assert "no!" in decision["message"]


def test_a_yes_in_the_dialog_is_known_by_the_outcome(agent):
    agent.call("make release", facts=ATTENDED)
    answers = []
    thread = later(lambda: answers.append(agent.permission("make release")))
    question(agent)
    agent.done("make release")
    thread.join(10)
    entry = agent.entries()[0]
    assert (entry.answer, entry.channel, entry.outcome) == ("approved", "agent", "success")
    assert answers == [("", "", 0)]


def test_a_no_in_the_dialog_is_known_when_the_agent_goes_on(agent):
    agent.call("make release", facts=ATTENDED)
    agent.send("UserPromptSubmit", prompt="do something else")
    assert (agent.entries()[0].answer, agent.entries()[0].channel) == ("cancelled", "agent")


def test_a_permission_question_that_is_not_ours_stays_with_the_agent(agent):
    assert agent.permission("something else") == ("", "", 0)


def test_questions_nobody_waits_for_expire(agent, clock):
    agent.call("make release", facts=ATTENDED)
    clock.now += 301
    agent.door.expire()
    assert agent.entries()[0].answer == "expired"


# -- phases --------------------------------------------------------------------------------------------


def test_ac_027_a_typed_phase_holds_from_the_next_call_on(agent):
    assert said(agent.call("pytest")) == "allow"
    agent.send("UserPromptExpansion", command_name="auditing", command_args="", prompt="/auditing")
    assert said(agent.call("pytest", call="t2")) == "deny"
    agent.send("UserPromptExpansion", command_name="checkrein:building", command_args="", prompt="x")
    assert said(agent.call("pytest", call="t3")) == "allow"
    changed = [row for row in records.after(agent.pipeline.store, 0) if row[2] == "phase_changed"]
    assert len(changed) == 3


def test_a_phase_typed_in_one_session_leaves_the_others_alone(agent):
    agent.send("UserPromptExpansion", command_name="auditing", command_args="", prompt="/auditing")
    assert agent.pipeline.phase_of(agent.project, "other") == "building"


def test_other_slash_commands_are_none_of_our_business(agent):
    assert agent.send("UserPromptExpansion", command_name="review", command_args="", prompt="x") == (
        "",
        "",
        0,
    )


@pytest.mark.parametrize("name", ["building", "checkrein:building", "/building now"])
def test_the_model_cannot_switch_the_phase(agent, name):
    answer = agent.call(tool="Skill", arguments={"skill": name})
    assert said(answer) == "deny"
    assert "Only a person" in reason(answer)


def test_a_prompt_is_where_other_agents_have_their_slash_commands(agent):
    agent.send("UserPromptSubmit", agent="codex", prompt="/auditing")
    assert agent.pipeline.phase_of(agent.project, "s-1") == "auditing"


# -- sub-agents ----------------------------------------------------------------------------------------


def agent_call(agent, call, **arguments):
    return agent.call(tool="Agent", call=call, arguments={"prompt": "look around", **arguments})


def test_a_sub_agent_gets_the_routed_model(agent):
    answer = agent_call(agent, "a1")
    updated = answer[0]["hookSpecificOutput"]["updatedInput"]
    assert updated == {"prompt": "look around", "model": "opus"}
    assert "routed" in agent.kinds()


def test_a_model_the_agent_chose_itself_stays(agent):
    answer = agent_call(agent, "a1", model="haiku")
    assert "updatedInput" not in answer[0]["hookSpecificOutput"]


def test_failures_in_a_row_end_at_the_user(agent):
    arguments = {"prompt": "look around"}
    for number in range(6):
        agent_call(agent, f"a{number}")
        agent.done(tool="Agent", call=f"a{number}", arguments=arguments)
    models = []
    for number in range(3):
        answer = agent_call(agent, f"b{number}")
        models.append(answer[0]["hookSpecificOutput"].get("updatedInput", {}).get("model"))
        failed = {"tool_name": "Agent", "tool_input": arguments, "tool_use_id": f"b{number}"}
        agent.send("PostToolUseFailure", **failed, error="it gave up", is_interrupt=False)
    assert models == ["sonnet", "opus", None]
    assert said(answer) == "deny"
    assert agent.entries()[-1].stage == "hold"
    assert "in a row" in agent.entries()[-1].reasons[0]


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


def test_the_project_is_where_the_session_began(agent, home):
    (home / "elsewhere" / ".git").mkdir(parents=True)
    agent.send("SessionStart", source="startup")
    agent.call("ls", cwd=str(home / "elsewhere"))
    assert agent.entries()[0].project == agent.project


def test_events_we_do_not_know_pass_in_silence(agent):
    assert agent.send("MessageDisplay") == ("", "", 0)
    assert agent.send("SubagentStart", agent_type="Explore") == ("", "", 0)


def test_an_unknown_agent_is_refused_at_the_gate(agent):
    stdout, stderr, code = agent.raw(b"{}", agent="nobody")
    assert (stdout, code) == ("", 2)
    assert "not an agent we know" in stderr


def test_the_status_line(agent):
    agent.call("pytest")
    agent.done("pytest")
    agent.call("make release", call="t2", facts=ATTENDED)
    line = agent.send("", "status", workspace={"project_dir": agent.project})[0]
    assert line.startswith("checkrein building · ")
    assert "test_run 0.33" in line


def test_folding_shows_the_whole_story(agent):
    agent.call("make release", facts=ATTENDED)
    agent.done("make release")
    entry = agent.entries()[0]
    kinds = [row[2] for row in records.of_entries(agent.pipeline.store, [entry.id])]
    assert kinds == ["decided", "asked", "answered", "finished"]
    assert fold(records.of_entries(agent.pipeline.store, [entry.id]))[0].result == "success"


@pytest.mark.parametrize("cwd", ["/nul\x00byte", "/" + "x" * 5000])
def test_a_folder_nobody_can_use_is_refused_and_recorded(agent, cwd):
    assert agent.call("ls", cwd=cwd, session_id="fresh")[2] == 2
    assert agent.entries()[-1].decision == "blocked"


def test_a_phase_without_a_session_is_nobodys(agent):
    agent.send("UserPromptExpansion", session_id="", command_name="auditing", prompt="/auditing")
    assert agent.pipeline.phase_of("", "") is None


def test_a_phase_switch_from_the_spool_comes_too_late(agent):
    body = {"session_id": "s-1", "cwd": agent.project, "hook_event_name": "UserPromptSubmit"}
    request = Request(
        "0.1.0", ("hook", "codex", "tell", "5"), {}, json.dumps(body | {"prompt": "/auditing"}).encode()
    )
    agent.door.handle(request, Peer(0, os.geteuid()), None)
    assert agent.pipeline.phase_of(agent.project, "s-1") == "building"


@pytest.fixture
def tool():
    """Something the agent runs."""
    running = subprocess.Popen(["sleep", "60"])
    yield running.pid
    running.kill()
    running.wait()


def test_what_an_agent_runs_neither_reports_nor_types_for_anybody(agent, tool):
    agent.send("SessionStart", facts=ATTENDED | {"CLAUDE_PID": str(os.getppid())}, source="startup")
    assert said(agent.call("touch made")) == "ask"
    agent.process = tool
    agent.done("touch made")
    (asked,) = agent.entries()
    assert (asked.answer, asked.completed_at) == (None, None)
    stopped = agent.send("UserPromptExpansion", "gate", command_name="auditing", prompt="/auditing")
    assert stopped[0]["decision"] == "block"
    assert agent.kinds().count("request_refused") == 2
    agent.process = os.getpid()
    agent.done("touch made")
    (ran,) = agent.entries()
    assert (ran.answer, ran.channel, ran.result) == ("approved", "agent", "success")
