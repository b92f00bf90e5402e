"""An MCP server that does everything the protocol knows, in both eras: what the conformance suites call.

Started behind the gateway on stdio (`everything.py`, in one era only: `everything.py handshake|stateless`)
and alone over HTTP (`everything.py PORT`). A tool asks its client in whichever way the era has: a request of
its own, or a result that says what is missing.
"""

import asyncio
import json
import sys
import warnings

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
WATCHED = "test://watched-resource"
PAGE = 10
WORD = {"type": "string"}
ANYTHING = {"type": "object", "properties": {}}
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
TOOLS, PROMPTS = {}, {}
# Listed or not, turn by turn: a list that visibly changes.
COMES_AND_GOES = {"test_dynamic_tool", "test_dynamic_prompt"}
gone, level, called_off = set(), ["debug"], []
bus = InMemorySubscriptionBus()


def takes(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def tool(description, schema=ANYTHING, **more):
    def keep(work):
        definition = {"name": work.__name__, "description": description, "inputSchema": schema, **more}
        TOOLS[work.__name__] = (definition, work)
        return work

    return keep


def prompt(description, *arguments):
    def keep(work):
        given = [{"name": name, "description": f"The {name}.", "required": True} for name in arguments]
        definition = {"name": work.__name__, "description": description, "arguments": given}
        PROMPTS[work.__name__] = (definition, work)
        return work

    return keep


def text(words):
    return {"type": "text", "text": words}


def said(words):
    return {"content": [text(words)]}


def embedded(uri, words, kind="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


# Asking the client


class MissingError(Exception):
    """What the client must answer first, in the era where it is told so by a result."""

    def __init__(self, requests, state=None):
        self.result = {"resultType": "input_required", "inputRequests": requests}
        if state is not None:
            self.result["requestState"] = state


def form(message, **fields):
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words, most=100):
    message = {"role": "user", "content": text(words)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}}


ROOTS = {"method": "roots/list", "params": {}}
KINDS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


def responses(params):
    found = params.input_responses or {}
    return {key: each if isinstance(each, dict) else _plain(each) for key, each in found.items()}


def _plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def asked(ctx, params, key, request):
    """The client's answer to one request, whichever way it is asked."""
    if ctx.session.protocol_version == types.LATEST_PROTOCOL_VERSION:
        found = responses(params)
        if key not in found:
            raise MissingError({key: request})
        return found[key]
    kind, answer = KINDS[request["method"]]
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    return _plain(await ctx.session.send_request(kind.model_validate(request), answer, metadata=related))


def answered(label, result):
    return said(f"{label}: action={result['action']}, content={json.dumps(result.get('content', {}))}")


# Tools: what they give back


@tool("Gives one line of text.")
async def test_simple_text(ctx, params):
    return said("This is a simple text response for testing.")


@tool("Gives a picture.")
async def test_image_content(ctx, params):
    return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}


