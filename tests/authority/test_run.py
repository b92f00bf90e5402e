"""Verbs about scripts: who may use them, and what reaches the gateway."""

import msgspec
import pytest

from checkrein.authority import perform
from checkrein.errors import InputError, PersonOnlyError
from checkrein.store.runs import RunRow, add_run


class Recorder:
    """A gateway that keeps what it is asked."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda *given: self.asked.append((name, *given)) or {"did": name}


@pytest.fixture
def gateway():
    return Recorder()


@pytest.fixture
def ask(asked, gateway):
    with_gateway = msgspec.structs.replace(asked, gateway=lambda: gateway)
    return lambda name, **params: perform(with_gateway, name, params)


def test_each_verb_reaches_the_gateway(ask, gateway, asked):
    ask("run.list")
    ask("run.list", limit=3)
    ask("run.show", id="r1")
    ask("run.start", source="return 1")
    ask("run.start", source="x", language="python", profile="safe", project="/p", wait=5)
    ask("run.resume", id="r1", wait=1.5)
    ask("run.cancel", id="r1")
    assert gateway.asked == [
        ("runs", 50),
        ("runs", 3),
        ("run", "r1"),
        ("eval_run", "return 1", "javascript", "", "", 0.0),
        ("eval_run", "x", "python", "safe", "/p", 5.0),
        ("resume", "r1", 1.5),
        ("cancel", "r1", asked.actor),
    ]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("run.list", {"limit": 0}),
        ("run.list", {"limit": "many"}),
        ("run.show", {}),
        ("run.start", {}),
        ("run.start", {"source": 7}),
        ("run.start", {"source": "x", "wait": -1}),
        ("run.resume", {"id": "r", "wait": 9999}),
        ("run.resume", {"id": "r", "wait": "long"}),
        ("run.cancel", {}),
    ],
)
def test_what_makes_no_sense_is_refused(ask, gateway, name, params):
    with pytest.raises(InputError):
        ask(name, **params)
    assert gateway.asked == []


def test_without_a_server_scripts_are_listed_and_nothing_else(do, pipeline):
    assert do("run.list") == []
    times = {"made_at": 1.0, "changed_at": 1.0, "expires_at": 9.0}
    given = dict.fromkeys(("owner", "session", "agent", "project", "profile", "holder"), "")
    row = RunRow(id="run-1", language="python", state="waiting", **given, **times)
    pipeline.store.write(lambda tx: add_run(tx, row))
    (found,) = do("run.list")
    assert (found["id"], found["state"], found["made_at"]) == ("run-1", "waiting", "1970-01-01T00:00:01.000Z")
    with pytest.raises(InputError, match="server"):
        do("run.show", id="run-1")


def test_an_agent_sees_that_runs_are_there_and_nothing_else(asked, gateway, monkeypatch):
    monkeypatch.setattr(type(asked.agents), "not_a_person", lambda *_given: "an agent asks")
    agent = msgspec.structs.replace(asked, gateway=lambda: gateway)
    perform(agent, "run.list", {})
    # INVARIANT: what a script says, and what it was answered, is for people.
    for name in ("run.show", "run.start", "run.resume", "run.cancel"):
        with pytest.raises(PersonOnlyError):
            perform(agent, name, {"id": "r", "source": "x"})
    assert [each[0] for each in gateway.asked] == ["runs"]
