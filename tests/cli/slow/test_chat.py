"""One question and its answer, from a script."""

import json

import pytest

from checkrein.cli import checkrein

pytestmark = pytest.mark.usefixtures("server")


def test_an_answer_is_printed_and_the_exit_code_says_whether_there_was_one(run):
    assert run("chat", "--once", "/say Hello.") == "Hello.\n"
    assert "checkrein: " in run("chat", "--once", "/fail malformed", code=1)


def test_what_is_piped_in_is_said(run):
    assert run("chat", input="/say piped") == "piped\n"
    assert run("chat", "--once", "-", input="/say dashed") == "dashed\n"


def test_nothing_is_no_question(run):
    assert "nothing to say" in run("chat", input=" \n", code=2)


def test_the_answer_alone_is_on_standard_output(run):
    said = "/think hm\n/call nobody__there {}\n/say so\n/then\n/say end"
    done = run.runner.invoke(checkrein, ["chat", "--once", said])
    assert done.stdout == "so\nend\n"
    assert "-> nobody__there {}" in done.stderr


def test_as_json(run):
    came = run.json("chat", "--once", "/say one", "--json")
    assert (came["state"], came["text"], came["calls"]) == ("done", "one", [])
    assert came["usage"]["output_tokens"] > 0
    shown = run.json("chat", "show", came["session"], "--json")
    assert shown["messages"][-1]["run"] == came["run"]


def test_a_failure_as_json(run):
    came = run.json("chat", "--once", "/fail malformed", "--json", code=1)
    assert came["state"] == "failed"
    assert came["error"]


def test_going_on_with_a_session(run):
    first = run.json("chat", "--once", "The word is plover.", "--json")
    again = run("chat", "--session", first["session"][:14], "--once", "/recall plover")
    assert again == "I know plover.\n"
    assert "no session" in run("chat", "--session", "nobody", "--once", "x", code=4)


def test_a_model_that_is_not_there_is_said(run):
    assert "nobody" in run("chat", "-m", "nobody/nothing", "--once", "x", code=4)


def test_help_names_what_there_is(run):
    text = run("chat", "--help")
    for word in (
        "list",
        "show",
        "search",
        "export",
        "import",
        "delete",
        "models",
        "providers",
        "token",
        "--once",
    ):
        assert word in text


def test_an_agent_does_not_talk(run, agent):
    done = agent.run("chat", "--once", "/say hi")
    assert done.returncode == 7
    assert "Only a person" in done.stderr
    assert json.loads(run("chat", "list", "--json")) == []
