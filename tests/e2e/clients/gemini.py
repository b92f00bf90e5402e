"""Gemini CLI, the real one, headless (`gemini -p`), against a scripted model that speaks its wire format."""

import json

from e2e.clients.agent import DEMO_COMMAND, Agent, Used
from e2e.clients.model import Model

# Answers what Gemini CLI asks its model about besides the conversation: who speaks next, which model to take.
SIDE = {
    "next_speaker": "user",
    "reasoning": "so it is",
    "model_choice": "flash",
    "complexity_score": 1,
    "complexity_reasoning": "so it is",
}
USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


class GenerateContent(Model):
    def get(self, path):
        return 200, {}

    def post(self, path, body):
        if "countTokens" in path:
            return 200, "application/json", b'{"totalTokens": 10}'
        self.requests.append(body)
        said = sum(_calls(each) != [] for each in body.get("contents") or () if each.get("role") == "model")
        turn = self.pick("", said) if body.get("tools") else {"text": json.dumps(SIDE)}
        answer = json.dumps(_answer(turn))
        if "streamGenerateContent" in path:
            return 200, "text/event-stream", f"data: {answer}\r\n\r\n".encode()
        return 200, "application/json", answer.encode()

    def used(self):
        """Every call the model made, oldest first, and what it was told; the longest history has them all."""
        longest = max((each.get("contents") or [] for each in self.requests), key=len, default=[])
        found = []
        for index, content in enumerate(longest):
            after = longest[index + 1] if index + 1 < len(longest) else {}
            told = [each["functionResponse"]["response"] for each in _parts(after, "functionResponse")]
            for number, call in enumerate(_calls(content)):
                answer = json.dumps(told[number], ensure_ascii=False) if number < len(told) else None
                found.append(Used(call["name"], call["args"], answer))
        return found


def _parts(content, kind):
    return [each for each in content.get("parts") or () if kind in each]


def _calls(content):
    return [each["functionCall"] for each in _parts(content, "functionCall")]


def _answer(turn):
    parts = [{"text": turn.get("text") or "ok"}]
    parts += [
        {"functionCall": {"name": each["name"], "args": each["input"]}} for each in turn.get("tools", ())
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "fake"}


class Gemini(Agent):
    agent, package, binary = "gemini-cli", "@google/gemini-cli", "gemini"
    model = GenerateContent
    # `yolo`: it asks nothing itself, so that whatever is stopped is stopped by us.
    mode = "yolo"

    @property
    def home(self):
        return self.house.home / ".gemini"

    def settle_in(self):
        self.home.mkdir()
        command, *args = DEMO_COMMAND
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False},
            "mcpServers": {"demo": {"command": command, "args": args}},
        }
        (self.home / "settings.json").write_text(json.dumps(settings, indent=2))
        trusted = {str(self.house.project): "TRUST_FOLDER"}
        (self.home / "trustedFolders.json").write_text(json.dumps(trusted))

    def words(self, prompt, url):
        return [
            "-p",
            prompt,
            "--output-format",
            "stream-json",
            "--approval-mode",
            self.mode,
            "-m",
            "gemini-2.5-flash",
        ]

    def environment(self, url):
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def shell(self, command):
        return {"name": "run_shell_command", "input": {"command": command, "description": "a step"}}

    def write(self, path, content):
        return {"name": "write_file", "input": {"file_path": str(path), "content": content}}

    def demo(self, tool, **given):
        return {"name": f"mcp_demo_{tool}", "input": given}
