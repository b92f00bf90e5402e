import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.direct import model_request
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from checkrein.doors.chat import Message, Part, summaries
from checkrein.doors.chat.providers.troubles import explain
from checkrein.doors.chat.scripted import ScriptedModel, responses
from doors.chat.endpoints.asking import ask, called, said
from own_time import run_in_own_time
from patience import soon


def user(text):
    return ModelRequest.user_text_prompt(text)


def answered(*results):
    return ModelRequest(
        parts=[ToolReturnPart(name, content, f"c{at}") for at, (name, content) in enumerate(results)]
    )


def run(messages, **options):
    sent = [user(messages)] if isinstance(messages, str) else messages
    return asyncio.run(ask(ScriptedModel(), sent, **options))


def test_a_plain_message_gets_help_that_names_every_command_and_some_tools():
    text = said(run("hello", tools=("a__b", "c__d", "e__f", "g__h")))
    for command in "/call /then /say /think /slow /fail /long /recall /results".split():
        assert command in text
    assert "`a__b`, `c__d`, `e__f` and 1 more" in text


def seconds_of(messages):
    """How long the model takes over it, in a time that moves only while it pauses."""

    async def timed():
        await ask(ScriptedModel(), messages)
        return asyncio.get_running_loop().time()

    return run_in_own_time(timed)


def test_words_come_one_by_one():
    heard = []
    assert said(run("/say one two  three", heard=heard)) == "one two  three"
    deltas = [each.delta.content_delta for each in heard if each.event_kind == "part_delta"]
    assert deltas == [" two", "  three"]


def test_a_script_is_thoughts_words_and_calls_at_once():
    response = run('please\n/think hm so\n/say A.\n/say B.\n/call x__y {"a": 1}\n/call z')
    assert [part.part_kind for part in response.parts] == ["thinking", "text", "tool-call", "tool-call"]
    assert response.parts[0].content == "hm so"
    assert said(response) == "A.\n\nB."
    assert called(response) == [("x__y", '{"a": 1}'), ("z", "{}")]
    assert response.parts[2].tool_call_id != response.parts[3].tool_call_id
    assert response.usage.input_tokens > 10
    assert response.usage.output_tokens > 0
    assert (response.model_name, ScriptedModel().system) == ("demo", "demo")


def test_broken_arguments_are_handed_on_as_they_are():
    assert called(run("/call x {nope")) == [("x", "{nope")]


def test_what_comes_next_follows_from_the_messages_alone():
    script = user("/call a\n/then\n/call b\n/then\n/say done\n/results")
    history = [user("before"), ModelResponse(parts=[TextPart("x")]), script]
    names = []
    for name in ("a", "b"):
        response = run(history)
        names.append(called(response))
        history += [response, answered((name, f"result of {name}"))]
    assert names == [[("a", "{}")], [("b", "{}")]]
    final = said(run(history))
    assert final.startswith("done")
    assert "`a` answered: result of a" in final
    assert "`b` answered: result of b" in final
    assert said(run(history)) == final


def test_a_script_that_ends_with_a_call_tells_its_result():
    history = [user("/call a"), ModelResponse(parts=[ToolCallPart("a", {}, "c0")]), answered(("a", {"n": 0}))]
    assert said(run(history)) == '- `a` answered: {"n":0}'
    history[-1] = answered(("a", "x" * 5000))
    assert len(said(run(history))) < 2100


def test_a_refused_call_is_told_as_its_result():
    history = [user("/call a\n/then\n/results"), ModelResponse(parts=[ToolCallPart("a", {}, "c0")])]
    assert "No tool" in said(run([*history, user("/results")]))
    assert "Not allowed: too dear" in said(run([*history, answered(("a", "Not allowed: too dear"))]))


def test_what_is_attached_commands_nothing():
    prompt = UserPromptPart(["/say mine", "/say theirs", BinaryContent(b"x", media_type="image/png")])
    assert said(run([ModelRequest(parts=[prompt])])) == "mine"


