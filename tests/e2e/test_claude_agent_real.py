"""The Claude Agent SDK with the real Claude Code and a scripted model."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("claude_agent_sdk", reason="the Claude Agent SDK is not installed")

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from checkrein.doors.library.adapters.claude_agent import Approvals
from checkrein.testing import ScriptedGate, edit
from doors.library.adapters.pages import page_of
from doors.library.rooms import gate_in
from e2e.clients.claude import bash, turns, write
from e2e.clients.messages import Messages, text_of
from patience import PATIENCE

ALLOW_BASH = ['rules=[{action="allow",tool="Bash"}]']

QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "CLAUDE_CODE_MAX_RETRIES",
)


def real_options(folder, url, **more):
    """Claude Code with a home of its own, no settings files, and a scripted model."""
    home, project = folder / "home", folder / "app"
    for each in (home / "tmp", project):
        each.mkdir(parents=True, exist_ok=True)
    env = {
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "NO_PROXY": "127.0.0.1,localhost",
        "SHELL": "/bin/bash",
        **dict.fromkeys(QUIET, "1"),
    }
    return ClaudeAgentOptions(cwd=project, env=env, setting_sources=[], **more)


async def ran(approvals, options, prompt="MAIN go"):
    """The whole run; its last message."""
    found = None
    async for message in query(prompt=prompt, options=approvals.options(options)):
        found = message if isinstance(message, ResultMessage) else found
    return found


def heard(model):
    return [(bool(each.get("is_error")), text_of(each["content"])) for each in model.results().values()]


def test_real_calls_are_allowed_asked_refused_edited_and_reported(tmp_path):
    file = tmp_path / "app" / "a.txt"
    script = turns(
        [bash("echo hi"), bash("exit 3")], write(file, "x"), write(tmp_path / "app" / "b.txt", "x")
    )

    async def main(gate, model):
        async with Approvals(gate) as approvals:
            await ran(approvals, real_options(tmp_path, model.url))

    answers = {"Write": [edit(content="edited"), "no: not b"]}
    (tmp_path / "app").mkdir()
    with (
        ScriptedGate(answers, settings=ALLOW_BASH, project=tmp_path / "app") as gate,
        Messages(script) as model,
    ):
        asyncio.run(main(gate, model))
        assert file.read_text() == "edited" and not (tmp_path / "app" / "b.txt").exists()
        said = heard(model)
        assert said[0] == (False, "hi") and said[1][0] and said[3][0] and "not b" in said[3][1]
        assert [each.result for each in gate.entries()] == ["success", "failure", "success", "denied"]


def test_real_tools_of_the_program_are_gated_too(tmp_path):
    done = []

    @tool("book", "Book a room.", {"to": str})
    async def book(given):
        done.append(given["to"])
        return {"content": [{"type": "text", "text": f"booked {given['to']}"}]}

    rooms = create_sdk_mcp_server("rooms", tools=[book])
    calls = [{"name": "mcp__rooms__book", "input": {"to": each}} for each in ("ada", "eve")]

    async def main(gate, model):
        async with Approvals(gate) as approvals:
            await ran(approvals, real_options(tmp_path, model.url, mcp_servers={"rooms": rooms}))

    answers = {"mcp__rooms__book": lambda each: each["arguments"]["to"] == "ada"}
    with ScriptedGate(answers) as gate, Messages(turns(calls)) as model:
        asyncio.run(main(gate, model))
        assert done == ["ada"] and "booked ada" in str(heard(model))
        assert sorted(each.result for each in gate.entries()) == ["denied", "success"]


def test_a_real_hook_that_fails_blocks(tmp_path, monkeypatch):
    def broken(*_args, **_more):
        raise RuntimeError("no store")

    with ScriptedGate(settings=ALLOW_BASH) as gate, Messages(turns(bash("touch ran"))) as model:
        monkeypatch.setattr(gate.authority, "first", broken)
        asyncio.run(ran(Approvals(gate), real_options(tmp_path, model.url)))
        assert not (tmp_path / "app" / "ran").exists() and heard(model)[0][0]


def test_a_real_hook_that_takes_too_long_blocks(tmp_path):
    with (
        gate_in(tmp_path, cwd=tmp_path, asks="wait") as gate,
        Messages(turns(bash("make x; touch ran"))) as model,
    ):
        asyncio.run(ran(Approvals(gate, wait_seconds=1), real_options(tmp_path, model.url)))
        assert not (tmp_path / "app" / "ran").exists() and heard(model)[0][0]
        assert gate.pending() == []


def test_the_pages_examples_run(tmp_path, user_settings, capsys):
    user_settings('[[rules]]\naction = "allow"\ntool = "Bash"\n')
    page, folder = page_of("library-claude-agent.md"), tmp_path / "app"

    def options(url):
        made = real_options(tmp_path, url)
        return {"env": made.env, "setting_sources": []}

    with Messages(turns(bash("touch one"))) as model:
        folder.mkdir()
        asyncio.run(page["work"]("MAIN go", folder, **options(model.url)))
        assert (folder / "one").exists()
    with Messages(turns(*[write(folder / "two", "x")] * 2)) as model:
        session, kept = asyncio.run(page["begin"]("MAIN go", folder, **options(model.url)))
        assert not (folder / "two").exists()
        asyncio.run(page["go_on"](session, kept, folder, **options(model.url)))
        assert (folder / "two").read_text() == "x"
    assert capsys.readouterr().out.count("done") == 2


PROGRAM = """
import asyncio, json, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[4])
from checkrein import Gate
from checkrein.doors.library.adapters.claude_agent import GO_ON, Approvals
from e2e.test_claude_agent_real import ran, real_options

