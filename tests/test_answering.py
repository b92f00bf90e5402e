"""Answers of people: recorded once, masked, bound to the very call, and outranked by a new deny."""

import threading

import msgspec
import pytest

from checkrein.asking import Answerer, Remember
from checkrein.call import ToolCall
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import fold
from checkrein.ledger.query import Filter, entries
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import questions, records
from checkrein.store.grants import end_session_grants
from deciding import approve, asked, bash, in_session, kinds, last, put_rule, set_user_phase


@pytest.mark.invariant("only a question is answered, and the first answer stands")
def test_only_a_question_is_answered_and_the_first_answer_stands(pipeline, project):
    blocked, allowed = pipeline.decide(bash("git push", project)), pipeline.decide(bash("ls", project))
    asked = pipeline.decide(bash("make x", project), asking=True)
    pipeline.answer(asked.entry, "denied", actor="ada", channel="terminal")
    for decided in (blocked, allowed, asked):
        with pytest.raises(InputError, match="waits for no answer"):
            pipeline.answer(decided.entry, "approved", actor="eve", channel="terminal")
    assert kinds(pipeline).count("answered") == 1


def test_an_answer_settles_the_question_with_its_record(pipeline, project):
    entry = asked(pipeline, "make x", project)
    assert pipeline.answer(entry, "denied", actor="ada", channel="terminal", message="not now") == "denied"
    question = questions.get_question(pipeline.store, entry)
    assert (question.state, question.actor, question.message) == ("denied", "ada", "not now")
    assert last(pipeline, "answered")["message"] == "not now"


