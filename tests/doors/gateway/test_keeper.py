import asyncio
import contextlib
import gc
import os
import signal

import msgspec
import pytest

from checkrein.doors.gateway import line as line_module
from checkrein.doors.gateway.keeper import EVERYTHING, Keeper, Unreachable
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS
from checkrein.doors.gateway.pipes import Gone, pipe_for
from checkrein.settings.servers import ServerSpec
from checkrein.settings.sources import state_dir
from checkrein.store.facts import Facts
from checkrein.store.sqlite import SqliteStore
from doors.gateway.back import GOOD, Ear, after, is_running, spec_of
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon

IDLE, LONG = 600.0, 100 * PATIENCE


class Limits(msgspec.Struct):
    start_seconds: float = 20.0
    idle_seconds: float = IDLE
    most_private: int = 2


class Client(msgspec.Struct):
    id: str
    era: str = HANDSHAKE
    capabilities: dict = {}


ALICE = Client("alice", capabilities={"elicitation": {"form": {}}, "experimental": {}})
BOB = Client("bob", capabilities={"roots": {}})
MODERN = Client("modern", era=STATELESS)


@pytest.fixture
def facts():
    store = SqliteStore.open(state_dir())
    yield Facts(store, lambda: 1.0)
    store.close()


@pytest.fixture
def run(tmp_path, facts):
    """Have a keeper, use it, stop it; no process of it may be left."""

    def run(use, spec=None, *, limits=None, stop=True):
        ear, said, pids = Ear(), [], []

        def connect(spec, hear, over):
            made = pipe_for(spec, hear, over)
            pids.append(made)
            return made

        async def main():
            problems = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
            kept = Keeper(
                spec or spec_of(tmp_path),
                ear,
                facts=facts,
                limits=limits or Limits(),
                say=said.append,
                connect=connect,
            )
            kept.ear, kept.said, kept.opened = ear, said, pids
            try:
                await use(kept)
            finally:
                await kept.stop()
            assert kept.status()["state"] == "stopped" and kept.status()["connections"] == 0
            assert not [each.pid for each in pids if each.pid and is_running(each.pid)]
            assert not list((state_dir() / "gateway").glob("*-*"))
            assert len(asyncio.all_tasks()) == 1
            gc.collect()
            assert problems == []

        run_on_moved_loop(main())

    return run


def test_it_starts_once_and_everybody_shares_it(run):
    async def use(kept):
        assert kept.status()["state"] == "stopped" and kept.current() is None and kept.at_hand(BOB) is None
        first, second = await asyncio.gather(kept.reach(BOB), kept.reach(ALICE))
        assert first is second is kept.current() is kept.at_hand(BOB)
        assert first.info["declared"] == EVERYTHING and set(EVERYTHING) == {
            "roots",
            "sampling",
            "elicitation",
        }
        status = kept.status()
        assert (status["state"], status["connections"], status["pid"]) == ("ready", 1, first.pid)
        assert (status["era"], status["version"]) == (HANDSHAKE, "2025-11-25")
        assert status["error"] == "" and status["next_try"] is None and status["restarts"] == 0
        await soon(lambda: kept.ear.readied)
        assert kept.ear.readied == [first] and len(kept.opened) == 1

    run(use)


def test_each_era_is_spoken_as_it_is_where_the_server_knows_it(run):
    async def use(kept):
        await kept.start()
        modern = await kept.reach(MODERN)
        assert modern.era == STATELESS and modern is await kept.reach(Client("other", era=STATELESS))
        assert (await kept.reach(BOB)).era == HANDSHAKE and kept.status()["connections"] == 2

    run(use)


