"""Writes docs/chat-transcript.md: a real conversation, compressed three times: `make picture`."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from checkrein.doors.chat.chat import Chat
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

TARGET = Path(__file__).parent / "chat-transcript.md"
OPENING = """# A fact, three summaries later

Written by `make picture` from a real conversation with the built-in model; do not edit. After each summary
the model is sent the summary and the last turn, and nothing else of what was said before.

"""
TOLD = "The harbour gate opens with the word teapot."
TALK = ("/long 60", "The second crane is out of order.", "/long 80", "Lunch is at noon.", "/long 50")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        os.environ.update(dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), folder))
        pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
        chat = Chat(pipeline)
        chat.open()
        try:
            TARGET.write_text(OPENING + "\n".join(transcript(chat)) + "\n", encoding="utf-8")
        finally:
            chat.close()
            pipeline.close()


def transcript(chat: Chat) -> list[str]:
    talk, lines = chat.create(title="Harbour")["id"], list[str]()
    lines += said(chat, talk, TOLD)
    for number in range(3):
        lines += said(chat, talk, TALK[2 * number % len(TALK)]) + said(
            chat, talk, TALK[(2 * number + 1) % len(TALK)]
        )
        found = chat.compress(session=talk, retention=0)
        assert found["compressed"], found["reason"]
        summary = "\n".join(f"> {line}" for line in found["summary"].splitlines())
        lines += [
            "",
            f"**Compression {number + 1}.** {found['reason']} The model is now sent:",
            "",
            summary,
            "",
        ]
    lines += said(chat, talk, "/recall teapot")
    assert "I know teapot." in lines[-1], lines[-1]
    return lines


def said(chat: Chat, talk: str, text: str) -> list[str]:
    """Say something and wait for the answer."""
    news = threading.Event()
    line = chat.subscribe(talk, "", news.set)
    chat.send(session=talk, text=text)
    while not any(each.kind in ("end", "error") for each in line.take()):
        news.wait(10)
        news.clear()
    line.close()
    answer = " ".join(part["text"] for part in chat.session(id=talk)["messages"][-1]["parts"])
    return [f"- **you** {text}", f"- **demo** {short(answer)}"]


def short(text: str) -> str:
    line = " ".join(text.replace("|", " ").split())
    return line if len(line) <= 80 else f"{line[:79]}…"


if __name__ == "__main__":
    main()
