"""A model's answer while it is written: told at once, kept now and then, whole at the end."""

import asyncio
import time

import pytest

from checkrein.doors.chat import Message, Part, Run
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.live import Live
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.writing import Pen


@pytest.fixture
def sessions(pipeline):
    return Sessions(pipeline.store, time.time)


class ByHand(asyncio.SelectorEventLoop):
    """A loop whose clock is moved by hand."""

    now = 0.0

    def time(self):
        return self.now


async def passes(seconds):
    """That time passes, and what is due then happens."""
    asyncio.get_running_loop().now += seconds
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def with_pen(sessions, use):
    """A pen in a session with one message; what was told is with it. Time passes only by hand."""

    async def main():
        session = sessions.create()
        first = sessions.add_message(session.id, "user", [Part(text="go")])
        sessions.add_run(Run(id="r", session=session.id))
        lines = Lines("e")
        line = lines.subscribe(session.id, "", lambda: None)
        message = Message("m", "assistant", parent=first.id, state="streaming", provider="p", model="q")
        pen = Pen(Live(Run(id="r", session=session.id)), message, sessions, lines)
        await use(pen)
        return session.id, line.take()

    with asyncio.Runner(loop_factory=ByHand) as runner:
        return runner.run(main())


def test_the_first_word_is_told_at_once_and_the_next_ones_together(sessions):
    async def use(pen):
        for word in ("one", " two", " three", " four"):
            pen.write(0, "text", word)
        await passes(0.1)
        pen.write(1, "thinking", "hm")
        await pen.end("completed")

    _, told = with_pen(sessions, use)
    assert [(each.kind, each.data["part"], each.data["at"], each.data["delta"]) for each in told] == [
        ("text", 0, 0, "one"),
        ("text", 0, 3, " two three four"),
        ("reasoning", 1, 0, "hm"),
    ]


def test_what_was_written_is_kept_whoever_stopped_it(sessions):
    async def use(pen):
        pen.write(0, "text", "half an ans")
        made = await pen.end("aborted", error="stopped")
        assert made.parts == (Part(text="half an ans"),)
        assert await pen.end("completed", (Part(text="other"),)) is None, "it stays as it ended first"

    session, _ = with_pen(sessions, use)
    last = sessions.path(session)[-1]
    assert (last.state, last.error, last.parts[0].text) == ("aborted", "stopped", "half an ans")
    assert (last.provider, last.model) == ("p", "q")


def test_where_nothing_was_written_nothing_is_kept(sessions):
    async def use(pen):
        pen.write(0, "tool-call", "{}")
        pen.write(0, "text", "")
        assert await pen.end("failed", error="no") is None
        await pen.keep_partial()

    session, told = with_pen(sessions, use)
    assert told == []
    assert [each.role for each in sessions.path(session)] == ["user"]


def test_it_is_kept_now_and_then_while_it_is_written(sessions):
    def kept(session):
        last = sessions.path(session)[-1]
        return last.state == "streaming" and "".join(part.text for part in last.parts)

    async def use(pen):
        for _ in range(3):
            before = kept(pen.session)
            # A second that passes while the last part is still being written down keeps nothing.
            while kept(pen.session) == before:
                pen.write(0, "text", "word ")
                await passes(1.0)
        await pen.end("completed", (Part(text="all of it"),), input_tokens=3, output_tokens=4)

    session, _ = with_pen(sessions, use)
    last = sessions.path(session)[-1]
    assert (last.state, last.parts, last.input_tokens, last.output_tokens) == (
        "completed",
        (Part(text="all of it"),),
        3,
        4,
    )


def test_stopped_while_it_is_saved_it_is_saved_once_and_whole(sessions):
    async def use(pen):
        pen.write(0, "text", "whole")
        saving = asyncio.ensure_future(pen.end("completed", (Part(text="whole"),)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        await pen.end("aborted")

    session, _ = with_pen(sessions, use)
    path = sessions.path(session)
    assert len(path) == 2
    assert path[-1].parts[0].text == "whole"
    assert path[-1].state in ("completed", "aborted")


def test_half_a_character_waits_for_its_other_half(sessions):
    async def use(pen):
        for piece in ("a\ud83d", "\ude00b", "\udc00c"):
            pen.write(0, "text", piece)
            await passes(0.05)
        await pen.end("completed")

    session, told = with_pen(sessions, use)
    assert "".join(each.data["delta"] for each in told) == "a\U0001f600b\ufffdc"
    assert sessions.path(session)[-1].parts[0].text == "a\U0001f600b\ufffdc"
