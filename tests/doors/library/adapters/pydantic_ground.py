"""Pydantic AI, and a model that says what a script says."""

# ruff: noqa: F401 - tests take the names of the framework from here, once they run.

import pydantic_ai
from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ExternalToolset,
    FunctionToolset,
    RunContext,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from checkrein.doors.library.adapters.pydantic_ai import _other as other
from checkrein.doors.library.adapters.pydantic_ai import gated, results, waiting

REQUESTS = TypeAdapter(DeferredToolRequests)


class Scripted:
    """A model that makes the calls it is given, and then says what it heard of them."""

    def __init__(self, *calls):
        self.calls = calls
        self.heard = []

    def __call__(self, messages, _info):
        returns = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
        if not returns and len(messages) == 1:
            parts = [ToolCallPart(name, given, f"c{n}") for n, (name, given) in enumerate(self.calls)]
            return ModelResponse(parts=parts)
        self.heard = [(part.content, part.outcome) for part in returns]
        return ModelResponse(parts=[TextPart("done")])


def agent(model, *toolsets, **options):
    return Agent(FunctionModel(model), toolsets=toolsets, output_type=[str, DeferredToolRequests], **options)


def kept(result):
    """A run that stopped, as JSON, and read back as another process would."""
    text = ModelMessagesTypeAdapter.dump_json(result.all_messages()), REQUESTS.dump_json(result.output)
    return ModelMessagesTypeAdapter.validate_json(text[0]), REQUESTS.validate_json(text[1])


class Anything(FunctionToolset):
    """Whatever tool a case names, with whatever arguments."""

    def __init__(self, name, ran):
        super().__init__()

        def tool(**given) -> str:
            ran.append(given)
            return "ran"

        schema = {"type": "object", "additionalProperties": True}
        self.add_tool(pydantic_ai.Tool.from_schema(tool, name=name, description=None, json_schema=schema))
