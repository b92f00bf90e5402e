"""What a gate asks of the authority, and what it cannot make it believe."""

import os
import subprocess
import sys

import msgspec
import pytest

from checkrein import peers
from checkrein.agents import Agents
from checkrein.asking import Remember
from checkrein.authority import Asked, library, perform
from checkrein.authority.library import Wish
from checkrein.call import Category, ToolCall
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer
from checkrein.store.agents import speaking
from checkrein.store.questions import get_question
from checkrein.store.trust import trust_of

CALL = ToolCall(
    tool="pick", server="garden", arguments={"n": 1}, door="library", agent="bot", user="ada", session="s"
)


def call(**changes):
    return msgspec.structs.replace(CALL, **changes)


def decided(pipeline, given=CALL, wish=None):
    return library.decide(pipeline, given, wish or Wish(), "building")


def approved(pipeline, given=CALL, **said):
    found = decided(pipeline, given)
    with pipeline.broker.awaiting(found.entry, given):
        pipeline.answer(found.entry, "approved", actor="ada", channel="host", **said)
    return found.entry


def take(pipeline, entry, given=CALL, **more):
    return library.take(pipeline, entry, given, "building", **more)


# -- deciding --------------------------------------------------------------------------------------------


def test_a_wish_speaks_where_nobody_else_does(pipeline):
    assert decided(pipeline).verdict.stage == "unmatched"
    let = decided(pipeline, wish=Wish(let="mine")).verdict
    assert (let.word, let.stage, let.reasons[0].text) == ("allow", "program", "mine")
    high = call(tool="delete_all")
    assert decided(pipeline, high, Wish(let="mine")).verdict.word == "ask"
    assert decided(pipeline, high, Wish(let="mine", upto=Category.high)).verdict.word == "allow"


def test_a_wish_never_outranks_the_floor_or_a_person(pipeline, user_settings):
    everything = Wish(let="mine", upto=Category.critical)
    assert decided(pipeline, call(tool="send_mail"), everything).verdict.stage == "floor"
    for action, word in (("ask", "ask"), ("deny", "deny")):
        user_settings(f'[[rules]]\naction = "{action}"\ntool = "pick"\n')
        found = decided(pipeline, wish=everything).verdict
        assert (found.word, found.stage) == (word, "rules")


