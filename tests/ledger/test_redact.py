"""Masking, held against a table of secrets that must go and look-alikes that must stay."""

import json
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.errors import ConfigError
from checkrein.ledger.redact import MASK, MAX_DEPTH, TOO_DEEP, Masking, Redactor

HERE = Path(__file__).parent
SECRETS = tomllib.loads((HERE / "secrets.toml").read_text(encoding="utf-8"))["row"]
LOOKALIKES = tomllib.loads((HERE / "lookalikes.toml").read_text(encoding="utf-8"))
SHAPES = [row for row in SECRETS if "shape" in row]
redactor = Redactor()


def filled(value, secret):
    if isinstance(value, str):
        return value.replace("@@", secret)
    if isinstance(value, dict):
        return {key: filled(item, secret) for key, item in value.items()}
    return [filled(item, secret) for item in value] if isinstance(value, list) else value


def test_the_tables_are_as_long_as_promised():
    assert len(SECRETS) >= 60
    assert sum(map(len, LOOKALIKES.values())) >= 60


@pytest.mark.parametrize(
    "row", SECRETS, ids=lambda row: row.get("shape") or str(row.get("text", row.get("value")))[:60]
)
def test_a_secret_is_masked_and_the_words_around_it_stay(row):
    secret = "".join(row["parts"])
    if "value" in row:
        masked = redactor.value(filled(row["value"], secret))
        assert masked == filled(row["value"], MASK) if "becomes" not in row else masked == row["becomes"]
        assert json.dumps(redactor.value(masked)) == json.dumps(masked)
        return
    masked = redactor.text(filled(row["text"], secret))
    assert masked == row.get("becomes", filled(row["text"], MASK))
    assert redactor.text(masked) == masked


@pytest.mark.parametrize("text", LOOKALIKES["text"])
def test_what_only_looks_like_a_secret_stays_as_it_is(text):
    assert redactor.text(text) == text


@pytest.mark.parametrize("value", LOOKALIKES.get("value", []), ids=str)
def test_arguments_that_only_look_secret_stay_as_they_are(value):
    assert redactor.value(value) == value


@given(st.sampled_from(SHAPES), st.text(max_size=40), st.text(max_size=40))
def test_a_known_shape_never_survives_in_random_text(row, before, after):
    secret = "".join(row["parts"])
    text = f"{before} {row.get('context', '')}{secret}{row.get('after', '')} {after}"
    assert secret not in redactor.text(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=25,
)


@given(JSON)
def test_any_value_is_masked_without_an_error_and_once_is_enough(value):
    once = redactor.value(value)
    assert repr(redactor.value(once)) == repr(once)


@given(st.text(alphabet="pasword=:'\"\\ \n$(){}[]@/;|&-tokenAPI_KEY0123456789\ud800\0", max_size=300))
def test_any_text_is_masked_without_an_error_and_once_is_enough(text):
    once = redactor.text(text)
    assert redactor.text(once) == once


def test_a_deep_value_ends_instead_of_overflowing():
    value = "bottom"
    for _ in range(5_000):
        value = [value]
    masked = redactor.value(value)
    for _ in range(MAX_DEPTH):
        masked = masked[0]
    assert masked == TOO_DEEP


def test_the_value_itself_is_never_changed():
    value = {"password": "hunter2", "list": [{"token": "abc123def"}]}
    redactor.value(value)
    assert value == {"password": "hunter2", "list": [{"token": "abc123def"}]}


HOSTILE = (
    "a",
    "=",
    '"',
    "'",
    "eyJ",
    "password=",
    "://",
    "password: ",
    "token='",
    "-p",
    "AKIA",
    "\\",
    "\n",
    "$(",
    "sk-",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece):
    """Ten times the text may take ten times as long, with room for noise; never a hundred times."""

    def seconds(size):
        text = piece * (size // len(piece))
        begin = time.perf_counter()
        redactor.text(text)
        return time.perf_counter() - begin

    seconds(20_000)
    small, large = min(seconds(40_000) for _ in range(3)), seconds(400_000)
    assert large < 45 * small + 0.5


def test_a_user_adds_names_and_patterns():
    own = Redactor(Masking(keys=("customerNumber",), patterns=(r"CUST-(\d+)", "Project [A-Z]+")))
    assert own.value({"customer_number": 42, "note": "CUST-123 of Project BLUE"}) == {
        "customer_number": MASK,
        "note": f"CUST-{MASK} of {MASK}",
    }
    assert redactor.text("CUST-123") == "CUST-123"


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "[z-a]"])
def test_a_pattern_that_cannot_be_used_is_refused(pattern):
    with pytest.raises(ConfigError, match=r"masking\.patterns"):
        Redactor(Masking(patterns=(pattern,)))
