"""A head that comes again: clients send the same one with every request, but for the length of the body.

`Talk` keeps the last one of its connection. Pure; whoever is not recognised here is read by httptools.
"""

from __future__ import annotations

import re

from checkrein.doors.gateway.http_headers import Head

_BEGINS = b"POST /mcp HTTP/1.1\r\n"
_LONGEST, _MOST_DIGITS = 8 << 10, 8
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)\r\n", re.IGNORECASE)
# With any of these more than the length decides what comes behind a head.
_OTHER = frozenset({b"expect", b"transfer-encoding", b"upgrade"})


class Again:
    """The letters of a head before and after the digits of its length."""

    __slots__ = ("_after", "_before", "head")

    def __init__(self, head: Head, before: bytes, after: bytes) -> None:
        self.head, self._before, self._after = head, before, after

    def find(self, data: bytes) -> tuple[int, int] | None:
        """The length of the body, and where that begins; None unless this head is what `data` begins with.

        INVARIANT: every letter but the digits is the same, and the digits are those of one plain number.
        """
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        start = len(before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        digits = data[start:end]
        if end < 0 or not data.startswith(after, end) or not digits.isdigit() or digits[0] == 0x30:
            return None
        return int(digits), end + len(after)


def remembered(data: bytes, head: Head) -> Again | None:
    """What to know `head` by, which was read without complaint where `data` begins; None for unusual ones.

    INVARIANT: the request keeps its connection alive, and nothing but its length says how it ends.
    """
    end = data.find(b"\r\n\r\n", 0, _LONGEST) + 4
    if end < 4 or not data.startswith(_BEGINS):
        return None
    names = [name for name, _ in head.headers]
    lengths = list(_LENGTH.finditer(data, 0, end))
    if len(lengths) != 1 or names.count(b"content-length") != 1 or not _OTHER.isdisjoint(names):
        return None
    start, stop = lengths[0].span(1)
    return Again(head, data[:start], data[stop:end])
