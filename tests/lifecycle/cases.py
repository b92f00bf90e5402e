"""What can become of a call that is asked about: each case is played at every door, and its end is the same.

A case is a function of a `Scene`. What it expects of the first call stands in its decorator: `ran` (the
arguments of every run of the tool, in order), `heard` (the caller's last word), and of the record `answer`,
`state`, `result` and `evidence`. `but` has what a door does otherwise.
"""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from checkrein.approval.question_calls import QuestionCalls
from checkrein.asking import Remember
from checkrein.core.lifecycle import State
from checkrein.errors import CheckreinError, ConflictError, InputError, StoreError
from checkrein.settings.sources import user_file
from checkrein.store.rules import add_rule, delete_rule
from lifecycle.drivers import SERVER, TOOL
from patience import PATIENCE, until

ARGS, EDIT, MISFIT = {"text": "a"}, {"text": "b"}, {"wrong": 1}
ANY = object()


class Expected(NamedTuple):
    """What a case comes to, at one door."""

    ran: tuple = ()
    heard: str | tuple[str, ...] = ""
    answer: str | None = None
    state: State = State.finished
    result: str = "cancelled"
    evidence: object = ANY


class Case(NamedTuple):
    """One case: its name is its function's."""

    name: str
    play: object
    expected: Expected
    but: dict

    def at(self, door):
        """What it comes to at this door."""
        return self.expected._replace(**self.but.get(door, {}))


CASES = {}


def case(*, but=None, **expected):
    def put(play):
        name = play.__name__
        assert name not in CASES
        CASES[name] = Case(name, play, Expected(**expected), but or {})
        return play

    return put


RAN = {"ran": (ARGS,), "heard": "result", "answer": "approved", "result": "success", "evidence": ANY}
RAN_EDITED = {**RAN, "ran": (EDIT,)}
NO = {"heard": "denied", "answer": "denied", "state": State.denied, "result": "denied", "evidence": None}
TOO_LATE = {
    "heard": "expired",
    "answer": "expired",
    "state": State.expired,
    "result": "timeout",
    "evidence": None,
}
DROPPED = {"heard": "dropped", "answer": "approved", "result": "cancelled"}
TAKEN_BACK = {
    "heard": "cancelled",
    "answer": "cancelled",
    "state": State.cancelled,
    "result": "cancelled",
    "evidence": None,
}
LOST = {"heard": "unknown", "answer": "approved", "state": State.unknown, "result": "unknown"}


class Scene:
    """A door that is open, and everything a case does there."""

    def __init__(self, driver, project):
        self.driver, self.world, self.project = driver, driver.world, project
        self.entry = ""
        if driver.settings:
            self.settings("")
        driver.open()

    @property
    def pipeline(self):
        return self.world.pipeline

    # -- the caller ---------------------------------------------------------------------------------------

    def ask(self, arguments=ARGS, **more):
        """A call that is asked about; its caller waits."""
        caller = self.driver.call(arguments, **more)
        self.asked(self.world.question())
        return caller

    def put_away(self, arguments=ARGS):
        """A call that is asked about; its caller comes back later."""
        caller = self.driver.put_away(arguments)
        self.asked(self.world.question(awaited=False))
        return caller

    def asked(self, entry):
        self.entry = self.entry or entry

    def back(self, caller):
        return self.driver.back(caller).heard()

    def back_too_late(self, caller):
        """The same after the time limit; whoever waits looks at once."""
        caller = self.driver.back(caller)
        until(lambda: caller.done or self.pipeline.broker.is_awaited(self.entry))
        self.world.wake(self.entry)
        return caller.heard()

    def again(self, arguments=ARGS):
        """The same call once more, which nobody is asked about."""
        return self.driver.call(arguments).heard()

    # -- people -------------------------------------------------------------------------------------------

    def answer(self, word="approved", entry=None, **more):
        more = {"actor": "ada", "channel": "console"} | more
        return self.driver.answer(entry or self.entry, word, **more)

    def rule(self, action, **more):
        """Write a rule; what is returned takes it back."""
        name, body = f"r-{action}", {"action": action, "tool": TOOL, "server": SERVER, **more}
        self.pipeline.note("rule_changed", {}, lambda tx: add_rule(tx, name, body, 1.0))
        return lambda: self.pipeline.note("rule_changed", {}, lambda tx: delete_rule(tx, name))

    def settings(self, text):
        path = user_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + self.driver.settings, encoding="utf-8")

    def change(self, sql, *given):
        self.world.store.write(lambda tx: tx.execute(sql, given))

    # -- time and trouble ---------------------------------------------------------------------------------

    def pass_seconds(self, seconds):
        """The clock moves, and whoever waits looks at it."""
        self.world.clock.now += seconds
        self.world.wake(*(each.entry for each in self.world.questions()))

    def pass_the_limit(self):
        self.pass_seconds(max(each.expires_at for each in self.world.questions()) - self.world.clock() + 1)

    def kill(self):
        """The server is killed, and started again without its doors."""
        self.world.die()
        self.driver.killed()
        self.world.shut()
        self.world.open()

    def killed_after(self, kind, act):
        """Have the server die with the next record of this kind, which `act` leads to; it starts again."""
        self.world.store.die_after(kind)
        act()
        until(lambda: self.world.store.dead, failing=f"nothing was recorded as {kind}")
        self.kill()

    def unheard(self, word="approved", **more):
        """A call whose answer is on the record, and whose caller has not heard it."""
        return self.driver.unheard(self, word, **more)

    def answer_that_kills(self, word="approved", **more):
        def act():
            with pytest.raises(StoreError):
                self.answer(word, **more)

        self.killed_after("answered", act)


