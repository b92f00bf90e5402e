from pathlib import Path

import pytest

from checkrein.authority.policy import proposed
from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.settings.sources import content_hash
from checkrein.store.policies import is_accepted

LOOSE = b'[[rules]]\naction = "allow"\ntool = "Bash"\n'


@pytest.fixture
def file(project):
    path = Path(project, "checkrein.toml")
    path.write_bytes(LOOSE)
    return path


@pytest.mark.invariant("what is accepted is what the person saw")
def test_exactly_what_was_seen_is_accepted(do, pipeline, project, file, recorded):
    seen = proposed(pipeline.policies, project)
    assert (seen.content, seen.sha256) == (LOOSE, content_hash(LOOSE))
    file.write_bytes(LOOSE + b"# changed behind their back\n")
    with pytest.raises(InputError, match="changed in the meantime"):
        do("policy.accept", project=project, sha256=seen.sha256)
    assert recorded("policy_accepted") == []
    file.write_bytes(LOOSE)
    do("policy.accept", project=project, sha256=seen.sha256)
    assert is_accepted(pipeline.store, str(file), seen.sha256)
    do("policy.revoke", project=project)
    assert not is_accepted(pipeline.store, str(file), seen.sha256)


@pytest.mark.parametrize("text", ["[trust]\ninitial_score = 0.9", '[[rules]]\naction = "allow"\n', "x = ["])
def test_what_would_break_everything_cannot_be_accepted(do, project, file, recorded, text):
    file.write_text(text)
    with pytest.raises(ConfigError):
        do("policy.accept", project=project, sha256=content_hash(text.encode()))
    assert recorded("policy_accepted") == []


def test_a_file_that_is_not_there_is_said(do, project):
    with pytest.raises(NotFoundError):
        do("policy.accept", project=project, sha256="")
