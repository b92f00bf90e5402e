"""Says in plain words what went wrong with a model, whatever library said it.

Errors are told apart by the names of their classes and of those that caused them, so that nothing heavy is
loaded to explain one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from checkrein.errors import CheckreinError, ConfigError
from checkrein.ledger.redact import Redactor

TroubleKind = Literal[
    "key",
    "rate",
    "server",
    "network",
    "proxy",
    "certificate",
    "timeout",
    "limit",
    "refused",
    "malformed",
    "unknown",
]
_DEEPEST = 12
_LONGEST_QUOTE = 300
_LONGEST_WAIT = 86_400.0
_REDACTOR = Redactor()


class Trouble(msgspec.Struct, frozen=True):
    """What happened and what to do. `retry_after`: seconds the provider asked to wait."""

    kind: TroubleKind
    text: str
    retry_after: float | None = None


_SAID: dict[TroubleKind, str] = {
    "key": "The provider did not accept the key. Set it again, and check that it may use this model.",
    "rate": "The provider takes no more requests for now.",
    "server": "The provider failed on its side. Try again in a while.",
    "network": "The connection to the provider failed or was cut. Check its address and the network; retry.",
    "proxy": "The proxy could not be used. Check `connections.proxy` and its user name and password.",
    "certificate": (
        "The provider's certificate is not trusted here. If your network has a certificate authority of its "
        "own, name its file in `connections.ca_files`."
    ),
    "timeout": (
        "It was silent for too long. Try again; for slow models raise `connections.timeout_seconds`."
    ),
    "limit": "The conversation is too long for this model. Compress it, or pick a model that takes in more.",
    "refused": "The provider refused the request.",
    "malformed": "The provider's answer cannot be understood. Try again, or pick another model.",
    "unknown": "Something went wrong while asking the model.",
}
# The first row with a name among the error's and its causes' classes says what it was.
_NAMED: tuple[tuple[TroubleKind, tuple[str, ...]], ...] = (
    ("certificate", ("SSLCertVerificationError", "CertificateError")),
    ("proxy", ("ProxyError",)),
    ("limit", ("ModelContextWindowExceededError",)),
    ("refused", ("ContentFilterError",)),
    ("key", ("ModelAuthenticationError",)),
    ("rate", ("ModelRateLimitError", "ModelQuotaExceededError")),
    ("server", ("ModelServerError", "ModelUnavailableError")),
    ("refused", ("ModelNotFoundError",)),
)
_LATER: tuple[tuple[TroubleKind, tuple[str, ...]], ...] = (
    ("timeout", ("TimeoutError", "TimeoutException", "APITimeoutError")),
    ("timeout", ("ModelTimeoutError", "ModelRequestTimeout")),
    ("certificate", ("SSLError",)),
    ("malformed", ("JSONDecodeError", "ValidationError", "UnicodeDecodeError", "UnknownApiResponseError")),
    ("malformed", ("APIResponseValidationError", "DecodingError")),
    ("malformed", ("UnexpectedModelBehavior", "IncompleteToolCall")),
    (
        "network",
        ("ModelConnectionError", "APIConnectionError", "TransportError", "ConnectionError", "OSError"),
    ),
    ("network", ("NetworkError", "ProtocolError", "IncompleteReadError", "ClientError")),
)
# What Pydantic AI says of a stream of OpenAI's that stops before its end.
_NO_END = "ended without a `finish_reason`"
_TOO_LONG = ("context_length", "context length", "context window", "prompt is too long", "maximum context")
_TOO_LONG_FOR_GOOGLE = "input token count"
_FILTERED = ("content_filter", "content_policy", "content management policy", "safety")
_NO_KEY = ("api_key_invalid", "api key not valid", "invalid_api_key", "invalid x-api-key")
_NO_MONEY = ("insufficient_quota", "billing", "credit balance", "quota exceeded")


def explain(error: BaseException, secrets: Iterable[str] = ()) -> Trouble:
    """The trouble an error is. Its words are ours; what is quoted of the provider's holds no secret."""
    if isinstance(error, CheckreinError):
        return Trouble(_of_ours(error), str(error))
    chain = list(_causes(error))
    names = {cls.__name__ for each in chain for cls in type(each).__mro__}
    status = next(filter(None, map(_status, chain)), 0)
    said = next(filter(None, map(_body, chain)), "")
    kind = _kind(names, status, said, chain)
    # INVARIANT: no key, header or address of a provider is in what a person is told.
    quoted = "" if kind in ("key", "network", "proxy", "certificate") else _quoted(said, secrets)
    wait = next((each for each in map(_wait, chain) if each is not None), None)
    return Trouble(kind, _words(kind, status, said, quoted, wait, error), wait if kind == "rate" else None)