# -- a caller that waits ----------------------------------------------------------------------------------


@case(**RAN)
def a_yes_runs_the_call_once(scene):
    caller = scene.ask()
    assert scene.answer() == "approved"
    return caller.heard()


@case(**NO)
def a_no_runs_nothing(scene):
    caller = scene.ask()
    assert scene.answer("denied") == "denied"
    return caller.heard()


@case(**NO)
def the_reason_of_a_no_reaches_the_caller(scene):
    caller = scene.ask()
    scene.answer("denied", message="the moon is not full")
    word = caller.heard()
    assert "the moon is not full" in caller.said
    return word


@case(**RAN)
def a_yes_may_carry_a_message(scene):
    caller = scene.ask()
    scene.answer(message="go on")
    return caller.heard()


@case(**RAN_EDITED)
def edited_arguments_run_in_place_of_the_others(scene):
    caller = scene.ask()
    scene.answer(edited=EDIT)
    return caller.heard()


@case(**RAN)
def an_edit_that_changes_nothing_is_a_plain_yes(scene):
    caller = scene.ask()
    scene.answer(edited=dict(ARGS))
    return caller.heard()


@case(heard="answered", answer="answered", state=State.answered, evidence=None)
def an_answer_in_the_tools_place_runs_nothing(scene):
    caller = scene.ask()
    scene.answer("answered", message="It is blue.")
    word = caller.heard()
    assert "It is blue." in caller.said
    return word


@case(**{**RAN, "ran": (ARGS, ARGS)})
def a_yes_for_the_session_covers_the_same_call(scene):
    caller = scene.ask()
    scene.answer(remember=Remember())
    word = caller.heard()
    assert scene.driver.same_session(caller).heard() == "result"
    return word


@case(**{**RAN, "ran": (ARGS, ARGS)})
def a_yes_for_always_covers_the_same_call(scene):
    caller = scene.ask()
    scene.answer(remember=Remember(span="always"))
    word = caller.heard()
    assert scene.again() == "result"
    return word


@case(**{**RAN, "ran": (ARGS, ARGS)})
def a_yes_for_one_more_use_covers_one_more_call(scene):
    caller = scene.ask()
    scene.answer(remember=Remember(span="uses", uses=1))
    word = caller.heard()
    assert scene.again() == "result"
    third = scene.ask()
    scene.answer("denied", entry=scene.world.question())
    assert third.heard() == "denied"
    return word


