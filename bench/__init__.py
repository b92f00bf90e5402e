"""Measurements: every figure stands beside its floor, taken in the same run."""
