from checkrein.doors.gateway.tail import MOST_BYTES, MOST_LINES, Tail, plain


def fed(*pieces):
    tail = Tail()
    for piece in pieces:
        tail.feed(piece)
    return tail.lines


def test_lines_come_in_any_pieces():
    assert fed(b"one\ntw", b"o\nthr", b"ee") == ("one", "two", "three")
    assert fed(b"", b"\n", b"x\n") == ("", "x")


def test_only_the_last_lines_of_a_flood_are_kept():
    lines = fed(b"".join(b"%d\n" % number for number in range(100_000)))
    assert lines == tuple(str(number) for number in range(100_000 - MOST_LINES, 100_000))


def test_a_line_without_an_end_is_cut():
    assert fed(*[b"x" * 10_000] * 100) == ("x" * MOST_BYTES,)
    assert fed(b"x" * 10_000 + b"\ny") == ("x" * MOST_BYTES, "y")


def test_our_own_lines_stand_between():
    tail = Tail()
    tail.feed(b"one\n")
    tail.add(b"ours" + b"x" * 1000)
    tail.feed(b"two")
    assert tail.lines == ("one", "ours" + "x" * (MOST_BYTES - 4), "two")


def test_nothing_that_moves_a_cursor_is_shown():
    assert plain("a\x1b[2J\x07\r\u202eb\u200bc\td é".encode()) == "a[2Jbc\td é"
    assert plain(b"\xff\xfe") == "\ufffd\ufffd"