@case(**RAN_EDITED)
def a_remembered_edit_covers_no_call_as_it_was_first(scene):
    caller = scene.ask()
    scene.answer(edited=EDIT, remember=Remember(span="always"))
    word = caller.heard()
    second = scene.ask()
    scene.answer("denied", entry=scene.world.question())
    assert second.heard() == "denied"
    return word


@case(**RAN)
def a_plain_yes_covers_no_second_call(scene):
    caller = scene.ask()
    scene.answer()
    word = caller.heard()
    second = scene.ask()
    scene.answer("denied", entry=scene.world.question())
    assert second.heard() == "denied"
    return word


@case(**RAN)
def the_same_request_sent_again_needs_a_new_yes(scene):
    caller = scene.ask()
    scene.answer()
    word = caller.heard()
    second = scene.driver.replay(caller)
    scene.answer("denied", entry=scene.world.question())
    assert second.heard() == "denied"
    return word


@case(**NO)
def a_no_answers_the_same_call_for_a_while(scene):
    caller = scene.ask()
    scene.answer("denied")
    word = caller.heard()
    assert scene.driver.same_session(caller).heard() == "denied"
    assert scene.world.questions() == []
    return word


@case(**RAN)
def a_no_after_a_yes_is_too_late(scene):
    caller = scene.ask()
    scene.answer()
    with pytest.raises(ConflictError):
        scene.answer("denied")
    return caller.heard()


@case(**NO)
def a_yes_after_a_no_is_too_late(scene):
    caller = scene.ask()
    scene.answer("denied")
    with pytest.raises(ConflictError):
        scene.answer()
    return caller.heard()


def _together(*works):
    """What each came to; all begin at once."""
    barrier = threading.Barrier(len(works))

    def one(work):
        barrier.wait(PATIENCE)
        try:
            return work()
        except CheckreinError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(one, works))


@case(**RAN)
def two_people_who_say_yes_at_once_let_it_run_once(scene):
    caller = scene.ask()
    said = _together(*[lambda who=who: scene.answer(actor=who) for who in ("ada", "bob", "eve", "kim")])
    assert said.count("approved") == 1
    return caller.heard()


@case(**RAN)
def a_yes_and_two_edits_at_once_let_one_of_them_run(scene):
    caller = scene.ask()
    said = _together(
        scene.answer, lambda: scene.answer(edited=dict(ARGS)), lambda: scene.answer(message="me too")
    )
    assert said.count("approved") == 1
    return caller.heard()


@case(**TOO_LATE)
def a_question_nobody_answers_in_time_is_a_no(scene):
    caller = scene.ask()
    scene.pass_the_limit()
    return caller.heard()


@case(**TOO_LATE)
def a_yes_that_comes_after_the_limit_runs_nothing(scene):
    caller = scene.ask()
    scene.pass_the_limit()
    word = caller.heard()
    with pytest.raises(ConflictError):
        scene.answer()
    return word


@case(**TAKEN_BACK)
def a_call_its_agent_takes_back_runs_nothing(scene):
    caller = scene.driver.cancellable(ARGS)
    scene.asked(scene.world.question())
    scene.driver.cancel(caller)
    word = caller.heard()
    until(lambda: not scene.world.questions())
    with pytest.raises(ConflictError):
        scene.answer()
    return word


@case(**TAKEN_BACK)
def a_client_that_ends_takes_its_question_back(scene):
    caller = scene.driver.cancellable(ARGS)
    scene.asked(scene.world.question())
    scene.driver.leave(caller)
    word = caller.heard()
    until(lambda: not scene.world.questions())
    with pytest.raises(ConflictError):
        scene.answer()
    return word


@case(**NO, but={"eval": {"heard": "dropped"}})
def a_deny_that_comes_before_the_yes_outranks_it(scene):
    caller = scene.ask()
    scene.rule("deny")
    assert scene.answer() == "denied"
    return caller.heard()


@case(**RAN)
def an_allow_that_comes_before_the_yes_changes_nothing(scene):
    caller = scene.ask()
    scene.rule("allow")
    assert scene.answer() == "approved"
    return caller.heard()


