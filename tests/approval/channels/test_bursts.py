from checkrein.approval.channels.bursts import MOST_A_MINUTE, SETTLE, WINDOW, Bursts
from checkrein.approval.channels.wording import Subject


def subject(number, session="s", event="asked"):
    return Subject(
        event=event,
        id=str(number),
        tool="Bash",
        input={},
        risk="low",
        agent="",
        session=session,
        project="",
    )


def told(bursts, now):
    return [[each.id for each in message] for message in bursts.due(now)]


def test_a_few_questions_come_one_by_one():
    bursts = Bursts()
    for number in range(3):
        bursts.add(subject(number), 100.0)
    assert told(bursts, 100.0) == []
    assert told(bursts, 100.0 + SETTLE) == [["0"], ["1"], ["2"]]
    assert told(bursts, 200.0) == []


def test_more_than_three_at_once_come_as_one():
    bursts = Bursts()
    for number in range(4):
        bursts.add(subject(number), 100.0 + number / 10)
    assert told(bursts, 100.0 + SETTLE) == [["0", "1", "2", "3"]]


def test_a_burst_that_trickles_in_comes_as_one_when_it_is_over():
    bursts = Bursts()
    bursts.add(subject(0), 100.0)
    assert told(bursts, 100.5) == [["0"]]
    for number in range(1, 5):
        bursts.add(subject(number), 101.0)
    for late in (101.5, 103.0, 105.4):
        assert told(bursts, late) == []
    assert told(bursts, 100.5 + WINDOW) == [["1", "2", "3", "4"]]


def test_what_waited_for_a_burst_is_part_of_it_however_little_it_is():
    bursts = Bursts()
    for number in range(3):
        bursts.add(subject(number), 100.0)
    told(bursts, 101.0)
    bursts.add(subject(3), 102.0)
    bursts.add(subject(4), 102.0)
    assert told(bursts, 103.0) == []
    assert told(bursts, 106.0) == [["3", "4"]]


def test_sessions_and_kinds_are_told_apart():
    bursts = Bursts()
    for number, (session, event) in enumerate([("a", "asked"), ("b", "asked"), ("a", "expiring")] * 2):
        bursts.add(subject(number, session, event), 100.0)
    assert len(told(bursts, 101.0)) == 6


def test_beyond_so_many_messages_everything_is_told_together():
    bursts = Bursts()
    sent = []
    for number in range(200):
        now = 100.0 + number / 10
        bursts.add(subject(number, f"session {number}"), now)
        sent += told(bursts, now)
    for later in range(121, 190):
        sent += told(bursts, float(later))
    assert len(sent) <= MOST_A_MINUTE + 8
    assert sorted(int(each) for message in sent for each in message) == list(range(200))


def test_nothing_is_kept_of_sessions_that_went():
    bursts = Bursts()
    for number in range(50):
        bursts.add(subject(number, f"session {number}"), 100.0 + number * 10)
        bursts.due(105.0 + number * 10)
    assert len(bursts._told) <= 2
    assert not bursts._piles
