"""Evaluation profiles of another program: as text they mean the same to us."""

import tomllib

import pytest

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply
from checkrein.settings.import_profiles import profiles_in


def test_evaluation_profiles_become_text_for_our_settings():
    document = {
        "servers": {},
        "evaluation": {
            "defaultProfile": "careful",
            "profiles": {
                "careful": {"allowlist": ["time__*"], "asklist": ["x__y"], "elicitationFallback": "allow"},
                "other": {"denylist": ['a"b'], "extends": "careful"},
            },
        },
    }
    text = profiles_in(document, "mcp.json")
    settings = apply(Settings(), tomllib.loads(text))
    assert settings == apply(Settings(), {"evaluation": document["evaluation"]})
    assert settings.profiles["careful"].allow == ("time__*",)
    assert settings.doors["eval"].profile == "careful"
    assert profiles_in({"servers": {}}, "x") == profiles_in([], "x") == ""
    with pytest.raises(ConfigError):
        profiles_in({"evaluation": {"nonsense": 1}}, "x")
