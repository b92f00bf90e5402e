import pytest

from checkrein.errors import InputError, NotFoundError
from checkrein.settings import Settings
from checkrein.store.questions import get_question

WAIT = Settings().approval.timeout_seconds


def test_what_waits_is_listed_with_everything_a_person_needs(do, question, project, clock):
    first = question("make x")
    clock.now += WAIT / 2
    second = question("make y")
    found = do("question.list")
    assert [each["id"] for each in found] == [first, second]
    about = found[0]
    assert (about["tool"], about["input"], about["project"], about["session"]) == (
        "Bash",
        {"command": "make x"},
        project,
        "s1",
    )
    assert about["reasons"]
    clock.now += WAIT / 2
    assert [each["id"] for each in do("question.list")] == [second]


def test_secrets_are_masked_in_what_is_shown(do, question):
    question("make x TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB")
    assert "ghp_0123456789" not in str(do("question.list"))


@pytest.mark.parametrize("answer", ["approved", "denied"])
def test_an_answer_is_kept_with_who_gave_it(do, question, pipeline, asked, answer):
    asking = question()
    assert do("question.answer", id=asking, answer=answer, message="because") == {
        "id": asking,
        "answer": answer,
        "message": "because",
        "awaited": False,
    }
    settled = get_question(pipeline.store, asking)
    assert (settled.state, settled.actor, settled.channel) == (answer, asked.actor, "terminal")
    assert do("question.list") == []


def test_the_first_answer_stands(do, question, asked):
    asking = question()
    do("question.answer", id=asking, answer="denied")
    with pytest.raises(InputError, match=f"settled already: denied by {asked.actor}"):
        do("question.answer", id=asking, answer="approved")


def test_a_question_that_ran_out_is_a_no(do, question, clock):
    asking = question()
    clock.now += WAIT
    with pytest.raises(InputError, match="expired"):
        do("question.answer", id=asking, answer="approved")


def test_the_beginning_of_an_id_is_enough_while_it_is_clear(do, question, clock):
    first = question("make x")
    clock.now += 10
    second = question("make y")
    with pytest.raises(NotFoundError):
        do("question.answer", id="zzz", answer="denied")
    with pytest.raises(NotFoundError):
        do("question.answer", id="", answer="denied")
    with pytest.raises(InputError, match="More than one"):
        do("question.answer", id=first[:1], answer="denied")
    assert do("question.answer", id=second[:9], answer="denied")["id"] == second


def test_it_is_said_whether_somebody_waits_for_the_answer(do, question, pipeline):
    asking = question()
    with pipeline.broker.awaiting(asking, pipeline.broker.call(asking)):
        assert do("question.answer", id=asking, answer="approved")["awaited"] is True


def test_other_words_are_no_answer(do, question):
    with pytest.raises(InputError, match="no answer"):
        do("question.answer", id=question(), answer="expired")


def test_a_deny_written_meanwhile_outranks_the_yes(do, question, pipeline):
    asking = question("make x")
    do("rule.add", rule={"action": "deny", "tool": "Bash", "reason": "not any more"})
    came = do("question.answer", id=asking, answer="approved")
    assert came["answer"] == "denied"
    assert "policy of this moment" in came["message"]


def test_a_yes_for_the_session_covers_the_same_call_again(do, question, pipeline, project):
    from checkrein.call import tool_call

    do("question.answer", id=question("make x"), answer="approved", for_session=True)
    raw = {"tool": "Bash", "arguments": {"command": "make x"}, "project": project, "session": "s1"}
    assert pipeline.decide(tool_call(raw)).verdict.word == "allow"
    raw["arguments"] = {"command": "make z"}
    assert pipeline.decide(tool_call(raw)).verdict.word == "ask"


def test_edited_arguments_are_judged_too(do, question, pipeline):
    asking = question("make x")
    with pytest.raises(InputError, match="Nobody waits"):
        do("question.answer", id=asking, answer="approved", edited={"command": "make y"})
    with pipeline.broker.awaiting(asking, pipeline.broker.call(asking)):
        with pytest.raises(InputError, match="would be refused"):
            do("question.answer", id=asking, answer="approved", edited={"command": "curl https://x.invalid/"})
        came = do("question.answer", id=asking, answer="approved", edited={"command": "make y"})
    assert came["answer"] == "approved"
