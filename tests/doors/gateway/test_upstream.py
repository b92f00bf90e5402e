import asyncio
import gc

import pytest

from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    HANDSHAKE_VERSIONS,
    INFO_KEY,
    LEVEL_KEY,
    STATELESS,
    VERSION_KEY,
    RpcError,
    response,
)
from checkrein.doors.gateway.pipes import LOST, Gone, PipeError, pipe_for
from checkrein.doors.gateway.upstream import Upstream, WrongEra
from doors.gateway.back import Ear, is_running, spec_of
from patience import PATIENCE, soon

INFO = {"name": "test", "version": "1"}


def run(spec, use, *, era=HANDSHAKE, seconds=PATIENCE, capabilities=None, problems=None):
    """Start a connection, use it, end it; nothing may be left, and nothing may go wrong unseen."""
    ear = Ear()

    async def main():
        seen = [] if problems is None else problems
        asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context))
        upstream = Upstream(spec.name, lambda hear, over: pipe_for(spec, hear, over), ear)
        try:
            await upstream.start(era=era, capabilities=capabilities or {}, info=INFO, seconds=seconds)
            await use(upstream, ear)
        finally:
            await upstream.close()
            assert upstream.pid is None or not is_running(upstream.pid)
            assert not upstream.ready and len(ear.ends) == 1
        if problems is None:
            assert seen == []

    asyncio.run(main())
    gc.collect()


async def nothing(upstream, ear):
    pass


def test_the_handshake_tells_both_sides_who_the_other_is(tmp_path):
    async def use(upstream, ear):
        assert upstream.ready and (upstream.era, upstream.version) == (HANDSHAKE, "2025-11-25")
        assert upstream.info == {"name": "good", "declared": {"roots": {}}, "client": INFO}
        assert upstream.capabilities == {"tools": {}, "odd": {"x": 1}}
        assert upstream.instructions == "Be kind."

    run(spec_of(tmp_path), use, capabilities={"roots": {}})


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_every_version_of_the_handshake_is_spoken(tmp_path, version):
    async def use(upstream, ear):
        assert upstream.version == version

    run(spec_of(tmp_path, env={"VERSION": version}), use)


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", ""])
def test_a_version_we_do_not_know_is_refused(tmp_path, version):
    with pytest.raises(PipeError, match="do not know"):
        run(spec_of(tmp_path, env={"VERSION": version}), nothing)


def test_the_stateless_era_carries_its_envelope_on_every_request(tmp_path):
    async def use(upstream, ear):
        assert (upstream.era, upstream.version, upstream.info) == (STATELESS, "2026-07-28", {"name": "good"})
        found = await upstream.request("echo", {"_meta": {"own": 1}, "x": 2}, seconds=PATIENCE)
        meta = {"own": 1, VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {"roots": {}}, INFO_KEY: INFO}
        assert found == {"x": 2, "_meta": meta}
        envelope = {CAPABILITIES_KEY: {"sampling": {}}, LEVEL_KEY: "info", VERSION_KEY: "1999-01-01"}
        found = await upstream.request("echo", {}, seconds=PATIENCE, stateless=envelope)
        assert found["_meta"] == {**envelope, VERSION_KEY: "2026-07-28"}
        found = await upstream.request("echo", {}, seconds=PATIENCE, stateless={})
        assert found["_meta"] == {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}

    run(spec_of(tmp_path), use, era=STATELESS, capabilities={"roots": {}})


def test_the_handshake_era_changes_no_params(tmp_path):
    async def use(upstream, ear):
        given = {"_meta": {"progressToken": "theirs", "own": 1}, "x": [None, 1.5, "é"]}
        assert await upstream.request("echo", given, seconds=PATIENCE) == given

    run(spec_of(tmp_path), use)


