"""The daily lines and the chain, byte for byte: what people's tools and kept checkpoints rely on."""

from pathlib import Path

import pytest

from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.mirror import Mirror
from checkrein.ledger.record import Ledger
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.sqlite import SqliteStore

GOLDEN = Path(__file__).parent / "lines.jsonl"
HEAD = "e0bfd2aa450b2950209af9f48e4347304a3b19ff1f2413fea3a239f6f0e1879a"

DECIDED = {
    "door": "gateway",
    "agent": "x",
    "user": "ada",
    "project": "/p",
    "cwd": "/p",
    "session": "s1",
    "call_id": "c1",
    "server": "notes",
    "tool": "read",
    "name": "mcp__notes__read",
    "input": {"path": "a.md", "n": 3},
    "argument_hash": "h" * 64,
    "risk": "low",
    "complexity": 0.25,
    "domains": ["file_read", "network"],
    "domain": "file_read",
    "effects": [{"kind": "read", "scope": "project", "target": "a.md"}],
    "trust": {"file_read": 0.3, "network": 0.5},
    "autonomy": 0.62,
    "verdict": "allow",
    "decision": "logged_only",
    "stage": "score",
    "rule": None,
    "reasons": ["reads a file", "in the project"],
    "remedy": "",
}
FINISHED = {
    "project": "/p",
    "session": "s1",
    "outcome": "success",
    "evidence": "result",
    "output": {"content": [{"type": "text", "text": "ok"}], "isError": False},
    "trust": {"file_read": 0.335, "network": 0.5},
    "latency_ms": 12.345,
}
ANSWERED = {"answer": "approved", "actor": "ada", "channel": "terminal", "message": ""}
CLOSED = {"project": "/p", "session": "s1"}
DENY = {"verdict": "deny", "decision": "blocked", "stage": "floor", "rule": "r1"}
ASK = {"verdict": "ask", "decision": "human_required"}
# Values whose spelling could slip: numbers, signs, letters, what JSON cannot hold, keys of every kind.
VALUES = [
    {"z": 1, "a": {"c": [], "b": {}}, "é": "ü\u2028\x7f", "": None},
    {"e": [1e-7, 1e16, 1.5e300, 0.1, -0.0, 3.0, 10**15, -5, True, False, 2**63]},
    {"quotes": '"\\/\b\f\n\r\t\x00\x1f', "emoji": "\U0001f600", "html": "<&>'"},
    {3: "three", 10: "ten", 2: {1: "one"}},
    {"bytes": b"bytes", "set": {1}, "deep": [[[[[[{"a": {"a": {"a": {}}}}]]]]]]},
    {"path": Path("/p"), "set": {1}, "tuple": (1, "b"), "small": 1e-7, "large": 1e16, "letters": "é\x01"},
    float("nan"),
    float("inf"),
    "text, \u00a0 and [cut: 7 characters]",
    ["list", ["of", ["lists", None]], {}],
    7,
    True,
    None,
]


def story():
    """(seconds, kind, entry, data) of calls of every kind, and of what belongs to none."""
    at = 1_800_000_000.0

    def told(entry, *events):
        nonlocal at
        for kind, data in events:
            at += 0.7311
            yield at, kind, entry, data

    for number, value in enumerate(VALUES):
        finished = FINISHED | {"output": VALUES[-number]}
        yield from told(f"value{number:02}", ("decided", DECIDED | {"input": value}), ("finished", finished))
    for number, outcome in enumerate(("failure", "timeout", "cancelled", "unknown", "denied", "new word")):
        done = FINISHED | {"outcome": outcome, "trust": {} if number % 2 else FINISHED["trust"]}
        yield from told(f"outcome{number}", ("decided", DECIDED), ("started", {}), ("finished", done))
    for number, answer in enumerate(("denied", "answered", "expired", "cancelled", "new word")):
        said = ANSWERED | {"answer": answer, "message": "no, thanks"}
        yield from told(f"answer{number}", ("decided", DECIDED | ASK), ("answered", said), ("closed", CLOSED))
    edited = ANSWERED | {"edited": {"b": 1, "a": [2.5]}, "edited_hash": "e" * 64, "grant": "g1"}
    for number, said in enumerate((ANSWERED, edited)):
        asked = ("decided", DECIDED | ASK | {"from_the_future": {"x": 1}}), ("answered", said)
        yield from told(f"yes{number}", *asked, ("started", {}), ("finished", FINISHED | {"more": 1}))
    yield from told("refused", ("decided", DECIDED | DENY))
    bare = {"trust": {}, "domain": "", "domains": [], "effects": [], "reasons": [], "autonomy": None}
    yield from told("bare", ("decided", DECIDED | bare | {"server": None, "complexity": 1}))
    yield from told("", ("session_started", CLOSED), ("from_the_future", {"x": [1]}))
    yield from told("bare", ("from_the_future", {"x": 1}), ("closed", CLOSED))
    yield from told("stranger", ("finished", FINISHED), ("started", {}))
    whole = {"complexity": 1, "trust": {"file_read": 1, "network": 0}, "autonomy": 0}
    yield from told("whole", ("decided", DECIDED | whole), ("finished", FINISHED | {"latency_ms": 3}))
    at = 1_800_000_000.9996
    yield from told("again", ("decided", DECIDED), ("decided", DECIDED | DENY | {"project": "/p"}))


@pytest.fixture
def written(clock):
    """Writes the story, `at_once` records in a group; the lines and the chain's end."""
    store = SqliteStore.open(state_dir())

    def write(at_once):
        ledger = Ledger(store, Signer(state_dir()), clock)
        mirror = Mirror(store, lambda _: state_dir() / "lines", lambda _: state_dir(), ledger.recent)
        events = list(story())
        for start in range(0, len(events), at_once):

            def work(tx, some=events[start : start + at_once]):
                for at, kind, entry, data in some:
                    clock.now = at
                    ledger.append(tx, kind, data, entry=entry)
                mirror.follow(tx)

            store.write(work)
        assert not mirror.trouble
        paths = sorted((state_dir() / "lines").iterdir())
        return b"".join(path.read_bytes() for path in paths), records.head(store)

    yield write
    store.close()


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_lines_and_chain_are_spelled_as_they_always_were(written, at_once):
    lines, head = written(at_once)
    assert lines == GOLDEN.read_bytes()
    assert head == (len(list(story())), HEAD)