@tool("Gives a sound.")
async def test_audio_content(ctx, params):
    return {"content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]}


@tool("Gives a resource inside its result.")
async def test_embedded_resource(ctx, params):
    return {"content": [embedded("test://embedded-resource", "This is an embedded resource content.")]}


@tool("Gives text, a picture and a resource at once.")
async def test_multiple_content_types(ctx, params):
    mixed = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    return {"content": [text("Multiple content types test:"), picture, mixed]}


@tool("Always fails.")
async def test_error_handling(ctx, params):
    return {**said("This tool intentionally returns an error for testing"), "isError": True}


@tool("Says the same again.", takes(["text"], text=WORD))
async def echo(ctx, params):
    return said(params.arguments["text"])


@tool(
    "Adds two numbers; its result has a shape.",
    takes("ab", a={"type": "number"}, b={"type": "number"}),
    outputSchema=takes(["sum"], sum={"type": "number"}),
    annotations={"readOnlyHint": True, "title": "Sum"},
)
async def add(ctx, params):
    total = params.arguments["a"] + params.arguments["b"]
    return {**said(str(total)), "structuredContent": {"sum": total}}


@tool("A schema with the words of 2020-12.")
async def json_schema_2020_12_tool(ctx, params):
    return said("valid")


TOOLS["json_schema_2020_12_tool"][0]["inputSchema"] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef"} | takes(street=WORD, city=WORD)},
    "properties": {
        **dict.fromkeys(("name", "phone", "email"), WORD),
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool("One argument travels in a header too.", takes(region={"type": "string", "x-mcp-header": "Region"}))
async def test_x_mcp_header(ctx, params):
    return said(f"region: {(params.arguments or {}).get('region', 'none')}")


# Tools: what they say on the way


async def log(ctx, words, how="info"):
    if LEVELS.index(how) >= LEVELS.index(level[0]):
        await ctx.session.send_log_message(how, words, "everything", related_request_id=ctx.request_id)


@tool("Logs three times while it works.")
async def test_tool_with_logging(ctx, params):
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, words)
        await asyncio.sleep(0.05)
    return said("Logged three times.")


@tool("Logs once, where that is wanted.")
async def test_logging_tool(ctx, params):
    await log(ctx, "test_logging_tool ran")
    return said("Logged once, if anybody listens.")


@tool("Reports how far it is.")
async def test_tool_with_progress(ctx, params):
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return said("Reported three times.")


@tool("Waits until it is called off.")
async def wait_forever(ctx, params):
    try:
        await ctx.session.report_progress(0, 1, "waiting")
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        called_off.append(params.name)
        raise


@tool("How many calls were called off.")
async def count_called_off(ctx, params):
    return said(str(len(called_off)))


@tool("Ends its own stream in the middle of the call.")
async def test_reconnection(ctx, params):
    await log(ctx, "before the stream ends")
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    await log(ctx, "after the stream ended")
    return said("Still here.")


# Tools: what they ask for


@tool("Asks the client's model.", takes(["prompt"], prompt=WORD))
async def test_sampling(ctx, params):
    told = await asked(ctx, params, "model", sampling(params.arguments["prompt"]))
    return said(f"LLM response: {told['content']['text']}")


@tool("Asks the client's user.", takes(["message"], message=WORD))
async def test_elicitation(ctx, params):
    fields = {"username": WORD, "email": WORD}
    return answered(
        "User response", await asked(ctx, params, "user", form(params.arguments["message"], **fields))
    )


@tool("Asks which folders the client works in.")
async def test_roots(ctx, params):
    told = await asked(ctx, params, "roots", ROOTS)
    return said(" ".join(each["uri"] for each in told["roots"]))


@tool("Asks with a default for every kind of field.")
async def test_elicitation_sep1034_defaults(ctx, params):
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    request = form("Please look through what we know.", **fields)
    request["params"]["requestedSchema"]["required"] = []
    return answered("Elicitation completed", await asked(ctx, params, "user", request))


@tool("Asks for choices, in every way they can be written.")
async def test_elicitation_sep1330_enums(ctx, params):
    plain, titled = ["option1", "option2", "option3"], [("value1", "First"), ("value2", "Second")]
    choices = [{"const": value, "title": title} for value, title in titled]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": choices},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": choices}},
    }
    return answered(
        "Elicitation completed", await asked(ctx, params, "user", form("Please choose.", **fields))
    )


@tool("Asks a word of the user, without sending a request on the stream.")
async def test_streaming_elicitation(ctx, params):
    return answered("Word", await asked(ctx, params, "word", form("A word?", word=WORD)))


@tool("Needs a client that lends its model.")
async def test_missing_capability(ctx, params):
    known = ctx.session.client_capabilities
    if known is None or known.sampling is None:
        needs = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling.", needs)
    return said("The client lends its model.")


# Tools: several rounds

NAME = {"name": WORD}
CONFIRM = {"confirm": form("Please confirm", ok={"type": "boolean"})}


@tool("Needs a name first.")
async def test_input_required_result_elicitation(ctx, params):
    told = responses(params).get("user_name")
    if not told or "name" not in (told.get("content") or {}):
        raise MissingError({"user_name": form("What is your name?", **NAME)})
    return said(f"Hello, {told['content']['name']}!")


@tool("Needs the model's word first.")
async def test_input_required_result_sampling(ctx, params):
    told = responses(params).get("capital_question")
    if not told:
        raise MissingError({"capital_question": sampling("What is the capital of France?")})
    return said(told["content"]["text"])


@tool("Needs the client's folders first.")
async def test_input_required_result_list_roots(ctx, params):
    told = responses(params).get("client_roots")
    if not told:
        raise MissingError({"client_roots": ROOTS})
    return said(f"Folders: {[each['uri'] for each in told['roots']]}")


@tool("Gets back the state it gave.")
async def test_input_required_result_request_state(ctx, params):
    if params.request_state != "remember me" or "confirm" not in responses(params):
        raise MissingError(CONFIRM, "remember me")
    return said("state-ok")


