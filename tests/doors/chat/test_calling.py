"""One tool call of a conversation: judged, asked about, carried out at most once, and told whole."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from chat_ground import Came, Rules, Talk, Tools, calls, kill, opened, says, text_result, tool
from checkrein.authority.chat_requests import Approve
from checkrein.doors.chat import Invocation, Part, Run
from checkrein.errors import InputError, NotFoundError
from checkrein.settings.sources import state_dir
from patience import PATIENCE, soon, until

GET, PUT = "/call notes__get {}", '/call notes__put {"a": 1}'


def statuses(talk, run=""):
    return [each.status for each in talk.calls(run)]


def test_what_a_rule_allows_is_not_asked(talk, rules):
    rules.add("allow", "put")
    assert talk.finish(PUT, "/then", "/results") == "end"
    assert "approval_required" not in talk.kinds()
    assert talk.tools.ran == [("notes__put", {"a": 1})]
    assert "ran put {'a': 1}" in talk.answer()
    talk.check()


def test_what_a_rule_denies_is_told_with_its_reason(talk, rules):
    rules.add("deny", "put", reason="notes are mine")
    assert talk.finish(PUT, "/then", "/results") == "end"
    assert talk.tools.ran == []
    assert statuses(talk) == ["denied"]
    assert "notes are mine" in talk.answer()
    talk.check()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_parallel_calls_are_approved_in_any_order(talk, order):
    run = talk.say('/call notes__put {"n": 0}', '/call notes__put {"n": 1}', "/then", "/results")
    asked = sorted(talk.asked(2), key=lambda each: each["call_id"])
    for number in order:
        talk.approve(asked[number])
    assert talk.over(run) == "end"
    assert sorted(each["n"] for _, each in talk.tools.ran) == [0, 1]
    assert statuses(talk) == ["completed", "completed"]
    assert "'n': 0" in talk.answer()
    assert "'n': 1" in talk.answer()
    talk.check()


def test_one_is_approved_and_one_declined(talk):
    run = talk.say('/call notes__put {"n": 0}', '/call notes__put {"n": 1}', "/then", "/results")
    first, second = sorted(talk.asked(2), key=lambda each: each["call_id"])
    talk.decline(second, "not that one")
    talk.approve(first)
    assert talk.over(run) == "end"
    assert talk.tools.ran == [("notes__put", {"n": 0})]
    assert statuses(talk) == ["completed", "denied"]
    assert "not that one" in talk.answer()
    talk.check()


def test_after_an_approval_the_next_call_asks_again(talk):
    run = talk.say('/call notes__put {"n": 0}', "/then", '/call notes__put {"n": 1}', "/then", "/results")
    talk.approve(*talk.asked())
    talk.until("approval_required", since=0, count=2)
    talk.approve(*talk.asked())
    assert talk.over(run) == "end"
    assert [each["n"] for _, each in talk.tools.ran] == [0, 1]
    talk.check()


def test_a_reason_reaches_the_model_and_the_call_is_denied(talk):
    run = talk.say(PUT, "/then", "/say done")
    (asked,) = talk.asked()
    talk.decline(asked, "the moon is not full")
    assert talk.over(run) == "end"
    told = talk.models.results()[asked["call_id"]]
    assert "the moon is not full" in told.content
    assert told.outcome == "denied"
    (call,) = talk.calls()
    assert (call.status, call.answered_by, call.verdict) == ("denied", "ada", "denied")
    assert talk.tools.ran == []
    talk.check()


def test_status_time_and_output_are_whole_in_the_conversation_and_on_the_record(talk):
    ahead, clock = [0.0], talk.pipeline.clock
    talk.pipeline.clock = lambda: clock() + ahead[0]

    async def slowly(_call, _progress):
        ahead[0] = 5.0
        return text_result("42")

    talk.tools.does["notes__put"] = slowly
    run = talk.say(PUT)
    talk.approve(*talk.asked(), reason="go on")
    talk.over(run)
    (call,) = talk.calls()
    assert (call.status, call.verdict, call.answered_by) == ("completed", "approved", "ada")
    assert call.output == {"content": [{"type": "text", "text": "42"}]}
    assert call.completed_at - call.started_at >= 5
    (view,) = talk.chat.session(id=talk.id)["calls"].values()
    assert view["milliseconds"] >= 5_000
    entry = talk.entry(call)
    assert (entry.door, entry.answer, entry.outcome) == ("chat", "approved", "success")
    assert entry.completed_at is not None
    talk.check()


def test_a_yes_from_many_threads_at_once_runs_the_call_once(talk):
    run = talk.say(PUT, "/then", "/say done")
    (asked,) = talk.asked()
    together = threading.Barrier(16)

    def yes(_number):
        together.wait()
        try:
            return talk.approve(asked)["answer"]
        except InputError:
            return "late"

    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(yes, range(16)))
    assert talk.over(run) == "end"
    assert said.count("approved") == 1
    assert len(talk.tools.ran) == 1
    talk.check()


def test_a_yes_and_a_no_at_once_are_one_of_the_two(talk):
    for number in range(5):
        ran = len(talk.tools.ran)
        run = talk.say(f'/call notes__put {{"n": {number}}}', "/then", "/say done")
        (asked,) = talk.asked()
        together = threading.Barrier(2)

        def tell(word, asked=asked, together=together):
            together.wait()
            try:
                return word(asked)["answer"]
            except InputError:
                return ""

        with ThreadPoolExecutor(2) as pool:
            yes, no = pool.map(tell, (talk.approve, talk.decline))
        talk.over(run)
        assert (yes, no) in (("approved", ""), ("", "denied"))
        assert len(talk.tools.ran) - ran == (yes == "approved")
        talk.check()


def test_a_second_answer_and_one_to_nothing_are_refused_in_words(talk):
    run = talk.say(PUT)
    (asked,) = talk.asked()
    talk.approve(asked)
    talk.over(run)
    with pytest.raises(InputError, match="waits for no answer"):
        talk.approve(asked)
    with pytest.raises(NotFoundError):
        talk.chat.approve(run=run, call="nothing", actor="ada")


@pytest.mark.parametrize("asked", [True, False])
def test_two_who_work_on_one_call_carry_it_out_once(talk, rules, asked):
    """INVARIANT: a call is carried out at most once, whatever is clicked, resumed or restarted."""
    run = Run(id="r", session=talk.id, provider="demo", model="demo")
    message = talk.store.add_message(talk.id, "assistant", [Part(text="so")], run="r")
    talk.store.add_run(run)
    call = Invocation(
        run="r",
        call_id="c",
        session=talk.id,
        message=message.id,
        name="notes__put",
        server="notes",
        tool="put",
        arguments={},
    )
    talk.store.put_call(call)
    if not asked:
        rules.add("allow", "put")

    async def twice():
        session = talk.store.get(talk.id)
        first = asyncio.ensure_future(talk.chat._calling.settle(run, session, call))
        if asked:
            await soon(lambda: talk.store.call("r", "c").asked)
        again = talk.store.call("r", "c") if asked else call
        second = asyncio.ensure_future(talk.chat._calling.settle(run, session, again))
        if asked:
            await asyncio.to_thread(talk.asked)
            await asyncio.to_thread(talk.chat.approve, run="r", call="c", actor="ada")
        return await asyncio.gather(first, second)

    talk.chat._do(twice())
    assert len(talk.tools.ran) == 1
    assert talk.store.call("r", "c").status == "completed"


# -- what changes while somebody is asked ---------------------------------------------------------------


def test_a_rule_that_comes_while_a_call_waits_outranks_the_yes(talk, rules):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    rules.add("deny", "put", reason="since just now")
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == []
    assert statuses(talk) == ["denied"]
    assert "since just now" in talk.answer()
    talk.check()


def test_a_rule_that_allows_takes_no_question_back(talk, rules):
    run = talk.say(PUT, "/then", "/say done")
    (asked,) = talk.asked()
    rules.add("allow", "put")
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert len(talk.tools.ran) == 1
    talk.check()


def test_a_tool_whose_definition_changed_meanwhile_is_not_called(talk):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    talk.tools.all["notes__put"] = tool("notes__put", definition="another")
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == []
    assert statuses(talk) == ["error"]
    assert "definition changed" in talk.answer()
    talk.check()


def test_a_server_that_is_gone_meanwhile_is_told(talk):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    del talk.tools.all["notes__put"]
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == []
    assert "There is no tool" in talk.answer()
    talk.check()


def test_a_tool_that_is_turned_off_meanwhile_is_not_called(talk):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    talk.chat.update(id=talk.id, tools_off=["notes__put"])
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == []
    assert "turned off" in talk.answer()
    talk.check()


def test_a_question_nobody_answers_in_time_is_a_no(talking, user_settings):
    user_settings("[chat]\nanswer_hours = 0.01")
    talk = talking()
    ahead = [0.0]
    clock = talk.pipeline.clock
    talk.pipeline.clock = lambda: clock() + ahead[0]
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    until(lambda: talk.pipeline.broker.is_awaited(asked["entry"]))
    ahead[0] = 400.0
    # Whoever waits looks by himself; the word only makes it sooner.
    talk.pipeline.broker.settled(asked["entry"])
    assert talk.over(run) == "end"
    assert talk.tools.ran == []
    assert "nobody answered in time" in talk.answer()
    talk.check()


# -- other arguments ------------------------------------------------------------------------------------


def test_what_a_person_wrote_instead_is_what_runs(talk):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    talk.approve(asked, edited={"a": 2})
    assert talk.over(run) == "end"
    assert talk.tools.ran == [("notes__put", {"a": 2})]
    assert 'changed the arguments to {"a": 2}' in talk.answer()
    talk.check()


def test_other_arguments_that_do_not_fit_are_refused_and_leave_nothing_behind(talking):
    talk = talking(tool("notes__put", schema={"type": "object", "required": ["a"]}))
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    with pytest.raises(InputError, match="`a` is missing"):
        talk.approve(asked, edited={"b": 1})
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == [("notes__put", {"a": 1})]
    assert "changed the arguments" not in talk.answer()
    talk.check()


def test_other_arguments_that_were_refused_are_not_said_to_have_run(talk, rules):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    rules.add("deny", "put", when=[{"path": "a", "equals": 3}])
    with pytest.raises(InputError, match="would be refused"):
        talk.approve(asked, edited={"a": 3})
    talk.approve(asked)
    assert talk.over(run) == "end"
    assert talk.tools.ran == [("notes__put", {"a": 1})]
    assert "changed the arguments" not in talk.answer()
    assert talk.calls()[0].edited is None
    talk.check()


# -- refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/call nothing {}", "There is no tool"),
        ("/call other__put {}", "There is no tool"),
        ("/call notes__put {broken", "no JSON"),
        ("/call notes__put [1]", "no JSON object"),
        ("/call off__put {}", "turned off"),
        ("/call notes__strict {}", "`must` is missing"),
    ],
)
def test_what_cannot_be_called_is_told_and_on_the_record(talking, line, said):
    strict = tool("notes__strict", schema={"type": "object", "required": ["must"]})
    talk = talking(tool("notes__put"), tool("off__put"), strict)
    talk.chat.update(id=talk.id, tools_off=["off"])
    assert talk.finish(line, "/then", "/results") == "end"
    assert talk.tools.ran == []
    assert said in talk.answer()
    (call,) = talk.calls()
    assert call.status == "error"
    assert talk.entry(call).verdict == "deny"
    talk.check()


@pytest.mark.parametrize(
    ("came", "status", "said"),
    [
        (Came("silent", text="No answer in 60 s."), "error", "is unknown"),
        (Came("lost", text="The server ended."), "error", "is unknown"),
        (Came("unsent", text="Nothing ran."), "error", "Nothing ran."),
        (Came("input", text="It wants to ask something."), "error", "wants to ask"),
        (Came("error", text="-32000: no"), "error", "-32000"),
        (Came(content={"content": [{"type": "text", "text": "bad"}]}, failed=True), "error", "bad"),
        (Came(content={"content": []}), "completed", "returned nothing"),
        (Came(content={"content": 5, "structuredContent": {"n": 1}}), "completed", '"n": 1'),
        (Came(content={"content": [None, 3, {"type": "text"}]}), "completed", "returned nothing"),
    ],
)
def test_whatever_comes_of_a_call_is_told(talk, rules, came, status, said):
    async def comes(_call, _progress):
        return came

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = comes
    assert talk.finish(PUT, "/then", "/results") == "end"
    assert statuses(talk) == [status]
    assert said in talk.answer()
    talk.check()


def test_a_tool_that_breaks_costs_its_call_and_no_other(talk, rules):
    async def breaks(_call, _progress):
        raise ZeroDivisionError("secret inside")

    rules.add("allow", "*")
    talk.tools.does["notes__get"] = breaks
    assert talk.finish(GET, PUT, "/then", "/results") == "end"
    assert sorted(statuses(talk)) == ["completed", "error"]
    assert "is unknown" in talk.answer()
    assert "secret inside" not in talk.answer()


def test_progress_is_told(talk, rules):
    async def half(_call, progress):
        progress("half of it")
        return text_result("all of it")

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = half
    talk.finish(PUT)
    assert any(each["data"].get("text") == "half of it" for each in talk.seen if each["kind"] == "notice")


# -- the same id twice ----------------------------------------------------------------------------------


def test_a_model_that_gives_every_call_the_same_id_gets_each_result(talk, rules):
    rules.add("allow", "put")
    same = [("notes__put", f'{{"n": {number}}}', "call_0") for number in range(4)]
    talk.models.acts = [calls(*same[:2]), calls(same[2]), calls(same[3]), says("done")]
    assert talk.finish("go") == "end"
    assert sorted(each["n"] for _, each in talk.tools.ran) == [0, 1, 2, 3]
    results = talk.models.results()
    assert sorted(each.content for each in results.values()) == [f"ran put {{'n': {n}}}" for n in range(4)]
    assert len({(each.run, each.call_id) for each in talk.calls()}) == 4
    talk.check()


# -- untrusted words ------------------------------------------------------------------------------------


def test_who_has_read_untrusted_words_asks_before_it_sends_although_a_rule_allows():
    send = tool("lab__measure", annotations={"openWorldHint": True})
    pipeline = opened()
    for server in ("web", "lab"):
        Rules(pipeline).add("allow", "*", server=server)
    for trusted, asked in ((True, False), (False, True)):
        web = tool("web__read", trusted=trusted, annotations={"readOnlyHint": True})
        talk = Talk(pipeline, Tools(pipeline, web, send))
        run = talk.say("/call web__read {}", "/then", "/call lab__measure {}", "/then", "/results")
        if asked:
            (call,) = talk.asked()
            assert "has read what the server `web` returned" in call["reason"]
            assert [name for name, _ in talk.tools.ran] == ["web__read"]
            talk.decline(call)
        assert talk.over(run) == "end"
        assert ("approval_required" in talk.kinds()) is asked
        talk.check()
        talk.chat.close()
    pipeline.close()


# -- restarts -------------------------------------------------------------------------------------------


def restarted(talking, talk, *tools):
    kill(talk)
    again = talking(*(tools or talk.tools.all.values()), session=talk.id)
    again.tools.ran = talk.tools.ran
    return again


def test_a_question_outlives_its_server(talking, talk):
    run = talk.say(PUT, "/then", "/results")
    talk.asked()
    again = restarted(talking, talk)
    (asked,) = again.asked()
    again.approve(asked)
    assert again.ended(run) == "done"
    assert again.tools.ran == [("notes__put", {"a": 1})]
    assert "ran put" in again.answer()
    assert again.store.get_run(run).state == "done"
    again.check()


def test_a_yes_that_nobody_could_hear_is_heard_by_the_next_server(talking, talk):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()
    kill(talk)
    pipeline = opened()
    pipeline.answer(asked["entry"], "approved", actor="ada", channel="console")
    again = talking(*talk.tools.all.values(), session=talk.id, pipeline=pipeline)
    assert again.ended(run) == "done"
    assert again.tools.ran == [("notes__put", {"a": 1})]
    again.check()


def test_after_a_restart_the_tool_may_take_a_while_to_be_there(talking, talk):
    """Servers start again too: whoever asks for the list waits for them."""
    run = talk.say(PUT, "/then", "/results")
    talk.asked()
    kill(talk)
    pipeline, sought, up = opened(), threading.Event(), threading.Event()

    class Starting(Tools):
        async def tools(self, project=""):
            sought.set()
            await asyncio.to_thread(up.wait, PATIENCE)
            return await super().tools()

        async def tool(self, name):
            return await super().tool(name) if up.is_set() else "The server `notes` is starting."

    again = Talk(pipeline, Starting(pipeline, *talk.tools.all.values()), session=talk.id)
    (asked,) = again.asked()
    with ThreadPoolExecutor(1) as pool:
        approving = pool.submit(again.approve, asked)
        assert sought.wait(PATIENCE)
        assert again.tools.ran == []
        up.set()
        approving.result()
    assert again.ended(run) == "done"
    assert again.tools.ran == [("notes__put", {"a": 1})]
    again.check()
    again.close()


@pytest.mark.parametrize("name", ["notes__get", "notes__put"])
def test_a_call_under_way_when_the_server_died_is_made_again_only_if_twice_is_as_once(talking, name):
    talk = talking(tool("notes__get", annotations={"readOnlyHint": True}), tool("notes__put"))
    Rules(talk.pipeline).add("allow", "*")
    begun = threading.Event()

    async def hangs(_call, _progress):
        begun.set()
        await asyncio.Event().wait()

    talk.tools.does[name] = hangs
    run = talk.say(f"/call {name} {{}}", "/then", "/results")
    assert begun.wait(PATIENCE)
    again = restarted(talking, talk)
    again.tools.does.clear()
    assert again.ended(run) == "done"
    assert len(again.tools.ran) == (2 if name == "notes__get" else 1)
    assert ("is unknown" in again.answer()) is (name == "notes__put")
    again.check()


@pytest.mark.invariant("where the arguments a person approved are lost, the others do not run")
@pytest.mark.parametrize("kept", [True, False])
def test_an_edited_call_under_way_when_the_server_died_is_made_again_only_as_it_was_approved(talking, kept):
    talk = talking(tool("notes__get", annotations={"readOnlyHint": True}))
    begun = threading.Event()

    async def hangs(_call, _progress):
        begun.set()
        await asyncio.Event().wait()

    talk.tools.does["notes__get"] = hangs
    run = talk.say('/call notes__get {"a": 1}', "/then", "/results")
    (asked,) = talk.asked()
    talk.approve(asked, edited={"a": 7})
    assert begun.wait(PATIENCE)
    Rules(talk.pipeline).add("allow", "*")
    if not kept:
        (state_dir() / "questions.key").unlink()
    again = restarted(talking, talk)
    again.tools.does.clear()
    assert again.ended(run) == "done"
    assert again.tools.ran == [("notes__get", {"a": 7})] * (2 if kept else 1)
    assert ("is unknown" in again.answer()) is not kept
    again.check()


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
@pytest.mark.parametrize("kept", [True, False])
def test_what_a_person_wrote_instead_runs_after_a_restart_or_nothing_does(talking, talk, kept):
    run = talk.say(PUT, "/then", "/results")
    (asked,) = talk.asked()

    # The server dies with the answer on the record and before the call is taken.
    async def dies(*_given):
        await asyncio.Event().wait()

    talk.chat._calling._approved = dies
    talk.approve(asked, edited={"a": 7})
    if not kept:
        (state_dir() / "questions.key").unlink()
    again = restarted(talking, talk)
    assert again.ended(run) == "done"
    assert again.tools.ran == ([("notes__put", {"a": 7})] if kept else [])
    assert kept or "other arguments" in again.answer()
    again.check()


DEEP = '{"a": ' * 900 + "1" + "}" * 900


def test_no_nesting_closes_a_conversation(talk, rules):
    """What a model calls with, or a tool answers, can be read wherever the conversation is looked at."""
    rules.add("allow", "put")

    async def deep(_call, _progress):
        return Came(content={"content": [], "structuredContent": msgspec.json.decode(DEEP)})

    talk.tools.does["notes__put"] = deep
    talk.models.acts = [calls(("notes__put", DEEP, "c1")), calls(("notes__put", "{}", "c2")), says("done")]
    assert talk.finish("go on") == "end"
    first, second = talk.calls()
    assert "nested too deeply" in first.error
    assert "nested too deeply" in second.error
    assert talk.tools.ran == [("notes__put", {})]

    def below(levels):
        return talk.messages() if levels == 0 else below(levels - 1)

    assert len(below(500)) == 6
    talk.check()


def test_a_call_with_a_long_id_can_be_answered_wherever_it_is_asked(talk):
    """Whatever its model calls it: what is asked for by an id takes ids of a certain length."""
    talk.models.acts = [calls(("notes__put", "{}", "c" * 500), ("notes__put", "{}", "c" * 501)), says("done")]
    run = talk.say("go on")
    for each in talk.asked(2):
        msgspec.convert({"run": each["run"], "call": each["call_id"]}, Approve)
        talk.approve(each)
    assert talk.over(run) == "end"
    assert len(talk.tools.ran) == 2
    talk.check()


def test_each_of_two_calls_that_are_the_same_has_its_own_answer(talk):
    run = talk.say(PUT, PUT, "/then", "/say done")
    first, second = talk.asked(2)
    talk.approve(first)
    until(lambda: talk.tools.ran)
    (left,) = talk.asked()
    assert left["call_id"] == second["call_id"]
    talk.decline(left, "once is enough")
    assert talk.over(run) == "end"
    assert talk.tools.ran == [("notes__put", {"a": 1})]
    assert statuses(talk) == ["completed", "denied"]
    talk.check()


def test_a_no_to_one_of_two_calls_that_are_the_same_is_no_answer_to_the_other(talk):
    run = talk.say(PUT, PUT, "/then", "/say done")
    first, _ = talk.asked(2)
    talk.decline(first)
    (left,) = talk.asked()
    talk.approve(left)
    assert talk.over(run) == "end"
    assert statuses(talk) == ["denied", "completed"]
    talk.check()