def test_a_hold_asks_and_a_mild_one_leaves_a_persons_rule_alone(pipeline, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "pick"\n')
    assert decided(pipeline, wish=Wish(hold="why")).asked
    assert decided(pipeline, wish=Wish(hold="why", mild=True)).verdict.word == "allow"
    user_settings('[doors.library]\nunmatched = "earned"\n[trust]\ninitial_score = 0.5\n')
    read = call(tool="Read", server=None, arguments={"file_path": "a"})
    assert decided(pipeline, read).verdict.word == "allow"
    assert decided(pipeline, read, Wish(hold="why", mild=True)).asked


def test_a_remembered_yes_answers_a_hold_and_is_used_up(pipeline, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "pick"\n')
    held = Wish(hold="why")
    first = decided(pipeline, wish=held)
    with pipeline.broker.awaiting(first.entry, CALL):
        how = Remember(span="uses", uses=1)
        pipeline.answer(first.entry, "approved", actor="ada", channel="host", remember=how)
    assert decided(pipeline, wish=held).verdict.stage == "grant"
    assert decided(pipeline, wish=held).asked


def test_a_flood_of_questions_stops_no_call_that_runs_unasked(pipeline, user_settings):
    user_settings("[approval]\nmost_waiting = 1\n")
    assert decided(pipeline).asked
    assert decided(pipeline, call(arguments={"n": 2})).verdict.stage == "flood"
    assert decided(pipeline, call(arguments={"n": 2}), Wish(let="mine")).verdict.word == "allow"


# -- asking ----------------------------------------------------------------------------------------------


def test_a_question_is_told_to_the_exact_call_only(pipeline):
    entry = decided(pipeline).entry
    assert library.so_far(pipeline, entry, CALL) is None
    for other in (call(arguments={"n": 2}), call(session="t"), call(agent="other")):
        with pytest.raises(InputError, match="no question about this call"):
            library.so_far(pipeline, entry, other)
        with pytest.raises(InputError):
            library.withdraw(pipeline, entry, other, "")
    assert library.wait(pipeline, entry, CALL, 0.0) is None
    assert pipeline.broker.call(entry) == CALL


def test_nobody_in_time_is_a_no(pipeline, clock):
    entry = decided(pipeline).entry
    clock.now += 301
    assert library.wait(pipeline, entry, CALL, 5.0).state == "expired"


def test_questions_nobody_waits_for_run_out(pipeline, clock):
    left, awaited = decided(pipeline).entry, decided(pipeline, call(arguments={"n": 2}))
    clock.now += 301
    with pipeline.broker.awaiting(awaited.entry, CALL):
        library.expire(pipeline)
    assert get_question(pipeline.store, left).state == "expired"
    assert get_question(pipeline.store, awaited.entry).state == "asked"


def test_a_question_is_withdrawn_once(pipeline):
    entry = decided(pipeline).entry
    library.withdraw(pipeline, entry, CALL, "enough")
    library.withdraw(pipeline, entry, CALL, "enough")
    assert (get_question(pipeline.store, entry).state, library.so_far(pipeline, entry, CALL).message) == (
        "cancelled",
        "enough",
    )


# -- running ---------------------------------------------------------------------------------------------


def test_a_yes_is_taken_once_by_the_exact_call(pipeline):
    entry = approved(pipeline)
    for other in (call(arguments={"n": 2}), call(session="t")):
        assert take(pipeline, entry, other).refused.verdict.stage == "state"
    assert take(pipeline, entry).arguments == {"n": 1}
    assert take(pipeline, entry).refused.verdict.reasons[0].text.startswith("This yes was used before")


def test_what_nobody_said_yes_to_is_not_taken(pipeline):
    assert take(pipeline, decided(pipeline).entry).refused is not None
    assert take(pipeline, decided(pipeline, wish=Wish(let="x")).entry).refused is not None
    assert take(pipeline, "nothing").refused is not None


def test_edited_arguments_are_heard_or_proven(pipeline):
    edited = {"n": 5}
    assert take(pipeline, approved(pipeline, edited=edited)).arguments == edited
    entry = approved(pipeline, edited=edited)
    pipeline.broker._edits.clear()
    assert take(pipeline, entry).refused is not None
    assert take(pipeline, entry, edited=edited).refused is not None
    data = {"argument_hash": call(arguments=edited).argument_hash}
    pipeline.store.write(lambda tx: pipeline.ledger.append(tx, "edited", data, entry=entry))
    assert take(pipeline, entry, edited={"n": 6}).refused is not None
    assert take(pipeline, entry, edited=edited).arguments == edited


def test_the_policy_of_the_moment_has_the_last_word(pipeline, user_settings):
    entry = approved(pipeline)
    user_settings('[[rules]]\naction = "deny"\ntool = "pick"\n')
    assert take(pipeline, entry).refused.verdict.stage == "rules"
    assert library.entry_of(pipeline, entry).result == "cancelled"


def test_only_what_may_run_twice_is_taken_twice_and_only_while_its_fate_is_unknown(pipeline):
    entry = approved(pipeline)
    assert take(pipeline, entry).arguments
    assert take(pipeline, entry, again=True).arguments
    pipeline.finish(entry, "success")
    assert "success" in take(pipeline, entry, again=True).refused.verdict.reasons[0].text


def test_a_stop_goes_on_once_for_each_time(pipeline):
    entry = decided(pipeline, wish=Wish(let="x")).entry
    go_on = lambda step=1, given=CALL, **more: library.go_on(  # noqa: E731
        pipeline, entry, given, step, "building", **more
    )
    assert go_on().refused is not None
    library.pause(pipeline, entry, CALL, 1, {"why": "x"})
    for other in (call(arguments={"n": 2}), call(session="t"), call(tool="drop")):
        assert go_on(given=other).refused is not None
    assert go_on(step=2).refused is not None
    assert go_on().arguments == {"n": 1}
    assert go_on().refused is not None
    assert go_on(again=True).arguments == {"n": 1}
    library.pause(pipeline, entry, CALL, 2, None)
    assert go_on(again=True).refused is not None
    assert go_on(step=2).arguments
    pipeline.finish(entry, "success")
    assert go_on(step=2, again=True).refused is not None


# -- behind the socket -------------------------------------------------------------------------------------


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
