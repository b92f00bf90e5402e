import pytest

from checkrein.ledger.timing import Timing

NOW, DAY = 1_800_000_000.0, 86_400.0


def found(*times):
    timing = Timing()
    for seq, at in enumerate(times, start=1):
        timing.add(seq, at)
    return [(each.kind, each.seq) for each in timing.found]


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ((), []),
        ((NOW, NOW, NOW + 1, NOW + 40 * DAY), []),
        ((NOW, NOW - 4, NOW - 8), []),
        ((NOW, NOW - 60, NOW - 50), [("clock", 2)]),
        ((NOW, 0.0), [("time", 2)]),
        ((NOW, NOW + 1, 0.0, NOW + 2), [("time", 3)]),
        ((NOW, NOW + 1, NOW + 9 * DAY, NOW + 2), [("time", 3)]),
        ((NOW, NOW - 2 * DAY, NOW - 2 * DAY + 1), [("time", 2)]),
        ((1e300, NOW), [("time", 2)]),
    ],
)
def test_a_record_out_of_time_is_named(times, says):
    assert found(*times) == says


def test_a_record_full_of_them_is_cut_short():
    assert len(found(*(NOW - 100 * each for each in range(1000)))) == 20
