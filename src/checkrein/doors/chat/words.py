"""How the search of conversations sees text: words without case and accents, scripts without spaces in pairs.

The same spelling goes into the index and into a query, so nothing a person types is ever query syntax.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from checkrein.doors.chat import Part

# What of one message is indexed; and no word is longer than this.
MOST_TEXT, LONGEST = 200_000, 64
_MOST_ASKED, _MOST_WORDS = 400, 16
_BEFORE, _WINDOW = 48, 200
# Scripts written without spaces; Korean for its endings: 학교에서 is found by 학교.
_JOINED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs are part of the words of Indic scripts, though no letters.
_SIGNS = "\u0900-\u0963\u0966-\u0dff"
_CHUNK = re.compile(rf"(?:[^\W_]|[{_SIGNS}{_JOINED}])+")
_PIECE = re.compile(rf"[{_JOINED}]+|[^{_JOINED}]+")
_IS_JOINED = re.compile(f"[{_JOINED}]")
_LETTER = rf"(?![{_JOINED}])(?:[^\W_]|[{_SIGNS}])"
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670]")
_STROKES = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe"})
_UNTOLD = ("reasoning", "metadata")
_BYTES = ("data", "blob")


def fold(text: str) -> str:
    """Without case, accents and widths; the voicing marks of kana stay."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", _MARKS.sub("", apart)).translate(_STROKES)


def spelled(text: str) -> str:
    """The text for the index: its words, parted by spaces."""
    return " ".join(token for piece in _pieces(fold(text[:MOST_TEXT])) for token in _tokens(piece))


def asked(text: str) -> str:
    """The query for what a person typed: all its words, the last one as a beginning; empty asks nothing."""
    # INVARIANT: what a person types is never query syntax.
    words = [word for word in map(_phrase, _words(text)) if word]
    if not words:
        return ""
    words[-1] = words[-1].removesuffix(" *") + " *"
    return " AND ".join(words)


def text_of(parts: Iterable[Part]) -> str:
    """What is searched of a message: what was said, the names of tools and what they gave."""
    return "\n".join(said for part in parts if part.kind not in _UNTOLD for said in _said(part) if said)


def snippet(text: str, query: str) -> tuple[tuple[bool, str], ...]:
    """A piece of the text around the first match; True marks what matched."""
    text = text[:MOST_TEXT]
    pattern = _pattern(query)
    spans = _spans(text, pattern) if pattern else []
    first = spans[0][0] if spans else 0
    start = max(0, first - _BEFORE)
    end = min(len(text), start + _WINDOW)
    pieces: list[tuple[bool, str]] = [(False, "…")] if start else []
    at = start
    for begin, stop in spans:
        if begin >= end:
            break
        pieces += [(False, text[at:begin]), (True, text[begin : min(stop, end)])]
        at = min(stop, end)
    pieces += [(False, text[at:end]), (False, "…" if end < len(text) else "")]
    return tuple((match, _one_line(said)) for match, said in pieces if said)


def _words(text: str) -> list[str]:
    return text[:_MOST_ASKED].split()[:_MOST_WORDS]


def _pieces(folded: str) -> Iterator[str]:
    for chunk in _CHUNK.findall(folded):
        if chunk.isascii():
            yield chunk
        else:
            yield from _PIECE.findall(chunk)


def _tokens(piece: str) -> list[str]:
    """A word; or the pairs of a run without spaces, and its last character, which begins no pair."""
    if not _IS_JOINED.match(piece):
        return [piece[:LONGEST]]
    return [piece[number : number + 2] for number in range(len(piece))]


def _phrase(word: str) -> str:
    pieces = list(_pieces(fold(word)))
    tokens = [token for piece in pieces for token in _tokens(piece)]
    if not tokens:
        return ""
    if not _IS_JOINED.match(pieces[-1]):
        return f'"{" ".join(tokens)}"'
    # A run may go on in the text: its last character is told by the pair before, or begins one.
    return f'"{" ".join(tokens[:-1])}"' if len(pieces[-1]) > 1 else f'"{" ".join(tokens)}" *'


def _pattern(query: str) -> re.Pattern[str] | None:
    found = [pieces for pieces in (list(_pieces(fold(word))) for word in _words(query)) if pieces]
    shapes = []
    for number, pieces in enumerate(found):
        shape = r"[\W_]*".join(map(re.escape, pieces))
        if not _IS_JOINED.match(pieces[0]):
            shape = rf"(?<![^\W_{_JOINED}]){shape}"
        if number < len(found) - 1 and not _IS_JOINED.match(pieces[-1]):
            shape = f"{shape}(?!{_LETTER})"
        shapes.append(shape)
    return re.compile("|".join(sorted(shapes, key=len, reverse=True))) if shapes else None


def _spans(text: str, pattern: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where the pattern is in the text, though it is looked for in the folded one."""
    if text.isascii():
        return [match.span() for match in pattern.finditer(text.lower())]
    folded = [_fold_one(each) for each in text]
    places = [number for number, each in enumerate(folded) for _ in each]
    spans = [match.span() for match in pattern.finditer("".join(folded))]
    return [(places[begin], places[stop - 1] + 1) for begin, stop in spans]


@lru_cache(maxsize=20_000)
def _fold_one(character: str) -> str:
    return fold(character)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _said(part: Part) -> Iterator[str]:
    yield part.tool_name
    yield part.text
    if part.kind == "attachment" and isinstance(part.data, dict):
        yield from (str(part.data[key]) for key in ("name", "uri") if part.data.get(key))
    elif part.kind == "tool_result":
        yield part.error
        if not part.text:
            yield from _strings(part.data)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a result, in order; not the bytes of its pictures."""
    waiting, room = [value], MOST_TEXT
    while waiting and room > 0:
        each = waiting.pop()
        if isinstance(each, str):
            room -= len(each)
            yield each
        elif isinstance(each, dict):
            waiting += [inner for key, inner in reversed(each.items()) if key not in _BYTES]
        elif isinstance(each, (list, tuple)):
            waiting += reversed(each)
        elif each is not None:
            yield str(each)
