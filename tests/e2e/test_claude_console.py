"""The console in a real browser answers the real Claude Code, headless and before a person."""

import re
import time

import pytest

from console.browsing import CHROMIUM
from e2e.clients.claude import bash
from patience import until

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER: install Debian's chromium"),
    # Playwright's own loop; nothing of ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MADE = "touch made"


@pytest.fixture
def made(house):
    return house.project / "made"


@pytest.fixture
def tab(house):
    """The console, signed in by the link a person gets."""
    from playwright.sync_api import sync_playwright

    link = house.json("open")["url"]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(20_000)
        page.goto(link)
        page.wait_for_selector("body[data-live]")
        yield page
        browser.close()


def waits(tab, house):
    """The card of the one question that waits, and how long after its asking it was there."""
    asked = house.question()
    began = time.monotonic()
    card = tab.locator(f"[data-question='{asked['id']}']")
    card.wait_for()
    return card, time.monotonic() - began


def test_a_headless_question_is_answered_in_the_page(claude, house, tab, made):
    going = claude.begin(bash(MADE))
    card, seconds = waits(tab, house)
    assert seconds < 1.0
    assert MADE in card.text_content()
    assert not made.exists()
    card.get_by_role("button", name=re.compile("^Approve")).first.click()
    ran = going.result()
    assert not ran[0].failed, ran[0].told
    assert made.exists()
    found = house.entry(ran[0].id)
    assert (found["answer"], found["channel"]) == ("approved", "console")


def test_a_question_in_the_dialog_is_answered_in_the_page_too(claude, house, tab, made):
    pytest.importorskip("pyte", reason="reading the agent's screen needs pyte")
    with claude.sit(bash(MADE)) as screen:
        screen.shows("Do you want to proceed?")
        card, seconds = waits(tab, house)
        assert seconds < 1.0
        card.get_by_role("button", name=re.compile("^Approve")).first.click()
        until(made.exists)
        screen.no_longer_shows("Do you want to proceed?")
    assert house.entries()[0]["channel"] == "console"
