from checkrein.console.api.streams import Streams


def test_so_many_and_no_more():
    streams = Streams(most=2)
    assert [streams.enter() for _ in range(3)] == [True, True, False]
    streams.leave()
    assert streams.enter()
    assert streams.open == 2


def test_once_over_nobody_enters():
    streams = Streams()
    streams.stop()
    assert not streams.enter()