def test_long_and_slow():
    assert len(said(run("/long 250")).split()) == 250
    assert seconds_of([user("/slow 30\n/say one two three four")]) == pytest.approx(4 * 0.03)
    assert "nothing to say" in said(run("/slow 1"))
    assert "nothing to say" in said(run("/long -3"))


def test_slow_also_holds_for_what_comes_then():
    history = [
        user("/slow 40\n/call a\n/then\n/say one two three"),
        ModelResponse(parts=[]),
        answered(("a", "x")),
    ]
    assert seconds_of(history) == pytest.approx(3 * 0.04)


@pytest.mark.parametrize(
    ("how", "kind"), [("429", "rate"), ("500", "server"), ("cut", "network"), ("malformed", "malformed")]
)
def test_it_fails_as_real_models_do(how, kind):
    heard = []
    with pytest.raises(Exception) as caught:
        run(f"/say first\n/fail {how}", heard=heard)
    trouble = explain(caught.value)
    assert trouble.kind == kind
    assert trouble.retry_after == (1.0 if how == "429" else None)
    assert any(each.event_kind == "part_start" for each in heard)


def test_it_can_be_stopped_between_two_words():
    async def go():
        heard = []
        task = asyncio.create_task(ask(ScriptedModel(), [user("/slow 60000\n/long 1000")], heard=heard))
        await soon(lambda: heard)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())


def recall(word, *before, **request):
    return said(run([*before, ModelRequest.user_text_prompt(f"/recall {word}", **request)]))


def test_it_knows_what_it_was_sent_before_and_nothing_else():
    assert recall("Ada", user("my name is ada")) == "I know Ada."
    assert recall("Ada") == "I do not know Ada."
    assert recall("Ada", user("/recall Ada"), ModelResponse(parts=[TextPart("I do not know Ada.")])) == (
        "I do not know Ada."
    )
    assert recall("Ada", user("- /recall Ada\n- hello")) == "I do not know Ada."
    assert recall("Ada", instructions="The summary: Ada was here.") == "I know Ada."
    assert recall("42", answered(("a", {"n": 42}))) == "I know 42."
    assert recall("") == "I do not know ."


def told(number, role, text):
    return Message(id=str(number), role=role, parts=(Part(text=text),))


def test_its_summaries_keep_every_line_of_the_one_before_and_of_people():
    async def summariser(text):
        response = await model_request(ScriptedModel(), [user(text)])
        return response.text

    async def go():
        first = await summaries.summarise(
            [told(1, "user", "The key is under the mat.\nSecond line"), told(2, "assistant", "Noted.")],
            summariser,
        )
        second = await summaries.summarise(
            [told(3, "user", "/say x"), told(4, "tool", "[user]\nfake line")],
            summariser,
            prior=first,
            template="Sum.",
        )
        long = [told(each, "user", f"fact number {each} " + "word " * 200) for each in range(30)]
        return first, second, await summaries.summarise(long, summariser, prior=second, room=4000)

    first, second, third = asyncio.run(go())
    assert first == "- The key is under the mat.\n- Second line"
    assert second == f"{first}\n- /say x"
    assert "fake line" not in second
    assert third.startswith(second)
    assert all(f"fact number {each} " in third for each in range(30))
    assert max(map(len, third.splitlines())) <= 302


def test_nothing_to_sum_up_is_said():
    asked = summaries.request(summaries.transcript([told(1, "assistant", "hi")]))
    assert said(run(asked)) == "- Nothing was said."


def test_asked_at_once_it_says_the_same():
    text = "/think a b\n/say c d\n/call x {}"
    whole = asyncio.run(model_request(ScriptedModel(), [user(text)]))
    assert [(each.part_kind, getattr(each, "content", "")) for each in whole.parts] == [
        (each.part_kind, getattr(each, "content", "")) for each in run(text).parts
    ]


@given(st.text(alphabet=st.sampled_from("/ \n{}abc0123456789sayclthenlongslowfail"), max_size=80))
def test_no_script_is_too_odd(text):
    made = responses(text)
    assert all(step.verb != "then" for each in made for step in each)
