"""Writes our hooks and phase commands as a Claude Code plugin: for people who do not want settings edited."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from checkrein import __version__
from checkrein.doors.hooks import files
from checkrein.doors.hooks.install import SKILLS
from checkrein.doors.hooks.presence import default_command, loosely
from checkrein.doors.hooks.registrations import PHASES, CommandFor, entries
from checkrein.errors import InputError

NAME = "checkrein"
MANIFEST = ".claude-plugin/plugin.json"
SUMMARY = "Judges every tool call before it runs: allow, ask a person, or refuse, with the reason."
LICENSE = """\
MIT License

Copyright (c) 2026 The Checkrein authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
README = """\
# Checkrein for Claude Code

Every tool call Claude Code wants to make is shown to Checkrein first. Checkrein lets it run, asks you, or
refuses it, and says why. What it decided is kept in a record you can read with `checkrein audit`.

## Use

    claude --plugin-dir {folder}

Switch the phase with `/checkrein:planning`, `/checkrein:building` or `/checkrein:auditing`. Only you can do
that: the model cannot call these commands itself.

## Good to know

- This folder was written for this computer by `checkrein`: its hooks name programs here. Write it again on
  another computer, and after Checkrein has moved.
- If Checkrein cannot be reached, calls are refused rather than let through.
- Use either this plugin or `checkrein install`, not both: every call would be judged twice.
"""


def write_plugin(folder: Path, *, command: CommandFor | None = None, wait: int = 300) -> tuple[Path, ...]:
    """Write the plugin, over an earlier one of ours if there is one; the files written."""
    if folder.exists() and not _may_write(folder):
        raise InputError(f"{folder} holds something else.", remedy="Name a new or empty folder.")
    hooks = {
        event: [entry] for event, entry in entries("claude-code", command or default_command(), wait).items()
    }
    texts = {
        MANIFEST: _shown(
            {
                "name": NAME,
                "version": __version__,
                "description": SUMMARY,
                "author": {"name": "The Checkrein authors"},
                "license": "MIT",
            }
        ),
        "hooks/hooks.json": _shown({"description": SUMMARY, "hooks": hooks}),
        **{f"skills/{phase}/SKILL.md": _skill(phase) for phase in PHASES},
        "README.md": README.format(folder=shlex.quote(str(folder.absolute()))),
        "LICENSE": LICENSE,
    }
    try:
        for name, text in texts.items():
            files.write(folder / name, text, 0o644)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}.", remedy="Name a folder you can write.") from error
    return tuple(folder / name for name in texts)


def _may_write(folder: Path) -> bool:
    return folder.is_dir() and (not any(folder.iterdir()) or loosely(folder / MANIFEST).get("name") == NAME)


def _skill(phase: str) -> str:
    """A plugin's commands carry its name."""
    text = (SKILLS / phase / "SKILL.md").read_text(encoding="utf-8")
    return text.replace("`/", f"`/{NAME}:")


def _shown(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
