"""Keys of providers: where each comes from, and that it goes to the address a person gave it for.

`settings.providers` asks. A key somebody sets is kept together with its address; of one that stands
elsewhere, in the environment or among the secrets of servers, it is kept that a person accepted it there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkrein.errors import ConfigError, InputError
from checkrein.settings.secrets import expanded, has_reference, list_secrets, remove_secret, set_secret

if TYPE_CHECKING:
    from checkrein.settings.providers import ProviderSpec

_REFERENCE = re.compile(r"\$\{(keyring:[^{}]+|env:[A-Za-z_][A-Za-z0-9_]*)\}")
_OURS, _ACCEPTED = "provider-", "accepted-"
# Where a key is looked for when none is named and the address is the provider's own.
_USUAL = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
}


def reference(spec: ProviderSpec) -> str:
    """Its key as written, or where it usually is.

    A key of the provider's own environment variable is only for the provider's own address.
    """
    usual = _USUAL.get(spec.kind, "")
    if spec.key or not usual or (spec.base_url and spec.kind != "azure"):
        return spec.key
    return f"${{env:{usual}}}"


def comes_from(spec: ProviderSpec) -> str:
    """As it may be shown: `keyring:NAME`, `env:NAME`, `file` or nowhere."""
    written = reference(spec)
    found = _REFERENCE.fullmatch(written)
    return found[1] if found else "file" if written else ""


def named(provider: str, given: str) -> str:
    """What stands in the file for a key that is given: the reference it is, or the name it is kept under."""
    return given if _REFERENCE.fullmatch(given) else f"${{keyring:{_OURS}{provider}}}"


def meant_here(spec: ProviderSpec) -> str:
    """The key, if a person gave or accepted it for this very address; raises ConfigError otherwise."""
    kept = expanded(reference(spec), f"{spec.name}.key").strip()
    if comes_from(spec).startswith(f"keyring:{_OURS}"):
        return _given_here(spec, kept)
    # INVARIANT: a key that stands elsewhere goes where a person accepted it for, whatever the file says.
    if _needs_a_person(spec) and not _is_accepted(spec):
        raise ConfigError(
            f"{spec.name}.key",
            None,
            f"was not accepted for {_meant_for(spec)}.",
            f"If it may go there, run `checkrein chat providers add {spec.name}` and write {reference(spec)}"
            " when asked for it.",
        )
    return kept


def keep(spec: ProviderSpec, given: str) -> None:
    """What a person says now: the key with its address, or that this one may be used there."""
    if given and given != spec.key:
        if is_odd(given):
            raise InputError(
                "This cannot be a key.", remedy="A key is one word of letters, digits and signs."
            )
        set_secret(f"{_OURS}{spec.name}", f"{_meant_for(spec)} {given}")
    elif _needs_a_person(spec):
        set_secret(f"{_ACCEPTED}{spec.name}", _acceptance(spec))


def is_odd(key: str) -> bool:
    """INVARIANT: no key can add a header of its own."""
    return any(ord(each) < 33 or ord(each) > 126 for each in key)


def forget(provider: str) -> None:
    for name in {f"{_OURS}{provider}", f"{_ACCEPTED}{provider}"} & set(list_secrets()):
        remove_secret(name)


def _given_here(spec: ProviderSpec, kept: str) -> str:
    """The key without the address it was given for; one of ours is kept with it."""
    address, space, key = kept.partition(" ")
    # INVARIANT: a key goes to the address it was given for, also where somebody wrote another into the file.
    if space and address != _meant_for(spec):
        raise ConfigError(
            f"{spec.name}.key", None, "was given for another address.", "Set it again, for this one."
        )
    return key if space else kept


def _needs_a_person(spec: ProviderSpec) -> bool:
    """Whether the file alone must not say so: all but a provider's usual variable at its own address."""
    written = reference(spec)
    usual = not spec.base_url and written == f"${{env:{_USUAL.get(spec.kind, '')}}}"
    return has_reference(written) and not usual and not comes_from(spec).startswith(f"keyring:{_OURS}")


def _is_accepted(spec: ProviderSpec) -> bool:
    name = f"{_ACCEPTED}{spec.name}"
    return name in list_secrets() and expanded(f"${{keyring:{name}}}", name) == _acceptance(spec)


def _acceptance(spec: ProviderSpec) -> str:
    return f"{_meant_for(spec)} {reference(spec)}"


def _meant_for(spec: ProviderSpec) -> str:
    return spec.base_url.rstrip("/") or spec.kind
