"""Codex, the real one, headless (`codex exec`), against a scripted model that speaks Responses."""

import json
import uuid

from e2e.clients.agent import DEMO_COMMAND, Agent, Used
from e2e.clients.model import Model

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
# Until a person trusts them in its own screen, Codex skips hooks without a word.
TRUSTING = "--dangerously-bypass-hook-trust"


class Responses(Model):
    """The Responses wire format."""

    def get(self, path):
        return 200, {"object": "list", "data": [], "models": []}

    def post(self, path, body):
        self.requests.append(body)
        items = body.get("input") or []
        said = sum(each.get("type") == "message" and each.get("role") == "assistant" for each in items)
        return 200, "text/event-stream", b"".join(_events(self.pick("", said)))

    def used(self):
        """Every call the model made, oldest first, and what it was told."""
        items = [each for request in self.requests for each in request.get("input") or ()]
        told = {each["call_id"]: each["output"] for each in items if each["type"].endswith("_call_output")}
        calls = {each["call_id"]: each for each in items if each["type"].endswith("_call")}
        return [
            Used(each["name"], each.get("arguments", each.get("input")), _text(told.get(number)))
            for number, each in calls.items()
        ]


def _text(output):
    if isinstance(output, list):
        return "\n".join(each.get("text", "") for each in output)
    return output


def _events(turn):
    number = f"resp_{uuid.uuid4().hex[:12]}"
    said = {"type": "output_text", "text": turn.get("text") or "ok"}
    items = [{"type": "message", "role": "assistant", "id": "msg_1", "content": [said]}]
    items += [_item(each) for each in turn.get("tools", ())]
    yield _event("response.created", response={"id": number})
    for index, item in enumerate(items):
        yield _event("response.output_item.done", output_index=index, item=item)
    yield _event("response.completed", response={"id": number, "usage": USAGE})


def _item(call):
    head = {"call_id": f"call_{uuid.uuid4().hex[:12]}", "name": call["name"]}
    if isinstance(call["input"], str):
        return {"type": "custom_tool_call", **head, "input": call["input"]}
    server = {"namespace": call["server"]} if "server" in call else {}
    return {"type": "function_call", **head, **server, "arguments": json.dumps(call["input"])}


def _event(kind, **data):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


class Codex(Agent):
    agent, package, binary = "codex", "@openai/codex", "codex"
    model = Responses
    # It tells its hooks nothing about how a command ended.
    failed = succeeded = "unknown"
    writes = "apply_patch"
    trusting = (TRUSTING,)

    @property
    def home(self):
        return self.house.home / ".codex"

    def settle_in(self):
        self.home.mkdir()
        command, *args = DEMO_COMMAND
        (self.home / "config.toml").write_text(
            "[features]\nunified_exec_tty = false\n"
            f'[projects."{self.house.project}"]\ntrust_level = "trusted"\n'
            f"[mcp_servers.demo]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
        )

    def words(self, prompt, url):
        return [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            *self.provider(url),
            *self.trusting,
            prompt,
        ]

    def provider(self, url):
        """On the command line, so that its settings file stays a person's own."""
        fake = {
            "name": "fake",
            "base_url": f"{url}/v1",
            "wire_api": "responses",
            "env_key": "FAKE_KEY",
        }
        given = {f"model_providers.fake.{name}": json.dumps(value) for name, value in fake.items()}
        given |= {
            "model": '"gpt-5.5"',
            "model_provider": '"fake"',
            "model_providers.fake.request_max_retries": "0",
            "model_providers.fake.stream_max_retries": "0",
            "analytics.enabled": "false",
            "features.enable_request_compression": "false",
        }
        return [word for name, value in given.items() for word in ("-c", f"{name}={value}")]

    def environment(self, url):
        return {"FAKE_KEY": "dummy", "NO_PROXY": "127.0.0.1,localhost"}

    def shell(self, command):
        return {"name": "exec_command", "input": {"cmd": command}}

    def write(self, path, content):
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
        return {"name": "apply_patch", "input": patch}

    def demo(self, tool, **given):
        return {"name": tool, "server": "mcp__demo", "input": given}
