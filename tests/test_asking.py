"""Remembered answers, releases and refusals that answer themselves, through the whole pipeline."""

import threading

import msgspec
import pytest
from ground import FULL, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.asking import Answerer, Remember, release_key
from checkrein.call import tool_call
from checkrein.core.decision import DecisionRequest
from checkrein.errors import InputError
from checkrein.ledger.entries import body_of_row
from checkrein.ledger.query import Filter, entries
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings
from checkrein.settings.sources import state_dir
from checkrein.store import questions, records, rules
from checkrein.store.conversation_runs import CALL, add_call
from checkrein.store.conversations import insert
from checkrein.store.grants import all_grants, end_session_grants, revoke_grant
from checkrein.store.phases import set_phase
from checkrein.store.releases import add_release
from doors.hooks.agent import ATTENDED, Agent, said
from patience import PATIENCE, until

LIMITS = Settings().approval
EVERY = ("session", "until", "uses", "always")
TIMES = 1_000 if FULL else 100


@pytest.fixture(autouse=True)
def building(pipeline):
    pipeline.store.write(lambda tx: set_phase(tx, "building", 1.0))


@pytest.fixture
def bash(project):
    def make(command="make x", **more):
        base = {"tool": "Bash", "project": project, "cwd": project, "session": "s1", "user": "ada"}
        return tool_call({**base, "agent": "claude-code", "arguments": {"command": command}, **more})

    return make


def ask(pipeline, call):
    decided = pipeline.decide(call, asking=True)
    assert decided.verdict.word == "ask", decided.verdict
    return decided.entry


def say(pipeline, entry, answer="approved", channel="terminal", **more):
    return pipeline.answer(entry, answer, actor="ada", channel=channel, **more)


def remember(pipeline, call, what="family", span="session", **more):
    """A person says yes to a call and lets it reach further."""
    entry = ask(pipeline, call)
    say(pipeline, entry, remember=Remember(what=what, span=span, **more))
    (made,) = [each for each in all_grants(pipeline.store) if each.entry == entry]
    return made


def word(pipeline, call, **more):
    return pipeline.decide(call, **more).verdict.word


def kinds(pipeline):
    return [row[2] for row in records.after(pipeline.store, 0)]


def state(pipeline, entry):
    return questions.get_question(pipeline.store, entry).state


def at_once(count, work):
    gate = threading.Barrier(count)
    found = [None] * count

    def go(number):
        gate.wait()
        found[number] = work(number)

    threads = [threading.Thread(target=go, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def put_rule(pipeline, action, **more):
    body = {"action": action, "tool": "Bash", **more}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, f"r-{action}", body, 1.0))


# -- how far a yes reaches ------------------------------------------------------------------------------


def test_a_family_covers_its_like_and_says_who_said_so(pipeline, bash):
    made = remember(pipeline, bash("git commit -m x"))
    verdict = pipeline.decide(bash("git commit -m y")).verdict
    assert (verdict.word, verdict.stage, verdict.rule) == ("allow", "grant", made.id)
    assert "ada approved `git commit -m` in this project" in verdict.reasons[0].text
    assert word(pipeline, bash("git merge x")) == "ask"
    assert word(pipeline, bash("git commit --amend -m y")) == "ask"


@pytest.mark.invariant("what one agent was granted covers no other agent, user or door")
@pytest.mark.parametrize("what", ["exact", "family"])
def test_nobody_else_is_covered_and_nowhere_else(pipeline, bash, what):
    remember(pipeline, bash("make x"), what, "always")
    assert word(pipeline, bash("make x")) == "allow"
    for other in (
        {"project": "/elsewhere", "cwd": "/elsewhere"},
        {"user": "eve"},
        {"agent": "codex"},
        {"server": "shells"},
        {"tool": "Shell"},
        {"door": "gateway"},
        {"cwd": "/elsewhere"},
    ):
        assert word(pipeline, bash("make x", **other)) == "ask", other


