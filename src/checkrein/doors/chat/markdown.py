"""A conversation as Markdown people read: a heading for each turn, tools and results in fences.

What somebody said stands as it was said where that is harmless, and quoted where it could pass for the
structure around it or swallow what follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from checkrein.doors.chat import Message, Part, Role, Session, words
from checkrein.doors.chat.changes import titled
from checkrein.errors import InputError

UNTITLED = "Imported chat"
_HEADS: dict[str, Role] = {"User": "user", "Assistant": "assistant", "System": "system"}
_NAMES = {role: name for name, role in _HEADS.items()}
_TURN = re.compile(r"## (User|Assistant|System)(?: · .*)?")
_ASIDE = re.compile(r"### (?:Tool call|Result|Attachment|Error): .*")
_FENCE = re.compile(r"(`{3,}).*")
_MARKUP = re.compile(r"([\\`*_\[\]<>#&])")
_OURS = re.compile(rf"^ {{0,3}}(?:{_TURN.pattern}|{_ASIDE.pattern})$", re.M)
_CODE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
# HTML may end only where the text says so; a link's definition holds in the whole file.
_HOLDS_ON = re.compile(r" {0,3}(?:<|\[[^\]]*\]:)")


def written(session: Session, said: Iterable[Message]) -> str:
    """The title, then each message; tool results belong to the turn before."""
    blocks = [f"# {_plain(session.title)}"]
    for message in said:
        if message.role != "tool":
            blocks.append(_heading(message))
        blocks += [block for part in message.parts for block in _blocks(part)]
        if message.error:
            blocks.append(f"### Error: {_plain(message.error)}")
    return "\n\n".join(blocks) + "\n"


def read(text: str) -> tuple[str, list[tuple[Role, tuple[Part, ...]]]]:
    """The title and what was said; tools and results come back as text of the turn they were in."""
    lines = re.split(r"\r\n|\r|\n", text)
    title = next((line[2:] for line in lines[:20] if line.startswith("# ")), "")
    turns: list[tuple[Role, list[str]]] = []
    for role, block in _read_blocks(lines):
        if not turns or block is None:
            turns.append((role, []))
        if block:
            turns[-1][1].append(block)
    said: list[tuple[Role, tuple[Part, ...]]] = [
        (role, (Part(text="\n\n".join(blocks)),)) for role, blocks in turns if "".join(blocks).strip()
    ]
    if not said:
        raise InputError("There is no conversation in this file.", remedy='Turns begin with "## User".')
    return _title(re.sub(r"\\(.)", r"\1", title)), said


def _title(text: str) -> str:
    return titled(text if any(each.isprintable() and not each.isspace() for each in text) else UNTITLED)


def _heading(message: Message) -> str:
    facts = [_NAMES[message.role]]
    if message.role == "assistant" and message.model:
        facts.append(_plain(message.model))
    if message.created_at:
        facts.append(f"{datetime.fromtimestamp(message.created_at, UTC):%Y-%m-%d %H:%M} UTC")
    if message.state != "completed":
        facts.append(message.state)
    return f"## {' · '.join(facts)}"


def _blocks(part: Part) -> Iterator[str]:
    if part.kind == "text" and part.text:
        text = re.sub(r"\r\n?", "\n", part.text)
        yield _quoted(text) if _is_risky(text) else text
    elif part.kind == "tool_invocation":
        yield f"### Tool call: {_plain(part.tool_name)}" + (f" · {part.status}" if part.status else "")
        yield _fenced(_json(part.data), "json")
    elif part.kind == "tool_result":
        yield f"### Result: {_plain(part.tool_name or part.tool_call_id)}"
        yield _fenced(re.sub(r"\r\n?", "\n", words.text_of([_nameless(part)])) or _json(part.data))
    elif part.kind == "attachment":
        name = part.data.get("name") or part.data.get("uri") if isinstance(part.data, dict) else ""
        yield f"### Attachment: {_plain(str(name or part.mime_type or 'a file'))}"


def _nameless(part: Part) -> Part:
    return Part(kind="tool_result", text=part.text, data=part.data, error=part.error)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _fenced(text: str, language: str = "") -> str:
    # INVARIANT: no text ends the fence around it.
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _is_risky(text: str) -> bool:
    # INVARIANT: what is said cannot pass for a turn, nor swallow one.
    if text != text.strip() or text.startswith(">") or _OURS.search(text):
        return True
    fence = ""
    for line in text.split("\n"):
        code = _CODE.match(line)
        if fence:
            closes = code and code[1].startswith(fence) and not code[2].strip()
            fence = "" if closes else fence
        elif code:
            fence = code[1]
        elif _HOLDS_ON.match(line):
            return True
    return bool(fence)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _plain(text: str) -> str:
    """One line without markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _read_blocks(lines: list[str]) -> Iterator[tuple[Role, str | None]]:
    """Each turn's role with None where it begins, then with every block of it."""
    role: Role | None = None
    at = 0
    while at < len(lines):
        begins = _TURN.fullmatch(lines[at])
        if begins:
            role = _HEADS[begins[1]]
            yield role, None
            at += 1
        elif role is None or not lines[at].strip():
            at += 1
        else:
            end = _end(lines, at)
            yield role, _block(lines[at:end])
            at = end


def _end(lines: list[str], at: int) -> int:
    """Where the block that begins here is over."""
    if lines[at].startswith(">"):
        return next((n for n in range(at, len(lines)) if not lines[n].startswith(">")), len(lines))
    if _ASIDE.fullmatch(lines[at]):
        fence = _FENCE.fullmatch(lines[at + 2]) if len(lines) > at + 2 else None
        if not fence:
            return at + 1
        return next((n + 1 for n in range(at + 3, len(lines)) if lines[n] == fence[1]), len(lines))
    ours = (n for n in range(at, len(lines)) if _TURN.fullmatch(lines[n]) or _ASIDE.fullmatch(lines[n]))
    return next(ours, len(lines))


def _block(lines: list[str]) -> str:
    if all(line.startswith(">") for line in lines):
        return "\n".join(line[1:].removeprefix(" ") for line in lines)
    return "\n".join(lines).strip("\n")
