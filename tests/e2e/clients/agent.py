"""What Codex, Gemini CLI and Copilot CLI have in common when a test drives them headless."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from e2e.clients import npm, processes
from e2e.clients.terminal import Terminal

DEMO = Path(__file__).with_name("demo.py")
# The tiny MCP server, as agents are told to start it.
DEMO_COMMAND = [sys.executable, "-I", "-S", str(DEMO)]


class Used:
    """One tool call of the model and what it was told came of it; nothing when the agent never said."""

    def __init__(self, name, given, told):
        self.name, self.input, self.answered, self.told = name, given, told is not None, told or ""


class Ran:
    """What came of a run."""

    def __init__(self, done, model):
        self.code, self.stdout, self.stderr, self.requests = (
            done.returncode,
            done.stdout,
            done.stderr,
            model.requests,
        )
        self.tools = model.used()

    def __getitem__(self, index):
        return self.tools[index]

    @property
    def told(self):
        return [used.told for used in self.tools]


def turns(calls):
    """A script: one tool call per turn; a list is a turn with several, anything else is a turn already."""
    return [_turn(each) for each in calls]


def _turn(each):
    if isinstance(each, list):
        return {"tools": each}
    return {"tools": [each]} if isinstance(each, dict) and "name" in each else each


class Agent:
    """A client in one house. A subclass says how it is started and what it calls its tools."""

    agent = package = binary = ""
    model = None
    # What a shell command that failed, and one that did not, comes to in the record.
    failed, succeeded = "failure", "success"
    # What the record calls the tool that writes a file.
    writes = "Write"

    def __init__(self, house):
        self.house = house
        self.program = npm.program(self.package, self.binary)
        self._hands = ThreadPoolExecutor(2)
        self.settle_in()

    def settle_in(self):
        """What a person has answered before: folders they trust, MCP servers they use."""

    def words(self, prompt):
        """The command line of a headless run."""
        raise NotImplementedError

    def environment(self, url):
        raise NotImplementedError

    def run(self, *calls, prompt="go", seconds=60.0, env=None, args=()):
        """Headless, to the end of the script."""
        with self.model(turns(calls)) as model:
            done = processes.run(
                [self.program, *self.words(prompt, model.url), *args],
                env=self.house.environment | self.environment(model.url) | (env or {}),
                cwd=self.house.project,
                seconds=seconds,
            )
            return Ran(done, model)

    def begin(self, *calls, **extra):
        """The same in the background; ask the future for what came of it."""
        return self._hands.submit(self.run, *calls, **extra)


class Sitting(Terminal):
    """A terminal with the agent in it, a person before it, and the model it talks to."""

    def __init__(self, agent, calls, words):
        self.model = agent.model(turns(calls)).__enter__()
        house = agent.house
        env = house.environment | agent.environment(self.model.url)
        super().__init__([agent.program, *words], env=env, cwd=house.project)

    def __exit__(self, *problem):
        super().__exit__(*problem)
        self.model.__exit__(*problem)

    def told(self):
        """What the model was told came of its calls, oldest first."""
        return [used.told for used in self.model.used() if used.answered]
