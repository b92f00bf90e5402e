"""What a server's entry says of secrets: shown with references and no values, and who refers to which.

The verbs of `authority.upstream` show entries to people and agents and put them into the record.
"""

from __future__ import annotations

from typing import Any

from checkrein.authority import Asked
from checkrein.settings.secrets import references
from checkrein.settings.servers import ServersFile, ServerSpec, entry, read_servers


def shown_entry(asked: Asked, spec: ServerSpec) -> dict[str, Any]:
    """A server's entry fit to be read by anybody: of variables and headers only references, no values."""
    redactor = asked.pipeline.policies.of("").redactor
    found: dict[str, Any] = redactor.value(entry(spec))
    for key in ("env", "headers"):
        if key in found:
            values: dict[str, str] = getattr(spec, key)
            found[key] = {name: value if _is_reference(value) else "(set)" for name, value in values.items()}
    if secret := spec.client.client_secret:
        found["oauth"]["clientSecret"] = secret if _is_reference(secret) else "(set)"
    if "args" in found:
        # A flag and its value are two words: read together they show what the second is.
        line = redactor.text("\x1f".join(spec.args).replace("\x1f", " "))
        found["args"] = list(found["args"]) if line == " ".join(spec.args) else [line]
    return found


def _is_reference(value: str) -> bool:
    return value.startswith("${") and value.endswith("}") and ":-" not in value and value.count("{") == 1


def referred(spec: ServerSpec) -> list[str]:
    """The names of all secrets an entry refers to."""
    values = (*spec.args, *spec.env.values(), *spec.headers.values())
    client = (spec.client.client_id, spec.client.client_secret, spec.client.scope)
    texts = (spec.command, spec.url, spec.cwd, *values, *client)
    return [name for text in texts for name in references(text)]


def users_of(secret: str) -> list[str]:
    """The servers whose entries refer to a secret."""
    found: ServersFile = read_servers()
    return sorted(name for name, spec in found.servers.items() if secret in referred(spec))
