"""A process that holds a conversation and is made to die in the middle of it, at a step that is counted.

Reads jobs, one JSON document a line; each is done in a process of its own that is forked from this one, so
that what is heavy is loaded once: this one has held a conversation itself before the first job.
"""

import contextlib
import itertools
import json
import os
import sys
import tempfile
import threading
import traceback
from pathlib import Path

from chat_ground import Rules, Talk, Tools, opened, text_result, tool
from checkrein.errors import CheckreinError
from checkrein.store.questions import waiting
from checkrein.store.sqlite import SqliteStore
from patience import until

SCRIPT = """\
/say let me see
/call notes__get {"n": 1}
/call notes__put {"n": 2}
/then
/call notes__put {"n": 3}
/then
/call notes__free {"n": 4}
/then
/slow 2
/results"""
OVER = ("done", "failed", "aborted", "interrupted")


class Counted(Tools):
    """Writes down what ran where a dead process cannot take it back."""

    async def carry(self, call, name, entry, *, progress):
        tick()
        came = await super().carry(call, name, entry, progress=progress)
        tick()
        return came


def notes(pipeline, log):
    get = tool("notes__get", annotations={"readOnlyHint": True})
    made = Counted(pipeline, get, tool("notes__put"), tool("notes__free"))

    async def runs(call, _progress):
        with log.open("a") as file:
            file.write(f"{call.arguments['n']}\n")
        tick()
        return text_result(f"ran {call.arguments['n']}")

    made.does = dict.fromkeys(made.all, runs)
    return made


_steps, _die, _lock = itertools.count(1), [0], threading.Lock()


def tick():
    with _lock:
        if next(_steps) == _die[0]:
            os._exit(9)


def count_writes():
    for name in ("write", "submit"):
        before = getattr(SqliteStore, name)

        def counted(self, *given, _before=before, **more):
            tick()
            try:
                return _before(self, *given, **more)
            finally:
                tick()

        setattr(SqliteStore, name, counted)


def answer_all(talk):
    """Say yes to whatever is asked until nothing is under way; to one call with other arguments."""

    def is_over():
        if not (talk.store.unfinished_runs() or talk.chat.busy):
            return True
        for call in talk.chat.session(id=talk.id)["calls"].values():
            if call.get("question"):
                more = {"edited": {"n": 30}} if call["arguments"] == {"n": 3} else {}
                with contextlib.suppress(CheckreinError):
                    talk.approve(call, **more)
        return False

    until(is_over, failing="it never ends")


def begin(place, die):
    pipeline = opened()
    talk = Talk(pipeline, notes(pipeline, place / "ran"))
    for name in ("get", "free"):
        Rules(pipeline).add("allow", name)
    (place / "session").write_text(talk.id)
    _die[0] = die + next(_steps) if die else 0
    count_writes()
    talk.say(SCRIPT)
    answer_all(talk)
    talk.close()
    (place / "steps").write_text(str(next(_steps)))


def go_on(place):
    pipeline = opened()
    talk = Talk(pipeline, notes(pipeline, place / "ran"), session=(place / "session").read_text())
    answer_all(talk)
    calls = [
        {"n": each.arguments["n"], "status": each.status, "error": each.error, "edited": each.edited}
        for each in talk.calls()
    ]
    runs = [each.state for each in talk.store.runs_of(talk.id)]
    open_ones = len(waiting(pipeline.store))
    if runs:
        talk.check()
    ended = talk.finish("/say still here")
    answer = talk.answer()
    report = {"calls": calls, "runs": runs, "open": open_ones, "ended": ended, "answer": answer}
    (place / "report").write_text(json.dumps(report))
    talk.close()


def live_in(place):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        os.environ[name] = str(place)


def load():
    """Everything a conversation needs, by holding one; nothing of it is left that a child could share."""
    with tempfile.TemporaryDirectory() as place:
        live_in(place)
        pipeline = opened()
        talk = Talk(pipeline, notes(pipeline, Path(place) / "ran"))
        talk.say(SCRIPT)
        answer_all(talk)
        talk.close()
    assert threading.enumerate() == [threading.main_thread()], "a child would lack its threads"


def do(job):
    place = Path(job["place"])
    live_in(place)
    if job["do"] == "begin":
        begin(place, job["die"])
    else:
        go_on(place)


def main():
    load()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            code = 1
            try:
                do(json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
