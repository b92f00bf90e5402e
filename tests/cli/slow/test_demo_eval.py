import re

from checkrein import knocking


def test_the_scene_shows_a_script_that_waits_and_goes_on_and_leaves_nothing(run, home):
    text = run("demo", "--fast")
    shown = text[text.index("in scripts a model writes") : text.index("in a conversation")]
    assert re.findall(r"^ASK *(\S+) (.*)", shown, re.MULTILINE) == [
        ("docs__add_page", "Refunds"),
        ("docs__add_page", "Everybody's passwords"),
    ]
    assert re.search(r"\? +5 +await codemode.docs__add_page", shown)
    assert "you approved docs__add_page" in shown and "you denied docs__add_page" in shown
    end = next(line for line in shown.splitlines() if line.startswith("DONE"))
    assert "Refunds: added" in end and "Everybody's passwords: elicitation_declined" in end
    assert not knocking.is_running()
    assert not (home / "state").exists()
