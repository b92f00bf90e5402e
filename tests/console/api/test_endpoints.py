from checkrein.authority.chat_requests import REQUESTS
from checkrein.console.api.endpoints import ENDPOINTS, find, parts_of


def test_everything_chat_does_can_be_asked_over_http():
    assert {each.ask for each in ENDPOINTS} == set(REQUESTS)


def test_no_two_are_the_same():
    names = [each.name or each.ask for each in ENDPOINTS]
    assert len(set(names)) == len(names)
    assert len({(each.method, each.path) for each in ENDPOINTS}) == len(ENDPOINTS)


def test_each_can_be_found_and_its_names_are_in_its_request():
    for each in ENDPOINTS:
        found = find(each.method, parts_of(each.path.replace("{", "").replace("}", "").encode(), 1))
        assert found.endpoint == each
        assert {each.named.get(name, name) for name in found.path} <= set(each.params.__struct_fields__)


def test_what_only_reads_is_for_every_token_and_nothing_else_is():
    for each in ENDPOINTS:
        reads = each.method == "GET" or each.name == "tokens_with"
        assert (each.need == "read") == reads, each.path


def test_parts_are_decoded_one_by_one():
    assert parts_of(b"/api/v1/runs/a%2Fb/%ff", 3) == ["runs", "a/b", "\ufffd"]