@tool("Needs three things at once.")
async def test_input_required_result_multiple_inputs(ctx, params):
    wanted = {
        "user_name": form("What is your name?", **NAME),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    if not wanted.keys() <= responses(params).keys():
        raise MissingError(wanted, "three at once")
    return said("All three are here.")


@tool("Needs one thing after the other.")
async def test_input_required_result_multi_round(ctx, params):
    told, state = responses(params), json.loads(params.request_state or "{}")
    if "step1" not in told and "name" not in state:
        raise MissingError({"step1": form("Step 1: What is your name?", **NAME)}, "{}")
    name = state.get("name") or told["step1"]["content"]["name"]
    if "step2" not in told:
        colour = form("Step 2: What is your favorite color?", color=WORD)
        raise MissingError({"step2": colour}, json.dumps({"name": name}))
    return said(f"{name} likes {told['step2']['content']['color']}.")


@tool("Does not accept a state that somebody changed.")
async def test_input_required_result_tampered_state(ctx, params):
    if params.request_state is None:
        raise MissingError(CONFIRM, "sealed")
    return said("state-ok")


@tool("Asks only for what the client can do.")
async def test_input_required_result_capabilities(ctx, params):
    known, told = ctx.session.client_capabilities, responses(params)
    wanted = {}
    if known is not None and known.sampling is not None:
        wanted["model"] = sampling("Say hello", 50)
    if known is not None and known.elicitation is not None:
        wanted["user"] = form("What is your name?", **NAME)
    if not wanted.keys() <= told.keys():
        raise MissingError(wanted, "what you can")
    return said(f"Heard: {sorted(told)}")


# Tools: what changes


@tool("Is there every second time.")
async def test_dynamic_tool(ctx, params):
    return said("here")


async def come_or_go(name):
    gone.symmetric_difference_update({name})


@tool("Takes a tool away, or brings it back.")
async def test_trigger_tool_change(ctx, params):
    await come_or_go("test_dynamic_tool")
    await bus.publish(ToolsListChanged())
    if ctx.session.protocol_version != types.LATEST_PROTOCOL_VERSION:
        await ctx.session.send_tool_list_changed()
    return said("changed")


@tool("Takes a prompt away, or brings it back.")
async def test_trigger_prompt_change(ctx, params):
    await come_or_go("test_dynamic_prompt")
    await bus.publish(PromptsListChanged())
    if ctx.session.protocol_version != types.LATEST_PROTOCOL_VERSION:
        await ctx.session.send_prompt_list_changed()
    return said("changed")


watching = set()


@tool("Changes the watched resource.")
async def touch_watched(ctx, params):
    await bus.publish(ResourceUpdated(WATCHED))
    if ctx.session.protocol_version != types.LATEST_PROTOCOL_VERSION and WATCHED in watching:
        await ctx.session.send_resource_updated(WATCHED)
    return said("touched")


# Prompts


def message(content):
    return {"role": "user", "content": content}


@prompt("Takes nothing.")
async def test_simple_prompt(params):
    return [message(text("This is a simple prompt for testing."))]


@prompt("Takes two arguments.", "arg1", "arg2")
async def test_prompt_with_arguments(params):
    given = params.arguments or {}
    return [message(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]


@prompt("Brings a resource along.", "resourceUri")
async def test_prompt_with_embedded_resource(params):
    brought = embedded(params.arguments["resourceUri"], "Embedded resource content for testing.")
    return [message(brought), message(text("Please process the embedded resource above."))]


@prompt("Brings a picture along.")
async def test_prompt_with_image(params):
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    return [message(picture), message(text("Please analyze the image above."))]


@prompt("Needs context first.")
async def test_input_required_result_prompt(params):
    told = responses(params).get("user_context")
    if not told:
        raise MissingError({"user_context": form("What context should the prompt use?", context=WORD)})
    return [message(text(f"Use this: {told['content']['context']}"))]


@prompt("Is there every second time.")
async def test_dynamic_prompt(params):
    return [message(text("here"))]


# What the protocol asks for


def listed(table):
    return [definition for name, (definition, _) in table.items() if name not in gone]


def paged(key, every, params):
    start = int((params.cursor if params else None) or 0)
    page = {key: every[start : start + PAGE]}
    return {**page, "nextCursor": str(start + PAGE)} if start + PAGE < len(every) else page


async def list_tools(ctx, params):
    return {"tools": listed(TOOLS)}


async def list_prompts(ctx, params):
    return paged("prompts", listed(PROMPTS), params)


async def call_tool(ctx, params):
    if params.name not in TOOLS or params.name in gone:
        raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name}.")
    try:
        return await TOOLS[params.name][1](ctx, params)
    except MissingError as missing:
        return missing.result


async def get_prompt(ctx, params):
    if params.name not in PROMPTS or params.name in gone:
        raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name}.")
    definition, work = PROMPTS[params.name]
    try:
        return {"description": definition["description"], "messages": await work(params)}
    except MissingError as missing:
        return missing.result


