"""Nobody sits before the agent: questions of Codex, Gemini CLI and Copilot CLI go to the inbox."""

import json
import os
import re
import signal
import time

import pytest

from checkrein.doors.hooks.dialects import dialect
from e2e.clients.every import AGENTS, hooks_of
from patience import until

MADE, OTHER = "touch made", "touch other"


@pytest.fixture(params=AGENTS)
def agent(request, house):
    found = AGENTS[request.param](house)
    house.install(found.agent)
    return found


@pytest.fixture
def made(house):
    return house.project / "made"


def test_nobody_in_reach_is_a_no_that_says_how_to_be_reached(agent, house, made):
    ran = agent.run(agent.shell(MADE))
    assert "nobody can be reached" in ran[0].told and "checkrein inbox" in ran[0].told
    (found,) = house.entries()
    assert (found["verdict"], found["answer"]) == ("ask", "cancelled")
    assert found["completed_at"] is None or found["result"] != "success"
    assert not made.exists()
    assert house.json("inbox") == []


def test_an_approved_call_runs(agent, house, made):
    with house.inbox():
        going = agent.begin(agent.shell(MADE))
        question = house.question()
        assert (question["tool"], question["input"]["command"]) == ("Bash", MADE)
        assert not made.exists()
        house.checkrein("approve", question["id"])
        going.result()
    assert made.exists()
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("approved", "terminal", agent.succeeded)
    assert found["actor"]
    assert house.verifies()


def test_a_denied_call_does_not_run_and_the_model_reads_why(agent, house, made):
    with house.inbox():
        going = agent.begin(agent.shell(MADE), agent.shell("ls"))
        house.checkrein("deny", house.question()["id"], "--message", "use the docs folder instead")
        ran = going.result()
    assert "use the docs folder instead" in ran[0].told
    assert "README.md" in ran[1].told
    assert not made.exists()
    assert house.entries()[0]["answer"] == "denied"


def test_an_edited_call_runs_as_edited(agent, house, made):
    with house.inbox():
        going = agent.begin(agent.shell(MADE))
        question = house.question()
        edited = json.dumps({**question["input"], "command": OTHER})
        house.checkrein("approve", question["id"], "--edit", edited)
        going.result()
    assert (house.project / "other").exists() and not made.exists()
    (found,) = house.entries()
    assert found["result"] == agent.succeeded
    (answered,) = house.records("answered")
    assert answered["data"]["edited"]["command"] == OTHER


def test_files_and_mcp_tools_wait_for_their_answer_too(agent, house):
    new = house.project / "src" / "new.py"
    with house.inbox():
        going = agent.begin(agent.write(new, "y = 1\n"), agent.demo("echo", text="heard you"))
        for tool in (agent.writes, "mcp__demo__echo"):
            question = until(lambda tool=tool: [each for each in house.json("inbox") if each["tool"] == tool])
            house.checkrein("approve", question[0]["id"])
        ran = going.result()
    assert new.read_text() == "y = 1\n"
    assert "heard you" in ran[1].told
    assert [each["result"] for each in house.entries()] == ["success", "success"]


def test_several_questions_of_one_turn_each_get_their_own_answer(agent, house, made):
    with house.inbox():
        going = agent.begin([agent.shell(MADE), agent.shell(OTHER)])
        for command, answer in ((MADE, "deny"), (OTHER, "approve")):
            found = until(
                lambda command=command: [
                    each for each in house.json("inbox") if each["input"]["command"] == command
                ]
            )
            house.checkrein(answer, found[0]["id"])
        going.result()
    assert (house.project / "other").exists() and not made.exists()
    assert sorted(each["answer"] for each in house.entries()) == ["approved", "denied"]


def test_a_question_nobody_answers_in_time_is_a_no(agent, house, made):
    house.settings("[approval]\ntimeout_seconds = 3\n")
    with house.inbox():
        ran = agent.run(agent.shell(MADE))
    assert "Nobody answered in time" in ran[0].told
    assert house.entries()[0]["answer"] == "expired"
    assert not made.exists()


def test_the_question_ends_before_the_agent_stops_waiting(agent, house, made):
    """However long a question may wait: an agent that stops waiting runs the tool."""
    house.settings("[approval]\ntimeout_seconds = 300\n")
    path = hooks_of(agent, house)
    path.write_text(shorter(agent.agent, path.read_text(), hook=8, limit=10))
    with house.inbox():
        began = time.monotonic()
        ran = agent.run(agent.shell(MADE))
    assert "Nobody answered in time" in ran[0].told, ran[0].told
    assert time.monotonic() - began < 25
    assert house.entries()[0]["answer"] == "expired"
    assert not made.exists()


def test_a_server_that_hangs_while_a_person_is_asked_is_a_no(agent, house, made):
    heard = []

    def go_on():
        heard.append(time.monotonic())
        os.kill(server, signal.SIGCONT)
        return {"text": "done"}

    with house.inbox():
        server = house.server()
        going = agent.begin(agent.shell(MADE), go_on)
        house.question()
        os.kill(server, signal.SIGSTOP)
        began = time.monotonic()
        ran = going.result()
        # A yes that comes too late is heard by nobody.
        until(lambda: house.json("inbox") == [])
    assert heard[0] - began < 20
    assert "Checkrein" in ran[0].told and not made.exists()
    assert house.entries()[0]["answer"] in ("cancelled", "expired")
    assert house.verifies()


def test_a_question_survives_the_end_of_the_server(agent, house, made):
    """The hook that waits finds the next server, its question still stands, and the answer counts."""
    with house.inbox():
        going = agent.begin(agent.shell(MADE), agent.shell("ls"))
        question = house.question()["id"]
        house.checkrein("down")
        until(lambda: house.json("up")["reachable"])
        assert [each["id"] for each in house.json("inbox")] == [question]
        assert not made.exists()
        house.checkrein("approve", question)
        ran = going.result()
    assert made.exists()
    assert "README.md" in ran[1].told
    assert house.entries()[0]["answer"] == "approved"
    assert house.verifies()


def test_an_agent_that_is_killed_takes_its_question_with_it(agent, house, made):
    with house.inbox():
        going = agent.begin(agent.shell(MADE), seconds=6.0)
        question = house.question()
        with pytest.raises(AssertionError, match="did not end"):
            going.result()
        until(lambda: house.json("inbox") == [])
        house.checkrein("approve", question["id"], code=2)
    assert not made.exists()
    assert house.entries()[0]["answer"] == "cancelled"


def shorter(agent, text, *, hook, limit):
    """The hooks file with other time limits for the gate: our own, and the agent's above it."""
    settings = json.loads(text)
    (item,) = settings["hooks"][dialect(agent).gate]
    handler = item["hooks"][0] if "hooks" in item else item
    key = "bash" if "bash" in handler else "command"
    handler[key] = re.sub(r" gate \d+ ", f" gate {hook} ", handler[key])
    table = dialect(agent).hooks
    handler[table.timeout_key] = limit * (1000 if table.timeout_unit == "ms" else 1)
    return json.dumps(settings)
