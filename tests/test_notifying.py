"""Questions on their way to a person elsewhere: a real pipeline, real channels on loopback."""

import threading
import time

import pytest

from checkrein.approval.channels import notify as notify_module
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.notifying import REMIND_SECONDS, Notifier
from checkrein.settings import Notify
from patience import Awake
from receiver import Receiver


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def journal():
    return []


@pytest.fixture
def notifier(pipeline, journal):
    """A running one, with these settings; they can be changed while it runs."""
    made = []

    def start(console="", **settings):
        one = Notifier(pipeline, lambda: one.settings, journal.append, console=lambda: console)
        one.settings = Notify(**settings)
        made.append(one)
        one.start()
        return one

    yield start
    for each in made:
        each.stop()


@pytest.fixture
def judged(pipeline, project):
    switch(pipeline, "building", "ada", "terminal")

    def judge(command="make x", session="s1"):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": session}
        return pipeline.decide(tool_call({**raw, "agent": "claude-code"}), asking=True)

    return judge


def quiet(receiver, count=0, seconds=1.2):
    """No more than this came, also a while later."""
    time.sleep(seconds)
    assert len(receiver.got) == count, [each.body for each in receiver.got]


def test_a_question_reaches_a_webhook_and_a_service_with_the_real_command(
    receiver, notifier, judged, project
):
    notifier(urls=(receiver.apprise,), webhook_urls=(receiver.url,), console="http://127.0.0.1:7331/")
    entry = judged("make x PASSWORD=hunter2hunter2").entry
    told = [each.json for each in receiver.wait(2)]
    (hook,) = [each for each in told if "delivery" in each]
    (service,) = [each for each in told if "message" in each]
    for text in (hook["text"], service["message"]):
        assert "| make x PASSWORD=[masked]" in text
        assert f"checkrein approve {entry}" in text
        assert "http://127.0.0.1:7331/" in text
        assert project in text
    assert hook["event"] == "asked"
    assert hook["id"] == entry
    assert hook["risk"] in ("medium", "high")
    assert hook["agent"] == "claude-code"
    assert b"hunter2" not in b"".join(each.body for each in receiver.got)


def test_whoever_can_be_told_is_reachable(receiver, notifier, pipeline):
    assert not pipeline.broker.reachable
    one = notifier(webhook_urls=(receiver.url,))
    assert pipeline.broker.reachable
    one.settings = Notify()
    assert not pipeline.broker.reachable
    one.settings = Notify(webhook_urls=(receiver.url,))
    one.stop()
    assert not pipeline.broker.reachable


def test_settings_that_cannot_be_read_reach_nobody_and_raise_nothing(pipeline):
    answers = [Notify()]
    one = Notifier(pipeline, answers.pop, lambda _text: None)
    one.start()
    assert pipeline.broker.reachable is False
    one.stop()


def test_what_was_answered_meanwhile_is_not_told(receiver, notifier, judged, pipeline):
    notifier(webhook_urls=(receiver.url,))
    pipeline.answer(judged().entry, "denied", actor="ada", channel="terminal")
    quiet(receiver)


def test_the_same_call_asked_again_is_told_once(receiver, notifier, judged):
    notifier(webhook_urls=(receiver.url,))
    judged()
    judged()
    receiver.wait(1)
    quiet(receiver, 1)


def test_a_burst_is_one_message(receiver, notifier, judged):
    notifier(webhook_urls=(receiver.url,))
    for number in range(9):
        judged(f"make x{number}")
    (told,) = receiver.wait(1)
    assert told.json["count"] == 9
    assert told.json["title"] == "9 questions wait"
    quiet(receiver, 1)


def test_a_reminder_comes_once_a_minute_before_the_end(receiver, notifier, judged, clock):
    notifier(webhook_urls=(receiver.url,), events=("expiring",))
    entry = judged().entry
    quiet(receiver)
    clock.now += 300 - REMIND_SECONDS - 1
    quiet(receiver)
    clock.now += 1
    (told,) = receiver.wait(1)
    assert (told.json["event"], told.json["id"]) == ("expiring", entry)
    clock.now += 10
    quiet(receiver, 1)


