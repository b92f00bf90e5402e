"""Asks a model as the agent does: one streamed request."""

from checkrein.settings import Connections, Settings
from patience import PATIENCE

SCHEMA = {
    "type": "object",
    "properties": {
        "x": {"type": "integer", "minimum": 1, "description": "how many"},
        "y": {"type": "string"},
    },
    "required": ["x"],
}


def settings(**connections):
    """Settings under which nobody loses patience."""
    return Settings(
        connections=Connections(**{"timeout_seconds": PATIENCE, "connect_seconds": PATIENCE, **connections})
    )


def hasty():
    """Settings under which silence is not waited for."""
    return settings(timeout_seconds=0.2)


async def ask(model, text="hi", tools=("files__read",), system=None, heard=None):
    """The whole response; every event is put into `heard` on the way."""
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    offered = [
        ToolDefinition(name=each, description="reads", parameters_json_schema=SCHEMA, strict=False)
        for each in tools
    ]
    messages = text if isinstance(text, list) else [ModelRequest.user_text_prompt(text, instructions=system)]
    parameters = ModelRequestParameters(function_tools=offered)
    async with model_request_stream(model, messages, model_request_parameters=parameters) as streamed:
        async for event in streamed:
            if heard is not None:
                heard.append(event)
    return streamed.get()


def said(response):
    return "".join(part.content for part in response.parts if part.part_kind == "text")


def called(response):
    return [(part.tool_name, part.args) for part in response.parts if part.part_kind == "tool-call"]
