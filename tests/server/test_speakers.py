"""Only an agent's own hook speaks for it: a real server, the real client, and an agent that is an adversary.

Each forged event is one that the honest hook's event beside it shows to have an effect.
"""

import json
import shlex
import shutil
import subprocess
import sys

import pytest

from agent_process import AgentProcess
from checkrein.hookclient import client, client_command
from checkrein.runtime import door_file, spool_dir
from checkrein.settings.sources import state_dir
from checkrein.speakers import RegisteredClients
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import trust_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def claude(building, project, tmp_path):
    made = Claude(building, project, tmp_path)
    yield made
    made.process.end()


class Claude:
    """An agent with our hooks, whose tools are hostile."""

    def __init__(self, serving, project, folder):
        self.serving, self.project, self.folder = serving, project, folder
        # A person sits before it, and sees its dialog.
        self.process = AgentProcess(project, CLAUDE_CODE_SESSION_ATTENDED="1")
        self.tell = client_command(door_file(), "claude-code", "tell", 15)
        self.gate = client_command(door_file(), "claude-code", "gate", 60)
        self.number = 0

    def event(self, name, **more):
        return {"session_id": "s-1", "cwd": self.project, "hook_event_name": name} | more

    def payload(self, name, command="pytest", call="t1", **more):
        about = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": call}
        return self.event(name, **about, **more)

    def hook(self, line, payload):
        return self.process.run(line, json.dumps(payload).encode())

    def call(self, command="pytest", call="t1"):
        code, out, err = self.hook(self.gate, self.payload("PreToolUse", command, call))
        assert code == 0, err
        return json.loads(out)["hookSpecificOutput"]["permissionDecision"]

    def done(self, command="pytest", call="t1"):
        said = self.payload("PostToolUse", command, call, tool_response={"stdout": "ok"})
        assert self.hook(self.tell, said)[0] == 0

    def runs(self, script, *payloads):
        """What a tool call runs; `{report}` is a file with a forged payload, `{line}` our own line."""
        paths = []
        for payload in payloads:
            self.number += 1
            path = self.folder / f"forged-{self.number}.json"
            path.write_text(json.dumps(payload))
            paths.append(str(path))
        names = {"report": paths[0] if paths else "", "line": self.tell, "folder": str(self.folder)}
        for name, value in names.items():
            script = script.replace(f"{{{name}}}", value)
        return self.process.run(script, tool=True, output=str(self.folder / f"output-{self.number}"))

    def successes(self):
        store = SqliteStore.open(state_dir(), read_only=True)
        try:
            return trust_of(store, self.project).get("test_run", {}).get("successes", 0)
        finally:
            store.close()

    def finished(self):
        return len(self.serving.records("finished"))


def test_an_honest_hook_is_heard(claude):
    assert claude.call() == "allow"
    claude.done()
    assert (claude.finished(), claude.successes()) == (1, 1)
    assert claude.serving.records("request_refused") == []


PYTHON = shlex.quote(sys.executable)
LOOSE = "import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
ROUTES = {
    "a child": "{line} < {report}",
    "exec": "exec {line} < {report}",
    "a here-string": 'exec {line} <<< "$(cat {report})"',
    "a pipe": "cat {report} | {line}",
    "a substituted process": "exec {line} < <(cat {report})",
    "a fifo": "mkfifo {folder}/fifo; cat {report} > {folder}/fifo & exec {line} < {folder}/fifo",
    "one shell": "exec sh -c {quoted} < {report}",
    "two shells": "sh -c {quoted} < {report}; true",
    "a coprocess": 'coproc cat {report}; exec {line} <&"${COPROC[0]}"',
    "a cleared environment": "exec env -i {line} < {report}",
    "an orphan": f'{PYTHON} -S -c \'{LOOSE}os.execv("/bin/sh", ["sh", "-c", "{{line}} < {{report}}"])\'; '
    "sleep 0.5",
    "a socket pair of its own": f"{PYTHON} -S {{folder}}/pair.py {{report}} {{line}}",
    "its own output as input": "exec {line} 0<&1",
    "another program's name": "cp {program} {folder}/checkrein-hook; "
    "exec {folder}/checkrein-hook {rest} < {report}",
}
PAIR = """
import os, socket, sys
ours, theirs = socket.socketpair()
ours.sendall(open(sys.argv[1], "rb").read())
ours.shutdown(socket.SHUT_WR)
out, read = socket.socketpair()
os.dup2(theirs.fileno(), 0)
os.dup2(out.fileno(), 1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.invariant("an event counts only if the agent alone wrote it and alone reads the answer")
@pytest.mark.invariant("what the agent runs does not speak for the agent")
def test_no_forged_report_earns_anything(claude):
    if shutil.which("bash") is None:
        pytest.skip("these routes are written for bash")
    (claude.folder / "pair.py").write_text(PAIR)
    program, *rest = shlex.split(claude.tell)
    for number, (route, script) in enumerate(ROUTES.items()):
        call = f"t{number}"
        assert claude.call(call=call) == "allow"
        forging = script.replace("{quoted}", shlex.quote(claude.tell))
        forging = forging.replace("{program}", program).replace("{rest}", shlex.join(rest))
        claude.runs(forging, claude.payload("PostToolUse", call=call, tool_response={"stdout": "ok"}))
        assert (claude.finished(), claude.successes()) == (number, number), route
        # The honest report still counts.
        claude.done(call=call)
        assert (claude.finished(), claude.successes()) == (number + 1, number + 1), route


SPEAKS_FOR_ITSELF = """
import json, socket, sys
door, report = open(sys.argv[1]).read().split("\\n"), open(sys.argv[2], "rb").read()
connection = socket.socket(socket.AF_UNIX)
connection.connect(door[1])
request = b"checkrein 1 0.1.0\\nhook claude-code tell 15\\nSTREAMS=1\\n\\n" + report
connection.sendall(len(request).to_bytes(4, "big") + request)
while (length := int.from_bytes(connection.recv(4), "big")) == 1:
    connection.recv(1)
    socket.send_fds(connection, [b"."], [0, 1])
