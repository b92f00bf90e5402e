"""What a conversation can use."""


def test_tools_are_shown_with_what_the_rules_say(talk, rules):
    rules.add("allow", "get")
    rules.add("deny", "put", reason="not here")
    talk.chat.update(id=talk.id, tools_off=["notes__get"])
    (server,) = talk.chat.tools(session=talk.id)
    found = {each["tool"]: each for each in server["tools"]}
    assert server["on"] is True
    assert (found["get"]["policy"], found["get"]["on"]) == ("allow", False)
    assert (found["put"]["policy"], found["put"]["on"]) == ("deny", True)
    assert "not here" in found["put"]["why"]
    assert found["put"]["schema"] == {"type": "object"}


def test_models_come_with_their_limits(talk):
    (demo,) = talk.chat.models()
    assert demo["ref"] == "demo/demo"
    assert demo["input"] > 1000
    assert demo["default"] is True
