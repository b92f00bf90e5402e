"""What a program hears when a call does not run."""

import copy
import json

from checkrein.call import ToolCall
from checkrein.doors.library.denial import Denied, Refusal, Suspended
from checkrein.doors.library.pending import Pending
from checkrein.policy import refuse

VERDICT = refuse("rules", "Rule 1 says no.", "Change it.")


def test_a_denial_says_who_why_and_where():
    denied = Denied("No.", verdict=VERDICT, entry="e")
    assert (str(denied), denied.reason, denied.entry, denied.state) == (
        "No.",
        "Rule 1 says no.",
        "e",
        "refused",
    )
    again = copy.copy(Denied("No.", verdict=VERDICT, entry="e", reason="mine", state="denied"))
    assert (str(again), again.verdict, again.reason, again.state) == ("No.", VERDICT, "mine", "denied")


def test_a_refusal_is_text_and_knows_what_it_stands_for():
    refusal = Refusal.of(Denied("No.", verdict=VERDICT, entry="e"))
    assert json.dumps(refusal) == '"No."' and refusal.denied.entry == "e"


def test_what_waits_shows_what_it_waits_for():
    pending = Pending(kind="suspended", entry="e", call=ToolCall(tool="x"), text="Which?", payload=[1])
    waits = Suspended(pending)
    assert (str(waits), waits.entry, waits.payload) == ("Which?", "e", [1])
