import base64

import pytest

from checkrein.errors import TrustFileError
from checkrein.store.trust import trust_of

V1 = b'{"score": 0.45, "successes": 9, "failures": 1}'
MIXED = b'{"version": "2", "domains": {"good": {"score": 0.2}, "bad": {"score": 0.99}}}'


def test_a_file_replaces_what_was_there(do, pipeline, recorded, asked):
    do("trust.import", project="/p", content=V1)
    report = do("trust.import", project="/p", content=MIXED, file="scores.json")
    assert report["imported"] == {"good": 0.2}
    assert set(report["quarantined"]) == {"bad"}
    assert set(trust_of(pipeline.store, "/p")) == {"good"}
    last = recorded("trust_imported")[-1]
    assert (last["file"], last["actor"], last["scores"]) == ("scores.json", asked.actor, {"good": 0.2})


def test_content_arrives_as_text_over_the_socket(do, pipeline):
    do("trust.import", project="/p", content=base64.b64encode(V1).decode())
    assert trust_of(pipeline.store, "/p")["_global"]["score"] == 0.45


def test_a_bad_file_changes_nothing(do, pipeline, recorded):
    do("trust.import", project="/p", content=V1)
    with pytest.raises(TrustFileError):
        do("trust.import", project="/p", content=b"{{")
    assert set(trust_of(pipeline.store, "/p")) == {"_global"}
    assert len(recorded("trust_imported")) == 1


def test_a_reset_forgets_one_domain_or_all_of_one_project(do, pipeline, recorded):
    for project in ("/p", "/q"):
        do("trust.import", project=project, content=V1)
    assert do("trust.reset", project="/p", domain="other") == 0
    assert do("trust.reset", project="/p") == 1
    assert trust_of(pipeline.store, "/p") == {}
    assert trust_of(pipeline.store, "/q") != {}
    assert [each["domain"] for each in recorded("trust_reset")] == ["other", None]
