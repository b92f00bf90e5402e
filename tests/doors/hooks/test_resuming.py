"""Hooks that waited for a server that is gone: they find their question again, and nobody else finds it."""

import contextlib
import subprocess

import pytest

from checkrein import wire
from checkrein.authority import Asked, myself, perform
from checkrein.authority.phase import switch
from checkrein.core import approvals
from checkrein.core.redemption import get_entry
from checkrein.doors.hooks import waiting as waiting_module
from checkrein.doors.hooks.resuming import COMING_BACK_SECONDS
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.questions import waiting
from doors.hooks.agent import ATTENDED, Agent, Line, later, question, reason, said
from patience import PATIENCE, until

GEMINI = {"agent": "gemini-cli", "tool_name": "run_shell_command", "tool_input": {"command": "make release"}}


class Mortal(Line):
    """A hook whose server ends when the test says so."""

    server_ended = False

    def still_here(self):
        if self.server_ended:
            raise wire.Gone
        return self.open


class Ground:
    """An agent whose server ends and is started again, with nothing left but the store."""

    def __init__(self, pipeline, project, clock):
        self.clock, self.project = clock, project
        self.agent = Agent(pipeline, project)
        self.hooks = []
        switch(pipeline, "building", "ada", "test", project=project)

    @property
    def pipeline(self):
        return self.agent.pipeline

    def wait(self, send, **more):
        """Have a hook wait for an answer; the oldest question."""
        line, known = Mortal(), self.count("asked")
        thread = later(lambda: self._until_the_end(send, line, **more))
        self.hooks.append((thread, line))
        until(lambda: self.count("asked") != known)
        for each in waiting(self.pipeline.store):
            self.until_awaited(each.entry)
        return question(self.agent).entry

    def ask(self, command="make release", **more):
        with self.pipeline.broker.attending():
            return self.wait(lambda **given: self.agent.call(command, **given), **more)

    def _until_the_end(self, send, line, **more):
        with contextlib.suppress(wire.Gone):
            send(line=line, **more)

    def open_questions(self):
        asked = Asked(self.pipeline, self.agent.door.agents, myself())
        return perform(asked, "question.list", {})

    def restart(self):
        """The server ends as when it is killed: nobody is told, nothing is withdrawn."""
        for thread, line in self.hooks:
            line.server_ended = True
            thread.join(PATIENCE)
        self.hooks.clear()
        # Less than this process is old, whose hooks come back.
        self.clock.now += 0.01
        process = self.agent.process
        pipeline = Pipeline(self.pipeline.store, state_dir(), clock=self.clock)
        self.agent = Agent(pipeline, self.project)
        self.agent.process = process
        # Hooks here are as old as the test run, and their time counts from their begin.
        self.agent.line = Line(seconds=86_400)

    def until_awaited(self, entry):
        broker = self.pipeline.broker
        until(lambda: broker.is_awaited(entry), failing="the hook did not come back to its question")

    def say(self, entry, answer="approved", **more):
        self.pipeline.answer(entry, answer, actor="ada", channel="terminal", **more)

    def count(self, kind):
        return self.agent.kinds().count(kind)


@pytest.fixture
def ground(pipeline, project, clock, monkeypatch):
    monkeypatch.setattr(waiting_module, "_TICK", 0.02)
    made = Ground(pipeline, project, clock)
    yield made
    made.restart()


