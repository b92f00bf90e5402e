"""Discovery: what a profile could ever allow, found by what it does."""

from doors.gateway.scripts.bench import run


async def structured(guest, name, **arguments):
    result = await guest.call(name, arguments)
    assert not result.get("isError"), result
    return result["structuredContent"], result["content"][0]["text"]


def test_tools_are_found_by_their_words(bench):
    async def work():
        guest = await bench.house.guest()
        found, text = await structured(guest, "search_tools", query="read notes", limit=1)
        assert found["tools"] == ["srv__read_notes"] and "srv__read_notes(" in text
        _, brief = await structured(guest, "search_tools", query="echo", detail="brief", limit=1)
        assert brief == "srv__echo: It does echo"
        _, python = await structured(guest, "search_tools", query="echo", language="python", limit=1)
        assert "async def srv__echo" in python
        nothing, text = await structured(guest, "search_tools", query="zzzz")
        assert nothing["tools"] == [] and text == "No tool was found."

    run(bench, work)


def test_what_a_profile_never_allows_is_not_shown(bench, add):
    async def work():
        guest = await bench.house.guest()
        found, _ = await structured(guest, "search_tools", query="delete_all", profile="safe")
        assert "srv__delete_all" not in found["tools"]
        found, _ = await structured(guest, "search_tools", query="delete_all", profile="free")
        assert found["tools"][0] == "srv__delete_all"
        found, _ = await structured(guest, "get_tools", names=["srv__delete_all"], profile="supervised")
        assert found == {"tools": [], "unknown": ["srv__delete_all"]}
        # A rule that comes meanwhile counts too.
        add("deny", "echo")
        found, _ = await structured(guest, "get_tools", names=["srv__echo", "srv__strict", "nobody"])
        assert found == {"tools": ["srv__strict"], "unknown": ["srv__echo", "nobody"]}

    run(bench, work)


def test_all_tools_are_listed_page_by_page(bench):
    async def work():
        guest = await bench.house.guest()
        whole, _ = await structured(guest, "get_tools", pageSize=200)
        assert "nextCursor" not in whole and len(whole["tools"]) > 3
        found, cursor = [], {}
        while True:
            page, text = await structured(guest, "get_tools", pageSize=2, **cursor)
            assert len(page["tools"]) <= 2 and page["tools"][0] in text
            found += page["tools"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert found == whole["tools"] == sorted(found)

    run(bench, work)


def test_a_tool_that_asks_says_so(bench):
    async def work():
        guest = await bench.house.guest()
        _, text = await structured(guest, "get_tools", names=["srv__echo"], profile="supervised")
        assert "asks" in text
        _, text = await structured(guest, "get_tools", names=["srv__echo", "srv__echo"])
        assert "asks" not in text and text.count("srv__echo(") == 1

    run(bench, work)


def test_odd_questions_are_answered_in_words(bench):
    async def work():
        guest = await bench.house.guest()
        for name, arguments in (
            ("search_tools", {}),
            ("search_tools", {"query": 7}),
            ("search_tools", {"query": "x", "limit": 0}),
            ("search_tools", {"query": "x", "detail": "everything"}),
            ("get_tools", {"names": "srv__echo"}),
            ("resume_run", {}),
            ("resume_run", {"run_id": "nobody's"}),
            ("eval", {}),
            ("eval", {"code": 1}),
            ("eval", {"code": "1", "language": "cobol"}),
        ):
            assert (await guest.call(name, arguments))["isError"], (name, arguments)

    run(bench, work)
