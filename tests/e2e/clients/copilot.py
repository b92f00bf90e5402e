"""Copilot CLI, the real one, headless (`copilot -p`), against a scripted model of the user's own."""

import json

from e2e.clients.agent import DEMO_COMMAND, Agent, Used
from e2e.clients.messages import Messages, text_of


class Provider(Messages):
    def used(self):
        """Every call the model made, oldest first, and what it was told."""
        told = self.results()
        calls = {}
        for request in self.requests:
            for message in request.get("messages") or ():
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block.get("type") == "tool_use":
                        calls[block["id"]] = block
        return [
            Used(each["name"], each["input"], text_of(told[number]["content"]) if number in told else None)
            for number, each in calls.items()
        ]


class Copilot(Agent):
    agent, package, binary = "copilot-cli", "@github/copilot", "copilot"
    model = Provider

    @property
    def home(self):
        return self.house.home / ".copilot"

    def settle_in(self):
        self.home.mkdir()
        trusted = {"trusted_folders": [str(self.house.project)]}
        (self.home / "config.json").write_text(json.dumps(trusted))
        command, *args = DEMO_COMMAND
        server = {"type": "local", "command": command, "args": args, "tools": ["*"]}
        (self.home / "mcp-config.json").write_text(json.dumps({"mcpServers": {"demo": server}}))

    def words(self, prompt, url):
        # It asks nothing itself, so that whatever is stopped is stopped by us.
        return ["-p", prompt, "--disable-client-telemetry", "--allow-all-tools"]

    def environment(self, url):
        return {
            "COPILOT_PROVIDER_BASE_URL": url,
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "NO_PROXY": "127.0.0.1,localhost",
            "SHELL": "/bin/bash",
        }

    def shell(self, command):
        return {"name": "bash", "input": {"command": command, "description": "a step"}}

    def write(self, path, content):
        return {"name": "create", "input": {"path": str(path), "file_text": content}}

    def demo(self, tool, **given):
        return {"name": f"demo-{tool}", "input": given}
