"""Frames between us and a worker."""

import pytest

from checkrein.execute.js_frames import LARGEST_BODY, BrokenFrameError, Reader, pack


def test_frames_arrive_whole_in_whatever_pieces():
    sent = pack({"a": "é\ud800"}) + pack({}, b"body") + pack({"b": [1]}, b"\0" * 1000)
    for size in (1, 7, len(sent)):
        reader, found = Reader(), []
        for start in range(0, len(sent), size):
            found += reader.feed(sent[start : start + size])
        assert found == [({"a": "é\ud800"}, b""), ({}, b"body"), ({"b": [1]}, b"\0" * 1000)]


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 8,
        b"\0\0\0\0" + (LARGEST_BODY + 1).to_bytes(4, "big"),
        b"\0\0\0\2\0\0\0\0[]",
        b"\0\0\0\2\0\0\0\0{x",
        b"\0\1\0\0\0\0\0\0" + b"[" * 65536,
    ],
)
def test_what_is_no_frame_is_refused(sent):
    with pytest.raises(BrokenFrameError):
        Reader().feed(sent)
