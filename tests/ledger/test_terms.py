from checkrein.ledger.terms import terms_of


def test_a_decision_is_found_by_everything_a_person_remembers():
    data = {"project": "/p", "session": "s", "tool": "Bash", "decision": "blocked", "domains": ["a", "b"]}
    assert terms_of(data) == [
        "session:s",
        "project:/p",
        "tool:Bash",
        "decision:blocked",
        "domain:a",
        "domain:b",
    ]
