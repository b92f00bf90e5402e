import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.errors import CheckreinError, ConfigError, InputError, NotFoundError
from checkrein.settings.providers import (
    ProviderSpec,
    is_literal,
    key_of,
    parsed,
    provider_spec,
    providers_file,
    read_providers,
    remove_provider,
    save_default,
    save_models,
    save_provider,
    stamp,
)
from checkrein.settings.secrets import list_secrets, set_secret

KEY = "sk-T0p-5ecret-key-0f-mine"


def write(content):
    path = providers_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


def test_without_a_file_there_are_none_and_no_fault():
    found = read_providers()
    assert (found.providers, found.default, found.fault) == ({}, "", "")


def test_what_is_written_is_read_again():
    made = ProviderSpec(
        name="work",
        kind="azure",
        base_url="https://r.openai.azure.com",
        api_version="2024-10-21",
        deployment="d",
        models=("a", "b"),
        enabled=False,
        default_model="b",
    )
    saved = save_provider(made, KEY)
    assert read_providers().providers == {"work": saved}
    assert saved.offered == ("b", "a")
    save_default("work/b")
    assert read_providers().default == "work/b"


@pytest.mark.invariant("we never write a key into the file")
def test_a_key_never_gets_into_the_file():
    saved = save_provider(ProviderSpec(name="work", kind="openai"), f" {KEY}\n")
    assert saved.key == "${keyring:provider-work}"
    assert KEY not in providers_file().read_text()
    assert key_of(saved) == KEY
    assert stat.S_IMODE(providers_file().stat().st_mode) == 0o600
    named = save_provider(ProviderSpec(name="other", kind="openai"), "${env:MY_KEY}")
    assert (named.key, named.key_from) == ("${env:MY_KEY}", "env:MY_KEY")


def test_a_provider_leaves_with_its_key_and_what_we_do_not_know_stays():
    write({"note": 1, "providers": {"keep": {"kind": "openai", "mine": True}}})
    save_provider(ProviderSpec(name="work", kind="openai"), KEY)
    assert "provider-work" in list_secrets()
    remove_provider("work")
    assert "provider-work" not in list_secrets()
    left = json.loads(providers_file().read_text())
    assert left["note"] == 1
    assert left["providers"] == {"keep": {"kind": "openai", "mine": True}}
    with pytest.raises(NotFoundError):
        remove_provider("work")
    save_default("keep/m")
    remove_provider("keep")
    assert read_providers().default == ""


@pytest.mark.invariant("a file we cannot read is never written over")
def test_a_file_that_cannot_be_read_is_never_written_over():
    path = write("{ broken")
    for change in (
        lambda: save_provider(ProviderSpec(name="p", kind="openai")),
        lambda: remove_provider("p"),
        lambda: save_default("p/m"),
    ):
        with pytest.raises(ConfigError):
            change()
    assert path.read_text() == "{ broken"
    assert "not valid JSON" in read_providers().fault


@pytest.mark.invariant("what lets us in somewhere never travels in the clear")
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"kind": "opeanai"}, "kind"),
        ({}, "kind"),
        ([], "object"),
        ({"kind": "openai", "keys": KEY}, "Did you mean `key`"),
        ({"kind": "openai", "base_ulr": "https://h"}, "Did you mean `base_url`"),
        ({"kind": "compatible"}, "base_url"),
        ({"kind": "azure"}, "base_url"),
        ({"kind": "openai", "key": [KEY]}, "wrong type"),
        ({"kind": "openai", "models": KEY}, "wrong type"),
        ({"kind": "openai", "models": ["a b"]}, "model"),
        ({"kind": "openai", "enabled": "yes"}, "wrong type"),
        ({"kind": "openai", "base_url": "ftp://h"}, "https://"),
        ({"kind": "openai", "base_url": "https://h?x=1"}, "path"),
        ({"kind": "openai", "base_url": f"https://me:{KEY}@h"}, "password"),
        ({"kind": "openai", "base_url": "https://[::"}, "address"),
        ({"kind": "compatible", "base_url": "http://h.example", "key": KEY}, "unencrypted"),
        ({"kind": "azure", "base_url": "http://h.example"}, "unencrypted"),
    ],
)
def test_what_cannot_be_right_is_refused_without_showing_a_key(raw, words):
    with pytest.raises(ConfigError, match=words) as caught:
        provider_spec("p", raw)
    assert KEY not in f"{caught.value}{caught.value!r}"
    write({"providers": {"p": raw}})
    fault = read_providers().fault
    assert str(providers_file()) in fault
    assert KEY not in fault


def test_on_this_machine_nothing_needs_to_be_encrypted():
    spec = provider_spec("p", {"kind": "compatible", "base_url": "http://127.0.0.1:11434/v1", "key": KEY})
    assert is_literal(spec)
    assert provider_spec("p", {"kind": "compatible", "base_url": "http://h.example/v1"}).key == ""


def test_a_key_that_would_travel_in_the_clear_is_not_even_kept():
    with pytest.raises(ConfigError, match="unencrypted"):
        save_provider(ProviderSpec(name="p", kind="compatible", base_url="http://h.example"), KEY)
    assert list_secrets() == {}
    assert not providers_file().exists()


@pytest.mark.parametrize("name", ["", "a/b", "demo", "Demo", "x" * 33, "a b", "-a", "é"])
def test_a_name_can_stand_before_a_slash(name):
    with pytest.raises(ConfigError):
        provider_spec(name, {"kind": "openai"})


