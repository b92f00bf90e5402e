"""The ways in: each door turns what its clients send into calls, and verdicts into their words."""
