"""What a person attaches to a message, as parts of it: files, servers' resources, servers' prompts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import msgspec

from checkrein.doors.chat import Part
from checkrein.doors.chat.tools import Tools
from checkrein.errors import InputError

Facts = dict[str, Any]
LARGEST, MOST_TOGETHER = 8 << 20, 12 << 20
LONGEST_TEXT = 1_000_000
# What models are sent as it is; anything else that is no text they could not read.
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
READ_WHOLE = (*PICTURES, "application/pdf")
_TEXT = tuple(f"application/{each}" for each in ("json", "xml", "toml", "yaml", "javascript"))


class Attached(msgspec.Struct, frozen=True):
    """Parts for a message; `tainted_by` names a server nobody vouches for, whose words are among them."""

    parts: tuple[Part, ...] = ()
    tainted_by: str = ""


async def attached(given: Sequence[Facts], tools: Tools, session: str = "") -> Attached:
    """All of it, or InputError: nothing is left out in silence."""
    parts: list[Part] = []
    tainted_by = ""
    for each in given:
        if each.get("data") is not None:
            # Whoever attaches may leave out what it is called, and what it is.
            name, kind = each.get("name", ""), each.get("mime_type", "")
            parts.append(_file(name, kind, _decoded(each["data"], name)))
            continue
        found, trusted = await _of_server(each, tools, session)
        parts += found
        tainted_by = tainted_by or ("" if trusted else each["server"])
    if sum(each.size_bytes or 0 for each in parts) > MOST_TOGETHER:
        raise InputError(f"The attachments are larger than {MOST_TOGETHER >> 20} MB together.")
    return Attached(tuple(parts), tainted_by)


async def _of_server(given: Facts, tools: Tools, session: str) -> tuple[list[Part], bool]:
    server = given["server"]
    arguments = given.get("arguments") or {}
    if given.get("uri"):
        answer = await tools.read(server, given["uri"], session)
        parts = [_content(each, server, given["uri"]) for each in answer["contents"]]
    elif given.get("template"):
        answer = await tools.read_filled(server, given["template"], arguments, session)
        parts = [_content(each, server, answer["uri"]) for each in answer["contents"]]
    else:
        answer = await tools.prompt(server, given["prompt"], arguments, session)
        parts = [_said(each, server, given["prompt"]) for each in answer["messages"]]
    if not parts:
        raise InputError(f"{server} returned nothing to attach.")
    return parts, bool(answer.get("trusted"))


def _content(content: Facts, server: str, uri: str) -> Part:
    name, kind = f"{server}: {content.get('uri') or uri}", str(content.get("mimeType") or "")
    if isinstance(text := content.get("text"), str):
        return _text_part(name, kind or "text/plain", text)
    return _file(name, kind or "application/octet-stream", _decoded(content.get("blob"), name))


def _said(message: Facts, server: str, prompt: str) -> Part:
    name, content = f"{server}: {prompt} ({message.get('role', 'user')})", message.get("content")
    if not isinstance(content, dict):
        raise InputError(f"{server} returned a prompt that cannot be read.")
    if content.get("type") == "text":
        return _text_part(name, "text/plain", str(content.get("text", "")))
    if content.get("type") == "resource" and isinstance(content.get("resource"), dict):
        return _content(content["resource"], server, prompt)
    return _file(name, str(content.get("mimeType") or ""), _decoded(content.get("data"), name))


def _file(name: str, mime_type: str, data: bytes) -> Part:
    kind = mime_type.partition(";")[0].strip().lower()
    if len(data) > LARGEST:
        raise InputError(f"{name or 'The file'} is larger than {LARGEST >> 20} MB.")
    if kind.startswith("text/") or kind in _TEXT or kind not in READ_WHOLE:
        try:
            return _text_part(name, kind or "text/plain", data.decode("utf-8"))
        except UnicodeDecodeError:
            raise InputError(
                f"{name or 'The file'} ({kind or 'of unknown kind'}) is neither text nor a picture or PDF.",
                remedy="Attach it as text.",
            ) from None
    found = kind_of(data)
    # INVARIANT: what is attached is what it says: a provider would refuse the conversation from then on.
    if not found:
        raise InputError(f"{name or 'The file'} is not the {kind} it says it is.", remedy="Attach another.")
    kind = found
    kept = {"name": name, "base64": base64.b64encode(data).decode()}
    return Part(kind="attachment", mime_type=kind, size_bytes=len(data), data=kept)


def kind_of(data: bytes) -> str:
    """What of all that models are sent as it is these bytes are; empty where they are nothing of it."""
    return picture_kind(data) or ("application/pdf" if b"%PDF-" in data[:1024] else "")


def picture_kind(data: bytes) -> str:
    """Which picture these bytes are; empty where models could not look at it."""
    if len(data) > LARGEST:
        return ""
    known = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8")
    found = next((kind for start, kind in zip(known, PICTURES, strict=False) if data.startswith(start)), "")
    return found or ("image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "")


def _text_part(name: str, mime_type: str, text: str) -> Part:
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{name} has more than {LONGEST_TEXT:,} characters.")
    size = len(text.encode("utf-8", "replace"))
    return Part(kind="attachment", text=text, mime_type=mime_type, size_bytes=size, data={"name": name})


def _decoded(data: Any, name: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise InputError(f"{name or 'The attachment'} is not written in base64.") from None
