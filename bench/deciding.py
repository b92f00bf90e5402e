"""How long a decision takes as rules pile up, beside a plain loop over dictionaries."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from bench.measure import micro, table, timed
from checkrein.call import Category, Risk, ToolCall, tool_call
from checkrein.policy import Policy, decide
from checkrein.policy.load import NO_RULES
from checkrein.policy.rules import RuleSet, rule
from checkrein.policy.trust import Scores
from checkrein.settings import Settings
from checkrein.whatif import explain_line

SIZES = (100, 1_000, 10_000)
GOAL = {1_000: 60, 10_000: 250}
SAMPLES = 5_000
RISK = Risk(category=Category.medium, domains=("file_read",))
TRUST = Scores({}, 0.3)


def mixed(count: int) -> list[dict[str, Any]]:
    """80 % exact names, 19 % prefixes, 1 % inner wildcards; 10 % carry a condition."""
    rules = []
    for number in range(count):
        kind = number % 100
        made: dict[str, Any] = {
            "action": "ask",
            "priority": number,
            "server": f"s{number % 7}" if number % 3 else None,
        }
        if kind < 80:
            made["tool"] = f"tool_{number}"
        elif kind < 99:
            made["pattern"] = f"area{number}_*"
        else:
            made["pattern"] = f"get_*_{number}"
        if number % 10 == 0:
            made["when"] = [{"path": "amount", "gt": 100}]
        rules.append(made)
    return rules


def wild(count: int) -> list[dict[str, Any]]:
    return [{"action": "ask", "priority": n, "pattern": f"*x{n}*y*"} for n in range(count)]


def calls(count: int) -> list[ToolCall]:
    """Half name a tool some rule names, half none."""
    random.seed(7)
    made = []
    for _ in range(SAMPLES):
        number = random.randrange(count)
        name = random.choice(
            (f"tool_{number}", f"area{number}_read", f"get_it_{number}", "Read", "write_file")
        )
        made.append(
            tool_call({"tool": name, "server": f"s{number % 7}", "arguments": {"amount": 5, "path": "a/b"}})
        )
    return made


def plain_loop(rules: list[dict[str, Any]], call: ToolCall) -> str | None:
    """The floor: the least a correct matcher without an index can do, without conditions and reasons."""
    for each in rules:
        if each["server"] is not None and each["server"] != call.server:
            continue
        if each.get("tool") == call.tool:
            return str(each["action"])
        pattern = each.get("pattern")
        if pattern is not None and call.tool.startswith(pattern.split("*", 1)[0]):
            return str(each["action"])
    return None


def section() -> str:
    rows = []
    for count in SIZES:
        raw, asked = mixed(count), calls(count)
        policy = Policy(Settings(), RuleSet(rule(each, id=str(n)) for n, each in enumerate(raw)), NO_RULES)
        ours = timed(lambda call, p=policy: decide(call, RISK, p, TRUST, now=0.0), asked)
        floor = timed(lambda call, r=raw: plain_loop(r, call), asked[:500])
        goal = f"≤ {GOAL[count]} µs" if count in GOAL else ""
        rows.append([f"{count:,} mixed", micro(ours.p50), micro(ours.p99), micro(floor.p50), goal])
    for count in SIZES:
        policy = Policy(
            Settings(), RuleSet(rule(each, id=str(n)) for n, each in enumerate(wild(count))), NO_RULES
        )
        ours = timed(lambda call, p=policy: decide(call, RISK, p, TRUST, now=0.0), calls(count)[:300])
        rows.append([f"{count:,} inner wildcards", micro(ours.p50), micro(ours.p99), "", ""])
    head = ["rules", "decide p50", "p99", "plain dict loop p50", "goal (p50)"]
    return f"## Deciding\n\n{table(head, rows)}\n{throughput()}"


def throughput() -> str:
    line = json.dumps(
        {"call": {"tool": "Bash", "arguments": {"command": "rm -rf build"}}, "trust": {"*": 0.5}}
    )
    begin, count = time.perf_counter(), 20_000
    for _ in range(count):
        explain_line(line)
    ours = count / (time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(count):
        json.dumps(json.loads(line))
    floor = count / (time.perf_counter() - begin)
    alone = f"reading and writing the JSON alone: {floor:,.0f}"
    return f"`explain --jsonl` answers {ours:,.0f} lines a second ({alone}).\n"
