import asyncio
import json

import pytest

from checkrein.doors.chat.providers import Picked, Providers
from doors.chat.endpoints import Call, Turn
from doors.chat.endpoints.anthropic import fake_anthropic
from doors.chat.endpoints.asking import SCHEMA, ask, called, hasty, said, settings
from doors.chat.endpoints.google import fake_google
from doors.chat.endpoints.openai import fake_openai
from own_time import Ahead
from patience import PATIENCE, soon

KEY = "sk-T0p-5ecret-key-0f-mine"
KINDS = {
    "openai": fake_openai,
    "compatible": fake_openai,
    "azure": fake_openai,
    "anthropic": fake_anthropic,
    "google": fake_google,
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def providers():
    return Providers(settings)


class Leisurely(list):
    """Takes so many seconds over everything that is heard."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds

    def append(self, event):
        super().append(event)
        asyncio.get_running_loop().ahead += self._seconds


def asked(providers, kind, script, *, text="hi", model="m1", loop=None, **options):
    """What came of one question to a fake of that kind: response or error, and the endpoint."""

    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        try:
            return await ask(await providers.model(Picked(kind, model)), text, **options)
        except Exception as error:
            # Whoever gave up early may have done so before the endpoint came to read the request.
            await soon(lambda: endpoint.asked)
            return error
        finally:
            await providers.close()

    with KINDS[kind](script) as endpoint, asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(go(endpoint)), endpoint


@each_kind
def test_text_reasoning_and_usage_come_through(providers, kind):
    heard = []
    turn = Turn("Hello big world", reasoning="let me see", usage=(21, 9))
    response, endpoint = asked(providers, kind, [turn], heard=heard, system="Be brief.")
    assert said(response) == "Hello big world"
    assert "let me see" in [part.content for part in response.parts if part.part_kind == "thinking"]
    assert (response.usage.input_tokens, response.usage.output_tokens) == (21, 9)
    assert len(heard) > 6
    assert b"Be brief." in endpoint.asked[0].body
    assert len(endpoint.asked) == 1


@each_kind
def test_the_model_that_is_picked_is_the_one_that_is_asked(providers, kind):
    _, endpoint = asked(providers, kind, [Turn("x")], model="the-picked-one")
    request = endpoint.asked[0]
    named = request.path if kind in ("google", "azure") else request.json["model"]
    assert "the-picked-one" in named


@each_kind
def test_tools_are_sent_whole_and_called_in_parallel(providers, kind):
    calls = [Call("files__read", {"x": 1, "y": "two"}), Call("files__read", {"x": 2}), Call("other", {})]
    response, endpoint = asked(providers, kind, [Turn("Well.", calls=calls)], tools=("files__read", "other"))
    found = [(name, args if isinstance(args, dict) else json.loads(args)) for name, args in called(response)]
    assert found == [("files__read", {"x": 1, "y": "two"}), ("files__read", {"x": 2}), ("other", {})]
    ids = [part.tool_call_id for part in response.parts if part.part_kind == "tool-call"]
    assert len(set(ids)) == 3
    sent = str(endpoint.asked[0].json["tools"])
    assert sent.count(str(SCHEMA["properties"])) == 2


@pytest.mark.parametrize("kind", ["openai", "compatible", "azure", "anthropic"])
@pytest.mark.parametrize("arguments", ['{"x": ', "[1, 2]", '{"x": "many"}'])
def test_wrong_arguments_arrive_as_they_were_written(providers, kind, arguments):
    response, _ = asked(providers, kind, [Turn("", calls=[Call("unknown_tool", arguments)])])
    assert called(response) == [("unknown_tool", arguments)]


@each_kind
def test_what_tools_answered_is_sent_back_to_where_they_were_called(providers, kind):
    from pydantic_ai.messages import ModelRequest, ToolReturnPart

    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        model = await providers.model(Picked(kind, "m1"))
        history = [ModelRequest.user_text_prompt("hi")]
        first = await ask(model, history)
        ids = [part.tool_call_id for part in first.parts if part.part_kind == "tool-call"]
        results = [ToolReturnPart("files__read", f"result {at}", each) for at, each in enumerate(ids)]
        second = await ask(model, [*history, first, ModelRequest(parts=results)])
        await providers.close()
        return second, ids

    calls = [Call("files__read", {"x": 1}, id="id-one"), Call("files__read", {"x": 2}, id="id-two")]
    with KINDS[kind]([Turn("Well.", reasoning="hm", calls=calls), Turn("Done.")]) as endpoint:
        second, ids = asyncio.run(go(endpoint))
    assert said(second) == "Done."
    sent = endpoint.asked[1].body.decode()
    assert sent.index("result 0") < sent.index("result 1")
    if kind != "google":
        assert ids == ["id-one", "id-two"]
        assert sent.count("id-one") == sent.count("id-two") == 2


@each_kind
def test_who_stops_listening_is_told_of_no_fault(providers, kind):
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest

    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        model = await providers.model(Picked(kind, "m1"))
        async with model_request_stream(model, [ModelRequest.user_text_prompt("hi")]) as streamed:
            async for _ in streamed:
                await streamed.cancel()
        await providers.close()
        return said(streamed.get())

    with KINDS[kind]([Turn(["word "] * 100, between=0.02)]) as endpoint:
        assert len(asyncio.run(go(endpoint))) < 200


FAULTS = {
    "429": "rate",
    "500": "server",
    "503": "server",
    "401": "key",
    "403": "key",
    "404": "refused",
    "cut": "network",
    "short": "network",
    "malformed": "malformed",
    "too long": "limit",
    "filtered": "refused",
    "hang": "timeout",
    "error": "server",
    "redirect": "refused",
}


@each_kind
@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_told_once_in_time_and_without_the_key(providers, kind, fault, caplog, capfd):
    caplog.set_level("DEBUG")
    providers = Providers(hasty) if fault == "hang" else providers
    error, endpoint = asked(providers, kind, [Turn("one two three four five", fault=fault), Turn("never")])
    assert isinstance(error, Exception)
    trouble = providers.explain(error)
    assert trouble.kind == FAULTS[fault]
    assert trouble.retry_after == (7.0 if fault == "429" else None)
    assert len(trouble.text) > 20
    # Nothing is asked again behind anybody's back.
    assert len(endpoint.asked) == 1
    shown = [trouble, error, str(error), providers, providers.listed(), caplog.text, *capfd.readouterr()]
    assert KEY not in "".join(map(repr, shown))
    assert endpoint.url not in trouble.text


@each_kind
def test_a_wrong_key_is_not_shown_even_where_the_provider_says_it(providers, kind):
    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        with pytest.raises(Exception) as caught:
            await ask(await providers.model(Picked(kind, "m1")))
        await providers.close()
        return providers.explain(caught.value)

    with KINDS[kind]([Turn("x")], key="another") as endpoint:
        trouble = asyncio.run(go(endpoint))
    assert trouble.kind == "key"
    assert KEY not in trouble.text


@each_kind
def test_silence_between_pieces_is_given_up_too(kind):
    providers = Providers(hasty)
    error, _ = asked(providers, kind, [Turn("one two three four", between=600)])
    assert providers.explain(error).kind == "timeout"


@each_kind
def test_slow_but_speaking_is_not_silent(providers, kind):
    """The whole answer takes longer than silence may: each piece of it does not."""
    heard = Leisurely(PATIENCE / 2)
    response, _ = asked(providers, kind, [Turn(["a"] * 3, between=0.01)], heard=heard, loop=Ahead)
    assert said(response) == "a" * 3
    assert len(heard) > 2


@each_kind
def test_cancelling_hangs_up_at_once(providers, kind):
    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        heard = []
        model = await providers.model(Picked(kind, "m1"))
        task = asyncio.create_task(ask(model, heard=heard))
        await soon(lambda: heard)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The endpoint has words for far longer than we wait for this.
        await soon(lambda: endpoint.left)
        await providers.close()

    with KINDS[kind]([Turn(["word "] * 10_000, between=0.05)]) as endpoint:
        asyncio.run(go(endpoint))
        assert endpoint.left == 1


@each_kind
@pytest.mark.parametrize("how", ["cancelled", "failed", "left"])
def test_whoever_stops_between_two_words_hangs_up_too(providers, kind, how):
    """Nobody is in the middle of reading then, so nothing but the end of the stream says that it is over."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest

    async def listen(model, kept, heard):
        async with model_request_stream(model, [ModelRequest.user_text_prompt("hi")]) as streamed:
            events = aiter(streamed)
            # Whoever keeps them keeps them from being collected, which ends them as well, some time.
            kept += [streamed, events]
            await anext(events)
            heard.set()
            if how == "failed":
                raise ValueError("no")
            if how == "cancelled":
                await asyncio.sleep(600)

    async def go(endpoint):
        providers.set(kind, kind, base_url=endpoint.url, key=KEY)
        kept, heard = [], asyncio.Event()
        task = asyncio.create_task(listen(await providers.model(Picked(kind, "m1")), kept, heard))
        await heard.wait()
        if how == "cancelled":
            task.cancel()
        await asyncio.wait([task])
        left = await soon(lambda: endpoint.left)
        await providers.close()
        return left

    with KINDS[kind]([Turn(["word "] * 10_000, between=0.05)]) as endpoint:
        assert asyncio.run(go(endpoint)) == 1


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "azure"])
def test_an_address_with_and_without_its_version_is_the_same(providers, kind):
    async def go(endpoint):
        for tail in ("", "/", "/v1", "/v1/"):
            providers.set(kind, kind, base_url=f"{endpoint.url}{tail}", key=KEY)
            await ask(await providers.model(Picked(kind, "m1")))
            await providers.refresh(kind)
        await providers.close()

    with KINDS[kind]([Turn("x")]) as endpoint:
        asyncio.run(go(endpoint))
    assert len({each.path for each in endpoint.requests}) == 2
    assert not any("/v1/v1" in each.path or "/v1/v1beta" in each.path for each in endpoint.requests)


