"""How long the server takes for each page of the console, with many questions waiting and a long ledger.

The floor beside it is the smallest page there is, over the same socket.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from bench.measure import micro, table, timed

CALLS = int(os.environ.get("CHECKREIN_BENCH_CALLS", "1000000"))
QUESTIONS, SAMPLES = 1_000, 12
START = 1_700_000_000.0
TOOLS = ("Bash", "Read", "Edit", "Write", "Grep", "search", "fetch", "query")
DECISIONS = ("auto_approved", "logged_only", "human_required", "blocked")
DOMAINS = ("file_read", "file_write", "test_run", "git_local", "shell_exec", "package", "network")
PAGES = {
    "inbox": "/",
    "inbox, last page": "/?page=50",
    "calls": "/calls",
    "calls of a project and tool": "/calls?project=/home/ada/project-17&tool=Bash",
    "calls, far back": "/calls?before={old}",
    "calls, words nobody wrote": "/calls?words=never-written",
    "one call": "/calls/{old}",
    "trust": "/trust?project=/home/ada/project-17&domain=file_read",
    "policy": "/policy",
    "sessions": "/sessions",
    "health": "/health",
}


def fill(pipeline: Any) -> list[str]:
    """Calls of 40 projects and 5,000 sessions, then questions that wait."""
    from bench.recording import CALL, VERDICT
    from checkrein.call import tool_call
    from checkrein.ledger.events import decided
    from checkrein.ledger.record import new_id
    from checkrein.ledger.redact import Redactor
    from checkrein.ledger.terms import terms_of
    from checkrein.store.agents import Session, put_session

    base = decided(CALL, VERDICT, Redactor(), 65536)
    outcome = {"outcome": "success", "evidence": "", "output": None, "trust": {}, "latency_ms": 5}
    ids: list[str] = []

    def some(tx: Any, first: int) -> None:
        for number in range(first, min(CALLS, first + 5_000)):
            ids.append(new_id(START + number))
            place = {"project": f"/home/ada/project-{number % 40}", "session": f"session-{number % 5000}"}
            domain = random.choice(DOMAINS)
            data = base | place | {"domains": [domain], "domain": domain, "tool": random.choice(TOOLS)}
            data["decision"] = random.choices(DECISIONS, (60, 25, 13, 2))[0]
            pipeline.ledger.append(tx, "decided", data, entry=ids[-1], terms=terms_of(data))
            if number % 3 == 0:
                scores = {"trust": {domain: random.random()}}
                pipeline.ledger.append(tx, "finished", outcome | place | scores, entry=ids[-1])

    for first in range(0, CALLS, 5_000):
        pipeline.store.write(lambda tx, first=first: some(tx, first))
        if first % 100_000 == 0:
            sys.stderr.write(f"\r  building the ledger: {first:,} of {CALLS:,}")
    sys.stderr.write("\r" + " " * 60 + "\r")
    pipeline.store.write(pipeline.ledger.file)

    def sessions(tx: Any) -> None:
        for number in range(500):
            place = f"/home/ada/project-{number % 40}"
            put_session(tx, Session(agent="codex", id=f"session-{number}", project=place, started_at=number))

    pipeline.store.write(sessions)
    for number in range(QUESTIONS):
        raw = {"tool": "Bash", "arguments": {"command": f"make target-{number} && rm -rf build/{number}"}}
        place = {
            "project": "/home/ada/project-17",
            "cwd": "/home/ada/project-17",
            "session": f"q-{number // 15}",
        }
        asked = pipeline.decide(
            tool_call({**raw, **place, "agent": "bench"}), asking=True, ask_reason="First."
        )
        assert asked.verdict.word == "ask", asked.verdict
    return ids


class _Browser:
    def __init__(self, console: Any) -> None:
        self.port = console.port
        answer, text = self.ask(urlsplit(console.link()).path, "")
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.place = re.search(r"url=(/at/[\w-]+)/", text)[1]

    def ask(self, path: str, cookie: str) -> tuple[Any, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        line.request("GET", path, headers={"Cookie": cookie})
        answer = line.getresponse()
        text = answer.read().decode()
        line.close()
        return answer, text

    def page(self, path: str) -> str:
        answer, text = self.ask(self.place + path, self.cookie)
        assert answer.status == 200, (path, answer.status, text[-300:])
        return text


def arrival(browser: _Browser, pipeline: Any) -> list[float]:
    """Milliseconds from a recorded question to its event at an open page."""
    from checkrein.call import tool_call

    line = http.client.HTTPConnection("127.0.0.1", browser.port, timeout=60)
    line.request("GET", f"{browser.place}/feed", headers={"Cookie": browser.cookie})
    stream = line.getresponse()
    stream.readline()
    took = []
    for number in range(20):
        raw = {"tool": "Bash", "arguments": {"command": f"make late-{number}"}, "session": f"late-{number}"}
        call = tool_call({**raw, "project": "/home/ada/project-17", "agent": "bench"})
        begun: list[float] = []

        def ask(call: Any = call, begun: list[float] = begun) -> None:
            pipeline.decide(call, asking=True, ask_reason="First.")
            begun.append(time.perf_counter())

        threading.Thread(target=ask).start()
        while b'"kind":"asked"' not in stream.readline():
            pass
        took.append((time.perf_counter() - begun[0]) * 1000 if begun else 0.0)
    line.close()
    return took


@contextlib.contextmanager
def _home(name: str) -> Iterator[None]:
    """A home of its own, for as long as it takes."""
    variables = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
    before = {each: os.environ.get(each) for each in variables}
    os.environ.update({each: f"{name}/{each.lower()}" for each in variables})
    try:
        yield
    finally:
        for each, value in before.items():
            if value is None:
                del os.environ[each]
            else:
                os.environ[each] = value


def section() -> str:
    random.seed(11)
    with tempfile.TemporaryDirectory(prefix="checkrein-bench-") as name, _home(name):
        from checkrein.agents import Agents
        from checkrein.console.serving import Console
        from checkrein.pipeline import Pipeline
        from checkrein.settings.sources import state_dir
        from checkrein.store.sqlite import SqliteStore

        pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
        ids = fill(pipeline)
        console = Console(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock))
        console.start(0)
        browser = _Browser(console)
        old = ids[len(ids) // 10]
        floor = timed(lambda _: browser.ask("/signin/none", ""), range(SAMPLES))
        rows = [["the smallest page (floor)", micro(floor.p50), micro(floor.p99)]]
        for label, path in PAGES.items():
            took = timed(lambda _, path=path: browser.page(path.format(old=old)), range(SAMPLES))
            rows.append([label, micro(took.p50), micro(took.p99)])
        late = arrival(browser, pipeline)
        rows.append(
            ["a question reaches an open page", f"{statistics.median(late):.0f} ms", f"{max(late):.0f} ms"]
        )
        console.stop()
        pipeline.close()
    told = f"{QUESTIONS:,} questions wait, {CALLS:,} calls are recorded; the whole answer, over HTTP."
    return f"## Console\n\n{told}\n\n" + table(["page", "p50", "slowest"], rows)


if __name__ == "__main__":
    print(section())
