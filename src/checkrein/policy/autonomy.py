"""The autonomy formula and its thresholds: how much of a call an agent has earned to do unasked."""

from __future__ import annotations

from checkrein.call import Category, Decision
from checkrein.settings import Autonomy, RiskWeights


def autonomy(category: Category, complexity: float, trust: float, weights: RiskWeights) -> float:
    """1 - (lambda1 * risk + lambda2 * complexity) * (1 - trust), clamped; risk is on its own scale 1..4."""
    value = 1 - (weights.lambda1 * category + weights.lambda2 * complexity) * (1 - trust)
    return min(1.0, max(0.0, value))


def decision_for(value: float, thresholds: Autonomy) -> Decision:
    """Automatic above the first threshold, a question below the second, recorded between."""
    if value > thresholds.auto_approve_threshold:
        return "auto_approved"
    if value >= thresholds.human_required_threshold:
        return "logged_only"
    return "human_required"
