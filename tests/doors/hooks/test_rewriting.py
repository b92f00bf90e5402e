"""A call that runs with other arguments than it was judged with is still the same call."""

from doors.hooks.agent import later, question


def test_an_edited_call_without_an_id_is_known_by_what_ran(agent):
    def send(event, mode, command, **more):
        given = {"tool_name": "run_shell_command", "tool_input": {"command": command}}
        return agent.send(event, mode, agent="gemini-cli", **given, **more)

    with agent.pipeline.broker.attending():
        thread = later(lambda: send("BeforeTool", "gate", "make release"))
        edited = {"command": "make check"}
        agent.pipeline.answer(
            question(agent).entry, "approved", actor="ada", channel="terminal", edited=edited
        )
        thread.join(10)
    send("AfterTool", "tell", "make check", tool_response={"llmContent": "Output: x\nProcess Group PGID: 7"})
    assert "unjudged" not in agent.kinds()
    assert [each.result for each in agent.entries()] == ["success"]
