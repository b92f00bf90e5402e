import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.call import Category
from checkrein.policy.autonomy import autonomy, decision_for
from checkrein.settings import Autonomy, RiskWeights

UNIT = st.floats(0, 1)


def test_ac_008_above_the_first_threshold_runs_unasked():
    assert decision_for(0.85, Autonomy()) == "auto_approved"
    assert decision_for(math.nextafter(0.8, 1), Autonomy()) == "auto_approved"


def test_ac_009_between_the_thresholds_runs_and_is_recorded():
    assert [decision_for(value, Autonomy()) for value in (0.4, 0.6, 0.8)] == ["logged_only"] * 3


def test_ac_010_below_the_second_threshold_a_person_is_asked():
    assert decision_for(0.3, Autonomy()) == "human_required"
    assert decision_for(math.nextafter(0.4, 0), Autonomy()) == "human_required"


@pytest.mark.parametrize(
    ("category", "complexity", "trust", "value"),
    [("low", 0.5, 0.3, 0.44), ("medium", 0.5, 0.3, 0.02), ("high", 0.5, 0.7, 0.4), ("high", 0.5, 0.0, 0.0)]
    + [("low", 0.0, 1.0, 1.0), ("critical", 1.0, 1.0, 1.0), ("critical", 1.0, 0.0, 0.0)],
)
def test_risk_counts_on_its_own_scale(category, complexity, trust, value):
    assert autonomy(Category[category], complexity, trust, RiskWeights()) == pytest.approx(value)


@given(st.sampled_from(Category), UNIT, UNIT, UNIT, st.floats(0, 10), st.floats(0, 10))
def test_autonomy_stays_in_bounds_and_grows_with_trust(category, complexity, one, other, lambda1, lambda2):
    weights = RiskWeights(lambda1, lambda2)
    low, high = (autonomy(category, complexity, trust, weights) for trust in sorted((one, other)))
    assert 0 <= low <= high <= 1


@given(UNIT, UNIT, UNIT)
def test_more_risk_or_complexity_is_never_more_autonomy(one, other, trust):
    weights = RiskWeights()
    simple, complex_ = (autonomy(Category.medium, each, trust, weights) for each in sorted((one, other)))
    assert complex_ <= simple
    values = [autonomy(category, one, trust, weights) for category in Category]
    assert values == sorted(values, reverse=True)
