"""What a worker says is an event we know, or nothing at all."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.python_wire import BrokenFrameError, part, text, whole
from checkrein.execute.python_words import (
    Called,
    Completed,
    Done,
    Dumped,
    Frame,
    Lookup,
    Mistyped,
    Place,
    Raised,
    Refused,
    System,
    Waiting,
    event,
    printed,
)

NODES = part(2, part(8, b"path")) + part(2, whole(5, 4))
PLACE = text(1, "<python-input-1>") + whole(2, 3) + whole(3, 9)
CALL = (
    text(1, "fs__read") + part(3, whole(2, 1)) + whole(4, 7) + whole(6, 1) + part(7, NODES) + part(8, PLACE)
)
SAID = [
    (part(2, CALL), Called(7, "fs__read", (), {"path": 2}, True, False, Place("<python-input-1>", 3, 9))),
    (
        part(2, part(5, b"") + part(2, b"\1\1") + part(7, NODES)),
        Called(0, "", (2, 2), {}, False, True, Place()),
    ),
    (part(3, whole(1, 3) + part(27, b"\x09" + b"\0" * 6 + b"\xf0\x3f")), System(3, "time.sleep", 1.0)),
    (part(3, part(28, b"")), System(0, "asyncio.sleep", 0.0)),
    (part(3, part(31, text(1, "yaml"))), System(0, "import", modules=("yaml",))),
    (part(3, part(32, text(1, "a") + text(1, "b"))), System(0, "import_stubs", modules=("a", "b"))),
    (part(3, whole(1, 5) + text(6, "/etc/passwd")), System(5)),
    (part(4, text(1, "x")), Lookup("x", False)),
    (part(4, text(1, "x") + part(2, b"")), Lookup("x", True)),
    (part(5, part(1, b"\4\5")), Waiting((4, 5))),
    (part(6, whole(1, 1) + part(2, NODES)), Completed(2)),
    (
        part(
            7, part(1, text(1, "ValueError") + text(2, "no") + part(3, text(1, "f") + part(2, whole(1, 6))))
        ),
        Raised("ValueError", "no", (Frame("f", 6),)),
    ),
    (part(8, text(1, "[]")), Mistyped("[]")),
    (part(9, part(1, b"\0\1")), Dumped(b"\0\1")),
    (part(10) + whole(20, 4), Done()),
    (whole(20, 4) + part(11, text(1, "no")), Refused("no")),
]


@pytest.mark.parametrize(("sent", "said"), SAID)
def test_what_they_say(sent, said):
    assert event(sent) == said and printed(sent) is None


def test_what_a_script_prints_is_told_from_all_else():
    assert printed(part(1, part(1, whole(1, 1) + text(2, "a\n")) + part(1, whole(1, 2) + text(2, "b")))) == [
        "a\n",
        "b",
    ]
    assert printed(part(1)) == []
    assert printed(b"") is None


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        whole(20, 4),
        whole(2, 4),
        part(1, b""),
        part(2, part(3, whole(1, 1)) + part(7, NODES)),
        part(2, part(2, b"\x09") + part(7, NODES)),
        part(2, text(4, "7")),
        part(6, whole(1, 2) + part(2, NODES)),
        part(9, whole(1, 4)),
        part(3, part(27, b"\x09abc")),
        part(99, b""),
    ],
)
def test_what_says_nothing_we_know_is_refused(sent):
    with pytest.raises(BrokenFrameError):
        event(sent)


@given(st.binary(max_size=200))
def test_whatever_a_stranger_says_is_an_event_or_refused(sent):
    for read in (event, printed):
        try:
            read(sent)
        except BrokenFrameError:
            continue


def test_whatever_becomes_of_their_words_on_the_way_is_an_event_or_refused():
    chance = random.Random(7)
    for sent, _ in SAID * 200:
        altered = bytearray(sent)
        for _ in range(chance.randrange(1, 4)):
            altered[chance.randrange(len(altered))] = chance.randrange(256)
        try:
            event(bytes(altered[: chance.randrange(1, len(altered) + 1)]))
        except BrokenFrameError:
            continue
