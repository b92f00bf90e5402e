"""Why a call did not run, on its line: what was said to it, not why somebody was asked."""

import pytest

from checkrein.cli.chat_screen import Screen


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            {"reason": "This door asks.", "error": "A person refused this call. They said: no"},
            "refused: A person refused this call. They said: no",
        ),
        (
            {"reason": "Rule r says deny.", "error": "Refused. Rule r says deny."},
            "refused: Rule r says deny.",
        ),
        ({"reason": "Rule r says deny.", "error": ""}, "refused: Rule r says deny."),
        ({"error": "no \x1b[31m\nreally"}, "refused: no \\x1b[31m really"),
    ],
)
def test_the_answer_is_shown(call, line, capsys):
    Screen().result({"status": "denied", **call})
    assert capsys.readouterr().out.strip() == line