def test_the_same_configuration_is_made_once_and_a_changed_one_anew(providers):
    async def go(endpoint):
        providers.set("one", "openai", base_url=endpoint.url, key=KEY)
        first = await providers.model(Picked("one", "m1"))
        assert await providers.model(Picked("one", "m1")) is first
        assert await providers.model(Picked("one", "m2")) is not first
        providers.set("one", "openai", key="sk-another-key-0f-mine")
        changed = await providers.model(Picked("one", "m1"))
        assert changed is not first
        await ask(changed)
        await providers.close()

    with fake_openai([Turn("x")]) as endpoint:
        asyncio.run(go(endpoint))
        assert endpoint.asked[0].headers["authorization"] == "Bearer sk-another-key-0f-mine"


def test_a_key_of_the_environment_does_not_follow_to_another_address(providers, monkeypatch):
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
    ):
        monkeypatch.setenv(name, KEY)

    async def go(kind, endpoint):
        providers.set(kind, kind, base_url=endpoint.url)
        await ask(await providers.model(Picked(kind, "m1")))
        await providers.close()

    for kind in ("openai", "compatible", "anthropic", "google"):
        with KINDS[kind]([Turn("x")]) as endpoint:
            asyncio.run(go(kind, endpoint))
        assert KEY not in str([each.headers for each in endpoint.requests]), kind


def test_many_streams_at_once_all_end(providers):
    async def go(endpoint):
        providers.set("one", "openai", base_url=endpoint.url, key=KEY)
        model = await providers.model(Picked("one", "m1"))
        answers = await asyncio.gather(*(ask(model) for _ in range(120)))
        await providers.close()
        return answers

    with fake_openai([Turn("one two three", between=0.01)]) as endpoint:
        assert {said(each) for each in asyncio.run(go(endpoint))} == {"one two three"}
