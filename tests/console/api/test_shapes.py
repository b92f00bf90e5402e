"""Only for describing: what is really answered fits, see the tests with a real chat."""

import msgspec

from checkrein.console.api import shapes


def test_a_failure_is_what_is_sent():
    sent = {"error": {"code": "not_found", "message": "No.", "remedy": ""}}
    assert msgspec.to_builtins(msgspec.convert(sent, shapes.Failure)) == sent
