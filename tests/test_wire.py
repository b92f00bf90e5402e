"""Frames and requests: what ours send comes through whole, and nothing else ever hangs, grows or crashes."""

import socket
import struct
import threading
import time

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein import wire
from checkrein.errors import InputError
from patience import PATIENCE

SOON = 0.2


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def soon(seconds=PATIENCE):
    return time.monotonic() + seconds


@pytest.mark.parametrize("body", [b"", b"{}", b"\n\n", b"a\n\nb\n\n", b"\xff\x00" * 10])
def test_a_request_comes_through_whole(body):
    request = wire.decode_request(wire.encode_request("1.2", ("hook", "codex", "gate", "30"), body))
    assert request == wire.Request("1.2", ("hook", "codex", "gate", "30"), {}, body)


def test_facts_are_the_lines_between_the_words_and_the_body():
    frame = b"checkrein 1 0.1\nhook codex gate 3\nA=1\nB=x=y\nnothing\nC=\n\nD=4\n\n{}"
    request = wire.decode_request(frame)
    assert request.facts == {"A": "1", "B": "x=y", "C": ""}
    assert request.body == b"D=4\n\n{}"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\n\n",
        b"checkrein 1 0.1\n\n",
        b"checkrein 1\nverb x\n\n",
        b"checkrein 1 0.1 more\nverb x\n\n",
        b"other 1 0.1\nverb x\n\n",
        b"checkrein 1 0.1\nverb x\n",
        b"checkrein 1 0.1\nverb x\nA=" + b"x" * 20_000 + b"\n\n",
    ],
)
def test_what_is_no_request_of_ours_is_refused_with_a_sentence(frame):
    with pytest.raises(InputError, match="not a request of ours"):
        wire.decode_request(frame)


@pytest.mark.parametrize("number", ["0", "2", "01", "x"])
def test_another_format_is_refused_and_says_what_helps(number):
    with pytest.raises(InputError, match="speaks format") as caught:
        wire.decode_request(f"checkrein {number} 9.9\nverb x\n\n".encode())
    assert "checkrein restart" in caught.value.remedy


@settings(max_examples=examples(150))
@given(st.binary(max_size=400) | st.binary(max_size=300).map(lambda tail: b"checkrein 1 0.1\n" + tail))
def test_no_bytes_do_more_than_be_refused(frame):
    try:
        request = wire.decode_request(frame)
    except InputError:
        return
    assert request.words
    assert frame.endswith(request.body)


@settings(max_examples=examples(60))
@given(st.binary(max_size=200))
def test_nothing_received_is_ever_more_than_was_sent(sent):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        try:
            frame = wire.receive(ours, soon())
        except (wire.Gone, InputError):
            return
        assert sent[4 : 4 + len(frame)] == frame


def test_frames_come_one_by_one_however_they_are_cut(ends):
    ours, theirs = ends
    big = bytes(range(256)) * 4_000
    whole = b"".join(struct.pack(">I", len(each)) + each for each in (b"one", b"", big))

    def drip():
        for start in range(7):
            theirs.sendall(whole[start : start + 1])
        theirs.sendall(whole[7:])

    thread = threading.Thread(target=drip)
    thread.start()
    assert [wire.receive(ours, soon()) for _ in range(3)] == [b"one", b"", big]
    thread.join()


def test_a_frame_that_is_too_long_is_refused_before_it_is_read(ends):
    ours, theirs = ends
    theirs.sendall(struct.pack(">I", wire.LARGEST_FRAME + 1))
    with pytest.raises(InputError, match="more than we take"):
        wire.receive(ours, soon())


def test_the_largest_payload_still_fits_with_its_header():
    assert wire.LARGEST_FRAME - wire.LARGEST_PAYLOAD > wire._HEADER_LIMIT


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack(">I", 9) + b"half"])
def test_silence_ends_at_the_deadline_and_a_closed_end_at_once(ends, sent):
    ours, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(wire.Gone, match=r"timed out|took too long"):
        wire.receive(ours, soon(SOON))
    theirs.close()
    with pytest.raises(wire.Gone, match="closed"):
        wire.receive(ours, soon())


def test_dripping_bytes_do_not_move_the_deadline(ends):
    """All of the frame comes in the end, long after the deadline."""
    ours, theirs = ends
    theirs.sendall(struct.pack(">I", 1_000))
    stop = threading.Event()

    def drip():
        while not stop.wait(0.02):
            theirs.sendall(b"x")

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(wire.Gone):
            wire.receive(ours, soon(SOON))
    finally:
        stop.set()
        thread.join()


def test_sending_to_nobody_is_gone(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(wire.Gone):
        wire.send(ours, b"x")


def test_an_answer_comes_through_whole():
    for stdout, stderr, code in ((b"{}", b"no\n", 2), (b"", b"", 0), (b"\0" * 300, b"\xff", 0)):
        assert wire.decode_answer(wire.encode_answer(stdout, stderr, code)) == (stdout, stderr, code)


@pytest.mark.parametrize("limit", [None, 0.0, 30.0])
def test_looking_whether_somebody_waits_never_waits_itself(ends, limit):
    """`receive` leaves a time limit on the socket; a look that took it would block and then say: gone."""
    ours, theirs = ends
    ours.settimeout(limit)
    assert wire.is_open(ours)
    theirs.close()
    assert not wire.is_open(ours)
    ours.close()
    assert not wire.is_open(ours)


def test_bytes_after_the_request_never_keep_a_closed_connection_open(ends):
    ours, theirs = ends
    theirs.sendall(b"x")
    theirs.close()
    assert not wire.is_open(ours)


def test_two_descriptors_are_taken_and_what_is_more_is_closed(ends):
    ours, theirs = ends
    input_end, output_end = socket.socketpair()
    with input_end, output_end:
        socket.send_fds(theirs, [b"."], [output_end.fileno()] * 20)
        passed = wire.ask_for_streams(ours, soon())
        assert theirs.recv(5) == b"\0\0\0\1S"
        assert len(passed) == 2
        output_end.close()
        wire.close_all(passed)
        assert passed == []
        # Every copy is closed: the other end is told.
        assert input_end.recv(1) == b""


@pytest.mark.parametrize("answer", [b"", b"."])
def test_a_client_that_passes_nothing_has_no_streams(ends, answer):
    ours, theirs = ends
    theirs.sendall(answer)
    theirs.shutdown(socket.SHUT_WR)
    assert wire.ask_for_streams(ours, soon()) == []
