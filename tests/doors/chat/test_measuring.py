import pytest

from checkrein.errors import InputError, NotFoundError


def test_the_gauge_counts_what_is_sent_and_what_is_being_typed(talk):
    before = talk.chat.tokens(session=talk.id)
    talk.finish("/say one two three four five six seven eight nine ten")
    after = talk.chat.tokens(session=talk.id)
    typed = talk.chat.tokens(session=talk.id, input="and eleven, twelve, thirteen")
    assert after["breakdown"]["messages"] > before["breakdown"]["messages"]
    assert typed["used"] - after["used"] == typed["breakdown"]["input"] > 0
    assert after["used"] == sum(after["breakdown"].values())
    assert after["limit"] == 32_000
    assert after["band"] == "green"


def test_the_gauge_is_the_picked_model_s(talk):
    assert talk.chat.tokens(session=talk.id, model="demo/demo")["model"] == "demo"
    with pytest.raises((InputError, NotFoundError)):
        talk.chat.tokens(session=talk.id, model="nobody/nothing")


def test_tools_that_are_off_take_no_room(talk):
    on = talk.chat.tokens(session=talk.id)["breakdown"]["tools"]
    servers = {each["server"] for each in talk.chat.tools(session=talk.id)}
    talk.chat.update(id=talk.id, tools_off=sorted(servers))
    assert on > 0
    assert talk.chat.tokens(session=talk.id)["breakdown"]["tools"] == 0


def test_the_preview_says_what_compressing_then_does(talk):
    for number in range(4):
        talk.finish(f"/say fact {number} " + "word " * 40)
    plan = talk.chat.preview(session=talk.id, retention=0)
    found = talk.chat.compress(session=talk.id, retention=0)
    assert plan["compressed"] and found["compressed"]
    assert len(plan["summarised"]) == found["summarised"]
    assert found["new_tokens"] < found["original_tokens"] == plan["tokens_before"]
    assert talk.chat.tokens(session=talk.id)["breakdown"]["summary"] > 0


def test_nothing_to_compress_is_said_and_changes_nothing(talk):
    talk.finish("/say hello")
    found = talk.chat.compress(session=talk.id)
    assert not found["compressed"] and not found["failed"]
    assert "nothing to summarise" in found["reason"]
    assert talk.chat.session(id=talk.id)["snapshot"] is None