def test_of_many_answers_at_once_one_is_recorded(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    said = []

    def answer(name):
        try:
            said.append(pipeline.answer(entry, "approved", actor=name, channel="terminal"))
        except InputError:
            said.append("late")

    threads = [threading.Thread(target=answer, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["approved"] + ["late"] * 4
    assert kinds(pipeline).count("answered") == 1


@pytest.mark.parametrize("how", ["rule", "phase", "settings"])
def test_a_new_deny_outranks_a_yes(pipeline, project, user_settings, how):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    if how == "rule":
        put_rule(pipeline, "deny")
    elif how == "phase":
        set_user_phase(pipeline, "auditing")
    else:
        user_settings("broken = [")
    assert approve(pipeline, entry, remember=Remember()) == "denied"
    question = questions.get_question(pipeline.store, entry)
    assert (question.state, last(pipeline, "answered")["answer"]) == ("denied", "denied")
    assert "policy of this moment refuses" in question.message
    assert pipeline.store.query("SELECT * FROM grants") == []


def test_a_yes_in_the_agent_s_own_dialog_is_recorded_as_it_was(pipeline, project):
    """The call has run by the time we hear of it: a record that says refused would be false."""
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    put_rule(pipeline, "deny")
    assert pipeline.answer(entry, "approved", actor="ada", channel="agent") == "approved"
    pipeline.finish(entry, "success")
    found = next(entries(pipeline.store, Filter()))
    assert (found.answer, found.status) == ("approved", "completed")


def test_whoever_waits_for_an_answer_never_runs_what_is_denied_now_whatever_the_channel(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    put_rule(pipeline, "deny")
    with pipeline.broker.awaiting(entry):
        assert pipeline.answer(entry, "approved", actor="ada", channel="agent") == "denied"


def test_an_edited_call_is_judged_recorded_masked_and_handed_on(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    secret = "hunter2-" + "very-secret"
    with pipeline.broker.awaiting(entry):
        with pytest.raises(InputError, match="would be refused"):
            approve(pipeline, entry, edited={"command": "git push --force"})
        assert questions.get_question(pipeline.store, entry).state == "asked"
        edited = {"command": f"API_KEY={secret} make y"}
        assert approve(pipeline, entry, edited=edited) == "approved"
    assert pipeline.broker.edited(entry) == edited
    assert "make y" in last(pipeline, "answered")["edited"]["command"]
    assert secret not in "".join(row[4] for row in records.after(pipeline.store, 0))


def test_nobody_who_could_run_it_means_no_edited_yes(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    with pytest.raises(InputError, match="cannot be edited"):
        approve(pipeline, entry, edited={"command": "make y"})
    assert questions.get_question(pipeline.store, entry).state == "asked"


def test_a_program_that_comes_back_later_can_run_an_edited_call(pipeline, project):
    """Only of an agent's own hook somebody must wait: the other doors run the call themselves."""
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project, door="library")
    with pytest.raises(InputError, match="would be refused"):
        approve(pipeline, entry, edited={"command": "git push --force"})
    assert approve(pipeline, entry, edited={"command": "make y"}) == "approved"
    assert pipeline.broker.edited(entry) == {"command": "make y"}


@pytest.mark.parametrize("how", ["rule", "phase"])
def test_an_answer_after_a_restart_is_judged_again(pipeline, project, clock, how):
    set_user_phase(pipeline, "building")
    entry, other = (asked(pipeline, f"make {each}", project) for each in "xy")
    if how == "rule":
        put_rule(pipeline, "deny")
    else:
        set_user_phase(pipeline, "auditing")
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert approve(later, entry) == "denied"
    assert "policy of this moment refuses" in questions.get_question(later.store, entry).message
    assert later.answer(other, "denied", actor="ada", channel="terminal") == "denied"


@pytest.mark.invariant("nobody says yes to a call that cannot be read and judged again")
@pytest.mark.parametrize("answer", ["approved", "answered"])
def test_without_the_key_nobody_says_yes_and_anybody_says_no(pipeline, project, clock, answer):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    (state_dir() / "questions.key").unlink()
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    with pytest.raises(InputError, match="cannot be read any more"):
        later.answer(entry, answer, actor="ada", channel="terminal")
    assert questions.get_question(later.store, entry).state == "asked"
    assert later.answer(entry, "denied", actor="ada", channel="terminal") == "denied"


@pytest.mark.invariant("nobody says yes to a question whose time is over")
@pytest.mark.parametrize("answer", ["approved", "answered"])
def test_a_yes_that_comes_too_late_is_a_no(pipeline, project, clock, answer):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    clock.now = questions.get_question(pipeline.store, entry).expires_at
    with pytest.raises(InputError, match="expired"):
        pipeline.answer(entry, answer, actor="ada", channel="terminal")
    assert questions.get_question(pipeline.store, entry).state == "expired"
    assert last(pipeline, "answered")["answer"] == "expired" and not pipeline.claim(entry)


@pytest.mark.invariant("nobody says yes to a question whose time is over")
def test_a_yes_in_time_is_none_to_an_older_question_about_the_same_call(pipeline, project, clock):
    set_user_phase(pipeline, "building")
    first = asked(pipeline, "make x", project)
    clock.now = questions.get_question(pipeline.store, first).expires_at - 1
    second = asked(pipeline, "make x", project)
    clock.now += 2
    assert approve(pipeline, second) == "approved"
    assert questions.get_question(pipeline.store, first).state == "asked"
    with pytest.raises(InputError, match="expired"):
        approve(pipeline, first)


def test_a_question_that_was_never_put_is_said_to_be_unknown(pipeline):
    for answer in ("approved", "denied", "cancelled"):
        with pytest.raises(NotFoundError):
            pipeline.answer("no-such-entry", answer, actor="ada", channel="terminal")


def test_a_denied_edit_is_never_handed_on(pipeline, project):
    entry = asked(pipeline, "make x", project)
    with pipeline.broker.awaiting(entry):
        pipeline.answer(entry, "denied", actor="ada", channel="terminal", edited={"command": "make y"})
    assert pipeline.broker.edited(entry) is None


def test_a_yes_for_the_session_covers_exactly_that_call_until_something_denies_it(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    assert last(pipeline, "granted")["session"] == "s1"
    again = pipeline.decide(in_session("make x", project), asking=True).verdict
    assert (again.word, again.stage) == ("allow", "grant")
    assert "approved exactly this call" in again.reasons[0].text
    for other in (
        in_session("make y", project),
        in_session("make x", project, session="s2"),
        in_session("make x", project, user="eve"),
        bash("make x", project, session="s1", agent="codex"),
        bash("make x", project),
        # The same words somewhere else are another call: `rm -r build` in another folder.
        in_session("make x", project, cwd="/elsewhere"),
    ):
        assert pipeline.decide(other).verdict.word == "ask"
    assert pipeline.decide(in_session("make x", project), phase="auditing").verdict.word == "deny"
    put_rule(pipeline, "deny")
    assert pipeline.decide(in_session("make x", project)).verdict.word == "deny"


def test_a_yes_for_the_session_is_over_when_it_ends(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    pipeline.store.write(lambda tx: end_session_grants(tx, "s1", 1.0))
    assert pipeline.decide(in_session("make x", project)).verdict.word == "ask"


def test_a_yes_for_the_session_never_reaches_past_the_floor(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    call = msgspec.structs.replace(
        in_session("curl https://x.example", project), arguments={"command": "curl https://x.example"}
    )
    risk, by = pipeline.judge(call).verdict.risk, Answerer("ada", "terminal")
    pipeline.store.write(lambda tx: pipeline.asking.remember(tx, "e", call, risk, Remember(), by))
    assert pipeline.decide(call).verdict.stage == "floor"


@pytest.mark.invariant("what is remembered is what was approved, not what was asked for")
def test_what_is_remembered_for_the_session_is_what_was_approved(pipeline, project):
    """A person changed the call before saying yes: the one that was asked for still asks."""
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    with pipeline.broker.awaiting(entry):
        approve(pipeline, entry, edited={"command": "make y"}, remember=Remember())
    assert pipeline.decide(in_session("make x", project)).verdict.word == "ask"
    assert pipeline.decide(in_session("make y", project)).verdict.stage == "grant"


def test_the_record_says_what_was_approved_instead(pipeline):
    call = ToolCall(tool="lookup", server="notes", arguments={"name": "x"}, door="chat", session="s")
    entry = pipeline.decide(call, asking=True).entry
    with pipeline.broker.awaiting(entry):
        pipeline.answer(entry, "approved", actor="me", channel="console", edited={"name": "y"})
    (found,) = fold(records.of_entries(pipeline.store, [entry]))
    other = msgspec.structs.replace(call, arguments={"name": "y"})
    assert (found.edited, found.edited_hash) == ({"name": "y"}, other.argument_hash)
    assert found.argument_hash == call.argument_hash
