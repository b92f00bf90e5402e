"""A thread with a loop: work from other threads, and what its end means for whoever waits."""

import asyncio
import os
import threading

import pytest

from checkrein.errors import StoreError
from checkrein.own_loop import OwnLoop, handed_over
from patience import PATIENCE


async def until_told(own):
    own.up()
    await own.ending.wait()


@pytest.fixture
def said():
    return []


@pytest.fixture
def own(said):
    made = OwnLoop("checkrein-test", "The test", until_told, said.append)
    made.open()
    yield made
    made.close()


def test_work_is_done_on_its_thread(own):
    async def where():
        return threading.current_thread().name

    assert own.do(where(), PATIENCE) == "checkrein-test"


def test_what_the_work_raises_is_raised_where_it_is_waited_for(own):
    async def wrong():
        raise KeyError("this one")

    with pytest.raises(KeyError, match="this one"):
        own.do(wrong(), PATIENCE)


def test_what_takes_too_long_is_given_up(own):
    given_up = threading.Event()

    async def for_ever():
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    with pytest.raises(StoreError, match="The test did not answer in time"):
        own.do(for_ever(), 0.05)
    assert given_up.wait(PATIENCE)


def test_whoever_waits_when_it_ends_is_told(own):
    begun = threading.Event()

    async def for_ever():
        begun.set()
        await asyncio.Event().wait()

    ending = threading.Thread(target=lambda: (begun.wait(), own.close()))
    ending.start()
    with pytest.raises(StoreError, match="The server is stopping"):
        own.do(for_ever(), PATIENCE)
    ending.join()


def test_nothing_is_asked_of_one_that_does_not_run(own, said):
    async def never():
        said.append("it ran")

    own.close()
    own.close()
    for each in (own, OwnLoop("checkrein-test", "The test", until_told, said.append)):
        with pytest.raises(StoreError, match="The test is not running"):
            each.do(never(), PATIENCE)
    assert said == []


def test_one_that_cannot_begin_says_why(said):
    async def broken(_own):
        raise RuntimeError("no room")

    with pytest.raises(StoreError, match="The test could not be started: RuntimeError: no room"):
        OwnLoop("checkrein-test", "The test", broken, said.append).open()
    assert said == ["the test ended: RuntimeError: no room"]


def test_one_that_ends_before_it_can_be_asked_did_not_begin(said):
    async def at_once(_own):
        return

    with pytest.raises(StoreError, match=r"The test could not be started\."):
        OwnLoop("checkrein-test", "The test", at_once, said.append).open()


def test_what_comes_after_comes_when_the_loop_is_over(said):
    loops = []

    async def noted(own):
        loops.append(own.loop)
        await until_told(own)

    made = OwnLoop(
        "checkrein-test", "The test", noted, said.append, after=lambda: said.append(loops[0].is_closed())
    )
    made.open()
    assert said == []
    made.close()
    assert said == [True]


class ClosesByNumber:
    """A loop that closes a pipe by its number and the file object afterwards, as uvloop does."""

    __module__ = "uvloop.loop"


@pytest.mark.invariant("a descriptor is closed once")
def test_a_file_that_took_the_number_of_a_closed_pipe_stays_open(tmp_path):
    ours, theirs = os.pipe()
    handed = handed_over(os.fdopen(ours, "rb", buffering=0), ClosesByNumber())
    number = handed.fileno()
    os.close(number)
    later = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.dup2(later, number)
    handed.close()
    assert os.path.samestat(os.fstat(number), os.fstat(later))
    for each in (number, later, theirs):
        os.close(each)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(ours)


def test_another_loop_closes_the_pipe_with_its_file(tmp_path):
    ours, theirs = os.pipe()
    handed = handed_over(os.fdopen(ours, "rb", buffering=0), object())
    number = handed.fileno()
    handed.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(number)
    os.close(theirs)