@case(**RAN)
def an_edit_that_policy_refuses_is_no_answer(scene):
    caller = scene.ask()
    scene.rule("deny", when=[{"path": "text", "equals": "b"}])
    with pytest.raises(InputError, match="would be refused"):
        scene.answer(edited=EDIT)
    scene.answer()
    return caller.heard()


@case(**NO)
def a_call_that_cannot_be_read_any_more_gets_no_yes(scene):
    caller = scene.ask()
    scene.change("UPDATE question SET sealed_call = 'damaged' WHERE entry = ?", scene.entry)
    with pytest.raises(InputError, match="cannot be read"):
        scene.answer()
    scene.answer("denied")
    return caller.heard()


@case(**NO)
def a_call_whose_key_was_replaced_gets_no_yes(scene):
    """The key file is another one after a restart."""
    caller = scene.put_away()
    scene.kill()
    _new_key(scene)
    with pytest.raises(InputError, match="cannot be read"):
        scene.answer()
    scene.answer("denied")
    return scene.back(caller)


@case(**NO)
def a_second_question_beyond_the_limit_is_refused(scene):
    """As many questions as may wait do wait."""
    scene.settings("[approval]\nmost_waiting = 1\n")
    caller = scene.ask()
    other = scene.driver.same_session(caller, EDIT)
    assert other.heard() == "dropped"
    scene.answer("denied")
    return caller.heard()


@case(heard="unreachable", answer="cancelled", state=State.cancelled, evidence=None)
def a_call_nobody_can_be_asked_about_is_over(scene):
    scene.driver.nobody()
    caller = scene.driver.call(ARGS)
    word = caller.heard()
    assert scene.world.questions() == []
    return word


def _twice(scene, arguments=ARGS):
    """Two calls that are the same, both asked about: the first caller, the second and its question."""
    first = scene.ask(arguments)
    second = scene.driver.same_session(first)
    until(lambda: len(scene.world.questions()) == 2)
    (other,) = [each.entry for each in scene.world.questions() if each.entry != scene.entry]
    scene.world.asked[other] = None
    until(lambda: scene.pipeline.broker.is_awaited(other))
    return first, second, other


@case(**{**RAN, "ran": (ARGS, ARGS)}, but={"eval": {"ran": (ARGS,)}})
def one_yes_settles_the_same_call_that_was_asked_about_twice(scene):
    """In a script each call is asked about for itself."""
    first, second, other = _twice(scene)
    scene.answer()
    word = first.heard()
    if scene.driver.asks_each:
        scene.answer("denied", entry=other)
        assert second.heard() == "denied"
    else:
        assert second.heard() == "result"
    return word


@case(**RAN_EDITED)
def an_edit_speaks_for_one_call_only(scene):
    first, second, other = _twice(scene)
    scene.answer(edited=EDIT)
    word = first.heard()
    assert [each.entry for each in scene.world.questions()] == [other]
    scene.answer("denied", entry=other)
    assert second.heard() == "denied"
    return word


# -- a caller that comes back -----------------------------------------------------------------------------


@case(**RAN)
def a_yes_while_its_caller_is_away_runs_when_it_is_back(scene):
    caller = scene.put_away()
    scene.answer()
    return scene.back(caller)


@case(**NO)
def a_no_while_its_caller_is_away_is_heard_when_it_is_back(scene):
    caller = scene.put_away()
    scene.answer("denied")
    return scene.back(caller)


@case(**RAN_EDITED)
def an_edit_while_its_caller_is_away_runs_when_it_is_back(scene):
    caller = scene.unheard(edited=EDIT)
    return scene.back(caller)


@case(**RAN)
def a_caller_that_is_back_before_the_yes_goes_on_waiting(scene):
    caller = scene.put_away()
    waiting = scene.driver.back(caller)
    until(lambda: waiting.done or scene.pipeline.broker.is_awaited(scene.entry))
    if told := waiting.done:
        # A caller that never waits is told to come back.
        assert waiting.heard() == "pending"
    scene.answer()
    return scene.back(caller) if told else waiting.heard()


@case(**TOO_LATE)
def a_question_that_expired_while_its_caller_was_away_is_a_no(scene):
    caller = scene.put_away()
    scene.pass_the_limit()
    return scene.back_too_late(caller)


