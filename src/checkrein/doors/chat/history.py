"""A conversation as models are sent it, and their answers as we keep them.

Imports Pydantic AI when first used. The agent calls it around each request; nothing here talks to anyone.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.call import DEEPEST, is_deep
from checkrein.doors.chat import Message, Part
from checkrein.doors.chat.attachments import kind_of, picture_kind
from checkrein.doors.chat.rows import clean
from checkrein.doors.chat.tokens import cut

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        UserContent,
    )

_NAME = re.compile(r"[^A-Za-z0-9_-]")
# A call's id is named when it is answered, with a mark where its model gave two calls the same.
_LONGEST_NAME, _LONGEST_ID = 64, 100
NOTHING = "(The tool returned nothing.)"
CANCELLED = "This call was not made: the run was stopped before."


class Names:
    """Tools under names every provider takes: letters, digits, `_` and `-`, at most 64."""

    def __init__(self, names: Iterable[str]) -> None:
        self._ours: dict[str, str] = {}
        self._theirs: dict[str, str] = {}
        for name in names:
            self._add(name)

    def theirs(self, name: str) -> str:
        """A tool of ours as a model knows it; one that is gone keeps a name it could have had."""
        return self._theirs.get(name) or _plain(name)

    def ours(self, name: str) -> str:
        """What a model called, as we know it; unchanged where there is no such tool."""
        return self._ours.get(name, name)

    def _add(self, name: str) -> None:
        wanted, number = _plain(name), 2
        # INVARIANT: no two tools share a name, so no call reaches another tool than the model meant.
        while wanted in self._ours:
            mark = f"_{number}"
            wanted, number = _plain(name)[: _LONGEST_NAME - len(mark)] + mark, number + 1
        self._ours[wanted], self._theirs[name] = name, wanted


def _plain(name: str) -> str:
    return _NAME.sub("_", name)[:_LONGEST_NAME] or "_"


def definitions(offered: Sequence[Any], names: Names) -> Any:
    """The tools as Pydantic AI takes them, their schemas whole."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    found = [
        ToolDefinition(
            name=names.theirs(each.name),
            description=each.description or None,
            parameters_json_schema=each.schema,
            kind="external",
            # INVARIANT: a schema is sent as its server wrote it; strict ones are rewritten on the way.
            strict=False,
        )
        for each in offered
    ]
    return ModelRequestParameters(function_tools=found)


def to_model(messages: Sequence[Message], system: str, names: Names) -> list[ModelMessage]:
    """What a request sends: instructions, then the conversation, every tool call with its result."""
    from pydantic_ai.messages import ModelRequest, SystemPromptPart

    found: list[ModelMessage] = []
    waiting: dict[str, str] = {}
    opening = [SystemPromptPart(system)] if system else []
    _request(found, opening)
    for each in messages:
        if each.role != "tool" and waiting:
            _request(found, _unanswered(waiting))
            waiting = {}
        if each.role == "assistant":
            response = _response(each, names)
            if response is not None:
                found.append(response)
                waiting = _calls(response)
        elif each.role == "tool":
            answers = _results(each, names, waiting)
            _request(found, answers)
        elif each.role == "user":
            _request(found, [_user(each)])
        else:
            _request(found, [SystemPromptPart(_text(each))])
    if waiting:
        _request(found, _unanswered(waiting))
    return [each for each in found if not isinstance(each, ModelRequest) or each.parts]


def _request(found: list[ModelMessage], parts: Sequence[ModelRequestPart]) -> None:
    """Add to the request under way: providers want one between two responses, not several."""
    from pydantic_ai.messages import ModelRequest

    if not parts:
        return
    last = found[-1] if found else None
    if isinstance(last, ModelRequest):
        found[-1] = ModelRequest(parts=[*last.parts, *parts])
    else:
        found.append(ModelRequest(parts=list(parts)))


