import pytest

from checkrein.errors import CheckreinError, ConfigError, InputError, StoreError, StoreFullError


def test_an_error_says_what_happened_and_what_to_do():
    error = InputError("This is not JSON.", remedy="Put it in quotes.")
    assert str(error) == "This is not JSON. Put it in quotes."
    assert error.as_json() == {"code": "input.invalid", "message": "This is not JSON. Put it in quotes."}
    assert str(InputError("Just this.")) == "Just this."


def test_a_config_error_names_file_key_value_reason_and_remedy():
    error = ConfigError("trust.initial_score", 0.9, "is out of bounds.", "At most 0.5.").at("/etc/x.toml")
    assert str(error) == "/etc/x.toml: `trust.initial_score` = 0.9: is out of bounds. At most 0.5."
    assert (error.key, error.value, error.source) == ("trust.initial_score", 0.9, "/etc/x.toml")
    assert "..." in str(ConfigError("k", "x" * 500, "is long.", ""))


def test_exit_codes_tell_kinds_apart():
    assert issubclass(StoreFullError, StoreError)
    with pytest.raises(CheckreinError):
        raise StoreFullError("full")
    codes = {CheckreinError: 1, InputError: 2, ConfigError: 3, StoreFullError: 5}
    assert {error: error.exit_code for error in codes} == codes
