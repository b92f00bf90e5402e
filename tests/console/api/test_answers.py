import json

import pytest

from checkrein.console.api.answers import Refused, answered, encoded, failed, file
from checkrein.errors import InputError, NotFoundError, PersonOnlyError, StoreBusyError


@pytest.mark.parametrize(
    ("error", "status"),
    [(InputError, 400), (NotFoundError, 404), (PersonOnlyError, 403), (StoreBusyError, 503)],
)
def test_errors_have_one_form_and_the_status_that_fits(error, status):
    answer = failed(error("No.", remedy="Do this."))
    assert answer.status_code == status
    assert json.loads(answer.body) == {"error": {"code": error.code, "message": "No.", "remedy": "Do this."}}


def test_a_refusal_may_bear_headers():
    answer = Refused(429, "too_many", "Slow.", retry_after="3").answer()
    assert answer.headers["retry-after"] == "3"


def test_what_is_no_unicode_is_json_all_the_same():
    assert json.loads(encoded({"a": ["\udcff"]})) == {"a": ["\udcff"]}


def test_nothing_is_sent_where_there_is_nothing_to_say():
    assert answered({"x": 1}, 204).body == b""


@pytest.mark.parametrize("name", ['a"; x=y\r\nSet-Cookie: a', "Über.md", "../../etc/passwd", "\ud800"])
def test_a_files_name_stays_in_its_header(name):
    header = file({"name": name, "text": "x"}, "markdown").headers["content-disposition"]
    assert header.startswith("attachment; filename*=UTF-8''")
    assert not set(header.partition("''")[2]) & set('"\r\n;/\\ ')