@pytest.mark.invariant("an answer is never remembered for more than one tool of one server in one project")
@pytest.mark.invariant("what one agent was granted covers no other agent, user or door")
def test_a_tool_is_covered_for_whom_it_was_granted_and_for_nobody_else(pipeline, bash):
    query = {"tool": "mcp__db__query"}
    call = tool_call(msgspec.to_builtins(bash()) | query | {"arguments": {"sql": "select 1"}})
    remember(pipeline, call, "tool", "always")
    other = msgspec.structs.replace(call, arguments={"sql": "select 2"})
    assert word(pipeline, other) == "allow"
    for change in (
        {"tool": "drop"},
        {"server": "db2"},
        {"server": None},
        {"project": "/elsewhere"},
        {"user": "eve"},
        {"agent": "codex"},
    ):
        assert word(pipeline, msgspec.structs.replace(other, **change)) == "ask", change


@pytest.mark.invariant("an answer is never remembered for more than one tool of one server in one project")
def test_a_tool_that_is_no_servers_is_never_remembered_as_a_whole(pipeline, bash):
    entry = ask(pipeline, bash("make x"))
    with pytest.raises(InputError, match="as a whole"):
        say(pipeline, entry, remember=Remember(what="tool"))
    assert state(pipeline, entry) == "asked"
    assert all_grants(pipeline.store) == []


def test_what_is_high_or_opaque_is_remembered_word_for_word_only(pipeline, bash):
    for line in ("rm a", "python -c 'print(1)'"):
        entry = ask(pipeline, bash(line))
        with pytest.raises(InputError, match="exactly as it is"):
            say(pipeline, entry, remember=Remember(what="family"))
        say(pipeline, entry, remember=Remember(what="exact"))
        assert word(pipeline, bash(line)) == "allow"
    assert word(pipeline, bash("rm b")) == "ask"


@pytest.mark.parametrize("what", ["exact", "family"])
def test_a_session_ends_and_so_does_what_was_granted_for_it(pipeline, bash, what):
    remember(pipeline, bash("make x"), what)
    assert word(pipeline, bash("make x", session="s2")) == "ask"
    assert word(pipeline, bash("make x")) == "allow"
    pipeline.store.write(lambda tx: end_session_grants(tx, "s1", 1.0))
    assert word(pipeline, bash("make x")) == "ask"


@pytest.mark.parametrize("span", ["until", "uses", "always"])
@pytest.mark.parametrize("what", ["exact", "family"])
def test_other_spans_outlive_the_session(pipeline, bash, clock, what, span):
    more = {"until": {"until": clock() + 60}, "uses": {"uses": 5}, "always": {}}[span]
    remember(pipeline, bash("make x"), what, span, **more)
    pipeline.store.write(lambda tx: end_session_grants(tx, "s1", 1.0))
    assert word(pipeline, bash("make x", session="s2")) == "allow"


def test_until_is_until(pipeline, bash, clock):
    remember(pipeline, bash("make x"), "family", "until", until=clock() + 60)
    clock.now += 59.9
    assert word(pipeline, bash("make x")) == "allow"
    clock.now += 0.1
    assert word(pipeline, bash("make x")) == "ask"


@pytest.mark.parametrize("until", [-1.0, 0.0, 1e300])
def test_a_time_that_is_over_or_no_time_is_refused(pipeline, bash, until):
    entry = ask(pipeline, bash("make x"))
    with pytest.raises(InputError, match="until"):
        say(pipeline, entry, remember=Remember(span="until", until=until))
    assert state(pipeline, entry) == "asked"


@pytest.mark.parametrize(
    ("span", "more"),
    [
        ("until", {}),
        ("uses", {}),
        ("uses", {"uses": 0}),
        ("always", {"uses": 1}),
        ("session", {"until": 1.0}),
    ],
)
def test_how_far_must_make_sense(span, more):
    with pytest.raises(ValueError, match="goes with"):
        Remember(span=span, **more)


