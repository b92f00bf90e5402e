"""The loop between model and tools: what a model is sent, what becomes of its answer, and how a run ends."""

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from pydantic_ai.models.function import DeltaToolCall

from chat_ground import OVER, Rules, calls, kill, says, text_result, told, tool
from checkrein.doors.chat import responses
from checkrein.errors import InputError
from patience import until

PUT = '/call notes__put {"a": 1}'
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Failures before the first word are tried again at once."""
    monkeypatch.setattr(responses, "_PAUSES", (0.01, 0.02))
    monkeypatch.setattr(responses, "_LONGEST_PAUSE", 1.5)


def rebuilt(talk, message, kind="text"):
    """A message as a page puts it together from what is told."""
    found = ""
    for each in told(talk, kind):
        if each["message"] == message:
            assert each["at"] == len(found), "nothing is left out and nothing told twice"
            found += each["delta"]
    return found


def test_an_answer_is_told_bit_by_bit_and_kept_whole(talk):
    assert talk.finish("/think hmm so", "/slow 5", "/long 60") == "end"
    answer = talk.messages()[-1]
    assert [part["kind"] for part in answer["parts"]] == ["reasoning", "text"]
    assert rebuilt(talk, answer["id"]) == answer["parts"][1]["text"] == talk.answer()
    assert rebuilt(talk, answer["id"], "reasoning") == "hmm so"
    assert len(told(talk, "text")) > 3
    assert answer["output_tokens"] > 0
    assert told(talk, "usage")[0]["input_tokens"] == answer["input_tokens"]
    talk.check()


def test_whole_schemas_are_sent(talking):
    deep = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where"},
            "n": {"anyOf": [{"type": "null"}]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    talk = talking(tool("notes__put", schema=deep, description="puts"))
    talk.finish("hello")
    (sent,) = talk.models.last.parameters.function_tools
    assert (sent.name, sent.description, sent.parameters_json_schema) == ("notes__put", "puts", deep)


def test_tools_that_are_off_are_not_offered(talking):
    talk = talking(tool("notes__put"), tool("notes__get"), tool("web__read"))
    talk.chat.update(id=talk.id, tools_off=["web", "notes__get"])
    talk.finish("hello")
    assert [each.name for each in talk.models.last.parameters.function_tools] == ["notes__put"]


def test_the_instructions_are_the_session_s_or_the_usual_ones(talking, user_settings):
    user_settings('[chat]\nsystem = "be brief"')
    talk = talking()
    talk.finish("hello")
    assert "be brief" in talk.models.said()
    talk.chat.update(id=talk.id, system="be long")
    talk.finish("hello")
    assert "be long" in talk.models.said()
    assert "be brief" not in talk.models.said()


# -- failures -------------------------------------------------------------------------------------------


def test_a_model_that_answers_nothing_is_told(talk):
    talk.models.acts = [says("")]
    assert talk.finish("hello") == "error"
    assert "answered nothing" in told(talk, "error")[0]["text"]
    assert [each["role"] for each in talk.messages()] == ["user"]
    talk.check()


def test_trying_again_runs_no_tool_again(talk, rules):
    rules.add("allow", "put")

    async def breaks(_messages, _info):
        raise ValueError("no")
        yield ""

    talk.models.acts = [calls(("notes__put", "{}", "c1")), breaks]
    assert talk.finish("go") == "error"
    assert len(talk.tools.ran) == 1
    talk.models.acts = [says("done")]
    assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    assert len(talk.tools.ran) == 1
    assert talk.models.results()["c1"].content == "ran put {}"
    talk.check()


def test_a_model_that_calls_tools_for_ever_is_stopped(talking, user_settings):
    user_settings("[chat]\nmost_rounds = 3")
    talk = talking(tool("notes__get"))
    talk.models.acts = [calls(("notes__get", f'{{"n": {n}}}', "c")) for n in range(9)]
    Rules(talk.pipeline).add("allow", "*")
    assert talk.finish("go") == "error"
    assert len(talk.tools.ran) == 3
    assert "most_rounds" in told(talk, "error")[0]["text"]
    talk.check()


def test_an_error_that_nobody_expects_ends_the_run_in_words(talk, monkeypatch):
    monkeypatch.setattr(talk.tools, "tools", None)
    assert talk.finish("hello") == "error"
    (error,) = told(talk, "error")
    assert "Something went wrong" in error["text"]
    talk.check()


# -- too much -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\x00b", "half \ud83d of it", "\udc00", "\ud83d\ude00", "\u202e" * 40])
def test_odd_characters_of_a_model_are_kept_and_told_as_they_can_be(talk, rules, text):
    rules.add("allow", "put")
    odd = f'{{"t": "{text}"}}'
    talk.models.acts = [
        says("say ", text, " so", {0: DeltaToolCall(f"notes__{text}", odd, tool_call_id=f"c{text}")}),
        says("done"),
    ]
    assert talk.finish("go") == "end"
    for each in talk.seen:
        msgspec.json.encode(each)
    said = talk.messages()[1]
    assert rebuilt(talk, said["id"]) == said["parts"][0]["text"]
    assert said["parts"][0]["text"].endswith(" so")
    talk.check()


# -- stopping -------------------------------------------------------------------------------------------

SCRIPT = (
    "/slow 3",
    "/think so it is",
    "/long 8",
    "/call notes__get {}",
    '/call notes__put {"n": 1}',
    "/then",
    '/call notes__put {"n": 2}',
    "/then",
    "/long 20",
)


def followed(talk, count):
    """Follow a run until that much happened, or nothing more will."""
    while len(talk.seen) < count and not {*OVER, "approval_required"} & set(talk.kinds()):
        talk.look(wait=1.0)


@pytest.mark.parametrize("number", range(24))
def test_a_run_is_stopped_at_any_moment(talk, rules, number):
    """Wherever it is stopped: nothing is left over, and what was said is kept."""

    async def slowly(_call, _progress):
        await asyncio.sleep(0.02)
        return text_result("slow")

    rules.add("allow", "get")
    if number % 2:
        rules.add("allow", "put")
    talk.tools.does["notes__get"] = slowly
    talk.tools.does["notes__put"] = slowly
    run = talk.say(*SCRIPT)
    followed(talk, number)
    stopped = talk.chat.abort(run=run)["aborted"]
    talk.look()
    ends = [each["kind"] for each in talk.seen if each["kind"] in OVER]
    assert len(ends) == 1, [each for each in talk.seen if each["kind"] in OVER]
    if stopped:
        assert ends in (["aborted"], ["end"])
    talk.check()
    for message in talk.messages():
        if message["role"] == "assistant":
            told_it = rebuilt(talk, message["id"])
            assert told_it == "".join(part["text"] for part in message["parts"] if part["kind"] == "text")
    assert talk.chat.abort(run=run) == {"aborted": False}
    ran = list(talk.tools.ran)
    assert talk.finish("/results") == "end"
    assert talk.tools.ran == ran
    sent = {
        part.tool_call_id
        for message in talk.models.last.messages
        for part in message.parts
        if part.part_kind == "tool-call"
    }
    assert sent == set(talk.models.results()), "every call is sent with its result"


def test_stopped_while_it_waits_the_question_is_taken_back(talk):
    run = talk.say("/say before", PUT, "/then", "/say after")
    (asked,) = talk.asked()
    assert talk.chat.abort(run=run) == {"aborted": True}
    talk.look()
    assert talk.kinds()[-1] == "aborted"
    (call,) = talk.calls()
    assert call.status == "cancelled"
    assert talk.entry(call).answer == "cancelled"
    assert talk.tools.ran == []
    with pytest.raises(InputError):
        talk.approve(asked)
    assert talk.store.get_run(run).state == "aborted"
    talk.check()


def test_stopped_beside_a_call_that_ran_the_model_is_told_what_ran(talk, rules):
    rules.add("allow", "get")
    run = talk.say("/call notes__get {}", PUT, "/then", "/say after")
    talk.asked()
    until(lambda: "completed" in [each.status for each in talk.calls()])
    talk.chat.abort(run=run)
    talk.finish("/say next")
    told_them = sorted(str(each.content) for each in talk.models.results().values())
    assert told_them[0] == "Stopped before it ran."
    assert told_them[1] == "ran get {}"
    talk.check()


def test_a_tool_that_never_answers_can_be_stopped(talk, rules):
    async def never(_call, _progress):
        await asyncio.Event().wait()

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = never
    run = talk.say(PUT)
    talk.until("tool_running", since=0)
    assert talk.chat.abort(run=run) == {"aborted": True}
    (call,) = talk.calls()
    assert call.status == "cancelled"
    assert "is unknown" in call.error
    talk.check()


def test_stopped_by_many_at_once_it_is_told_once(talk):
    run = talk.say("/slow 20", "/long 500")
    talk.until("text", since=0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: talk.chat.abort(run=run), range(8)))
    talk.look()
    assert talk.kinds().count("aborted") == 1
    last = talk.messages()[-1]
    assert last["state"] == "aborted"
    assert talk.answer().startswith("word1")
    talk.check()


# -- restarts -------------------------------------------------------------------------------------------


def test_a_server_that_ends_while_a_model_answers_keeps_what_came(talking, talk):
    run = talk.say("/slow 20", "/long 500")
    talk.until("text", since=0, count=3)
    talk.close()
    talk.killed = True
    again = talking(session=talk.id)
    assert again.ended(run) == "interrupted"
    last = again.messages()[-1]
    assert (last["state"], last["role"]) == ("interrupted", "assistant")
    assert again.answer().startswith("word1")
    assert again.finish("hello") == "end"
    again.check()


def test_a_server_killed_while_a_model_answers_keeps_what_came(talking, talk, monkeypatch):
    monkeypatch.setattr("checkrein.doors.chat.writing._KEEP_SECONDS", 0.05)
    run = talk.say("/slow 20", "/long 500")
    until(lambda: talk.store.path(talk.id)[-1].state == "streaming")
    kill(talk)
    again = talking(session=talk.id)
    assert again.ended(run) == "interrupted"
    assert again.messages()[-1]["state"] == "interrupted"
    assert again.answer().startswith("word1")
    assert "try again" in again.store.get_run(run).error
    anew = again.chat.regenerate(session=again.id)["run"]
    again.until("text", run=anew, since=0)
    again.chat.abort(run=anew)
    assert again.over(anew) == "aborted"
    again.check()


def test_a_server_killed_before_the_first_word_says_so(talking, talk):
    async def silent(_messages, _info):
        await asyncio.sleep(600)
        yield "never"

    talk.models.acts = [silent]
    run = talk.say("hello")
    until(lambda: talk.models.sent)
    kill(talk)
    again = talking(session=talk.id)
    assert again.ended(run) == "interrupted"
    assert [each["role"] for each in again.messages()] == ["user"]
    assert again.over(again.chat.regenerate(session=again.id)["run"]) == "end"
    again.check()


def test_a_server_killed_after_the_tools_answered_goes_on_with_the_model(talking, talk, rules):
    async def silent(_messages, _info):
        await asyncio.sleep(600)
        yield "never"

    rules.add("allow", "put")
    talk.models.acts = [calls(("notes__put", "{}", "c1")), silent]
    run = talk.say("go")
    until(lambda: len(talk.models.sent) == 2)
    kill(talk)
    again = talking(session=talk.id)
    assert again.ended(run) == "done"
    assert again.tools.ran == []
    assert again.models.results()["c1"].content == "ran put {}"
    again.check()


def test_another_conversation_s_run_is_not_touched_by_a_message_in_the_first_moment(talking, talk):
    """Whoever is quick after a restart finds the run that waits, not a free session."""
    talk.say(PUT, "/then", "/results")
    talk.asked()
    kill(talk)
    again = talking(session=talk.id)
    with pytest.raises(InputError, match="answering here already"):
        again.say("quick")
    again.approve(*again.asked())
    until(lambda: not again.chat._runs.live)
    again.check()


# -- routing --------------------------------------------------------------------------------------------


@pytest.fixture
def routed(home, user_settings, talking):
    user_settings(
        '[chat]\nrouting = "on"\nmodel = "a/usual"\nworker = "a/small"\nanalyst = "a/large"\n'
        'architect = "a/largest"\nreporter = "a/small"'
    )
    place = home / "config" / "checkrein" / "providers.json"
    models = ["usual", "small", "large", "largest"]
    place.write_text(json.dumps({"providers": {"a": {"kind": "scripted", "models": models}}}))
    place.chmod(0o600)
    return talking()


def test_a_persona_is_shown_and_its_model_answers(routed):
    routed.finish("Please fix the typo in the README file.")
    (started,) = told(routed, "started")
    assert started["persona"]
    assert started["routed"]
    assert f"a/{started['model']}" == routed.models.last.ref
    assert started["model"] in ("small", "large", "largest")


def test_the_model_that_is_picked_answers_whatever_routing_would_say(routed):
    routed.finish("Please fix the typo in the README file.", model="a/usual")
    assert routed.models.last.ref == "a/usual"
    assert told(routed, "started")[0]["persona"] == ""
    routed.chat.update(id=routed.id, model="a/largest")
    routed.finish("Please fix the typo in the README file.")
    assert routed.models.last.ref == "a/largest"
    assert {each.ref for each in routed.models.sent} == {"a/usual", "a/largest"}


def test_who_cannot_do_it_hands_over_and_the_last_one_to_the_user(routed):
    async def breaks(_messages, _info):
        yield "half"
        raise ValueError("no")

    routed.models.acts = [breaks] * 9
    assert routed.finish("Please fix the typo in the README file.") == "error"
    refs = [each.ref for each in routed.models.sent]
    assert len(refs) == len(set(refs)) > 1, "each is asked once"
    raised = [each["text"] for each in told(routed, "notice") if each["level"] == "escalation"]
    assert "takes over" in raised[0]
    assert "yours to decide" in raised[-1]
    assert len(told(routed, "error")) == 1
    routed.check()


def test_who_takes_over_runs_no_tool_again_and_its_answer_stands(routed):
    async def breaks(_messages, _info):
        yield "half"
        raise ValueError("no")

    Rules(routed.pipeline).add("allow", "*")
    routed.models.acts = [calls(("notes__put", "{}", "c1")), breaks, says("whole")]
    assert routed.finish("Please fix the typo in the README file.") == "end"
    assert routed.answer() == "whole"
    assert len(routed.tools.ran) == 1
    assert len({each.ref for each in routed.models.sent}) == 2
    routed.check()


def test_stopped_after_it_was_handed_over_it_is_told_once(routed):
    async def breaks(_messages, _info):
        raise ValueError("no")
        yield ""

    async def silent(_messages, _info):
        await asyncio.sleep(600)
        yield ""

    routed.models.acts = [breaks, silent]
    run = routed.say("Please fix the typo in the README file.")
    until(lambda: len(routed.models.sent) == 2)
    routed.chat.abort(run=run)
    routed.look()
    assert [each for each in routed.kinds() if each in OVER] == ["aborted"]
    routed.check()
