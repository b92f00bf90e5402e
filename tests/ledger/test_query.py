import pytest

from checkrein.call import tool_call
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.query import Filter, _page, entries, entry, stats


@pytest.fixture
def calls(pipeline, clock):
    """Ten calls of two projects, a minute apart."""
    made = []
    for number in range(10):
        clock.now += 60
        command = ("ls", "git push", "make x")[number % 3]
        project = "/p" if number < 6 else "/q"
        raw = {
            "tool": "Bash",
            "arguments": {"command": command},
            "project": project,
            "session": f"s{number % 2}",
        }
        made.append(pipeline.decide(tool_call(raw)))
    return made


def found(pipeline, limit=None, **filters):
    return [each.id for each in entries(pipeline.store, Filter(**filters), limit)]


def ids(calls, *numbers):
    return [calls[number].entry for number in numbers]


def test_newest_first_and_page_by_page(pipeline, calls, monkeypatch):
    assert found(pipeline) == ids(calls, *reversed(range(10)))
    assert found(pipeline, limit=3) == ids(calls, 9, 8, 7)
    monkeypatch.setattr("checkrein.ledger.query._PAGE", 3)
    assert found(pipeline) == ids(calls, *reversed(range(10)))
    assert found(pipeline, limit=7) == ids(calls, *reversed(range(3, 10)))


def test_filters_narrow_together(pipeline, calls, clock):
    assert found(pipeline, project="/q") == ids(calls, 9, 8, 7, 6)
    assert found(pipeline, session="s1", decision="blocked") == ids(calls, 7, 1)
    assert found(pipeline, domain="git_remote") == ids(calls, 7, 4, 1)
    assert found(pipeline, domain="file_read", project="/p") == ids(calls, 3, 0)
    assert found(pipeline, tool="Bash", since=clock.now - 60) == ids(calls, 9, 8)
    assert found(pipeline, until=clock.now - 8 * 60) == ids(calls, 0)
    assert found(pipeline, tool="nothing") == []


def test_one_call_by_the_beginning_of_its_id(pipeline, calls):
    wanted = calls[4].entry
    one, story = entry(pipeline.store, wanted)
    assert (one.id, [each["kind"] for each in story]) == (wanted, ["decided"])
    assert entry(pipeline.store, wanted[:14])[0].id == wanted
    with pytest.raises(InputError, match="More than one"):
        entry(pipeline.store, wanted[:5])
    for missing in ("zzz", "", "%"):
        with pytest.raises((NotFoundError, InputError)):
            entry(pipeline.store, missing)


def test_stats_count_everything_once(pipeline, calls):
    counted = stats(entries(pipeline.store, Filter()))
    assert counted["calls"] == 10
    assert counted["decision"] == {"logged_only": 4, "blocked": 3, "human_required": 3}
    assert counted["domain"] == {"file_read": 4, "git_remote": 3, "shell_exec": 3}
    assert stats(entries(pipeline.store, Filter(project="/q")))["calls"] == 4


ODD = ["s 1", "é", 'say "s1"', "a\\b", "\\udc80", "x\x7f", "tab\t", "\u2028", "%_", "ключ", "[]{}:,"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("filed", [False, True])
@pytest.mark.parametrize("fallback", [False, True])
def test_whatever_a_session_is_called_its_calls_are_found_filed_or_not(pipeline, name, filed, fallback):
    # A number that long makes the whole record be spelled with escapes.
    arguments = {"command": "ls", "more": 10**30 if fallback else 1}
    raw = {"tool": "Bash", "arguments": arguments, "project": f"/{name}"}
    wanted = pipeline.decide(tool_call({**raw, "session": name})).entry
    pipeline.decide(tool_call({**raw, "session": f"{name}."}))
    if filed:
        pipeline.store.write(pipeline.ledger.file)
    terms = [Filter(session=name).terms(), Filter(project=f"/{name}", session=name).terms()]
    assert [_page(pipeline.store, each, "", "", 10) for each in terms] == [[wanted], [wanted]]


def test_a_call_of_no_session_is_found_by_that(pipeline):
    wanted = pipeline.decide(tool_call({"tool": "Bash", "arguments": {"command": "ls"}})).entry
    pipeline.decide(tool_call({"tool": "Bash", "arguments": {"command": "ls"}, "session": "s"}))
    assert found(pipeline, session="") == [wanted]
