"""The agents every behaviour is shown with, besides Claude Code, which has files of its own."""

from e2e.clients.codex import Codex
from e2e.clients.copilot import Copilot
from e2e.clients.gemini import Gemini

AGENTS = {each.agent: each for each in (Codex, Gemini, Copilot)}


def hooks_of(agent, house):
    """The file our hooks were written to."""
    said = house.json("install", agent.agent, "--dry-run")
    assert said["changed"] == [] and not said["diff"]
    (path,) = [each for each in house.project.rglob("*.json") if "checkrein-hook" in each.read_text()]
    return path
