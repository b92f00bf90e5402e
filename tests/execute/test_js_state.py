"""A suspended script as bytes."""

import pytest

from checkrein.execute import js_state
from checkrein.execute.js_state import State, pack, unpack
from checkrein.execute.sandbox import DamagedError, Wanted

STATE = State(
    meta={"control": 1},
    image=b"image",
    size=5,
    spent=0.5,
    slept=1.0,
    output="x",
    waiting=(Wanted(1, "a", {"b": 1}, 2, 3),),
)


def test_it_comes_back_as_it_was():
    assert unpack(pack(STATE)) == STATE


def test_every_byte_counts():
    packed = pack(STATE)
    for place in range(len(packed)):
        with pytest.raises(DamagedError):
            unpack(packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :])


def test_another_sandbox_is_told_from_damage(monkeypatch):
    packed = pack(STATE)
    monkeypatch.setattr(js_state, "build", lambda: b"\0" * 32)
    with pytest.raises(DamagedError, match="another version"):
        unpack(packed)


def test_the_build_is_the_sandboxs_and_the_shims():
    assert len(js_state.build()) == 32
