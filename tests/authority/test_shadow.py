import pytest

from checkrein.errors import InputError

DENY = {"action": "deny", "tool": "Bash"}


def test_a_rule_set_is_tried_and_nothing_recorded(do, question, recorded, project):
    entry = question()
    found = do("shadow.try", rules=[DENY], last=10)
    (change,) = found["changes"]
    assert (change["entry"], change["before"], change["after"]) == (entry, "ask", "deny")
    assert change["rule"] == "tried#1"
    assert (found["calls"], found["counts"]) == (1, {"ask to deny": 1})
    assert recorded("rule_changed") == []
    assert do("shadow.try", rules=[DENY], project=project)["calls"] == 1
    assert do("shadow.try", rules=[DENY], project="/elsewhere")["calls"] == 0


@pytest.mark.parametrize(
    "params",
    [
        {"rules": "x"},
        {"rules": [], "last": "x"},
        {"rules": [], "surprise": 1},
        {"rules": [], "last": 10_001},
    ],
)
def test_what_cannot_be_understood_is_refused(do, params):
    with pytest.raises(InputError):
        do("shadow.try", **params)


def test_stored_rules_can_be_tried_beside_the_files(do, question, user_settings):
    question()
    user_settings('[[rules]]\naction = "deny"\ntool = "Bash"')
    assert do("shadow.try", rules=[], replacing="stored")["changes"] == []
    assert len(do("shadow.try", rules=[])["changes"]) == 1


def test_without_rules_it_says_what_yours_are_good_for(do, question, user_settings):
    question()
    user_settings('[[rules]]\naction = "allow"\ntool = "Bash"')
    assert do("shadow.try")["sentence"] == "1 call would ask."
