"""The description is valid OpenAPI 3.1 as far as it goes, and says what there is."""

import re

import jsonschema_rs
import pytest

from checkrein.console.api import openapi
from checkrein.console.api.endpoints import ENDPOINTS

DOCUMENT = openapi.document(7331)
OPERATIONS = [
    pytest.param(path, method, each, id=each["operationId"])
    for path, methods in DOCUMENT["paths"].items()
    for method, each in methods.items()
]


def references(value):
    if isinstance(value, dict):
        yield from [value["$ref"]] if "$ref" in value else []
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def resolve(reference):
    found = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_it_is_served_to_programs(program, console):
    got = program("GET", "/openapi.json").json
    assert got["openapi"] == "3.1.0"
    assert got["servers"] == [{"url": f"http://127.0.0.1:{console.port}/api/v1"}]
    assert got["paths"] == DOCUMENT["paths"]


def test_every_reference_leads_somewhere():
    assert all(resolve(each) for each in set(references(DOCUMENT)))


def test_every_schema_is_one():
    for schema in DOCUMENT["components"]["schemas"].values():
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema_rs.validator_for(whole)
        jsonschema_rs.meta.validate(schema)


def test_everything_programs_may_use_is_described_and_nothing_else():
    said = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert said == {(each.method, each.path) for each in ENDPOINTS if each.need != "person"}


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_an_operation_is_whole(path, method, operation):
    inside = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
    assert inside == re.findall(r"\{(\w+)\}", path)
    assert all(each["required"] for each in operation["parameters"] if each["in"] == "path")
    assert operation["summary"]
    assert all(each.get("description") or each.get("$ref") for each in operation["responses"].values())
    assert ("requestBody" in operation) <= (method in ("post", "patch"))
    for each in operation["parameters"]:
        jsonschema_rs.meta.validate(each["schema"])


def test_ids_are_unique():
    ids = [each.values[2]["operationId"] for each in OPERATIONS]
    assert len(set(ids)) == len(ids)


def body_of(operation_id):
    for each in OPERATIONS:
        operation = each.values[2]
        if operation["operationId"] == operation_id:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            return jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]})
    raise AssertionError(operation_id)


def test_bodies_are_described_as_they_are_taken(program, talker):
    send, update = body_of("send"), body_of("update")
    good = {"text": "hi", "attachments": [{"name": "a", "data": "aGk="}]}
    assert send.is_valid(good)
    assert program("POST", "/sessions/s1/messages", good).status == 202
    for bad in ({}, {"text": 1}, {"text": "x", "surprise": 1}, {"text": "x", "session": "other"}):
        assert not send.is_valid(bad)
    assert update.is_valid({"threshold": None, "pinned": True})
    assert not update.is_valid({"threshold": 2})
    assert program("PATCH", "/sessions/s1", {"threshold": 2}).status == 400
    assert body_of("approve").is_valid({"remember": {"what": "family", "for": "always"}})
