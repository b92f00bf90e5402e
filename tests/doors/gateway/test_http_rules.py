import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.gateway.http_rules import (
    check_parameters,
    check_request,
    check_version,
    declared,
    decoded,
    era_of,
    status_of,
)
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    STATELESS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    RpcError,
    request,
)

META = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}
HEADERS = {b"mcp-protocol-version": b"2026-07-28", b"mcp-method": b"tools/call", b"mcp-name": b"t"}


def wrapped(text):
    return b"=?base64?" + base64.b64encode(text.encode()) + b"?="


def call(**params):
    return request(1, "tools/call", {"_meta": META, "name": "t", **params})


def code(check, *given):
    with pytest.raises(RpcError) as caught:
        check(*given)
    return caught.value.code


@pytest.mark.parametrize(
    ("version", "body", "era"),
    [
        (None, {}, HANDSHAKE),
        (None, request(1, "initialize", {}), HANDSHAKE),
        (None, request(1, "tools/list", {"_meta": META}), STATELESS),
        (b"2025-11-25", request(1, "tools/list", {"_meta": META}), HANDSHAKE),
        (b" 2024-11-05 ", {}, HANDSHAKE),
        (b"2026-07-28", request(1, "initialize", {}), STATELESS),
        (b"2099-01-01", {}, STATELESS),
        (b"", {}, STATELESS),
    ],
)
def test_which_era_a_message_belongs_to(version, body, era):
    assert era_of({} if version is None else {b"mcp-protocol-version": version}, body) == era


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (-32601, 404),
        (-32602, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32700, 400),
        (-32603, 200),
        (1, 200),
    ],
)
def test_errors_have_a_status(found, status):
    assert status_of({"error": {"code": found}}) == status
    assert status_of({"result": {}}) == 200


def test_a_request_whose_headers_and_body_agree_passes():
    check_request(HEADERS, call())
    check_request({**HEADERS, b"mcp-name": b"  t\t"}, call())
    check_request({**HEADERS, b"mcp-name": wrapped("t")}, call())
    check_request({**HEADERS, b"mcp-name": wrapped("ü")}, call(name="ü"))
    check_request({**HEADERS, b"mcp-method": b"tools/list"}, request(1, "tools/list", {"_meta": META}))


@pytest.mark.parametrize("header", list(HEADERS))
@pytest.mark.parametrize("value", [None, b"", b"other", b"=?base64?dA?=", b"T", "ü".encode()])
@pytest.mark.invariant("what headers say of a request is what its body says")
def test_headers_that_disagree_are_refused(header, value):
    found = {name: text for name, text in {**HEADERS, header: value}.items() if text is not None}
    assert code(check_request, found, call()) == HEADER_MISMATCH


@pytest.mark.parametrize(
    "meta", [None, [], {}, {VERSION_KEY: "2026-07-28"}, {CAPABILITIES_KEY: {}}, {"other": 1}]
)
def test_the_envelope_is_complete(meta):
    assert code(check_request, HEADERS, call(_meta=meta)) == INVALID_PARAMS
    assert code(check_request, HEADERS, request(1, "tools/call")) == INVALID_PARAMS


def test_a_resource_is_named_by_its_address():
    found = {**HEADERS, b"mcp-method": b"resources/read", b"mcp-name": b"file:///a"}
    check_request(found, request(1, "resources/read", {"_meta": META, "uri": "file:///a"}))
    assert (
        code(check_request, found, request(1, "resources/read", {"_meta": META, "uri": "x"}))
        == HEADER_MISMATCH
    )


def test_what_nobody_speaks_says_what_is_spoken():
    with pytest.raises(RpcError) as caught:
        check_version("v9")
    assert caught.value.code == UNSUPPORTED_VERSION
    assert caught.value.data == {"supported": ["2026-07-28"], "requested": "v9"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"plain", "plain"),
        (b"  spaced ", "spaced"),
        (b"=?base64?SGVsbG8=?=", "Hello"),
        (b"=?base64??=", ""),
        (b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        (b"SGVsbG8=", "SGVsbG8="),
        (b"=?base64?SGVsbG8?=", None),
        (b"=?base64?SGVs!!!bG8=?=", None),
        (b"=?base64?SGVsbG9=?=", None),
        (b"=?base64?/w==?=", None),
    ],
)
def test_values_in_their_wrapping(value, text):
    assert decoded(value) == text


