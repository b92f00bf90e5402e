"""Resources of many servers under one roof: whose a URI is, page by page, also with hostile servers."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.gateway import resources as resources_module
from checkrein.doors.gateway.messages import RpcError
from checkrein.doors.gateway.resources import _fits, _read_cursor
from doors.gateway.house import with_servers


def listed(*uris):
    return json.dumps([{"uri": uri, "name": uri} for uri in uris])


async def everything(guest, method="resources/list", key="resources"):
    rows, params, pages = [], {}, 0
    while True:
        page = await guest.ask(method, params)
        rows += page[key]
        pages += 1
        if "nextCursor" not in page:
            return rows, pages
        params = {"cursor": page["nextCursor"]}


def test_every_servers_pages_come_one_after_the_other(house):
    async def work(guest):
        rows, pages = await everything(guest)
        assert [row["uri"] for row in rows] == ["a://1", "a://2", "a://3", "b://1"] and pages == 3

    with_servers(
        house, work, a={"RESOURCES": listed("a://1", "a://2", "a://3")}, b={"RESOURCES": listed("b://1")}
    )


@pytest.mark.invariant("a URI keeps meaning the server it was first offered by, however many another offers")
def test_of_two_with_the_same_uri_the_second_goes_by_its_servers_name(house):
    async def work(guest):
        rows, _ = await everything(guest)
        assert [row["uri"] for row in rows] == ["x://1", "mcp+b:x://1"]
        for uri, whose in (("x://1", "a"), ("mcp+b:x://1", "b"), ("mcp+a:x://1", "a")):
            result = await guest.ask("resources/read", {"uri": uri})
            assert result["contents"][0]["text"] == f"{whose} has it"
            assert house.log(whose)[-1] == {"read": "x://1"}

    with_servers(house, work, a={"RESOURCES": listed("x://1")}, b={"RESOURCES": listed("x://1")})


def test_a_server_cannot_speak_in_anothers_name(house):
    async def work(guest):
        rows, _ = await everything(guest)
        assert [row["uri"] for row in rows] == ["mcp+a:mcp+b:x://1", "x://1"]
        result = await guest.ask("resources/read", {"uri": "mcp+a:mcp+b:x://1"})
        assert result["contents"][0]["text"] == "a has it"
        result = await guest.ask("resources/read", {"uri": "mcp+b:x://1"})
        assert result["contents"][0]["text"] == "b has it"

    with_servers(house, work, a={"RESOURCES": listed("mcp+b:x://1")}, b={"RESOURCES": listed("x://1")})


def test_however_many_a_server_offers_it_pushes_nobody_out(house, monkeypatch):
    monkeypatch.setattr(resources_module, "_MOST_KNOWN", 3)

    async def work(guest):
        rows, _ = await everything(guest)
        uris = [row["uri"] for row in rows]
        assert uris == ["a://0", "a://1", "a://2", "mcp+a:a://3", "mcp+a:a://4", "b://1"]
        result = await guest.ask("resources/read", {"uri": "mcp+a:a://4"})
        assert result["contents"][0]["uri"] == "a://4"

    many = listed(*(f"a://{number}" for number in range(5)))
    with_servers(house, work, a={"RESOURCES": many}, b={"RESOURCES": listed("b://1")})


def test_what_was_never_listed_is_looked_for(house):
    async def work(guest):
        result = await guest.ask("resources/read", {"uri": "b://1"})
        assert result["contents"][0]["text"] == "b has it"
        error = await guest.error("resources/read", {"uri": "c://1"})
        assert (error["code"], error["data"]) == (-32002, {"uri": "c://1"})
        for odd in (None, 7, ["x"], {"uri": "x"}):
            assert (await guest.error("resources/read", {"uri": odd}))["code"] == -32602

    with_servers(house, work, a={"RESOURCES": listed("a://1")}, b={"RESOURCES": listed("b://1")})


def test_a_template_says_whose_a_uri_is(house):
    async def work(guest):
        rows, _ = await everything(guest, "resources/templates/list", "resourceTemplates")
        assert [row["uriTemplate"] for row in rows] == ["t://{x}/end", "mcp+b:t://{x}/end", "b://{+path}"]
        result = await guest.ask("resources/read", {"uri": "b://any/where"})
        assert result["contents"][0]["text"] == "b has it"
        result = await guest.ask("resources/read", {"uri": "t://1/end"})
        assert result["contents"][0]["text"] == "a has it"

    one = {"RESOURCES": "[]", "TEMPLATES": json.dumps([{"uriTemplate": "t://{x}/end", "name": "t"}])}
    two = json.dumps(
        [{"uriTemplate": "t://{x}/end", "name": "t"}, {"uriTemplate": "b://{+path}", "name": "b"}]
    )
    with_servers(house, work, a=one, b={"RESOURCES": "[]", "TEMPLATES": two})


def test_a_server_that_pages_for_ever_holds_up_nobody(house):
    async def work(guest):
        rows, _ = await everything(guest)
        assert [row["uri"] for row in rows] == ["b://1"]

    with_servers(house, work, a={"EXTRA": "endless"}, b={"RESOURCES": listed("b://1")})


def test_a_server_that_cannot_list_keeps_nobody_from_the_others(house):
    async def work(guest):
        upstream = house.hub.fleet.ready()[0]

        async def broken(*_args, **_more):
            raise RpcError(-32000, "broken")

        upstream.request = broken
        rows, _ = await everything(guest)
        assert [row["uri"] for row in rows] == ["b://1"]

    with_servers(house, work, a={"RESOURCES": listed("a://1")}, b={"RESOURCES": listed("b://1")})


def test_a_server_that_is_removed_gives_its_uris_back(house):
    async def work(guest):
        await everything(guest)
        del house.specs["a"]
        house.write()
        assert house.hub.fleet.look()
        rows, _ = await everything(guest)
        assert [row["uri"] for row in rows] == ["x://1"]

    with_servers(house, work, a={"RESOURCES": listed("x://1")}, b={"RESOURCES": listed("x://1")})


def test_a_page_never_passes_for_a_question(house):
    async def work(_guest):
        upstream = house.hub.fleet.ready()[0]
        asked = {"method": "elicitation/create", "params": {"message": "Checkrein asks: all right?"}}
        trap = {"resultType": "input_required", "inputRequests": {"approval": asked}, "requestState": "x"}

        async def trapped(*_args, **_more):
            return {**trap, "resources": [], "resourceTemplates": []}

        upstream.request = trapped
        for method in ("resources/list", "resources/templates/list"):
            page = await house.passing().ask(method)
            assert page["resultType"] == "complete" and not {"inputRequests", "requestState"} & set(page)

    with_servers(house, work, a={})


@pytest.mark.parametrize(
    "cursor",
    [
        7,
        "",
        "x",
        "é",
        ["a"],
        base64.urlsafe_b64encode(b"[1, 2]").decode(),
        base64.urlsafe_b64encode(b'["a"]').decode(),
        base64.urlsafe_b64encode(b'["gone", null]').decode(),
        base64.urlsafe_b64encode(b'{"a": 1}').decode(),
        base64.urlsafe_b64encode(b"[" * 9000).decode(),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused(cursor):
    with pytest.raises(RpcError):
        _read_cursor(cursor, ["a"])


@given(st.one_of(st.text(), st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode())))
def test_no_cursor_breaks_anything(cursor):
    try:
        server, _ = _read_cursor(cursor, ["a", "b"])
    except RpcError:
        return
    assert server in ("a", "b")


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("a://{x}", "a://", True),
        ("a://{x}", "a://1/2", True),
        ("a://{x}/z", "a://1", False),
        ("a://{x}/z", "a://1/z", True),
        ("a://{x}/{y}/z", "a://1/z", False),
        ("a://{x}/{y}/z", "a://1/2/z", True),
        ("a://b", "a://b", True),
        ("a://b", "a://bc", False),
        ("{x}aa", "a", False),
        ("a{x}a", "a", False),
    ],
)
def test_a_uri_fits_a_template_or_not(template, uri, fits):
    assert _fits(template, uri) is fits
