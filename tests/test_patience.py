"""What tests wait with: it hands over what comes, and says in words what never does."""

import asyncio

import pytest

import patience
from patience import soon, until


def test_what_never_happens_fails_in_words(monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.05)
    with pytest.raises(AssertionError, match="still 7"):
        until(lambda: None, failing=lambda: "still 7")
    with pytest.raises(AssertionError, match="never happened"):
        asyncio.run(soon(lambda: 0))


def test_what_happens_is_handed_over():
    values = iter([0, "", "this"])
    assert until(lambda: next(values)) == "this"
