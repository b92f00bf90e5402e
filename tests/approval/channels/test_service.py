import sys

import pytest

from checkrein.approval.channels import Notice, Undelivered
from checkrein.approval.channels.service import MISSING, Service, is_installed

NOTICE = Notice("asked", "A title: \\n stays", "| echo <b>&amp; :smile: \\n\n| second")


@pytest.mark.invariant("nothing in a notice is interpreted, neither escapes nor emoji names")
def test_a_notice_arrives_through_apprise_as_it_is(receiver):
    assert is_installed()
    channel = Service(receiver.apprise)
    channel.deliver(NOTICE)
    channel.deliver(NOTICE)
    first, _second = receiver.got
    assert first.json["title"] == NOTICE.title
    assert first.json["message"] == NOTICE.body


def test_a_service_that_refuses_is_no_delivery(receiver):
    receiver.status = 500
    with pytest.raises(Undelivered, match="did not take it") as caught:
        Service(receiver.apprise).deliver(NOTICE)
    assert not caught.value.lasting


def test_a_kind_apprise_does_not_know_will_not_be_known_later():
    channel = Service("nonsense://t0ken")
    with pytest.raises(Undelivered, match="does not understand") as caught:
        channel.deliver(NOTICE)
    assert caught.value.lasting
    assert "t0ken" not in channel.name + str(caught.value)


def test_without_apprise_it_says_what_to_install(monkeypatch, receiver):
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(Undelivered, match="checkrein\\[notify\\]") as caught:
        Service(receiver.apprise).deliver(NOTICE)
    assert caught.value.lasting
    assert str(caught.value) == MISSING
