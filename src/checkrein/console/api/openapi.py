"""The HTTP API in OpenAPI 3.1, made of the same table that answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from checkrein import __version__
from checkrein.authority.token import API
from checkrein.console.api import shapes
from checkrein.console.api.endpoints import ENDPOINTS, Endpoint

Schema = dict[str, Any]
_REF = "#/components/schemas/{name}"
_ABOUT = (
    "Talk to a model that uses your tools, under your rules. Programs send a token as"
    " `Authorization: Bearer`; `checkrein chat token add NAME` makes one. Programs that a gated agent runs"
    " are refused."
)
_STREAM = (
    "Events, each with `id`, `event` (its kind) and JSON `data`. Send the last id you saw as `Last-Event-ID`,"
    " or as `after`, to go on where a line was lost; `reload` says that too much was missed."
)
_FAILURES = {
    "400": "The request cannot be understood.",
    "401": "The token is missing or opens nothing.",
    "403": "The token, or the program that shows it, may not do this.",
    "404": "What was named does not exist.",
    "409": "It makes sense, but not as things stand now: a model answers there, a question was answered.",
    "429": "Too many requests, or too many open lines.",
    "500": "Something of ours failed; the health page has it.",
    "502": "A provider of models, or a server, cannot be reached or does not do what it was asked for.",
    "503": "The store cannot be used now.",
    "504": "A provider of models did not answer in time.",
}


def document(port: int) -> Schema:
    """The description, for a server on this port."""
    return {**_document(), "servers": [{"url": f"http://127.0.0.1:{port}{API}"}]}


@cache
def _document() -> Schema:
    offered = [each for each in ENDPOINTS if each.need != "person"]
    paths: dict[str, Schema] = {}
    for each in offered:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Checkrein chat", "version": __version__, "description": _ABOUT},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _components(offered),
            "responses": {code: _failure(text) for code, text in _FAILURES.items()},
        },
    }


def _operation(endpoint: Endpoint) -> Schema:
    kept = [name for name in _properties(endpoint) if name not in _in_path(endpoint)]
    found: Schema = {
        "operationId": endpoint.name or endpoint.ask,
        "summary": endpoint.text,
        "parameters": [_path_parameter(name) for name in endpoint.names],
        "responses": {str(endpoint.status): _success(endpoint)}
        | {code: {"$ref": f"#/components/responses/{code}"} for code in _FAILURES},
        "x-needs": endpoint.need,
    }
    if endpoint.method == "GET":
        found["parameters"] += _query_parameters(endpoint, kept)
    elif kept:
        found["requestBody"] = _body(endpoint, kept)
    return found


def _in_path(endpoint: Endpoint) -> set[str]:
    return {endpoint.named.get(name, name) for name in endpoint.names} | set(endpoint.fixed)


def _schemas(types: list[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    found, components = msgspec.json.schema_components(types, ref_template=_REF)
    return list(found), dict(components)


def _properties(endpoint: Endpoint) -> dict[str, Schema]:
    _, components = _schemas([endpoint.params])
    found: dict[str, Schema] = components[endpoint.params.__name__].get("properties", {})
    return found


def _required(endpoint: Endpoint) -> list[str]:
    _, components = _schemas([endpoint.params])
    found: list[str] = components[endpoint.params.__name__].get("required", [])
    return found


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _query_parameters(endpoint: Endpoint, kept: list[str]) -> list[Schema]:
    properties, required = _properties(endpoint), _required(endpoint)
    shown = {value: name for name, value in endpoint.named.items() if name not in endpoint.names}
    if endpoint.kind == "stream":
        # A line waits for as long as it is open.
        kept = [name for name in kept if name != "wait"]
    return [
        {
            "name": shown.get(name, name),
            "in": "query",
            "required": name in required,
            "schema": properties[name],
        }
        for name in kept
    ]


def _body(endpoint: Endpoint, kept: list[str]) -> Schema:
    required = [name for name in _required(endpoint) if name in kept]
    schema: Schema = {
        "type": "object",
        "properties": {name: each for name, each in _properties(endpoint).items() if name in kept},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required
    return {"required": bool(required), "content": {"application/json": {"schema": schema}}}


def _success(endpoint: Endpoint) -> Schema:
    if endpoint.kind == "stream":
        return {"description": _STREAM, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    if endpoint.kind == "file":
        text = {"schema": {"type": "string"}}
        return {"description": "A file.", "content": {"application/json": {}, "text/markdown": text}}
    if endpoint.result is None:
        return {"description": "Done."}
    (schema,), _ = _schemas([endpoint.result])
    return {"description": endpoint.text, "content": {"application/json": {"schema": schema}}}


def _failure(text: str) -> Schema:
    schema = {"$ref": _REF.format(name=shapes.Failure.__name__)}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _components(offered: list[Endpoint]) -> dict[str, Schema]:
    """Every schema something refers to, once."""
    types = [each.result for each in offered if each.result is not None]
    _, components = _schemas([*types, *(each.params for each in offered), shapes.Failure])
    # What a request takes is written out where it is taken; only what those refer to is shared.
    whole = {each.params.__name__ for each in offered}
    return {name: each for name, each in components.items() if name not in whole}
