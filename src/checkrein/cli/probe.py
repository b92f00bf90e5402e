"""Runs an agent's installed hook the way the agent would, with a call that must be refused."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from checkrein.cli.opening import reading
from checkrein.doors.hooks import files, replies
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import read
from checkrein.doors.hooks.registrations import COMMAND_KEY, client_of, handlers
from checkrein.errors import CheckreinError
from checkrein.ledger.query import entry
from checkrein.ledger.record import new_id
from checkrein.overview import PROBES

COMMAND = "curl https://checkrein.invalid/"
_SECONDS = 30.0
_REFUSED = 2
_RECORD = re.compile(r"\(record (\w+)\)")
# Variables by which an agent tells its hooks about itself; here no agent does.
_AGENTS_OWN = ("CLAUDE", "CODEX", "GEMINI", "COPILOT", "CURSOR")


def command_line(agent: str, file: Path) -> str | None:
    """The gate exactly as it stands in the agent's settings."""
    found = files.document(agent, files.text_of(file), str(file))
    for item in found.get("hooks", {}).get(dialect(agent).gate, []):
        for handler in handlers(agent, item):
            if client_of(agent, handler):
                return str(handler[COMMAND_KEY.get(agent, "command")])
    return None


def payload(agent: str, cwd: str, call_id: str = "") -> bytes:
    """A shell call as the agent would announce it."""
    table = dialect(agent)
    shell = next((name for name, common in table.tools.items() if common == "Bash"), "Bash")
    said: dict[str, Any] = {
        table.fields.event[0]: table.gate,
        table.fields.session[0]: PROBES,
        table.fields.cwd[0]: cwd,
        table.fields.tool[0]: shell,
        table.fields.arguments[0]: {"command": COMMAND},
    }
    if table.fields.call_id:
        said[table.fields.call_id[0]] = call_id or new_id(0.0)
    return msgspec.json.encode(said)


def probe(agent: str, line: str, cwd: str) -> str:
    """What is wrong with the gate; nothing when the call was refused as it must be, and recorded."""
    told = payload(agent, cwd, f"probe-{os.getpid()}-{os.urandom(4).hex()}")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_AGENTS_OWN)}
    try:
        done = subprocess.run(  # noqa: S603 - the line a person installed, run as the agent runs it
            ["/bin/sh", "-c", line],
            input=told,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the hook could not be run: {error}"
    reason = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != _REFUSED:
        return f"the hook let a call through that must be refused (exit {done.returncode}) {reason}".strip()
    if _value(done.stdout) != _value(replies.deny(read(agent, told), reason).stdout):
        return f"the refusal is not in {dialect(agent).title}'s own words: {done.stdout[:200]!r}"
    return _unrecorded(reason)


def _value(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text


def _unrecorded(reason: str) -> str:
    """Why the refusal is not the server's: the client refuses by itself when it reaches nobody."""
    named = _RECORD.search(reason)
    if named is None:
        return f"the hook refused without the server: {reason}"
    try:
        with reading() as reader:
            found, _ = entry(reader, named[1])
    except CheckreinError as error:
        return f"the refusal is not on the record: {error}"
    return "" if found.session_id == PROBES and found.verdict == "deny" else f"{named[1]} is another call"
