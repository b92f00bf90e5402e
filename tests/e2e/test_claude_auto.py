"""Claude Code in auto mode: its safety classifier holds beside us, and only a person's word overrules it."""

import json

import pytest

from e2e.clients.claude import AUTO, bash
from patience import until

MAKE = "tee made < README.md"
CURL = "curl https://example.com/pay"
LOW = "ls src"
VERDICTS = ["flagged", "not_flagged", None]
STOPPED = "Permission for this action was denied by the Claude Code auto mode classifier"


@pytest.fixture
def made(house):
    return house.project / "made"


def checked(command, verdict):
    """A call, and what the classifier says of it."""
    return bash(command) | ({"verdict": verdict, "why": "it writes a file"} if verdict else {})


def earn(house):
    """As much trust as lets the call run unasked."""
    old = house.home / "trust-scores.json"
    old.write_text(json.dumps({"score": 0.95, "successes": 300, "failures": 0}))
    house.checkrein("trust", "import", old, "--yes")


def grant(house):
    """A person's own word for exactly this call."""
    when = json.dumps([{"path": "command", "equals": MAKE}])
    house.checkrein("rules", "add", "allow", "--tool", "Bash", "--when", when)


def nothing(_house):
    """Neither trust nor a rule."""


# What we said, what became of it for each verdict of the classifier, and how it was recorded.
MATRIX = {
    "low": (LOW, nothing, (False, True, False), "allow"),
    "earned": (MAKE, earn, (False, True, False), "allow"),
    "granted": (MAKE, grant, (True, True, True), "allow"),
    "ask": (MAKE, nothing, (False, False, False), "ask"),
    "deny": (CURL, nothing, (False, False, False), "deny"),
}


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
@pytest.mark.parametrize("case", MATRIX)
def test_the_classifier_holds_unless_a_person_spoke(claude, house, made, case, verdict):
    command, prepare, runs, word = MATRIX[case]
    prepare(house)
    ran = claude.run(checked(command, verdict), mode="auto")
    expected = runs[VERDICTS.index(verdict)]
    assert ran[0].failed == (not expected), ran[0].told
    assert made.exists() == (expected and command == MAKE)
    found = house.entry(ran[0].id)
    assert found["verdict"] == word
    if word != "allow":
        assert "Checkrein" in ran[0].told
    elif expected:
        # What we said nothing about is recorded and credited all the same.
        assert found["result"] == "success"
    else:
        assert found["completed_at"] is None
        assert verdict is None or STOPPED in ran[0].told
    assert house.verifies()


def test_an_earned_call_is_denied_also_after_the_third_block(claude, house, made):
    """From then on Claude Code asks for permission: the verdict it did not hear is no yes to that."""
    earn(house)
    ran = claude.run(*[checked(MAKE, "flagged") for _ in range(5)], mode="auto")
    assert len(ran.tools) >= 4
    assert all(used.failed for used in ran.tools) and not made.exists()
    assert [each["verdict"] for each in house.entries()] == ["allow"] * len(ran.tools)


def test_what_a_person_edits_runs_also_when_it_is_flagged(claude, house, made):
    with house.inbox():
        going = claude.begin(checked(MAKE, "flagged"), mode="auto")
        question = house.question()["id"]
        house.checkrein("approve", question, "--edit", json.dumps({"command": "touch edited"}))
        ran = going.result()
    assert not ran[0].failed, ran[0].told
    assert (house.project / "edited").exists() and not made.exists()


def test_a_sub_agent_keeps_its_model(claude, house):
    """A changed call needs an allow, and that no person gave."""
    job = {"description": "Find files", "prompt": "SUBJOB find the files", "subagent_type": "Explore"}
    call = {"name": "Agent", "input": job, "verdict": "not_flagged"}
    ran = claude.run(call, agents={"SUBJOB": [{"tools": [checked(LOW, "not_flagged")]}]}, mode="auto")
    assert not ran[0].failed, ran[0].told
    (routed,) = house.records("routed")
    assert routed["data"]["applied"] is False


# -- with a person before it -----------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
@pytest.mark.parametrize("case", ["earned", "granted"])
def test_in_a_terminal_too_the_classifier_holds_unless_a_person_spoke(claude, house, made, case, verdict):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    _, prepare, runs, _ = MATRIX[case]
    prepare(house)
    with claude.sit(checked(MAKE, verdict), args=AUTO) as screen:
        told = until(screen.told)
    expected = runs[VERDICTS.index(verdict)]
    assert made.exists() == expected, told


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
def test_in_a_terminal_our_question_is_asked_and_its_yes_runs_the_call(claude, house, made, verdict):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    with claude.sit(checked(MAKE, verdict), args=AUTO) as screen:
        screen.shows("Do you want to proceed?", "Checkrein asks")
        assert not made.exists()
        screen.type("1")
        until(made.exists)
        until(lambda: house.entries()[0]["completed_at"])
    (found,) = house.entries()
    assert (found["answer"], found["channel"], found["result"]) == ("approved", "agent", "success")


@pytest.mark.parametrize("verdict", VERDICTS, ids=str)
def test_in_a_terminal_our_refusal_holds(claude, house, verdict):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    with claude.sit(checked(CURL, verdict), args=AUTO) as screen:
        told = until(screen.told)
    assert "Checkrein" in told[0]
    assert house.entries()[0]["verdict"] == "deny"
