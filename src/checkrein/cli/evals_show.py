"""How runs of scripts look in a terminal; what scripts and tools wrote is made harmless."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from checkrein.cli.terminal import dim, fact, plain, say, table

Facts = Mapping[str, Any]
STATES = {"done": "green", "failed": "red", "cancelled": "red", "waiting": "yellow", "running": "yellow"}
# What stands before a line of a script: what became of the calls on it, the worst first.
MARKS = {
    "denied": ("✗", "red"),
    "failed": ("!", "red"),
    "unknown": ("!", "red"),
    "asked": ("?", "yellow"),
    "executing": ("…", "yellow"),
    "done": ("✓", "green"),
}
_LONGEST = 200
_WORDS = {
    "allow": "allowed",
    "approved": "approved by a person",
    "fallback": "nobody could be asked: fallback",
}


def show_runs(found: Sequence[Facts]) -> None:
    if not found:
        say("No script has run yet.")
        say("Run one:              checkrein eval run FILE")
        say("Let agents run them:  enabled = true under [evaluation] in your settings")
        return
    table(("ID", "STATE", "BY", "PROFILE", "LANGUAGE", "CALLS", "BEGUN"), [_row(each) for each in found])
    waiting = sum(bool(each.get("waiting")) for each in found)
    if waiting:
        say(dim(f"{waiting} wait for an answer: checkrein inbox"))


def _row(each: Facts) -> tuple[str, ...]:
    calls = str(each["calls"]) + (f", {each['refusals']} refused" if each["refusals"] else "")
    begun = str(each["made_at"])[:19].replace("T", " ")
    return (each["id"], each["state"], each["agent"], each["profile"] or "-", each["language"], calls, begun)


def show_run(run: Facts) -> None:
    """One run, from its script to its end."""
    state = str(run["state"])
    say(f"{click.style(state.upper(), fg=STATES.get(state), bold=True)} {plain(run['id'])}")
    who = f"{run['agent']} ({run['owner']})"
    for name, value in (
        ("by", who),
        ("project", run["project"] or "none"),
        ("profile", run["profile"] or "none"),
        ("begun", run["made_at"]),
        ("last change", run["changed_at"]),
    ):
        fact(name, value, 12)
    if run.get("fault"):
        say(f"\n{plain(run['fault'])}")
        return
    say()
    for line in marked(str(run["source"]), run["timeline"]):
        say(line)
    if run["timeline"]:
        say()
    for each in run["timeline"]:
        _show_step(each)
    if run.get("waiting"):
        say()
        show_waiting({"run_id": run["id"], "status": "paused", "waiting": run["waiting"]})
    if isinstance(run.get("result"), Mapping) and "status" in run["result"]:
        say()
        show_end(run["result"])
    elif run.get("result") is not None:
        say(f"\nresult  {_json(run['result'])}")


def marked(source: str, steps: Sequence[Facts]) -> list[str]:
    """The script, numbered, with what became of the calls on each line before it."""
    states: dict[int, list[str]] = {}
    for each in steps:
        states.setdefault(int(each["line"]), []).append(str(each["state"]))
    shown = []
    for number, text in enumerate(source.splitlines(), start=1):
        worst = next((each for each in MARKS if each in states.get(number, ())), "")
        mark, colour = MARKS.get(worst, (" ", ""))
        shown.append(f"{click.style(mark, fg=colour or None)} {dim(f'{number:>4}')}  {plain(text)}")
    return shown


def _show_step(step: Facts) -> None:
    mark, colour = MARKS.get(str(step["state"]), ("·", ""))
    said = _verdict(str(step["verdict"])) if step["verdict"] else str(step["state"])
    line = f" line {step['line']}" if step["line"] else ""
    tool = click.style(plain(step["tool"]), bold=True)
    say(f"{click.style(mark, fg=colour or None)} {step['number']:>3}. {tool}{dim(line)}  {plain(said)}")
    say(f"       {dim(plain(step['entry']))}")
    say(f"       {_json(step['arguments'])}")
    if step["error"] and step["error"] not in step["verdict"]:
        say(f"     → {plain(_short(str(step['error'])))}")
    elif step["answer"] is not None:
        say(f"     → {_json(step['answer'])}")


def _verdict(text: str) -> str:
    return _WORDS.get(text, text)


def show_waiting(found: Facts) -> None:
    """What a run waits for, and how to answer."""
    if not found["waiting"]:
        say(f"It still runs: checkrein eval resume {plain(found['run_id'])}")
        return
    say("It waits for an answer:")
    for each in found["waiting"]:
        say(f"  {click.style(plain(each['tool']), bold=True)} (line {each['line']}): {plain(each['why'])}")
        say(f"    checkrein approve {plain(each['question'])}")
    say(f"Then: checkrein eval resume {plain(found['run_id'])}")


def show_end(found: Facts) -> None:
    """The result of a script, or how it failed; what it printed comes first."""
    output = str(found.get("output") or "")
    if output:
        for line in output.splitlines():
            say(f"{dim('|')} {plain(line)}")
    if found["status"] == "done":
        value = found["result"]
        say(plain(value) if isinstance(value, str) else _json(value, 16_384))
        return
    error = found["error"]
    where = f" on line {error['line']}" if error["line"] else ""
    head = click.style(f"{found['status'].capitalize()} ({plain(error['kind'])}){where}:", fg="red")
    say(f"{head} {plain(error['message'])}")


def ended_badly(found: Facts) -> bool:
    return str(found["status"]) != "done"


def _json(value: Any, longest: int = _LONGEST) -> str:
    return plain(_short(msgspec.json.encode(value).decode(), longest))


def _short(text: str, longest: int = _LONGEST) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
