import threading

import pytest

from checkrein.approval.channels import Notice, Undelivered
from checkrein.approval.channels import notify as notify_module
from checkrein.approval.channels.notify import QUEUED, Outlet, channels_of, reaches, tried, trouble_with
from checkrein.settings import Notify
from patience import PATIENCE, until

NOTICE = Notice("asked", "t", "b")


class Scripted:
    """A channel that does what it is told to: raise, wait, or take the notice."""

    name = "scripted://[masked]"

    def __init__(self, *steps):
        self.steps, self.got = list(steps), []

    def deliver(self, notice):
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, Exception):
            raise step
        if step is not None:
            step.wait(PATIENCE)
        self.got.append(notice)


@pytest.fixture
def outlet():
    made = []

    def make(*steps, retries=(0.01, 0.01)):
        said = []
        one = Outlet(Scripted(*steps), said.append, retries)
        one.said = said
        made.append(one)
        return one

    yield make
    for each in made:
        each.stop(1.0)


def test_a_failure_is_tried_again_a_few_times(outlet):
    one = outlet(Undelivered("busy"), Undelivered("busy"))
    one.put(NOTICE)
    until(lambda: one.sent == 1)
    assert one.said == []


def test_what_cannot_be_delivered_is_given_up_and_said_once(outlet):
    one = outlet(*[Undelivered("busy")] * 6)
    one.put(NOTICE)
    one.put(NOTICE)
    until(lambda: one.lost == 2)
    assert one.said == ["a notification through scripted://[masked] was not delivered: busy"]
    assert one.state()["trouble"] == "busy"
    one.put(NOTICE)
    until(lambda: one.sent == 1)
    assert one.said[-1] == "notifications through scripted://[masked] work again"
    assert one.state()["trouble"] == ""


def test_what_will_never_work_is_not_tried_again(outlet):
    one = outlet(Undelivered("no such service", lasting=True))
    one.put(NOTICE)
    until(lambda: one.lost == 1)
    one.put(NOTICE)
    until(lambda: one.sent == 1)


@pytest.mark.invariant("a channel's failure is a line in the journal")
def test_whatever_a_channel_raises_ends_in_the_journal(outlet):
    one = outlet(*[RuntimeError("with s3cret")] * 3)
    one.put(NOTICE)
    until(lambda: one.lost == 1)
    assert "RuntimeError" in one.said[0]
    assert "s3cret" not in one.said[0]


def test_a_channel_that_hangs_holds_nobody_up_and_the_oldest_are_dropped(outlet):
    free = threading.Event()
    one = outlet(free)
    for number in range(QUEUED + 11):
        one.put(Notice("asked", str(number), ""))
        if number == 0:
            until(lambda: not one.state()["waiting"])
    assert (one.lost, one.sent) == (10, 0)
    one.stop()
    assert one.sent == 0
    free.set()


def test_a_stopped_outlet_delivers_no_more(outlet):
    one = outlet()
    one.put(NOTICE)
    until(lambda: one.sent == 1)
    one.stop(PATIENCE)
    one.put(NOTICE)
    assert (one.sent, one.state()["waiting"]) == (1, 1)


def test_one_try_is_one_answer():
    assert tried(Scripted(), NOTICE) is None
    assert str(tried(Scripted(Undelivered("x")), NOTICE)) == "x"


def test_each_address_is_one_channel():
    found = channels_of(Notify(urls=("json://a", "json://a", "slack://b"), webhook_urls=("https://c/",)))
    assert [each.name for each in found] == ["json://[masked]", "slack://[masked]", "https://c/[masked]"]


@pytest.mark.invariant("nobody counts as reachable through a channel that cannot exist here")
def test_nobody_is_reachable_through_what_cannot_be_sent(monkeypatch):
    urls = Notify(urls=("json://a",))
    assert not reaches(Notify())
    assert reaches(urls)
    assert trouble_with(urls) == ""
    assert not reaches(Notify(urls=("json://a",), events=("blocked",)))
    monkeypatch.setattr(notify_module, "is_installed", lambda: False)
    assert not reaches(urls)
    assert "checkrein[notify]" in trouble_with(urls)
    assert reaches(Notify(urls=("json://a",), webhook_urls=("https://c/",)))
    assert trouble_with(Notify(webhook_urls=("https://c/",))) == ""
