import json
import tomllib

import pytest

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply
from checkrein.settings.legacy import from_settings_json

FULL = {
    "trust": {"hibernation_days": 7, "initial_score": 0.2, "failure_decay": 0.9},
    "risk": {"lambda1": 0.7, "lambda2": 1e-05},
    "autonomy": {"auto_approve_threshold": 0.9},
    "audit": {"log_dir": 'o"a\\th/日誌😀\x7f\x01\n'},
    "model": {"opus_aot_threshold": 3},
}


def test_every_value_survives_the_way_into_our_file():
    text, left_out = from_settings_json(json.dumps(FULL).encode(), "settings.json")
    assert tomllib.loads(text) == FULL
    assert left_out == []
    assert apply(Settings(), tomllib.loads(text)) == apply(Settings(), FULL)


def test_what_nothing_here_does_is_left_out_and_named():
    raw = {"trust": {"initial_score": 0.3, "recovery_boost_multiplier": 1.5}}
    text, left_out = from_settings_json(json.dumps(raw).encode(), "settings.json")
    assert left_out == ["trust.recovery_boost_multiplier"]
    assert tomllib.loads(text) == {"trust": {"initial_score": 0.3}}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"null", b'"x"', b'{"trust": []}', b"[" * 100_000]
    + [b'{"trust": {"initial_score": 0.9}}', b'{"trust": {"initial_score": NaN}}', b'{"x": 1}']
    + [b'{"trust": {"trust_score_override": 1.0}}', b'{"trust": {"initial_score": 1e999}}']
    + [b'{"rules": [{"pattern": "*", "action": "allow"}]}', b'{"doors": {"eval": {"unmatched": "ask"}}}'],
)
def test_what_we_refuse_is_refused_here_too(content):
    with pytest.raises(ConfigError, match=r"^old\.json: "):
        from_settings_json(content, "old.json")
