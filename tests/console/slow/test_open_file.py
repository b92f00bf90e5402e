"""`checkrein open` with a real browser: started with a file, it comes out signed in."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from console import browsing
from console.browsing import CHROMIUM, SWITCHES
from patience import PATIENCE, until

pytestmark = [
    *browsing.MARKS,
    pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER: install Debian's chromium"),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
# A browser as a person's own: what it was started with is kept, so that its page can be looked at.
START = """#!/bin/sh
cp "${{1#file://}}" {profile}/page
echo $$ > {profile}/pid
exec {chromium} --no-sandbox --remote-debugging-port=0 --user-data-dir={profile} {switches} "$1"
"""


@pytest.fixture
def profile(tmp_path):
    folder = tmp_path / "profile"
    folder.mkdir()
    yield folder
    # In a group of its own, its helpers with it.
    os.killpg(int((folder / "pid").read_text()), signal.SIGKILL)


def command_lines():
    """What every user of this machine can read of every process."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(each.read_text(errors="replace"))
    return "\n".join(found)


def test_a_browser_that_is_started_with_the_file_is_signed_in(own_console, profile, monkeypatch):
    from playwright.sync_api import sync_playwright

    program = profile / "browser"
    program.write_text(START.format(profile=profile, chromium=CHROMIUM, switches=" ".join(SWITCHES)))
    program.chmod(0o755)
    path = Path(own_console.sign_in_file())
    subprocess.run(
        [sys.executable, "-c", f"import webbrowser; assert webbrowser.open({path.as_uri()!r})"],
        env=os.environ | {"BROWSER": f"{program} %s &", "HOME": str(profile)},
        check=True,
        timeout=PATIENCE,
    )
    said = profile / "DevToolsActivePort"
    port = until(lambda: said.exists() and said.read_text().split("\n")[0])
    with sync_playwright() as play:
        browser = play.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
        (tab,) = browser.contexts[0].pages
        tab.set_default_timeout(PATIENCE * 1000)
        tab.wait_for_selector("body[data-live]")
        assert re.fullmatch(r"/at/[\w-]+/", urlsplit(tab.url).path)
        secret = re.search(r'name="secret" value="([\w-]{43})"', (profile / "page").read_text())[1]
        lines = command_lines()
        assert str(path) in lines
        assert secret not in lines
        assert secret not in tab.evaluate("document.referrer")
        browser.close()
    assert not path.exists()
