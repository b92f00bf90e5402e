"""What in a definition should make a person look twice. Flags are shown in review and block nothing. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from checkrein.doors.gateway.definitions import UNSEEN, Definition, legible, texts

LONGEST_DESCRIPTION = 4_000
# Beyond this a text is not searched; that it is so long is a flag of its own.
_MOST_SEARCHED = 50_000
_MOST_NAMED = 5
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TELLING_NAME = re.compile(r"[_.-]|[a-z][A-Z]|.{12}")
_EMOJI = re.compile("([^\x00-\x7f])\ufe0f")
_SPACE = re.compile(r"\s+")
_GIVES_ORDERS = (
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the |your |these )?"
    r"(?:previous|prior|earlier|above|other|system|existing)\b"
    r"|\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|mention|mentioning|show|reveal"
    r"|notify|notifying|ask|asking|let)(?: this| it| anything)?(?: to)? (?:the )?(?:user|human|person|anyone)"
    r"|\b(?:do not|don't|never) (?:tell|mention|reveal|disclose)\b"
    r"|<\s*/?\s*(?:important|system|instructions?|secret|hidden|admin|assistant)\s*>"
    r"|\b(?:system|developer) (?:prompt|message)\b"
    r"|\b(?:before|after|when|whenever) (?:using|calling|invoking|you (?:use|call|invoke)) "
    r"(?:this|any|other|the)[a-z ]{0,20} tools?\b"
    r"|\b(?:you must|always|first) (?:first |also |always )?"
    r"(?:call|use|run|invoke|read|send|forward|include)\b"
    r"|\binstead of (?:the |using |calling )"
)
_WANTS_SECRETS = (
    r"\b(?:password|passphrase|passwd|api[ _-]?key|secret[ _-]?key|private[ _-]?key|access[ _-]?token"
    r"|bearer token|credentials?|session cookie|seed phrase|ssh key|one-time code)s?\b"
    r"|~/\.(?:ssh|aws|config|netrc|gnupg|cursor|claude)|\bid_(?:rsa|ed25519)\b|\.env\b|/etc/(?:passwd|shadow)"
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
_KNOWN_SCHEMAS = re.compile(r"https?://json-schema\.org/")


@cache
def _linear(pattern: str) -> Any:
    """Loads on first use; however a text is made, searching it takes no longer than its length."""
    import re2  # type: ignore[import-untyped]

    return re2.compile(pattern)


def flags(definition: Definition, others: Mapping[str, str]) -> list[str]:
    """Sentences about one definition; `others`: names of other servers and of their tools, see `by_word`."""
    value = definition.value if definition.text else ""
    everything = list(texts(value))
    whole = "\n".join(everything)
    found = []
    if UNSEEN.search(_EMOJI.sub(r"\1", whole.replace("\n", " ").replace("\t", " "))):
        found.append("It holds characters that cannot be seen or that change the reading direction.")
    plain = plainly(whole)
    if order := _linear(_GIVES_ORDERS).search(plain):
        found.append(f"It speaks to the model rather than about itself: “{legible(order[0], 60)}”.")
    if named := _named(whole, others):
        found.append(f"It names what belongs to another server: {', '.join(named)}.")
    if secret := _linear(_WANTS_SECRETS).search(plain):
        found.append(f"It speaks of secrets: “{legible(secret[0], 40)}”.")
    if max(map(len, everything), default=0) > LONGEST_DESCRIPTION or len(whole) > _MOST_SEARCHED:
        found.append("It has a very long text.")
    if remote := next(_remote(value), ""):
        found.append(f"Its schema refers to another place: {legible(remote, 80)}.")
    return found


def plainly(text: str) -> str:
    """For searching: no unseen characters, one kind of letter, one kind of space."""
    seen = UNSEEN.sub(lambda at: " " if at[0] in "\n\r\t" else "", text[:_MOST_SEARCHED])
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", seen)).casefold().replace("’", "'")


def telling(names: Iterable[str]) -> frozenset[str]:
    """Tool names that are no everyday words: `read_file`, never `search`."""
    return frozenset(name for name in names if _TELLING_NAME.search(name))


def by_word(names: Iterable[str]) -> dict[str, str]:
    """Names by the word to look for."""
    return {name.casefold(): name for name in sorted(names)}


def _named(text: str, others: Mapping[str, str]) -> list[str]:
    words = {word.rstrip(".-") for word in _WORD.findall(text[:_MOST_SEARCHED].casefold())}
    return sorted(others[word] for word in words & others.keys())[:_MOST_NAMED]


def _remote(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            for key in _REFERENCES:
                target = each.get(key)
                if (
                    isinstance(target, str)
                    and not target.startswith("#")
                    and not _KNOWN_SCHEMAS.match(target)
                ):
                    yield target
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