@given(st.text())
def test_every_text_survives_its_wrapping(text):
    assert decoded(wrapped(text)) == text


def schema(**properties):
    return {"type": "object", "properties": properties}


REGION = {"type": "string", "x-mcp-header": "Region"}


def test_declarations_are_found_where_properties_lead():
    found = declared(
        schema(a=REGION, b=schema(c={"type": "integer", "x-mcp-header": "C"}), d={"type": "string"})
    )
    assert {(each.path, each.header, each.kind) for each in found} == {
        (("a",), b"mcp-param-region", "string"),
        (("b", "c"), b"mcp-param-c", "integer"),
    }
    assert declared(None) == declared({}) == declared({"default": REGION}) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        schema(a={"type": "number", "x-mcp-header": "A"}),
        schema(a={"x-mcp-header": "A"}),
        schema(a={"type": ["string"], "x-mcp-header": "A"}),
        schema(a={"type": "string", "x-mcp-header": ""}),
        schema(a={"type": "string", "x-mcp-header": "a b"}),
        schema(a={"type": "string", "x-mcp-header": "a\r\nx"}),
        schema(a={"type": "string", "x-mcp-header": 7}),
        schema(a=REGION, b={"type": "string", "x-mcp-header": "REGION"}),
        schema(a={"type": "array", "items": REGION}),
        {"x-mcp-header": "A", "type": "string"},
        {"anyOf": [schema(a=REGION)]},
        {"$defs": {"a": REGION}},
        {"not": REGION},
    ],
)
def test_with_one_wrong_declaration_there_is_none(wrong):
    assert declared(wrong) == ()
    assert declared({**schema(z={"type": "string", "x-mcp-header": "Z"}), "allOf": [wrong]}) == ()


def test_deep_schemas_are_no_harm():
    deep = schema()
    for _ in range(20_000):
        deep = schema(a=deep)
    assert declared(deep) == ()


def check(kind, argument, header):
    found = {} if header is None else {b"mcp-param-p": header}
    wanted = declared(schema(p={"type": kind, "x-mcp-header": "P"}))
    check_parameters(found, wanted, {} if argument is None else {"p": argument})


@pytest.mark.parametrize(
    ("kind", "argument", "header"),
    [
        ("string", "eu", b"eu"),
        ("string", "eu", b" eu "),
        ("string", " eu", wrapped(" eu")),
        ("string", "ü", wrapped("ü")),
        ("string", None, None),
        ("boolean", True, b"true"),
        ("boolean", False, b"false"),
        ("integer", 42, b"42"),
        ("integer", 42, b"42.0"),
        ("integer", 42.0, b"42"),
        ("integer", -7, b"-7"),
        ("integer", 2**80, str(2**80).encode()),
        ("string", {"no": "header"}, None),
    ],
)
def test_parameters_that_agree(kind, argument, header):
    check(kind, argument, header)


@pytest.mark.parametrize(
    ("kind", "argument", "header"),
    [
        ("string", "eu", b"us"),
        ("string", "eu", b"EU"),
        ("string", "eu", None),
        ("string", None, b"eu"),
        ("string", "Hello", b"=?base64?SGVsbG8?="),
        ("boolean", True, b"True"),
        ("boolean", True, b"1"),
        ("integer", 42, b"42.5"),
        ("integer", 42, b"4.2e1"),
        ("integer", 1, b"true"),
        ("integer", True, b"1"),
        ("integer", 42, b""),
        ("string", {"no": "header"}, b"x"),
        ("string", [1], b"[1]"),
    ],
)
@pytest.mark.invariant(
    "a declared parameter and its header come together and are equal, or do not come at all"
)
def test_parameters_that_do_not(kind, argument, header):
    assert code(check, kind, argument, header) == HEADER_MISMATCH


@pytest.mark.parametrize("arguments", [None, [], "x", {}])
def test_arguments_that_are_none(arguments):
    wanted = declared(schema(p=REGION))
    check_parameters({}, wanted, arguments)
    assert code(check_parameters, {b"mcp-param-region": b"eu"}, wanted, arguments) == HEADER_MISMATCH
