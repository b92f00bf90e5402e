import os
import signal

from checkrein import knocking
from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.cli import inbox as inbox_module
from checkrein.cli.inbox import Attendance, Board, obey, shown
from checkrein.store.questions import waiting
from patience import PATIENCE, until


def asked(pipeline):
    return Asked(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), myself())


def reachable():
    connection = knocking.connect()
    return connection is not None and knocking.ask(connection, "server.about", {})["reachable"]


def test_nothing_waits_where_nothing_ran(run, home):
    assert run.json("inbox", "--json") == []
    assert not (home / "state").exists()


def test_a_person_counts_as_reachable_while_it_is_open(run, server, started, agent):
    run("phase", "building")
    word, reason = agent.judged("make x")
    assert word == "deny"
    assert "nobody can be reached" in reason
    assert not reachable()
    opened = started("inbox")
    until(reachable)
    opened.send_signal(signal.SIGINT)
    assert opened.wait(PATIENCE) == 0
    until(lambda: not reachable())


def test_a_question_is_shown_whole_and_what_became_of_it(run, server, started, agent, project):
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
    calling.communicate(timeout=PATIENCE)
    until(lambda: ": denied by" in opened.said())
    assert "no need" in opened.said()
    assert run.json("inbox", "--json") == []


def test_it_starts_the_server_and_finds_the_next_one(run, started, agent):
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


def test_answers_are_typed_at_a_terminal(run, server, started, agent, terminal):
    person, program = terminal
    run("phase", "building")
    opened = started("inbox", stdin=program)
    until(reachable)
    calling, question = agent.asks("make x")
    os.write(person, b"what\n")
    until(lambda: opened.said().count("a = yes") == 2)
    os.write(person, f"a {question}\n".encode())
    assert agent.told(calling)[0] == "allow"
    calling, question = agent.asks("make y", "toolu_2")
    os.write(person, f"d {question} use ninja\na {question}\n".encode())
    assert "use ninja" in agent.told(calling)[1]
    until(lambda: "settled already" in opened.said())
    os.write(person, b"q\n")
    assert opened.wait(PATIENCE) == 0
    until(lambda: not reachable())


def test_attendance_ends_with_the_server_and_comes_back_with_the_next(server, started, capsys):
    here = Attendance()
    here.begin()
    assert here.is_counted
    assert reachable()
    here.renew()
    assert here.is_counted
    server.terminate()
    server.wait(PATIENCE)
    here.renew()
    assert not here.is_counted
    started("serve")
    until(lambda: here.renew() or here.is_counted)
    assert reachable()
    here.end()
    until(lambda: not reachable())
    assert "has stopped" in capsys.readouterr().out


def test_the_board_shows_each_question_once_and_its_end_once(pipeline, project, clock, monkeypatch, capsys):
    monkeypatch.setattr(inbox_module.time, "time", clock)

    def ask(command):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project}
        return pipeline.decide(tool_call(raw), asking=True).entry

    board = Board(pipeline.store)
    first, second = ask("make x"), ask("make y")
    board.refresh()
    board.refresh()
    assert capsys.readouterr().out.count('"command"') == 2
    pipeline.answer(first, "cancelled", actor="", channel="agent", message="gone")
    board.refresh()
    assert capsys.readouterr().out == f"{first} Bash: cancelled (agent): gone\n"
    clock.pass_days(1)
    board.refresh()
    board.refresh()
    assert capsys.readouterr().out == f"{second} Bash: nobody answered in time\n"


def test_what_is_typed_is_done_or_explained(run, capsys):
    assert obey("q") is False
    for line in ("", "a", "x 1"):
        assert obey(line) is True
    assert capsys.readouterr().out.count("a = yes") == 2
    assert obey("a nobody") is True
    assert "No question 'nobody' waits" in capsys.readouterr().out


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


def test_a_lone_key_answers_the_question_that_stands_first(run, server, started, agent, terminal):
    person, program = terminal
    run("phase", "building")
    opened = started("inbox", stdin=program)
    until(reachable)
    calling, first = agent.asks("make x")
    until(lambda: first in opened.said())
    os.write(person, b"a")
    assert agent.told(calling)[0] == "allow"
    calling, second = agent.asks("make y", "toolu_2")
    until(lambda: second in opened.said())
    os.write(person, b"d")
    until(lambda: "No, because" in opened.said())
    os.write(person, b"use ninja\n")
    assert "use ninja" in agent.told(calling)[1]
    calling, third = agent.asks("git commit -m one", "toolu_3")
    until(lambda: third in opened.said())
    os.write(person, b"s")
    assert agent.told(calling)[0] == "allow"
    assert agent.judged("git commit -m two", "toolu_4")[0] == "allow"
    assert "git commit" in run("grants", "list")
    os.write(person, b"q")
    assert opened.wait(PATIENCE) == 0


def test_a_burst_is_one_question_and_a_yes_stops_short_of_high_risk(pipeline, project, monkeypatch, capsys):
    switch(pipeline, "building", "ada", "test", project=project)
    lines = [f"make part{number}" for number in range(4)] + ["rm -rf build"]
    for line in lines:
        raw = {"tool": "Bash", "arguments": {"command": line}, "project": project, "session": "s-1"}
        pipeline.decide(tool_call(raw), asking=True)
    monkeypatch.setattr(inbox_module.time, "time", pipeline.clock)
    monkeypatch.setattr(inbox_module, "ask", lambda verb, **more: perform(asked(pipeline), verb, more))
    board = Board(pipeline.store)
    board.refresh()
    out = capsys.readouterr().out
    assert "5 questions at once" in out
    assert out.count("make part") == 4
    assert obey("A", board)
    out = capsys.readouterr().out
    assert out.count("approved") == 4
    assert "1 of high risk still wait" in out
    assert obey("D not today", board)
    assert "denied" in capsys.readouterr().out
    assert waiting(pipeline.store) == []


def test_secrets_are_folded_behind_one_key(pipeline, project, monkeypatch, capsys):
    switch(pipeline, "building", "ada", "test", project=project)
    raw = {"tool": "Bash", "arguments": {"command": "docker login -u me -p hunter2secret r.example.com"}}
    entry = pipeline.decide(tool_call({**raw, "project": project, "session": "s1"}), asking=True).entry
    monkeypatch.setattr(inbox_module.time, "time", pipeline.clock)
    monkeypatch.setattr(inbox_module, "ask", lambda verb, **more: perform(asked(pipeline), verb, more))
    board = Board(pipeline.store)
    board.refresh()
    out = capsys.readouterr().out
    assert "docker login -u me -p [masked] r.example.com" in out and "hunter2secret" not in out
    assert "v shows the call as it will run" in out
    obey("v", board)
    assert '"command": "docker login -u me -p hunter2secret r.example.com"' in capsys.readouterr().out
    pipeline.answer(entry, "denied", actor="ada", channel="terminal")
    obey(f"v {entry}")
    assert "cannot be shown any more" in capsys.readouterr().out
