"""A disk that fills up under a conversation: the person is told, nothing is half there, and it goes on."""

import pytest

from chat_ground import OVER, text_result, told
from checkrein.errors import StoreError
from patience import until

PUT = '/call notes__put {"a": 1}'
BIG = "x" * 400_000


class Disk:
    """The store's file may grow no more, as where there is no room: SQLite itself says that it is full."""

    def __init__(self, talk):
        self._store = talk.pipeline.store

    def _pragma(self, text):
        with self._store._turn:
            return self._store._writer.execute(f"PRAGMA {text}").fetchone()[0]

    def fill(self):
        self._pragma(f"max_page_count = {self._pragma('page_count')}")

    def fill_up(self):
        """Not even the smallest thing is written."""

        def full(*_given, **_more):
            raise StoreError("The disk is full; nothing was written.", remedy="Free some space.")

        self._store.write = full

    def make_room(self):
        self._pragma("max_page_count = 1000000000")
        vars(self._store).pop("write", None)


@pytest.fixture
def disk(talk):
    made = Disk(talk)
    yield made
    made.make_room()


def test_a_message_that_cannot_be_kept_is_refused_and_leaves_nothing(talk, disk):
    talk.finish("/say hello")
    before = talk.messages()
    disk.fill()
    with pytest.raises(StoreError, match="full"):
        talk.say(BIG)
    assert talk.messages() == before
    talk.chat._runs.check_free(talk.id)
    disk.make_room()
    assert talk.finish("/say again") == "end"
    talk.check()


def test_an_answer_that_cannot_be_kept_is_told(talk, disk):
    async def act(_messages, _info):
        yield "so"
        disk.fill()
        yield BIG

    talk.models.acts = [act]
    assert talk.finish("hello") == "error"
    assert "full" in told(talk, "error")[0]["text"]
    disk.make_room()
    assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    assert [each["role"] for each in talk.messages()] == ["user", "assistant"]


@pytest.mark.parametrize("all_of_it", [True, False])
def test_a_result_that_cannot_be_kept_is_told_and_its_tool_is_not_run_again(talk, rules, disk, all_of_it):
    async def huge(_call, _progress):
        disk.fill_up() if all_of_it else disk.fill()
        return text_result(BIG)

    rules.add("allow", "put")
    talk.tools.does["notes__put"] = huge
    assert talk.finish(PUT, "/then", "/results") == ("error" if all_of_it else "end")
    assert not all_of_it or "full" in told(talk, "error")[0]["text"]
    disk.make_room()
    if all_of_it:
        assert talk.over(talk.chat.regenerate(session=talk.id)["run"]) == "end"
    assert len(talk.tools.ran) == 1
    (result,) = talk.models.results().values()
    assert "is unknown" in result.content
    talk.check()


def test_stopped_on_a_full_disk_it_is_told_and_over(talk, disk):
    run = talk.say(PUT)
    talk.asked()
    disk.fill_up()
    assert talk.chat.abort(run=run) == {"aborted": True}
    disk.make_room()
    talk.look()
    assert [each for each in talk.kinds() if each in OVER] == ["aborted"]
    assert talk.finish("/say on we go") == "end"
    assert [each.status for each in talk.calls()] == ["cancelled"]
    until(lambda: not talk.chat.busy)


def test_a_call_that_cannot_be_recorded_does_not_run(talk, rules, disk):
    """INVARIANT: a verdict leaves only after its record is committed."""
    rules.add("allow", "put")
    commit = talk.pipeline.commit

    def full(evaluation):
        disk.fill_up()
        try:
            return commit(evaluation)
        finally:
            disk.make_room()

    talk.pipeline.commit = full
    assert talk.finish(PUT, "/then", "/results") == "end"
    assert talk.tools.ran == []
    assert [each.status for each in talk.calls()] == ["denied"]
    assert "could not be judged and recorded" in talk.answer()
