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
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer
from checkrein.store.agents import speaking
from checkrein.store.trust import trust_of


@pytest.fixture
def program(pipeline):
    """Another process that asks; it lives until the test is over."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    asked = Asked(pipeline, agents, Peer(process.pid, os.getuid()))
    yield lambda name, **params: perform(asked, f"library.{name}", msgspec.to_builtins(params))
    process.communicate(b"\n")


def test_who_asks_is_what_the_kernel_says(program, pipeline):
    lie = call(user="root of all", door="hooks", history=({"kind": "x"},))
    program("decide", call=lie)
    (entry,) = entries(pipeline.store, Filter())
    assert entry.door == "library" and entry.user != "root of all"


def test_a_program_whose_calls_are_judged_is_an_agent(program, pipeline):
    program("decide", call=CALL)
    program("decide", call=CALL)
    (session,) = speaking(pipeline.store)
    assert (session.agent, session.id) == ("library:bot", "s")
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    assert "comes from inside" in agents.not_a_person(Peer(session.process, os.getuid()))


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


def test_a_program_reports_on_its_own_door_only(program, pipeline):
    hooked = pipeline.decide(call(door="hooks", server=None, tool="Read", arguments={"file_path": "a"}))
    with pytest.raises(NotFoundError):
        program("finish", entry=hooked.entry, outcome="success")
    with pytest.raises(NotFoundError):
        program("finish", entry="nothing", outcome="success")
    with pytest.raises(InputError, match="not under way"):
        program("pause", call=CALL, entry=hooked.entry, step=1)


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
    assert program("wait", call=CALL, entry=asked.entry, seconds=9).state == "cancelled"
    assert program("take", call=CALL, entry=asked.entry).refused is not None
