"""Valid JSON that cannot be read: every call still gets its answer, at once, with its own id."""

import asyncio
import json

import pytest

from checkrein.doors.gateway.json_fallback import DEEPEST, NOT_UNICODE, TOO_DEEP, TOO_LARGE
from checkrein.doors.gateway.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    UnreadableError,
    decode,
    decode_from_server,
    encode,
)
from doors.gateway.house import SERVER, told

HUGE, DEEP = "1" * 5001, "[" * 5000 + "]" * 5000
UNREADABLE = {
    "1e400": TOO_LARGE,
    HUGE: TOO_LARGE,
    DEEP: TOO_DEEP,
    '{"a":' * 5000 + "1" + "}" * 5000: TOO_DEEP,
}
IDS = ["infinite", "digits", "lists", "objects"]
CUT = '"cut \\ud83d"'
# A server whose tool `odd` answers with JSON as it is given.
RAW = SERVER.replace(
    'put({"id": number, "result": [1, 2, 3]})',
    """print('{"jsonrpc":"2.0","result":%s,"id":%d}' % (arguments["raw"], number), flush=True)""",
)


def content(value):
    return f'{{"content": [{{"type": "text", "text": {CUT}}}], "own": {value}}}'


def run(house, work, **more):
    async def main():
        house.server(source=RAW, **more)
        async with house.opened():
            await work(await house.guest())

    asyncio.run(main())


@pytest.mark.invariant("an answer that cannot be read ends its call at once, as a failure that says why")
@pytest.mark.parametrize(("value", "fault"), UNREADABLE.items(), ids=IDS)
def test_an_answer_that_cannot_be_read_fails_its_call_and_says_why(house, add, value, fault):
    async def work(guest):
        error = await guest.error("tools/call", {"name": "srv__odd", "arguments": {"raw": content(value)}})
        text = f"The server's answer holds {fault}."
        assert (error["code"], error["message"]) == (INTERNAL_ERROR, text)
        entry = await house.last()
        assert entry.result == "failure" and text in json.dumps(entry.output)
        assert told(await guest.call("srv__echo")) == "said {}"
        assert house.hub.fleet.keeper("srv").status()["restarts"] == 0

    add("allow", "*")
    run(house, work)


def test_text_that_is_not_unicode_goes_on_unchanged(house, add):
    async def work(guest):
        for raw in (content("1.5"), f'{{"isError": true, "content": [], "\\ude00": [{CUT}]}}'):
            answer = await guest.raw("tools/call", {"name": "srv__odd", "arguments": {"raw": raw}})
            assert answer["result"].items() >= json.loads(raw).items()
            assert json.loads(encode(answer)) == answer and b"\\ud83d" in encode(answer)
        later, first = (await house.recorded())[:2]
        assert (first.result, later.result) == ("success", "failure")

    add("allow", "*")
    run(house, work)
    assert not [each for each in house.said if "could not" in each]


def test_what_is_nested_as_deep_as_is_promised_goes_on(house, add):
    deep = "[" * DEEPEST + CUT + "]" * DEEPEST

    async def work(guest):
        result = await guest.call("srv__odd", {"raw": f'{{"own": {deep}}}'})
        assert encode(result["own"]) == deep.encode()

    add("allow", "*")
    run(house, work)


def test_a_guest_and_a_script_are_given_text(visitor):
    visitor.house.server(source=RAW, trusted=True)
    visitor.open()

    async def main():
        came = await visitor.made("odd", {"raw": content("1")})
        assert (came.kind, came.text) == ("result", "cut \ufffd")
        assert came.content["content"][0]["text"] == "cut \ufffd"
        came = await visitor.made("odd", {"raw": content("1e400")})
        assert (came.kind, came.text) == ("error", f"The server's answer holds {TOO_LARGE}.")

    asyncio.run(main())


