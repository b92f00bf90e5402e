import json
import re

import pytest

from checkrein.console.views.trust import history


@pytest.fixture
def earned(pipeline, work, call, project):
    work(8)
    decided = pipeline.decide(call(tool="Read", arguments={"file_path": f"{project}/x.py"}))
    pipeline.finish(decided.entry, "failure", evidence="exit status")
    return project


def test_trust_is_shown_with_what_it_means_and_what_comes_next(visitor, earned):
    text = visitor.get("/trust").text
    assert earned in text
    assert "file_read" in text
    assert "any other" in text
    assert re.search(r'class="does (runs|noted|asks)"', text)


def test_the_chart_has_a_point_for_everything_that_moved_it(visitor, earned, pipeline):
    moves = history(pipeline.store, earned, "file_read")
    assert len(moves) == 9
    assert moves[-1]["outcome"] == "failure"
    assert moves[-1]["change"] < 0 < moves[1]["change"]
    text = visitor.get("/trust?domain=file_read").text
    assert len(re.findall(r'<circle class="dot success"', text)) == 8
    assert len(re.findall(r'<circle class="dot failure"', text)) == 1


def test_trust_goes_out_and_comes_in(visitor, earned):
    file = visitor.get(f"/trust/export.json?project={earned}").text
    assert json.loads(file)["domains"]["file_read"]["failures"] == 1
    assert visitor.post("/trust/reset", {"project": earned}).status == 303
    assert "file_read" in visitor.get("/trust").text
    assert visitor.post("/trust/reset", {"project": earned, "sure": "yes"}).status == 303
    assert json.loads(visitor.get(f"/trust/export.json?project={earned}").text)["domains"].keys() == {
        "_global"
    }
    assert visitor.post("/trust/import", {"project": earned, "content": file}).status == 303
    assert json.loads(visitor.get(f"/trust/export.json?project={earned}").text)["domains"]["file_read"]


@pytest.mark.parametrize("content", ["", "x", "[]", '{"version": "9"}', "x" * (1 << 20) + "y"])
def test_what_is_no_trust_file_is_refused(visitor, earned, content):
    assert visitor.post("/trust/import", {"project": earned, "content": content}).status == 400


def test_a_score_that_cannot_be_right_is_said(visitor, earned):
    bad = {"version": "2", "domains": {"shell_exec": {"score": 0.99, "successes": 1, "total_operations": 1}}}
    visitor.post("/trust/import", {"project": earned, "content": json.dumps(bad)})
    assert "Left out shell_exec" in visitor.get("/trust").text


def test_a_project_must_be_named(visitor):
    assert visitor.post("/trust/reset", {"sure": "yes"}).status == 400
