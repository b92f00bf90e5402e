"""How models, tools, tokens and what was found look in a terminal."""

from __future__ import annotations

from typing import Any

from checkrein.cli.terminal import bar, dim, plain, word

Facts = dict[str, Any]


def model_rows(models: list[Facts]) -> list[tuple[str, str, str, str]]:
    return [
        (each["ref"], _count(each.get("input")), each["kind"], "default" if each.get("default") else "")
        for each in models
    ]


def _count(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else "unknown"


def tool_lines(servers: list[Facts]) -> list[str]:
    """Every tool under its server, with what the rules say today."""
    lines: list[str] = []
    for server in servers:
        state = "" if server["on"] else " (off)"
        lines.append(plain(f"{server['server']} {server['state']}{state} {server.get('error', '')}".rstrip()))
        for tool in server["tools"]:
            off = "" if tool["on"] else dim(" off")
            lines.append(f"  {word(tool['policy'], 5)} {plain(tool['tool'])}{off} {dim(plain(_first(tool)))}")
    return lines or ["There are no tools. Add a server with `checkrein servers add`."]


def _first(tool: Facts) -> str:
    """The beginning of what a tool says of itself."""
    lines = tool["description"].strip().splitlines()
    return lines[0][:80] if lines else ""


def gauge_lines(gauge: Facts) -> list[str]:
    share = min(1.0, gauge["percent"] / 100)
    lines = [
        f"{bar(share)} {gauge['percent']:.0f} % of {gauge['limit']:,} tokens ({plain(gauge['model'])})",
        *(f"  {plain(name):<10} {count:>10,}" for name, count in gauge["breakdown"].items()),
    ]
    if gauge["estimated"]:
        lines.append(dim("  An estimate."))
    if gauge["needs_compression"]:
        lines.append("  /compress would make room.")
    if gauge.get("note"):
        lines.append(dim(f"  {plain(gauge['note'])}"))
    return lines


def found_lines(hits: list[Facts]) -> list[str]:
    return [
        f"{each['session']}  {plain(each['title'])}"
        + (
            f": {plain(' '.join(''.join(text for _, text in each['snippet']).split()))}"
            if each["message"]
            else ""
        )
        for each in hits
    ]
