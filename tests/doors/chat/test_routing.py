"""Which model answers: the picked one, or the persona's; and who takes over."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.chat.routing import choose, hand_up
from checkrein.policy.router import PERSONAS
from checkrein.settings import Chat, Settings

MODEL = Settings().model
NAMES = [each.name for each in PERSONAS]
EACH = Chat(routing="on", model="usual", **{name: f"a/{name}" for name in NAMES})


@given(st.text(max_size=200), st.text(min_size=1, max_size=20))
def test_the_picked_model_answers_whatever_is_said(text, picked):
    choice = choose(text, picked, EACH, MODEL)
    assert (choice.ref, choice.persona) == (picked, "")


@given(st.text(max_size=200))
def test_with_routing_off_it_is_the_usual_one(text):
    assert choose(text, "", Chat(model="usual"), MODEL).ref == "usual"
    assert choose(text, "", Chat(), MODEL).ref == ""


@given(st.text(max_size=200))
def test_with_routing_on_it_is_the_persona_s_with_a_reason(text):
    choice = choose(text, "", EACH, MODEL)
    assert choice.persona in NAMES
    assert choice.ref == f"a/{choice.persona}"
    assert choice.reason


def test_a_persona_without_a_model_has_the_usual_one():
    choice = choose("fix the typo", "", Chat(routing="on", model="usual"), MODEL)
    assert choice.ref == "usual"


def test_who_takes_over_has_another_model_and_above_the_last_is_the_user():
    for name in NAMES:
        asked, at = [f"a/{name}"], name
        while (found := hand_up(at, EACH)) != "user":
            assert found.ref not in asked
            asked.append(found.ref)
            at = found.persona
            assert f"from {asked[-2][2:]}" in found.reason
    assert all(hand_up(name, Chat(routing="on", model="one")) == "user" for name in NAMES)
    same = msgspec.structs.replace(EACH, **dict.fromkeys(NAMES, "a/same"))
    assert all(hand_up(name, same) == "user" for name in NAMES)
