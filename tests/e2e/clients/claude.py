"""Claude Code, the real one: headless (`-p`) or in a terminal, against a scripted model."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.clients import npm, processes
from e2e.clients.messages import Messages, text_of
from e2e.clients.terminal import Terminal

PACKAGE = "@anthropic-ai/claude-code"
# Asking in the terminal is not Claude Code's default there.
MANUAL = ("--permission-mode", "default")
AUTO = ("--permission-mode", "auto")
_QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
    "CLAUDE_CODE_MAX_RETRIES",
)


def bash(command, **more):
    return {"name": "Bash", "input": {"command": command, "description": "a step", **more}}


def write(path, content):
    return {"name": "Write", "input": {"file_path": str(path), "content": content}}


def read(path):
    return {"name": "Read", "input": {"file_path": str(path)}}


def edit(path, old, new):
    return {"name": "Edit", "input": {"file_path": str(path), "old_string": old, "new_string": new}}


def turns(*tools):
    """A script: one tool call per turn; a list is a turn with several, anything else is a turn already."""
    return [_turn(each) for each in tools]


def _turn(each):
    if isinstance(each, list):
        return {"tools": each}
    return {"tools": [each]} if isinstance(each, dict) and "name" in each else each


class Ran:
    """What came of a run, as the agent and its model saw it."""

    def __init__(self, done, model):
        self.code, self.stderr, self.requests = done.returncode, done.stderr, model.requests
        self.messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        told = model.results()
        self.tools = [
            Used(block, told.get(block["id"]), message.get("parent_tool_use_id"))
            for message in self.messages
            if message.get("type") == "assistant"
            for block in message["message"]["content"]
            if block.get("type") == "tool_use"
        ]

    def __getitem__(self, index):
        return self.tools[index]

    @property
    def session(self):
        return next(each["session_id"] for each in self.messages if "session_id" in each)

    @property
    def denials(self):
        ended = next(each for each in self.messages if each.get("type") == "result")
        return [each["tool_use_id"] for each in ended["permission_denials"]]


class Used:
    """One tool call and what the model was told came of it."""

    def __init__(self, block, told, parent):
        self.id, self.name, self.input, self.parent = block["id"], block["name"], block["input"], parent
        self.answered = told is not None
        self.failed = bool(told and told.get("is_error"))
        self.told = text_of(told["content"]) if told else ""


class Claude:
    """The client in one house."""

    agent = "claude-code"

    def __init__(self, house):
        self.house = house
        self.program = npm.program(PACKAGE, "claude")
        self._hands = ThreadPoolExecutor(1)

    def run(self, *tools, prompt="MAIN go", mode=None, agents=None, args=(), env=None, seconds=60.0, wrap=()):
        """Headless, to the end of the script."""
        with Messages(turns(*tools), agents) as model:
            words = [self.program, "-p", prompt, "--output-format", "stream-json", "--verbose", *args]
            words += ["--permission-mode", mode] if mode else []
            done = processes.run(
                [*wrap, *words],
                env=self._environment(model.url) | (env or {}),
                cwd=self.house.project,
                uid=self.house.uid,
                seconds=seconds,
            )
            return Ran(done, model)

    def begin(self, *tools, **extra):
        """The same in the background; ask the future for what came of it."""
        return self._hands.submit(self.run, *tools, **extra)

    def sit(self, *tools, prompt="MAIN go", args=MANUAL):
        """In a terminal, with a person before it: (terminal, model) as context managers."""
        self._settle_in()
        return Sitting(self, Messages(turns(*tools)), [self.program, *args, prompt])

    def _environment(self, url):
        home = self.house.home
        return self.house.environment | {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
            "NO_PROXY": "127.0.0.1,localhost",
            "SHELL": "/bin/bash",
            # Its classifier is asked on Anthropic's own address only, unless told otherwise.
            "CLAUDE_CODE_AUTO_MODE_SERVER": "1",
            **dict.fromkeys(_QUIET, "1"),
        }

    def _settle_in(self):
        """Past the questions of a first start: theme, key, whether the folder is trusted."""
        path = self.house.home / ".claude" / ".claude.json"
        path.parent.mkdir(exist_ok=True)
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 5,
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {str(self.house.project): known},
        }
        path.write_text(json.dumps(settings))


class Sitting(Terminal):
    """A terminal with Claude Code in it, and the model it talks to."""

    def __init__(self, claude, model, words):
        self.model = model.__enter__()
        house = claude.house
        super().__init__(words, env=claude._environment(self.model.url), cwd=house.project, uid=house.uid)

    def __exit__(self, *problem):
        super().__exit__(*problem)
        self.model.__exit__(*problem)

    def told(self):
        """What the model was told came of its calls, oldest first."""
        return [text_of(each["content"]) for each in self.model.results().values()]


def settings_of(project):
    return Path(project) / ".claude" / "settings.json"
