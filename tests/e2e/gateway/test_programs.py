"""Programs other people wrote: the reference servers behind us, the inspector and Claude Code before us."""

import json

import pytest

from e2e.clients import processes
from e2e.clients.claude import Claude
from e2e.clients.house import BIN
from e2e.gateway import parts
from e2e.gateway.gate import Gate

pytestmark = pytest.mark.timeout(240)
OURS = "@modelcontextprotocol"


@pytest.fixture(scope="module")
def gate():
    reference = parts.program("servers", script=f"{OURS}/server-everything/dist/index.js")
    files = parts.program("servers", script=f"{OURS}/server-filesystem/dist/index.js")
    with Gate().entered() as made:
        made.add("reference", reference)
        made.add("files", [*files, str(made.project)])
        made.add("guarded", [*files, str(made.project)], allow=False)
        yield made


class Inspector:
    """`mcp-inspector --cli`, started anew for every request."""

    def __init__(self, gate):
        self.gate = gate
        self.words = parts.program("servers", script=f"{OURS}/inspector-cli/build/index.js")

    def ask(self, method, *more, code=0):
        pump = [str(BIN / "checkrein-hook"), str(self.gate.door), "mcp"]
        words = [*self.words, *pump, "--method", method, *more]
        done = processes.run(words, env=self.gate.environment, cwd=self.gate.project)
        assert done.returncode == code, (done.stdout, done.stderr)
        return json.loads(done.stdout) if code == 0 else done.stderr

    def call(self, tool, **arguments):
        given = [f"{key}={value}" for key, value in arguments.items()]
        return self.ask("tools/call", "--tool-name", tool, *(["--tool-arg", *given] if given else []))


@pytest.fixture
def inspector(gate):
    return Inspector(gate)


def test_the_inspector_sees_every_server_s_tools(inspector):
    names = [each["name"] for each in inspector.ask("tools/list")["tools"]]
    assert {"reference__echo", "files__read_text_file", "guarded__read_text_file"} <= set(names)
    assert names == sorted(set(names), key=names.index)


def test_the_inspector_calls_tools_of_the_reference_servers(gate, inspector):
    told = inspector.call("reference__echo", message="hi")
    assert told["content"][0]["text"] == "Echo: hi"
    total = inspector.call("reference__get-sum", a=2, b=3)
    assert "5" in total["content"][0]["text"]
    (gate.project / "notes.txt").write_text("found through the gateway\n")
    read = inspector.call("files__read_text_file", path=gate.project / "notes.txt")
    assert "found through the gateway" in read["content"][0]["text"]


def test_the_inspector_cannot_call_what_nobody_allowed(gate, inspector):
    (gate.project / "kept.txt").write_text("before\n")
    told = inspector.call("guarded__write_file", path=gate.project / "kept.txt", content="after")
    assert told["isError"]
    assert (gate.project / "kept.txt").read_text() == "before\n"


def test_the_inspector_reads_resources_and_prompts(inspector):
    listed = inspector.ask("resources/list")["resources"]
    assert inspector.ask("resources/read", "--uri", listed[0]["uri"])["contents"]
    prompts = [each["name"] for each in inspector.ask("prompts/list")["prompts"]]
    assert "reference__simple-prompt" in prompts
    assert inspector.ask("prompts/get", "--prompt-name", "reference__simple-prompt")["messages"]


def test_claude_code_calls_tools_through_the_gateway(gate):
    claude = Claude(gate)
    pump = {"command": str(BIN / "checkrein-hook"), "args": [str(gate.door), "mcp"], "type": "stdio"}
    settings = gate.home / "mcp.json"
    settings.write_text(json.dumps({"mcpServers": {"checkrein": pump}}))
    (gate.project / "kept.txt").write_text("before\n")
    kept = {"path": str(gate.project / "kept.txt")}
    ran = claude.run(
        {"name": "mcp__checkrein__reference__echo", "input": {"message": "from the agent"}},
        {"name": "mcp__checkrein__files__read_text_file", "input": kept},
        {"name": "mcp__checkrein__guarded__write_file", "input": {**kept, "content": "after"}},
        args=("--mcp-config", str(settings), "--allowedTools", "mcp__checkrein"),
        seconds=120,
    )
    assert "Echo: from the agent" in ran[0].told
    assert "before" in ran[1].told
    assert ran[2].failed or "Checkrein" in ran[2].told
    assert (gate.project / "kept.txt").read_text() == "before\n"
    judged = [each["tool_name"] for each in gate.entries()]
    assert "mcp__reference__echo" in judged and "mcp__guarded__write_file" in judged
    assert gate.verifies()
