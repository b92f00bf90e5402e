"""Secrets servers need: references like `${keyring:NAME}`, and the places their values are kept in.

`settings.servers` fills references in when a server is started. Values are never shown, logged or in errors.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

import msgspec

from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.settings.reading import read
from checkrein.settings.sources import config_dir

SERVICE = "checkrein"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")
LONGEST = 1 << 16
# `$$` is a dollar sign that begins no reference.
_REFERENCE = re.compile(r"\$(\$)(?=\{)|\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_KEPT = re.compile(r"keyring:(.*)", re.DOTALL)


class KeyStore(Protocol):
    """What the `keyring` package offers."""

    def get_password(self, service: str, name: str) -> str | None: ...
    def set_password(self, service: str, name: str, value: str) -> None: ...
    def delete_password(self, service: str, name: str) -> None: ...


class _Kept(msgspec.Struct):
    """The secrets file: values of its own, and the names of those in the desktop's key store."""

    secrets: dict[str, str] = {}
    keyring: list[str] = []

    def __repr__(self) -> str:
        return f"{len(self.secrets)} secrets"


def secrets_file() -> Path:
    return config_dir() / "secrets.json"


def environment_file() -> Path:
    """`NAME=value` lines for servers: ours starts with hardly any environment of its own."""
    return config_dir() / "environment"


def has_reference(text: str) -> bool:
    return any(found[2] is not None for found in _REFERENCE.finditer(text))


def references(text: str) -> list[str]:
    """The names of the kept secrets a text refers to."""
    found = (_KEPT.fullmatch(each[2] or "") for each in _REFERENCE.finditer(text))
    return [each[1] for each in found if each]


def expanded(text: str, where: str) -> str:
    """The text with its references replaced, once; an error names the reference and never a value."""
    return _REFERENCE.sub(lambda found: "$" if found[1] else _value(found[2], where), text)


def set_secret(name: str, value: str) -> str:
    """Keep a value; says where: "keyring" or "file"."""
    check_secret_name(name)
    if not value or len(value) > LONGEST or "\x00" in value:
        raise InputError("A secret has 1 to 65536 characters and no zero byte.")
    kept = _kept()
    if _keep_in_key_store(name, value):
        kept.secrets.pop(name, None)
        kept.keyring = sorted({*kept.keyring, name})
    else:
        kept.secrets[name] = value
        kept.keyring = [each for each in kept.keyring if each != name]
    _write(kept)
    return "keyring" if name in kept.keyring else "file"


def list_secrets() -> dict[str, str]:
    """The name of every kept secret and where it is."""
    kept = _kept()
    places = {**dict.fromkeys(kept.secrets, "file"), **dict.fromkeys(kept.keyring, "keyring")}
    return dict(sorted(places.items()))


def remove_secret(name: str) -> None:
    kept = _kept()
    if name not in kept.secrets and name not in kept.keyring:
        raise NotFoundError(f"There is no secret {name!r}.", remedy="See `checkrein servers secret list`.")
    if name in kept.keyring and (store := key_store()):
        try:
            store.delete_password(SERVICE, name)
        except Exception:  # noqa: BLE001 - whatever a key store fails with, its text could hold the value
            if _asked(store, name) is not None:
                raise InputError(
                    f"The key store did not remove {name!r}.", remedy="Unlock it, then try again."
                ) from None
    kept.secrets.pop(name, None)
    kept.keyring = [each for each in kept.keyring if each != name]
    _write(kept)


def key_store() -> KeyStore | None:
    """The desktop's key store; None where the `keyring` package is missing or has nowhere to keep things."""
    try:
        found: KeyStore = importlib.import_module("keyring").get_keyring()
        nowhere = importlib.import_module("keyring.backends.fail").Keyring
    except Exception:  # noqa: BLE001 - a key store that cannot be loaded is none
        return None
    return None if isinstance(found, nowhere) else found


