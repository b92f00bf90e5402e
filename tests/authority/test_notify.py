import pytest

from checkrein.agents import Agents
from checkrein.authority import Asked, perform
from checkrein.errors import PersonOnlyError
from checkrein.peers import Peer
from receiver import Receiver


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


def test_every_channel_is_tried_and_says_how_it_went(do, user_settings, receiver):
    other = f"http://127.0.0.1:{receiver.port}/t0ken"
    user_settings(f'[notify]\nurls = ["{receiver.apprise}", "nonsense://t0ken"]\nwebhook_urls = ["{other}"]')
    came = do("notify.test")
    assert [each["ok"] for each in came] == [True, False, True]
    assert came[1] == {
        "channel": "nonsense://[masked]",
        "ok": False,
        "trouble": "Apprise does not understand this URL",
    }
    assert "t0ken" not in str(came)
    assert len(receiver.got) == 2


def test_without_channels_nothing_is_tried(do):
    assert do("notify.test") == []


def test_no_agent_makes_it_ring(pipeline, monkeypatch):
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    monkeypatch.setattr(agents, "not_a_person", lambda _peer: "an agent asks")
    with pytest.raises(PersonOnlyError):
        perform(Asked(pipeline, agents, Peer(1, 0)), "notify.test", {})
