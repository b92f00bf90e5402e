"""The providers file: whose models a conversation may ask, and how each is reached.

The chat door reads it, its verbs change it. A key is a reference; its value is kept by `settings.secrets` and
never shown.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.settings import entries, provider_keys
from checkrein.settings.entries import document, no_twin, shown_name, text_of, wrong
from checkrein.settings.secrets import has_reference
from checkrein.settings.servers import LOOPBACK
from checkrein.settings.sources import config_dir

ProviderKind = Literal["openai", "anthropic", "google", "azure", "compatible", "scripted"]
KINDS: tuple[ProviderKind, ...] = get_args(ProviderKind)
# The built-in model is always there under this name.
DEMO = "demo"
_TOP = "providers"
# Nobody changes the file between what another reads of it and what they write.
_WRITING = threading.RLock()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
_MODEL = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_ADDRESSED = ("azure", "compatible")


class ProviderSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One provider as the file names it. Its key stays a reference until `key_of`."""

    name: str
    kind: ProviderKind
    base_url: str = ""
    key: str = ""
    api_version: str = ""
    deployment: str = ""
    models: tuple[str, ...] = ()
    enabled: bool = True
    default_model: str = ""

    @property
    def key_from(self) -> str:
        """Where its key comes from, as it may be shown: `keyring:NAME`, `env:NAME`, `file` or nowhere."""
        return provider_keys.comes_from(self)

    @property
    def offered(self) -> tuple[str, ...]:
        """Its models, the one it begins with first."""
        first = self.default_model or self.deployment
        return tuple(dict.fromkeys(each for each in (first, *self.models) if each))

    def __repr__(self) -> str:
        # INVARIANT: a provider shown by accident shows no key.
        return f"ProviderSpec({self.name!r}, {self.kind!r})"


class ProvidersFile(msgspec.Struct, frozen=True):
    """The providers of the file and the model chosen for new conversations; with a fault there are none."""

    providers: dict[str, ProviderSpec] = {}
    default: str = ""
    fault: str = ""


BUILT_IN = ProviderSpec(name=DEMO, kind="scripted", models=(DEMO,), default_model=DEMO)
_FIELDS = tuple(name for name in ProviderSpec.__struct_fields__ if name != "name")


def providers_file() -> Path:
    return config_dir() / "providers.json"


def stamp() -> tuple[int, ...]:
    """Other whenever one of the files a provider is made of may be another."""
    return entries.stamp(providers_file())


def read_providers() -> ProvidersFile:
    """What the file says. Never raises: a file that cannot be used is a fault and offers nothing."""
    try:
        return parsed(text_of(providers_file()), str(providers_file()))
    except ConfigError as error:
        return ProvidersFile(fault=str(error))


def parsed(text: str, source: str) -> ProvidersFile:
    """The providers in a text of such a file; raises ConfigError with the name of what is wrong."""
    try:
        top = document(text, source)
        listed, default = _providers(top, source), top.get("default", "")
        if not isinstance(default, str):
            raise ConfigError("default", None, "must be text.", 'Write "PROVIDER/MODEL".')
        found: dict[str, ProviderSpec] = {}
        for name, raw in listed.items():
            found[name] = provider_spec(name, raw)
            no_twin(name, found)
        return ProvidersFile(found, default)
    except ConfigError as error:
        raise (error if error.source else error.at(source)) from None


def provider_spec(name: str, raw: Any) -> ProviderSpec:
    """One entry, checked; raises ConfigError naming key and reason, never a value that may be a key."""
    check_name(name)
    if not isinstance(raw, dict):
        raise wrong(name, "", "must be an object.", 'Write {"kind": "openai", "key": "${env:NAME}"}.')
    for key in raw:
        near = difflib.get_close_matches(key, _FIELDS, n=1, cutoff=0.7)
        if key not in _FIELDS and near:
            raise wrong(name, key, "is not known.", f"Did you mean `{near[0]}`?")
    if raw.get("kind") not in KINDS:
        raise wrong(name, "kind", "is not known.", f"Write one of {', '.join(KINDS)}.")
    taken = {key: raw[key] for key in _FIELDS if raw.get(key) is not None}
    try:
        spec = msgspec.convert({**taken, "name": name}, ProviderSpec)
    except msgspec.ValidationError as error:
        at = re.search(r"`\$\.(\w+)", str(error))
        raise wrong(name, at[1] if at else "", "is of the wrong type.", "Correct it.") from None
    _check(spec)
    return spec


def check_name(name: str) -> None:
    """Names stand before a `/` in `PROVIDER/MODEL`."""
    if not _NAME.fullmatch(name):
        remedy = "Use up to 32 letters, digits, `-`, `_` and `.`, beginning with a letter or digit."
        raise ConfigError(shown_name(name), None, "cannot be a provider's name.", remedy)
    if name.casefold() == DEMO:
        raise ConfigError(name, None, "is the name of the built-in model.", "Choose another.")


def key_of(spec: ProviderSpec) -> str:
    """The key itself, to be used and never kept; raises ConfigError naming the reference."""
    if is_literal(spec) and providers_file().stat().st_mode & 0o077:
        # INVARIANT: a secret others can read is not used, so that somebody notices.
        remedy = f"Run `chmod 600 {providers_file()}`, or set the key again: then it is kept elsewhere."
        raise wrong(spec.name, "key", "is in a file other users can read.", remedy)
    key = provider_keys.meant_here(spec)
    if provider_keys.is_odd(key):
        raise wrong(spec.name, "key", "holds what no key holds.", "Set it again, on one line.")
    return key


