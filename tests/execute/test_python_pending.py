"""What a script waits for: answers reach their own call, sleeps end, nothing foreign is taken up."""

import time

import pytest

from checkrein.errors import InputError
from checkrein.execute.python_interpreter import StoppedError
from checkrein.execute.python_pending import Pending
from checkrein.execute.python_prelude import Names
from checkrein.execute.python_state import State
from checkrein.execute.python_words import Called, Place, System, Waiting
from checkrein.execute.sandbox import Answer, Tool, Wanted

NAMES = Names((Tool("fs__read"),), "")
READ = Wanted(4, "fs__read", {"path": "a"}, 1, 0)
NOTHING = {"return_value": None}


def called(number=4, name="fs__read", *, owned=False, arguments=None):
    return Called(number, name, (), {"path": "a"} if arguments is None else arguments, True, owned, Place())


def waiting(**more):
    state = {"waiting": (READ,), "held": {}, "sleeps": {}, "still": None} | more
    return Pending(
        State(source="", snapshot=b"", spent=0.0, output="", printed=0, **state),
    )


def test_an_answer_is_handed_over_once_and_to_its_own_call():
    pending = waiting()
    with pytest.raises(InputError, match="Nobody waits for call 5"):
        pending.check({4: Answer(value=1), 5: Answer(value=2)})
    # What was refused was refused whole.
    assert pending.wanted == (READ,) and not pending.held
    pending.take({4: Answer(value=1)})
    assert pending.wanted == ()
    assert pending.taken([3]) == {}
    assert pending.taken([3, 4]) == {4: {"return_value": 1}}
    assert pending.taken([3, 4]) == {}


def test_a_sleep_is_over_when_its_time_has_come():
    now = time.time()
    pending = waiting(sleeps={1: now - 1, 2: now + 60, 3: now + 30})
    assert 29 < pending.until_due([2, 3]) <= 30
    assert pending.taken([1, 2, 3]) == {1: NOTHING}
    # The first one was waited for; whatever the clock says now, the script goes on.
    assert pending.woken([2, 3]) == {2: NOTHING, 3: NOTHING}
    assert not pending.sleeps


def test_a_script_that_waits_for_nothing_anybody_knows_is_ended():
    with pytest.raises(StoppedError, match="nobody was asked for"):
        waiting().until_due([9])


@pytest.mark.parametrize(
    ("at", "more", "ours"),
    [
        (Waiting((4,)), {}, True),
        (
            Waiting(
                (
                    1,
                    2,
                    4,
                )
            ),
            {"held": {1: NOTHING}, "sleeps": {2: 0.0}},
            True,
        ),
        (
            Waiting(
                (
                    4,
                    5,
                )
            ),
            {},
            False,
        ),
        (Waiting((4,)), {"still": 4}, False),
        (called(), {"still": 4}, True),
        (called(), {}, False),
        (called(5), {"still": 4}, False),
        (System(4), {"still": 4}, False),
        (called(owned=True), {"still": 4}, False),
        (called(name="fs__delete"), {"still": 4}, False),
        (called(arguments={"path": "b"}), {"still": 4}, False),
        (None, {}, False),
    ],
)
def test_only_what_waits_for_the_calls_we_know_of_is_taken_up(at, more, ours):
    assert waiting(**more).is_ours(at, NAMES) is ours