# A run in the store keeps what its call came to.
_KEPT = {"heard": "result"}


@case(**{**RAN, "heard": "used"}, but={"chat": _KEPT, "api": _KEPT, "eval": _KEPT})
def a_caller_that_comes_back_twice_runs_once(scene):
    scene.driver.needs_return()
    caller = scene.put_away()
    scene.answer()
    assert scene.back(caller) == "result"
    return scene.back(caller)


@case(**TOO_LATE)
def a_yes_after_the_limit_is_too_late_although_nobody_noticed_the_limit(scene):
    caller = scene.put_away()
    scene.pass_the_limit()
    with pytest.raises(InputError):
        scene.answer()
    return scene.back_too_late(caller)


@case(**RAN)
def a_caller_that_comes_back_twice_at_once_runs_once(scene):
    scene.driver.needs_return()
    caller = scene.put_away()
    scene.answer()
    twin = copy.copy(caller)
    both = [scene.driver.back(each) for each in (caller, twin)]
    words = [each.heard() for each in both]
    assert "result" in words and set(words) <= {"result", "used", "unknown"}
    return "result"


@case(
    **{**DROPPED, "heard": "pending", "evidence": "not claimed"},
    # It may have run: an agent that was told yes need not come back.
    but={"hooks": {"state": State.unknown, "result": "unknown", "evidence": "not reported"}},
)
def an_approval_nobody_comes_back_for_ends_unused(scene):
    scene.put_away()
    scene.answer()
    return "pending"


@case(**{**TOO_LATE, "heard": "pending"})
def a_question_nobody_comes_back_to_expires(scene):
    scene.put_away()
    return "pending"


@case(**{**DROPPED, "evidence": "policy"})
def a_deny_that_comes_after_the_yes_outranks_it(scene):
    caller = scene.put_away()
    scene.answer()
    scene.rule("deny")
    return scene.back(caller)


@case(**RAN)
def a_deny_that_came_and_went_after_the_yes_stops_nothing(scene):
    caller = scene.put_away()
    scene.answer()
    scene.rule("deny")()
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_deny_of_the_edited_arguments_outranks_the_yes_to_them(scene):
    caller = scene.unheard(edited=EDIT)
    scene.rule("deny", when=[{"path": "text", "equals": "b"}])
    return scene.back(caller)


@case(**RAN_EDITED)
def a_deny_of_the_first_arguments_does_not_stop_the_edited_ones(scene):
    caller = scene.unheard(edited=EDIT)
    scene.rule("deny", when=[{"path": "text", "equals": "a"}])
    return scene.back(caller)


@case(**RAN)
def an_ask_that_comes_after_the_yes_asks_nobody_again(scene):
    caller = scene.put_away()
    scene.answer()
    scene.rule("ask")
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_deny_in_the_users_file_after_the_yes_outranks_it(scene):
    caller = scene.put_away()
    scene.answer()
    scene.settings(f'[[rules]]\naction = "deny"\ntool = "{TOOL}"\nserver = "{SERVER}"\n')
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_policy_that_cannot_be_read_after_the_yes_refuses(scene):
    caller = scene.put_away()
    scene.answer()
    scene.settings("[[rules]]\naction = 'nonsense'\n")
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_deny_in_the_projects_file_after_the_yes_outranks_it(scene):
    scene.driver.needs_project()
    caller = scene.put_away()
    scene.answer()
    text = f'[[rules]]\naction = "deny"\ntool = "{TOOL}"\nserver = "{SERVER}"\n'
    (scene.project / "checkrein.toml").write_text(text, encoding="utf-8")
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_phase_that_refuses_the_call_after_the_yes_outranks_it(scene):
    caller = scene.put_away()
    scene.answer()
    scene.driver.switch_phase("auditing")
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "policy"})
def a_profile_that_refuses_the_call_after_the_yes_outranks_it(scene):
    caller = scene.put_away()
    scene.answer()
    scene.driver.refuse_in_profile()
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "definition"})
def a_tool_that_changed_after_the_yes_is_not_called(scene):
    caller = scene.put_away()
    scene.answer()
    scene.driver.define("Now it is another tool.")
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "definition"})
def a_tool_that_changed_and_was_accepted_anew_needs_a_new_yes(scene):
    caller = scene.put_away()
    scene.answer()
    scene.driver.define("Now it is another tool.", accept=True)
    return scene.back(caller)


