"""The built-in model: works offline and does what the last message says, line by line.

`providers` hands it out under the name `demo`. It remembers nothing: what it does follows from the messages
alone, so a run that is taken up by another server goes on where it was. Importing this loads Pydantic AI.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from checkrein.doors.chat import summaries
from checkrein.doors.chat.tokens import count

NAME = "demo"
Piece = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]
_COMMAND = re.compile(r"/(call|then|say|think|slow|fail|long|recall|results)(?:\s+(.*))?", re.DOTALL)
_WORDS = re.compile(r"\s*\S+")
_MOST_WORDS = 200_000
_LONGEST_PAUSE = 60_000
_LONGEST_RESULT = 2_000
_LONGEST_BULLET = 300
_UNKNOWN = "I do not know"
# How a request for a summary reads around what is to be summed up.
_PLAIN = summaries.request("")[len(summaries.TEMPLATE) :]
_CARRIED, _, _TALK = summaries.request("", prior="\x00")[len(summaries.TEMPLATE) :].partition(" \x00")
_HELP = """\
I am the **built-in model**: I work offline and do what a line says.

| line | what I do |
|---|---|
| `/call NAME {"key": "value"}` | call a tool; several lines call several at once |
| `/then` | what follows comes after the tools answered |
| `/say TEXT`, `/think TEXT`, `/long N` | say it, think it, say N words |
| `/results` | tell what the tools answered |
| `/recall WORD` | tell whether WORD came up before |
| `/slow MS` | pause between words |
| `/fail 429`, `500`, `cut` or `malformed` | fail as real models do |

To talk to a real model, add a provider and pick one of its models."""


class Step(msgspec.Struct, frozen=True):
    """One line of a script."""

    verb: str
    text: str


class ScriptedModel(FunctionModel):
    """A model of Pydantic AI's that carries out such scripts, word by word."""

    def __init__(self) -> None:
        super().__init__(_whole, stream_function=_pieces, model_name=NAME)
        self._system = NAME

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        stream = super().request_stream(messages, model_settings, model_request_parameters, run_context)
        async with stream as streamed:
            # The parent says 50 for every request.
            sent = count("\n".join(_said(messages)))
            streamed._usage += RequestUsage(input_tokens=sent - streamed.usage.input_tokens)
            yield streamed


def responses(script: str) -> list[list[Step]]:
    """A script, one list of steps for each response. Without any command there is none."""
    found = [_COMMAND.fullmatch(line.strip()) for line in script.splitlines()]
    steps = [Step(each[1], (each[2] or "").strip()) for each in found if each]
    made: list[list[Step]] = [[]] if steps else []
    for step in steps:
        if step.verb == "then":
            made.append([])
        else:
            made[-1].append(step)
    return made


async def _whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """The response at once, as a summariser is asked for it."""
    text, thoughts, calls = "", "", []
    async for piece in _pieces(messages, info):
        if isinstance(piece, str):
            text += piece
            continue
        for delta in piece.values():
            if isinstance(delta, DeltaThinkingPart):
                thoughts += delta.content or ""
            else:
                calls.append(ToolCallPart(delta.name or "", delta.json_args, str(delta.tool_call_id)))
    parts: list[ModelResponsePart] = [ThinkingPart(thoughts)] if thoughts else []
    parts += [TextPart(text)] if text else []
    usage = RequestUsage(input_tokens=count("\n".join(_said(messages))), output_tokens=count(text))
    return ModelResponse(parts=[*parts, *calls], usage=usage)


async def _pieces(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Piece]:
    at = _last_user(messages)
    asked = _user_text(messages[at]) if at >= 0 else ""
    done = sum(isinstance(each, ModelResponse) for each in messages[at + 1 :])
    summed = _summary(asked)
    script = [] if summed is not None else responses(asked)
    if not script or done >= len(script):
        text = _told_results(messages[at + 1 :]) if done else summed or _help(info)
        async for word in _spoken(text, 0):
            yield word
        return
    earlier = [step for each in script[:done] for step in each]
    async for piece in _response(script[done], earlier, messages, at):
        yield piece


async def _response(
    steps: list[Step], earlier: list[Step], messages: list[ModelMessage], at: int
) -> AsyncIterator[Piece]:
    """The steps of one response: everything said in its order, then the calls, all at once."""
    pause, spoke, thought = 0.0, False, 0
    for step in [*(each for each in earlier if each.verb == "slow"), *steps]:
        if step.verb == "slow":
            pause = _number(step.text, _LONGEST_PAUSE) / 1000
        elif step.verb == "think":
            thought += 1
            for word in _WORDS.findall(step.text):
                yield {-thought: DeltaThinkingPart(content=word)}
                await asyncio.sleep(pause)
        elif step.verb == "fail":
            async for piece in _failing(step.text, pause):
                yield piece
        elif step.verb != "call":
            if spoke:
                yield "\n\n"
            async for piece in _spoken(_text(step, messages, at), pause):
                spoke = True
                yield piece
    calls = [step for step in steps if step.verb == "call"]
    for number, step in enumerate(calls):
        name, _, arguments = step.text.partition(" ")
        # Whatever stands there is handed on: real models write broken arguments too.
        call_id = f"call_{len(messages)}_{number}"
        yield {number: DeltaToolCall(name, arguments.strip() or "{}", tool_call_id=call_id)}
    if not spoke and not calls and not thought:
        yield "There is nothing to say."


