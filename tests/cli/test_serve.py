import json

import pytest

from checkrein import knocking
from checkrein.runtime import log_file
from patience import PATIENCE, until


@pytest.fixture
def afterwards(run):
    yield
    run("down")


def test_it_is_started_once_stopped_and_started_again(run, afterwards):
    assert run("down") == "No server is running.\n"
    first = json.loads(run.apart("up", "--json"))
    assert first["started"] is True
    again = run.json("up", "--json")
    assert (again["started"], again["pid"]) == (False, first["pid"])
    assert "was running already" in run("up")
    assert run.apart("restart").startswith("Stopped.\nCheckrein ")
    assert run.json("up", "--json")["pid"] != first["pid"]
    assert "stopped" in run("logs")


def test_serving_in_the_foreground_says_where(server):
    until(lambda: "serving on" in server.said())


def test_a_second_server_leaves_the_first_alone(run, server, started):
    second = started("serve", "--on-demand")
    assert second.wait(PATIENCE) == 0
    third = started("serve")
    assert third.wait(PATIENCE) == 5
    assert knocking.ask(knocking.connect(), "server.about", {})["pid"] == server.pid


def test_an_agent_cannot_stop_it(run, server, agent):
    assert agent.run("down").returncode == 7
    assert knocking.is_running()


def test_the_log_is_there_once_it_has_run(run):
    assert "No server has run" in run("logs", code=4)
    log_file().parent.mkdir(parents=True)
    log_file().write_text("one\ntwo \x1b[2J\n")
    assert run("logs", "-n", "1") == "two \\x1b[2J\n"
