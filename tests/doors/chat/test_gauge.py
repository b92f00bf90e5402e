"""How full a model's context is, in numbers, words and bands."""

import pytest

from checkrein.doors.chat import Message, Part, Snapshot, models
from checkrein.doors.chat.compression import Settings
from checkrein.doors.chat.gauge import band, definition, gauge

MODEL = models.load().model("demo")


def said(*texts):
    return [Message(f"m{at}", "user", (Part(text=text),)) for at, text in enumerate(texts)]


def of(path, snapshot=None, **more):
    given = {"system": "", "tools": (), "settings": Settings()} | more
    return gauge(path, snapshot, model=MODEL, **given)


@pytest.mark.parametrize(
    ("percent", "word"),
    [
        (0, "green"),
        (69.9, "green"),
        (70, "yellow"),
        (89.9, "yellow"),
        (90, "orange"),
        (95, "red"),
        (200, "red"),
    ],
)
def test_the_bands(percent, word):
    assert band(percent) == word


def test_shares_add_up_to_what_is_used():
    tool = definition(type("Tool", (), {"description": "puts", "schema": {"type": "object"}}), "notes__put")
    found = of(said("hello there", "and so on"), system="be brief", tools=[tool], pending="what I type")
    assert all(found["breakdown"][name] > 0 for name in ("system", "messages", "tools", "input"))
    assert found["breakdown"]["summary"] == 0
    assert sum(found["breakdown"].values()) == found["used"]
    assert found["limit"] == MODEL.input
    assert found["percent"] == round(100 * found["used"] / MODEL.input, 1)


def test_a_summary_is_counted_in_the_place_of_what_it_stands_for():
    path = said("a long story " * 400, "the end")
    short = Snapshot(id="x", text="- a story", cutoff="m0", tokens=5, created_at=1.0)
    whole, less = of(path), of(path, short)
    assert less["breakdown"]["summary"] > 0
    assert less["used"] < whole["used"] / 5


def test_what_is_typed_can_be_what_makes_it_too_much():
    almost = "word " * int(MODEL.input * 0.94)
    assert of(said(almost))["needs_compression"] is False
    typed = of(said(almost), pending="word " * int(MODEL.input * 0.03))
    assert typed["needs_compression"] is True
    assert typed["band"] == "red"
