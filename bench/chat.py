"""What a conversation adds to its provider's own answer, and how many are held at once, no word lost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Timing, micro, table
from checkrein.doors.chat.chat import Chat
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import config_dir, state_dir
from checkrein.store.sqlite import SqliteStore

ROUNDS, STREAMS, WORDS = 60, 100, 200
GOAL = 15_000.0


@contextlib.contextmanager
def endpoint(words: int, pause: float) -> Iterator[str]:
    """A bare provider in a process of its own."""
    command = [sys.executable, "-m", "bench.chat_parts.endpoint", str(words), str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


@contextlib.contextmanager
def chatting(url: str) -> Iterator[Chat]:
    """A chat of its own, whose only provider is that one."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
        kept = {name: os.environ.get(name) for name in names}
        os.environ.update({name: f"{folder}/{name}" for name in names})
        try:
            config_dir().mkdir(parents=True)
            spec = {"kind": "compatible", "base_url": url, "models": ["bench"]}
            Path(config_dir(), "providers.json").write_text(json.dumps({"providers": {"bench": spec}}))
            Path(config_dir(), "providers.json").chmod(0o600)
            pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
            chat = Chat(pipeline, say=print)
            chat.open()
            try:
                yield chat
            finally:
                chat.close()
                pipeline.close()
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def own_first(url: str) -> float:
    """Microseconds until the provider's first word, asked by hand on a new connection."""
    body = json.dumps({"model": "bench", "stream": True, "messages": [{"role": "user", "content": "x"}]})
    request = urllib.request.Request(
        f"{url}/chat/completions", body.encode(), {"content-type": "application/json"}
    )
    begin = time.perf_counter_ns()
    with urllib.request.urlopen(request) as answer:
        answer.readline()
        found = (time.perf_counter_ns() - begin) / 1000
        answer.read()
    return found


def our_first(chat: Chat) -> float:
    """Microseconds from a person's word, said, to the first of the answer, told to a follower."""
    session = chat.create()["id"]
    news, first = threading.Event(), 0.0
    line = chat.subscribe(session, "", news.set)
    begin = time.perf_counter_ns()
    chat.send(session=session, text="x")
    over = False
    while not over:
        news.wait(20)
        news.clear()
        for each in line.take():
            if each.kind == "text" and not first:
                first = (time.perf_counter_ns() - begin) / 1000
            over = over or each.kind in ("end", "error")
    line.close()
    return first


def spread(samples: list[float]) -> Timing:
    samples = sorted(samples)
    return Timing(samples[len(samples) // 2], samples[int(len(samples) * 0.99)])


def first_word() -> str:
    with endpoint(3, 0) as url, chatting(url) as chat:
        our_first(chat), own_first(url)
        pairs = [(own_first(url), our_first(chat)) for _ in range(ROUNDS)]
    own, ours = spread([each[0] for each in pairs]), spread([each[1] for each in pairs])
    added = spread([each[1] - each[0] for each in pairs])
    rows = [
        ["the provider's own", micro(own.p50), micro(own.p99), ""],
        ["in a conversation, told to who follows it", micro(ours.p50), micro(ours.p99), ""],
        ["added", micro(added.p50), micro(added.p99), f"≤ {GOAL / 1000:.0f} ms"],
    ]
    return table(["until the first word", "p50", "p99", "goal"], rows)


def many() -> str:
    """A hundred at once: every word of every answer is kept."""
    expected = "".join(f"word{number} " for number in range(WORDS))
    with endpoint(WORDS, 0.01) as url, chatting(url) as chat:
        our_first(chat)
        sessions = [chat.create()["id"] for _ in range(STREAMS)]
        begin = time.perf_counter()
        threads = [
            threading.Thread(target=lambda each=each: chat.send(session=each, text="x")) for each in sessions
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        while chat.busy:
            time.sleep(0.01)
        seconds = time.perf_counter() - begin
        said = [chat.session(id=each)["messages"][-1] for each in sessions]
    whole = sum("".join(part["text"] for part in each["parts"]) == expected for each in said)
    return (
        f"{STREAMS} conversations at once, {WORDS} words each: {whole} of {STREAMS} answers are whole, "
        f"{STREAMS * WORDS / seconds:,.0f} words a second (the provider paces them; goal: none is lost).\n"
    )


def section() -> str:
    return f"## Conversations\n\n{first_word()}\n{many()}"
