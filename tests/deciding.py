"""Calls that are decided, asked about and answered, in a word each."""

from checkrein.call import tool_call
from checkrein.ledger.entries import body_of_row
from checkrein.store import records, rules
from checkrein.store.phases import set_phase
from checkrein.store.trust import trust_of


def bash(command="ls", project="", **extra):
    return tool_call({"tool": "Bash", "arguments": {"command": command}, "project": project, **extra})


def kinds(pipeline):
    return [row[2] for row in records.after(pipeline.store, 0)]


def score(pipeline, project, domain):
    return trust_of(pipeline.store, project)[domain]["score"]


def in_session(command, project, session="s1", **more):
    return bash(command, project, session=session, agent="claude-code", **more)


def asked(pipeline, command, project, **more):
    decided = pipeline.decide(in_session(command, project, **more), asking=True)
    assert decided.verdict.word == "ask", decided.verdict
    return decided.entry


def approve(pipeline, entry, **more):
    return pipeline.answer(entry, "approved", actor="ada", channel="terminal", **more)


def last(pipeline, kind):
    return [body_of_row(row)["data"] for row in records.after(pipeline.store, 0) if row[2] == kind][-1]


def put_rule(pipeline, action, rule_id="r1", **more):
    body = {"action": action, "tool": "Bash", **more}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, rule_id, body, 1.0))


def set_user_phase(pipeline, name, **where):
    pipeline.note("phase_changed", {}, lambda tx: set_phase(tx, name, 1.0, **where))