@case(
    **{**DROPPED, "evidence": "definition"},
    # The client is told that there is no such tool (its server may be starting); the approval stays.
    but={"gateway": {"evidence": "not claimed"}},
)
def a_tool_that_is_gone_after_the_yes_is_not_called(scene):
    caller = scene.put_away()
    scene.answer()
    scene.driver.define(None)
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "arguments"})
def an_edit_that_does_not_fit_the_tool_is_not_sent_to_it(scene):
    scene.driver.needs_schema()
    caller = scene.unheard(edited=MISFIT)
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "arguments"})
def an_edit_that_is_damaged_in_the_store_lets_nothing_run(scene):
    caller = scene.unheard(edited=EDIT)
    scene.change("UPDATE question SET sealed_edit = 'damaged' WHERE entry = ?", scene.entry)
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "arguments"})
def an_edit_that_is_gone_from_the_store_lets_nothing_run(scene):
    caller = scene.unheard(edited=EDIT)
    scene.change("UPDATE question SET sealed_edit = '' WHERE entry = ?", scene.entry)
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "arguments"})
def another_sealed_text_in_place_of_the_edit_lets_nothing_run(scene):
    caller = scene.unheard(edited=EDIT)
    scene.change("UPDATE question SET sealed_edit = sealed_call WHERE entry = ?", scene.entry)
    return scene.back(caller)


@case(**{**DROPPED, "evidence": "arguments"})
def an_edit_other_than_the_approved_one_lets_nothing_run(scene):
    """Sealed as it should be, by whoever has the key and can write the store."""
    caller = scene.unheard(edited=EDIT)
    sealed = QuestionCalls(scene.world.store, scene.world.folder).seal_edit(scene.entry, {"text": "c"})
    scene.change("UPDATE question SET sealed_edit = ? WHERE entry = ?", sealed, scene.entry)
    return scene.back(caller)


def _new_key(scene):
    (scene.world.folder / "questions.key").unlink()
    # Whoever opens the folder next makes another one.
    scene.kill()


@case(**{**DROPPED, "evidence": "arguments"})
def an_edit_whose_key_was_replaced_lets_nothing_run(scene):
    caller = scene.unheard(edited=EDIT)
    _new_key(scene)
    return scene.back(caller)


# -- a server that is killed ------------------------------------------------------------------------------


@case(**RAN)
def a_question_outlives_its_server(scene):
    caller = scene.put_away()
    scene.kill()
    scene.answer()
    return scene.back(caller)


@case(**RAN)
def killed_with_the_yes_on_the_record_it_runs_once(scene):
    caller = scene.put_away()
    scene.answer_that_kills()
    return scene.back(caller)


@case(**NO)
def killed_with_the_no_on_the_record_nothing_runs(scene):
    caller = scene.put_away()
    scene.answer_that_kills("denied")
    return scene.back(caller)


@case(**RAN_EDITED)
def killed_with_the_edit_on_the_record_the_edited_call_runs_once(scene):
    caller = scene.driver.keep(scene)
    scene.answer_that_kills(edited=EDIT)
    return scene.back(caller)


@case(**{**RAN, "ran": (ARGS, ARGS)})
def killed_with_a_yes_for_always_on_the_record_it_is_remembered(scene):
    caller = scene.put_away()
    scene.answer_that_kills(remember=Remember(span="always"))
    word = scene.back(caller)
    assert scene.again() == "result"
    return word


# A `requestState` works once, also where nothing came of it.
_STATE_USED = {"heard": "used"}


@case(**LOST, but={"gateway": _STATE_USED})
def killed_with_the_claim_on_the_record_nothing_runs_any_more(scene):
    scene.driver.needs_claim()
    caller = scene.put_away()
    scene.answer()
    scene.killed_after("started", lambda: scene.back(caller))
    return scene.back(caller)


