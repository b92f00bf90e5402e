"""The behaviour suite's cases through each door: how a case is made a call there, and what is heard."""

import contextlib
import json
import os
import subprocess
import sys

from checkrein import Denied, Gate, Suspended
from checkrein.agents import Agents
from checkrein.authority.phase import switch
from checkrein.doors.hooks.door import HookDoor
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer
from checkrein.wire import Request
from doors.hooks.agent import Believed, Line
from doors.library.behaviour import Heard, expected, project_for, seed_trust, write_settings
from patience import PATIENCE

# A program that makes every call it is told to through the user's server.
PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from doors.library.rooms import through_gate
from checkrein import Gate
for line in sys.stdin:
    case = json.loads(line)
    gate = Gate(server=True, project=case["project"], cwd=case["project"], phase=case["phase"], asks="raise")
    print(json.dumps(through_gate(gate, case["tool"], case["arguments"])), flush=True)
"""


# What the record says of a call, whoever brought it to the gate.
SAME = (
    "tool_name tool_input server domain domains risk_category complexity trust_score_before autonomy_score "
    "decision verdict stage rule reasons door agent user argument_hash"
).split()


def through_gate(gate, tool, arguments):
    """(word, stage or entry, ran) of one call, as a program sees it."""
    ran = []
    try:
        gate.call(gate.spec(tool, server=None), arguments, ran.append)
    except Denied as denied:
        return "deny", denied.verdict.stage, bool(ran)
    except Suspended as suspended:
        return "ask", suspended.pending.verdict.stage, bool(ran)
    return "allow", "", bool(ran)


def recorded(store):
    return next(iter(entries(store, Filter(), 1)))


def gate_in(folder, **options):
    """A gate in a project of its own, where nobody waits for a person."""
    return Gate(folder / "gate", **{"project": folder, "session": "s", "asks": "raise", **options})


def entries_of(gate):
    """Everything on its record, the oldest first."""
    gate.flush()
    return list(entries(gate.authority.pipeline.store, Filter()))[::-1]


@contextlib.contextmanager
def gate_for(case, folder):
    """The gate a case is about."""
    project = project_for(case, folder)
    write_settings(case)
    with gate_in(folder, project=project, cwd=project, phase=case.phase, session="") as gate:
        seed_trust(case, gate.authority.pipeline.store, project)
        yield gate


def heard_at(gate, word, ran):
    """What was heard of the call a case makes, and its entry."""
    gate.flush()
    entry = recorded(gate.authority.pipeline.store)
    assert entry.verdict == word
    return Heard(word, entry.stage, ran), entry


def check_adapter(case, heard, entry, folder):
    """What a framework's agent hears and what is recorded is as at the bare gate."""
    assert heard == expected(case), entry.reasons
    bare, same = embedded(case, folder)
    assert heard == bare and entry.result == {"allow": "success", "deny": "denied"}.get(case.word, "unknown")
    for name in SAME:
        assert getattr(entry, name) == getattr(same, name), name


def embedded(case, folder):
    with gate_for(case, folder) as gate:
        word, stage, ran = through_gate(gate, case.tool, case.arguments)
        entry = recorded(gate.authority.pipeline.store)
        assert entry.verdict == word and entry.door == "library" and stage in ("", entry.stage)
        return Heard(word, entry.stage, ran), entry


class RemoteRoom:
    """One server and one program for all cases."""

    def __init__(self, serving):
        self.serving = serving
        paths = [each for each in sys.path if each]
        self.program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(paths)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, case, project):
        write_settings(case)
        told = {
            "tool": case.tool,
            "arguments": case.arguments,
            "project": project,
            "phase": case.phase,
        }
        self.program.stdin.write(json.dumps(told) + "\n")
        self.program.stdin.flush()
        word, stage, ran = json.loads(self.program.stdout.readline())
        data = self.serving.records("decided")[-1]["data"]
        assert data["verdict"] == word and data["door"] == "library" and stage in ("", data["stage"])
        return Heard(word, data["stage"], ran), data

    def close(self):
        self.program.stdin.close()
        self.program.wait(PATIENCE)
        self.program.stdout.close()


def hooks(case, folder, pipeline):
    """As Claude Code's hook, with a person before the agent."""
    project = project_for(case, folder)
    write_settings(case)
    seed_trust(case, pipeline.store, project, pipeline.clock())
    door = HookDoor(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), Believed())
    if case.phase in ("planning", "building", "auditing"):
        switch(pipeline, case.phase, "ada", "test", project=project)
    body = {
        "session_id": f"s-{case.id}",
        "cwd": project,
        "hook_event_name": "PreToolUse",
        "tool_name": case.tool,
        "tool_input": case.arguments,
        "tool_use_id": "t1",
    }
    facts = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}
    request = Request("0.1.0", ("hook", "claude-code", "gate", "30"), facts, json.dumps(body).encode())
    reply = door.handle(request, Peer(os.getpid(), os.geteuid()), Line())
    said = json.loads(reply.stdout)["hookSpecificOutput"]["permissionDecision"]
    entry = recorded(pipeline.store)
    assert entry.verdict == said and entry.door == "hooks"
    return Heard(said, entry.stage, said == "allow"), entry


async def gateway(case, house):
    """As an MCP client's call; its person says no to whatever is asked, so that an ask never runs."""
    write_settings(case)
    guest = await house.guest(answers={"elicitation/create": {"action": "decline"}})
    seed_trust(case, house.pipeline.store, "default", house.pipeline.clock())
    before = len(house.ran(case.name))
    await guest.call(f"{case.server}__{case.name}", case.arguments)
    entry = await house.last()
    asked = "ask" if guest.asked else None
    assert entry.door == "gateway" and (asked or entry.verdict) == entry.verdict
    return Heard(entry.verdict, entry.stage, len(house.ran(case.name)) > before), entry
