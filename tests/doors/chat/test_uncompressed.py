"""Compressing with a model that cannot be asked: nothing is changed, and it is said why."""

import pytest

from chat_ground import Talk, Tools, opened
from checkrein.doors.chat.providers import Providers


@pytest.fixture
def talk(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pipeline = opened()
    made = Talk(pipeline, Tools(pipeline), models=Providers())
    yield made
    made.close()


def test_a_model_without_its_key_changes_nothing(talk):
    for word in ("one", "two", "three"):
        assert talk.finish("/long 80", f"/say {word}") == "end"
    talk.models.set("keyless", "openai", models=["gpt-4o"])
    talk.chat.update(id=talk.id, model="keyless/gpt-4o")
    before = talk.messages()
    came = talk.chat.compress(session=talk.id, retention=0)
    assert (came["compressed"], came["failed"]) == (False, True)
    assert "OPENAI_API_KEY" in came["reason"]
    assert talk.messages() == before
    assert talk.chat.session(id=talk.id)["snapshot"] is None
    assert talk.finish("/say here", model="demo/demo") == "end"
    talk.check()
