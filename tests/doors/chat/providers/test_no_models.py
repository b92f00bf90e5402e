"""A provider somebody set up and nobody named a model of: nothing else answers in its place."""

import asyncio

import pytest

from checkrein.doors.chat.providers import Picked, Providers
from checkrein.errors import InputError
from checkrein.settings.providers import save_default


@pytest.fixture
def providers():
    return Providers()


def bare(providers, name="work"):
    providers.set(name, "compatible", base_url="http://127.0.0.1:9")


def test_the_built_in_model_does_not_answer_for_it(providers):
    bare(providers)
    with pytest.raises(InputError, match="'work' has no models yet") as caught:
        providers.pick()
    assert "providers refresh work" in caught.value.remedy
    assert not any(each["default"] for each in providers.models())


def test_one_that_has_a_model_answers_and_so_does_what_is_picked(providers):
    bare(providers)
    assert providers.pick("demo/demo") == Picked("demo", "demo")
    providers.set("home", "compatible", base_url="http://127.0.0.1:8", models=["llama"])
    assert providers.pick() == Picked("home", "llama")


def test_without_any_provider_or_with_all_of_them_off_the_built_in_one_does(providers):
    assert providers.pick() == Picked("demo", "demo")
    bare(providers)
    providers.set("work", "compatible", enabled=False)
    assert providers.pick() == Picked("demo", "demo")


def test_a_default_is_taken_back_though_there_is_no_model(providers):
    bare(providers)
    save_default("demo/demo")
    assert providers.set_default("") == Picked("", "")
    with pytest.raises(InputError):
        providers.pick()


def test_a_chat_says_so_before_anything_is_kept(talk):
    bare(talk.models)
    told = talk.chat.status()
    assert (told["ready"], told["provider"]) == (False, "") and "has no models yet" in told["reason"]
    with pytest.raises(InputError, match="has no models yet"):
        talk.chat.send(session=talk.id, text="hello")
    assert talk.messages() == []
    assert talk.models.sent == []
    assert talk.finish("/say still here", model="demo/demo") == "end"
    assert asyncio.run(talk.models.test("demo"))["ok"]