"""


@pytest.mark.invariant("what the agent runs does not speak for the agent")
def test_another_program_in_a_hooks_place_is_not_heard(claude):
    """Somebody else's hook has the agent's own streams, and may say what it likes."""
    assert claude.call() == "allow"
    program, report = claude.folder / "speaks.py", claude.folder / "report.json"
    program.write_text(SPEAKS_FOR_ITSELF)
    report.write_text(json.dumps(claude.payload("PostToolUse", tool_response={"stdout": "ok"})))
    line = shlex.join([sys.executable, "-S", str(program), str(door_file()), str(report)])
    code, _, stderr = claude.process.run(line)
    assert code == 0, stderr
    assert (claude.finished(), claude.successes()) == (0, 0)
    assert claude.serving.records("request_refused")


def test_no_forged_prompt_stop_or_end_of_a_session_has_an_effect(claude):
    claude.call()
    typed = claude.event("UserPromptExpansion", command_name="auditing", prompt="/auditing")
    line = f"exec {client_command(door_file(), 'claude-code', 'gate', 60).removesuffix(' || exit 2')}"
    code, out, _ = claude.runs(f"{line} < {{report}}", typed)
    assert code == 2, out
    for name in ("Stop", "SessionEnd"):
        claude.runs("exec {line} < {report}", claude.event(name))
    refused = {body["data"]["request"] for body in claude.serving.records("request_refused")}
    assert refused == {"phase.set", "stop", "session end"}
    assert not claude.serving.records("session_ended")
    assert claude.serving.ask("phase.show", project=claude.project, session="s-1")["phase"] == "building"


def test_an_honest_phase_command_and_end_of_a_session_count(claude):
    claude.call()
    typed = claude.event("UserPromptExpansion", command_name="auditing", prompt="/auditing")
    assert claude.hook(claude.gate, typed)[0] == 0
    assert claude.serving.ask("phase.show", project=claude.project, session="s-1")["phase"] == "auditing"
    assert claude.hook(claude.tell, claude.event("SessionEnd", reason="exit"))[0] == 0
    assert claude.serving.records("session_ended")


@pytest.mark.invariant("a report that comes late, from a file, earns no trust")
@pytest.mark.invariant("what comes from the spool ends a call that is on the record, and nothing else")
def test_a_report_in_the_spool_ends_its_call_and_earns_nothing(claude):
    assert claude.call() == "allow"
    assert claude.call("make release", "t2") == "ask"
    head = b"checkrein 1 0.1.0\nhook claude-code tell 5\n\n"
    said = [
        claude.payload("PostToolUse", tool_response={"stdout": "ok"}),
        claude.payload("PostToolUse", "make release", "t2", tool_response={"stdout": "ok"}),
        claude.event("SessionEnd", reason="exit"),
        claude.event("UserPromptExpansion", command_name="auditing", prompt="/auditing"),
    ]
    for number, each in enumerate(said):
        part = spool_dir() / f"{number}.000000000-1.part"
        part.write_bytes(head + json.dumps(each).encode())
        part.rename(part.with_suffix(""))
    # The next server takes in the spool before it answers.
    claude.serving.kill()
    claude.serving.start()
    claude.serving.ask("server.about")
    assert (claude.finished(), claude.successes()) == (1, 0)
    assert not claude.serving.records("session_ended")
    assert not [each for each in claude.serving.records("answered") if each["data"]["answer"] == "approved"]


def test_the_python_client_is_heard_once_it_is_registered(claude):
    words = [sys.executable, "-I", "-S", client.__file__]
    words += [str(door_file()), "claude-code", "tell", "15"]
    assert claude.call() == "allow"
    claude.tell = shlex.join(words)
    claude.done()
    assert claude.finished() == 0
    RegisteredClients(state_dir()).register(words[:4])
    claude.done()
    assert (claude.finished(), claude.successes()) == (1, 1)


def test_a_client_that_was_replaced_by_an_upgrade_is_still_known(tmp_path):
    program, clients = tmp_path / "checkrein-hook", RegisteredClients(tmp_path)
    shutil.copy(shutil.which("sleep"), program)
    clients.register([str(program)])
    running = subprocess.Popen([str(program), "600"])
    try:
        assert clients.runs(running.pid, [str(program)])
        program.unlink()
        shutil.copy(shutil.which("cat"), program)
        assert clients.runs(running.pid, [str(program)])
        other = subprocess.Popen([str(program)], stdin=subprocess.PIPE)
        try:
            assert not clients.runs(other.pid, [str(program)])
            clients.register([str(program)])
            assert clients.runs(other.pid, [str(program)])
        finally:
            other.communicate()
    finally:
        running.kill()
        running.wait()
