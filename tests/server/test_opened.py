"""What opens on first need, what opens because somebody waits, and what happens at the end."""

import threading
import urllib.request

import pytest

from checkrein.agents import Agents
from checkrein.authority import Asked, myself, perform
from checkrein.doors.chat import Part, Run
from checkrein.doors.chat.providers import Providers
from checkrein.doors.chat.sessions import Sessions
from checkrein.errors import StoreError
from checkrein.server.opened import Opened
from patience import PATIENCE, until


@pytest.fixture
def said():
    return []


@pytest.fixture
def opened(pipeline, said, user_settings):
    user_settings("[console]\nport = 0")
    ended = threading.Event()
    agents = Agents(pipeline.store, pipeline.ledger, pipeline.clock)
    made = Opened(pipeline, agents, said.append, ended, ended.set)
    made.agents, made.ended = agents, ended
    yield made
    ended.set()
    made.close_console()
    made.close()


@pytest.fixture
def do(pipeline, opened):
    asked = Asked(
        pipeline,
        opened.agents,
        myself(),
        gateway=opened.gateway,
        chat=opened.chat,
        address=opened.api_address,
    )
    return lambda name, /, **params: perform(asked, name, params)


def test_each_is_made_once(opened):
    assert opened.chat() is opened.chat()
    assert opened.gateway() is opened.gateway()
    assert opened.console() is opened.console()
    assert not opened.busy


def test_nothing_opens_that_nobody_waits_for(opened):
    opened.open_awaited()
    assert (opened._gateway, opened._chat, opened._console) == (None, None, None)
    assert opened.console_address() == ""


def test_a_token_opens_the_port_it_is_good_for_and_the_next_server_too(opened, do, pipeline, said):
    made = do("token.add", name="ci")
    assert made["url"] == f"{opened.api_address()}/api/v1"
    asked = urllib.request.Request(
        f"{made['url']}/status", headers={"Authorization": f"Bearer {made['token']}"}
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
        assert b'"ready":true' in answer.read()
    other = Opened(pipeline, opened.agents, said.append, threading.Event(), lambda: None)
    other.open_awaited()
    assert other._console is not None
    other.close_console()


@pytest.fixture
def left_behind(pipeline):
    """A run that an earlier server was working on; its state."""
    sessions = Sessions(pipeline.store, pipeline.clock)
    session = sessions.create(provider="demo", model="demo")
    message = sessions.add_message(session.id, "user", (Part(text="hello"),))
    run = Run(
        id="r1", session=session.id, holder="gone", user_message=message.id, provider="demo", model="demo"
    )
    sessions.add_run(run)
    return lambda: sessions.get_run("r1").state


def test_a_run_that_an_earlier_server_left_is_taken_care_of_unasked(opened, left_behind, said):
    assert left_behind() == "running"
    opened.open_awaited()
    until(lambda: left_behind() != "running", failing=lambda: said)


def test_once_it_ends_nothing_opens(opened):
    opened.ended.set()
    for what in (opened.gateway, opened.chat, opened.console):
        with pytest.raises(StoreError, match="stopping"):
            what()


@pytest.mark.invariant("chat ends before the gateway that has its tools, both before the store")
def test_chat_ends_before_the_gateway(opened, monkeypatch):
    order = []
    for name, made in (("chat", opened.chat()), ("gateway", opened.gateway())):
        close = made.close
        monkeypatch.setattr(made, "close", lambda name=name, close=close: (order.append(name), close()))
    opened.close()
    assert order == ["chat", "gateway"]


def test_what_does_not_stop_well_holds_up_nothing(opened, said, monkeypatch):
    def broken():
        raise RuntimeError("stuck")

    chat, gateway = opened.chat(), opened.gateway()
    close, closed = chat.close, []
    monkeypatch.setattr(chat, "close", broken)
    monkeypatch.setattr(
        gateway, "close", lambda gateway=gateway, end=gateway.close: (closed.append(1), end())
    )
    opened.close()
    assert closed == [1]
    assert any("chat did not stop well" in each for each in said)
    close()


@pytest.mark.usefixtures("left_behind")
def test_what_somebody_waits_for_and_cannot_start_is_said(opened, said, monkeypatch):
    monkeypatch.setattr(Providers, "__init__", lambda *_, **__: 1 / 0)
    opened.open_awaited()
    assert any("cannot start: ZeroDivisionError" in each for each in said)
