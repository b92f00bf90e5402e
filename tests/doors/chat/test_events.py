"""What happens in sessions, told to whoever follows: numbered, kept, and taken up where a line was lost."""

import threading
from concurrent.futures import ThreadPoolExecutor

from checkrein.doors.chat import events
from checkrein.doors.chat.events import KEPT, Lines


def numbers(found):
    return [int(each.id.rpartition("-")[2]) for each in found]


def test_events_are_numbered_and_a_line_hears_each_once():
    lines = Lines("e")
    heard = []
    line = lines.subscribe("s", "", lambda: heard.append(1))
    lines.tell("s", "text", "r", delta="a")
    lines.tell("other", "text", "r", delta="not here")
    lines.tell("s", "end", "r")
    found = line.take()
    assert [(each.id, each.kind, each.run) for each in found] == [("e-1", "text", "r"), ("e-2", "end", "r")]
    assert found[0].data == {"delta": "a"}
    assert line.take() == []
    assert len(heard) == 3, "once to begin with, once for each"
    line.close()
    lines.tell("s", "end", "r")
    assert len(heard) == 3
    assert lines.followers("s") == 0


def test_a_lost_line_goes_on_after_the_last_event_it_saw():
    lines = Lines("e")
    for number in range(5):
        lines.tell("s", "text", "r", delta=str(number))
    assert numbers(lines.subscribe("s", "e-3", print).take()) == [4, 5]
    assert numbers(lines.subscribe("s", "e-0", print).take()) == [1, 2, 3, 4, 5]
    assert lines.subscribe("s", "e-5", print).take() == []
    assert lines.subscribe("s", "", print).take() == [], "who saw nothing begins now"


def test_who_saw_what_is_not_of_this_life_is_told_to_look_anew():
    lines = Lines("e")
    lines.tell("s", "text")
    for after in ("old-1", "e-99", "nonsense", "e-", "e-x", "-", "e-²", "e--1"):
        line = lines.subscribe("s", after, lambda: None)
        (only,) = line.take()
        assert (only.kind, only.id) == ("reload", "e-1"), after
        lines.tell("s", "text")
        assert [each.kind for each in line.take()] == ["text"], "and then hears what follows"
        lines = Lines("e")
        lines.tell("s", "text")


def test_who_was_away_too_long_is_told_to_look_anew():
    lines = Lines("e")
    line = lines.subscribe("s", "", lambda: None)
    for _ in range(KEPT + 1):
        lines.tell("s", "text")
    assert [each.kind for each in line.take()] == ["reload"]
    lines.tell("s", "end")
    assert [each.kind for each in line.take()] == ["end"]
    assert numbers(lines.subscribe("s", "e-2", lambda: None).take())[0] == 3
    assert [each.kind for each in lines.subscribe("s", "e-1", lambda: None).take()] == ["reload"]


def test_logs_nobody_follows_are_forgotten_and_who_returns_looks_anew(monkeypatch):
    monkeypatch.setattr(events, "_MOST_SESSIONS", 4)
    lines = Lines("e")
    line = lines.subscribe("kept", "", lambda: None)
    lines.tell("first", "text")
    lines.tell("first", "text")
    for number in range(20):
        lines.tell(f"s{number}", "text")
    assert len(lines._logs) <= 4
    assert "kept" in lines._logs, "whom somebody follows is kept"
    assert [each.kind for each in lines.subscribe("first", "e-1", lambda: None).take()] == ["reload"]
    lines.tell("kept", "end")
    assert [each.kind for each in line.take()] == ["end"]


def test_more_followed_sessions_than_are_kept_do_no_harm(monkeypatch):
    monkeypatch.setattr(events, "_MOST_SESSIONS", 4)
    lines = Lines("e")
    followed = [lines.subscribe(f"s{number}", "", lambda: None) for number in range(9)]
    for number in range(9):
        lines.tell(f"s{number}", "text", "r")
    assert [len(each.take()) for each in followed] == [1] * 9


def test_a_follower_that_is_gone_costs_nobody_anything():
    lines = Lines("e")
    begun = []

    def gone():
        if begun:
            raise RuntimeError("Event loop is closed")
        begun.append(1)

    lines.subscribe("s", "", gone)
    other = lines.subscribe("s", "", lambda: None)
    lines.tell("s", "text")
    assert len(other.take()) == 1


def test_many_who_tell_and_many_who_follow_lose_nothing():
    lines, each_tells, tellers, followers = Lines("e"), 300, 6, 8
    over = threading.Event()

    def tell(teller):
        for number in range(each_tells):
            lines.tell("s", "text", str(teller), n=number)

    def follow(_number):
        news = threading.Event()
        line, found = lines.subscribe("s", "e-0", news.set), []
        while not (over.is_set() and not news.is_set()):
            news.wait(0.01)
            news.clear()
            found += line.take()
        return found + line.take()

    with ThreadPoolExecutor(tellers + followers) as pool:
        following = [pool.submit(follow, each) for each in range(followers)]
        list(pool.map(tell, range(tellers)))
        over.set()
        for each in following:
            found = each.result()
            assert numbers(found) == list(range(1, each_tells * tellers + 1))
            for teller in range(tellers):
                assert [one.data["n"] for one in found if one.run == str(teller)] == list(range(each_tells))