def _kind(names: set[str], status: int, said: str, chain: list[BaseException]) -> TroubleKind:
    low = said.casefold()
    if any("CERTIFICATE_VERIFY_FAILED" in str(each) for each in chain):
        return "certificate"
    if _NO_END in str(chain[0]):
        return "network"
    for kind, wanted in _NAMED:
        if names.intersection(wanted) and not (kind == "server" and 0 < status < 500):
            return "limit" if kind == "refused" and _too_long(low) else kind
    if status:
        return _of_status(status, low)
    for kind, wanted in _LATER:
        if names.intersection(wanted):
            return "refused" if kind == "malformed" and any(each in low for each in _FILTERED) else kind
    return "unknown"


def _of_status(status: int, said: str) -> TroubleKind:
    if status == 407:
        return "proxy"
    if status == 413 or _too_long(said):
        return "limit"
    if status in (401, 403) or any(each in said for each in _NO_KEY):
        return "key"
    if status in (402, 429):
        return "rate"
    if status in (408, 504):
        return "timeout"
    return "server" if status >= 500 else "refused"


def _too_long(said: str) -> bool:
    return any(each in said for each in _TOO_LONG) or (_TOO_LONG_FOR_GOOGLE in said and "exceed" in said)


def _words(
    kind: TroubleKind, status: int, said: str, quoted: str, wait: float | None, error: BaseException
) -> str:
    text, low = _SAID[kind], said.casefold()
    if kind == "refused" and status == 404:
        text = "The provider knows no such model, or its address is wrong. Pick another model, or correct it."
    elif kind == "refused" and 300 <= status < 400:
        text = "The provider's address leads elsewhere, where its key is not sent. Correct the address."
    elif kind == "refused" and (_is_filter(error) or any(each in low for each in _FILTERED)):
        text = "The provider's content filter refused this."
    elif kind == "rate" and any(each in low for each in _NO_MONEY):
        text = "The account at the provider has no credit or quota left."
    elif kind == "rate":
        text += f" Try again in {wait:g} seconds." if wait else " Try again in a while."
    elif kind == "unknown":
        text += f" ({type(error).__name__})"
    if status and kind in ("server", "refused"):
        text += f" (HTTP {status})"
    return f"{text} It said: {quoted}" if quoted and kind in ("refused", "limit", "server", "rate") else text


def _is_filter(error: BaseException) -> bool:
    return type(error).__name__ == "ContentFilterError"


def _of_ours(error: CheckreinError) -> TroubleKind:
    key = error.key if isinstance(error, ConfigError) else ""
    if key.endswith(".key"):
        return "key"
    if key.startswith("connections."):
        return "certificate" if "certificates" in key or "ca_files" in key else "proxy"
    return "refused" if key else "unknown"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop(0)
        if each is None or any(each is other for other in seen):
            continue
        seen.append(each)
        yield each
        waiting += each.exceptions[:4] if isinstance(each, BaseExceptionGroup) else ()
        waiting += (each.__cause__, None if each.__suppress_context__ else each.__context__)


def _status(error: BaseException) -> int:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 300 <= value < 600:
                return value
    return 0


def _body(error: BaseException) -> str:
    """What the provider said, found in whatever form a library kept it."""
    for holder, name in ((error, "body"), (error, "details"), (error, "said")):
        if text := _message(getattr(holder, name, None)):
            return text
    return ""


def _message(value: Any, depth: int = 0) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and depth == 0 and value.lstrip().startswith(("{", "[")):
        try:
            return _message(json.loads(value), 1) or value
        except (ValueError, RecursionError):
            return value
    if isinstance(value, list) and value and depth < 4:
        return _message(value[0], depth + 1)
    if isinstance(value, dict) and depth < 4:
        inner = _message(value.get("error"), depth + 1)
        own = [
            str(value[key])
            for key in ("message", "code", "type", "status")
            if isinstance(value.get(key), str)
        ]
        return inner or " ".join(own[:1] + [f"({each})" for each in own[1:]])
    return value if isinstance(value, str) else ""


def _wait(error: BaseException) -> float | None:
    value = getattr(error, "retry_after", None)
    if value is None:
        headers = getattr(getattr(error, "response", None), "headers", None)
        value = headers.get("retry-after") if headers is not None else None
    try:
        seconds = float(value) if value is not None else None
    except (TypeError, ValueError):
        return None
    return None if seconds is None or not 0 <= seconds < _LONGEST_WAIT else seconds


def _quoted(said: str, secrets: Iterable[str]) -> str:
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        said = said.replace(secret, "[masked]")
    text = " ".join(_REDACTOR.text(said[: 4 * _LONGEST_QUOTE]).split())
    text = "".join(each for each in text if each.isprintable())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]} ..."
