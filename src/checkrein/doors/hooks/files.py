"""The settings files agents keep their hooks in: where they are, what they may hold, how they are written.

An agent drops every hook of a file it cannot read and says nothing, so each is checked before it is changed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.hooks import jsontext
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.registrations import GROUPED
from checkrein.errors import ConfigError

# Variables that move the folder an agent keeps its own files in, and the folder they stand for.
HOMES = {
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude"),
    "codex": ("CODEX_HOME", "~/.codex"),
    "copilot-cli": ("COPILOT_HOME", "~/.copilot"),
    "gemini-cli": ("GEMINI_CLI_HOME", "~"),
}
NOTHING_WRITTEN = "Nothing was changed. Correct it, then try again."


class Syntax(msgspec.Struct, frozen=True):
    """What an agent's own reader takes; seen on the real programs, strict where nothing is known."""

    types: tuple[str, ...]
    comments: bool = False
    mark: bool = False
    keys: tuple[str, ...] = ()


SYNTAX = {
    "claude-code": Syntax(("command", "http", "mcp_tool", "prompt", "agent"), mark=True),
    "codex": Syntax(("command", "prompt", "agent", "mcp_tool"), keys=("hooks", "description")),
    "gemini-cli": Syntax(("command", "runtime"), comments=True),
    "copilot-cli": Syntax(("command", "http", "prompt")),
    "cursor": Syntax(("command", "prompt")),
}


def agent_home(agent: str) -> Path:
    """The user's folder of the agent."""
    variable, standing = HOMES.get(agent, ("", ""))
    given = os.environ.get(variable, "") if variable else ""
    name = dialect(agent).hooks.user
    if given:
        name = name.replace(standing, given, 1)
    parts = Path(name).expanduser()
    return parts.parent.parent if parts.parent.name == "hooks" else parts.parent


def settings_file(agent: str, scope: str, folder: Path | None = None) -> Path:
    """The file our hooks go to: the user's own, or the one of the project in `folder`."""
    hooks = dialect(agent).hooks
    if scope == "project":
        return Path(folder or Path.cwd()).absolute() / hooks.project
    name = Path(hooks.user)
    home = agent_home(agent)
    return home / "hooks" / name.name if name.parent.name == "hooks" else home / name.name


def text_of(path: Path) -> str | None:
    """The file's text, None when there is none; what is no text in UTF-8 is refused."""
    try:
        if path.exists() and not path.is_file():
            raise OSError(0, "it is not a plain file")
        return path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        why = "is not UTF-8 text"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    raise ConfigError("(whole file)", None, f"{why}.", NOTHING_WRITTEN, source=str(path))


def document(agent: str, text: str | None, source: str = "") -> dict[str, Any]:
    """What the agent reads in the file; what makes it drop its hooks is an error that names the place."""
    syntax = SYNTAX[agent]
    if text is None or not text.strip(" \t\r\n" + jsontext.MARK):
        return {}
    if text.startswith(jsontext.MARK) and not syntax.mark:
        raise _fault(agent, "(first byte)", "is a byte order mark, which it cannot read", source)
    try:
        value = jsontext.parse(text, source=source, comments=syntax.comments, commas=False)
    except ConfigError as error:
        raise _fault(agent, error.key, error.reason.rstrip("."), source) from None
    if not isinstance(value, dict):
        raise _fault(agent, "(whole file)", "is not an object", source)
    _check(agent, value, source)
    return value


def _check(agent: str, value: dict[str, Any], source: str) -> None:
    keys = SYNTAX[agent].keys
    if keys and (strange := next((key for key in value if key not in keys), None)) is not None:
        raise _fault(agent, strange, f"is not known; only {' and '.join(keys)} are", source)
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise _fault(agent, "hooks", "is not an object", source)
    for event, items in hooks.items():
        if agent == "gemini-cli" and event not in dialect(agent).events:
            continue
        if not isinstance(items, list):
            raise _fault(agent, f"hooks.{event}", "is not a list", source)
        for index, item in enumerate(items):
            _check_item(agent, f"hooks.{event}[{index}]", item, source)


def _check_item(agent: str, where: str, item: Any, source: str) -> None:
    if not isinstance(item, dict):
        raise _fault(agent, where, "is not an object", source)
    if agent not in GROUPED:
        _check_handler(agent, where, item, source)
        return
    inside = item.get("hooks")
    if not isinstance(inside, list):
        raise _fault(agent, f"{where}.hooks", "is not a list", source)
    if not isinstance(item.get("matcher") or "", str):
        raise _fault(agent, f"{where}.matcher", "is not a text", source)
    for index, handler in enumerate(inside):
        _check_handler(agent, f"{where}.hooks[{index}]", handler, source)


def _check_handler(agent: str, where: str, handler: Any, source: str) -> None:
    if not isinstance(handler, dict):
        raise _fault(agent, where, "is not an object", source)
    kind = handler.get("type", "command" if agent == "cursor" else None)
    if kind not in SYNTAX[agent].types:
        raise _fault(agent, f"{where}.type", f"is {kind!r}, which it does not know", source)
    if kind == "command" and agent != "copilot-cli" and not isinstance(handler.get("command"), str):
        raise _fault(agent, f"{where}.command", "is not a text", source)
    key = dialect(agent).hooks.timeout_key
    timeout = handler.get(key, 1)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise _fault(agent, f"{where}.{key}", "is not a number", source)
    if agent == "codex" and (timeout < 0 or not isinstance(timeout, int)):
        raise _fault(agent, f"{where}.{key}", "is not a whole number of seconds", source)
    if agent == "claude-code" and handler.get("onFailure", "block") not in ("block", "continue"):
        raise _fault(agent, f"{where}.onFailure", 'is neither "block" nor "continue"', source)


def _fault(agent: str, where: str, what: str, source: str) -> ConfigError:
    title = dialect(agent).title
    return ConfigError(
        where, None, f"{what}. {title} ignores every hook of such a file.", NOTHING_WRITTEN, source=source
    )


def write(path: Path, text: str, mode: int) -> None:
    """Whole or not at all; a link stays a link, and the file keeps its owner and its permissions."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    status = target.stat() if target.exists() else None
    handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            if status and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode) if status else mode)
            os.fsync(file.fileno())
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    _keep(target.parent)


def _keep(folder: Path) -> None:
    """The new name itself survives a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path, stop: Path) -> None:
    """The file, and the folders above it that are empty then, up to `stop`."""
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == stop or stop not in folder.parents:
            return
        try:
            folder.rmdir()
        except OSError:
            return
