"""Bytes between us and a worker: whole frames, whole fields, and nothing a stranger sends does more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.python_wire import (
    LARGEST_FRAME,
    BrokenFrameError,
    Reader,
    count,
    fields,
    frame,
    head,
    message,
    numbers,
    part,
    parts,
    real,
    text,
    varint,
    whole,
    words,
)


def test_frames_arrive_whole_in_whatever_pieces():
    sent = frame(b"a") + frame(b"") + frame(b"\0" * 1000)
    for size in (1, 3, 7, len(sent)):
        reader, found = Reader(), []
        for start in range(0, len(sent), size):
            found += reader.feed(sent[start : start + size])
        assert found == [b"a", b"", b"\0" * 1000]


def test_a_frame_beyond_reason_is_refused_before_it_arrives():
    with pytest.raises(BrokenFrameError):
        Reader().feed((LARGEST_FRAME + 1).to_bytes(4, "little"))


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_numbers_are_read_as_they_are_written(some):
    assert numbers(b"".join(map(varint, some))) == some


@given(
    st.lists(st.tuples(st.integers(1, 2**20), st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300))))
)
def test_fields_are_read_as_they_are_written(some):
    sent = b"".join(
        whole(number, value) if isinstance(value, int) else part(number, value) for number, value in some
    )
    assert fields(sent) == some


def test_what_we_do_not_know_is_passed_over_by_its_size():
    assert fields(b"\x09" + b"\1" * 8 + b"\x0d" + b"\2" * 4) == [(1, b"\1" * 8), (1, b"\2" * 4)]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x08",
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\xff\xff\xff\xff\x7f",
        b"\x0b",
        b"\x0c",
        b"\xff" * 20,
        b"\x09abc",
    ],
)
def test_what_is_cut_off_or_no_field_is_refused(sent):
    with pytest.raises(BrokenFrameError):
        fields(sent)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, 40]), st.binary(max_size=200))))
def test_all_of_one_field_are_read_in_order(some):
    sent = b"".join(part(number, value) for number, value in some)
    for field in (2, 40):
        assert parts(sent, field) == [value for number, value in some if number == field]


@given(st.binary(max_size=400))
def test_whatever_a_stranger_sends_is_read_the_same_in_every_way(sent):
    try:
        found = [value for number, value in fields(sent) if number == 2]
    except BrokenFrameError:
        with pytest.raises(BrokenFrameError):
            parts(sent, 2)
    else:
        assert parts(sent, 2) == found


@given(st.binary(max_size=400))
def test_whatever_a_stranger_sends_is_fields_or_refused(sent):
    for read in (fields, numbers, head, Reader().feed):
        try:
            read(sent)
        except BrokenFrameError:
            continue


@pytest.mark.parametrize(
    ("read", "body"), [(words, 3), (words, b"\xff"), (message, 3), (count, b"a"), (real, b"abc"), (real, 8)]
)
def test_a_field_of_another_kind_is_refused(read, body):
    with pytest.raises(BrokenFrameError):
        read(body)


def test_half_a_character_is_shown_as_one_that_cannot_be():
    assert fields(text(1, "a\ud800é")) == [(1, "a�é".encode())]