@pytest.mark.invariant("a yes that counts its uses is used once for every call it lets pass")
def test_uses_are_counted_and_run_out(pipeline, bash):
    made = remember(pipeline, bash("make x"), "exact", "uses", uses=2)
    assert [word(pipeline, bash("make x")) for _ in range(4)] == ["allow", "allow", "ask", "ask"]
    assert pipeline.store.query("SELECT used FROM grants WHERE id = ?", (made.id,)) == [(2,)]


def test_twenty_at_once_never_use_more_than_was_given(pipeline, bash):
    remember(pipeline, bash("make x"), "family", "uses", uses=7)
    words = at_once(20, lambda _: [word(pipeline, bash("make x")) for _ in range(3)])
    assert sum(each.count("allow") for each in words) == 7
    assert pipeline.store.query("SELECT used FROM grants") == [(7,)]


def test_looking_uses_nothing(pipeline, bash):
    remember(pipeline, bash("make x"), "exact", "uses", uses=1)
    for _ in range(3):
        assert pipeline.judge(bash("make x")).verdict.word == "allow"
    assert word(pipeline, bash("make x")) == "allow"
    assert word(pipeline, bash("make x")) == "ask"


@pytest.mark.invariant("a call that is held uses up no yes a person gave before")
def test_a_held_call_uses_up_no_yes(pipeline, bash):
    remember(pipeline, bash("make x"), "exact", "uses", uses=1)
    held = pipeline.decide(bash("make x"), ask_reason="everybody below has failed").verdict
    assert (held.word, held.stage) == ("ask", "hold")
    assert word(pipeline, bash("make x")) == "allow"


def test_revoked_means_from_the_next_call_on(pipeline, bash):
    made = remember(pipeline, bash("make x"), "family", "always")
    assert word(pipeline, bash("make x")) == "allow"
    assert pipeline.store.write(lambda tx: revoke_grant(tx, made.id, "ada", 1.0))
    assert word(pipeline, bash("make x")) == "ask"


def test_revoked_between_judging_and_recording_is_revoked(pipeline, bash):
    made = remember(pipeline, bash("make x"), "family", "always")
    evaluation = pipeline.evaluate(DecisionRequest(bash("make x")))
    assert evaluation.verdict.word == "allow"
    pipeline.store.write(lambda tx: revoke_grant(tx, made.id, "ada", 1.0))
    assert pipeline.commit(evaluation) is None
    assert word(pipeline, bash("make x")) == "ask"


@pytest.mark.parametrize("what", ["exact", "family"])
def test_no_yes_outranks_a_deny(pipeline, bash, what, user_settings):
    remember(pipeline, bash("make x"), what, "always")
    for phase in ("auditing", "planning", None):
        assert word(pipeline, bash("make x"), phase=phase) == "deny"
    put_rule(pipeline, "deny")
    assert pipeline.decide(bash("make x")).verdict.stage == "rules"
    user_settings("broken = [")
    assert word(pipeline, bash("make x")) == "deny"


def test_no_yes_reaches_the_floor(pipeline, bash):
    call = bash("curl https://x.example")
    risk, by = pipeline.judge(call).verdict.risk, Answerer("ada", "terminal")
    for what in ("exact", "family", "tool"):
        try:
            pipeline.store.write(
                lambda tx, what=what: pipeline.asking.remember(
                    tx, "e", call, risk, Remember(what=what, span="always"), by
                )
            )
        except InputError:
            assert what != "exact"
    assert pipeline.decide(call).verdict.stage == "floor"


def test_what_was_edited_is_what_is_remembered(pipeline, bash):
    entry = ask(pipeline, bash("git merge x"))
    with pipeline.broker.awaiting(entry):
        say(pipeline, entry, edited={"command": "git commit -m x"}, remember=Remember(what="family"))
    assert word(pipeline, bash("git merge x")) == "ask"
    assert word(pipeline, bash("git commit -m z")) == "allow"


