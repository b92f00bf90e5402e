"""How things are shown: hostile text made visible, arguments as blocks, danger as a level, times in words.

Pure. Nothing here makes HTML: templates get text and the name of its kind, and escape both.
"""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from typing import Any

import msgspec

from checkrein.console.diffs import Line, changed, is_patch, patched, written
from checkrein.console.spans import Span, json_spans, shell_spans
from checkrein.errors import InputError
from checkrein.ledger.call_secrets import secrets_between
from checkrein.ledger.secrets import MASK

# Controls, and characters that turn, hide or join what a person reads; surrogates cannot be sent at all.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SHELL_TOOLS = frozenset({"Bash", "shell", "exec_command", "run_shell_command", "local_shell", "PowerShell"})
_COMMAND_KEYS = ("command", "cmd", "script")
_SHELLS = frozenset({"sh", "bash", "zsh", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/zsh"})
_PATHS = ("file_path", "path", "notebook_path")
_LONGEST_BLOCK = 40_000
_AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
# What cannot be taken back, or leaves the machine.
RED = frozenset({"deletes", "pays", "sends", "outside"})
DANGER = {
    "deletes": "deletes",
    "pays": "spends money",
    "sends": "sends messages",
    "outside": "reaches the outside world",
    "secrets": "touches secrets",
    "privilege": "gains privileges",
    "self": "changes the guard itself",
}


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a call's arguments: spans of code, lines of a diff, or plain text."""

    kind: str
    title: str = ""
    spans: tuple[Span, ...] = ()
    lines: tuple[Line, ...] = ()


def visible(text: str) -> str:
    """The text with everything that could mislead its reader spelled out."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def pretty(value: Any) -> str:
    """JSON as a person writes it; what cannot be seen is escaped, so it can be edited and sent back."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return _UNSEEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return json.dumps(character, ensure_ascii=True)[1:-1] if character != "\x7f" else "\\u007f"


def blocks(tool: str, value: Any) -> list[Block]:
    """A call's arguments: commands highlighted, edits as diffs, and the rest as JSON."""
    if not isinstance(value, dict):
        return [_json_block("", value)] if not isinstance(value, str) else [_text_block(tool, value)]
    rest = dict(value)
    found = [*_commands(tool, rest), *_edits(rest)]
    return [*found, _json_block("other arguments" if found else "", rest)] if rest or not found else found


def _commands(tool: str, rest: dict[str, Any]) -> list[Block]:
    """Shell lines, taken out of the arguments."""
    for key in _COMMAND_KEYS:
        command = rest.get(key)
        if isinstance(command, list) and command and all(isinstance(each, str) for each in command):
            command = _line(command)
        if isinstance(command, str) and is_patch(command):
            del rest[key]
            return [Block(kind="diff", title="patch", lines=patched(_cut(command)))]
        if isinstance(command, str) and (tool in _SHELL_TOOLS or key != "script"):
            del rest[key]
            return [Block(kind="shell", title=key, spans=shell_spans(_cut(command)))]
    return []


def _line(words: list[str]) -> str:
    """A command given in words. INVARIANT: only a shell's name may be left out, where its script is all."""
    if len(words) == 3 and words[0] in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _edits(rest: dict[str, Any]) -> list[Block]:
    """File changes, taken out of the arguments. INVARIANT: what is taken out is shown, all of it."""
    named = [key for key in _PATHS if rest.get(key)]
    # With several nobody knows which one counts: they are shown as they are.
    path = rest[named[0]] if len(named) == 1 and isinstance(rest[named[0]], str) else ""
    found, edits = [], rest.get("edits")
    if isinstance(edits, list) and edits and all(map(_is_edit, edits)):
        found += [_edit(path, each) for each in rest.pop("edits")]
    if _texts(rest, "old_string", "new_string"):
        found.append(_edit(path, {key: rest.pop(key) for key in ("old_string", "new_string")}))
    found += [
        Block(kind="diff", title=f"{path} (whole)", lines=written(_cut(rest.pop(key))))
        for key in ("content", "new_source", "file_text")
        if path and isinstance(rest.get(key), str)
    ]
    found += [
        Block(kind="diff", title="patch", lines=patched(_cut(rest.pop(key))))
        for key in ("patch", "input", "diff")
        if isinstance(rest.get(key), str) and is_patch(rest[key])
    ]
    if path and any(block.title.startswith(path) for block in found):
        del rest[named[0]]
    return found


def _is_edit(piece: Any) -> bool:
    if not isinstance(piece, dict) or not _texts(piece, "old_string", "new_string"):
        return False
    return len(piece) == 2 or (len(piece) == 3 and isinstance(piece.get("replace_all"), bool))


def _edit(path: str, piece: dict[str, Any]) -> Block:
    title = f"{path} (every place)" if piece.get("replace_all") else path
    return Block(kind="diff", title=title, lines=_within(changed(piece["old_string"], piece["new_string"])))


def _within(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Lines as long as can be shown; cut after they are compared, or what is cut off would be the same."""
    room, kept = 2 * _LONGEST_BLOCK, list[Line]()
    for at, (kind, text) in enumerate(lines):
        if room <= 0:
            return (*kept, ("place", f"… {len(lines) - at} more lines"))
        kept.append((kind, _cut(text)))
        room -= len(text)
    return tuple(kept)


def _texts(piece: dict[str, Any], *keys: str) -> bool:
    return all(isinstance(piece.get(key), str) for key in keys)


def _json_block(title: str, value: Any) -> Block:
    return Block(kind="json", title=title, spans=json_spans(_cut(pretty(value))))


def _text_block(tool: str, text: str) -> Block:
    if is_patch(text):
        return Block(kind="diff", title="patch", lines=patched(_cut(text)))
    if tool in _SHELL_TOOLS:
        return Block(kind="shell", spans=shell_spans(_cut(text)))
    return Block(kind="text", spans=(("", _cut(text)),))


def _cut(text: str) -> str:
    left = len(text) - _LONGEST_BLOCK
    return text if left <= 0 else f"{text[:_LONGEST_BLOCK]}\n… {left} more characters"


def level(danger: list[str], risk: str) -> str:
    """red, amber or calm: how a card is framed."""
    if RED & set(danger) or risk == "critical":
        return "red"
    return "amber" if danger or risk == "high" else "calm"


def quoted(text: str) -> list[Span]:
    """A sentence of ours with what it quotes between backticks told apart."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return [("", text)]
    return [("code" if at % 2 else "", piece) for at, piece in enumerate(pieces) if piece]


def within(text: str, project: str) -> str:
    """The text with files of the project named as from inside it."""
    return text.replace(f"{project.rstrip('/')}/", "") if project.strip("/") else text


def one_line(value: Any, project: str = "", longest: int = 120) -> str:
    """What a call was about: its command, its file, else its arguments."""
    found = value
    if isinstance(value, dict):
        keys = (*_COMMAND_KEYS, "file_path", "path", "url", "query", "pattern", "prompt")
        found = next((value[key] for key in keys if isinstance(value.get(key), str)), value)
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
    text = within(" ".join(text.split()), project)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def ago(seconds: float) -> str:
    """`3 min ago`; the future is now."""
    seconds = max(0.0, seconds)
    for name, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {name} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} s ago"


def left(seconds: float) -> str:
    """`4:05`, `2 h 10 min`; what has run out is said."""
    if seconds <= 0:
        return "expired"
    whole = int(seconds)
    if whole >= 86_400:
        return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60}:{whole % 60:02d}"


def epoch(text: Any) -> float:
    """Seconds since 1970 of an ISO time or a number; 0 where it is neither."""
    if isinstance(text, int | float):
        return float(text)
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def clock(text: Any) -> str:
    """`2026-11-15 11:43:05`, in UTC as the ledger says it."""
    at = epoch(text)
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S") if at else ""


def moment(text: str, now: float, *, ahead: bool = False) -> float | None:
    """A time from `2h`, `7d` (ago, or ahead) or ISO 8601; None for nothing."""
    text = text.strip()
    if not text:
        return None
    distance = _AGO.fullmatch(text)
    if distance:
        seconds = int(distance[1]) * _SECONDS[distance[2]]
        return min(max(0.0, now + (seconds if ahead else -seconds)), 1e11)
    try:
        return max(0.0, datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{text!r} is not a time.", remedy="Write 2h, 7d or 2027-01-31T18:00.") from None


def folder_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path or "no project"


def restored(edited: Any, masked: Any, real: Any) -> Any:
    """What a person edited, with secrets they never saw put back where they left the mask alone."""
    if edited == masked:
        return real
    if all(isinstance(each, str) for each in (edited, masked, real)) and MASK in edited:
        values = [*secrets_between(real, masked)]
        # Of several secrets nobody could tell which belongs where.
        if len(set(values)) == 1 and masked.replace(MASK, values[0]) == real:
            return edited.replace(MASK, values[0])
    if isinstance(edited, dict) and isinstance(masked, dict) and isinstance(real, dict):
        return {
            key: restored(value, masked[key], real[key]) if key in masked and key in real else value
            for key, value in edited.items()
        }
    lists = all(isinstance(each, list) for each in (edited, masked, real))
    if lists and len(edited) == len(masked) == len(real):
        return [restored(*each) for each in zip(edited, masked, real, strict=True)]
    return edited
