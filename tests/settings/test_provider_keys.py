"""A key that stands elsewhere goes only where a person accepted it for."""

import json

import pytest

from checkrein.doors.chat.providers import Providers
from checkrein.errors import ConfigError, InputError
from checkrein.settings.providers import (
    ProviderSpec,
    key_of,
    providers_file,
    read_providers,
    remove_provider,
    save_models,
    save_provider,
)
from checkrein.settings.secrets import list_secrets, set_secret

KEY = "sk-T0p-5ecret-key-0f-mine"
HOME = "https://own.example/v1"


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    for name in ("OUR_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    set_secret("mail-token", KEY)


def written(**entries):
    """The file as somebody wrote it by hand."""
    path = providers_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"providers": entries}))
    path.chmod(0o600)
    return read_providers().providers


def edited(**changes):
    entries = json.loads(providers_file().read_text())["providers"]
    for name, fields in changes.items():
        entries.setdefault(name, {}).update(fields)
    return written(**entries)


def refused(spec):
    with pytest.raises(ConfigError, match="was not accepted for") as caught:
        key_of(spec)
    assert KEY not in str(caught.value)
    return str(caught.value)


def saved(key, name="work", kind="compatible", base_url=HOME):
    return save_provider(ProviderSpec(name=name, kind=kind, base_url=base_url), key)


@pytest.mark.parametrize("key", ["${env:OUR_KEY}", "${keyring:mail-token}"])
def test_a_key_goes_where_it_was_named_for(key):
    assert key_of(saved(key)) == KEY
    assert key_of(read_providers().providers["work"]) == KEY


@pytest.mark.invariant(
    "a key that stands elsewhere goes where a person accepted it for, whatever the file says"
)
@pytest.mark.parametrize("key", ["${env:OUR_KEY}", "${keyring:mail-token}"])
@pytest.mark.parametrize(
    "change",
    [
        {"base_url": "https://own.example.elsewhere/v1"},
        {"base_url": "https://elsewhere.example"},
        {"kind": "openai", "base_url": ""},
        {"key": "${env:OPENAI_API_KEY}"},
        {"key": "${env:OUR_KEY:-none}"},
        {"key": "${OUR_KEY}"},
    ],
)
def test_and_nowhere_else_whatever_the_file_says(key, change):
    saved(key)
    refused(edited(work=change)["work"])


@pytest.mark.invariant(
    "a key that stands elsewhere goes where a person accepted it for, whatever the file says"
)
def test_no_new_provider_takes_a_key_along():
    saved("${env:OUR_KEY}")
    found = edited(
        new={"kind": "compatible", "base_url": HOME, "key": "${env:OUR_KEY}"},
        mail={"kind": "compatible", "base_url": HOME, "key": "${keyring:mail-token}"},
        cloud={"kind": "azure", "base_url": "https://r.openai.azure.com"},
        odd={"kind": "compatible", "base_url": HOME, "key": "x${env:OUR_KEY}"},
    )
    assert key_of(found.pop("work")) == KEY
    for each in found.values():
        refused(each)


def test_the_usual_variable_at_the_provider_s_own_address_needs_nobody():
    found = written(plain={"kind": "openai"}, named={"kind": "openai", "key": "${env:OPENAI_API_KEY}"})
    assert [key_of(each) for each in found.values()] == [KEY, KEY]


def test_who_is_refused_hears_where_it_would_go_and_how_to_accept_that():
    told = refused(written(hand={"kind": "compatible", "base_url": HOME, "key": "${env:OUR_KEY}"})["hand"])
    assert HOME in told and "checkrein chat providers add hand" in told and "${env:OUR_KEY}" in told
    providers = Providers()
    (shown, _) = providers.listed()
    assert (shown["has_key"], "was not accepted" in shown["fault"]) == (False, True)
    assert providers.set("hand", "compatible", key="${env:OUR_KEY}")["has_key"]


def test_what_a_person_does_besides_accepts_no_address():
    saved("${env:OUR_KEY}")
    found = edited(work={"base_url": "https://elsewhere.example"})["work"]
    save_models(found, ("a",))
    Providers().set("work", "compatible", enabled=False)
    Providers().set("work", "compatible", enabled=True)
    refused(read_providers().providers["work"])


def test_azure_s_usual_variable_is_for_the_address_a_person_named():
    first = save_provider(ProviderSpec(name="cloud", kind="azure", base_url="https://a.openai.azure.com"))
    assert key_of(first) == KEY
    refused(edited(cloud={"base_url": "https://b.openai.azure.com"})["cloud"])
    Providers().set("cloud", "azure", base_url="https://c.openai.azure.com")
    assert key_of(read_providers().providers["cloud"]) == KEY


def test_a_key_is_named_again_for_another_address():
    saved("${env:OUR_KEY}")
    with pytest.raises(InputError, match="address"):
        Providers().set("work", "compatible", base_url="https://other.example")
    Providers().set("work", "compatible", base_url="https://other.example", key="${env:OUR_KEY}")
    assert key_of(read_providers().providers["work"]) == KEY


def test_what_was_accepted_goes_with_the_provider():
    saved("${env:OUR_KEY}")
    saved(KEY, name="other")
    before = set(list_secrets())
    remove_provider("work")
    remove_provider("other")
    assert before - set(list_secrets()) == {"accepted-work", "provider-other"}
    refused(written(work={"kind": "compatible", "base_url": HOME, "key": "${env:OUR_KEY}"})["work"])


@pytest.mark.parametrize("key", ["two words", "a\nb", "ключ", "a\x00", "${env:not a name}"])
def test_what_cannot_be_a_key_is_refused_when_it_is_set(key):
    saved("${env:OUR_KEY}")
    with pytest.raises(InputError, match="cannot be a key") as caught:
        saved(key)
    assert key not in str(caught.value)
    assert key_of(read_providers().providers["work"]) == KEY
    with pytest.raises(InputError, match="cannot be a key"):
        saved(key, name="new")
    assert set(read_providers().providers) == {"work"}