def test_an_edit_into_something_with_no_family_is_not_remembered_as_one(pipeline, bash):
    entry = ask(pipeline, bash("git merge x"))
    with pipeline.broker.awaiting(entry), pytest.raises(InputError, match="exactly"):
        say(pipeline, entry, edited={"command": "rm a"}, remember=Remember(what="family"))
    assert state(pipeline, entry) == "asked"


def test_what_was_asked_before_a_restart_is_remembered_after_it(pipeline, bash, clock):
    entry = ask(pipeline, bash("make x"))
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    assert say(later, entry, remember=Remember()) == "approved"
    assert word(later, bash("make x")) == "allow"


def test_a_call_that_cannot_be_read_any_more_is_not_remembered(pipeline, bash, clock):
    entry = ask(pipeline, bash("make x"))
    (state_dir() / "questions.key").unlink()
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    with pytest.raises(InputError, match="cannot be read"):
        say(later, entry, remember=Remember())
    # What the agent's own dialog answered has run; that is on the record, and reaches no further.
    with pytest.raises(InputError, match="cannot be remembered"):
        say(later, entry, channel="agent", remember=Remember())
    assert all_grants(later.store) == [] and say(later, entry, channel="agent") == "approved"


def test_only_a_yes_is_remembered(pipeline, bash):
    entry = ask(pipeline, bash("make x"))
    with pytest.raises(InputError, match="Only a yes"):
        say(pipeline, entry, "denied", remember=Remember())
    assert state(pipeline, entry) == "asked"


def test_a_call_without_a_session_is_remembered_otherwise(pipeline, bash):
    entry = ask(pipeline, bash("make x", session=""))
    with pytest.raises(InputError, match="no session"):
        say(pipeline, entry, remember=Remember())
    say(pipeline, entry, remember=Remember(span="uses", uses=1))
    assert word(pipeline, bash("make x", session="")) == "allow"


def test_a_grant_is_on_the_record_with_its_answer(pipeline, bash):
    made = remember(pipeline, bash("make x"), "family", "uses", uses=3)
    told = {row[2]: body_of_row(row)["data"] for row in records.after(pipeline.store, 0)}
    assert told["answered"]["grant"] == told["granted"]["id"] == made.id
    assert (told["granted"]["actor"], told["granted"]["uses"]) == ("ada", 3)
    assert (made.made_by, made.channel) == ("ada", "terminal")


# -- the same call several times ------------------------------------------------------------------------


def test_identical_calls_that_wait_are_settled_together(pipeline, bash):
    waiting = [ask(pipeline, bash("make x")) for _ in range(4)]
    other = ask(pipeline, bash("make y"))
    heard = {}

    def wait(number):
        with pipeline.broker.awaiting(waiting[number]):
            heard[number] = pipeline.broker.wait(waiting[number], PATIENCE)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: all(pipeline.broker.is_awaited(each) for each in waiting))
    say(pipeline, waiting[0], message="go on")
    for thread in threads:
        thread.join()
    assert {each.state for each in heard.values()} == {"approved"}
    assert state(pipeline, other) == "asked"
    found = {each.id: each for each in entries(pipeline.store, Filter())}
    assert [found[each].answer for each in waiting] == ["approved"] * 4
    assert kinds(pipeline).count("answered") == 4
    for each in waiting:
        with pytest.raises(InputError):
            say(pipeline, each, "denied")


@pytest.mark.parametrize(
    "change", [{"session": "s2"}, {"user": "eve"}, {"agent": "codex"}, {"cwd": "/elsewhere"}]
)
def test_the_same_words_of_somebody_else_or_somewhere_else_are_another_question(pipeline, bash, change):
    first, second = ask(pipeline, bash("make x")), ask(pipeline, bash("make x", **change))
    say(pipeline, first)
    assert state(pipeline, second) == "asked"
    third = ask(pipeline, bash("make y", **change))
    say(pipeline, third, "denied")
    ask(pipeline, bash("make y"))


