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
    with pipeline.broker.awaiting(asking):
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
    with pipeline.broker.awaiting(asking):
        with pytest.raises(InputError, match="would be refused"):
            do("question.answer", id=asking, answer="approved", edited={"command": "curl https://x.invalid/"})
        came = do("question.answer", id=asking, answer="approved", edited={"command": "make y"})
    assert came["answer"] == "approved"


@pytest.mark.invariant("the beginning of a question's id never names another one once the first is settled")
def test_the_beginning_of_a_settled_question_never_names_the_next_one(do, question):
    first, second = question("make x"), question("make y")
    start = first[: next(number for number, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)]
    do("question.answer", id=first, answer="denied")
    with pytest.raises(InputError, match="More than one"):
        do("question.answer", id=start, answer="approved")
    with pytest.raises(InputError, match="settled already"):
        do("question.answer", id=first[:-1], answer="approved")
    assert [each["id"] for each in do("question.list")] == [second]


def test_what_can_be_remembered_is_offered_narrowest_first(do, question):
    question("make x")
    question("rm a")
    found = {each["input"]["command"]: each["offers"] for each in do("question.list")}
    assert found["make x"] == [
        {"what": "exact", "label": "exactly this call"},
        {"what": "family", "label": "`make x` in this project, with no other effect than now"},
    ]
    assert [each["what"] for each in found["rm a"]] == ["exact"]


def test_a_question_says_in_plain_words_what_would_happen_and_how_bad(do, question):
    question("rm -r build")
    (found,) = do("question.list")
    assert found["danger"] == ["deletes"]
    assert found["summary"].endswith("/build.")
    assert "deletes" in found["summary"]


def test_the_same_question_several_times_stands_once(do, question, pipeline):
    first, second = question("make x"), question("make x")
    (found,) = do("question.list")
    assert (found["id"], found["same"]) == (first, 2)
    do("question.answer", id=first, answer="approved")
    assert get_question(pipeline.store, second).state == "approved"
    assert do("question.list") == []


@pytest.mark.parametrize(
    ("remember", "covered"),
    [
        ({"what": "exact", "for": "session"}, {"git commit -m x": True, "git commit -m y": False}),
        ({"what": "family", "for": "always"}, {"git commit -m x": True, "git commit -m y": True}),
        ({"what": "family", "for": "uses", "uses": 1}, {"git commit -m y": True, "git commit -m z": False}),
        ({"for": "session"}, {"git commit -m x": True, "git commit -m y": False}),
    ],
)
def test_a_yes_reaches_as_far_as_the_person_says(do, question, pipeline, project, remember, covered):
    from checkrein.call import tool_call

    came = do("question.answer", id=question("git commit -m x"), answer="approved", remember=remember)
    (grant,) = do("grant.list")
    assert came["grant"] == grant["id"]
    for command, allowed in covered.items():
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": "s1"}
        assert (pipeline.decide(tool_call(raw)).verdict.word == "allow") is allowed, command


@pytest.mark.parametrize(
    "remember",
    [
        {"for": "ever"},
        {"for": "until"},
        {"for": "uses", "uses": 0},
        {"for": "uses", "uses": 2**80},
        {"for": "until", "until": 1.0},
        {"for": "until", "until": 1e300},
        {"what": "everything"},
        {"what": "tool"},
        {"what": "family", "for": "session", "more": 1},
        "always",
    ],
)
def test_what_cannot_be_remembered_settles_nothing(do, question, pipeline, remember):
    asking = question("make x")
    with pytest.raises(InputError):
        do("question.answer", id=asking, answer="approved", remember=remember)
    assert get_question(pipeline.store, asking).state == "asked"
    assert do("grant.list") == []


@pytest.mark.parametrize("answer", ["denied", "answered"])
def test_only_a_yes_is_remembered(do, question, answer):
    asking = question("make x")
    more = {"result": "done"} if answer == "answered" else {}
    with pytest.raises(InputError, match="Only a yes"):
        do("question.answer", id=asking, answer=answer, remember={"what": "exact"}, **more)


def test_a_person_answers_for_the_tool(do, question, pipeline):
    asking = question("make x")
    for wrong in ({"answer": "answered"}, {"answer": "approved", "result": "x"}):
        with pytest.raises(InputError, match="result"):
            do("question.answer", id=asking, **wrong)
    assert do("question.answer", id=asking, answer="answered", result="It is built.")["answer"] == "answered"
    settled = get_question(pipeline.store, asking)
    assert (settled.state, settled.message) == ("answered", "It is built.")


def test_several_answers_at_once_each_with_its_own_choice(do, question, pipeline):
    first, second, third = question("make x"), question("make y"), question("rm a")
    came = do(
        "question.answer_all",
        answers=[
            {"id": first, "answer": "approved", "remember": {"what": "family"}},
            {"id": "nobody", "answer": "approved"},
            {"id": third, "answer": "approved", "remember": {"what": "family"}},
            {"id": second, "answer": "denied", "message": "no"},
            {"answer": "approved"},
        ],
    )
    assert [each.get("answer", "error") for each in came] == ["approved", "error", "error", "denied", "error"]
    assert [get_question(pipeline.store, each).state for each in (first, second, third)] == [
        "approved",
        "denied",
        "asked",
    ]


def test_who_signed_in_answers_through_the_console(asked, question, pipeline):
    import msgspec

    from checkrein.authority import perform

    asking = question()
    perform(
        msgspec.structs.replace(asked, signed_in=True), "question.answer", {"id": asking, "answer": "denied"}
    )
    assert get_question(pipeline.store, asking).channel == "console"


def test_of_two_people_at_once_one_answers_and_the_other_is_told(do, question):
    import threading

    asking, came = question("make x"), []

    def answer(word):
        try:
            came.append(do("question.answer", id=asking, answer=word)["answer"])
        except InputError as error:
            came.append(error.message)

    threads = [threading.Thread(target=answer, args=(word,)) for word in ("approved", "denied")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([each for each in came if each in ("approved", "denied")]) == 1
    assert any("settled already" in each or "waits for no answer" in each for each in came)
