"""Asking a person: stored questions, and those who wait for their answers."""
