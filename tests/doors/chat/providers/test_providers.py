import asyncio
import json
import subprocess
import sys

import pytest

from checkrein.doors.chat.providers import Picked, ProviderError, Providers
from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.settings import Chat, Settings
from checkrein.settings.providers import providers_file
from doors.chat.endpoints.asking import ask, said

KEY = "sk-T0p-5ecret-key-0f-mine"


@pytest.fixture
def providers():
    made = Providers()
    made.set("work", "openai", key=KEY, models=["gpt-a", "gpt-b"], default_model="gpt-b")
    made.set("home", "compatible", base_url="http://127.0.0.1:11434", models=["llama", "gpt-a"])
    made.set("off", "anthropic", key=KEY, models=["claude"], enabled=False)
    return made


def test_without_any_provider_the_built_in_model_answers():
    providers = Providers()
    assert [each.name for each in providers.configs()] == ["demo"]
    picked = providers.pick()
    assert picked == Picked("demo", "demo")
    assert providers.models() == [
        {"ref": "demo/demo", "provider": "demo", "model": "demo", "kind": "scripted", "default": True}
    ]
    assert said(asyncio.run(_asked(providers, picked, "/say Hello there"))) == "Hello there"
    assert asyncio.run(providers.test("demo"))["ok"]
    assert asyncio.run(providers.refresh("demo")) == ["demo"]


async def _asked(providers, picked, text):
    return await ask(await providers.model(picked), text)


def test_a_reference_means_one_model(providers):
    assert providers.pick("work/gpt-a") == Picked("work", "gpt-a")
    assert providers.pick("gpt-b") == Picked("work", "gpt-b")
    assert providers.pick(" llama ") == Picked("home", "llama")
    assert providers.pick("work") == Picked("work", "gpt-b")
    assert providers.pick("home/org/model:7b") == Picked("home", "org/model:7b")
    assert providers.pick() == Picked("work", "gpt-b")
    assert providers.pick("demo").ref == "demo/demo"


@pytest.mark.parametrize(
    ("ref", "error", "words"),
    [
        ("gpt-a", InputError, "work/gpt-a or home/gpt-a"),
        ("gpt-z", NotFoundError, "gpt-z"),
        ("nobody/gpt-a", NotFoundError, "nobody/gpt-a"),
        ("off/claude", InputError, "switched off"),
        ("claude", InputError, "switched off"),
        ("demo/other", NotFoundError, "demo/other"),
    ],
)
def test_what_means_none_or_several_is_refused_and_never_replaced(providers, ref, error, words):
    with pytest.raises(error, match=words):
        providers.pick(ref)


def test_the_default_is_the_files_else_the_first_real_one(providers):
    assert providers.set_default("llama") == Picked("home", "llama")
    assert providers.pick() == Picked("home", "llama")
    assert [each["ref"] for each in providers.models() if each["default"]] == ["home/llama"]
    with pytest.raises(InputError, match="switched off"):
        providers.set_default("off/claude")
    providers.remove("home")
    assert providers.pick() == Picked("work", "gpt-b")
    providers.set_default("work/gpt-a")
    assert providers.set_default("") == Picked("work", "gpt-b")


def test_a_default_that_is_switched_off_is_told_and_never_replaced(providers):
    providers.set_default("home/llama")
    providers.set("home", "compatible", enabled=False)
    with pytest.raises(InputError, match="switched off"):
        providers.pick()
    assert not any(each["default"] for each in providers.models())


def test_nothing_goes_out_while_the_settings_cannot_be_read(providers, user_settings):
    user_settings('[connections]\nproxy = "custm"')
    with pytest.raises(ConfigError) as caught:
        asyncio.run(providers.model(Picked("work", "gpt-a")))
    assert "connections.proxy" in providers.explain(caught.value).text
    assert providers.models()


def test_a_default_in_the_settings_holds_and_is_changed_there(providers):
    fixed = Providers(lambda: Settings(chat=Chat(model="home/llama")))
    providers.set_default("work/gpt-a")
    assert fixed.pick() == Picked("home", "llama")
    with pytest.raises(InputError, match=r"config\.toml"):
        fixed.set_default("work/gpt-a")


def test_a_model_that_is_off_or_gone_is_not_asked(providers):
    for picked, error in ((Picked("off", "claude"), InputError), (Picked("gone", "m"), NotFoundError)):
        with pytest.raises(error):
            asyncio.run(providers.model(picked))


