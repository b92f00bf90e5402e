import pytest

from checkrein.policy.tasks import route_text, task_of
from checkrein.settings import Model


@pytest.mark.parametrize(
    ("text", "persona"),
    [
        ("Search for the option's name", "worker"),
        ("Summarise what it said", "reporter"),
        ("Summary of last week, please", "reporter"),
        ("Write a parser", "analyst"),
        ("Decide whether we keep it", "architect"),
        ("Move src/a/x.py, src/b/y.py and docs/z.md", "architect"),
    ],
)
def test_a_text_names_its_persona(text, persona):
    assert route_text(text, None, Model()).persona.name == persona


def test_little_trust_calls_for_the_architect():
    assert route_text("Search for it", 0.3, Model()).persona.name == "architect"
    assert route_text("Search for it", 0.5, Model()).persona.name == "worker"


def test_the_threshold_of_decisions_is_a_setting():
    assert route_text("Which? Why?", None, Model(opus_aot_threshold=3)).persona.name == "analyst"


def test_a_text_without_a_known_word_is_no_special_task():
    assert task_of("Guten Morgen") == ""
