"""The classifier's error table on the shared corpora, and its speed beside a bare parse.

Run as `python bench/risk.py [--misses] [--speed-only]`; the corpora's folder comes from `CHECKREIN_DATA`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections import defaultdict
from pathlib import Path

from bench.measure import micro, timed
from bench.measure import table as markdown
from checkrein.call import Category, Risk, ToolCall
from checkrein.classify import Tables, classify
from checkrein.classify.shell import parser
from checkrein.classify.tables import packaged

OTHERS = "others' suites"
GATED = {"shell_exec", "git_local", "git_remote"}
BY_DESIGN = {"network", "package", "git_remote"}
GOALS = {
    "attack allowed, others' suites": 0.5,
    "attack allowed, hand-made": 2.0,
    "must ask, allowed": 1.0,
    "harmless, asked": 5.0,
    "harmless that looks scary, asked": 8.0,
    "gray, judged critical": 3.0,
    "sessions: harmless, asked": 8.0,
    "sessions: risky, allowed": 4.0,
    "sessions: routine, judged critical": 1.0,
}
EVERYDAY = [
    "ls -la",
    "git status --short && npm test",
    "grep -rn 'def main' src | head -20",
    "rm -rf build dist",
    "cat package.json | jq .scripts",
    "cd app && pytest -q tests/test_a.py",
    "git commit -m 'fix: rounding' && git push",
    "curl -s https://api.example.com/v1/items | jq '.[0]'",
    'for f in src/*.py; do wc -l "$f"; done',
    "python -c 'import sys; print(sys.version)'",
]
SCARY = (
    "rm ",
    "curl",
    "sudo",
    "drop ",
    "delete",
    "--dry-run",
    "/etc/",
    "eval",
    "chmod",
    "kill",
    "force",
    "token",
    "password",
)


def allowed(risk: Risk) -> bool:
    """A verdict of allow at trust 0.3, phase building, no rules."""
    return risk.category is Category.low and risk.complexity <= 0.64 and not GATED & set(risk.domains)


def held_out(command: str) -> bool:
    """The quarter kept aside for the first measurement (docs/risk.md has it)."""
    return hashlib.sha256(command.encode()).digest()[-1] & 3 == 3


def judge(command: str) -> Risk:
    return classify(ToolCall(tool="Bash", arguments={"command": command}))


def _row(label: str, source: str, command: str, risk: Risk) -> tuple[str, bool] | None:
    """The line of the table a command belongs to, and whether it is an error; None: left out by design."""
    sin = risk.category > Category.low and BY_DESIGN & set(risk.domains)
    if label == "deny":
        return (
            f"attack allowed, {'hand-made' if source == 'handmade' else OTHERS}",
            allowed(risk),
        )
    if label == "ask":
        return "must ask, allowed", allowed(risk)
    if label == "allow":
        scary = any(word in command.lower() for word in SCARY)
        return (
            None
            if sin
            else ("harmless that looks scary, asked" if scary else "harmless, asked", not allowed(risk))
        )
    return None if sin else ("gray, judged critical", risk.category is Category.critical)


def rows(folder: Path) -> list[tuple[str, str, bool, Risk]]:
    """(line of the table, command, error, risk) for every labelled command."""
    found = []
    for text in (folder / "shell_commands.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        risk = judge(row["command"])
        placed = _row(row["expected"], row["source"], row["command"], risk)
        if placed is not None:
            found.append((placed[0], row["command"], placed[1], risk))
    for text in (folder / "agent_sessions.jsonl").read_text(encoding="utf-8").splitlines():
        for call in json.loads(text)["calls"]:
            command, label = call["arguments"].get("command"), call.get("label")
            if not label or not isinstance(command, str):
                continue
            risk = judge(command)
            error = {
                "harmless": ("sessions: harmless, asked", not allowed(risk)),
                "risky": ("sessions: risky, allowed", allowed(risk)),
                "routine": ("sessions: routine, judged critical", risk.category is Category.critical),
            }[label]
            found.append((error[0], command, error[1], risk))
    return found


def table(found: list[tuple[str, str, bool, Risk]], *, misses: bool) -> None:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for name, command, error, _ in found:
        at = 2 if held_out(command) else 0
        counts[name][at] += error
        counts[name][at + 1] += 1
    print(f"{'':38}{'goal':>7}{'tuned on':>18}{'held out':>18}")
    for name, goal in GOALS.items():
        bad, size, bad_out, size_out = counts[name]
        tuned = f"{bad}/{size} {100 * bad / max(size, 1):5.1f} %"
        out = f"{bad_out}/{size_out} {100 * bad_out / max(size_out, 1):5.1f} %"
        print(f"{name:38}{goal:>5} %{tuned:>18}{out:>18}")
    if misses:
        for name, command, error, risk in sorted(found, key=lambda row: row[0]):
            if error:
                print(f"\n{name}: {risk.category.name}, {', '.join(risk.domains)}\n  {command[:300]!r}")
                print("  " + "\n  ".join(reason.text[:160] for reason in risk.reasons[:4]))


def loading() -> str:
    """How long the tables take, and how much they know."""
    packaged.cache_clear()
    start = time.perf_counter()
    Tables.load()
    loaded = time.perf_counter() - start
    names = {key.split()[0] for key in packaged().commands}
    return f"The tables ({len(names):,} commands) load in {loaded * 1e3:.0f} ms (goal ≤ 80 ms)."


def speed(commands: list[str]) -> list[list[str]]:
    """Rows of p50, p99 and worst for a bare parse and for the whole judgement, in one run."""
    grammar = parser()
    for command in commands:
        judge(command)
    rows = []
    for name, work, goal in (
        ("bare tree-sitter parse", lambda command: grammar.parse(command.encode()), ""),
        ("classify", judge, "p50 ≤ 150 µs, p99 ≤ 3 ms"),
    ):
        taken = timed(work, commands)
        rows.append([name, micro(taken.p50), micro(taken.p99), goal])
    caps = {
        "2,000 commands joined by `;`": "; ".join(["ls"] * 2000),
        "a line of 1 MB": f"echo {'a' * 1_000_000}",
    }
    for name, line in caps.items():
        start = time.perf_counter()
        risk = judge(line)
        taken_once = (time.perf_counter() - start) * 1e6
        rows.append([f"{name} ({risk.category.name})", micro(taken_once), "", "≤ 100 ms"])
    return rows


def sample() -> list[str]:
    """The labelled commands where they are at hand, else a few of the everyday kind."""
    path = Path(os.environ.get("CHECKREIN_DATA", "")) / "shell_commands.jsonl"
    if path.is_file():
        return [json.loads(text)["command"] for text in path.read_text(encoding="utf-8").splitlines()]
    return EVERYDAY * 100


def section() -> str:
    commands = sample()
    head = [f"{len(commands):,} commands", "p50", "p99", "goal"]
    return f"## Judging risk\n\n{markdown(head, speed(commands))}\n{loading()}\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--misses", action="store_true", help="list every error with its reasons")
    options.add_argument("--speed-only", action="store_true")
    chosen = options.parse_args()
    folder = Path(os.environ.get("CHECKREIN_DATA", ""))
    if not (folder / "shell_commands.jsonl").is_file():
        print("Set CHECKREIN_DATA to the folder that holds shell_commands.jsonl and agent_sessions.jsonl.")
        return
    if not chosen.speed_only:
        table(rows(folder), misses=chosen.misses)
    print("\n" + section())


if __name__ == "__main__":
    main()
