import pytest

from checkrein.console.views.runs import script_lines
from javascript_ground import ready_made
from mcp_stdio import Notes

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}\u202egnp.exe\x1b[31m"
SETTINGS = """
[evaluation.profiles.careful]
asklist = ["notes__read_note"]
denylist = ["notes__delete_note"]
"""
READS = "const r = await codemode.notes__read_note({title: 'a'});\nconsole.log('read');\nreturn r.content;"


@pytest.fixture
def script(console, tmp_path, user_settings):
    """Runs a person's script through a real gateway with a real server behind it."""
    ready_made()
    user_settings(SETTINGS)
    notes, ask = Notes(tmp_path), console.desk.ask
    ask("upstream.add", name="notes", entry={"command": notes.words[0], "args": notes.words[1:]})
    ask("upstream.start", name="notes")
    shown = ask("upstream.review", name="notes")
    picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in shown]
    ask("upstream.accept", name="notes", picks=picks)
    ask("rule.add", rule={"action": "allow", "server": "notes", "pattern": "read_*"})

    def run(source=READS, **more):
        return ask("run.start", source=source, wait=20, **more)

    return run


def test_a_page_without_runs_says_how_to_begin(visitor):
    assert "checkrein eval run" in visitor.get("/runs").text
    assert visitor.get("/runs/run-nobodys").status == 404


def test_a_run_is_listed_and_has_its_story(visitor, script):
    found = script()
    assert found["status"] == "done", found
    listed = visitor.get("/runs").text
    assert f'data-run="{found["run_id"]}"' in listed and '<span class="word done">done</span>' in listed
    page = visitor.get(f"/runs/{found['run_id']}").text
    assert 'aria-current="page">Runs' in page
    assert '<span class="line done" data-line="1">' in page
    assert "notes__read_note" in page and "allowed" in page and "What it printed" in page
    assert 'data-end="done"' in page and "End this run" not in page
    piece = visitor.piece(f"/runs/{found['run_id']}/state").text
    assert "<html" not in piece and 'data-end="done"' in piece
    assert f'data-run="{found["run_id"]}"' in visitor.piece("/runs/rows").text


def test_a_run_that_waits_leads_to_its_question_and_can_be_ended(visitor, script, console):
    found = script(profile="careful")
    assert found["status"] == "paused", found
    address = f"/runs/{found['run_id']}"
    page = visitor.get(address).text
    assert "It waits for your answer about <code>notes__read_note</code>" in page
    assert f'#q-{found["waiting"][0]["question"]}"' in page and "End this run" in page
    assert visitor.post(f"{address}/cancel").status == 303
    page = visitor.get(address).text
    assert "The run is ended." in page and 'data-end="cancelled"' in page
    assert visitor.post(f"{address}/cancel").status == 303
    assert "ended already" in visitor.get(address).text
    assert console.desk.ask("question.list") == []


def test_only_our_own_pages_end_a_run(visitor, stranger, script):
    found = script(profile="careful")
    path = f"/runs/{found['run_id']}/cancel"
    assert stranger.request("POST", f"{visitor.place}{path}").status == 401
    assert visitor.post(path, {"csrf": "wrong"}).status == 403
    assert "It waits for your answer" in visitor.get(f"/runs/{found['run_id']}").text


def test_refusals_and_failures_are_told_apart(visitor, script):
    found = script("codemode.notes__delete_note({})", profile="careful")
    page = visitor.get(f"/runs/{found['run_id']}").text
    assert "denied: denied" in page and 'class="line denied"' in page and "How it ended" in page
    found = script("const a = 1;\nthrow new Error('no such luck');")
    page = visitor.get(f"/runs/{found['run_id']}").text
    assert "no such luck" in page and "line 2" in page and "It has called nothing yet." in page


def test_hostile_words_are_shown_and_do_nothing(visitor, script):
    written = HOSTILE.replace("\x1b", "\\x1b").replace("'", "\\'")
    source = f"// {HOSTILE}\nconsole.log('{written}');\nreturn {{text: '{written}'}};"
    found = script(source)
    assert found["status"] == "done", found
    for path in ("/runs", f"/runs/{found['run_id']}", f"/runs/{found['run_id']}/state"):
        page = visitor.get(path).text
        assert "<script>alert" not in page and "<img src=x" not in page
        assert "\u202e" not in page and "\x1b" not in page and "49" not in page.partition("gnp")[0][-20:]
    assert "&lt;script&gt;alert(1)" in visitor.get(f"/runs/{found['run_id']}").text


def test_more_than_a_page_of_runs(visitor, script):
    for _ in range(52):
        script("1")
    first, more = visitor.get("/runs").text, visitor.get("/runs?count=100").text
    assert first.count("data-run=") == 50 and "Older" in first
    assert more.count("data-run=") == 52 and "Older" not in more
    assert visitor.get("/runs?count=99999999").status == visitor.get("/runs?count=-4").status == 200


def test_a_page_does_not_take_long(visitor, script):
    found = script("for (let n = 0; n < 100; n++) await codemode.notes__read_note({title: 'n' + n});")
    assert found["status"] == "done", found
    page = visitor.get(f"/runs/{found['run_id']}").text
    assert page.count("data-step=") == 100


def test_lines_are_marked_by_the_worst_of_their_calls():
    steps = [{"line": 1, "state": "done"}, {"line": 1, "state": "denied"}, {"line": 0, "state": "failed"}]
    lines = script_lines("a\nb", steps)
    assert [(each["number"], each["state"], each["mark"]) for each in lines] == [
        (1, "denied", "✗"),
        (2, "", ""),
    ]