@pytest.mark.parametrize(
    ("env", "era", "sure"),
    [
        ({"ERAS": "handshake"}, STATELESS, True),
        ({"ERAS": "stateless"}, HANDSHAKE, True),
        ({"VERSIONS": "2025-11-25 2099-01-01"}, STATELESS, True),
        ({"ERAS": "handshake silent"}, STATELESS, False),
        ({"ERAS": "handshake fragile"}, STATELESS, False),
    ],
)
def test_a_server_of_the_other_era_is_told_apart_from_a_broken_one(tmp_path, env, era, sure):
    seconds = 0.1 if "silent" in env.get("ERAS", "") else PATIENCE
    with pytest.raises(WrongEra) as caught:
        run(spec_of(tmp_path, env=env), nothing, era=era, seconds=seconds)
    assert caught.value.sure is sure


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import sys; sys.stderr.write('no licence\\n'); sys.exit(7)", "exit status 7. See"),
        ("import time; time.sleep(600)", "did not answer within 0.1 seconds"),
        ("while True: print('x')", "lines that are no messages"),
        (
            "import os, sys, time; sys.stdin.readline(); os.close(1); time.sleep(600)",
            "closed its input or output",
        ),
        (
            'input(); print(\'{"jsonrpc": "2.0", "id": 1, "result": [1]}\', flush=True); input()',
            "do not know",
        ),
    ],
)
def test_a_server_that_does_not_come_up_says_why(tmp_path, source, words):
    seconds = 0.1 if "sleep(600)" in source and "close" not in source else PATIENCE
    with pytest.raises(PipeError, match=words) as caught:
        run(spec_of(tmp_path, source), nothing, seconds=seconds)
    assert caught.value.remedy


def test_starting_can_be_given_up(tmp_path):
    async def main():
        spec = spec_of(tmp_path, "import time; time.sleep(600)")
        upstream = Upstream("a", lambda hear, over: pipe_for(spec, hear, over), Ear())
        starting = asyncio.create_task(
            upstream.start(era=HANDSHAKE, capabilities={}, info=INFO, seconds=PATIENCE)
        )
        await soon(lambda: upstream.pid)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not is_running(upstream.pid)

    asyncio.run(main())


def test_every_answer_finds_its_request(tmp_path):
    async def use(upstream, ear):
        asked = [upstream.request("echo", {"number": number}, seconds=PATIENCE) for number in range(500)]
        assert await asyncio.gather(*asked) == [{"number": number} for number in range(500)]
        assert upstream.busy == 0

    run(spec_of(tmp_path), use)


def test_a_servers_error_comes_as_it_is(tmp_path):
    async def use(upstream, ear):
        with pytest.raises(RpcError) as caught:
            await upstream.request("nonsense", {}, seconds=PATIENCE)
        body = {"code": -32601, "message": "Method not found", "data": {"method": "nonsense"}}
        assert caught.value.body == body

    run(spec_of(tmp_path), use)


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_a_request_that_takes_too_long_is_cancelled_and_its_late_answer_dropped(tmp_path, era):
    async def use(upstream, ear):
        with pytest.raises(TimeoutError, match=r"0\.1 seconds"):
            await upstream.request("silent", {}, seconds=0.1)
        (found,) = await upstream.request("cancelled", {}, seconds=PATIENCE)
        assert found["requestId"] == 2 and upstream.busy == 0
        upstream._hear(response(2, {}))

    run(spec_of(tmp_path), use, era=era)


def test_whoever_stops_waiting_cancels_the_request(tmp_path):
    async def use(upstream, ear):
        asked = asyncio.create_task(upstream.request("silent", {}, seconds=None))
        await soon(lambda: upstream.busy)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert [each["requestId"] for each in await upstream.request("cancelled", {}, seconds=PATIENCE)] == [
            2
        ]

    run(spec_of(tmp_path), use)


def test_a_server_that_dies_leaves_nobody_waiting(tmp_path):
    async def use(upstream, ear):
        waiting = [asyncio.create_task(upstream.request("silent", {}, seconds=None)) for _ in range(3)]
        waiting.append(asyncio.create_task(upstream.request("crash", {}, seconds=None)))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [(type(each), str(each)) for each in found] == [(Gone, "exit status 3")] * 4
        assert ear.ends == [(upstream, "exit status 3")] and upstream.why == "exit status 3"
        assert not upstream.ready and upstream.tail == ("I am dying",)
        with pytest.raises(Gone):
            await upstream.request("echo", {}, seconds=PATIENCE)
        upstream.notify("x")
        upstream.respond(response(1, {}))

    run(spec_of(tmp_path), use)


