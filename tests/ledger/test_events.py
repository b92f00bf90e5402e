from hypothesis import given
from hypothesis import strategies as st

from checkrein.call import Category, Reason, Risk, Verdict, canonical, tool_call
from checkrein.ledger.events import cut, decided
from checkrein.ledger.redact import Redactor

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def verdict(**extra):
    risk = Risk(category=Category.high, domains=("a", "b", "a"))
    return Verdict(
        decision="blocked", stage="rules", risk=risk, reasons=(Reason("no", (Reason("really"),)),), **extra
    )


def test_a_decision_says_who_what_and_why():
    call = tool_call(
        {"tool": "mcp__m__t", "arguments": {"n": 1}, "agent": "x", "session": "s", "call_id": "c"}
    )
    data = decided(call, verdict(rule="r1", trust={"a": 0.5, "b": 0.2}), Redactor(), 1000)
    assert (data["server"], data["tool"], data["name"]) == ("m", "t", "mcp__m__t")
    assert (data["domain"], data["domains"]) == ("b", ["a", "b"])
    assert (data["verdict"], data["decision"], data["stage"], data["rule"]) == (
        "deny",
        "blocked",
        "rules",
        "r1",
    )
    assert data["reasons"] == ["no", "really"]
    assert data["argument_hash"] == call.argument_hash
    assert (data["agent"], data["session"], data["call_id"]) == ("x", "s", "c")


def test_secrets_are_masked_in_arguments_and_reasons():
    # Built in two parts so that no scanner takes this file for a leak.
    token = "ghp_" + "a1B2" * 9
    call = tool_call({"tool": "Bash", "arguments": {"command": f"push {token}", "password": "hunter2"}})
    risky = Risk(category=Category.low, reasons=(Reason(f"it names {token}"),))
    said = Verdict(decision="blocked", stage="floor", risk=risky, reasons=risky.reasons)
    text = canonical(decided(call, said, Redactor(), 10_000)).decode()
    assert token not in text
    assert "hunter2" not in text


def test_long_input_is_cut_and_says_so():
    short = {"command": "ls"}
    assert cut(short, 100) == short
    long = cut({"file_path": "a.py", "content": "x" * 100_000}, 1000)
    assert long["file_path"] == "a.py"
    assert long["content"].endswith("[cut: 100000 characters]")
    assert len(canonical(long)) < 2000
    assert "[cut:" in cut(list(range(100_000)), 1000)


@given(JSON, st.integers(0, 500))
def test_cutting_never_raises_and_bounds_the_size(value, most):
    assert len(canonical(cut(value, most))) <= 40 * (most + 300) + 64 * 1500
