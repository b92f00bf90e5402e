"""The whole way: a hook's call waits in a real server, is answered in a browser, and the hook hears it."""

import contextlib
import re
import threading

import pytest

from checkrein import wire
from checkrein.store.questions import get_question
from checkrein.store.sqlite import SqliteStore
from console import browsing
from patience import PATIENCE, until
from server.conftest import pre, serving  # noqa: F401

pytestmark = browsing.MARKS


class Hook(threading.Thread):
    """A hook that waits for its answer."""

    def __init__(self, serving, payload):  # noqa: F811
        super().__init__(daemon=True)
        self.serving, self.payload, self.said = serving, payload, None
        self.start()

    def run(self):
        self.said = self.serving.hook(self.payload, wait=int(PATIENCE))[0]["hookSpecificOutput"]

    def answer(self):
        self.join(PATIENCE)
        assert self.said is not None, "the hook still waits"
        return self.said


@pytest.fixture
def tab(serving, browser, project):  # noqa: F811
    serving.ask("phase.set", name="building", project=project)
    context = browser.new_context()
    made = context.new_page()
    made.set_default_timeout(PATIENCE * 1000)
    made.goto(serving.ask("console.open")["url"])
    made.wait_for_selector("body[data-live]")
    yield made
    context.close()


def card(tab, words):
    return tab.locator("[data-question]").filter(has_text=words)


def test_approved_in_the_page_and_it_runs(tab, serving, pre):  # noqa: F811
    hook = Hook(serving, pre("make shown"))
    card(tab, "make shown").wait_for()
    card(tab, "make shown").get_by_role("button", name=re.compile("^Approve")).first.click()
    assert hook.answer()["permissionDecision"] == "allow"


def test_denied_with_a_message_the_model_sees(tab, serving, pre):  # noqa: F811
    hook = Hook(serving, pre("make shown"))
    card(tab, "make shown").wait_for()
    tab.keyboard.press("j")
    tab.keyboard.press("m")
    tab.keyboard.type("use make check instead")
    tab.keyboard.press("Control+Enter")
    said = hook.answer()
    assert said["permissionDecision"] == "deny"
    assert "use make check instead" in said["permissionDecisionReason"]


def test_edited_and_the_edited_call_is_what_the_agent_runs(tab, serving, pre):  # noqa: F811
    hook = Hook(serving, pre("make wrong"))
    field = card(tab, "make wrong").locator("textarea[name=edited]")
    card(tab, "make wrong").get_by_text(re.compile("^Edit")).first.click()
    field.fill(field.input_value().replace("wrong", "right"))
    tab.get_by_role("button", name="Approve as edited").click()
    said = hook.answer()
    assert said["permissionDecision"] == "allow"
    assert said["updatedInput"]["command"] == "make right"


def test_remembered_for_the_session_and_not_asked_again(tab, serving, pre):  # noqa: F811
    hook = Hook(serving, pre("make shown"))
    card(tab, "make shown").wait_for()
    tab.keyboard.press("j")
    tab.keyboard.press("r")
    tab.get_by_role("button", name="Approve and remember").click()
    assert hook.answer()["permissionDecision"] == "allow"
    again = serving.hook(pre("make shown", call="toolu_2"))[0]["hookSpecificOutput"]
    assert again["permissionDecision"] == "allow"
    assert len(serving.records("asked")) == 1


def test_a_server_that_was_killed_mid_question_is_asked_again(tab, serving, pre):  # noqa: F811
    lost = threading.Thread(target=_lost, args=(serving, pre("make shown")), daemon=True)
    lost.start()
    card(tab, "make shown").wait_for()
    serving.kill()
    tab.locator("[data-lost]").filter(has_text="connection is lost").wait_for()
    serving.start()
    other = tab.context.new_page()
    other.goto(serving.ask("console.open")["url"])
    other.wait_for_selector("body[data-live]")
    # The first tab goes on where this browser signed in anew.
    tab.wait_for_url(f"**{other.evaluate('document.body.dataset.place')}/")
    hook = Hook(serving, pre("make shown", call="toolu_2"))
    # A yes given before it came would not be for it.
    until(lambda: len(serving.records("asked")) == 2, failing="it was not asked again")
    card(tab, "make shown").get_by_role("button", name=re.compile("^Approve")).first.click()
    assert hook.answer()["permissionDecision"] == "allow"
    lost.join(PATIENCE)


def _lost(serving, payload):  # noqa: F811
    """Its server goes away before the answer comes."""
    with contextlib.suppress(wire.Gone, OSError):
        serving.hook(payload)


def test_who_closes_the_page_is_reachable_no_more(tab, serving, pre):  # noqa: F811
    until(lambda: serving.ask("server.about")["reachable"])
    tab.close()
    until(lambda: not serving.ask("server.about")["reachable"])
    said = serving.hook(pre("make shown"))[0]["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"


def test_who_answered_and_how_is_on_the_record(tab, serving, pre, home):  # noqa: F811
    from checkrein.settings.sources import state_dir

    hook = Hook(serving, pre("make shown"))
    card(tab, "make shown").get_by_role("button", name=re.compile("^Deny")).first.click()
    hook.answer()
    [asked] = serving.records("asked")
    store = SqliteStore.open(state_dir(), read_only=True)
    settled = get_question(store, asked["entry"])
    store.close()
    assert (settled.state, settled.channel) == ("denied", "console")
    assert settled.actor