@pytest.mark.parametrize(
    ("eras", "client", "spoken"),
    [
        ("handshake", MODERN, HANDSHAKE),
        ("stateless", BOB, STATELESS),
        ("handshake fragile", MODERN, HANDSHAKE),
    ],
)
def test_otherwise_the_other_era_is_used_and_that_is_remembered(run, facts, tmp_path, eras, client, spoken):
    spec = spec_of(tmp_path, env={"ERAS": eras})

    async def use(kept):
        assert (await kept.reach(client)).era == spoken
        assert kept.at_hand(client).era == spoken
        assert len(kept.opened) == 2

    run(use, spec)
    sure = "fragile" not in eras
    assert facts.get("good", "eras", spec.fingerprint) == ({client.era} if sure else frozenset())

    async def again(kept):
        assert (await kept.reach(client)).era == spoken
        assert len(kept.opened) == 1

    if sure:
        run(again, spec)


def test_what_is_remembered_of_an_era_is_not_held_against_a_newer_server(run, facts, tmp_path):
    spec = spec_of(tmp_path, env={"ERAS": "stateless"})
    facts.put("good", "eras", spec.fingerprint, frozenset({STATELESS})).result()

    async def use(kept):
        assert (await kept.reach(MODERN)).era == STATELESS

    run(use, spec)
    assert facts.get("good", "eras", spec.fingerprint) == {HANDSHAKE}


def test_a_server_of_no_era_we_know_is_said_to_be_one(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable, match="no version of the protocol"):
            await kept.reach(BOB)

    run(use, spec_of(tmp_path, env={"ERAS": "none"}))


def test_clients_that_can_give_what_a_server_asks_for_get_a_connection_of_their_own(run, facts):
    async def use(kept):
        await kept.start()
        kept.needs("elicitation")
        kept.needs("elicitation")
        kept.needs("nonsense")
        own = await kept.reach(ALICE)
        assert own.private_to == "alice" and own.info["declared"] == ALICE.capabilities
        assert own is kept.at_hand(ALICE) is await kept.reach(ALICE)
        shared = await kept.reach(BOB)
        assert shared.private_to == "" and shared is not own
        assert kept.current() is not own

    run(use)
    assert facts.get("good", "needs", spec_fingerprint(facts)) == {"elicitation"}


def spec_fingerprint(facts):
    (row,) = facts._store.query("SELECT value FROM server_fact WHERE fact = 'needs'")
    return msgspec.json.decode(row[0])["fingerprint"]


def test_a_shared_connection_goes_on_declaring_everything_so_that_nothing_disappears(run):
    async def use(kept):
        await kept.start()
        before = kept.current()
        kept.needs("roots")
        assert kept.current() is before and await kept.reach(Client("carol")) is before
        await kept.restart()
        assert kept.current().info["declared"] == EVERYTHING

    run(use)


def test_what_was_learned_outlives_a_restart_but_not_a_change_of_the_server(run, facts, tmp_path):
    spec = spec_of(tmp_path)
    facts.put("good", "needs", spec.fingerprint, frozenset({"roots"})).result()

    async def private(kept):
        assert (await kept.reach(BOB)).private_to == "bob"

    async def shared(kept):
        assert (await kept.reach(BOB)).private_to == ""

    run(private, spec)
    run(shared, msgspec.structs.replace(spec, env={"OTHER": "1"}))


@pytest.mark.parametrize(("share", "private_to", "declared"), [("shared", "", {}), ("client", "bob", None)])
def test_a_person_can_say_how_a_server_is_shared(run, tmp_path, share, private_to, declared):
    async def use(kept):
        kept.needs("roots")
        found = await kept.reach(BOB)
        assert found.private_to == private_to
        assert found.info["declared"] == (BOB.capabilities if declared is None else declared)

    run(use, spec_of(tmp_path, share=share))


def test_stateless_connections_are_anybodys(run, tmp_path):
    async def use(kept):
        first = await kept.reach(Client("a", era=STATELESS, capabilities={"roots": {}}))
        assert first.private_to == "" and first is await kept.reach(MODERN)

    run(use, spec_of(tmp_path, share="client"))