@pytest.mark.invariant("a caller that went away, an edit and a dialog of the agent's speak for one call")
def test_an_edited_yes_is_for_the_one_call_it_was_written_for(pipeline, bash):
    first, second = ask(pipeline, bash("make x")), ask(pipeline, bash("make x"))
    with pipeline.broker.awaiting(first):
        say(pipeline, first, edited={"command": "make y"})
    assert (state(pipeline, first), state(pipeline, second)) == ("approved", "asked")


@pytest.mark.invariant("a caller that went away, an edit and a dialog of the agent's speak for one call")
@pytest.mark.parametrize(
    ("answer", "channel"), [("expired", "timeout"), ("cancelled", "agent"), ("approved", "agent")]
)
def test_what_no_person_said_to_all_settles_one(pipeline, bash, answer, channel):
    """One caller that goes away, runs out of time, or was answered in its own dialog speaks for itself."""
    first, second = ask(pipeline, bash("make x")), ask(pipeline, bash("make x"))
    say(pipeline, first, answer, channel)
    assert (state(pipeline, first), state(pipeline, second)) == (answer, "asked")


@pytest.mark.invariant(
    "a yes in a conversation or to a script is to one call, also where it made the same twice"
)
def test_an_answer_in_a_conversation_leaves_the_same_call_beside_it_open(pipeline, bash):
    first, second = ask(pipeline, bash("make x")), ask(pipeline, bash("make x"))
    times = dict.fromkeys(("created_at", "started_at", "completed_at"), 0.0)
    texts = dict.fromkeys("title color provider model project system head tainted_by".split(), "")
    free = {"message_count": 0, "tools_off": "[]", "metadata": "{}", "created_at": 1.0, "updated_at": 1.0}

    def converse(tx):
        insert(tx, "chat_session", {"id": "s1", "presence": "here", **texts, **free})
        for entry in (first, second):
            named = {"run": "r", "session": "s1", "call_id": entry, "entry": entry, "asked": True}
            add_call(tx, {**dict.fromkeys(CALL, ""), **times, **named})

    pipeline.store.write(converse)
    say(pipeline, first)
    assert (state(pipeline, first), state(pipeline, second)) == ("approved", "asked")


def test_a_no_answers_itself_for_a_while(pipeline, bash, clock):
    entry = ask(pipeline, bash("make x"))
    clock.now += LIMITS.timeout_seconds - 1
    say(pipeline, entry, "denied", message="not on a Friday")
    clock.now += LIMITS.repeat_seconds - 1
    again = pipeline.decide(bash("make x"), asking=True).verdict
    assert (again.word, again.stage) == ("deny", "repeat")
    assert "ada said no" in again.reasons[0].text
    assert "not on a Friday" in again.reasons[0].text
    assert questions.waiting(pipeline.store) == []
    ask(pipeline, bash("make y"))
    ask(pipeline, bash("make x", session="s2"))
    clock.now += 1.1
    ask(pipeline, bash("make x"))


@pytest.mark.invariant("a no in a dialog of the agent's is to one call")
def test_a_no_in_the_agents_dialog_is_to_one_call(pipeline, bash):
    say(pipeline, ask(pipeline, bash("make x")), "denied", channel="agent")
    assert pipeline.decide(bash("make x"), asking=True).asked


@pytest.mark.parametrize(
    ("answer", "channel"), [("expired", "timeout"), ("cancelled", "agent"), ("cancelled", "none")]
)
def test_only_what_a_person_said_is_repeated(pipeline, bash, answer, channel):
    say(pipeline, ask(pipeline, bash("make x")), answer, channel)
    ask(pipeline, bash("make x"))


