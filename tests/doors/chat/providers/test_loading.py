"""What talks to models is loaded for whoever is about to talk, and for nobody else."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import patience
from checkrein.doors.chat.providers import Picked, Providers, loading
from checkrein.errors import InputError

TESTS = Path(patience.__file__).parent
CLIENTS = "checkrein.doors.chat.providers.clients"
TALK = """
import json, sys
from checkrein.doors.chat.chat import Chat
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from patience import until

def loaded():
    return sorted(sys.modules)

state_dir().mkdir(parents=True)
pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
chat = Chat(pipeline)
chat.open()
session = chat.create()["id"]
chat.sessions(), chat.session(id=session), chat.search(query="plover"), chat.models(), chat.providers()
looked = loaded()
chat.status()
until(chat._providers._loading.done)
opened = loaded()
from pydantic_ai.messages import ModelMessagesTypeAdapter
built = ModelMessagesTypeAdapter.pydantic_complete
chat.send(session=session, text="/say hello")
until(lambda: not chat.busy)
said = chat.session(id=session)["messages"][-1]["parts"][0]["text"]
told = {"looked": looked, "opened": opened, "built": built, "talked": loaded(), "said": said}
print(json.dumps(told))
chat.close()
pipeline.close()
"""


def test_what_is_heavy_is_loaded_once_somebody_opens_chat_and_not_with_their_first_words():
    command, path = [sys.executable, "-c", TALK], {"PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **path})
    found = json.loads(done.stdout)
    assert found["said"] == "hello"
    assert found["built"]
    heavy = {"pydantic", "pydantic_ai", "httpx", "httpx2", "splintr"}
    assert not heavy & set(found["looked"]), "who only looks waits for nothing"
    assert {"pydantic_ai", "splintr", CLIENTS} <= set(found["opened"])
    late = {each.partition(".")[0] for each in set(found["talked"]) - set(found["opened"])}
    assert not late & {"checkrein", "genai_prices", "pydantic", "splintr"}
    others = {"openai", "anthropic", "google.genai", "logfire", "mcp"}
    assert not others & set(found["talked"]), "the built-in model needs nobody's library"


def test_what_cannot_be_loaded_is_told_to_who_asks_for_a_model(monkeypatch):
    providers = Providers()

    async def opened_and_asked():
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, CLIENTS, None)
            await providers.begin_loading()
            first = providers._loading
            await first
            with pytest.raises(InputError, match="not installed"):
                await providers.model(Picked("demo", "demo"))
        await providers.begin_loading()
        assert providers._loading is not first, "it is tried again"
        return await providers.model(Picked("demo", "demo"))

    assert asyncio.run(opened_and_asked()).model_name == "demo"


def test_it_is_loaded_once():
    providers = Providers()

    async def asked_twice():
        await providers.begin_loading()
        first = providers._loading
        await providers.begin_loading()
        assert providers._loading is first
        await first
        await providers.begin_loading()
        assert providers._loading is first

    asyncio.run(asked_twice())


def test_parts_that_are_missing_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, CLIENTS, None)
    with pytest.raises(InputError, match="not installed") as raised:
        loading.clients()
    assert "checkrein[chat]" in raised.value.remedy
