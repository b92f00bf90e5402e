"""A store of the program's own: crashes are visible and repeat nothing, and no tool changes the record."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from checkrein import Denied, Gate, Suspended
from checkrein.doors.library.embedded import Embedded
from checkrein.errors import InputError, StoreError
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.verify import verify
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE

# A program that asks, is answered by its own script, and dies where it is told to.
PROGRAM = """
import json, os, signal, sys
from checkrein import Gate
folder, where, idempotent, log = sys.argv[1:]
gate = Gate(folder, asks="raise", project=os.path.dirname(folder))

def die(place):
    if where == place:
        os.kill(os.getpid(), signal.SIGKILL)

@gate.tool(name="pick", idempotent=idempotent == "1")
def pick(n):
    die("before running")
    with open(log, "a") as file:
        file.write(f"{n}\\n")
    die("before recording")
    return n

waiting = sys.stdin.read()
try:
    print(json.dumps({"result": gate.resume(waiting) if waiting else pick(1)}))
except BaseException as stopped:
    if not hasattr(stopped, "pending"):
        print(json.dumps({"error": str(stopped)}))
    else:
        gate.answer(stopped.pending, "yes")
        print(stopped.pending.json())
gate.close()
"""


@pytest.fixture
def program(tmp_path):
    log = tmp_path / "ran"

    def run(waiting="", where="", idempotent="0"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "gate"), where, idempotent, str(log)],
            input=waiting,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == (-signal.SIGKILL if where else 0), done.stderr
        return done.stdout

    run.times = lambda: len(log.read_text().splitlines()) if log.exists() else 0
    return run


def test_a_crash_between_approval_and_execution_is_unknown_and_is_not_repeated(program, room):
    waiting = program()
    program(waiting, where="before running")
    assert program.times() == 0
    said = json.loads(program(waiting))
    assert "What became of the call is unknown" in said["error"]
    assert program.times() == 0
    room.open()
    first = room.entries()[0]
    assert (first.answer, first.result, first.evidence) == ("approved", "unknown", "the program ended")
    assert first.started_at is not None


def test_a_crash_between_execution_and_recording_is_unknown_and_is_not_repeated(program, room):
    waiting = program()
    program(waiting, where="before recording")
    assert program.times() == 1
    assert "unknown" in json.loads(program(waiting))["error"]
    assert program.times() == 1
    room.open()
    assert room.entries()[0].result == "unknown"


def test_a_tool_that_may_run_twice_is_repeated_where_its_fate_is_unknown_and_only_there(program):
    waiting = program(idempotent="1")
    program(waiting, where="before recording", idempotent="1")
    assert json.loads(program(waiting, idempotent="1")) == {"result": 1}
    assert program.times() == 2


def test_resuming_in_two_programs_executes_once(program):
    waiting = program()
    assert json.loads(program(waiting)) == {"result": 1}
    assert "used before. What became of the call: success" in json.loads(program(waiting))["error"]
    assert program.times() == 1


def test_an_allowed_call_that_never_ended_is_unknown_when_the_store_is_opened_again(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()
    gate.decide("mcp__garden__look", {})
    gate.close()
    room.open()
    assert (room.last().result, room.last().evidence) == ("unknown", "the program ended")


def test_what_waits_is_left_alone_when_the_store_is_opened_again(room, user_settings):
    gate = room.open(asks="return")
    gate.wrap(lambda n: n, name="pick")(1)
    assert "finished" not in room.kinds()
    room.open()
    assert "finished" not in room.kinds() and len(room.gate.pending()) == 1


def test_the_record_is_a_chain_of_its_own_that_verifies(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()
    for n in range(5):
        gate.wrap(lambda n: n, name="look")(n)
    room.gate.flush()
    assert verify(room.pipeline.store, room.folder, room.pipeline.ledger.signer.public).records == 10


def test_no_tool_changes_the_store_that_judges_it(room, tmp_path, user_settings):
    user_settings('[[rules]]\naction = "allow"\npattern = "*"\n')
    gate = room.open(project=tmp_path)
    write = gate.wrap(lambda path, content: 1, name="write_file")
    assert write(str(tmp_path / "notes.txt"), "x") == 1
    with pytest.raises(Denied) as denied:
        write(str(room.folder / "checkrein.db"), "x")
    assert denied.value.verdict.stage == "floor"
    with pytest.raises(Denied):
        gate.wrap(lambda command: 1, name="Bash")(f"rm -rf {room.folder}")


def test_a_forked_program_shares_no_store(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()
    look = gate.wrap(lambda: 1, name="look")
    assert look() == 1
    child = os.fork()
    if not child:
        try:
            look()
            os._exit(1)
        except Denied:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert look() == 1


def test_a_program_that_ends_without_closing_reports_what_it_did(tmp_path, user_settings, room):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    code = "import sys; from checkrein import Gate; Gate(sys.argv[1]).wrap(lambda: 1, name='look')()"
    subprocess.run([sys.executable, "-c", code, str(room.folder)], check=True, timeout=PATIENCE)
    room.open()
    assert room.last().result == "success"


def test_what_costs_trust_is_on_the_record_before_the_next_call(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()

    def look(ok):
        if not ok:
            raise ValueError

    tool = gate.wrap(look)
    tool(True)
    with pytest.raises(ValueError):
        tool(False)
    kinds = [row[0] for row in room.pipeline.store.query("SELECT kind FROM record ORDER BY seq")]
    assert kinds == ["decided", "decided", "finished", "finished"]


def suspended_call(room):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as suspended:
        gate.wrap(lambda n: n, name="pick")(1)
    return suspended.value


def test_an_answer_may_change_a_call_that_an_earlier_program_made(room):
    waiting = suspended_call(room)
    gate = room.open()
    assert gate.answer(waiting.entry, "yes", edited={"n": 2}) == "approved"
    gate.wrap(lambda n: n, name="pick")
    assert gate.resume(waiting.pending) == 2


def test_a_call_that_cannot_be_read_any_more_is_approved_in_no_way(room):
    waiting = suspended_call(room)
    room.open().close()
    (room.folder / "questions.key").unlink()
    gate = room.open()
    for edited in ({"n": 2}, None):
        with pytest.raises(InputError, match="cannot be read"):
            gate.answer(waiting.entry, "yes", edited=edited)
    assert gate.answer(waiting.entry, "no") == "denied"


def test_a_store_can_be_closed_twice(tmp_path):
    made = Embedded(tmp_path / "gate")
    made.close()
    made.close()


def test_a_closed_store_refuses(room):
    gate = room.open()
    gate.close()
    with pytest.raises(Denied, match="closed"):
        gate.wrap(lambda: 1, name="look")()


def test_a_full_suite_of_threads_leaves_one_line_for_each_call(room, user_settings, later):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()
    look = gate.wrap(lambda n: n, name="look")
    waits = [later(lambda k=k: [look(100 * k + n) for n in range(40)]) for k in range(4)]
    assert sum(len(each()) for each in waits) == 160
    found = room.entries()
    assert len(found) == 160 and {each.result for each in found} == {"success"}
    assert verify(room.pipeline.store, room.folder, room.pipeline.ledger.signer.public).records == 320


def test_the_default_clock_is_the_systems(tmp_path):
    with Gate(tmp_path / "gate") as gate:
        assert abs(gate.authority.pipeline.clock() - time.time()) < 5


def test_a_call_that_cannot_be_judged_is_refused(room, monkeypatch, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    gate = room.open()

    def broken(*_given):
        raise StoreError("The disk is gone.")

    monkeypatch.setattr(room.pipeline.asking, "grant", broken)
    with pytest.raises(Denied, match="The disk is gone"):
        gate.wrap(lambda: 1, name="look", needs_approval=True)()


def test_calls_nobody_reports_on_take_no_memory_for_ever(room, monkeypatch, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    monkeypatch.setattr("checkrein.doors.library.embedded._MOST_BEGUN", 3)
    gate = room.open()
    made = [gate.decide("mcp__x__look", {"n": n}).entry for n in range(9)]
    assert len(gate.authority._begun) == 3
    gate.finish(made[0], "success")
    assert room.entries()[0].result == "success"


def test_questions_of_a_program_that_ended_run_out(room, clock):
    gate = room.open(asks="return", settings=["approval.timeout_seconds=60"])
    gate.wrap(lambda n: n, name="pick")(1)
    room.close()
    clock.now = time.time() + 61
    made = Embedded(room.folder, clock=clock)
    try:
        assert made.questions() == []
        (entry,) = entries(made.pipeline.store, Filter())
        assert (entry.answer, entry.result) == ("expired", "timeout")
    finally:
        made.close()


KILLED = """
import os, sys
from pathlib import Path
from checkrein.call import tool_call
from checkrein.doors.library.embedded import Embedded

gate = Embedded(Path(sys.argv[1]))
for number in range(5):
    call = {"tool": "Read", "arguments": {"file_path": f"f{number}"}, "project": "/p"}
    gate.pipeline.decide(tool_call(call))
os._exit(9)
"""


def test_a_program_that_was_killed_leaves_a_doubt_and_the_next_gate_says_so(tmp_path):
    folder = tmp_path / "gate"
    done = subprocess.run([sys.executable, "-c", KILLED, folder], capture_output=True, check=False)
    assert done.returncode == 9, done.stderr
    store = SqliteStore.open(folder, read_only=True)
    found = verify(store, folder, Signer(folder).public)
    store.close()
    assert (found.broken, found.unsigned) == (None, 4)
    assert [each.kind for each in found.findings] == ["unsigned"]
    Embedded(folder).close()
    store = SqliteStore.open(folder, read_only=True)
    found = verify(store, folder, Signer(folder).public)
    store.close()
    assert found.ok and [each.kind for each in found.notes] == ["start"]