def test_a_yes_that_the_policy_overruled_is_no_no(pipeline, bash):
    entry = ask(pipeline, bash("make x"))
    put_rule(pipeline, "deny")
    assert say(pipeline, entry) == "denied"
    pipeline.note("rule_changed", {}, lambda tx: rules.delete_rule(tx, "r-deny"))
    ask(pipeline, bash("make x"))


def test_a_no_is_asked_again_at_once_where_the_user_wants_so(pipeline, bash, user_settings):
    user_settings("[approval]\nrepeat_seconds = 0")
    say(pipeline, ask(pipeline, bash("make x")), "denied")
    ask(pipeline, bash("make x"))


def test_no_session_floods_people(pipeline, bash):
    waiting = [ask(pipeline, bash(f"make x{number}")) for number in range(LIMITS.most_waiting)]
    more = pipeline.decide(bash("make more"), asking=True).verdict
    assert (more.word, more.stage) == ("deny", "flood")
    assert "checkrein inbox" in more.remedy
    ask(pipeline, bash("make more", session="s2"))
    assert word(pipeline, bash("ls"), asking=True) == "allow"
    say(pipeline, waiting[0], "denied")
    ask(pipeline, bash("make more"))


def test_no_session_floods_people_however_many_calls_come_at_once(pipeline, bash):
    words = at_once(40, lambda number: word(pipeline, bash(f"make x{number}"), asking=True))
    assert words.count("ask") == LIMITS.most_waiting
    assert words.count("deny") == 40 - LIMITS.most_waiting
    assert len(questions.waiting(pipeline.store)) == LIMITS.most_waiting


@pytest.mark.invariant("no session has more questions waiting than it may, however many calls come at once")
def test_calls_that_were_judged_before_the_room_was_full_are_no_more_questions_than_others(pipeline, bash):
    calls = [bash(f"make x{number}") for number in range(LIMITS.most_waiting + 2)]
    judged = [pipeline.add_question(pipeline.evaluate(DecisionRequest(each))) for each in calls]
    assert all(each.asks for each in judged)
    decided = [pipeline.commit(each) for each in judged]
    assert decided[-2:] == [None, None] and all(each.asked for each in decided[:-2])
    again = [pipeline.decide(each, asking=True).verdict.stage for each in calls[-2:]]
    assert again == ["flood", "flood"]
    assert len(questions.waiting(pipeline.store)) == LIMITS.most_waiting


# -- releases -------------------------------------------------------------------------------------------

CRITICAL = "curl https://x.example"


@pytest.fixture
def release(pipeline, clock):
    def make(call, seconds=300.0):
        entry = pipeline.decide(call).entry
        key = release_key(call.project, call.server, call.tool, call.argument_hash, call.cwd)
        pipeline.store.write(lambda tx: add_release(tx, entry, key, clock(), clock() + seconds, "ada"))
        return entry

    return make


def test_a_release_lets_exactly_that_call_pass_once(pipeline, bash, release):
    release(bash(CRITICAL))
    for other in (
        bash(f"{CRITICAL}/y"),
        bash(CRITICAL, cwd="/elsewhere"),
        bash(CRITICAL, project="/elsewhere"),
        bash(CRITICAL, tool="Shell"),
        bash(CRITICAL, server="shells"),
    ):
        assert word(pipeline, other) != "allow"
    verdict = pipeline.decide(bash(CRITICAL)).verdict
    assert (verdict.word, verdict.stage) == ("allow", "release")
    assert word(pipeline, bash(CRITICAL)) == "deny"


def test_a_release_holds_in_another_session_too_and_runs_out(pipeline, bash, release, clock):
    release(bash(CRITICAL), seconds=10.0)
    clock.now += 9.9
    assert pipeline.judge(bash(CRITICAL, session="s2")).verdict.word == "allow"
    clock.now += 0.1
    assert word(pipeline, bash(CRITICAL, session="s2")) == "deny"


