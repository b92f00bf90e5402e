import json

import pytest

from checkrein.errors import TrustFileError
from checkrein.policy.trust import TrustState
from checkrein.policy.trustfile import parse, render


def v2(**domains):
    return json.dumps({"version": "2", "domains": domains}).encode()


def test_ac_030_a_v1_file_becomes_v2():
    found = parse(b'{"score": 0.45, "successes": 12, "failures": 3}', now=1000.0)
    assert found.version == "1"
    assert found.states["_global"] == TrustState(
        score=0.45, successes=12, failures=3, total_operations=15, last_operated_at=1000.0
    )
    written = render(found.states, 0.3, 1000.0)
    assert written["version"] == "2"
    assert written["domains"]["_global"]["score"] == 0.45


def test_ac_029_a_v2_file_comes_back_as_it_was():
    states = {
        "file_read": TrustState(
            score=0.61, successes=14, failures=1, total_operations=15, last_operated_at=1e9
        ),
        "test_run": TrustState(
            score=0.4, successes=5, total_operations=5, is_warming_up=True, warmup_remaining=2
        ),
    }
    again = parse(json.dumps(render(states, 0.3, 2e9)).encode(), now=0.0)
    assert {domain: again.states[domain] for domain in states} == states
    assert again.bad == {}


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"[]", b"{}", b'{"version": "3", "domains": {}}', b'{"version": "2"}', b"[" * 5000, b"\xff"]
    + [b'{"version": "2", "domains": []}', b'{"score": 0.3, "successes": "many"}'],
)
def test_what_is_no_trust_file_is_refused_whole(content):
    with pytest.raises(TrustFileError):
        parse(content, 0.0)


def test_scores_that_cannot_be_right_are_left_out_and_named():
    found = parse(
        v2(
            good={"score": 0.4, "successes": 4, "total_operations": 4},
            certain={"score": 1.0, "successes": 500, "total_operations": 500},
            text={"score": "0.9"},
            unearned={"score": 0.95, "successes": 1, "total_operations": 1},
            timeless={"score": 0.3, "last_operated_at": "yesterday"},
            nothing=None,
        ),
        0.0,
    )
    assert set(found.states) == {"good"}
    assert set(found.bad) == {"certain", "text", "unearned", "timeless", "nothing"}
    assert "successes can earn" in found.bad["unearned"]
