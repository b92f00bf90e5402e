"""Whatever becomes of an allowed call, its outcome is on the record and nothing is told that is not so."""

import asyncio
from types import SimpleNamespace

import pytest

from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.errands import UNKNOWN, Came, Errands
from checkrein.doors.gateway.keeper import Unreachable
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS, RpcError
from checkrein.doors.gateway.pipes import Gone, PipeError
from checkrein.doors.gateway.relay import Sending
from checkrein.errors import NotFoundError

OFFERED = Offered(
    server="notes", tool="read", name="notes__read", definition={}, hash="h", annotations={}, input=None
)


class Kept:
    """The outcomes, as they are handed over."""

    def __init__(self):
        self.told = []

    def add(self, entry, outcome, *, output=None, evidence=""):
        self.told.append((entry, outcome, evidence))


class Behind:
    """A server that is there, or says why not; what it offers is as accepted, or says how not."""

    def __init__(self, fault=None, differs="", gone=False, ready=None, agrees=True):
        self.fault, self.said, self.gone = fault, differs, gone
        self.ready, self.accepted = ready, agrees

    def at_hand(self, server, client):
        return self.ready

    def agrees(self, upstream, tool, accepted):
        assert (upstream, tool, accepted) == (self.ready, "read", "h")
        return self.accepted

    async def reach(self, server, client):
        if self.fault is not None:
            raise self.fault
        return "connection"

    async def differs(self, upstream, tool, accepted):
        assert (upstream, tool, accepted) == ("connection", "read", "h")
        return self.said

    def spec(self, server):
        if self.gone:
            raise NotFoundError("There is no server 'notes'.")
        return SimpleNamespace(timeout=None)


def reach(behind):
    kept = Kept()
    return asyncio.run(Errands(behind, behind, kept).reach(OFFERED, None, "e1")), kept.told


def watch(work, era=HANDSHAKE):
    kept = Kept()
    errand = SimpleNamespace(entry="e1", seconds=30.0, upstream=SimpleNamespace(era=era))

    async def go():
        return await Errands(None, None, kept).watch(OFFERED, errand, work())

    return asyncio.run(go()), kept.told


def raising(error):
    async def work():
        raise error

    return work


def returning(value):
    async def work():
        return value

    return work


class Relayed:
    """Carries nothing; says what it was given."""

    def begin(self, errand):
        self.errand = errand
        return Sending(errand, None)

    async def deliver(self, sending, handled):
        assert sending.errand is self.errand
        handled.close()
        return Came("result")


@pytest.mark.invariant("what is executed is what was judged")
def test_the_tool_that_was_judged_is_called_whatever_else_the_request_names():
    relay, behind, flight = Relayed(), Behind(), SimpleNamespace(client=SimpleNamespace(era=HANDSHAKE))
    params = {"name": "delete_everything", "arguments": {"path": "a"}}
    asyncio.run(Errands(behind, behind, Kept()).send(relay, OFFERED, flight, params, "e1", 30.0))
    assert relay.errand.params == {"name": "read", "arguments": {"path": "a"}}
    assert (relay.errand.upstream, relay.errand.entry) == ("connection", "e1")


def test_where_everything_is_as_accepted_the_call_may_be_sent():
    assert reach(Behind()) == ("connection", [])
    assert reach(Behind(Unreachable("never asked"), ready="at hand")) == ("at hand", [])


@pytest.mark.parametrize(
    ("behind", "evidence"),
    [
        (Behind(Unreachable("It is stopped.")), "unreachable"),
        (Behind(differs="It is another one.", ready="connection", agrees=False), "definition"),
        (Behind(gone=True), "unreachable"),
        (Behind(differs="Its definition there is not the accepted one."), "definition"),
    ],
)
def test_what_is_not_sent_is_said_not_to_have_run(behind, evidence):
    came, told = reach(behind)
    assert came.kind == "unsent" and "nothing ran" in came.text
    assert told == [("e1", "cancelled", evidence)]


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (RpcError(-1, "no"), "error", ("failure", "tool error")),
        (TimeoutError(), "silent", ("timeout", "no answer")),
        (Gone("signal 9"), "lost", ("unknown", "connection lost")),
        (PipeError("It is not there."), "unsent", ("cancelled", "not sent")),
    ],
)
@pytest.mark.invariant("a call whose fate is unknown is recorded as unknown, and never sent again by us")
def test_a_call_whose_fate_is_unknown_is_recorded_as_unknown_and_never_sent_again_by_us(error, kind, told):
    came, kept = watch(raising(error))
    assert came.kind == kind and kept == [("e1", *told)]
    assert (UNKNOWN in came.text) == (kind == "silent")


@pytest.mark.parametrize(
    ("error", "told"),
    [(asyncio.CancelledError(), ("cancelled", "client")), (KeyError("x"), ("unknown", "our error"))],
)
def test_what_ends_the_caller_too_is_recorded_first(error, told):
    kept = Kept()
    errand = SimpleNamespace(entry="e1", seconds=30.0, upstream=None)

    async def go():
        with pytest.raises(type(error)):
            await Errands(None, None, kept).watch(OFFERED, errand, raising(error)())

    asyncio.run(go())
    assert kept.told == [("e1", *told)]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"content": []}, "success"),
        ({"content": [], "isError": True}, "failure"),
        (None, "failure"),
        ("text", "failure"),
    ],
)
def test_an_answer_counts_as_what_it_says(result, outcome):
    came, kept = watch(returning(result))
    assert came == Came("result", result, failed=outcome == "failure")
    assert kept == [("e1", outcome, "tool error" if outcome == "failure" else "")]


def test_a_question_of_a_stateless_server_is_no_outcome_yet():
    asked = {"resultType": "input_required", "requestState": "x"}
    assert watch(returning(asked), STATELESS) == (Came("input", asked), [])
    came, kept = watch(returning(asked), HANDSHAKE)
    assert came.kind == "result" and kept == [("e1", "success", "")]


def test_a_result_nobody_can_write_down_is_still_an_outcome():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    came, kept = watch(returning({"content": deep}))
    assert not came.readable and kept == [("e1", "success", "")]