def test_a_release_never_passes_a_rule_or_a_phase(pipeline, bash, release):
    release(bash(CRITICAL))
    for phase in ("planning", "auditing", None):
        assert word(pipeline, bash(CRITICAL), phase=phase) == "deny"
    put_rule(pipeline, "deny")
    assert word(pipeline, bash(CRITICAL)) == "deny"
    pipeline.note("rule_changed", {}, lambda tx: rules.delete_rule(tx, "r-deny"))
    assert word(pipeline, bash(CRITICAL)) == "allow", "what was refused used nothing up"


def test_of_many_who_use_a_release_at_once_one_does(pipeline, bash, release):
    release(bash(CRITICAL))
    words = at_once(8, lambda number: word(pipeline, bash(CRITICAL, session=f"s{number}")))
    assert sorted(words) == ["allow"] + ["deny"] * 7


# -- two people at once ---------------------------------------------------------------------------------


def test_of_two_answers_at_once_one_stands_every_time_and_its_grant_is_made_once(
    pipeline, bash, user_settings
):
    user_settings("[approval]\nmost_waiting = 2000")
    waiting = [ask(pipeline, bash(f"make x{number}")) for number in range(TIMES)]
    yes = Remember(what="exact", span="always")
    came = {}

    def person(name):
        def answer(entry):
            try:
                said = pipeline.answer(entry, "approved", actor=name, channel="terminal", remember=yes)
            except InputError:
                said = "late"
            came[name, entry] = said

        return answer

    def both(number):
        answer = person(("ada", "bob")[number])
        for entry in waiting:
            answer(entry)

    at_once(2, both)
    for entry in waiting:
        assert sorted((came["ada", entry], came["bob", entry])) == ["approved", "late"]
        winner = "ada" if came["ada", entry] == "approved" else "bob"
        assert questions.get_question(pipeline.store, entry).actor == winner
    assert len(all_grants(pipeline.store)) == TIMES
    assert {each.made_by for each in all_grants(pipeline.store)} <= {"ada", "bob"}
    assert kinds(pipeline).count("answered") == kinds(pipeline).count("granted") == TIMES


# -- secrets --------------------------------------------------------------------------------------------

SECRET = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyzAB"


@pytest.mark.invariant("what people say is masked before it is kept, as what agents say is")
@pytest.mark.parametrize(
    "line",
    [
        f"API_TOKEN={SECRET} make x",
        f"python a.py --token {SECRET}",
        f"python a.py {'x' * 70} {SECRET}",
        f"make {SECRET}",
        f"git commit -m {SECRET}",
        f"frobnicate https://ada:{SECRET}@localhost/x",
        f"curl -H 'Authorization: Bearer {SECRET}' localhost:1",
        f"sqlite3 a.db \"delete from x where token = '{SECRET}'\"",
        f"echo {SECRET} > notes.txt",
        f"mkdir {SECRET}",
    ],
)
def test_no_secret_reaches_the_store(pipeline, bash, line):
    from checkrein.approval.families import offers
    from checkrein.authority.question import described

    entry = ask(pipeline, bash(line))
    shown = described(pipeline.store, questions.get_question(pipeline.store, entry))
    mask = pipeline.policies.of(bash().project).redactor.text
    labels = [each.label for each in offers(bash(line), pipeline.judge(bash(line)).verdict.risk, mask)]
    what = "family" if len(labels) > 1 else "exact"
    say(pipeline, entry, remember=Remember(what=what, span="always"), message=f"use {SECRET} for it")
    pipeline.decide(bash(line))
    say(pipeline, ask(pipeline, bash("make other")), "answered", message=f"token={SECRET}")
    pipeline.store.query("SELECT 1")
    whole = b"".join(path.read_bytes() for path in pipeline.store.folder.rglob("*") if path.is_file())
    for piece in (SECRET, SECRET[:20], SECRET[-20:]):
        assert piece.encode() not in whole
        assert piece not in str(shown) + str(labels)


