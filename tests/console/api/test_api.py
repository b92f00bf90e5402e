from checkrein.console import api


def test_it_says_what_it_is():
    assert "/api/v1" in api.__doc__