# The agent lives on, and reports to the next server.
_REPORTED = {"heard": "result", "state": State.finished, "result": "success"}


@case(**{**LOST, "ran": (ARGS,)}, but={"hooks": _REPORTED, "gateway": _STATE_USED})
def killed_while_the_tool_ran_it_does_not_run_again(scene):
    caller = scene.put_away()
    scene.answer()
    scene.world.on_run = scene.world.die
    scene.back(caller)
    scene.kill()
    return scene.back(caller)


@case(**{**LOST, "ran": (EDIT,)}, but={"hooks": _REPORTED, "gateway": _STATE_USED})
def killed_while_the_edited_call_ran_it_does_not_run_again(scene):
    caller = scene.unheard(edited=EDIT)
    scene.world.on_run = scene.world.die
    scene.back(caller)
    scene.kill()
    return scene.back(caller)


# It was cut off between the record and its own row, and cannot tell the model what came.
_CUT_OFF = {"heard": "unknown"}


@case(
    **{**RAN, "heard": "used"},
    but={
        "hooks": _REPORTED,
        "chat": _CUT_OFF,
        "api": _CUT_OFF,
        # Its own row is written first or last.
        "eval": {"heard": ("result", "unknown")},
    },
)
def killed_with_the_outcome_on_the_record_it_does_not_run_again(scene):
    caller = scene.put_away()
    scene.answer()
    scene.killed_after("finished", lambda: scene.back(caller))
    return scene.back(caller)


@case(**RAN)
def killed_at_the_question_and_at_the_yes_it_runs_once(scene):
    caller = scene.put_away()
    scene.kill()
    scene.answer_that_kills()
    return scene.back(caller)


@case(**TOO_LATE)
def killed_with_the_question_on_the_record_it_ends_without_a_run(scene):
    """Its caller never heard of the question."""
    scene.killed_after("asked", lambda: scene.driver.call(ARGS).heard())
    scene.entry = scene.world.question(awaited=False)
    return "expired"


@case(**RAN)
def a_yes_whose_call_cannot_be_read_any_more_still_runs_as_it_was_asked(scene):
    """The caller brings the very call; only the edited one is nowhere but in the store."""
    caller = scene.put_away()
    scene.answer()
    scene.change("UPDATE question SET sealed_call = 'damaged' WHERE entry = ?", scene.entry)
    return scene.back(caller)


# -- a policy that changes before, while and after a person says yes --------------------------------------


@case(**NO, but={"eval": {"heard": "dropped"}})
def a_deny_that_came_with_a_restart_outranks_a_later_yes(scene):
    caller = scene.put_away()
    scene.kill()
    scene.rule("deny")
    assert scene.answer() == "denied"
    return scene.back(caller)


@case(**{**LOST, "ran": (ARGS,)}, but={"hooks": _REPORTED, "gateway": _STATE_USED})
def a_deny_that_comes_after_a_run_was_killed_does_not_change_its_end(scene):
    caller = scene.put_away()
    scene.answer()
    scene.world.on_run = scene.world.die
    scene.back(caller)
    scene.kill()
    scene.rule("deny")
    return scene.back(caller)


@case(**RAN_EDITED)
def an_edit_for_a_caller_that_is_back_is_judged_as_edited(scene):
    caller = scene.put_away()
    waiting = scene.driver.back(caller)
    until(lambda: waiting.done or scene.pipeline.broker.is_awaited(scene.entry))
    if told := waiting.done:
        assert waiting.heard() == "pending"
    scene.rule("deny", when=[{"path": "text", "equals": "a"}])
    scene.answer(edited=EDIT)
    return scene.back(caller) if told else waiting.heard()


@case(**RAN)
def a_deny_and_the_same_request_while_the_tool_runs_change_nothing(scene):
    scene.driver.needs_return()
    caller = scene.put_away()
    scene.answer()
    twin, later = copy.copy(caller), []

    def during():
        scene.world.on_run = None
        scene.rule("deny")
        later.append(scene.driver.back(twin))
        if scene.driver.name in ("gateway", "library"):
            until(lambda: later[0].done)

    scene.world.on_run = during
    word = scene.back(caller)
    later[0].heard()
    return word
