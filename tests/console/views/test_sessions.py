from checkrein.console.views.sessions import PAGE
from checkrein.store.agents import Session, put_session


def test_sessions_show_who_works_where_in_which_phase(visitor, work, project, pipeline):
    work(4)
    pipeline.store.write(pipeline.ledger.file)
    text = visitor.get("/sessions").text
    assert "claude-code" in text
    assert project in text
    assert ">4</a>" in text
    assert "<option selected>building" in text


def test_many_sessions_come_a_page_at_a_time(visitor, pipeline, project):
    def some(tx):
        for number in range(PAGE + 5):
            put_session(tx, Session(agent="codex", id=f"n{number:03}", project=project, started_at=number))

    pipeline.store.write(some)
    first, second = visitor.get("/sessions").text, visitor.get("/sessions?page=2").text
    assert f"n{PAGE + 4:03}" in first
    assert "n000" not in first
    assert "n000" in second
    assert visitor.get("/sessions?page=99999999").status == 200
    assert visitor.get("/sessions?page=-5").status == 200


def test_probes_are_nobodys_session(visitor, pipeline):
    pipeline.store.write(
        lambda tx: put_session(tx, Session(agent="x", id="checkrein-doctor", project="/p", started_at=1))
    )
    assert "checkrein-doc" not in visitor.get("/sessions").text
