"""What tests in a real browser share: its clock, its leftovers, and a server whose tools are accepted."""

import shutil

import pytest

from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from javascript_ground import ready_made
from mcp_stdio import Notes

# The one without windows first: it needs half the time for the same pages.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, PROGRAMS)), None)
# As Playwright starts one: nothing waits because it is not seen, nothing asks and nothing looks for news.
SWITCHES = (
    "--headless",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-first-run",
    "--password-store=basic",
)
PAGES = ("/", "/calls", "/trust", "/policy", "/sessions", "/servers", "/runs", "/health")
# A call that a person is asked about in a conversation.
ASKS = '/call echo__write_note {"title": "a"}\n/then\n/results'
# A script that a person is asked about, under the profile `careful`.
READS = "const r = await codemode.notes__read_note({title: 'a'});\nreturn r.content[0].text + ' and read';"
CAREFUL = """
[gateway]
http_port = 0

[evaluation.profiles.careful]
asklist = ["notes__read_note"]
"""
MARKS = [
    # Playwright's own loop; nothing of ours.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def pipeline():
    """On the clock of the browser."""
    made = Pipeline(SqliteStore.open(state_dir()), state_dir())
    yield made
    made.close()


def drawn(tab):
    """Return once the page has put in place what it has received: it has drawn two pictures since."""
    tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def accept(verb, notes):
    """Add this server as `notes`, start it, and accept all it says."""
    verb("upstream.add", name="notes", entry={"command": notes.words[0], "args": notes.words[1:]})
    verb("upstream.start", name="notes")
    shown = verb("upstream.review", name="notes")
    picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in shown]
    verb("upstream.accept", name="notes", picks=picks)


@pytest.fixture
def scripts(console, tmp_path, user_settings):
    """The authority, with a server behind the gateway whose tools are accepted, and a profile that asks."""
    ready_made()
    user_settings(CAREFUL)
    accept(console.desk.ask, Notes(tmp_path))
    return console.desk.ask


def question(tab, waiter):
    return tab.locator(f"[data-question='{waiter.entry}']")


def definition(tab, name):
    return tab.locator(f"[data-definition='{name}']")


def offered(gateway):
    return {row["tool"] for row in gateway().browse("notes") if not row["hidden"]}
