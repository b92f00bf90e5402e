import re
from pathlib import Path

import pytest


def order(text):
    return re.findall(r'data-rule="([^"]+)"', text)


@pytest.fixture
def rules(visitor):
    made = [
        visitor.console.desk.ask("rule.add", rule={"action": "ask", "tool": tool})["id"]
        for tool in ("Bash", "Edit", "Write")
    ]
    assert order(visitor.get("/policy").text) == made
    return made


def test_a_rule_is_added_changed_and_removed(visitor):
    fields = {"action": "deny", "tool": "Bash", "when": '{"path": "command", "contains": "rm"}', "uses": "3"}
    assert visitor.post("/policy/add", fields | {"expires_at": "2h", "reason": "careful"}).status == 303
    text = visitor.get("/policy").text
    [made] = order(text)
    assert "careful" in text
    assert "3 uses left" in text
    form = visitor.get(f"/policy/rule/{made}").text
    assert f"Change {made}" in form
    assert "&#34;contains&#34;: &#34;rm&#34;" in form
    assert visitor.post(f"/policy/rule/{made}/edit", {"action": "ask", "pattern": "Ba*"}).status == 303
    text = visitor.get("/policy").text
    assert "Ba*" in text
    assert "careful" not in text
    assert visitor.post(f"/policy/rule/{made}/remove").status == 303
    assert order(visitor.get("/policy").text) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "deny"},
        {"action": "deny", "tool": "a", "pattern": "b"},
        {"action": "maybe", "tool": "a"},
        {"action": "deny", "tool": "a", "when": "{"},
        {"action": "deny", "tool": "a", "when": "7"},
        {"action": "deny", "tool": "a", "when": '[{"path": "x", "near": 1}]'},
        {"action": "deny", "tool": "a", "uses": "many"},
        {"action": "deny", "tool": "a", "expires_at": "someday"},
    ],
)
def test_a_rule_that_cannot_be_right_comes_back_with_why(visitor, fields):
    answer = visitor.post("/policy/add", fields)
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert "Add a rule" in answer.text
    assert order(visitor.get("/policy").text) == []


def test_rules_move_up_and_down(visitor, rules):
    first, second, third = rules
    assert visitor.post(f"/policy/rule/{third}/move", {"before": second}).status == 303
    assert order(visitor.get("/policy").text) == [first, third, second]
    assert visitor.post(f"/policy/rule/{first}/move", {"after": second}).status == 303
    assert order(visitor.get("/policy").text) == [third, second, first]
    assert visitor.post(f"/policy/rule/{first}/move").status == 400


def test_lint_speaks_in_place(visitor):
    for _ in range(2):
        visitor.post("/policy/add", {"action": "deny", "tool": "Bash"})
    assert "Note: it adds nothing" in visitor.get("/policy").text
    assert 'class="lint"' in visitor.get("/policy").text


def test_a_rule_is_tried_before_it_counts(visitor, work):
    work(3)
    answer = visitor.post("/policy/try", {"action": "deny", "tool": "Read"})
    assert answer.status == 200
    assert "On the last 3 calls" in answer.text
    assert answer.text.count('<span class="word deny">deny</span>') == 3
    harmless = visitor.post("/policy/try", {"action": "deny", "tool": "Nothing"})
    assert '<span class="word deny">deny</span>' not in harmless.text
    assert order(visitor.get("/policy").text) == []
    assert visitor.post("/policy/try", {"action": "deny"}).status == 400


def test_phases_are_switched_and_forgotten(visitor, project, pipeline, work):
    assert visitor.post("/policy/phase", {"name": "planning", "project": project}).status == 303
    assert pipeline.phase_of(project, "") == "planning"
    assert (
        visitor.post("/policy/phase", {"name": "auditing", "session": "s1", "back": "sessions"}).status == 303
    )
    assert pipeline.phase_of(project, "s1") == "auditing"
    assert visitor.post("/policy/phase", {"name": "", "session": "s1"}).status == 303
    assert pipeline.phase_of(project, "s1") == "planning"
    assert visitor.post("/policy/phase", {"name": "dreaming"}).status == 400


def test_grants_are_listed_and_revoked(visitor, ask):
    waiter = ask()
    visitor.post(
        f"/inbox/answer/{waiter.entry}", {"answer": "approved", "remember": "exact", "for": "always"}
    )
    waiter.answer()
    text = visitor.get("/policy").text
    assert "exactly this call" in text
    grant = re.search(r"/policy/grant/([^/]+)/revoke", text)[1]
    assert visitor.post(f"/policy/grant/{grant}/revoke").status == 303
    assert "Nothing is remembered" in visitor.get("/policy").text


def test_a_projects_file_awaits_a_yes_to_exactly_its_content(visitor, work, project):
    work()
    file = Path(project) / "checkrein.toml"
    file.write_text("[trust]\ninitial_score = 0.4\n", encoding="utf-8")
    text = visitor.get("/policy").text
    assert "awaits your yes" in text
    assert "initial_score = 0.4" in text
    sha = re.search(r'name="sha256" value="(\w{64})"', text)[1]
    file.write_text("[trust]\ninitial_score = 0.5\n", encoding="utf-8")
    assert visitor.post("/policy/accept", {"project": project, "sha256": sha}).status == 400
    sha = re.search(r'name="sha256" value="(\w{64})"', visitor.get("/policy").text)[1]
    assert visitor.post("/policy/accept", {"project": project, "sha256": sha}).status == 303
    assert "Take the yes back" in visitor.get("/policy").text
    assert visitor.post("/policy/withdraw", {"project": project}).status == 303
    assert "awaits your yes" in visitor.get("/policy").text


def test_a_broken_file_is_said_not_suffered(visitor, work, project, user_settings):
    work()
    (Path(project) / "checkrein.toml").write_text("= broken", encoding="utf-8")
    assert visitor.get("/policy").status == 200
    user_settings("[nothing]\nx = 1\n")
    answer = visitor.get("/policy")
    assert answer.status == 200
    assert "Every call is refused" in answer.text