def test_no_reminder_of_what_was_answered_or_lasts_hardly_longer(
    receiver, notifier, judged, pipeline, clock, user_settings
):
    notifier(webhook_urls=(receiver.url,), events=("expiring",))
    pipeline.answer(judged().entry, "denied", actor="ada", channel="terminal")
    user_settings("[approval]\ntimeout_seconds = 70")
    judged("make y")
    clock.now += 60
    quiet(receiver)


def test_a_new_server_reminds_of_questions_asked_before_it(receiver, notifier, judged, clock):
    entry = judged().entry
    notifier(webhook_urls=(receiver.url,))
    quiet(receiver)
    clock.now += 250
    (told,) = receiver.wait(1)
    assert (told.json["event"], told.json["id"]) == ("expiring", entry)


def test_critical_calls_are_told_where_a_person_wants_that(receiver, notifier, judged):
    one = notifier(webhook_urls=(receiver.url,), events=("blocked",))
    assert judged("rm -rf /").verdict.risk.category.name == "critical"
    judged("make x")
    (told,) = receiver.wait(1)
    assert told.json["event"] == "blocked"
    assert "| rm -rf /" in told.json["text"]
    one.settings = Notify(webhook_urls=(receiver.url,))
    time.sleep(0.5)
    judged("rm -rf /etc")
    quiet(receiver, 1)


def test_channels_can_be_changed_while_it_runs(receiver, notifier, judged):
    other = Receiver()
    one = notifier()
    judged("make before")
    one.settings = Notify(webhook_urls=(receiver.url,))
    time.sleep(0.5)
    judged("make one")
    receiver.wait(1)
    one.settings = Notify(webhook_urls=(other.url,))
    judged("make two")
    assert "make two" in other.wait(1)[0].json["text"]
    quiet(receiver, 1)
    assert "make before" not in receiver.got[0].json["text"]
    other.stop()


def test_a_channel_that_hangs_delays_no_verdict(receiver, notifier, judged, pipeline):
    receiver.delay = 3.0
    one = notifier(webhook_urls=(receiver.url,), urls=(receiver.apprise,))
    judged("make 0")
    time.sleep(1.0)
    for number in range(30):
        with Awake.during() as took:
            judged(f"echo {number}")
        assert took.seconds < 1.0
    with Awake.during() as took:
        one.stop()
    assert took.seconds < 2.5


def test_without_apprise_the_journal_says_so_once(monkeypatch, notifier, judged, journal, pipeline):
    monkeypatch.setattr(notify_module, "is_installed", lambda: False)
    one = notifier(urls=("slack://s3cret/a/b",))
    assert not pipeline.broker.reachable
    judged()
    time.sleep(1.0)
    assert [line for line in journal if "checkrein[notify]" in line]
    assert len([line for line in journal if "cannot be sent" in line]) == 1
    assert "s3cret" not in str(journal) + str(one.state())
    assert "checkrein[notify]" in one.state()["trouble"]
    assert one.state()["reaches"] is False


def test_how_it_goes_can_be_asked(receiver, notifier, judged):
    one = notifier(webhook_urls=(receiver.url,))
    judged()
    receiver.wait(1)
    time.sleep(0.2)
    (state,) = one.state()["channels"]
    assert (state["sent"], state["lost"], state["trouble"]) == (1, 0, "")
    assert "s3cret" not in str(state)


def test_a_look_that_fails_is_said_once_and_the_next_one_goes_on(receiver, pipeline, judged):
    said, faults = [], [OSError("disk")] * 3

    def settings():
        if threading.current_thread().name == "checkrein-notify" and faults:
            raise faults.pop()
        return Notify(webhook_urls=(receiver.url,))

    one = Notifier(pipeline, settings, said.append)
    one.start()
    judged()
    receiver.wait(1)
    one.stop()
    assert said == ["notifications: OSError: disk"]
