"""The secrets of recorded calls: the newest are known, older ones are found again."""

import pytest

from checkrein.approval.question_calls import QuestionCalls
from checkrein.core.entry_secrets import EntrySecrets
from checkrein.ledger.call_secrets import CallSecrets
from checkrein.ledger.redact import Redactor
from checkrein.settings.sources import state_dir

redactor = Redactor()


@pytest.fixture
def kept(pipeline):
    return EntrySecrets(QuestionCalls(pipeline.store, state_dir()), most=2)


def test_the_newest_are_known_and_the_oldest_forgotten(kept):
    for entry in ("e1", "e2", "e3"):
        kept.keep(entry, CallSecrets([f"{entry}-hunter2"]))
    assert kept.of("e3", redactor).values == {"e3-hunter2"}
    assert not kept.of("e1", redactor)


def test_what_a_report_repeats_is_looked_at_where_nothing_is_known(kept):
    arguments = {"command": "docker login -p hunter2secret r.io"}
    assert kept.of("e1", redactor, reported=arguments).values == {"hunter2secret"}
    assert kept.of("e1", redactor).values == {"hunter2secret"}


def test_edited_arguments_add_their_own(kept):
    kept.keep("e1", CallSecrets(["hunter2secret"]))
    found = kept.of("e1", redactor, edited={"password": "sw0rdfish-9"})
    assert found.values == {"hunter2secret", "sw0rdfish-9"}
    assert kept.of("e1", redactor).values == found.values


def test_a_line_of_a_log_names_none_of_them(kept):
    kept.keep("e1", CallSecrets(["hunter2secret"]))
    kept.keep("e2", CallSecrets(["sw0rdfish-9"]))
    assert kept.text("failed: hunter2secret sw0rdfish-9") == "failed: [masked] [masked]"