def _value(reference: str, where: str) -> str:
    if kept := _KEPT.fullmatch(reference):
        return _secret(kept[1], where)
    variable = _VARIABLE.fullmatch(reference)
    if variable is None:
        raise _unknown(
            reference,
            where,
            "Write ${env:NAME}, ${NAME}, ${NAME:-default} or ${keyring:NAME}; `$${` is `${`.",
        )
    name, default = variable[1], variable[2]
    value = os.environ.get(name) or _environment().get(name) or default
    if value is None:
        raise _unknown(
            reference,
            where,
            f"Add a line {name}=... to {environment_file()}, or a default: ${{{name}:-...}}.",
        )
    return value


def _secret(name: str, where: str) -> str:
    kept = _kept()
    value = kept.secrets.get(name)
    if value is None and name in kept.keyring and (store := key_store()):
        value = _asked(store, name)
    if value is None:
        raise _unknown(f"keyring:{name}", where, f"Run `checkrein servers secret set {_shown(name)}`.")
    return value


def _asked(store: KeyStore, name: str) -> str | None:
    try:
        return store.get_password(SERVICE, name)
    except Exception:  # noqa: BLE001 - locked or gone: then there is no value, and no text of it to show
        return None


def _keep_in_key_store(name: str, value: str) -> bool:
    """Whether it is there now; a key store that forgets at once is no place for it."""
    store = key_store()
    if store is None:
        return False
    try:
        store.set_password(SERVICE, name, value)
        return store.get_password(SERVICE, name) == value
    except Exception:  # noqa: BLE001 - then the file keeps it
        return False


def _environment() -> dict[str, str]:
    text = _private_text(environment_file())
    lines = (line.strip().removeprefix("export ") for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): _unquoted(value.strip()) for name, _, value in pairs}


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    return value[1:-1] if quoted else value


def _kept() -> _Kept:
    text = _private_text(secrets_file())
    try:
        return msgspec.json.decode(text.encode(), type=_Kept) if text.strip() else _Kept()
    except (msgspec.MsgspecError, RecursionError):
        raise ConfigError(
            str(secrets_file()),
            None,
            "cannot be read.",
            "Remove it and set the secrets again with `checkrein servers secret set`.",
        ) from None


def _private_text(path: Path) -> str:
    content = read(path)
    if content is None:
        return ""
    status = path.stat()
    # INVARIANT: a secret others can read is not used, so that somebody notices.
    if status.st_mode & 0o077 or status.st_uid != os.geteuid():
        raise ConfigError(
            str(path), None, "can be read or written by other users.", f"Run `chmod 600 {path}`."
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(str(path), None, "is not UTF-8 text.", "Correct it.") from None


def _write(kept: _Kept) -> None:
    put(secrets_file(), json.dumps(msgspec.to_builtins(kept), indent=2, ensure_ascii=False) + "\n")


def put(path: Path, text: str) -> None:
    """A file only its owner can read, in one step; a link stays a link."""
    target = path.resolve()
    part = ""
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(target)
    except (OSError, UnicodeEncodeError) as error:
        if part:
            Path(part).unlink(missing_ok=True)
        why = getattr(error, "strerror", None) or "it holds what is no text"
        raise ConfigError(
            str(path), None, f"cannot be written ({why}).", "Nothing was changed; make room or make it yours."
        ) from None


def check_secret_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise InputError(
            f"{_shown(name)!r} cannot be a secret's name.",
            remedy="Use letters, digits, `-`, `_` and `.`, at most 96.",
        )


def _unknown(reference: str, where: str, remedy: str) -> ConfigError:
    return ConfigError(where, None, f"${{{_shown(reference)}}} has no value here.", remedy)


def _shown(text: str) -> str:
    """A name, made fit to be read; what stands after `:-` is a value and stays out."""
    text = text.partition(":-")[0]
    text = "".join(each if each.isprintable() else "?" for each in text)
    return text if len(text) <= 60 else f"{text[:57]}..."