def test_what_a_server_says_of_itself_is_read_as_text(house):
    source = (
        SERVER.replace('"It does " + name', r'"\ud83d does " + name')
        .replace('"version": "1"}', r'"version": "\ud83d"}')
        .replace('os.environ.get("SAYS", "")', r'"Be \ud83d."')
    )

    async def main():
        house.server(source=source)
        async with house.opened() as hub:
            guest = await house.guest()
            assert hub.fleet.keeper("srv").status()["info"]["version"] == "\ufffd"
            assert "Be \ufffd." in guest.greeting["instructions"]
            tools = (await guest.ask("tools/list"))["tools"]
            assert "\ufffd does echo" in [each["description"] for each in tools]

    asyncio.run(main())


# -- what servers send by themselves -----------------------------------------------------------------------


@pytest.mark.parametrize("value", UNREADABLE, ids=IDS)
def test_a_request_of_a_server_is_refused_by_its_id_and_a_notification_dropped(value):
    sent = []
    asked = f'{{"jsonrpc":"2.0","id":"s1","method":"roots/list","params":{{"x":{value}}}}}'
    assert decode_from_server(asked.encode(), sent.append) is None
    (answer,) = sent
    assert (answer["id"], answer["error"]["code"]) == ("s1", INVALID_PARAMS)
    told = f'{{"jsonrpc":"2.0","method":"notifications/x","params":{{"x":{value}}}}}'
    assert decode_from_server(told.encode(), sent.append) is None and len(sent) == 1


def test_what_a_server_says_besides_results_is_made_text():
    error = f'{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":{CUT}}}}}'
    found = decode_from_server(error.encode(), pytest.fail)
    assert found["error"] == {"code": 1, "message": "cut \ufffd"}
    told = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{CUT}}}}}'
    assert decode_from_server(told.encode(), pytest.fail)["params"] == {"data": "cut \ufffd"}


# -- what clients send -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "fault"), [*UNREADABLE.items(), (CUT, NOT_UNICODE)], ids=[*IDS, "cut"])
@pytest.mark.parametrize("known", ["7", '"k"', "12345678901234567890123"])
def test_a_request_that_cannot_be_read_keeps_its_id(value, fault, known):
    raw = f'{{"jsonrpc":"2.0","method":"tools/call","params":{{"x":{value}}},"id":{known}}}'
    with pytest.raises(UnreadableError) as found:
        decode(raw.encode())
    answer = found.value.answer
    assert answer["id"] == json.loads(known) and answer["error"]["code"] == INVALID_PARAMS
    assert answer["error"]["message"] == f"This request holds {fault}."


@pytest.mark.parametrize("known", ["1e400", HUGE, DEEP, "null", "true", "1.5"])
def test_an_id_that_is_none_is_no_id(known):
    raw = f'{{"jsonrpc":"2.0","method":"x","params":{{"x":1e400}},"id":{known}}}'
    with pytest.raises(Exception, match="An id is a text or a whole number") as found:
        decode(raw.encode())
    assert found.value.id is None and not isinstance(found.value, UnreadableError)


@pytest.mark.parametrize(
    "raw",
    [
        '[{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":1e400}}]',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":1e400}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":[1e400}}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":NaN}}',
        '"\\ud83d"',
    ],
)
def test_what_is_no_message_stays_no_json(raw):
    with pytest.raises(Exception, match="This is not JSON") as found:
        decode(raw.encode())
    assert not isinstance(found.value, UnreadableError)


def test_an_answer_of_a_client_counts_as_an_answer_or_as_an_error():
    def answer(value):
        with pytest.raises(UnreadableError) as found:
            decode(f'{{"jsonrpc":"2.0","id":"q","result":{{"x":{value}}}}}'.encode())
        return found.value.answer

    assert answer(CUT)["result"] == {"x": "cut \ufffd"}
    assert answer("1e400")["error"]["message"] == f"This answer holds {TOO_LARGE}."
    assert answer(DEEP)["id"] == "q"


def test_a_message_without_a_name_is_a_request_all_the_same():
    with pytest.raises(UnreadableError) as found:
        decode(b'{"jsonrpc":"2.0","id":1,"method":"","params":{"x":1e400}}')
    assert found.value.asks and not found.value.responds
