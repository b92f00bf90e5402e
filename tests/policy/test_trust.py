import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.policy.trust import DAY, HIGHEST, Scores, SeedTrust, TrustState, implausible
from checkrein.settings import Trust

model = SeedTrust(Trust())


def after(state, successes=0, failures=0, now=0.0):
    for _ in range(successes):
        state = model.succeeded(state, now)
    for _ in range(failures):
        state = model.failed(state, now)
    return state


def test_ac_001_the_first_twenty_operations_learn_at_five_percent():
    state, expected = TrustState(score=0.3), 0.3
    for operation in range(1, 26):
        state = model.succeeded(state, 0.0)
        expected += (1 - expected) * (0.05 if operation <= 20 else 0.02)
        assert state.score == pytest.approx(expected, abs=1e-12)


def test_ac_002_ten_successes_reach_at_least_045():
    assert after(TrustState(score=0.3), 10).score >= 0.45


def test_ac_003_a_failure_costs_fifteen_percent():
    assert after(TrustState(score=0.6), failures=1).score == pytest.approx(0.6 * 0.85)


def test_ac_004_thirteen_idle_days_change_nothing():
    assert model.score(TrustState(score=0.7, last_operated_at=0.0), 13 * DAY) == 0.7
    assert model.score(TrustState(score=0.7, last_operated_at=0.0), 14 * DAY) == 0.7


def test_ac_005_fifteen_idle_days_fade_one_day():
    assert model.score(TrustState(score=0.7, last_operated_at=0.0), 15 * DAY) == pytest.approx(0.7 * 0.999)


def test_ac_006_after_a_pause_five_operations_learn_at_double_rate():
    asleep = TrustState(score=0.5, total_operations=50, last_operated_at=0.0)
    now = 20 * DAY
    state = model.session_started(asleep, now)
    assert (state.is_warming_up, state.warmup_remaining) == (True, 5)
    before = model.score(state, now)
    for left in (4, 3, 2, 1, 0):
        state = model.succeeded(state, now)
        assert state.score == pytest.approx(before + (1 - before) * 0.04)
        assert (state.is_warming_up, state.warmup_remaining) == (left > 0, left)
        before = state.score
    state = model.succeeded(state, now)
    assert state.score == pytest.approx(before + (1 - before) * 0.02)


def test_reading_twice_never_decays_twice():
    state = TrustState(score=0.8, last_operated_at=0.0)
    now = 60 * DAY
    assert model.score(state, now) == model.score(state, now) == pytest.approx(0.8 * 0.999**46)
    woken = model.session_started(model.session_started(state, now), now)
    assert model.score(woken, now) == model.score(state, now)


def test_a_clock_that_went_backwards_counts_as_no_time():
    state = TrustState(score=0.8, last_operated_at=100 * DAY)
    assert model.score(state, 0.0) == 0.8
    assert model.session_started(state, 0.0) == state


def test_failures_use_up_warm_up():
    state = TrustState(score=0.5, is_warming_up=True, warmup_remaining=2, total_operations=30)
    assert after(state, failures=2).is_warming_up is False


def test_no_warm_up_when_it_is_switched_off():
    off = SeedTrust(Trust(warmup_operations=0))
    state = TrustState(score=0.5, last_operated_at=0.0)
    assert off.session_started(state, 99 * DAY) == state


@given(st.lists(st.sampled_from("SF+"), max_size=400), st.floats(0, 0.5))
def test_a_score_stays_in_bounds_and_plausible(events, start):
    state, now = TrustState(score=start), 0.0
    for event in events:
        now += 20 * DAY if event == "+" else 0
        state = {"S": model.succeeded, "F": model.failed, "+": model.session_started}[event](state, now)
        assert 0 <= model.score(state, now) < 1
    assert implausible(state, max(start, 0.5)) == ""


def test_a_score_never_becomes_certain():
    assert after(TrustState(score=0.3), 5000).score < 1.0
    assert model.score(TrustState(score=1.0), 0.0) == HIGHEST < 1.0
    assert after(TrustState(score=HIGHEST), 1).score == HIGHEST


@pytest.mark.parametrize(
    "state",
    [
        TrustState(score=1.0, successes=900, total_operations=900),
        TrustState(score=-0.1),
        TrustState(score=math.nan),
        TrustState(score=5.0),
        TrustState(score=0.99, successes=3, total_operations=3),
        TrustState(score=0.51),
        TrustState(score=0.3, successes=5, total_operations=2),
        TrustState(score=0.3, failures=-1),
    ],
)
def test_what_the_rules_cannot_produce_is_implausible(state):
    assert implausible(state, 0.5)


def test_a_domain_without_a_record_reads_the_global_one():
    assert Scores({"file_read": 0.9}, 0.3).of("file_read") == 0.9
    assert Scores({"file_read": 0.9}, 0.3).of("git_local") == 0.3
    assert Scores({"_global": 0.6}, 0.3).of("git_local") == 0.6
    assert Scores({"file_read": 0.0}, 0.3).of("file_read") == 0.0
