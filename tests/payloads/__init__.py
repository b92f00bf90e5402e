"""What real clients sent: Claude Code 2.1.325, Codex 0.166.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102.

One folder per agent; what follows a dot in its name is a second spelling (two names may differ only in case).
"""

from pathlib import Path

_HERE = Path(__file__).parent


def agent_of(path: Path) -> str:
    return path.parent.name.partition(".")[0]


# The input of a status line is no event, and is read by nothing that reads events.
ALL = sorted(path for path in _HERE.glob("*/*.json") if not path.stem.startswith("_"))


def payload(name: str) -> bytes:
    """`claude-code/PreToolUse.Bash` as bytes."""
    return (_HERE / f"{name}.json").read_bytes()
