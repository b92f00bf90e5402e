"""Questions that wait while the server is killed: none lost, none answered twice, each hook hears its own."""

import contextlib
import json
import os
import random
import shlex
import signal
import sys
import threading
import time

import pytest
from ground import FULL, SOAK

from agent_process import AgentProcess
from checkrein import __version__, knocking, wire
from checkrein.errors import CheckreinError, InputError
from checkrein.hookclient import client as python_client
from checkrein.hookclient import client_words
from checkrein.runtime import door_file
from checkrein.settings.sources import state_dir
from checkrein.speakers import RegisteredClients
from checkrein.store.questions import waiting
from checkrein.store.sqlite import SqliteStore
from faults.test_hooks import OWN_REFUSAL, _holder, check_chain, records, running, served
from hookclient.servers import children
from patience import PATIENCE, until

# Kills in every round: with all questions open, and in the middle of the answers.
ROUNDS, EARLY, LATE, WAITING = (10, 10, 10, 20) if SOAK else (1, 3, 3, 20) if FULL else (1, 1, 2, 8)
PYTHON_CLIENT = [sys.executable, "-I", "-S", python_client.__file__]
# A server that was just started is killed within so many seconds: in the middle of whatever it does.
LONGEST = 1.2
SAYS = {"approved": (0, "allow"), "denied": (2, "deny")}


@pytest.fixture
def agent(project):
    with served(project):
        RegisteredClients(state_dir()).register(PYTHON_CLIENT)
        made = Agent(project)
        yield made
        made.end()


class Agent:
    """Hooks that wait for a person, as processes."""

    def __init__(self, project):
        self.project, self.process = project, AgentProcess()
        self.hooks = {}

    def ask(self, call, session="s-1", command=None, client=None):
        body = {
            "session_id": session,
            "cwd": self.project,
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command or f"make release-{call}"},
            "tool_use_id": call,
        }
        words = [*(client or client_words()), str(door_file()), "claude-code", "gate", "580"]
        self.hooks[call] = self.process.start(f"{shlex.join(words)} || exit 2", json.dumps(body).encode())

    def client(self, call):
        """The process of a hook that waits; the shell that runs its line is above it."""
        (found,) = until(lambda: children(self.hooks[call].pid))
        return int(found)

    def heard(self, call):
        """(exit code, decision, stderr) of a hook that has its answer."""
        process = self.hooks.pop(call)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        return process.returncode, json.loads(stdout)["hookSpecificOutput"]["permissionDecision"], stderr

    def are_waiting(self):
        return sum(process.poll() is None for process in self.hooks.values())

    def end(self):
        self.process.end()


@contextlib.contextmanager
def someone_there():
    """A person with an inbox open, as the first question needs one."""
    with knocking.start() as connection:
        wire.send(connection, wire.encode_request(__version__, ("verb", "inbox.attend"), b"{}"))
        assert wire.receive(connection, time.monotonic() + PATIENCE) == b""
        yield


def listed():
    """What waits, as the inbox and the console show it; nothing while there is no server."""
    try:
        return knocking.ask(knocking.start(), "question.list", {})
    except CheckreinError:
        return []


def until_all_wait(count):
    until(
        lambda: [each["awaited"] for each in listed()] == [True] * count,
        failing=lambda: [(each["id"], each["awaited"]) for each in listed()],
    )


def until_another_runs(pid):
    """Nobody but the hooks starts it."""

    def another():
        with contextlib.suppress(CheckreinError):
            return running() not in (pid, None)

    until(another)


def say(entry, answer):
    """What a person means to say, said until the server has heard it; what it says it recorded."""

    def recorded():
        try:
            return knocking.ask(knocking.start(), "question.answer", {"id": entry, "answer": answer})[
                "answer"
            ]
        except InputError as error:
            # The record was made, and the server ended before it could say so.
            assert f"settled already: {answer}" in error.message, error
            return answer
        except CheckreinError:
            return None

    return until(recorded)


def say_all(said, chance, killed, before, failures):
    """Answer everything that waits, spread over the kills; the last when no other kill comes."""
    try:
        entries = [each["id"] for each in listed_for_sure()]
        chance.shuffle(entries)
        for place, entry in enumerate(entries):
            kills = before + place * LATE // (len(entries) - 1)
            until(lambda kills=kills: len(killed) >= kills, failing="the server is not killed")
            said[entry] = say(entry, chance.choice(list(SAYS)))
    except BaseException as error:
        failures.append(error)