def test_the_longest_idle_makes_room_and_when_all_are_busy_nobody_does(run, tmp_path):
    async def use(kept):
        first = await kept.reach(Client("1"))
        second = await kept.reach(Client("2"))
        await first.request("echo", {}, seconds=PATIENCE)
        third = await kept.reach(Client("3"))
        await soon(lambda: not second.ready)
        assert first.ready and third.ready
        waiting = [asyncio.create_task(each.request("silent", {}, seconds=None)) for each in (first, third)]
        await soon(lambda: first.busy and third.busy)
        with pytest.raises(Unreachable, match="all in use"):
            await kept.reach(Client("4"))
        for each in waiting:
            each.cancel()

    run(use, spec_of(tmp_path, share="client"))


def test_a_client_that_leaves_takes_its_connection_along(run, tmp_path):
    async def use(kept):
        own = await kept.reach(BOB)
        other = await kept.reach(ALICE)
        kept.let_go("bob")
        kept.let_go("nobody")
        await soon(lambda: not is_running(own.pid))
        assert other.ready and kept.at_hand(BOB) is None

    run(use, spec_of(tmp_path, share="client"))


def test_a_connection_of_one_client_that_is_not_used_ends(run, tmp_path):
    async def use(kept):
        own = await kept.reach(BOB)
        await pass_seconds(2 * IDLE)
        await soon(lambda: not own.ready)
        assert kept.status()["connections"] == 0

    run(use, spec_of(tmp_path, share="client"))


def test_a_connection_its_client_waits_at_is_kept_and_comes_back(run, tmp_path):
    async def use(kept):
        kept.ear.held.add("bob")
        own = await kept.reach(BOB)
        for _ in range(3):
            heard = own.heard_at
            await pass_seconds(2 * IDLE)
            # It is asked whether it lives, and has to have the time to say so.
            await soon(lambda heard=heard: own.heard_at > heard)
        assert own.ready and kept.own("bob") is own
        os.kill(own.pid, signal.SIGKILL)
        await soon(lambda: not own.ready)
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(lambda: kept.own("bob") not in (None, own) and len(kept.ear.readied) == 2)
        assert [each.private_to for each in kept.ear.readied] == ["bob", "bob"]
        again = kept.own("bob")
        kept.ear.held.clear()
        await pass_seconds(2 * IDLE)
        await soon(lambda: not again.ready)
        assert kept.status()["connections"] == 0 and len(kept.opened) == 2

    run(use, spec_of(tmp_path, share="client"))


@pytest.mark.invariant("who waits to hear of something does not lose the connection it would come by")
def test_one_that_waits_makes_no_room_for_others(run, tmp_path):
    async def use(kept):
        kept.ear.held |= {"1", "2"}
        first, second = await kept.reach(Client("1")), await kept.reach(Client("2"))
        with pytest.raises(Unreachable, match="all in use"):
            await kept.reach(Client("3"))
        kept.ear.held.discard("1")
        assert (await kept.reach(Client("3"))).ready and second.ready
        await soon(lambda: not first.ready)

    run(use, spec_of(tmp_path, share="client"))


def test_a_server_that_crashes_comes_back_by_itself(run):
    async def use(kept):
        first = await kept.reach(BOB)
        with pytest.raises(Gone):
            await first.request("crash", {}, seconds=PATIENCE)
        status = kept.status()
        assert status["state"] == "waiting" and status["restarts"] == 1 and status["next_try"]
        assert "exit status 3" in status["error"] and "I am dying" not in status["error"] and status["remedy"]
        assert kept.logs() == ["I am dying"] and kept.at_hand(BOB) is None
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(kept.current)
        assert kept.current() is not first and kept.status()["error"] == ""
        await soon(lambda: len(kept.ear.readied) == 2)
        assert [why for _, why in kept.ear.ends] == ["exit status 3"]

    run(use)


def test_whoever_comes_while_it_comes_back_waits_for_it(run):
    async def use(kept):
        first = await kept.reach(BOB)
        os.kill(first.pid, signal.SIGKILL)
        await soon(lambda: not first.ready)
        assert (await kept.reach(BOB)).ready and len(kept.opened) == 2

    run(use)


