import pytest

from checkrein.errors import CheckreinError
from checkrein.policy.replay import replay


def test_nothing_given_is_a_fresh_start():
    assert replay({}) == {
        "score": 0.3,
        "successes": 0,
        "failures": 0,
        "total_operations": 0,
        "is_warming_up": False,
        "warmup_remaining": 0,
    }


def test_days_pass_and_sessions_start():
    final = replay({"start": {"score": 0.8, "last_operated_at": "T0"}, "events": ["+15", "session"]})
    assert final["score"] == pytest.approx(0.7992)
    assert final["is_warming_up"] is True
    assert replay({"start": {"score": 0.8, "last_operated_at": "2026-01-01T00:00:00Z"}, "events": ["+15"]})[
        "score"
    ] == pytest.approx(0.7992)


@pytest.mark.parametrize(
    "line",
    [
        {"events": ["X"]},
        {"events": ["+nan"]},
        {"events": ["+inf"]},
        {"events": 5},
        {"events": [5]},
        {"start": {"score": 2}},
        {"start": {"score": "high"}},
        {"start": {"skore": 0.3}},
        {"start": []} | {"start": [1]},
        {"config": {"initial_score": 0.9}},
        {"config": {"unknown": 1}},
    ],
)
def test_nonsense_is_refused(line):
    with pytest.raises(CheckreinError):
        replay(line)
