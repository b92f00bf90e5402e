"""Where a provider's calls go, whichever way its address was written."""

from __future__ import annotations

import re

from checkrein.settings.providers import ProviderSpec

_OWN = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
_CALLS = re.compile(r"/(chat/completions|completions|responses|models|messages)/*$")
_VERSION = re.compile(r"/v\d+\w*(/|$)")
_LAST_VERSION = re.compile(r"/v\d+\w*$")
AZURE_VERSION = "2024-10-21"


def address(spec: ProviderSpec) -> str:
    """The address as the provider's library wants it: with its version once, or without where it adds it."""
    given = _CALLS.sub("", spec.base_url.rstrip("/")).rstrip("/") or _OWN.get(spec.kind, "")
    if spec.kind in ("openai", "compatible"):
        return given if _VERSION.search(given) else f"{given}/v1"
    if spec.kind == "azure":
        return re.sub(r"/openai(/.*)?$", "", given)
    return _LAST_VERSION.sub("", given)