def _response(message: Message, names: Names) -> ModelResponse | None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

    if message.raw and (raw := _raw(message.raw)) is not None:
        return raw
    parts: list[ModelResponsePart] = []
    for each in message.parts:
        if each.kind == "text" and each.text:
            parts.append(TextPart(each.text))
        elif each.kind == "tool_invocation":
            parts.append(ToolCallPart(names.theirs(each.tool_name), each.data or {}, each.tool_call_id))
    return ModelResponse(parts=parts, model_name=message.model or None) if parts else None


def _raw(raw: str) -> ModelResponse | None:
    """A response as its provider gave it; nothing where it cannot be read any more."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

    try:
        found = ModelMessagesTypeAdapter.validate_json(raw)
    except ValueError:
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], ModelResponse) and found[0].parts else None


def raw_of(response: ModelResponse) -> str:
    """A response to be sent again as it came: signatures and ids of its provider are in it."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    try:
        return ModelMessagesTypeAdapter.dump_json([response]).decode()
    except ValueError:
        # Halves of characters, say: then its parts are sent.
        return ""


def _calls(response: ModelResponse) -> dict[str, str]:
    from pydantic_ai.messages import ToolCallPart

    return {each.tool_call_id: each.tool_name for each in response.parts if isinstance(each, ToolCallPart)}


def _unanswered(waiting: dict[str, str]) -> list[ModelRequestPart]:
    """INVARIANT: no tool call is sent without a result; a call that was stopped says so."""
    from pydantic_ai.messages import ToolReturnPart

    return [ToolReturnPart(name, CANCELLED, id, outcome="failed") for id, name in waiting.items()]  # noqa: A001


def _results(message: Message, names: Names, waiting: dict[str, str]) -> list[ModelRequestPart]:
    from pydantic_ai.messages import ToolReturnPart

    found: list[ModelRequestPart] = []
    for each in message.parts:
        if each.kind != "tool_result":
            continue
        # A result whose call is not sent (a summary stands for it) would be refused by providers.
        name = waiting.pop(each.tool_call_id, None)
        if name is None:
            continue
        outcome: Any = {"completed": "success", "denied": "denied"}.get(each.status, "failed")
        found.append(ToolReturnPart(name, result_content(each), each.tool_call_id, outcome=outcome))
    del names
    return found


def result_content(part: Part) -> Any:
    """A tool's result as a model reads it: its text, its pictures; what failed says why."""
    if part.error and part.status != "completed":
        return cut(part.error)
    images = _images(part.data)
    text = part.text or ("" if part.data is None else readable(part.data))
    told = cut(text) if text else "" if images else NOTHING
    return [told, *images] if images and told else images or told


def as_read(part: Part) -> Any:
    """A result as it is to be shown: what a model is sent of it, also where its text says another thing.

    INVARIANT: no file makes a person see another answer of a tool than the model is sent.
    """
    if part.status not in ("", "completed") or not part.text or part.text == readable(part.data):
        return part.data if part.data is not None else part.text or None
    pictures = [each for each in _content(part.data) if each.get("type") == "image"]
    return {"content": [{"type": "text", "text": part.text}, *pictures]} if pictures else part.text


def readable(result: Any) -> str:
    """The text of an MCP result; what has none is told as JSON, pictures by their kind."""
    if not isinstance(result, dict):
        return result if isinstance(result, str) else as_json(result)
    told = [_readable(each) for each in _content(result)]
    text = "\n".join(each for each in told if each)
    if "structuredContent" in result and not text:
        return as_json(result["structuredContent"])
    return text


