"""The demo's script scene: a script that waits for a person while its server is stopped, and then goes on."""

from __future__ import annotations

import time
from typing import Any

import click

from checkrein import knocking
from checkrein.cli.demo_hooks import running
from checkrein.cli.evals_show import marked
from checkrein.cli.terminal import dim, plain, say, word
from checkrein.errors import StoreError
from checkrein.settings.sources import user_file

_PROFILE = """
[evaluation.profiles.desk]
asklist = ["docs__add_page"]
"""
_SCRIPT = """\
import asyncio

async def add(title):
    try:
        await codemode.docs__add_page(title=title)
        return title + ": added"
    except PermissionError as refusal:
        return title + ": " + str(refusal).split(": ")[-1]

await asyncio.gather(add("Refunds"), add("Everybody's passwords"))"""
_SAID = ("approved", "denied")
_WAIT = 10.0

Facts = dict[str, Any]


def scene(project: str) -> None:
    """Start a script, stop the server while it waits, answer, and read what came of it."""
    with user_file().open("a", encoding="utf-8") as settings:
        settings.write(_PROFILE)
    with running():
        found = _ask(
            "run.start", source=_SCRIPT, language="python", profile="desk", project=project, wait=_WAIT
        )
        _shown(found)
    say(dim("      it waits as a sealed row; the server is stopped, and another one started:"))
    begin = time.perf_counter()
    with running():
        for each, said in zip(found["waiting"], _SAID, strict=True):
            _ask("question.answer", id=each["question"], answer=said)
            say(f"{'':<6}{click.style('you', bold=True)} {said} {each['tool']}")
        end = _ended(found["run_id"])
    taken = dim(f"{(time.perf_counter() - begin) * 1000:.0f} ms, the new server's start and end included")
    status = click.style(end["status"].upper(), fg="green", bold=True)
    say(f"{status}  {plain('; '.join(end['result']))} {taken}")


def _ended(run_id: str) -> Facts:
    """What came of it; the new server takes a moment to hear of the answers."""
    deadline = time.monotonic() + _WAIT
    while True:
        found: Facts = _ask("run.resume", id=run_id, wait=_WAIT)
        if found["status"] == "done":
            return found
        if time.monotonic() > deadline:
            raise StoreError("The demo's script did not end.", remedy="Run it again.")
        time.sleep(0.02)


def _shown(found: Facts) -> None:
    if found["status"] != "paused":
        why = found.get("error", {}).get("message", found["status"])
        raise StoreError(f"The demo's script does not wait: {why}", remedy="See `checkrein eval runs`.")
    steps = _ask("run.show", id=found["run_id"])["timeline"]
    for line in marked(_SCRIPT, steps):
        say(f"      {line}")
    for each in found["waiting"]:
        arguments = next(step["arguments"] for step in steps if step["entry"] == each["question"])
        say(f"{word('ask', 5)} {each['tool']} {plain(str(arguments['title']))}")


def _ask(verb: str, **params: Any) -> Any:
    return knocking.ask(knocking.start(), verb, params)
