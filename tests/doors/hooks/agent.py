"""A coding agent before the hook door: what it would send, what it hears, and how long it waits."""

import json
import os
import threading
import time

from checkrein.agents import Agents
from checkrein.doors.hooks.door import HookDoor
from checkrein.ledger.query import Filter, entries
from checkrein.peers import Peer
from checkrein.store import records
from checkrein.store.questions import waiting
from checkrein.wire import Request
from patience import PATIENCE, until

ATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "1"}


class Believed:
    """Takes every hook for the agent's own, unless the test says why it is not."""

    why = ""

    def refusal(self, session, peer, words, streams):
        return self.why


class Line:
    """A hook process that waits for as long as the test says."""

    words = ()

    def streams(self):
        return []

    def __init__(self, seconds=PATIENCE):
        self.deadline = time.monotonic() + seconds
        self.open = True

    def still_here(self):
        return self.open


class Agent:
    """What an agent would send, and what it hears."""

    def __init__(self, pipeline, project):
        self.pipeline, self.project = pipeline, project
        self.speaker = Believed()
        self.door = HookDoor(pipeline, Agents(pipeline.store, pipeline.ledger, pipeline.clock), self.speaker)
        self.line = Line()
        self.process = os.getpid()

    def send(self, event, mode="tell", agent="claude-code", facts=None, line=None, **fields):
        body = {"session_id": "s-1", "cwd": self.project, "hook_event_name": event} | fields
        return self.raw(json.dumps(body).encode(), mode, agent, facts, line)

    def raw(self, body, mode="gate", agent="claude-code", facts=None, line=None):
        request = Request("0.1.0", ("hook", agent, mode, "30"), facts or {}, body)
        peer = Peer(self.process, os.geteuid())
        reply = self.door.handle(request, peer, line or self.line)
        stdout = json.loads(reply.stdout) if reply.stdout[:1] == b"{" else reply.stdout.decode()
        return stdout, reply.stderr.decode(), reply.exit_code

    def call(self, command="ls", call="t1", tool="Bash", arguments=None, **more):
        given = {"command": command} if arguments is None else arguments
        return self.send("PreToolUse", "gate", tool_name=tool, tool_input=given, tool_use_id=call, **more)

    def done(self, command="ls", call="t1", tool="Bash", arguments=None, **more):
        given = {"command": command} if arguments is None else arguments
        said = {"tool_response": {"stdout": "ok"}} | more
        return self.send("PostToolUse", tool_name=tool, tool_input=given, tool_use_id=call, **said)

    def failed(self, command="ls", call="t1", **more):
        said = {"error": "Exit code 1", "is_interrupt": False} | more
        given = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call}
        return self.send("PostToolUseFailure", **(given | said))

    def permission(self, command, line=None):
        return self.send(
            "PermissionRequest", "permission", line=line, tool_name="Bash", tool_input={"command": command}
        )

    def entries(self):
        return list(entries(self.pipeline.store, Filter()))[::-1]

    def kinds(self):
        return [row[2] for row in records.after(self.pipeline.store, 0)]


def said(answer):
    return answer[0]["hookSpecificOutput"]["permissionDecision"]


def reason(answer):
    return answer[0]["hookSpecificOutput"]["permissionDecisionReason"]


def later(work, *arguments, **named):
    thread = threading.Thread(target=work, args=arguments, kwargs=named)
    thread.start()
    return thread


def question(agent):
    """The question that waits; where somebody can be reached, once its hook waits too."""
    broker = agent.pipeline.broker

    def asked():
        found = waiting(agent.pipeline.store)
        return found[:1] if found and (not broker.reachable or broker.is_awaited(found[0].entry)) else ()

    return until(asked, failing="no question was asked")[0]