def _content(result: Any) -> list[dict[str, Any]]:
    """The items of a result, as far as they are what they should be."""
    found = result.get("content") if isinstance(result, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _readable(item: dict[str, Any]) -> str:
    kind = item.get("type")
    if kind == "text":
        return str(item.get("text", ""))
    if kind == "resource" and isinstance(held := item.get("resource"), dict):
        return str(held.get("text", "")) or f"[{held.get('mimeType', 'a file')}: {held.get('uri', '')}]"
    if kind == "resource_link":
        return f"[{item.get('name', '')}: {item.get('uri', '')}]"
    return f"[{item.get('mimeType') or kind or 'something'}]"


def _images(result: Any) -> list[Any]:
    """Its pictures, as what they are: one that is none would be refused by providers, every time."""
    from pydantic_ai.messages import BinaryContent

    held = [_bytes(each.get("data")) for each in _content(result) if each.get("type") == "image"]
    return [BinaryContent(data, media_type=kind) for data in held if (kind := picture_kind(data))]


def _user(message: Message) -> ModelRequestPart:
    from pydantic_ai.messages import BinaryContent, UserPromptPart

    content: list[UserContent] = []
    for each in message.parts:
        if each.kind == "text" and each.text:
            content.append(each.text)
        elif each.kind == "attachment":
            name = each.data.get("name", "") if isinstance(each.data, dict) else ""
            if each.text:
                content.append(f"Attached: {name}\n\n{each.text}")
            elif data := _bytes(each.data.get("base64") if isinstance(each.data, dict) else None):
                content.append(f"Attached: {name}")
                # INVARIANT: what a file from elsewhere calls itself does not close a conversation for good.
                if kind := kind_of(data):
                    content.append(BinaryContent(data, media_type=kind))
    alone = content[0] if len(content) == 1 and isinstance(content[0], str) else None
    return UserPromptPart(alone if alone is not None else content or "(nothing)")


def with_own_ids(response: ModelResponse, taken: Iterable[str]) -> ModelResponse:
    """The response, each of its calls under an id no other call of the run has: some models count anew."""
    from pydantic_ai.messages import ToolCallPart

    known = set(taken)
    parts: list[ModelResponsePart] = []
    for each in response.parts:
        if isinstance(each, ToolCallPart):
            first = clean(each.tool_call_id[:_LONGEST_ID]) or "call"
            wanted, number = first, 2
            # INVARIANT: no call is taken for another, so each is judged, runs and is answered by itself.
            while wanted in known:
                wanted, number = f"{first}_{number}", number + 1
            known.add(wanted)
            each = each if wanted == each.tool_call_id else replace(each, tool_call_id=wanted)  # noqa: PLW2901
        parts.append(each)
    return replace(response, parts=parts)


def parts_of(response: ModelResponse, names: Names) -> tuple[Part, ...]:
    """A model's answer as we keep it; `error` says what is wrong with a call's arguments."""
    from pydantic_ai.messages import TextPart, ThinkingPart, ToolCallPart

    found: list[Part] = []
    for each in response.parts:
        if isinstance(each, TextPart) and each.content:
            found.append(Part(text=clean(each.content)))
        elif isinstance(each, ThinkingPart) and each.content:
            found.append(Part(kind="reasoning", text=clean(each.content)))
        elif isinstance(each, ToolCallPart):
            arguments, error = arguments_of(each.args)
            found.append(
                Part(
                    kind="tool_invocation",
                    tool_call_id=each.tool_call_id,
                    tool_name=clean(names.ours(each.tool_name)),
                    data=arguments,
                    status="pending",
                    error=error,
                )
            )
    return tuple(found)


def arguments_of(given: Any) -> tuple[dict[str, Any], str]:
    """A call's arguments, and what is wrong with them."""
    if given is None or given == "":
        return {}, ""
    try:
        found = msgspec.json.decode(given) if isinstance(given, str) else given
        msgspec.json.encode(found)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return {}, f"The arguments are no JSON: {error}. They were: {clean(str(given)[:500])}"
    if not isinstance(found, dict):
        return {}, f"The arguments are no JSON object. They were: {str(given)[:500]}"
    if is_deep(found, DEEPEST):
        return {}, "The arguments are nested too deeply."
    return found, ""


def _text(message: Message) -> str:
    return "\n".join(each.text for each in message.parts if each.text)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""
