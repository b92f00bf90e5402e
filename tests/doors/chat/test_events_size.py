"""Events are kept for whoever comes back, as long as there is room; who missed more is told to look anew."""

import pytest

from checkrein.doors.chat import events
from checkrein.doors.chat.events import Lines


@pytest.fixture
def lines():
    return Lines("e")


def big(lines, session, count, size=1_000_000):
    for number in range(count):
        lines.tell(session, "tool_result", "r", call={"output": f"{number} " + "x" * size})


def follow(lines, session, after="e-0"):
    return lines.subscribe(session, after, lambda: None).take()


def held(lines):
    return sum(len(str(each.data)) for log in lines._logs.values() for each in log.events)


def test_what_tools_answered_does_not_fill_memory(lines):
    big(lines, "s", 100)
    assert held(lines) <= events.LARGEST
    assert [each.kind for each in follow(lines, "s")] == ["reload"]
    found = follow(lines, "s", "e-90")
    assert [each.id for each in found] == [f"e-{number}" for number in range(91, 101)]


def test_one_event_larger_than_all_room_is_still_told(lines):
    line = lines.subscribe("s", "", lambda: None)
    big(lines, "s", 1, events.LARGEST + 1)
    assert [each.id for each in line.take()] == ["e-1"]


def test_quiet_conversations_give_way_to_the_one_that_speaks(lines, monkeypatch):
    monkeypatch.setattr(events, "LARGEST_TOGETHER", 4_000_000)
    for name in ("one", "two", "three"):
        lines.tell(name, "notice", text="hello")
    heard = {name: lines.subscribe(name, "", lambda: None) for name in ("one", "two")}
    big(lines, "one", 3)
    big(lines, "two", 3)
    assert held(lines) <= 4_100_000
    assert [each.kind for each in heard["two"].take()] == ["tool_result"] * 3
    assert [each.kind for each in heard["one"].take()] == ["reload"]
    lines.tell("one", "notice", text="again")
    assert [each.data["text"] for each in heard["one"].take()] == ["again"]


def test_words_are_kept_by_their_number(lines):
    for _ in range(events.KEPT + 10):
        lines.tell("s", "text", "r", delta="x")
    assert len(lines._logs["s"].events) == events.KEPT
    assert lines._logs["s"].size == sum(lines._logs["s"].sizes)


def test_what_is_no_json_is_told_too(lines):
    line = lines.subscribe("s", "", lambda: None)
    lines.tell("s", "notice", text="half \ud83d", odd=object())
    assert [each.data["text"] for each in line.take()] == ["half \ud83d"]