def save_provider(spec: ProviderSpec, key: str = "") -> ProviderSpec:
    """Write a provider; a key given as such goes to where secrets are kept, only its name into the file."""
    with _WRITING:
        return _saved(spec, key.strip())


def save_models(spec: ProviderSpec, models: tuple[str, ...]) -> None:
    """The models a provider said it has, if it is still the one that was asked."""
    with _WRITING:
        now = _before().providers.get(spec.name)
        # INVARIANT: an answer of the old address does not put it back in the place of a new one.
        if now is None or (now.kind, now.base_url, now.key) != (spec.kind, spec.base_url, spec.key):
            raise InputError(f"{spec.name!r} was changed meanwhile.", remedy="Try again.")
        _saved(msgspec.structs.replace(now, models=models), "")


def _saved(spec: ProviderSpec, given: str) -> ProviderSpec:
    if given:
        # INVARIANT: we never write a key into the file.
        spec = msgspec.structs.replace(spec, key=provider_keys.named(spec.name, given))
    check_name(spec.name)
    _check(spec)
    before = _before()
    others = {name: each for name, each in before.providers.items() if name != spec.name}
    no_twin(spec.name, {**others, spec.name: spec})
    old = before.providers.get(spec.name)
    if given or old is None or (old.kind, old.base_url) != (spec.kind, spec.base_url):
        provider_keys.keep(spec, given)
    _write([*before.providers.values(), *([spec] if spec.name not in before.providers else [])], spec)
    return spec


def remove_provider(name: str) -> None:
    """Take a provider out, and its key with it where it was ours."""
    with _WRITING:
        before = _before()
        if name not in before.providers:
            raise NotFoundError(
                f"There is no provider {name!r}.", remedy="See which there are in the settings."
            )
        default = "" if before.default.partition("/")[0] == name else before.default
        _write([each for each in before.providers.values() if each.name != name], default=default)
        provider_keys.forget(name)


def save_default(ref: str) -> None:
    """The model new conversations begin with."""
    if ref and not _MODEL.fullmatch(ref):
        raise InputError("That cannot be a model.", remedy="Write PROVIDER/MODEL.")
    with _WRITING:
        _write(_before().providers.values(), default=ref)


def _write(
    specs: Iterable[ProviderSpec], changed: ProviderSpec | None = None, default: str | None = None
) -> None:
    """The file with exactly these providers, whole or not at all. What we do not know in it stays."""
    path = providers_file()
    top = document(text_of(path), str(path))
    old, new = _providers(top, str(path)), {}
    for spec in specs:
        wanted = changed if changed is not None and changed.name == spec.name else spec
        new[wanted.name] = {**_entry(wanted), **entries.unknown(old.get(wanted.name, {}), _FIELDS)}
    chosen = top.get("default", "") if default is None else default
    entries.write(path, {**top, _TOP: new, "default": chosen})


def _entry(spec: ProviderSpec) -> dict[str, Any]:
    plain = ProviderSpec(name=spec.name, kind=spec.kind)
    return {"kind": spec.kind, **entries.unusual(spec, plain, _FIELDS)}


def _before() -> ProvidersFile:
    # INVARIANT: a file we cannot read is never written over.
    return parsed(text_of(providers_file()), str(providers_file()))


def _providers(top: dict[str, Any], source: str) -> dict[str, Any]:
    return entries.entries(top, _TOP, source, likeness=0.7)


def _check(spec: ProviderSpec) -> None:
    """What types cannot say."""
    name = spec.name
    if spec.kind not in KINDS:
        raise wrong(name, "kind", "is not known.", f"Write one of {', '.join(KINDS)}.")
    if spec.kind in _ADDRESSED and not spec.base_url:
        raise wrong(name, "base_url", "is missing.", "Write the address of the endpoint.")
    for model in (*spec.models, *filter(None, (spec.default_model, spec.deployment))):
        if not _MODEL.fullmatch(model):
            raise wrong(name, "models", "holds what cannot be a model's name.", "Correct it.")
    if spec.base_url:
        _check_address(spec)


def _check_address(spec: ProviderSpec) -> None:
    name = spec.name
    try:
        parts = urlsplit(spec.base_url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise wrong(name, "base_url", "is not an address.", "Write https://HOST/PATH.") from None
    odd = re.search(r"[\s\x00-\x1f\x7f]", spec.base_url) or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not host or odd:
        raise wrong(name, "base_url", "must be https:// or http://, a host and a path.", "Correct it.")
    if parts.username is not None or parts.password is not None:
        raise wrong(name, "base_url", "holds a user name or password.", "Put it into `key`.")
    if parts.scheme == "http" and host not in LOOPBACK and provider_keys.reference(spec):
        # INVARIANT: what lets us in somewhere never travels in the clear.
        raise wrong(name, "base_url", "would send its key unencrypted.", "Use https://.")


def is_literal(spec: ProviderSpec) -> bool:
    """Whether somebody wrote the key itself into the file."""
    return bool(spec.key) and not has_reference(spec.key)
