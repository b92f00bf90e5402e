"""Every error a user can meet.

CheckreinError
├── ConfigError         a setting or settings file cannot be used
├── RuleError           a rule cannot be right and is refused when written
├── InputError          a call, line or argument cannot be understood
│   └── ConflictError       it makes sense, but not as things stand now
├── NotFoundError       the thing named does not exist
├── PersonOnlyError     an agent tried what only a person may do
├── TrustFileError      a trust file cannot be imported
├── StoreError          the store cannot be opened or written
│   ├── StoreBusyError      another process holds it
│   ├── StoreFullError      the disk is full
│   ├── StoreSchemaError    it was written by a newer version, or is not ours
│   ├── SealError           something encrypted in it cannot be read
│   └── StoppedError        the gateway ended while somebody waited for it
├── LedgerError         the record does not verify
│   └── LedgerDoubtError    it verifies, and shows what an undisturbed one does not
├── PipeError           an MCP server cannot be started or connected to
├── Unreachable         an MCP server cannot be used now
├── ProviderError       a provider of models does not do what it was asked for
│   └── ProviderSilentError     it did not answer in time
├── NurseryError        scripts in JavaScript cannot run here
├── NoInterpreterError  scripts in Python cannot run here
└── DamagedError        a suspended script cannot be taken up again

Each says what happened, where, and what to do next; `code` is stable for scripts, `exit_code` for shells.
"""

from __future__ import annotations

from typing import Any


class CheckreinError(Exception):
    """Base of all errors meant for users. Raise a subclass."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": str(self)}


class ConfigError(CheckreinError):
    """Raise when a setting is unknown, of the wrong type, out of bounds or forbidden."""

    code = "config.invalid"
    exit_code = 3

    def __init__(self, key: str, value: Any, reason: str, remedy: str, *, source: str = "") -> None:
        self.key, self.value, self.reason, self.source = key, value, reason, source
        where = f"{source}: " if source else ""
        what = f"`{key}`" if value is None else f"`{key}` = {_shown(value)}"
        super().__init__(f"{where}{what}: {reason}", remedy=remedy)

    def at(self, source: str) -> ConfigError:
        """The same error, saying which file it is in."""
        return type(self)(self.key, self.value, self.reason, self.remedy, source=source)


class RuleError(CheckreinError):
    """Raise when a rule is written that cannot mean anything (both or neither of tool and pattern, ...)."""

    code = "rule.invalid"
    exit_code = 3


class InputError(CheckreinError):
    """Raise when a call, a JSON line or a command-line value cannot be understood."""

    code = "input.invalid"
    exit_code = 2


class ConflictError(InputError):
    """Raise when what was asked for makes sense, but not as things stand now: somebody was quicker, say."""

    code = "conflict"


class NotFoundError(CheckreinError):
    """Raise when a rule, entry or file that was named does not exist."""

    code = "not_found"
    exit_code = 4


class PersonOnlyError(CheckreinError):
    """Raise when a request that only a person may make comes from a gated agent's process."""

    code = "person.only"
    exit_code = 7


class TrustFileError(CheckreinError):
    """Raise when a trust-scores file is neither v1 nor v2."""

    code = "trust.file"
    exit_code = 3


class StoreError(CheckreinError):
    """Raise when the store cannot be opened, read or written; callers answer deny."""

    code = "store.failed"
    exit_code = 5


class StoreBusyError(StoreError):
    """Raise when another process holds the store's lock."""

    code = "store.busy"


class StoreFullError(StoreError):
    """Raise when the disk or quota is full."""

    code = "store.full"


class StoreSchemaError(StoreError):
    """Raise when the store's schema is newer than this version knows, or not ours at all."""

    code = "store.schema"


class SealError(StoreError):
    """Raise when something encrypted in the store was changed, or its key is gone."""

    code = "store.seal"


class LedgerError(CheckreinError):
    """Raise when a record, checkpoint or signature does not verify."""

    code = "ledger.broken"
    exit_code = 6


class LedgerDoubtError(LedgerError):
    """Raise when every record verifies but not all is proven, or something beside the records was changed."""

    code = "ledger.doubt"
    exit_code = 8


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
