"""What policy says about tools nobody has called: rules count, a server's own word does not."""

import pytest

from standing_gateway import through


@pytest.fixture
def do(asked, gateway):
    return through(asked, gateway)


def test_browsing_says_what_policy_says_today(do, files, gateway):
    gateway.tools = [
        {"server": "files", "tool": "read_file", "annotations": {"readOnlyHint": True, "pinned": True}},
        {"server": "files", "tool": "x", "verdict": "deny"},
    ]
    first, second = do("upstream.browse", name="files")
    assert (first["verdict"], second["verdict"]) == ("ask", "deny")
    assert first["reasons"]
    do("rule.add", rule={"action": "allow", "server": "files", "tool": "read_file", "reason": "harmless"})
    first, _ = do("upstream.browse")
    assert first["verdict"] == "allow"
    assert "harmless" in " ".join(first["reasons"])


@pytest.mark.invariant("only a person's word makes a server's hints count, never a hint of its own")
def test_only_a_persons_word_makes_hints_count(do, files, gateway):
    hints = {"readOnlyHint": True, "pinned": True}
    gateway.tools = [{"server": "files", "tool": "get_thing", "annotations": hints}]
    (doubted,) = do("upstream.browse")
    entry = {"command": "serve-files", "trusted": True}
    do("upstream.import", servers=[{"name": "files", "entry": entry}], replace=True)
    (vouched,) = do("upstream.browse")
    assert (doubted["risk"], vouched["risk"]) == ("medium", "low")


def test_what_cannot_be_judged_is_refused_and_the_others_are_shown(do, files, gateway, pipeline, monkeypatch):
    judge = pipeline.judge
    gateway.tools = [{"server": "files", "tool": name} for name in ("odd", "plain")]
    monkeypatch.setattr(pipeline, "judge", lambda call: 1 / 0 if call.tool == "odd" else judge(call))
    odd, plain = do("upstream.browse")
    assert (odd["verdict"], odd["reasons"]) == ("deny", ["It cannot be judged: ZeroDivisionError."])
    assert plain["verdict"] == "ask"
