import json

import pytest

from checkrein.console.forms import Fields
from checkrein.console.views.chat_attached import MOST, attachments
from checkrein.errors import InputError


def form(value):
    return Fields({"attachments": [value if isinstance(value, str) else json.dumps(value)]})


def test_what_a_script_put_into_the_form():
    one = {"name": "a.txt", "mime_type": "text/plain", "data": "YQ=="}
    assert attachments(form([one])) == [one]
    assert attachments(form("")) == []
    assert attachments(Fields()) == []


@pytest.mark.parametrize("given", ["{", '"a"', "[1]", {"a": 1}, [[]], [{}] * (MOST + 1)])
def test_what_cannot_be_right_is_refused(given):
    with pytest.raises(InputError):
        attachments(form(given))
