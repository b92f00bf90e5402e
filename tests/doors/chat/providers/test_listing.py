import asyncio
import json

import pytest

from checkrein.doors.chat.providers import Providers
from checkrein.settings.providers import read_providers
from doors.chat.endpoints import Endpoint
from doors.chat.endpoints.anthropic import Speech as AnthropicSpeech
from doors.chat.endpoints.anthropic import fake_anthropic
from doors.chat.endpoints.asking import settings
from doors.chat.endpoints.google import fake_google
from doors.chat.endpoints.openai import Speech, fake_openai

KINDS = {"openai": fake_openai, "compatible": fake_openai, "anthropic": fake_anthropic, "google": fake_google}
KEY = "sk-T0p-5ecret-key-0f-mine"


def run(endpoint, kind, then):
    async def go():
        providers = Providers(settings)
        providers.set("p", kind, base_url=endpoint.url, key=KEY, models=["kept"], default_model="kept")
        try:
            return await then(providers)
        finally:
            await providers.close()

    return asyncio.run(go())


@pytest.mark.parametrize("kind", KINDS)
def test_models_are_listed_over_all_pages_and_kept(kind):
    with KINDS[kind](models=("m-1", "m-2", "m-3"), key=KEY) as endpoint:
        assert run(endpoint, kind, lambda each: each.refresh("p")) == ["m-1", "m-2", "m-3"]
    spec = read_providers().providers["p"]
    assert spec.models == ("m-1", "m-2", "m-3")
    assert spec.offered[0] == "kept"


@pytest.mark.parametrize("kind", KINDS)
def test_a_test_says_what_it_found(kind):
    with KINDS[kind](key=KEY) as endpoint:
        result = run(endpoint, kind, lambda each: each.test("p"))
    assert result["ok"]
    assert result["models"] == ["first-model", "second-model"]
    assert 0 <= result["seconds"] < 5
    assert read_providers().providers["p"].models == ("kept",)


@pytest.mark.parametrize("kind", KINDS)
def test_a_test_that_fails_says_why_and_shows_no_key(kind):
    with KINDS[kind](key="another") as endpoint:
        result = run(endpoint, kind, lambda each: each.test("p"))
    assert (result["ok"], result["kind"]) == (False, "key")
    assert KEY not in json.dumps(result)
    result = run(endpoint, kind, lambda each: each.test("p"))
    assert result["kind"] == "network"


def test_an_empty_list_keeps_what_there_was():
    with fake_openai(models=()) as endpoint:
        assert run(endpoint, "openai", lambda each: each.refresh("p")) == ["kept"]
    assert read_providers().providers["p"].models == ("kept",)


class Odd(Speech):
    def __init__(self, answer):
        self.answer = answer

    def list(self, models, request):
        return self.answer


@pytest.mark.parametrize("answer", [[], {"data": 1}, {"models": []}, "x", None, 7])
def test_a_list_that_cannot_be_understood_is_told_and_changes_nothing(answer):
    with Endpoint(Odd(answer)) as endpoint:
        assert run(endpoint, "openai", lambda each: each.test("p"))["kind"] == "malformed"
    assert read_providers().providers["p"].models == ("kept",)


def test_names_that_cannot_be_names_are_left_out():
    rows = [{"id": each} for each in ("ok", "", "a b", "new\nline", "x" * 300, 5, None, "ok", "org/model:7b")]
    with Endpoint(Odd({"data": [*rows, 3]})) as endpoint:
        assert run(endpoint, "openai", lambda each: each.test("p"))["models"] == ["ok", "org/model:7b"]


def test_pages_without_an_end_are_not_read_for_ever():
    class Endless(AnthropicSpeech):
        def list(self, models, request):
            return {"data": [{"id": "m"}], "has_more": True, "last_id": "m"}

    with Endpoint(Endless()) as endpoint:
        assert run(endpoint, "anthropic", lambda each: each.test("p"))["models"] == ["m"]
    assert len(endpoint.requests) == 50


def test_azure_is_asked_whether_it_takes_the_key_and_its_deployments_are_ours_to_name():
    with fake_openai(key=KEY) as endpoint:
        result = run(endpoint, "azure", lambda each: each.test("p"))
    assert result["ok"]
    assert result["models"] == ["kept"]
    assert endpoint.requests[0].path == "/openai/models"
    assert endpoint.requests[0].headers["api-key"] == KEY