def test_an_answer_that_cannot_come_any_more_ends_only_its_request(tmp_path):
    async def use(upstream, ear):
        waiting = asyncio.create_task(upstream.request("silent", {}, seconds=None))
        await soon(lambda: upstream.busy)
        upstream._hear({"jsonrpc": "2.0", "id": 2, LOST: "the stream ended"})
        with pytest.raises(Gone, match="the stream ended"):
            await waiting
        assert await upstream.request("echo", {}, seconds=PATIENCE) == {}

    run(spec_of(tmp_path), use)


def test_progress_reaches_who_asked_for_it_and_nobody_else(tmp_path):
    async def use(upstream, ear):
        steps = []
        await upstream.request(
            "progress", {"_meta": {"progressToken": "theirs"}}, seconds=PATIENCE, progress=steps.append
        )
        assert steps == [{"progressToken": 2, "progress": step} for step in range(3)]
        await upstream.request("echo", {}, seconds=PATIENCE)
        assert len(steps) == 3 and ear.notices == []

    run(spec_of(tmp_path), use)


def test_what_a_server_says_and_asks_by_itself_reaches_the_listener(tmp_path):
    async def use(upstream, ear):
        await upstream.request("say", {"method": "notifications/tools/list_changed"}, seconds=PATIENCE)
        assert ear.notices == [
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"x": 1}}
        ]
        await upstream.request("ask", {"method": "roots/list"}, seconds=PATIENCE)
        assert ear.requests == [{"jsonrpc": "2.0", "id": "s1", "method": "roots/list", "params": {}}]
        upstream.respond(response("s1", {"roots": []}))
        await soon(lambda: len(ear.notices) == 2)
        assert ear.notices[1]["params"] == response("s1", {"roots": []})

    run(spec_of(tmp_path), use)


def test_a_ping_is_answered_here(tmp_path):
    async def use(upstream, ear):
        await upstream.request("ask", {"method": "ping"}, seconds=PATIENCE)
        await soon(lambda: ear.notices)
        assert ear.requests == [] and ear.notices[0]["params"] == response("s1", {})

    run(spec_of(tmp_path), use)


def test_a_listeners_mistake_ends_no_connection(tmp_path):
    problems = []

    async def use(upstream, ear):
        def broken(*_):
            raise KeyError("oops")

        ear.asked = ear.heard = broken
        await upstream.request("say", {"method": "notifications/x"}, seconds=PATIENCE)
        await upstream.request("ask", {"method": "roots/list"}, seconds=PATIENCE)
        await upstream.request("progress", {}, seconds=PATIENCE, progress=broken)
        ear.heard = lambda _, message: ear.notices.append(message)
        await upstream.request("ask", {"method": "ping"}, seconds=PATIENCE)
        await soon(lambda: ear.notices)

    run(spec_of(tmp_path), use, problems=problems)
    # One notification, one request and the answer to our answer, three steps.
    assert len(problems) >= 5 and all(isinstance(each["exception"], KeyError) for each in problems)


def test_a_request_the_listener_could_not_take_is_answered_with_an_error(tmp_path):
    async def use(upstream, ear):
        def broken(*_):
            raise KeyError("oops")

        ear.asked = broken
        await upstream.request("ask", {"method": "roots/list"}, seconds=PATIENCE)
        await soon(lambda: ear.notices)
        assert ear.notices[0]["params"]["error"]["code"] == -32603

    run(spec_of(tmp_path), use, problems=[])


def test_only_real_use_counts_as_use(tmp_path):
    async def use(upstream, ear):
        before = upstream.used_at
        await upstream.request("ping", {}, seconds=PATIENCE)
        assert upstream.used_at == before < upstream.heard_at
        await upstream.request("echo", {}, seconds=PATIENCE)
        assert upstream.used_at > before

    run(spec_of(tmp_path), use)
