"""The table of states and moves, and random interleavings of everything that moves a call."""

import os
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest
from ground import SOAK, Clock
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from checkrein.call import tool_call
from checkrein.core import approvals
from checkrein.core.lifecycle import FINAL, MOVES, RECORD_OF, Event, State, drawn, may, state_of
from checkrein.core.redemption import Approval, CurrentTool, Rejected, get_entry, redeem
from checkrein.errors import CheckreinError
from checkrein.pipeline import Pipeline
from checkrein.store.phases import set_phase
from checkrein.store.rules import add_rule, delete_rule
from checkrein.store.sqlite import SqliteStore

# The whole campaign runs with `make soak`.
RUNS = 10_000 if SOAK else 200
STEPS = 25
ENDS = {State.started, *FINAL}


def test_every_state_is_reached_and_none_is_a_dead_end():
    reached = {State.new} | {move.target for move in MOVES}
    assert reached == set(State)
    left = {move.source for move in MOVES}
    assert set(State) - left <= FINAL
    assert not {State.new, State.asked, State.approved, State.claimed, State.started} & FINAL


def test_every_event_after_the_decision_leaves_a_record_of_one_kind():
    assert set(RECORD_OF) == set(Event) - {Event.decide}


def test_the_docs_draw_the_table_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
    assert drawn() in page


@pytest.mark.invariant("a call makes no move that is not in the table")
@pytest.mark.invariant(
    "an approval nobody claimed has no outcome, but in an agent that runs its tools itself"
)
def test_no_move_is_made_that_is_not_in_the_table(pipeline, project):
    """Every state, reached for real, meets every event: what the table does not have is not recorded."""
    pipeline.store.write(lambda tx: set_phase(tx, "building", 1.0))
    pipeline.store.write(lambda tx: add_rule(tx, "r1", {"action": "allow", "tool": "Allowed"}, 1.0))
    pipeline.store.write(lambda tx: add_rule(tx, "r2", {"action": "deny", "tool": "Denied"}, 1.0))
    reach = {
        State.started: lambda: pipeline.decide(_call(project, "x", tool="Allowed")).entry,
        State.refused: lambda: pipeline.decide(_call(project, "x", tool="Denied")).entry,
        State.asked: lambda: _asked(pipeline, project),
        State.cancelled: lambda: pipeline.decide(_call(project, "make x")).entry,
        State.approved: lambda: _answered(pipeline, project, "approved"),
        State.denied: lambda: _answered(pipeline, project, "denied"),
        State.answered: lambda: _answered(pipeline, project, "answered"),
        State.expired: lambda: _answered(pipeline, project, "expired"),
        State.claimed: lambda: _claimed(pipeline, project),
        State.finished: lambda: _finished(pipeline, project, "success"),
        State.unknown: lambda: _finished(pipeline, project, "unknown"),
    }
    assert set(reach) == set(State) - {State.new}
    events = {
        Event.answer: lambda entry: _says(pipeline, entry, "denied"),
        Event.claim: pipeline.claim,
        Event.drop: lambda entry: pipeline.drop(entry, evidence="test", reason="a test"),
        Event.repeat: pipeline.repeat,
        Event.finish: lambda entry: pipeline.finish(entry, "success"),
    }
    for state, made in reach.items():
        for event, does in events.items():
            entry = made()
            before = get_entry(pipeline.store, entry)
            assert state_of(before) is state
            does(entry)
            after = get_entry(pipeline.store, entry)
            expected = {move.target for move in MOVES if (move.event, move.source) == (event, state)}
            if (event, state) == (Event.finish, State.approved):
                # Only an agent that runs its tools itself may do this, and this is none.
                assert after == before
            elif may(before, event):
                assert state_of(after) in expected, (event, state)
            else:
                assert after == before and not expected, (event, state)


def _call(project, command, **more):
    base = {"tool": "Bash", "arguments": {"command": command}, "project": project, "cwd": project}
    return tool_call({**base, "session": "s1", "door": "library", **more})


def _asked(pipeline, project):
    _asked.number += 1
    decided = pipeline.decide(
        _call(project, f"make x{_asked.number}", session=f"s{_asked.number}"), asking=True
    )
    assert decided.asked, decided.verdict
    return decided.entry