def listed_for_sure():
    return until(listed)


def kill(agent, number=signal.SIGKILL):
    """End whoever holds the store, also when it is only starting: hooks that wait start one."""
    assert agent.are_waiting()
    pid = until(_holder, failing="hooks wait, and nobody starts a server")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_again_and_again(agent, chance, times, killed):
    for number in range(times):
        time.sleep(chance.uniform(0.02, LONGEST))
        kill(agent)
        killed.append(number)


def check(agent, calls, said):
    """Every hook heard exactly what was recorded for its question, and it was recorded once."""
    decided = [(data["call_id"], entry) for _, entry, data in records("decided")]
    assert sorted(call for call, _ in decided) == sorted(calls)
    entries = dict(decided)
    asked = [entry for _, entry, _ in records("asked")]
    assert sorted(asked) == sorted(entries.values())
    answered = [(entry, data["answer"]) for _, entry, data in records("answered")]
    assert len(answered) == len(calls)
    assert dict(answered) == said
    for call in list(agent.hooks):
        code, decision, stderr = agent.heard(call)
        assert OWN_REFUSAL not in stderr, (call, stderr)
        assert (code, decision) == SAYS[said[entries[call]]], (call, stderr)
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        assert waiting(store) == []
    finally:
        store.close()
    check_chain()


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_killing_the_server_loses_no_question_and_answers_none_twice(agent):
    chance, calls, said, failures, killed = random.Random(5), [], {}, [], []
    for number in range(ROUNDS):
        now = [f"r{number}-{each}" for each in range(WAITING)]
        calls += now
        with someone_there():
            for place, call in enumerate(now):
                agent.ask(call, session=f"s-{call}", client=PYTHON_CLIENT if place % 4 == 0 else None)
            until_all_wait(WAITING)
        kill_again_and_again(agent, chance, EARLY, killed)
        assert agent.are_waiting() == WAITING
        person = threading.Thread(target=say_all, args=(said, chance, killed, len(killed), failures))
        person.start()
        kill_again_and_again(agent, chance, LATE, killed)
        person.join(PATIENCE)
        assert not failures, failures[0]
        assert not person.is_alive()
        check(agent, calls, said)
    assert len(killed) == ROUNDS * (EARLY + LATE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_restart_everything_waits_as_before(agent, number):
    """Also when the server is told to stop, and could still have said something to its hooks."""
    with someone_there():
        for call in "abc":
            agent.ask(call)
        until_all_wait(3)
        before = listed()
    pid = running()
    kill(agent, number)
    until_another_runs(pid)
    until_all_wait(3)
    assert listed() == before
    said = {each["id"]: say(each["id"], "approved") for each in before}
    check(agent, "abc", said)


def test_an_answer_given_with_no_hook_on_the_line_waits_for_it(agent):
    """The hook is stopped, so that its question is answered by nobody's presence."""
    with someone_there():
        agent.ask("a")
        until_all_wait(1)
    (entry,) = [each["id"] for each in listed()]
    hook = agent.client("a")
    os.kill(hook, signal.SIGSTOP)
    kill(agent)
    assert say(entry, "denied") == "denied"
    kill(agent)
    os.kill(hook, signal.SIGCONT)
    check(agent, ["a"], {entry: "denied"})


def test_a_yes_covers_no_other_call(agent):
    """The same line with another id is another call, also while the first one's yes was not heard yet."""
    with someone_there():
        agent.ask("a", command="make release")
        until_all_wait(1)
        (entry,) = [each["id"] for each in listed()]
        hook = agent.client("a")
        os.kill(hook, signal.SIGSTOP)
        kill(agent)
    say(entry, "approved")
    agent.ask("b", command="make release")
    assert agent.heard("b")[:2] == (2, "deny")
    os.kill(hook, signal.SIGCONT)
    assert agent.heard("a")[:2] == (0, "allow")
    assert [data["call_id"] for _, _, data in records("decided")] == ["a", "b"]
    check_chain()
