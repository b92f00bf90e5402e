"""Things break between two calls: nothing runs unjudged, nothing is forgotten, and the record stays whole."""

import json
import os
import signal
import subprocess
import time

import pytest

from e2e.clients.claude import Claude, bash, settings_of
from e2e.clients.house import House
from e2e.clients.processes import is_alive
from patience import until

LS, CURL, MADE = bash("ls"), bash("curl https://example.com/pay"), bash("touch made")


def after(what, *tools):
    """A turn of the model before which something happens."""

    def turn():
        what()
        return {"tools": list(tools)}

    return turn


def judged(house, ran):
    return [house.entry(used.id)["verdict"] for used in ran.tools]


def test_a_killed_server_is_started_again_by_the_next_call(claude, house):
    first = house.server()

    def kill():
        os.kill(first, signal.SIGKILL)
        until(lambda: not is_alive(first))

    ran = claude.run(LS, after(kill, LS), CURL)
    assert house.server() != first
    assert judged(house, ran) == ["allow", "allow", "deny"]
    assert [house.entry(used.id)["result"] for used in ran.tools] == ["success", "success", "denied"]
    assert house.verifies()


def test_a_report_nobody_took_is_taken_in_later(claude, house):
    """The server dies while the tool runs; what came of it is not lost."""
    first = house.server()
    house.file("tool.sh", f"#!/bin/sh\nkill -9 {first}\n").chmod(0o755)
    with house.agreeable():
        ran = claude.run(bash("./tool.sh"), LS)
    found = house.entry(ran[0].id)
    assert (found["answer"], found["result"]) == ("approved", "success")
    assert judged(house, ran) == ["ask", "allow"]
    assert house.verifies()


def test_a_server_that_hangs_is_a_refusal_within_seconds(claude, house):
    server = house.server()
    begun = []

    def stop():
        os.kill(server, signal.SIGSTOP)
        begun.append(time.monotonic())

    def go_on():
        begun.append(time.monotonic())
        os.kill(server, signal.SIGCONT)

    ran = claude.run(after(stop, LS), after(go_on, LS))
    assert begun[1] - begun[0] < 15
    assert ran[0].failed and "Checkrein" in ran[0].told and "README.md" not in ran[0].told
    assert not ran[1].failed, ran[1].told
    assert house.verifies()


def test_a_full_disk_refuses_everything(house):
    disk = house.state
    disk.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", disk],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        claude = Claude(house)
        house.install(claude.agent)
        ballast = disk / "ballast"

        def fill():
            with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(b"x" * 4096)

        ran = claude.run(LS, after(fill, LS), *[LS] * 6, after(ballast.unlink, LS))
        full = ran.tools[1:-1]
        known = {each["call_id"] for each in house.entries()}
        # INVARIANT: what is not on the record does not run.
        assert all(used.failed or used.id in known for used in full)
        assert any(used.failed for used in full), "the disk was never full"
        refused = next(used for used in full if used.failed)
        assert "Checkrein" in refused.told and "README.md" not in refused.told
        assert not ran[-1].failed, ran[-1].told
        assert house.verifies()
    finally:
        house.stop()
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("net", ["the line's own `|| exit 2`", "the client's `onFailure`"])
def test_a_hook_program_that_is_missing_refuses_everything(claude, house, net):
    settings = settings_of(house.project)
    lines = json.loads(settings.read_text())
    for (hook,) in ([hook for item in items for hook in item["hooks"]] for items in lines["hooks"].values()):
        hook["command"] = f"/nowhere{hook['command']}"
        if "onFailure" in net:
            hook["command"] = hook["command"].removesuffix(" || exit 2")
        else:
            hook.pop("onFailure", None)
    settings.write_text(json.dumps(lines))
    ran = claude.run(LS, MADE, CURL)
    assert all(used.failed for used in ran.tools), [each.told for each in ran.tools]
    assert not (house.project / "made").exists()
    assert house.entries() == []


@pytest.mark.parametrize("text", [None, "nonsense\n"], ids=["missing", "broken"])
def test_a_door_file_that_says_nothing_refuses_everything(claude, house, text):
    house.checkrein("down")
    house.door.unlink() if text is None else house.door.write_text(text)
    ran = claude.run(LS, MADE)
    assert all(used.failed for used in ran.tools)
    assert "README.md" not in ran[0].told
    assert not (house.project / "made").exists()
    house.checkrein("up")
    assert not claude.run(LS)[0].failed
    assert house.verifies()


def test_settings_that_break_between_two_calls_refuse_from_the_next_on(claude, house):
    path = house.home / ".config" / "checkrein" / "config.toml"
    ran = claude.run(LS, after(lambda: house.settings("nonsense ["), LS), MADE, after(path.unlink, LS))
    assert [used.failed for used in ran.tools] == [False, True, True, False]
    assert str(path) in ran[1].told
    assert judged(house, ran) == ["allow", "deny", "deny", "allow"]
    assert house.verifies()


def test_a_store_that_is_no_store_refuses_everything(claude, house):
    house.checkrein("down")
    store = house.state / "checkrein.db"
    kept = store.read_bytes()
    for extra in ("-wal", "-shm"):
        store.with_name(store.name + extra).unlink(missing_ok=True)
    store.write_bytes(b"not a database" * 1000)
    ran = claude.run(LS, MADE)
    assert all(used.failed for used in ran.tools)
    assert not (house.project / "made").exists()
    store.write_bytes(kept)
    assert not claude.run(LS)[0].failed
    assert house.verifies()


def test_two_agents_and_a_server_that_keeps_dying_lose_no_call():
    house = House()
    try:
        claude, other = Claude(house), Claude(house)
        house.install(claude.agent)

        def kill():
            pid = house.servers()[-1]
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)

        house.server()
        going = claude.begin(*[after(kill, LS) for _ in range(6)])
        ran = [*other.run(*[LS] * 12).tools, *going.result().tools]
        known = [each["call_id"] for each in house.entries()]
        assert len(known) == len(set(known))
        assert {used.id for used in ran if not used.failed} <= set(known)
        assert house.verifies()
    finally:
        house.leave()