def test_a_server_that_keeps_crashing_is_tried_later_and_later(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable, match="exit status 9"):
            await kept.start()
        expected = [0.5, 1, 2, 4, 8, 16, 32, 60]
        for number in range(1, len(expected)):
            await pass_seconds(expected[-1])
            await soon(lambda number=number: len(kept.said) > number)
        pauses = [float(each.rpartition(" in ")[2].removesuffix(" s.")) for each in kept.said]
        assert pauses == expected and kept.status()["state"] == "waiting"
        # Nobody waits through so long a pause.
        opened = len(kept.opened)
        with pytest.raises(Unreachable, match="exit status 9"):
            await kept.reach(BOB)
        assert len(kept.opened) == opened

    run(use, spec_of(tmp_path, "import sys; sys.exit(9)"))


def test_nobody_needs_it_nobody_starts_it_again(run):
    async def use(kept):
        first = await kept.reach(BOB)
        kept.let_go("bob")
        await pass_seconds(2 * IDLE)
        os.kill(first.pid, signal.SIGKILL)
        await soon(lambda: kept.status()["state"] == "failed")
        await pass_seconds(2 * line_module.LONGEST_PAUSE)
        assert len(kept.opened) == 1
        assert (await kept.reach(BOB)).ready

    run(use)


def test_what_cannot_work_is_not_tried_again_by_itself(run):
    async def use(kept):
        with pytest.raises(Unreachable, match="no program") as caught:
            await kept.start()
        assert caught.value.remedy
        await pass_seconds(2 * line_module.LONGEST_PAUSE)
        assert kept.status()["state"] == "failed" and len(kept.opened) == 1

    run(use, ServerSpec(name="good", command="no-such-program-here"))


def test_a_reference_that_leads_nowhere_is_named(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable, match="NOT_SET_ANYWHERE"):
            await kept.reach(BOB)
        assert kept.status()["state"] == "failed" and kept.opened == []

    run(use, spec_of(tmp_path, env={"TOKEN": "${NOT_SET_ANYWHERE}"}))


def test_nobody_waits_longer_than_allowed_for_a_server_that_does_not_come_up(run, tmp_path):
    async def use(kept):
        waiting = [asyncio.create_task(kept.reach(Client(str(n)))) for n in range(5)]
        await soon(lambda: kept.opened and kept.opened[0].pid)
        # Once for all of them: whoever waited for it anew would wait for ever.
        await pass_seconds(LONG)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, Unreachable) for each in found)
        assert len(kept.opened) == 1

    run(use, spec_of(tmp_path, "import time; time.sleep(600)"), limits=Limits(start_seconds=LONG))


def test_a_client_that_gives_up_does_not_spoil_it_for_others(run, tmp_path):
    async def use(kept):
        first, second = asyncio.create_task(kept.reach(BOB)), asyncio.create_task(kept.reach(ALICE))
        await soon(lambda: kept.opened and kept.opened[0].pid)
        first.cancel()
        await asyncio.wait([first])
        go.touch()
        assert (await second).ready and len(kept.opened) == 1

    go = tmp_path / "go"
    run(use, spec_of(tmp_path, after(go)))


def test_stopped_is_stopped_until_it_is_started(run):
    async def use(kept):
        first = await kept.reach(BOB)
        await kept.stop()
        assert not is_running(first.pid) and kept.status()["state"] == "stopped"
        with pytest.raises(Unreachable, match="not running"):
            await kept.reach(BOB)
        await kept.start()
        second = await kept.reach(BOB)
        await kept.restart()
        assert second is not kept.current() and kept.current().ready
        await kept.retire()
        assert kept.current() is None

    run(use)


def test_one_that_is_switched_off_is_not_started_by_a_client(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable, match="not running"):
            await kept.reach(BOB)
        await kept.start()
        assert (await kept.reach(BOB)).ready

    run(use, spec_of(tmp_path, enabled=False))


