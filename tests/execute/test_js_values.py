"""What may cross."""

import pytest

from checkrein.execute.js_values import RefusedError, checked


@pytest.mark.parametrize(
    "text", ["{}", '{"a":[1,2.5,null,true,"é"]}', "[" * 60 + "]" * 60, "18446744073709551615"]
)
def test_plain_json_crosses(text):
    checked(text)


@pytest.mark.invariant("nothing larger, deeper or less than JSON does, in either direction")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NaN", "no word for"),
        ('{"a":-Infinity}', "no word for"),
        ("{", "no JSON"),
        ("[" * 70 + "]" * 70, "deeper"),
        ("[" * 100000 + "]" * 100000, "deeper"),
        ('"' + "x" * (1 << 20) + '"', "larger"),
        ('"' + "é" * 600000 + '"', "larger"),
        ('"\\ud800"', "Unicode"),
        ('{"\\udfff":1}', "Unicode"),
        ("18446744073709551616", "64 bits"),
        ("-9223372036854775809", "64 bits"),
        ("1" * 5000, "64 bits"),
        ('{"a":1,"a":2}', "twice"),
    ],
)
def test_nothing_larger_deeper_or_less_than_json_does(text, why):
    with pytest.raises(RefusedError, match=why):
        checked(text)