def test_what_is_shown_of_a_provider_holds_no_key(providers):
    shown = {each["name"]: each for each in providers.listed()}
    assert shown["work"]["has_key"]
    assert shown["work"]["key_from"] == "keyring:provider-work"
    assert not shown["home"]["has_key"]
    assert shown["home"]["key_from"] == ""
    assert KEY not in repr([shown, providers.configs(), providers.models(), providers.__dict__])
    assert KEY not in providers_file().read_text()


def test_a_key_in_the_file_is_used_and_said_to_be_there():
    providers_file().parent.mkdir(parents=True)
    providers_file().write_text(json.dumps({"providers": {"p": {"kind": "openai", "key": KEY}}}))
    providers_file().chmod(0o600)
    shown = Providers().listed()[0]
    assert (shown["has_key"], shown["key_from"]) == (True, "file")
    assert "set it again" in shown["fault"]
    assert KEY not in repr(shown)
    providers_file().chmod(0o644)
    shown = Providers().listed()[0]
    assert "chmod 600" in shown["fault"]
    assert not shown["has_key"]


def test_a_missing_key_is_named_before_anything_is_sent(providers, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    providers.set("bare", "anthropic", models=["claude"])
    with pytest.raises(Exception) as caught:
        asyncio.run(providers.model(Picked("bare", "claude")))
    trouble = providers.explain(caught.value)
    assert trouble.kind == "key"
    assert "ANTHROPIC_API_KEY" in trouble.text


def test_a_key_stays_when_other_things_change_but_not_for_another_address(providers):
    providers.set("work", "openai", models=["gpt-c"], base_url=None, default_model=None, key=None)
    shown = providers.listed()[0]
    assert (shown["models"], shown["default_model"], shown["has_key"]) == (["gpt-c"], "gpt-b", True)
    with pytest.raises(InputError, match="key again"):
        providers.set("work", "openai", base_url="https://elsewhere.example")
    providers.set("work", "openai", base_url="https://elsewhere.example", key="sk-new")
    assert providers.config("work").base_url == "https://elsewhere.example"


def test_a_file_that_cannot_be_used_is_a_fault_and_the_built_in_model_stays(providers):
    providers_file().write_text("{")
    assert [each.name for each in providers.configs()] == ["demo"]
    assert "not valid JSON" in providers.fault
    with pytest.raises(NotFoundError, match="not valid JSON"):
        providers.pick("work/gpt-a")
    # Nor does another answer whoever named none: which one they mean stands there.
    with pytest.raises(InputError, match="not valid JSON"):
        providers.pick()
    assert providers.pick("demo/demo") == Picked("demo", "demo")


def test_what_is_not_installed_is_said_before_anybody_asks(providers, monkeypatch):
    assert providers.missing == ""
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    assert "checkrein[chat]" in providers.missing


def test_the_built_in_model_cannot_be_removed(providers):
    with pytest.raises(InputError):
        providers.remove("demo")
    with pytest.raises(NotFoundError):
        providers.remove("nobody")


def test_a_test_of_nobody_is_an_error(providers):
    with pytest.raises(NotFoundError):
        asyncio.run(providers.test("nobody"))


@pytest.mark.parametrize("kind", ["compatible", "openai", "anthropic", "google"])
def test_who_cannot_be_reached_has_no_list_and_is_told_why(providers, kind, unused_port):
    address = f"http://127.0.0.1:{unused_port}"
    providers.set("gone", kind, key=KEY, base_url=address, models=["before"])
    with pytest.raises(ProviderError) as caught:
        asyncio.run(providers.refresh("gone"))
    assert caught.value.message == asyncio.run(providers.test("gone"))["text"]
    assert "connection" in caught.value.message
    assert KEY not in str(caught.value)
    assert providers.config("gone").models == ("before",)
    with pytest.raises(NotFoundError):
        asyncio.run(providers.refresh("nobody"))


def test_nothing_heavy_is_loaded_before_a_model_is_asked_for():
    code = (
        "import sys; from checkrein.doors.chat.providers import Providers; p = Providers(); p.models();"
        "p.listed(); p.explain(TimeoutError()); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pydantic", "pydantic_ai", "openai", "anthropic", "google.genai", "httpx", "httpx2"}
    assert not heavy & set(done.stdout.split())
