"""A result that comes when nobody waits for it any more is seen to by exactly one side."""

import threading

import pytest

from checkrein.doors.library.handing import handed


def steps(work, unwanted):
    made = handed(work, unwanted)
    kind, carry = next(made)
    assert kind == "away"
    return made, carry


def test_a_result_that_is_waited_for_is_handed_over():
    unwanted = []
    made, carry = steps(lambda: 7, unwanted.append)
    with pytest.raises(StopIteration) as ended:
        made.send(carry())
    assert ended.value.value == 7 and unwanted == []


@pytest.mark.parametrize("came_first", [True, False])
def test_a_result_nobody_waits_for_is_seen_to_once(came_first):
    unwanted = []
    made, carry = steps(lambda: 7, unwanted.append)
    if came_first:
        carry()
    kind, leave = made.throw(KeyboardInterrupt())
    assert kind == "away" and unwanted == []
    leave()
    if not came_first:
        assert unwanted == []
        carry()
    assert unwanted == [7]
    with pytest.raises(KeyboardInterrupt):
        made.send(None)


def test_both_sides_at_one_moment_see_to_it_once():
    for _ in range(200):
        unwanted, together = [], threading.Barrier(2)

        def work(together=together):
            together.wait()
            return 7

        made, carry = steps(work, unwanted.append)
        thread = threading.Thread(target=carry)
        thread.start()
        _, leave = made.throw(KeyboardInterrupt())
        together.wait()
        leave()
        thread.join()
        assert unwanted == [7]


def test_work_that_fails_leaves_nothing_behind():
    unwanted = []

    def work():
        raise OSError("no")

    made, carry = steps(work, unwanted.append)
    with pytest.raises(OSError, match="no") as wrong:
        carry()
    _, leave = made.throw(wrong.value)
    leave()
    with pytest.raises(OSError, match="no"):
        made.send(None)
    assert unwanted == []
