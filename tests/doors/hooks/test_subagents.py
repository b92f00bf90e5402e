"""Sub-agents get a model for their task, and nobody is left above the user."""

from doors.hooks.agent import said


def agent_call(agent, call, **arguments):
    return agent.call(tool="Agent", call=call, arguments={"prompt": "look around", **arguments})


def test_a_sub_agent_gets_the_routed_model(agent):
    answer = agent_call(agent, "a1")
    updated = answer[0]["hookSpecificOutput"]["updatedInput"]
    assert updated == {"prompt": "look around", "model": "opus"}
    assert "routed" in agent.kinds()


def test_a_model_the_agent_chose_itself_stays(agent):
    answer = agent_call(agent, "a1", model="haiku")
    assert "updatedInput" not in answer[0]["hookSpecificOutput"]


def test_failures_in_a_row_end_at_the_user(agent):
    arguments = {"prompt": "look around"}
    for number in range(6):
        agent_call(agent, f"a{number}")
        agent.done(tool="Agent", call=f"a{number}", arguments=arguments)
    models = []
    for number in range(3):
        answer = agent_call(agent, f"b{number}")
        models.append(answer[0]["hookSpecificOutput"].get("updatedInput", {}).get("model"))
        failed = {"tool_name": "Agent", "tool_input": arguments, "tool_use_id": f"b{number}"}
        agent.send("PostToolUseFailure", **failed, error="it gave up", is_interrupt=False)
    assert models == ["sonnet", "opus", None]
    assert said(answer) == "deny"
    assert agent.entries()[-1].stage == "hold"
    assert "in a row" in agent.entries()[-1].reasons[0]
