"""`checkrein open` in a terminal: a browser is started with a path, its secret stands in no command line."""

import http.client
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from patience import PATIENCE, until

# What every user may read of every process, and what the same user may: while the browser is being started.
LOOK = """#!/bin/sh
for each in /proc/[0-9]*; do
    cat $each/cmdline; echo; cat $each/environ; echo
done > {home}/seen 2>/dev/null
cp "${{1#file://}}" {home}/page
printf %s "$1" > {home}/told
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def browser(home, monkeypatch):
    """A program that is started as a browser; it notes what everybody can see meanwhile."""
    program = home / "browser"
    program.write_text(LOOK.format(home=home))
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))
    monkeypatch.delenv("SSH_CONNECTION", raising=False)


@pytest.fixture
def typed(terminal, user_settings):
    """What our command says in a terminal."""
    user_settings("[console]\nport = 0\n")
    person, program = terminal

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "checkrein", *words],
            check=False,
            stdin=program,
            stdout=program,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return os.read(person, 65536).decode().replace("\r\n", "\n")

    return run


def post(address, secret):
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}
    line.request("POST", parts.path, f"secret={secret}", form)
    answer = line.getresponse()
    answer.read()
    line.close()
    return answer


@linux
def test_the_secret_stands_in_no_command_line_environment_or_log(browser, typed, server, home):
    said = typed("open")
    told = (home / "told").read_text()
    assert told.startswith("file:///")
    assert told in said.replace("\n", "")
    page = (home / "page").read_text()
    secret = re.search(r'name="secret" value="([\w-]{43})"', page)[1]
    seen = (home / "seen").read_bytes()
    assert told.encode() in seen
    state = [each.read_bytes() for each in (home / "state").rglob("*") if each.is_file()]
    for where in (seen, said.encode(), server.said().encode(), *state):
        assert secret.encode() not in where
    path = Path(urlsplit(told).path)
    assert path.stat().st_mode & 0o777 == 0o600
    answer = post(re.search(r'action="([^"]+)"', page)[1], secret)
    assert answer.status == 200
    until(lambda: not path.exists())


def test_without_a_browser_it_prints_the_link(typed, server, monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    said = typed("open")
    assert re.match(r"http://127\.0\.0\.1:\d+/signin/[\w-]{43}\n", said)
    assert "Paste it into your browser" in said


def test_over_ssh_it_prints_the_link_and_how_to_reach_it(browser, typed, server, home, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    said = typed("open")
    port = re.match(r"http://127\.0\.0\.1:(\d+)/signin/", said)[1]
    command = re.search(r"ssh -L (\d+):(\S+) THIS-MACHINE", said)
    assert command[1] == port
    assert Path(command[2]).is_socket()
    assert not (home / "told").exists()


def test_a_browser_that_cannot_be_started_leaves_the_link(browser, typed, server, home):
    (home / "browser").write_text("#!/bin/sh\nexit 1\n")
    said = typed("open")
    assert re.search(r"^http://127\.0\.0\.1:\d+/signin/", said, re.MULTILINE)
