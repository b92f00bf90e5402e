"""What a gate asks of the server, and what it cannot make it believe."""

import os
import subprocess
import sys

import msgspec
import pytest

from authority.program import CALL, call
from checkrein import peers
from checkrein.agents import Agents
from checkrein.authority import Asked, perform
from checkrein.authority.wish import Wish
from checkrein.call import Effect
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer
from checkrein.store.agents import Session, put_session, speaking
from checkrein.store.trust import trust_of
from patience import PATIENCE


@pytest.fixture
def program(pipeline):
    """Another process that asks; it lives until the test is over."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    asked = Asked(pipeline, agents, Peer(process.pid, os.getuid()))
    yield lambda name, **params: perform(asked, f"library.{name}", msgspec.to_builtins(params))
    process.communicate(b"\n")


@pytest.mark.invariant("a program names neither its user, nor its door, nor what its session did before")
def test_who_asks_is_what_the_kernel_says(program, pipeline):
    lie = call(user="root of all", door="hooks", history=({"kind": "x"},))
    program("decide", call=lie)
    (entry,) = entries(pipeline.store, Filter())
    assert entry.door == "library" and entry.user != "root of all"


@pytest.mark.invariant("a program names neither its user, nor its door, nor what its session did before")
def test_a_program_cannot_hide_what_its_session_did_before(program):
    """A secret that was read and data that leave are critical together, whatever past the program names."""
    harmless = (Effect("read", "project", "/p/a.txt"),)
    reads = call(tool="Read", server=None, arguments={"file_path": "/p/.env"}, project="/p")
    assert program("decide", call=reads).verdict.word == "ask"
    sends = call(tool="Bash", server=None, arguments={"command": "git push"}, project="/p", history=harmless)
    assert program("decide", call=sends).verdict.stage == "floor"


@pytest.mark.invariant("the program whose calls are judged, and whatever it runs, is an agent and no person")
def test_a_program_whose_calls_are_judged_is_an_agent(program, pipeline):
    program("decide", call=CALL)
    program("decide", call=CALL)
    (session,) = speaking(pipeline.store)
    assert (session.agent, session.id) == ("library:bot", "s")
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    assert "comes from inside" in agents.not_a_person(Peer(session.process, os.getuid()))


@pytest.mark.invariant(
    "a program that names a session which another speaks for makes no living agent a person"
)
def test_a_second_program_with_the_same_session_makes_the_first_no_person(program, pipeline):
    program("decide", call=CALL)
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    myself = Asked(pipeline, agents, Peer(os.getpid(), os.getuid()))
    perform(myself, "library.decide", {"call": msgspec.to_builtins(CALL)})
    found = {each.process: each.id for each in speaking(pipeline.store)}
    assert len(found) == 2 and found[os.getpid()] == f"s (process {os.getpid()})"


def test_a_program_that_has_gone_is_not_heard(pipeline):
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    gone = Asked(pipeline, agents, Peer(2**22 - 1, os.getuid()))
    assert peers.process(2**22 - 1) is None
    with pytest.raises(InputError, match="has gone already"):
        perform(gone, "library.decide", {"call": msgspec.to_builtins(CALL)})


@pytest.mark.invariant("a program reports on calls of its own door only")
def test_a_program_reports_on_its_own_door_only(program, pipeline):
    hooked = pipeline.decide(call(door="hooks", server=None, tool="Read", arguments={"file_path": "a"}))
    with pytest.raises(NotFoundError):
        program("finish", entry=hooked.entry, outcome="success")
    with pytest.raises(NotFoundError):
        program("finish", entry="nothing", outcome="success")
    with pytest.raises(InputError, match="not under way"):
        program("pause", call=CALL, entry=hooked.entry, step=1)


@pytest.mark.invariant("what an agent runs earns no trust by reporting")
def test_a_program_that_an_agent_runs_earns_no_trust_by_reporting(program, pipeline):
    own = peers.process(os.getpid())
    agent = Session(
        agent="claude-code", id="c", project="", started_at=1.0, process=own.pid, process_started=own.started
    )
    pipeline.store.write(lambda tx: put_session(tx, agent))
    ran = program("decide", call=CALL, wish=Wish(let="x"))
    program("finish", entry=ran.entry, outcome="success")
    (entry,) = entries(pipeline.store, Filter())
    assert entry.result == "unknown" and "success reported, but" in entry.evidence
    assert trust_of(pipeline.store, "") == {}


@pytest.mark.invariant("nothing is learned from a call that nobody let run")
def test_nothing_is_learned_from_a_call_that_nobody_let_run(program, pipeline):
    asked = program("decide", call=CALL)
    for outcome in ("success", "failure"):
        with pytest.raises(InputError, match="nobody said yes"):
            program("finish", entry=asked.entry, outcome=outcome)
    (entry,) = entries(pipeline.store, Filter())
    assert entry.completed_at is None and trust_of(pipeline.store, "") == {}


def test_every_verb(program, pipeline):
    mine = program("decide", call=CALL, wish=Wish(let="x"))
    program("pause", call=CALL, entry=mine.entry, step=1, payload={"token": "x"})
    assert program("go_on", call=CALL, entry=mine.entry, step=1).arguments == {"n": 1}
    elsewhere = {"project": "elsewhere", "session": "", "domains": ["file_write"], "began": 0.0}
    program("finish", entry=mine.entry, outcome="success", output=3, about=elsewhere)
    assert trust_of(pipeline.store, "elsewhere") == {}
    asked = program("decide", call=CALL)
    assert program("wait", call=CALL, entry=asked.entry, seconds=0) is None
    program("withdraw", call=CALL, entry=asked.entry, why="enough")
    assert program("wait", call=CALL, entry=asked.entry, seconds=PATIENCE).state == "cancelled"
    assert program("take", call=CALL, entry=asked.entry).refused is not None
