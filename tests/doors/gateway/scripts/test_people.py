"""Scripts of people and for people's eyes, through the gateway's own thread."""

import threading

import pytest

from checkrein.agents import Agents
from checkrein.doors.gateway import gateway as gateway_module
from checkrein.doors.gateway.gateway import Gateway
from checkrein.errors import InputError, NotFoundError
from patience import until


@pytest.fixture
def gateway(bench, pipeline, clock, monkeypatch):
    monkeypatch.setattr(gateway_module, "_LOOK_SECONDS", 0.05)
    bench.house.server("srv", trusted=True)
    made = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), bench.house.said.append)
    made.open()
    made.accept("srv", [row for row in made.review("srv") if row["state"] == "new"], "ada")
    yield made
    made.close()
    assert not [each for each in threading.enumerate() if each.name == "checkrein-gateway"]


ECHO = "console.log('here'); return (await codemode.srv__echo({token: 'hush', x: 1})).content[0].text"


def test_a_person_runs_a_script_and_sees_what_it_did(gateway):
    done = gateway.eval_run(ECHO, wait=30)
    assert done["status"] == "done" and done["output"].strip() == "here"
    (row,) = gateway.runs()
    assert (row["state"], row["agent"], row["calls"]) == ("done", "person", 1)
    shown = gateway.run(row["id"])
    assert shown["fault"] == "" and "srv__echo" in shown["source"]
    (step,) = shown["timeline"]
    assert (step["tool"], step["state"], step["verdict"]) == ("srv__echo", "done", "allow")
    # What is shown is masked.
    assert step["arguments"]["x"] == 1 and "hush" not in str(step["arguments"])
    assert gateway.resume(row["id"])["status"] == "done"


def test_a_person_answers_elsewhere_and_comes_back(gateway, pipeline):
    said = gateway.eval_run(ECHO, profile="supervised", wait=30)
    assert said["status"] == "paused" and said["waiting"][0]["tool"] == "srv__echo"
    assert gateway.run(said["run_id"])["timeline"][0]["state"] == "asked"
    assert gateway.runs()[0]["waiting"]
    pipeline.answer(said["waiting"][0]["question"], "approved", actor="ada", channel="console")
    until(lambda: gateway.resume(said["run_id"], 1)["status"] == "done")


def test_a_person_ends_a_script(gateway):
    said = gateway.eval_run(ECHO, profile="supervised", wait=30)
    assert gateway.cancel(said["run_id"], "ada")["state"] == "cancelled"
    assert "ada ended it" in gateway.resume(said["run_id"])["error"]["message"]
    with pytest.raises(InputError):
        gateway.cancel(said["run_id"], "ada")
    running = gateway.eval_run("await codemode.srv__slow({})", wait=0)
    assert running["status"] == "running"
    assert gateway.cancel(running["run_id"])["state"] == "cancelled"


def test_what_is_not_there_is_said(gateway):
    for what in (gateway.run, gateway.resume, gateway.cancel):
        with pytest.raises(NotFoundError):
            what("run-nobody")
    with pytest.raises(NotFoundError):
        gateway.eval_run("1", profile="nobody")
    with pytest.raises(InputError):
        gateway.eval_run("1", language="cobol")


def test_a_run_that_cannot_be_opened_is_listed_with_its_fault(gateway, pipeline):
    run_id = gateway.eval_run("return 1", wait=30)["run_id"]
    pipeline.store.write(lambda tx: tx.execute("UPDATE run SET source = 'x' WHERE id = ?", (run_id,)))
    assert "not what was written" in gateway.run(run_id)["fault"]
    assert gateway.runs()[0]["id"] == run_id


def test_a_gateway_that_starts_again_goes_on_with_what_waits(gateway, bench, pipeline, clock):
    said = gateway.eval_run(ECHO, profile="supervised", wait=30)
    gateway.close()
    pipeline.answer(said["waiting"][0]["question"], "approved", actor="ada", channel="console")
    again = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), bench.house.said.append)
    again.open()
    try:
        until(lambda: again.resume(said["run_id"], 1)["status"] == "done")
        assert len(bench.house.ran("echo")) == 1
    finally:
        again.close()