RESOURCES = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": PNG}),
    WATCHED: ("text/plain", {"text": "Watched resource content"}),
}


async def list_resources(ctx, params):
    found = [
        {"uri": uri, "name": uri[7:], "description": f"The resource {uri}.", "mimeType": kind}
        for uri, (kind, _) in RESOURCES.items()
    ]
    return paged("resources", found, params)


async def list_templates(ctx, params):
    one = {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [{**one, "description": "One for every id."}]}


async def read_resource(ctx, params):
    uri = str(params.uri)
    kind, content = RESOURCES.get(uri, ("application/json", None))
    if content is None and uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        told = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        content = {"text": json.dumps(told)}
    if content is None:
        raise MCPError(types.INVALID_PARAMS, "There is no such resource.", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": kind, **content}]}


async def subscribe(ctx, params):
    watching.add(str(params.uri))
    return {}


async def unsubscribe(ctx, params):
    watching.discard(str(params.uri))
    return {}


async def complete(ctx, params):
    found = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return {"completion": {"values": found, "total": len(found), "hasMore": False}}


async def set_level(ctx, params):
    level[0] = params.level
    return {}


class Events(EventStore):
    """What was sent on each stream, so that a client can come back for the rest."""

    def __init__(self):
        self.kept = []

    async def store_event(self, stream_id, message):
        self.kept.append((stream_id, message))
        return str(len(self.kept))

    async def replay_events_after(self, last_event_id, send_callback):
        place = int(last_event_id)
        stream = self.kept[place - 1][0]
        for number, (where, sent) in enumerate(self.kept[place:], place + 1):
            if where == stream and sent is not None:
                await send_callback(EventMessage(sent, str(number)))
        return stream


def typed(result, work):
    """The handler as the SDK wants it: its own types add what each era's results carry."""

    async def handle(ctx, params):
        found = await work(ctx, params)
        kind = types.InputRequiredResult if found.get("resultType") == "input_required" else result
        return kind.model_validate(found)

    return handle


def server():
    made = Server(
        "everything",
        version="1.0.0",
        instructions="Every tool is a test.",
        cache_hints={
            method: CacheHint(ttl_ms=60_000, scope="private")
            for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
        },
        on_list_tools=typed(types.ListToolsResult, list_tools),
        on_call_tool=typed(types.CallToolResult, call_tool),
        on_list_prompts=typed(types.ListPromptsResult, list_prompts),
        on_get_prompt=typed(types.GetPromptResult, get_prompt),
        on_list_resources=typed(types.ListResourcesResult, list_resources),
        on_list_resource_templates=typed(types.ListResourceTemplatesResult, list_templates),
        on_read_resource=typed(types.ReadResourceResult, read_resource),
        on_subscribe_resource=typed(types.EmptyResult, subscribe),
        on_unsubscribe_resource=typed(types.EmptyResult, unsubscribe),
        on_subscriptions_listen=ListenHandler(bus),
        on_completion=typed(types.CompleteResult, complete),
        on_set_logging_level=typed(types.EmptyResult, set_level),
    )
    sealed = RequestStateSecurity(keys=[b"only for tests, and long enough for a key"])
    made.middleware.append(RequestStateBoundary(sealed, default_audience="everything"))
    return made


FIRST = {"handshake": "server/discover", "stateless": "initialize"}


def only(era):
    """A server that knows nothing of how the other era begins."""

    async def refuse(ctx, call_next):
        if ctx.method == FIRST[era]:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        return await call_next(ctx)

    return refuse


async def on_stdio(era=None):
    made = server()
    if era:
        made.middleware.insert(0, only(era))
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    async with stdio_server() as (read, write):
        await made.run(read, write, made.create_initialization_options(changes))


def over_http(port):
    import uvicorn

    app = server().streamable_http_app(event_store=Events(), retry_interval=100)
    # h11 takes the spaces around a header's value away, as it must; httptools leaves those behind it.
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", http="h11")


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    if sys.argv[1:] and sys.argv[1].isdigit():
        over_http(int(sys.argv[1]))
    else:
        asyncio.run(on_stdio(*sys.argv[1:]))
