import json
import signal

import pytest

from checkrein.call import tool_call
from checkrein.cli.opening import reading
from checkrein.cli.watch import described, happening, line, newest
from checkrein.store import records
from deciding import set_user_phase
from patience import PATIENCE, until


def events(process):
    return [json.loads(each) for each in process.said().splitlines() if each.startswith("{")]


def test_everything_appears_as_it_happens_until_ctrl_c(run, server, agent, started):
    run("phase", "building")
    watching = started("watch", "--json")
    plain = started("watch")
    until(lambda: "Watching" in plain.said() and "Watching" in watching.said())
    agent.judged("curl https://evil.invalid/", "toolu_1")
    # The first that happens after it said so.
    (seen,) = until(lambda: events(watching))
    assert (seen["kind"], seen["verdict"], seen["tool"]) == ("decided", "deny", "Bash")
    assert seen["input"] == {"command": "curl https://evil.invalid/"}
    assert seen["session_id"] == agent.session
    until(lambda: "DENY" in plain.said())
    for each in (watching, plain):
        each.send_signal(signal.SIGINT)
        assert each.wait(PATIENCE) == 0
        assert "Traceback" not in each.said()


def test_a_store_that_does_not_exist_yet_is_waited_for(run, started, pipeline_made_later, project):
    watching = started("watch", "--json")
    until(lambda: "Watching" in watching.said())
    raw = {"tool": "Bash", "arguments": {"command": "ls"}, "project": project}
    pipeline_made_later(lambda pipeline: pipeline.decide(tool_call(raw)))
    (seen,) = until(lambda: events(watching))
    assert seen["decision"] == "logged_only"


@pytest.fixture
def pipeline_made_later():
    from checkrein.pipeline import Pipeline
    from checkrein.settings.sources import state_dir
    from checkrein.store.sqlite import SqliteStore

    def use(work):
        pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
        try:
            return work(pipeline)
        finally:
            pipeline.close()

    return use


def test_what_happened_before_is_not_shown(pipeline, project):
    def call(command):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project}
        return pipeline.decide(tool_call(raw)).entry

    call("ls before")
    since = newest()
    call("ls after")
    seen = happening(since)
    assert next(seen)["input"] == {"command": "ls after"}
    call("ls later")
    assert next(seen)["input"] == {"command": "ls later"}


def test_each_kind_reads_well_and_drives_no_terminal(pipeline, project):
    raw = {"tool": "Bash", "arguments": {"command": "make \x1b[2J"}, "project": project}
    set_user_phase(pipeline, "building")
    asked = pipeline.decide(tool_call(raw), asking=True).entry
    pipeline.answer(asked, "approved", actor="ada", channel="terminal", message="go")
    pipeline.finish(asked, "success")
    with reading() as reader:
        rows = [row for row in records.after(reader, 0) if row[3] == asked and row[2] != "asked"]
        decided, answered, finished = [described(reader, row) for row in rows]
    assert "ASK" in line(decided)
    assert "ada (terminal) go" in line(answered)
    assert "success" in line(finished)
    for each in (decided, answered, finished):
        assert "\x1b[2J" not in line(each)