def test_stopping_ends_what_is_still_being_started(run, tmp_path):
    async def use(kept):
        starting = asyncio.create_task(kept.start())
        await soon(lambda: kept.opened and kept.opened[0].pid)
        assert kept.status()["state"] == "starting"
        await kept.stop()
        with pytest.raises((Unreachable, asyncio.CancelledError)):
            await starting

    run(use, spec_of(tmp_path, "import time; time.sleep(600)"))


def test_one_that_does_not_answer_any_more_is_started_anew(run, tmp_path):
    async def use(kept):
        first = await kept.reach(BOB)
        await pass_seconds(2 * line_module.QUIET_SECONDS)
        for missed in range(line_module.MOST_MISSED):
            assert first.ready, missed
            await pass_seconds(line_module.PING_SECONDS)
        await soon(lambda: not first.ready)
        assert first.why == "it does not answer any more"
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(kept.current)

    run(use, spec_of(tmp_path, env={"ERAS": "handshake deaf"}))


def test_one_that_answers_or_is_busy_is_left_alone(run, tmp_path):
    async def answers(kept):
        first = await kept.reach(BOB)
        heard = first.heard_at
        for _ in range(3):
            await pass_seconds(2 * line_module.QUIET_SECONDS)
            await soon(lambda heard=heard: first.heard_at > heard)
            heard = first.heard_at
        assert first.ready and len(kept.opened) == 1

    async def is_busy(kept):
        first = await kept.reach(BOB)
        busy = asyncio.create_task(first.request("silent", {}, seconds=None))
        await soon(lambda: first.busy)
        for _ in range(10):
            await pass_seconds(2 * line_module.QUIET_SECONDS)
        assert first.ready and len(kept.opened) == 1
        busy.cancel()

    run(answers)
    # It would not answer either if it were asked.
    run(is_busy, spec_of(tmp_path, env={"ERAS": "handshake deaf"}))


def test_what_servers_say_is_passed_on(run):
    async def use(kept):
        found = await kept.reach(BOB)
        await found.request("say", {"method": "notifications/x"}, seconds=PATIENCE)
        await found.request("ask", {"method": "roots/list"}, seconds=PATIENCE)
        assert kept.ear.notices[0]["method"] == "notifications/x"
        assert kept.ear.requests[0]["method"] == "roots/list"

    run(use)


def test_the_end_of_what_never_began_is_nobodys_business(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable):
            await kept.start()
        assert kept.ear.ends == [] and kept.ear.readied == []
        assert kept.logs() == ["no licence"]

    run(use, spec_of(tmp_path, "import sys; sys.exit('no licence')"))


WRITES = "import sys\nsys.stderr.write('401 for token tk-live-sesame\\n')\nsys.stderr.flush()\n"
ENDS_LATER = "import os, threading\nthreading.Timer(0.3, os._exit, [3]).start()\n"


@pytest.mark.parametrize(
    "source", [f"{WRITES}sys.exit(3)", f"{WRITES}{ENDS_LATER}{GOOD}"], ids=["dead", "dies"]
)
@pytest.mark.invariant(
    "what a server writes beside its messages, secrets perhaps, is for people who ask for it"
)
def test_what_a_server_wrote_before_it_ended_reaches_no_client_and_no_log(run, tmp_path, source):
    """It may be a secret, or words for a model; people read it where they ask for it."""

    async def use(kept):
        with contextlib.suppress(Unreachable):
            await kept.reach(BOB)
        await soon(lambda: kept.status()["error"])
        seen = f"{kept.status()} {kept.said}"
        assert "sesame" not in seen and "servers logs" in seen
        assert any("sesame" in line for line in kept.logs())

    run(use, spec_of(tmp_path, source))


def test_what_a_server_wrote_is_not_told_to_who_wanted_it(run, tmp_path):
    async def use(kept):
        with pytest.raises(Unreachable) as caught:
            await kept.reach(BOB)
        assert "exit status 3" in str(caught.value) and "sesame" not in str(caught.value)

    run(use, spec_of(tmp_path, f"{WRITES}sys.exit(3)"))
