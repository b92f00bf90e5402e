"""Whole conversations with endpoints that speak as real providers do, and fail as they do."""

import pytest

from chat_ground import Rules, Talk, Tools, opened, told, tool
from checkrein.doors.chat import responses
from checkrein.doors.chat.providers import Providers
from doors.chat.endpoints import Call, Turn
from doors.chat.endpoints.anthropic import fake_anthropic
from doors.chat.endpoints.asking import hasty, settings
from doors.chat.endpoints.google import fake_google
from doors.chat.endpoints.openai import fake_openai
from patience import until

KINDS = {"compatible": fake_openai, "anthropic": fake_anthropic, "google": fake_google}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(responses, "_PAUSES", (0.01,))
    monkeypatch.setattr(responses, "_LONGEST_PAUSE", 2.0)


@pytest.fixture
def converse():
    """A conversation with an endpoint of that kind."""
    made = []

    def begin(kind, *turns, under=settings):
        endpoint = KINDS[kind](list(turns))
        endpoint.__enter__()
        providers = Providers(under)
        providers.set(kind, kind, base_url=endpoint.url, key="sk-mine-0123456789abcdef", models=["m1"])
        pipeline = opened()
        talk = Talk(pipeline, Tools(pipeline, tool("notes__put", trusted=True)), models=providers)
        Rules(pipeline).add("allow", "*")
        talk.chat.update(id=talk.id, model=f"{kind}/m1")
        made.append((talk, endpoint))
        return talk, endpoint

    yield begin
    for talk, endpoint in made:
        talk.close()
        endpoint.__exit__()


@each_kind
def test_an_answer_with_tools_comes_to_its_end(converse, kind):
    talk, endpoint = converse(
        kind,
        Turn("I put it", calls=[Call("notes__put", {"n": 1}, "a1"), Call("notes__put", {"n": 2}, "a2")]),
        Turn("It is there", usage=(21, 9)),
    )
    assert talk.finish("put it") == "end"
    assert sorted(each["n"] for _, each in talk.tools.ran) == [1, 2]
    assert talk.answer() == "It is there"
    assert talk.messages()[-1]["output_tokens"] == 9
    assert b"ran put" in endpoint.asked[-1].body
    talk.check()


@each_kind
@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("500", ("server",)),
        ("401", ("key",)),
        ("400", ("refused", "unknown", "malformed")),
        ("too long", ("limit",)),
        ("filtered", ("refused",)),
        ("hang", ("timeout", "network")),
        ("redirect", ("network", "refused", "server", "unknown", "malformed")),
        ("429", ("rate",)),
    ],
)
def test_what_fails_before_the_first_word_is_told_and_loses_nothing(converse, kind, fault, kinds):
    under = hasty if fault == "hang" else settings
    talk, _ = converse(kind, Turn("never", fault=fault, retry_after="0.01"), under=under)
    assert talk.finish("hello") == "error"
    (error,) = told(talk, "error")
    assert error["error"] in kinds, error
    assert error["retry"] is True
    assert "sk-mine" not in str(talk.seen)
    assert [each["role"] for each in talk.messages()] == ["user"]
    talk.check()


@each_kind
@pytest.mark.parametrize("fault", ["cut", "malformed", "short", "error"])
def test_what_breaks_off_is_kept_told_and_answered_anew(converse, kind, fault):
    talk, _ = converse(kind, Turn("one two three four five six", fault=fault), Turn("whole"))
    ended = talk.finish("hello")
    if ended == "error":
        kept = "".join(part["text"] for each in talk.messages()[1:] for part in each["parts"])
        assert "one two three four five six".startswith(kept)
        assert told(talk, "error")[0]["retry"] is True
        assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
        assert talk.answer() == "whole"
    else:
        # It failed before a word was told, and was tried again.
        assert talk.answer() == "whole"
    talk.check()


@each_kind
def test_a_pause_the_provider_asks_for_is_kept_to(converse, kind):
    talk, endpoint = converse(kind, Turn(fault="429", retry_after="0.05"), Turn("now"))
    assert talk.finish("hello") == "end"
    assert talk.answer() == "now"
    # Longer than the pause we would make by ourselves.
    assert any("Trying again in 0.05 s" in each["text"] for each in told(talk, "notice"))
    assert len(endpoint.asked) == 2


@each_kind
def test_tools_that_ran_are_not_run_again_after_a_failure(converse, kind):
    talk, endpoint = converse(
        kind, Turn("", calls=[Call("notes__put", {"n": 1}, "a1")]), Turn("half", fault="cut"), Turn("whole")
    )
    ended = talk.finish("put it")
    if ended == "error":
        assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    assert talk.answer() == "whole"
    assert talk.tools.ran == [("notes__put", {"n": 1})]
    assert b"ran put" in endpoint.asked[-1].body
    talk.check()


@each_kind
def test_wrong_arguments_and_unknown_tools_are_told_to_the_model(converse, kind):
    talk, endpoint = converse(
        kind, Turn("", calls=[Call("nothing__here", {}, "a1"), Call("notes__off", {}, "a2")]), Turn("sorry")
    )
    assert talk.finish("go") == "end"
    assert talk.tools.ran == []
    assert {each.status for each in talk.calls()} == {"error"}
    assert b"There is no tool" in endpoint.asked[-1].body
    assert talk.answer() == "sorry"
    talk.check()


@pytest.mark.parametrize("kind", ["compatible", "anthropic"])
def test_arguments_that_are_no_json_are_told_to_the_model(converse, kind):
    talk, endpoint = converse(kind, Turn("", calls=[Call("notes__put", '{"n": ', "a1")]), Turn("sorry"))
    ended = talk.finish("go")
    assert talk.tools.ran == []
    assert ended == "end" or told(talk, "error")[0]["retry"]
    if ended == "end":
        assert b"no JSON" in endpoint.asked[-1].body
    talk.check()


@each_kind
def test_an_empty_answer_is_told(converse, kind):
    talk, _ = converse(kind, Turn(""))
    assert talk.finish("hello") == "error"
    assert told(talk, "error")[0]["retry"] is True
    talk.check()


@each_kind
def test_stopped_the_endpoint_is_left_too(converse, kind):
    talk, endpoint = converse(kind, Turn(" ".join(["word"] * 200), between=0.05))
    run = talk.say("hello")
    talk.until("text", since=0)
    assert talk.chat.abort(run=run) == {"aborted": True}
    until(lambda: endpoint.left == 1)
    assert talk.answer().startswith("word")
    talk.check()


@each_kind
def test_same_ids_again_are_other_calls(converse, kind):
    talk, _ = converse(
        kind,
        Turn("", calls=[Call("notes__put", {"n": 1}, "call_0")]),
        Turn("", calls=[Call("notes__put", {"n": 2}, "call_0")]),
        Turn("done"),
    )
    assert talk.finish("go") == "end"
    assert [each["n"] for _, each in talk.tools.ran] == [1, 2]
    assert len(talk.calls()) == 2
    talk.check()
