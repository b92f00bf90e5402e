"""A suspended script's bytes: whole or refused."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.python_state import State, pack, unpack
from checkrein.execute.sandbox import DamagedError, Wanted

STATE = State(
    source="await fs__read(path='a')",
    snapshot=b"\x00\x01",
    spent=0.5,
    output="hi\n",
    printed=3,
    waiting=(Wanted(3, "fs__read", {"path": "a"}, 1, 6),),
    held={4: {"return_value": [1]}},
    sleeps={5: 1.5},
    still=3,
)


def test_it_comes_back_as_it_was():
    assert unpack(pack(STATE)) == STATE


@given(st.integers(0, len(pack(STATE)) - 1), st.integers(1, 255))
def test_one_changed_byte_is_damage(place, change):
    raw = bytearray(pack(STATE))
    raw[place] ^= change
    with pytest.raises(DamagedError):
        unpack(bytes(raw))


@given(st.integers(0, len(pack(STATE)) - 1))
def test_a_missing_end_is_damage(length):
    with pytest.raises(DamagedError):
        unpack(pack(STATE)[:length])


@pytest.mark.parametrize("body", [b"", b"\xc1", msgspec.msgpack.encode({"source": 1}), b"\x91" * 100_000])
def test_a_sum_that_fits_is_not_enough(body):
    head = pack(STATE)[:19]
    with pytest.raises(DamagedError):
        unpack(head + hashlib.sha256(body).digest() + body)
