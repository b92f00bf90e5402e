import json

import msgspec
import pytest

from checkrein.ledger.chain import GENESIS, Break, Link, body_of, first_break, said_in, seal

DATA = {"project": "/p", "session": "s", "tool": "Bash", "decision": "blocked", "more": [1, None]}


def chain(length):
    links, previous = [], GENESIS
    for seq in range(1, length + 1):
        body = body_of(seq, 10.5 + seq, "decided", f"e{seq}", DATA)
        previous = seal(previous, body)
        links.append(Link(seq, 10.5 + seq, "decided", f"e{seq}", body, previous))
    return links


def changed(link, **columns):
    return Link(**({name: getattr(link, name) for name in Link.__struct_fields__} | columns))


def test_a_whole_chain_ends_with_its_head():
    links = chain(5)
    assert first_break(links) == (5, links[-1].hash)
    assert first_break(links[3:], seq=3, previous=links[2].hash) == (5, links[-1].hash)
    assert first_break([]) == (0, GENESIS)


def test_the_body_is_canonical():
    assert (
        body_of(1, 2.0, "k", "e", {"b": 1, "a": 2})
        == '{"at":2.0,"data":{"a":2,"b":1},"entry":"e","kind":"k","seq":1}'
    )


@pytest.mark.invariant("whatever a call holds, its record can be read back")
@pytest.mark.parametrize(
    "odd",
    [
        {"x": "a\udc80"},
        {"\ud83d": 1},
        {"x": ["\ud83d", float("nan")]},
        {"x": ("\udc80", float("inf"), 10**40, 1.5)},
        {"x": object},
    ],
)
def test_whatever_a_record_says_can_be_read_back(odd):
    body = body_of(1, 2.0, "k", "e", {**DATA, "odd": odd})
    read = said_in(body)
    assert read["data"]["tool"] == "Bash" and msgspec.json.encode(read)
    # Readers that take no halves of letters and no numbers that are none read it too.
    assert msgspec.json.decode(body)["data"]["tool"] == "Bash"
    assert first_break([Link(1, 2.0, "k", "e", body, seal(GENESIS, body))]) == (1, seal(GENESIS, body))


def test_halves_of_letters_in_older_records_are_read_as_they_are_written_now():
    odd = {"text": "a\udc80\u00e4", "number": 10**40}
    before = json.dumps({"at": 2.0, "data": odd, "entry": "e", "kind": "k", "seq": 1}, sort_keys=True)
    assert said_in(before) == said_in(body_of(1, 2.0, "k", "e", odd))
    assert said_in(before)["data"]["text"] == "a\\udc80\u00e4"
    assert first_break([Link(1, 2.0, "k", "e", before, seal(GENESIS, before))]) == (1, seal(GENESIS, before))


@pytest.mark.invariant("no part hides another by a name that comes to the same spelling")
def test_two_names_that_come_to_the_same_spelling_are_both_on_the_record():
    read = said_in(body_of(1, 2.0, "k", "e", {"\\udc80": "one", "\udc80": "other"}))
    assert sorted(read["data"].values()) == ["one", "other"]


@pytest.mark.parametrize("body", ["", "7", "[]", '"x"', "{", "[" * 100_000, '{"at":2.0}'])
def test_a_sealed_body_that_says_nothing_is_a_break_and_no_crash(body):
    found = first_break([Link(1, 2.0, "k", "e", body, seal(GENESIS, body))])
    assert isinstance(found, Break) and found.seq == 1


@pytest.mark.parametrize(
    "column,value",
    [("at", 1.0), ("kind", "finished"), ("entry", "x")],
)
def test_a_changed_column_is_found(column, value):
    links = chain(4)
    links[2] = changed(links[2], **{column: value})
    found = first_break(links)
    assert isinstance(found, Break)
    assert (found.seq, column in found.reason) == (3, True)


def test_a_changed_body_is_found_even_when_its_own_hash_is_made_to_fit():
    links = chain(4)
    body = links[1].body.replace("blocked", "allowed")
    links[1] = changed(links[1], body=body)
    assert first_break(links).seq == 2
    links[1] = changed(links[1], hash=seal(links[0].hash, body))
    assert first_break(links).seq == 3


def test_a_missing_swapped_or_inserted_record_is_found():
    links = chain(5)
    assert first_break([*links[:2], *links[3:]]).seq == 3
    assert first_break([links[0], links[2], links[1], *links[3:]]).seq == 2
    assert first_break(links[1:]).seq == 1
    assert first_break([*links[:3], links[2], *links[3:]]).seq == 4
