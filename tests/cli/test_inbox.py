import os
import pty
import signal

import pytest

from checkrein import knocking
from checkrein.cli.inbox import shown


def reachable():
    connection = knocking.connect()
    return connection is not None and knocking.ask(connection, "server.about", {})["reachable"]


@pytest.fixture
def terminal():
    """Both ends of a terminal: what a person types into, and what a program reads."""
    person, program = pty.openpty()
    yield person, program
    os.close(person)
    os.close(program)


def test_nothing_waits_where_nothing_ran(run, home):
    assert run.json("inbox", "--json") == []
    assert not (home / "state").exists()


def test_a_person_counts_as_reachable_while_it_is_open(run, server, started, agent, until):
    run("phase", "building")
    word, reason = agent.judged("make x")
    assert word == "deny"
    assert "nobody can be reached" in reason
    assert not reachable()
    opened = started("inbox")
    until(reachable)
    opened.send_signal(signal.SIGINT)
    assert opened.wait(10) == 0
    until(lambda: not reachable())


def test_a_question_is_shown_whole_and_what_became_of_it(run, server, started, agent, project, until):
    run("phase", "building")
    opened = started("inbox")
    until(reachable)
    calling, question = agent.asks("make x && make y")
    (listed,) = run.json("inbox", "--json")
    assert (listed["id"], listed["tool"]) == (question, "Bash")
    text = until(lambda: question in opened.said() and opened.said())
    for part in (
        '"command": "make x && make y"',
        "risk",
        project,
        agent.session,
        f"approve {question}",
        "- ",
    ):
        assert part in text
    run("deny", question, "--message", "no need")
    calling.communicate(timeout=30)
    until(lambda: ": denied by" in opened.said())
    assert "no need" in opened.said()
    assert run.json("inbox", "--json") == []


def test_it_starts_the_server_and_finds_the_next_one(run, started, agent, until):
    run("phase", "building")
    opened = started("inbox")
    first = until(reachable) and knocking.ask(knocking.connect(), "server.about", {})["pid"]
    assert run("down") == "Stopped.\n"
    until(lambda: "has stopped" in opened.said())
    assert not knocking.is_running()
    run.apart("up")
    until(reachable)
    assert knocking.ask(knocking.connect(), "server.about", {})["pid"] != first
    run("down")


def test_answers_are_typed_at_a_terminal(run, server, started, agent, terminal, until):
    person, program = terminal
    run("phase", "building")
    opened = started("inbox", stdin=program)
    until(reachable)
    calling, question = agent.asks("make x")
    os.write(person, b"what\n")
    until(lambda: opened.said().count("a ID = yes") == 2)
    os.write(person, f"a {question}\n".encode())
    assert agent.told(calling)[0] == "allow"
    calling, question = agent.asks("make y", "toolu_2")
    os.write(person, f"d {question} use ninja\na {question}\n".encode())
    assert "use ninja" in agent.told(calling)[1]
    until(lambda: "settled already" in opened.said())
    os.write(person, b"q\n")
    assert opened.wait(10) == 0
    until(lambda: not reachable())


def test_what_an_agent_wrote_drives_no_terminal():
    about = {
        "id": "x",
        "session": "s\x1b[2J",
        "project": "/p\x1b[2J",
        "expires_at": "",
        "tool": "B\x1b[2J",
        "input": {"command": "\x1b[2J\n\x07"},
        "reasons": ["\x1b[2J"],
        "agent": "a",
    }
    assert "\x1b[2J" not in shown(about)
    assert "\x07" not in shown(about)
