"""How many questions people are left with when their answers are remembered, on recorded agent sessions.

Every call goes through the real pipeline at the initial trust, in the building phase; a person says yes to
whatever is asked. The sessions' folder comes from `CHECKREIN_DATA`.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.measure import table
from checkrein.asking import Remember
from checkrein.call import ToolCall, tool_call
from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.phases import set_phase
from checkrein.store.sqlite import SqliteStore

GOAL = "about a third"
WAYS = {
    "nothing": (),
    "exactly the call, for the session": ("exact",),
    "its family, for the session": ("family", "exact"),
    "its family, or the server's tool, for the session": ("family", "tool", "exact"),
}


def root(session: dict[str, Any]) -> str:
    """The project's folder, as far as the files a session edited tell."""
    name = session["repo"].rpartition("/")[2]
    edited = [
        str(call["arguments"].get("file_path", "")) for call in session["calls"] if call["kind"] == "write"
    ]
    above = [path.partition(f"/{name}/")[0] for path in edited if f"/{name}/" in path]
    if above:
        return f"{Counter(above).most_common(1)[0][0]}/{name}"
    folders = [str(Path(path).parent) for path in edited if path.startswith("/")]
    return os.path.commonpath(folders) if folders else "/home/user/project"


def calls(folder: Path) -> Iterator[ToolCall]:
    for text in (folder / "agent_sessions.jsonl").read_text(encoding="utf-8").splitlines():
        session = json.loads(text)
        project = root(session)
        for each in session["calls"]:
            raw = {"tool": each["tool"], "arguments": each["arguments"], "session": session["session"]}
            yield tool_call({**raw, "agent": session["agent"], "project": project, "cwd": project})


@contextlib.contextmanager
def fresh() -> Iterator[Pipeline]:
    """A pipeline of its own, in a home of its own: the sessions' files lie under it."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {name: os.environ.get(name) for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
        os.environ.update(HOME="/home/user", XDG_STATE_HOME=f"{folder}/s", XDG_CONFIG_HOME=f"{folder}/c")
        pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
        try:
            pipeline.store.write(lambda tx: set_phase(tx, "building", 1.0))
            yield pipeline
        finally:
            pipeline.close()
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def questions(folder: Path, ways: tuple[str, ...]) -> Counter[str]:
    """How often a person was asked, by the kind of tool; what blocks or runs by itself is counted too."""
    found: Counter[str] = Counter()
    with fresh() as pipeline:
        for call in calls(folder):
            decided = pipeline.decide(call, asking=True)
            found[decided.verdict.word] += 1
            if decided.verdict.word == "ask":
                found["server" if call.server else call.tool] += 1
                _yes(pipeline, decided.entry, ways)
    return found


def _yes(pipeline: Pipeline, entry: str, ways: tuple[str, ...]) -> None:
    for what in ways:
        with contextlib.suppress(InputError):
            how = Remember(what=what)  # type: ignore[arg-type]
            pipeline.answer(entry, "approved", actor="bench", channel="terminal", remember=how)
            return
    pipeline.answer(entry, "approved", actor="bench", channel="terminal")


def section() -> str:
    folder = Path(os.environ.get("CHECKREIN_DATA", ""))
    if not (folder / "agent_sessions.jsonl").is_file():
        return "## Asking\n\nNot measured: the recorded sessions were not at hand.\n"
    counted = {name: questions(folder, ways) for name, ways in WAYS.items()}
    first = counted["nothing"]
    rows = [
        [
            name,
            str(each["ask"]),
            f"{100 * each['ask'] / first['ask']:.1f} %",
            GOAL if "family" in name else "",
        ]
        for name, each in counted.items()
    ]
    asked = first["ask"] + first["allow"] + first["deny"]
    head = ["remembered", f"questions in {asked:,} calls", "of those without memory", "goal"]
    return f"## Asking\n\n{table(head, rows)}"


if __name__ == "__main__":
    print(section())
