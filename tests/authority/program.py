"""A program's call, decided and answered, in a word each."""

import msgspec

from checkrein.authority.wish import Wish, decide
from checkrein.call import ToolCall

CALL = ToolCall(
    tool="pick", server="garden", arguments={"n": 1}, door="library", agent="bot", user="ada", session="s"
)


def call(**changes):
    return msgspec.structs.replace(CALL, **changes)


def decided(pipeline, given=CALL, wish=None):
    return decide(pipeline, given, wish or Wish(), "building")


def approved(pipeline, given=CALL, **said):
    found = decided(pipeline, given)
    with pipeline.broker.awaiting(found.entry):
        pipeline.answer(found.entry, "approved", actor="ada", channel="host", **said)
    return found.entry
