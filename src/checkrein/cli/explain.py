"""`checkrein explain`: the verdict on a call, without making it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from checkrein import earning
from checkrein.call import ToolCall, Verdict, tool_call
from checkrein.classify import classify
from checkrein.cli.opening import json_option, project_option, project_path, reading
from checkrein.cli.terminal import say_json, show_verdict
from checkrein.errors import InputError
from checkrein.policies import Policies
from checkrein.policy import decide
from checkrein.whatif import as_json as verdict_json
from checkrein.whatif import explain_line


@click.command()
@click.argument("command", required=False)
@click.option("--tool", help="A tool instead of a shell command, e.g. Write or mcp__mail__send.")
@click.option("--args", "arguments", metavar="JSON", help="The tool's arguments.")
@click.option("--door", default="hooks", show_default=True, help="hooks, gateway, chat, eval or library.")
@click.option("--phase", default="building", show_default=True, help="planning, building or auditing.")
@project_option
@json_option
@click.option(
    "--jsonl", is_flag=True, help="Answer one JSON question per line of standard input; reads no state."
)
@click.pass_obj
def explain(
    overrides: tuple[str, ...],
    command: str | None,
    tool: str | None,
    arguments: str | None,
    door: str,
    phase: str,
    project: str | None,
    as_json: bool,
    jsonl: bool,
) -> None:
    """Say what the verdict on a call would be, and why. Nothing runs and nothing is recorded.

    \b
    checkrein explain 'rm -rf build'
    checkrein explain --tool mcp__mail__send --args '{"to": "x@example.com"}'
    """
    if jsonl:
        _answer_lines()
        return
    call = _call(command, tool, arguments, door, project_path(project))
    verdict = _verdict(call, phase, overrides)
    if as_json:
        say_json(verdict_json(verdict))
    else:
        show_verdict(verdict, command or call.name)


def _answer_lines() -> None:
    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    for line in sys.stdin.buffer:
        if line.strip():
            write(explain_line(line) + b"\n")
            # A partner that waits for each answer before the next question must get it.
            flush()


def _call(command: str | None, tool: str | None, arguments: str | None, door: str, project: str) -> ToolCall:
    if (command is None) == (tool is None):
        raise InputError("Give a shell command or --tool.", remedy="See `checkrein explain --help`.")
    raw: dict[str, Any] = {"tool": tool or "Bash", "door": door, "project": project, "cwd": str(Path.cwd())}
    if command is not None:
        raw["arguments"] = {"command": command}
    elif arguments is not None:
        try:
            raw["arguments"] = msgspec.json.decode(arguments)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            raise InputError(f"--args is not JSON: {error}.", remedy="Put it in single quotes.") from None
    return tool_call(raw)


def _verdict(call: ToolCall, phase: str, overrides: tuple[str, ...]) -> Verdict:
    """What the real policy and the real trust say now."""
    with reading() as reader:
        force = Policies(reader, overrides).of(call.project, call.door, phase)
        now = time.time()
        scores = earning.book(reader, call.project, force.settings).scores(
            earning.model_for(force.settings), now
        )
        own = force.own_folders(call.project)
        risk = classify(call, tables=force.tables, resolve=_real, own=own)
        return decide(call, risk, force.policy, scores, now=now, resolve=_real)


def _real(path: str) -> str:
    return str(Path(path).resolve())
