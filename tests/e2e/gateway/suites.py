"""The official conformance suites: run against an address, and two runs compared check by check."""

import json
import re
import socket
from collections import Counter
from pathlib import Path

from e2e.clients import processes
from e2e.gateway import parts

EXPECTED = Path(__file__).with_name("expected.yml")
SUITES = {
    "0.1.16": ("suite-handshake", ["--suite", "active"]),
    "alpha 2025-11-25": ("suite-both", ["--suite", "all", "--spec-version", "2025-11-25"]),
    "alpha 2026-07-28": ("suite-both", ["--suite", "all", "--spec-version", "2026-07-28"]),
}
_SCRIPT = "@modelcontextprotocol/conformance/dist/index.js"
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\dZ-]+$")
_ENTRY = re.compile(r"^\s*- (?P<check>\S+:\S+)\s+# (?P<reason>\S.+)$")
# Nothing that was asked for is missing in these.
FINE = ("SUCCESS", "INFO", "SKIPPED")


def run(name, url, target, seconds=240.0, only=None):
    """Every check of a suite: (scenario, check, name, which of that name) to the whole check."""
    package, words = SUITES[name]
    if only:
        words = ["--scenario", only, *words[2:]]
    program = [*parts.program(package, script=_SCRIPT), "server", "--url", url, *words, "-o", str(target)]
    done = processes.run(program, env={"PATH": "/usr/bin:/bin"}, cwd=target.parent, seconds=seconds)
    assert "Total: " in done.stdout or only, (done.stdout[-2000:], done.stderr[-2000:])
    return read(target)


def read(target):
    found = {}
    for path in sorted(target.glob("*/checks.json")):
        scenario = _STAMP.sub("", path.parent.name).removeprefix("server-")
        seen = Counter()
        for check in json.loads(path.read_text()):
            what = (scenario, check["id"], check["name"])
            seen[what] += 1
            found[(*what, seen[what])] = check
    return found


def failing(checks):
    return {key: check for key, check in checks.items() if check["status"] not in FINE}


def worse(direct, through):
    """What passes directly and does not through us: (check, how it went, what was said of it)."""
    found = []
    for key, check in direct.items():
        if check["status"] != "SUCCESS":
            continue
        other = through.get(key) or _under_its_id(key, through)
        if other is None or other["status"] not in FINE:
            said = (other or {}).get("errorMessage", "it was never checked")
            found.append((key, (other or {}).get("status", "missing"), said))
    return found


def _under_its_id(key, checks):
    """Scenarios that end early tell one thing of the id instead of several."""
    same = [check for other, check in checks.items() if other[:2] == key[:2]]
    return same[0] if same else None


def expected():
    """Known failures, `scenario:check` to the reason each one has to have."""
    entries = [line for line in EXPECTED.read_text().splitlines() if line.lstrip().startswith("- ")]
    found = [_ENTRY.match(line) for line in entries]
    assert all(found), f"{EXPECTED.name}: every entry is `- scenario:check  # reason`"
    return {each["check"]: each["reason"] for each in found}


def free_port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]