folder, step, url = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

async def main():
    rules = ['rules=[{action="allow",tool="Bash"}]']
    with Gate(folder / "gate", project=folder / "app", session="s", asks="raise", settings=rules) as gate:
        async with Approvals(gate) as approvals:
            if step == "begin":
                result = await ran(approvals, real_options(folder, url))
                (folder / "kept").write_text(json.dumps([result.session_id, approvals.keep()]))
                return
            session, kept = json.loads((folder / "kept").read_text())
            approvals.restore(kept)
            if step == "answer":
                first, second = approvals.waiting
                gate.answer(first, "yes", edited={**first.call.arguments, "content": "edited"})
                gate.answer(second, "no: not b")
                return
            result = await ran(approvals, real_options(folder, url, resume=session), GO_ON)
            print(len(approvals.waiting))

asyncio.run(main())
"""


def test_a_real_run_stops_and_goes_on_in_another_process(tmp_path):
    program, file = tmp_path / "program.py", tmp_path / "app" / "a.txt"
    program.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    (tmp_path / "app").mkdir()
    paths = json.dumps([each for each in sys.path if each])

    def process(step, url):
        words = [sys.executable, program, tmp_path, step, url, paths]
        done = subprocess.run(words, check=False, text=True, capture_output=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    first, second = write(file, "x"), write(tmp_path / "app" / "b.txt", "y")
    again = [first, second]
    script = turns([first, second, bash("echo hi")], again, again, {"text": "done"}, again)
    with Messages(script) as model:
        process("begin", model.url)
        assert not file.exists() and len(model.requests) == 1
        # Nobody has answered: it stops again.
        assert process("go on", model.url) == "2" and not file.exists()
        process("answer", model.url)
        assert process("go on", model.url) == "0" and file.read_text() == "edited"
        file.unlink()
        # The same answers once more.
        assert process("go on", model.url) == "0"
        said = heard(model)
        assert (False, "hi") in said and sum("not b" in text for _, text in said) >= 1
        assert any("Checkrein refused this call" in text for _, text in said)
        assert not file.exists() and not (tmp_path / "app" / "b.txt").exists()
