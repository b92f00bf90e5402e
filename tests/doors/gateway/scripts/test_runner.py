"""Scripts from their first call to their end, through a real gateway."""

import pytest

from doors.gateway.scripts.bench import evaluate, failure, outcome, run

BOTH = pytest.mark.parametrize("language", ["javascript", "python"])
CALL = {
    "javascript": 'const r = await codemode.srv__echo({x: 1}); return r.content[0].text;',
    "python": 'r = await codemode.srv__echo(x=1)\nr["content"][0]["text"]',
}


@BOTH
def test_a_script_calls_a_tool_and_returns_what_it_made_of_it(bench, language):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, CALL[language], language=language)
        assert outcome(result) == 'said {"x": 1}'
        assert result["structuredContent"]["calls"] == [
            {"tool": "srv__echo", "line": 1, "verdict": "allow", "state": "done"}
        ]
        last = await bench.house.last()
        assert (last.door, last.verdict, last.result) == ("eval", "allow", "success")

    run(bench, work)


CATCH = {
    "javascript": """
try { await codemode.srv__delete_all({}); } catch (e) {
  return [e instanceof ToolCallDeniedError, e.name, e.toolName, e.reason]; }""",
    "python": """
try:
    await codemode.srv__delete_all()
except PermissionError as e:
    result = str(e)
result""",
}


@BOTH
def test_a_refused_call_is_an_error_the_script_can_catch(bench, language):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, CATCH[language], "codemode_eval_safe", language=language)
        wanted = {
            "javascript": [True, "ToolCallDeniedError", "srv__delete_all", "denied"],
            "python": "ToolCallDenied: srv__delete_all: denied",
        }
        assert outcome(result) == wanted[language]
        assert bench.house.ran("delete_all") == []

    run(bench, work)
