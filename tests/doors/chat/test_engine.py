"""The thread that chat lives in."""

import pytest

from checkrein.errors import StoreError


def test_it_says_whether_a_model_can_answer(talking, user_settings):
    talk = talking()
    assert talk.chat.status() == {"ready": True, "provider": "demo", "model": "demo", "reason": ""}
    user_settings('[chat]\nmodel = "nobody/has-it"')
    status = talk.chat.status()
    assert status["ready"] is False
    assert "nobody/has-it" in status["reason"]


def test_after_it_ended_it_says_so(talk):
    talk.chat.close()
    with pytest.raises(StoreError, match="not running"):
        talk.say("hello")
