import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.chat.providers.troubles import explain
from checkrein.errors import ConfigError, InputError


class OddError(Exception):
    """An error as some library might raise it."""

    def __init__(self, text="", **fields):
        super().__init__(text)
        self.__dict__.update(fields)


def caused(error, by):
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OddError(status_code=401), "key"),
        (
            OddError(status_code=400, body={"error": {"message": "API key not valid", "status": "INVALID"}}),
            "key",
        ),
        (OddError(status_code=402), "rate"),
        (OddError(status_code=429), "rate"),
        (OddError(code=503), "server"),
        (OddError(status_code=529), "server"),
        (OddError(status_code=404), "refused"),
        (OddError(status_code=413), "limit"),
        (OddError(status_code=400, body='{"error": {"message": "maximum context length is 5"}}'), "limit"),
        (OddError(status_code=400, body={"message": "no"}), "refused"),
        (OddError(status_code=407), "proxy"),
        (OddError(status_code=302), "refused"),
        (caused(OddError(), ssl.SSLCertVerificationError("x")), "certificate"),
        (caused(ConnectionError(), OddError("[SSL: CERTIFICATE_VERIFY_FAILED]")), "certificate"),
        (TimeoutError(), "timeout"),
        (ConnectionResetError(), "network"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "malformed"),
        (ExceptionGroup("several", [OddError(), TimeoutError()]), "timeout"),
        (OddError(), "unknown"),
        (ConfigError("p.key", None, "has no value.", "Set it."), "key"),
        (ConfigError("connections.ca_files", None, "odd.", "Correct it."), "certificate"),
        (ConfigError("connections.proxy_url", None, "odd.", "Correct it."), "proxy"),
        (InputError("OddError."), "unknown"),
    ],
)
def test_errors_of_any_library_are_told_apart(error, kind):
    assert explain(error).kind == kind


def test_errors_of_pydantic_ai_are_told_apart():
    from pydantic_ai import exceptions as e

    kinds = {
        "rate": e.ModelRateLimitError("m", "x"),
        "key": e.ModelAuthenticationError("m", "x"),
        "limit": e.ModelContextWindowExceededError("m", "x"),
        "refused": e.ContentFilterError("x"),
        "server": e.ModelHTTPError(500, "m"),
        "network": e.ModelConnectionError("m", "x"),
        "timeout": e.ModelTimeoutError("m", "x"),
        "malformed": e.UnexpectedModelBehavior("x"),
    }
    assert explain(e.ModelOverloadedError("m", "x")).kind == "server"
    assert {kind: explain(error).kind for kind, error in kinds.items()} == {kind: kind for kind in kinds}
    assert "content filter" in explain(kinds["refused"]).text
    assert explain(e.ModelRequestTimeout("m", 3.0)).kind == "timeout"


def test_what_the_provider_said_is_quoted_short_and_without_secrets():
    said = {
        "error": {"message": f"Bad tool \x1b[31m name, key hunter2-hunter2 sk-{'a1' * 24} {'long ' * 500}"}
    }
    text = explain(OddError(status_code=400, body=said), ["hunter2-hunter2"]).text
    assert "Bad tool" in text
    assert "hunter2" not in text
    assert "a1a1a1a1" not in text
    assert "\x1b" not in text
    assert len(text) < 500


def test_an_empty_account_is_called_so():
    said = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    assert "credit or quota" in explain(OddError(status_code=429, body=said)).text


@pytest.mark.parametrize(
    ("given", "wanted"), [("7", 7.0), (2.5, 2.5), ("soon", None), (-1, None), ("1e99", None)]
)
def test_a_wait_is_a_number_of_seconds_or_unknown(given, wanted):
    assert explain(OddError(status_code=429, retry_after=given)).retry_after == wanted


def test_a_circle_of_causes_ends():
    one, two = OddError(), OddError()
    one.__cause__, two.__cause__ = two, one
    assert explain(one).kind == "unknown"


ODD = st.recursive(
    st.none() | st.integers() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["error", "message", "code", "x"]), inner)
    ),
    max_leaves=8,
)


@given(ODD, ODD, ODD)
def test_nothing_a_provider_says_is_too_odd(body, status, wait):
    trouble = explain(OddError(body=body, status_code=status, retry_after=wait), ["secret"])
    assert trouble.text
    assert len(trouble.text) < 600