def test_names_differ_in_more_than_case():
    save_provider(ProviderSpec(name="work", kind="openai"))
    with pytest.raises(ConfigError, match="case"):
        save_provider(ProviderSpec(name="Work", kind="openai"))
    with pytest.raises(InputError):
        save_default("two words")


def test_a_key_is_where_it_is_named_or_where_it_usually_is(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert key_of(ProviderSpec(name="p", kind="openai")) == KEY
    assert ProviderSpec(name="p", kind="openai").key_from == "env:OPENAI_API_KEY"
    elsewhere = ProviderSpec(name="p", kind="openai", base_url="https://elsewhere.example")
    assert (key_of(elsewhere), elsewhere.key_from) == ("", "")
    set_secret("mine", "another")
    assert key_of(save_provider(ProviderSpec(name="p", kind="openai"), "${keyring:mine}")) == "another"
    with pytest.raises(ConfigError, match=r"p\.key") as caught:
        key_of(ProviderSpec(name="p", kind="openai", key="${keyring:none}"))
    assert KEY not in str(caught.value)


@pytest.mark.invariant(
    "a key goes to the address it was given for, also where somebody wrote another into the file"
)
def test_a_key_goes_to_the_address_it_was_given_for_whatever_the_file_says():
    save_provider(ProviderSpec(name="work", kind="openai"), KEY)
    save_provider(ProviderSpec(name="own", kind="compatible", base_url="https://own.example/"), KEY)
    assert [key_of(each) for each in read_providers().providers.values()] == [KEY, KEY]
    entries = json.loads(providers_file().read_text())["providers"]
    entries["work"]["base_url"] = "https://elsewhere.example"
    entries["own"]["base_url"] = "https://own.example.elsewhere"
    entries["new"] = {"kind": "compatible", "base_url": "https://new", "key": "${keyring:provider-work}"}
    entries["other"] = {"kind": "anthropic", "key": "${keyring:provider-work}"}
    entries["same"] = {"kind": "openai", "key": "${keyring:provider-work}"}
    write({"providers": entries})
    found = read_providers().providers
    assert key_of(found.pop("same")) == KEY
    for each in found.values():
        with pytest.raises(ConfigError, match="another address") as caught:
            key_of(each)
        assert KEY not in str(caught.value)


@pytest.mark.invariant("an answer of the old address does not put it back in the place of a new one")
def test_models_an_old_address_has_do_not_put_it_back():
    old = save_provider(ProviderSpec(name="work", kind="openai", base_url="https://old.example"), KEY)
    new = save_provider(ProviderSpec(name="work", kind="openai", base_url="https://new.example"), "sk-new")
    with pytest.raises(InputError, match="changed meanwhile"):
        save_models(old, ("a",))
    assert read_providers().providers == {"work": new}
    save_models(new, ("b",))
    assert read_providers().providers["work"].models == ("b",)
    remove_provider("work")
    with pytest.raises(InputError, match="changed meanwhile"):
        save_models(new, ("c",))


def test_nobody_s_provider_is_lost_where_many_are_written_at_once():
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: save_provider(ProviderSpec(name=f"p{at}", kind="openai"), KEY), range(24)))
    assert len(read_providers().providers) == 24
    assert all(key_of(each) == KEY for each in read_providers().providers.values())


@pytest.mark.invariant("no key can add a header of its own")
@pytest.mark.parametrize("key", ["a\nb", "a b", "ключ", "a\x00"])
def test_no_key_adds_a_header(monkeypatch, key):
    if "\x00" not in key:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(ConfigError, match="no key holds") as caught:
            key_of(ProviderSpec(name="p", kind="openai"))
        assert key not in str(caught.value)
    with pytest.raises(CheckreinError):
        key_of(save_provider(ProviderSpec(name="p", kind="openai"), key))


@pytest.mark.invariant("a secret others can read is not used, so that somebody notices")
def test_a_key_in_a_file_others_can_read_is_not_used():
    path = write({"providers": {"p": {"kind": "openai", "key": KEY}}})
    spec = read_providers().providers["p"]
    assert key_of(spec) == KEY
    assert spec.key_from == "file"
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        key_of(spec)
    assert KEY not in str(caught.value)


def test_a_file_others_can_write_is_a_fault():
    path = write({"providers": {"p": {"kind": "openai"}}})
    path.chmod(0o606)
    found = read_providers()
    assert found.providers == {}
    assert "other users" in found.fault


@pytest.mark.invariant("a provider shown by accident shows no key")
def test_no_repr_shows_a_key():
    spec = ProviderSpec(name="p", kind="openai", key=KEY)
    assert KEY not in repr([spec, {"p": spec}, read_providers()])


def test_a_stamp_changes_with_the_file():
    before = stamp()
    save_provider(ProviderSpec(name="p", kind="openai"))
    middle = stamp()
    os.utime(providers_file(), ns=(1, 1))
    assert len({before, middle, stamp()}) == 3


@given(st.text(max_size=60))
def test_no_text_is_too_odd(text):
    try:
        parsed(text, "x")
    except ConfigError as error:
        assert error.source


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["kind", "base_url", "key", "models", "enabled", "deployment", "odd"])


@given(st.dictionaries(FIELDS, JSON | st.sampled_from(["openai", "compatible"]), max_size=4))
def test_no_entry_is_too_odd(raw):
    try:
        provider_spec("p", raw)
    except ConfigError as error:
        assert error.remedy