async def _spoken(text: str, pause: float) -> AsyncIterator[str]:
    for word in _WORDS.findall(text):
        yield word
        await asyncio.sleep(pause)


async def _failing(how: str, pause: float) -> AsyncIterator[str]:
    if how == "429":
        raise ModelHTTPError.for_category(
            ModelRateLimitError, status_code=429, model_name=NAME, headers={"retry-after": "1"}
        )
    if how == "500":
        raise ModelHTTPError.for_category(ModelServerError, status_code=500, model_name=NAME)
    async for word in _spoken("This answer breaks off in the", pause):
        yield word
    if how == "malformed":
        raise UnexpectedModelBehavior("An event of the answer is not JSON.")
    raise ModelConnectionError(NAME, "The connection was cut.", phase="read", in_stream=True)


def _text(step: Step, messages: list[ModelMessage], at: int) -> str:
    if step.verb == "say":
        return step.text
    if step.verb == "long":
        return " ".join(f"word{each}" for each in range(1, _number(step.text, _MOST_WORDS) + 1))
    if step.verb == "recall":
        known = step.text.casefold() in "\n".join(_before(messages, at)).casefold()
        return f"I know {step.text}." if known and step.text else f"{_UNKNOWN} {step.text}."
    return _told_results(messages[at + 1 :])


def _before(messages: list[ModelMessage], at: int) -> Iterator[str]:
    """What was sent before the last message, without the questions for it and our own not knowing."""
    told = (each for each in messages[at].parts if isinstance(each, SystemPromptPart))
    instructions = getattr(messages[at], "instructions", None) or ""
    texts = [*_said(messages[:at]), *(each.content for each in told), instructions]
    for line in "\n".join(texts).splitlines():
        if not line.lstrip(" -*").startswith(("/recall", _UNKNOWN)):
            yield line


def _said(messages: Sequence[ModelMessage]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ModelRequest) and message.instructions:
            yield message.instructions
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield _prompt(part)
            elif isinstance(part, ToolReturnPart):
                yield part.model_response_str()
            elif isinstance(part, ToolCallPart):
                yield f"{part.tool_name} {part.args_as_json_str()}"
            elif isinstance(content := getattr(part, "content", None), str):
                yield content


def _told_results(messages: Sequence[ModelMessage]) -> str:
    """What the tools answered, as a list."""
    parts = (part for message in messages if isinstance(message, ModelRequest) for part in message.parts)
    lines = []
    for part in parts:
        if isinstance(part, ToolReturnPart):
            text = part.model_response_str()
            short = text if len(text) <= _LONGEST_RESULT else f"{text[:_LONGEST_RESULT]} ..."
            lines.append(f"- `{part.tool_name}` answered: {short}")
    return "\n".join(lines) or "No tool has answered."


def _summary(asked: str) -> str | None:
    """The summary somebody asks for: every line of the one before, and every line a person wrote."""
    for head, tail in ((_CARRIED, _TALK), (_PLAIN, "")):
        _, found, rest = asked.partition(head)
        if found:
            prior, _, talk = rest.partition(tail) if tail else ("", "", rest)
            kept = [line.removeprefix(" ") for line in prior.splitlines() if line.strip()]
            bullets = [*kept, *(f"- {line[:_LONGEST_BULLET]}" for line in _lines_of_users(talk))]
            return "\n".join(dict.fromkeys(bullets)) or "- Nothing was said."
    return None


def _lines_of_users(talk: str) -> Iterator[str]:
    # What stands before the first name goes on with a message of the piece before.
    heard = True
    for line in talk.splitlines():
        if not line.startswith(" "):
            heard = line == "[user]"
        elif heard and line.strip():
            yield line.strip()


def _help(info: AgentInfo) -> str:
    names = [f"`{each.name}`" for each in info.function_tools]
    if not names:
        return _HELP
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{_HELP}\n\nTools I may call here: {', '.join(names[:3])}{more}."


def _last_user(messages: Sequence[ModelMessage]) -> int:
    """Where the last message of a person is; -1 when there is none."""
    asked = (
        at
        for at in reversed(range(len(messages)))
        if any(isinstance(part, UserPromptPart) for part in messages[at].parts)
    )
    return next(asked, -1)


def _user_text(message: ModelMessage) -> str:
    """What the person wrote: the first text of the last prompt. What is attached commands nothing."""
    prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
    content = prompts[-1].content
    return content if isinstance(content, str) else next(_texts(content), "")


def _prompt(part: UserPromptPart) -> str:
    return part.content if isinstance(part.content, str) else "\n".join(_texts(part.content))


def _texts(content: Sequence[Any]) -> Iterator[str]:
    for each in content:
        if isinstance(each, str):
            yield each
        elif isinstance(each, TextContent):
            yield each.content


def _number(text: str, most: int) -> int:
    try:
        return min(most, max(0, int(json.loads(text))))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return 0
