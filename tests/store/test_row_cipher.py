"""Rows that are encrypted: they open for their row only, with the key of their installation."""

import base64
import stat
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.errors import SealError
from checkrein.store.row_cipher import KEY_BYTES, RowCipher, key_in


@pytest.fixture
def cipher(tmp_path):
    return RowCipher(tmp_path / "rows.key")


def test_what_was_encrypted_opens_for_its_row_also_in_another_process(cipher, tmp_path):
    sealed = cipher.seal(b"secret words", "question", "e1")
    assert cipher.open(sealed, "question", "e1") == b"secret words"
    assert b"secret" not in base64.b64decode(sealed) and sealed != cipher.seal(
        b"secret words", "question", "e1"
    )
    assert RowCipher(tmp_path / "rows.key").open(sealed, "question", "e1") == b"secret words"


@pytest.mark.invariant("edited, truncated, swapped or replayed bytes are never taken up")
@pytest.mark.parametrize("bound", [("question", "e2"), ("other", "e1"), ("question",), ("question", "e1", 1)])
def test_a_row_put_in_the_place_of_another_does_not_open(cipher, bound):
    with pytest.raises(SealError):
        cipher.open(cipher.seal(b"x", "question", "e1"), *bound)


@pytest.mark.invariant("edited, truncated, swapped or replayed bytes are never taken up")
@given(at=st.integers(0, 200), flip=st.integers(1, 255), cut=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_edited_and_truncated_bytes_do_not_open(cipher, at, flip, cut):
    raw = bytearray(base64.b64decode(cipher.seal(b"some arguments", "question", "e1")))
    if cut:
        del raw[at % len(raw) :]
    else:
        raw[at % len(raw)] ^= flip
    with pytest.raises(SealError):
        cipher.open(base64.b64encode(bytes(raw)).decode(), "question", "e1")


@given(st.text(max_size=100))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_text_that_was_never_encrypted_does_not_open(cipher, text):
    with pytest.raises(SealError):
        cipher.open(text, "question", "e1")


def test_another_key_opens_nothing(cipher, tmp_path):
    sealed = cipher.seal(b"x", "question", "e1")
    (tmp_path / "rows.key").unlink()
    with pytest.raises(SealError):
        RowCipher(tmp_path / "rows.key").open(sealed, "question", "e1")


def test_the_key_is_its_owners_alone_and_one_that_was_cut_short_is_replaced(tmp_path):
    path = tmp_path / "state" / "rows.key"
    key = key_in(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(key) == KEY_BYTES and key_in(path) == key
    path.write_bytes(b"short")
    assert key_in(path) not in (key, b"short")
    assert [each.name for each in path.parent.iterdir()] == ["rows.key"]


@pytest.mark.invariant("of two processes that make a key at once, both use the same one")
def test_of_many_that_make_the_key_at_once_all_use_one(tmp_path):
    keys, together = [], threading.Barrier(8)

    def make():
        together.wait()
        keys.append(key_in(tmp_path / "rows.key"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8 and set(keys) == {(tmp_path / "rows.key").read_bytes()}
