"""How servers, their tools and their definitions look in a terminal; what servers wrote is made harmless."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
import msgspec

from checkrein.cli.terminal import COLOUR, dim, plain, say, table
from checkrein.settings.servers import ServerSpec

Facts = Mapping[str, Any]
STATES = {"ready": "green", "failed": "red", "waiting": "yellow", "starting": "yellow"}
PENDING = ("new", "changed")
LONGEST_TEXT = 600
MOST_LINES = 60


def show_servers(found: Facts) -> None:
    """The list of servers, one line each."""
    if not found["servers"]:
        say("No servers yet.")
        say("Add one:        checkrein servers add NAME -- COMMAND ARGUMENTS")
        say("Bring yours in: checkrein servers import --from claude-code --dry-run")
        return
    table(
        ("NAME", "STATE", "TOOLS", "CONNECTIONS", "LAST ERROR"),
        [_server_row(each) for each in found["servers"]],
    )
    if any(each.get("hidden") for each in found["servers"]):
        say(
            dim(
                "Clients do not see what is hidden; `checkrein servers review` shows what waits for your yes."
            )
        )


def _server_row(each: Facts) -> tuple[str, ...]:
    offered, hidden = each.get("offered"), each.get("hidden")
    tools = "" if offered is None else f"{offered} offered" + (f", {hidden} hidden" if hidden else "")
    state = str(each.get("state", ""))
    if each.get("entry", {}).get("enabled") is False:
        state = "stopped (by you)"
    return (str(each["name"]), state, tools, str(each.get("connections") or 0), one_line(each.get("error")))


def one_line(text: Any, longest: int = 80) -> str:
    line = " ".join(str(text or "").split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def show_command(spec: ServerSpec) -> None:
    """Exactly what will be run or reached; of variables and headers only the names."""
    if spec.url:
        say(f"It will be reached at:  {plain(spec.url)}")
        if spec.headers:
            say(f"with headers:           {plain(', '.join(spec.headers))}")
        if spec.client.client_id:
            say(f"signing in as client:   {plain(spec.client.client_id)}")
            say(f"coming back to:         {plain(spec.client.way_back)}")
        return
    say(f"It will run:            {plain(shlex.join([spec.command, *spec.args]))}")
    if spec.cwd:
        say(f"in the folder:          {plain(spec.cwd)}")
    given = [*spec.env, *(f"{name} (yours)" for name in spec.inherit)]
    if given:
        say(f"with variables:         {plain(', '.join(given))}")


def show_state(status: Facts) -> None:
    """What became of a start or a stop."""
    state = str(status.get("state", "unknown"))
    say(f"{plain(str(status['name']))}: {click.style(plain(state), fg=STATES.get(state))}")
    for key in ("error", "remedy"):
        if status.get(key):
            say(f"  {plain(str(status[key]))}")


def show_test(found: Facts) -> None:
    info = found.get("info") or {}
    title = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    took = f", {found['seconds']:.1f} s" if isinstance(found.get("seconds"), int | float) else ""
    tools = found.get("tools") or []
    say(f"It answers: {plain(title) or 'no name'} (MCP {plain(str(found.get('version', '?')))}{took})")
    say(f"{len(tools)} tool(s): {plain(', '.join(_name_of(each) for each in tools))}")


def _name_of(tool: Any) -> str:
    return str(tool.get("name", "?")) if isinstance(tool, Mapping) else str(tool)


def show_tools(tools: Sequence[Facts]) -> None:
    """Tools with what they take, their risk and what policy says today."""
    for server in dict.fromkeys(str(each.get("server", "")) for each in tools):
        say(click.style(plain(server), bold=True))
        for each in tools:
            if each.get("server") == server:
                _show_tool(each)
        say()


def _show_tool(each: Facts) -> None:
    definition = _definition(each)
    state = plain(str(each.get("state", "")))
    aside = "" if state in ("", "accepted") else f"  ({state})"
    say(f"  {click.style(plain(str(each.get('tool', ''))), bold=True)}{aside}")
    text = one_line(definition.get("description"), 160)
    if text:
        say(f"    {plain(text)}")
    takes = parameters(definition.get("inputSchema"))
    if takes:
        say(f"    takes  {plain(takes)}")
    say(f"    risk   {plain(str(each.get('risk', '?')))}")
    word = str(each.get("verdict", ""))
    if each.get("hidden"):
        say(f"    today  hidden: {plain(str(each['hidden']))}")
    elif word:
        reasons = [*(each.get("reasons") or ()), each.get("decided_by")]
        say(f"    today  {click.style(word, fg=COLOUR.get(word))}: {plain(one_line(reasons[0], 300))}")
    show_flags(each.get("flags") or (), "    ")


def _definition(each: Facts) -> Facts:
    """The tool's definition; where it is not offered yet, from the text people are shown."""
    given = each.get("definition")
    if not isinstance(given, Mapping):
        try:
            given = msgspec.json.decode(str(each.get("shown", "")))
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            given = None
    return given if isinstance(given, Mapping) else {}


def parameters(schema: Any) -> str:
    """`path: string, limit?: integer`; what may be left out has a question mark."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(found, Mapping):
        return ""
    needed = schema.get("required")
    required = set(map(str, needed)) if isinstance(needed, list) else set()
    shown = []
    for name, each in list(found.items())[:30]:
        kind = each.get("type") if isinstance(each, Mapping) else None
        text = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "any")
        shown.append(f"{name}{'' if name in required else '?'}: {text}")
    return one_line(", ".join(shown), 400)


def show_definitions(found: Iterable[Facts], risks: Mapping[str, str], *, whole: bool = False) -> None:
    """Definitions as a person must see them before saying yes: text, what changed, and what is odd."""
    for each in found:
        name = str(each.get("name") or each.get("kind"))
        kind = "" if each.get("kind") == "tool" else f"{each.get('kind')} "
        risk = risks.get(f"{each.get('server')}/{name}") if each.get("kind") == "tool" else ""
        facts = ", ".join(filter(None, (str(each.get("state", "")), f"risk {risk}" if risk else "")))
        title = f"{each.get('server')}  {kind}{name}"
        say(f"{click.style(plain(title), bold=True)}  {dim(plain(facts))}")
        show_flags(each.get("flags") or (), "  ")
        if each.get("hidden"):
            say(f"  hidden: {plain(str(each['hidden']))}")
        _show_text(each, whole)
        say()


def show_briefly(found: Sequence[Facts], risks: Mapping[str, str]) -> None:
    """Definitions one line each, and everything odd about them."""
    for each in found:
        name = str(each.get("name") or each.get("kind"))
        risk = risks.get(f"{each.get('server')}/{name}", "") if each.get("kind") == "tool" else ""
        say(f"  {plain(name):<32} {risk:<9} {dim(plain(str(each.get('kind'))))}")
        show_flags(each.get("flags") or (), "      ")


def show_flags(flags: Iterable[Any], indent: str) -> None:
    for flag in flags:
        say(f"{indent}{click.style('!', fg='yellow', bold=True)} {plain(str(flag))}")


def _show_text(each: Facts, whole: bool) -> None:
    lines = [str(line) for line in each.get("diff") or ()]
    if lines:
        for line in lines:
            colour = {"+": "green", "-": "red"}.get(line[:1])
            say(f"  {click.style(plain(line), fg=colour)}")
        return
    text = str(each.get("shown", ""))
    shown = text.splitlines() if whole else text[:LONGEST_TEXT].splitlines()[:MOST_LINES]
    for line in shown:
        say(f"  {plain(line)}")
    if len("\n".join(shown)) < len(text.rstrip()):
        say(dim("  … `--full` shows everything"))
