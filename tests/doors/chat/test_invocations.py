"""The calls of a message: how many are made, and how what came of them is told."""

import base64

from chat_ground import Came, Rules, calls, says, text_result, told, tool
from checkrein.doors.chat.invocations import MOST_CALLS

PUT = '/call notes__put {"a": 1}'
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


def test_a_result_nobody_vouches_for_is_told_before_the_model_reads_it(talking):
    talk = talking(tool("web__read", trusted=False), tool("notes__get"))
    for server in ("web", "notes"):
        Rules(talk.pipeline).add("allow", "*", server)
    talk.finish("/call notes__get {}", "/then", "/call web__read {}", "/then", "/say Read.")
    marks = [each["session"]["tainted_by"] for each in told(talk, "session")]
    assert marks == ["", "web", "web"]
    kinds = talk.kinds()
    assert kinds[kinds.index("session", kinds.index("tool_result")) :].count("started") == 1
    talk.check()


def test_of_a_thousand_calls_at_once_the_first_few_are_looked_at(talk, rules):
    rules.add("allow", "put")
    talk.models.acts = [calls(*(("notes__put", f'{{"n": {n}}}', f"c{n}") for n in range(1000))), says("ok")]
    assert talk.finish("go") == "end"
    assert len(talk.tools.ran) == MOST_CALLS
    results = talk.models.results()
    assert len(results) == 1000, "every call has its answer"
    assert "at most 64" in results["c999"].content
    assert any("1000 calls at once" in each["text"] for each in told(talk, "notice"))
    talk.check()


def test_a_result_of_sixteen_megabytes_is_cut_for_the_model_and_blocks_nobody(talk, rules):
    async def huge(_call, _progress):
        return text_result("x" * 16_000_000)

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = huge
    assert talk.finish(PUT, "/then", "/say done") == "end"
    (told_it,) = talk.models.results().values()
    assert len(told_it.content) < 250_000
    assert "The rest is left out" in told_it.content
    talk.check()


def test_pictures_that_are_none_do_not_spoil_the_conversation(talk, rules):
    async def pictures(_call, _progress):
        items = [
            {"type": "image", "data": PNG, "mimeType": "application/x-evil"},
            {"type": "image", "data": base64.b64encode(b"no picture").decode(), "mimeType": "image/png"},
            {"type": "image", "data": 5},
        ]
        return Came(content={"content": items})

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = pictures
    assert talk.finish(PUT, "/then", "/say done") == "end"
    (result,) = talk.models.results().values()
    text, picture = result.content
    assert "image/png" in text
    assert picture.media_type == "image/png"
    talk.check()


def test_a_result_is_counted_as_it_is_sent(talk, rules):
    """Its text once and its pictures as pictures: not their letters, and not what was cut."""

    async def shows(_call, _progress):
        picture = base64.b64encode(base64.b64decode(PNG) + bytes(400_000)).decode()
        items = [{"type": "text", "text": "word and " * 300_000}, {"type": "image", "data": picture}]
        return Came(content={"content": items})

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = shows
    assert talk.finish(PUT, "/then", "/say done") == "end"
    (result,) = talk.models.results().values()
    assert len(result.content) == 2
    assert talk.chat.tokens(session=talk.id)["used"] < 60_000


def test_a_call_is_written_down_once_however_often_its_message_is_looked_at(talk, rules):
    rules.add("allow", "put")
    talk.models.acts = [calls(("notes__put", "{}", "c1")), says("done")]
    assert talk.finish("go") == "end"
    message = next(each for each in talk.messages() if each["parts"][0]["kind"] == "tool_invocation")
    agent, sessions = talk.chat._agent, talk.chat._sessions
    run = sessions.get_run(message["run"])
    again = talk.chat._do(agent._invocations.written(run, sessions.message(message["id"])))
    assert [(each.call_id, each.status) for each in again] == [("c1", "completed")]
    assert len(talk.tools.ran) == len(sessions.calls_of(run.id)) == 1