_asked.number = 0


def _says(pipeline, entry, answer):
    try:
        return pipeline.answer(entry, answer, actor="ada", channel="terminal", message="said")
    except CheckreinError:
        return ""


def _answered(pipeline, project, answer):
    entry = _asked(pipeline, project)
    assert _says(pipeline, entry, answer) == answer
    return entry


def _claimed(pipeline, project):
    entry = _answered(pipeline, project, "approved")
    assert pipeline.claim(entry)
    return entry


def _finished(pipeline, project, outcome):
    entry = _claimed(pipeline, project)
    pipeline.finish(entry, outcome)
    return entry


class Asked(msgspec.Struct):
    """What the test knows of one call: what was said of it and how often it ran."""

    entry: str
    call: object
    repeatable: bool
    said: str = ""
    edited: dict | None = None
    ran: list = []
    closed: bool = False


class Lifecycle(RuleBasedStateMachine):
    """Callers, people, policy, clocks and restarts, in any order, over the real core and a real store."""

    calls = Bundle("calls")
    rules = Bundle("rules")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        self.home = {name: os.environ.get(name) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
        os.environ.update({name: str(self.folder) for name in self.home})
        self.clock, self.known, self.number, self.denies = Clock(), [], 0, set()
        self.project = str(self.folder / "project")
        self.pipeline = self._opened()
        self.pipeline.store.write(lambda tx: set_phase(tx, "building", 1.0))

    def _opened(self):
        return Pipeline(SqliteStore.open(self.folder), self.folder, clock=self.clock)

    def teardown(self):
        # INVARIANT under test: no call stays open for ever.
        self.clock.pass_days(30)
        approvals.sweep(self.pipeline)
        for each in self.known:
            assert state_of(self._entry(each)) in ENDS, each
        self.pipeline.close()
        shutil.rmtree(self.folder)
        for name, value in self.home.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)

    def _entry(self, each):
        return get_entry(self.pipeline.store, each.entry)

    # -- callers ----------------------------------------------------------------------------------------

    @rule(target=calls, repeatable=st.booleans())
    def ask_and_approve(self, repeatable):
        """What most histories begin with."""
        made = self.ask(False, True, repeatable)
        self.answer(made, "approved", None)
        return made

    @rule(
        target=calls,
        again=st.booleans(),
        asking=st.sampled_from([True, True, False]),
        repeatable=st.booleans(),
    )
    def ask(self, again, asking, repeatable):
        self.number += not again
        call = _call(self.project, f"make x{self.number}", definition="as accepted", session="s1")
        decided = self.pipeline.decide(call, asking=asking)
        made = Asked(decided.entry, call, repeatable, ran=[])
        self.known.append(made)
        if decided.verdict.word == "allow":
            made.said, made.ran = "policy", [call.arguments]
        elif not decided.asked:
            made.said = "no"
        return made

    @rule(each=calls)
    def come_back(self, each):
        self._come_back(each, "as accepted", "")

    @rule(each=calls)
    def come_back_often(self, each):
        for _ in range(3):
            self._come_back(each, "as accepted", "")

    @rule(each=calls, definition=st.sampled_from(["another", "as accepted"]))
    def come_back_to_a_changed_tool(self, each, definition):
        self._come_back(each, definition, "" if definition == "another" else "It does not fit.")

    def _come_back(self, each, definition, fits):
        tool = CurrentTool(definition, faults=lambda _arguments: fits)
        approval = Approval(each.entry, each.call, tool=tool, repeatable=each.repeatable)
        before = len(each.ran)
        found = redeem(self.pipeline, approval)
        if isinstance(found, Rejected):
            assert found.decided.verdict.word == "deny" and found.reason
            return
        # INVARIANT under test: never a run without a yes, never after a no, never one that policy denies.
        assert each.said == "yes" and not self.denies, each
        assert (definition, fits) == ("as accepted", "")
        assert found.arguments == (each.edited or each.call.arguments)
        # INVARIANT under test: never two runs, but of a call that may be repeated and has no known outcome.
        assert before == 0 or each.repeatable, each
        each.ran.append(found.arguments)

    @rule(each=calls)
    def come_back_as_another_call(self, each):
        other = msgspec.structs.replace(each.call, arguments={"command": "make other"})
        assert isinstance(redeem(self.pipeline, Approval(each.entry, other)), Rejected)

    @rule(each=calls, outcome=st.sampled_from(["success", "failure", "unknown", "cancelled"]))
    def report(self, each, outcome):
        before = self._entry(each)
        # A caller reports on what it was let run.
        if state_of(before) in (State.claimed, State.started):
            self.pipeline.finish(each.entry, outcome)
            assert state_of(self._entry(each)) in (State.finished, State.unknown)

    @rule(each=calls)
    def give_up(self, each):
        before = state_of(self._entry(each))
        approvals.abandon(self.pipeline, each.entry, "client", "the client stopped waiting")
        after = self._entry(each)
        if before is State.asked:
            each.said = "no"
            assert state_of(after) is State.cancelled
        elif before is State.approved:
            assert (state_of(after), after.result, each.ran) == (State.finished, "cancelled", [])
        else:
            assert state_of(after) is before

    # -- people -----------------------------------------------------------------------------------------

    @rule(
        each=calls,
        answer=st.sampled_from(["approved", "approved", "approved", "denied", "answered", "expired"]),
        edited=st.sampled_from([None, None, {"command": "make y"}]),
    )
    def answer(self, each, answer, edited):
        try:
            came = self.pipeline.answer(
                each.entry,
                answer,
                actor="ada",
                channel="terminal",
                message="a word",
                edited=edited if answer == "approved" else None,
            )
        except CheckreinError:
            return
        # INVARIANT under test: the first answer stands.
        assert each.said == "", each
        each.said = "yes" if came == "approved" else "no"
        each.edited = edited if came == "approved" else None
        self._settle_twins(each, came, each.edited)

    def _settle_twins(self, said, came, edited):
        """A person's word settles every open question about exactly the same call, an edit only its own."""
        for each in self.known:
            found = self._entry(each)
            if each is not said and each.said == "" and found.answer is not None:
                assert edited is None and each.call.binding == said.call.binding
                each.said = "yes" if came == "approved" else "no"

    # -- what changes meanwhile -------------------------------------------------------------------------

    @rule(target=rules, tool=st.sampled_from(["Bash"]))
    def forbid(self, tool):
        self.number += 1
        name = f"r{self.number}"
        body = {"action": "deny", "tool": tool}
        self.pipeline.note("rule_changed", {}, lambda tx: add_rule(tx, name, body, 1.0))
        self.denies.add(name)
        return name

    @rule(name=consumes(rules))
    def forbid_no_more(self, name):
        self.pipeline.note("rule_changed", {}, lambda tx: delete_rule(tx, name))
        self.denies.remove(name)

    @rule(days=st.sampled_from([0.01, 0.5, 8]))
    def time_passes(self, days):
        self.clock.pass_days(days)
        approvals.sweep(self.pipeline)
        for each in self.known:
            if each.said == "" and self._entry(each).answer is not None:
                assert self._entry(each).answer == "expired"
                each.said = "no"

    @rule()
    def restart(self):
        """As after kill -9: nothing is tidied up but what the store itself keeps."""
        self.pipeline.store.close()
        self.pipeline = self._opened()

    @rule()
    def lose_the_key(self):
        """What was sealed cannot be opened any more; a new key is made for what comes."""
        self.pipeline.store.close()
        for key in self.folder.glob("questions.key"):
            key.unlink()
        self.pipeline = self._opened()
        for each in self.known:
            # Its arguments are lost, so nothing runs; an answer that is still to come can only be a no.
            if each.edited is not None:
                each.said = "lost" if not each.ran else each.said

    # -- what must hold ---------------------------------------------------------------------------------

    @invariant()
    def what_ran_was_approved_and_is_on_the_record(self):
        for each in self.known:
            if each.ran and each.said not in ("policy",):
                found = self._entry(each)
                assert found.answer == "approved" and found.started_at is not None, each
                assert len(each.ran) == 1 or each.repeatable


@pytest.mark.invariant("no approved call stays open for ever")
def test_no_interleaving_runs_a_call_twice_or_without_a_yes_or_leaves_it_open():
    limits = settings(
        max_examples=RUNS,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Lifecycle, settings=limits)
