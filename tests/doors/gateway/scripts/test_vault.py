"""What is sealed cannot be read, changed, cut, swapped or put back."""

import base64
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.doors.gateway.scripts.vault import Vault
from checkrein.execute.sandbox import DamagedError


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path)


def test_what_was_sealed_opens_for_what_it_is_bound_to(vault, tmp_path):
    sealed = vault.close(b"secret words", "run-1", "suspended", 1)
    assert vault.open(sealed, "run-1", "suspended", 1) == b"secret words"
    assert b"secret" not in base64.b64decode(sealed)
    assert sealed != vault.close(b"secret words", "run-1", "suspended", 1)
    assert stat.S_IMODE((tmp_path / "runs.key").stat().st_mode) == 0o600
    # Another server on the same folder has the same key.
    assert Vault(tmp_path).open(sealed, "run-1", "suspended", 1) == b"secret words"


@pytest.mark.invariant("edited, truncated, swapped or replayed bytes are never taken up")
@pytest.mark.parametrize(
    "bound", [("run-2", "suspended", 1), ("run-1", "result", 1), ("run-1", "suspended", 2), ("run-1",)]
)
def test_swapped_and_replayed_bytes_are_refused(vault, bound):
    sealed = vault.close(b"x", "run-1", "suspended", 1)
    with pytest.raises(DamagedError):
        vault.open(sealed, *bound)


@pytest.mark.invariant("edited, truncated, swapped or replayed bytes are never taken up")
@given(at=st.integers(0, 200), flip=st.integers(1, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_edited_bytes_are_refused(vault, at, flip):
    raw = bytearray(base64.b64decode(vault.close(b"some words of a script", "r", "source")))
    raw[at % len(raw)] ^= flip
    with pytest.raises(DamagedError):
        vault.open(base64.b64encode(bytes(raw)).decode(), "r", "source")


@pytest.mark.invariant("edited, truncated, swapped or replayed bytes are never taken up")
@given(st.integers(0, 60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_truncated_bytes_are_refused(vault, size):
    sealed = vault.close(b"some words of a script", "r", "source")
    with pytest.raises(DamagedError):
        vault.open(sealed[: min(size, len(sealed) - 1)], "r", "source")


@given(st.text(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_no_seal_is_refused(vault, text):
    with pytest.raises(DamagedError):
        vault.open(text, "r", "source")


def test_another_key_opens_nothing(vault, tmp_path):
    sealed = vault.put({"a": 1}, "r", "source")
    (tmp_path / "runs.key").unlink()
    with pytest.raises(DamagedError):
        Vault(tmp_path).get(sealed, "r", "source")


def test_what_is_no_json_is_refused(vault):
    with pytest.raises(DamagedError):
        vault.get(vault.close(b"{", "r", "source"), "r", "source")
    assert vault.get(vault.put([1, {"a": None}], "r"), "r") == [1, {"a": None}]