@pytest.fixture
def newcomer():
    """A process that began just now."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


def heard(ground, send=None):
    """What a hook that comes back hears, with the question it waits for answered in between."""
    answers = []
    send = send or (lambda: ground.agent.call("make release"))
    return later(lambda: answers.append(send())), answers


@pytest.mark.parametrize(("word", "expected"), [("approved", "allow"), ("denied", "deny")])
def test_a_hook_goes_on_waiting_for_the_same_question(ground, word, expected):
    entry = ground.ask()
    before = ground.open_questions()[0]
    ground.restart()
    assert [(each["id"], each["awaited"]) for each in ground.open_questions()] == [(entry, False)]
    # Nobody has opened an inbox yet, and it is waited for all the same.
    thread, answers = heard(ground)
    ground.until_awaited(entry)
    after = ground.open_questions()[0]
    assert after == before | {"awaited": True}
    ground.say(entry, word)
    thread.join(PATIENCE)
    assert said(answers[0]) == expected
    assert [ground.count(kind) for kind in ("decided", "asked", "answered")] == [1, 1, 1]


@pytest.mark.parametrize("when", ["just before the end", "while it was away"])
@pytest.mark.parametrize(
    ("word", "expected", "text"),
    [
        ("approved", "allow", "ada approved it."),
        ("denied", "deny", "said no"),
        ("answered", "deny", "answers for the tool"),
        ("expired", "deny", "Nobody answered in time"),
    ],
)
def test_an_answer_it_did_not_hear_counts(ground, when, word, expected, text):
    entry = ground.ask()
    if when == "just before the end":
        for _, line in ground.hooks:
            line.server_ended = True
        ground.say(entry, word)
    ground.restart()
    if when == "while it was away":
        ground.say(entry, word)
    answer = ground.agent.call("make release")
    assert said(answer) == expected
    assert text in reason(answer)
    assert [ground.count(kind) for kind in ("decided", "asked", "answered")] == [1, 1, 1]


def test_a_second_hook_of_the_same_call_hears_the_same(ground):
    entry = ground.ask()
    ground.restart()
    ground.say(entry)
    assert [said(ground.agent.call("make release")) for _ in range(2)] == ["allow", "allow"]
    ground.restart()
    assert said(ground.agent.call("make release")) == "allow"
    assert ground.count("decided") == 1


def test_a_hook_that_goes_away_withdraws_nothing_another_waits_for(ground):
    entry = ground.ask()
    ground.restart()
    thread, answers = heard(ground)
    ground.until_awaited(entry)
    gone = Line()
    gone.open = False
    assert "stopped waiting" in reason(ground.agent.call("make release", line=gone))
    ground.say(entry)
    thread.join(PATIENCE)
    assert said(answers[0]) == "allow"


@pytest.mark.invariant("a question fits exactly its call")
@pytest.mark.parametrize("later_call", [{"call": "t2"}, {"cwd": "/"}, {"command": "make release "}])
def test_an_approval_covers_no_other_call(ground, later_call):
    ground.say(ground.ask())
    ground.restart()
    answer = ground.agent.call(**{"command": "make release"} | later_call)
    assert "nobody can be reached" in reason(answer)
    assert ground.count("decided") == 2


@pytest.mark.invariant(
    "an answer is heard only by hooks that were there when it was given, so none covers a new call"
)
def test_an_answer_is_heard_only_by_hooks_that_were_there_when_it_was_given(ground, newcomer):
    """An id that an agent uses again brings no yes back."""
    ground.say(ground.ask())
    ground.restart()
    ground.clock.now += 3_600
    ground.agent.process = newcomer
    assert "nobody can be reached" in reason(ground.agent.call("make release"))
    ground.agent.process = 0
    assert said(ground.agent.call("make release")) == "deny"


def test_a_call_that_has_run_needs_a_new_answer(ground):
    ground.say(ground.ask())
    ground.restart()
    assert said(ground.agent.call("make release")) == "allow"
    ground.agent.done("make release")
    ground.restart()
    assert "nobody can be reached" in reason(ground.agent.call("make release"))


@pytest.mark.invariant("an agent is told yes only to what was approved and may still run")
@pytest.mark.parametrize("open_before", [True, False])
def test_what_policy_refuses_by_now_does_not_run(ground, open_before):
    entry = ground.ask()
    ground.restart()
    thread = None
    if open_before:
        thread, answers = heard(ground)
        ground.until_awaited(entry)
    else:
        ground.say(entry)
    switch(ground.pipeline, "auditing", "ada", "test", project=ground.project)
    if thread:
        ground.say(entry)
        thread.join(PATIENCE)
    answer = answers[0] if thread else ground.agent.call("make release")
    assert said(answer) == "deny"
    assert "auditing" in reason(answer)
    last = ground.agent.entries()[-1]
    assert last.answer == "denied" if open_before else last.verdict == "deny"
    if not open_before:
        found = get_entry(ground.pipeline.store, entry)
        assert (found.answer, found.result, found.evidence) == ("approved", "cancelled", "policy")


@pytest.mark.invariant("an agent is told yes only to what was approved and may still run")
def test_arguments_a_person_wrote_reach_the_agent_after_a_restart(ground):
    entry = ground.ask()
    ground.say(entry, edited={"command": "make check"})
    ground.restart()
    answer = ground.agent.call("make release")
    assert said(answer) == "allow"
    assert answer[0]["hookSpecificOutput"]["updatedInput"] == {"command": "make check"}


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
def test_where_the_arguments_a_person_wrote_are_lost_the_others_do_not_run(ground):
    entry = ground.ask()
    ground.say(entry, edited={"command": "make check"})
    (state_dir() / "questions.key").unlink()
    ground.restart()
    answer = ground.agent.call("make release")
    assert (said(answer), answer[2]) == ("deny", 2)
    assert "A person approved other arguments" in reason(answer)
    assert "Make the call again" in reason(answer)
    found = get_entry(ground.pipeline.store, entry)
    assert (found.result, found.evidence) == ("cancelled", "arguments")


def test_arguments_written_after_it_came_back_reach_it(ground):
    entry = ground.ask()
    ground.restart()
    thread, answers = heard(ground)
    ground.until_awaited(entry)
    ground.say(entry, edited={"command": "make check"})
    thread.join(PATIENCE)
    assert answers[0][0]["hookSpecificOutput"]["updatedInput"] == {"command": "make check"}


def test_a_question_that_was_withdrawn_is_asked_again(ground):
    entry = ground.ask()
    ground.restart()
    ground.say(entry, "cancelled")
    assert "nobody can be reached" in reason(ground.agent.call("make release"))
    assert ground.count("decided") == 2


def test_the_hook_has_only_the_time_that_is_left(ground):
    ground.ask()
    ground.restart()
    line = Line(seconds=60)
    before = line.deadline
    line.open = False
    ground.agent.call("make release", line=line)
    assert line.deadline < before


def test_a_person_before_the_agent_sees_the_dialog_again(ground):
    ground.agent.call("make release", facts=ATTENDED)
    ground.restart()
    assert said(ground.agent.call("make release", facts=ATTENDED)) == "ask"
    assert ground.count("decided") == 1


# -- agents that give no ids ---------------------------------------------------------------------------


def gemini(ground, **more):
    return ground.agent.send("BeforeTool", "gate", **GEMINI, **more)


def test_without_ids_a_hook_finds_its_open_question(ground):
    with ground.pipeline.broker.attending():
        entry = ground.wait(lambda **given: gemini(ground, **given))
    ground.restart()
    thread, answers = heard(ground, lambda: gemini(ground))
    ground.until_awaited(entry)
    ground.say(entry)
    thread.join(PATIENCE)
    assert answers[0][0]["decision"] == "allow"
    assert ground.count("decided") == 1


def test_without_ids_two_hooks_alike_come_back_to_two_questions(ground, newcomer):
    with ground.pipeline.broker.attending():
        ground.wait(lambda **given: gemini(ground, **given))
        ground.wait(lambda **given: gemini(ground, **given))
    assert ground.open_questions()[0]["same"] == 2
    ground.restart()
    one, first = heard(ground, lambda: gemini(ground))
    entries = [each.entry for each in waiting(ground.pipeline.store)]
    ground.until_awaited(entries[0])
    ground.agent.process = newcomer
    two, second = heard(ground, lambda: gemini(ground))
    ground.until_awaited(entries[1])
    ground.say(entries[0], edited={"command": "make check"})
    one.join(PATIENCE)
    ground.say(entries[1], "denied")
    two.join(PATIENCE)
    assert first[0][0]["hookSpecificOutput"]["tool_input"] == {"command": "make check"}
    assert second[0][0]["decision"] == "deny"
    assert ground.count("decided") == 2


def test_without_ids_an_answer_is_taken_by_one_hook(ground, newcomer):
    """Also where both were there when it was given."""
    with ground.pipeline.broker.attending():
        entry = ground.wait(lambda **given: gemini(ground, **given))
    ground.restart()
    ground.say(entry)
    assert [gemini(ground)[0]["decision"] for _ in range(2)] == ["allow", "allow"]
    ground.agent.process = newcomer
    assert gemini(ground)[0]["decision"] == "deny"
    assert ground.count("decided") == 2


def test_without_ids_a_call_alike_does_not_join_a_question_of_this_server(ground):
    with ground.pipeline.broker.attending():
        ground.wait(lambda **given: gemini(ground, **given))
        gemini(ground, line=Line(seconds=0.1))
    assert ground.count("decided") == 2


# -- the agent's own dialog ----------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "behaviour"), [("approved", "allow"), ("denied", "deny")])
def test_a_dialog_hears_what_was_said_outside_while_the_server_was_away(ground, word, behaviour):
    ground.agent.call("make release", facts=ATTENDED)
    ground.restart()
    ground.say(question(ground.agent).entry, word)
    answer = ground.agent.permission("make release")
    assert answer[0]["hookSpecificOutput"]["decision"]["behavior"] == behaviour


@pytest.mark.invariant(
    "an answer is heard only by hooks that were there when it was given, so none covers a new call"
)
def test_a_dialog_is_not_answered_by_an_older_answer(ground, newcomer):
    ground.agent.call("make release", facts=ATTENDED)
    ground.say(question(ground.agent).entry)
    ground.restart()
    ground.clock.now += 3_600
    ground.agent.process = newcomer
    assert ground.agent.permission("make release") == ("", "", 0)


@pytest.mark.invariant("an agent is told yes only to what was approved and may still run")
def test_a_dialog_is_told_no_where_policy_refuses_by_now(ground):
    ground.agent.call("make release", facts=ATTENDED)
    ground.restart()
    ground.say(question(ground.agent).entry)
    switch(ground.pipeline, "auditing", "ada", "test", project=ground.project)
    decision = ground.agent.permission("make release")[0]["hookSpecificOutput"]["decision"]
    assert decision["behavior"] == "deny"
    assert "auditing" in decision["message"]


def test_a_dialog_goes_on_waiting_for_an_answer_outside(ground):
    ground.agent.call("make release", facts=ATTENDED)
    ground.restart()
    thread, answers = heard(ground, lambda: ground.agent.permission("make release"))
    entry = question(ground.agent).entry
    ground.until_awaited(entry)
    ground.say(entry)
    thread.join(PATIENCE)
    assert answers[0][0]["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


# -- hooks that do not come back -----------------------------------------------------------------------


def test_a_report_that_arrives_first_withdraws_nothing_a_hook_comes_back_to(ground):
    ground.ask()
    ground.restart()
    ground.agent.send("Stop")
    assert len(ground.open_questions()) == 1
    ground.clock.now += COMING_BACK_SECONDS
    ground.agent.send("Stop")
    assert ground.open_questions() == []


def test_the_end_of_the_session_withdraws_it(ground):
    ground.ask()
    ground.restart()
    ground.agent.send("SessionEnd", reason="exit")
    assert ground.agent.entries()[0].answer == "cancelled"


def test_a_no_in_the_dialog_is_not_waited_for(ground):
    ground.agent.call("make release", facts=ATTENDED)
    ground.restart()
    ground.agent.send("UserPromptSubmit", prompt="something else", facts=ATTENDED)
    assert ground.agent.entries()[0].answer == "cancelled"


def test_a_question_nobody_comes_back_to_expires(ground):
    ground.ask()
    ground.restart()
    ground.clock.now += 100_000
    approvals.sweep(ground.pipeline)
    assert ground.agent.entries()[0].answer == "expired"


@pytest.mark.invariant("an answer is told to no process that could not have waited for it")
def test_a_process_that_is_not_the_agents_hook_hears_no_earlier_answer(ground):
    entry = ground.ask()
    ground.restart()
    ground.say(entry)
    ground.agent.speaker.why = "it comes from something the agent runs"
    # Nobody can be asked now, so the same call anew is refused.
    assert said(ground.agent.call("make release")) == "deny"
    ground.agent.speaker.why = ""
    assert ground.count("asked") == 1