# -- whatever happens -----------------------------------------------------------------------------------

LINES = ("make x", "make y", "git commit -m a", "git commit -m b", "git add a", "rm a", "go build ./...")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.sampled_from(LINES), st.sampled_from(["s1", "s2"])),
        st.tuples(st.just("yes"), st.sampled_from(["exact", "family"]), st.sampled_from(EVERY)),
        st.tuples(st.just("no"), st.just(""), st.just("")),
        st.tuples(st.just("later"), st.sampled_from(["1", "100", "400"]), st.just("")),
    ),
    max_size=25,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_nothing_runs_that_nobody_said_yes_to(pipeline, bash, clock, steps):
    """Whatever is asked, answered and remembered: an allow of what would ask rests on a living grant."""
    pipeline.store.write(lambda tx: tx.execute("DELETE FROM grants"))
    pipeline.store.write(lambda tx: tx.execute("DELETE FROM question"))
    asked = {}
    for step, first, second in steps:
        open_ones = questions.waiting(pipeline.store)
        if step == "call":
            before = {each.id: each for each in all_grants(pipeline.store)}
            decided = pipeline.decide(bash(first, session=second), asking=True)
            verdict, asked[decided.entry] = decided.verdict, first
            if verdict.word == "allow":
                used = before[verdict.rule]
                assert used.until is None or used.until > clock()
                assert used.uses is None or used.used < used.uses
                assert used.session in ("", second)
                said = asked[used.entry]
                assert said == first or (used.what == "family" and "commit" in said and "commit" in first)
        elif step == "later":
            clock.now += float(first)
        elif open_ones:
            more = {"until": {"until": clock() + 50}, "uses": {"uses": 2}}.get(second, {})
            how = Remember(what=first, span=second, **more) if step == "yes" else None
            try:
                say(pipeline, open_ones[0].entry, "approved" if how else "denied", remember=how)
            except InputError:
                assert first == "family" or open_ones[0].expires_at <= clock()


# -- a yes in the agent's own dialog --------------------------------------------------------------------


@pytest.fixture
def dialog(pipeline, project):
    """An agent with a person before it, who says yes to whatever its dialog shows."""
    agent = Agent(pipeline, project)

    def run(command, call, *, ran=None):
        word = said(agent.call(command, call, facts=ATTENDED))
        if word != "deny":
            agent.done(ran or command, call)
        return word

    return run


def test_a_yes_in_the_dialog_is_for_once_unless_the_user_wants_more(pipeline, dialog, user_settings):
    assert [dialog("git commit -m x", f"t{number}") for number in range(2)] == ["ask", "ask"]
    assert all_grants(pipeline.store) == []
    user_settings('[approval]\nremember_native = "session"')
    assert dialog("git commit -m y", "t3") == "ask"
    assert dialog("git commit -m z", "t4") == "allow"
    (made,) = all_grants(pipeline.store)
    assert (made.what, made.session, made.channel, made.until) == ("family", "s-1", "agent", None)


def test_a_yes_in_the_dialog_to_what_is_high_or_opaque_is_for_once(pipeline, dialog, user_settings):
    user_settings('[approval]\nremember_native = "session"')
    for line in ("rm a", "python -c 'print(1)'", "make $X"):
        assert [dialog(line, f"{line} {number}") for number in range(2)] == ["ask", "ask"]
    assert all_grants(pipeline.store) == []


def test_a_call_changed_in_the_dialog_leaves_no_memory_of_the_one_that_was_asked(
    pipeline, dialog, user_settings
):
    user_settings('[approval]\nremember_native = "session"')
    assert dialog("git commit -m x", "t1", ran="git merge x") == "ask"
    assert dialog("git commit -m x", "t2") == "ask"
