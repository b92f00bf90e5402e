"""Questions and what people answered, in the store: asked, settled, remembered, released.

Works inside the pipeline's transactions, as `earning` does for trust; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from checkrein.approval.families import Family, What, family_of, label_of, within
from checkrein.approval.question_calls import QuestionCalls
from checkrein.call import Category, Reason, Risk, ToolCall, Verdict, digest
from checkrein.errors import InputError
from checkrein.ledger.record import Ledger, new_id
from checkrein.policy import refuse
from checkrein.settings import Approval
from checkrein.store import Store, Transaction, questions
from checkrein.store.grants import Grant, add_grant, live_grants, use_grant
from checkrein.store.releases import released, use_release

PEOPLE = ("terminal", "console", "api", "notification", "elicitation", "host", "agent")
# The channel of an answer given in the agent's own dialog: we hear of it once the call has run.
IN_THE_AGENT = "agent"
SPOKEN = ("approved", "denied", "answered")
OVERRULED = "The policy of this moment refuses it:"
_FURTHEST = 10 * 366 * 86_400.0
_MOST_USES = 1_000_000


class Remember(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"span": "for"}):
    """How far an answer reaches: what it covers, and until when."""

    what: What = "exact"
    span: Literal["session", "until", "uses", "always"] = "session"
    until: float | None = None
    uses: int | None = None

    def __post_init__(self) -> None:
        if (self.until is not None) != (self.span == "until"):
            raise ValueError("`until` goes with for = until")
        if (self.uses is not None) != (self.span == "uses") or not (
            self.uses is None or 0 < self.uses <= _MOST_USES
        ):
            raise ValueError(f"`uses` goes with for = uses, and is from 1 to {_MOST_USES:,}")


class Answerer(msgspec.Struct, frozen=True):
    """Who answers, through what, and how what they see is masked."""

    actor: str
    channel: str
    masked: Callable[[str], str] = str


class Consent(msgspec.Struct, frozen=True):
    """A yes a person gave before, which covers a call now."""

    kind: Literal["grant", "release"]
    id: str
    reason: str


def asker(call: ToolCall) -> str:
    """Whoever asks, in whichever session: the user, the door and the agent."""
    return digest([call.user, call.door, call.agent])


def release_key(project: str, server: str | None, tool: str, argument_hash: str, cwd: str) -> str:
    """What a release binds to: exactly this call, in whichever session it is tried again."""
    return digest([project, server, tool, argument_hash, cwd])


class Asking:
    """What people are asked and what they said."""

    def __init__(
        self, store: Store, ledger: Ledger, calls: QuestionCalls, clock: Callable[[], float]
    ) -> None:
        self._store, self._ledger, self._calls, self._clock = store, ledger, calls, clock

    def grant(self, call: ToolCall, risk: Risk) -> Consent | None:
        """The remembered answer that covers a call which would be asked about."""
        now = self._clock()
        found = live_grants(self._store, call.project, call.session, call.server, call.tool, now)
        seen = _Seen(call, risk) if found else None
        for each in found:
            if seen is not None and _covers(each, seen):
                span = "for this session" if each.session else "before"
                return Consent("grant", each.id, f"{each.made_by} approved {each.label} {span}.")
        return None

    def release(self, call: ToolCall) -> Consent | None:
        """The release that lets exactly this blocked call pass once."""
        key = release_key(call.project, call.server, call.tool, call.argument_hash, call.cwd)
        entry = released(self._store, key, self._clock())
        return Consent("release", entry, "A person released exactly this call, once.") if entry else None

    def use(self, tx: Transaction, consent: Consent) -> bool:
        """Take the yes in the transaction that needs it; False when it is gone."""
        taken = use_grant if consent.kind == "grant" else use_release
        return taken(tx, consent.id, self._clock())

    def needless(self, call: ToolCall, verdict: Verdict, limits: Approval) -> Verdict | None:
        """A refusal in place of a question nobody should be asked again, or now."""
        now = self._clock()
        for said in questions.answered_about(self._store, call.binding, now - limits.repeat_seconds):
            # INVARIANT: a no in a dialog of the agent's is to one call; there the same is asked about again.
            elsewhere = said.channel in PEOPLE and said.channel != IN_THE_AGENT
            if said.state == "denied" and elsewhere and not said.message.startswith(OVERRULED):
                told = f" They said: {said.message}" if said.message else ""
                why = f"{said.actor or 'A person'} said no to exactly this call a moment ago.{told}"
                return refuse(
                    "repeat", why, "Ask for something else; the answer stands for a while.", verdict.risk
                )
        if questions.count_of(self._store, call.session) >= limits.most_waiting:
            why = f"{limits.most_waiting} questions of this session wait already."
            return refuse("flood", why, "A person answers those first: `checkrein inbox`.", verdict.risk)
        return None

    def ask(self, tx: Transaction, entry: str, call: ToolCall, phase: str | None, limits: Approval) -> bool:
        """Put the question with its call, encrypted; False if the session's others filled the room."""
        # INVARIANT: no session has more questions waiting than it may, however many calls come at once.
        if questions.count_of(tx, call.session) >= limits.most_waiting:
            return False
        now = self._clock()
        asked = questions.Question(
            entry=entry,
            session=call.session,
            project=call.project,
            binding=call.binding,
            asked_at=now,
            expires_at=now + limits.timeout_seconds,
        )
        questions.add_question(tx, asked, self._calls.seal_call(entry, call, phase))
        data = {"project": call.project, "session": call.session, "expires_at": asked.expires_at}
        self._ledger.append(tx, "asked", data, entry=entry)
        return True

    def settle(
        self, tx: Transaction, entry: str, data: dict[str, Any], edited: dict[str, Any] | None = None
    ) -> list[str] | None:
        """Settle a question and, where a person spoke, every open one about exactly the same call.

        None: it was settled before, or its time is over.
        """
        now = self._clock()
        said = {
            "now": now,
            "actor": data["actor"],
            "channel": data["channel"],
            "message": data["message"],
        }
        # INVARIANT: nobody says yes to a question whose time is over.
        timely = data["answer"] in ("approved", "answered") and data["channel"] != IN_THE_AGENT
        asked = questions.get_question(tx, entry)
        if asked is None or (timely and asked.expires_at <= now):
            return None
        sealed = "" if edited is None else self._calls.seal_edit(entry, edited)
        if not questions.settle(tx, entry, data["answer"], sealed_edit=sealed, **said):
            return None
        # INVARIANT: a caller that went away, an edit and a dialog of the agent's speak for one call.
        spoken = data["answer"] in SPOKEN and data["channel"] != IN_THE_AGENT and "edited" not in data
        # INVARIANT: a yes in a conversation or to a script is to one call, also where it made the same twice.
        same = questions.settled_with(tx, asked) if spoken else []
        same = [each for each in same if not timely or each.expires_at > now]
        for each in same:
            questions.settle(tx, each.entry, data["answer"], **said)
            self._ledger.append(tx, "answered", {**data, "with": entry}, entry=each.entry)
        return [each.entry for each in same]

    def remember(
        self, tx: Transaction, entry: str, call: ToolCall, risk: Risk, how: Remember, by: Answerer
    ) -> Grant:
        """Keep an answer for more calls than this one."""
        grant = _grant(entry, call, risk, how, by, self._clock())
        add_grant(tx, grant)
        data = {
            "id": grant.id,
            "what": grant.what,
            "label": grant.label,
            "project": grant.project,
            "session": grant.session,
            "until": grant.until,
            "uses": grant.uses,
            "actor": by.actor,
        }
        self._ledger.append(tx, "granted", data, entry=entry)
        return grant


def consented(verdict: Verdict, consent: Consent) -> Verdict:
    """The verdict on a call that a person said yes to before, saying so."""
    if verdict.word != "allow":
        return verdict
    reasons = (Reason(consent.reason), *verdict.reasons[1:])
    return msgspec.structs.replace(verdict, stage=consent.kind, rule=consent.id, reasons=reasons)


class _Reach(msgspec.Struct, frozen=True):
    """What a grant covers besides its project and tool: whose calls, and which."""

    asker: str
    family: Family | None = None


class _Seen:
    """What grants are compared with, worked out once for a call however many there are."""

    def __init__(self, call: ToolCall, risk: Risk) -> None:
        self.asker, self.family, self.risk = asker(call), family_of(risk), risk
        self.bindings = {
            session: msgspec.structs.replace(call, session=session).binding for session in ("", call.session)
        }


def _covers(grant: Grant, seen: _Seen) -> bool:
    if grant.what == "exact":
        return grant.body == seen.bindings[grant.session]
    reach = _reach.decode(grant.body)
    # INVARIANT: what one agent was granted covers no other agent, user or door.
    if reach.asker != seen.asker:
        return False
    return (
        within(reach.family, seen.family) if reach.family is not None else seen.risk.category < Category.high
    )


_reach = msgspec.json.Decoder(_Reach)


def _grant(entry: str, call: ToolCall, risk: Risk, how: Remember, by: Answerer, now: float) -> Grant:
    session = call.session if how.span == "session" else ""
    if how.span == "session" and not session:
        raise InputError("This call belongs to no session; say until when, how often or always.")
    if how.until is not None and not now < how.until < now + _FURTHEST:
        raise InputError("`until` is a time to come, within ten years.")
    body, label = msgspec.structs.replace(call, session=session).binding, "exactly this call"
    if how.what == "family":
        family = family_of(risk)
        if family is None:
            raise InputError("This call can only be remembered exactly as it is.", remedy="Choose exact.")
        body, label = _written(_Reach(asker(call), family)), label_of(call, risk, by.masked)
    if how.what == "tool":
        # INVARIANT: an answer is never remembered for more than one tool of one server in one project.
        if call.server is None or risk.category >= Category.high:
            raise InputError("This tool as a whole cannot be remembered.", remedy="Choose exact or family.")
        body, label = _written(_Reach(asker(call))), f"every call of `{call.name}` in this project"
    return Grant(
        id=f"g-{new_id(now)[-8:]}",
        what=how.what,
        label=label,
        project=call.project,
        session=session,
        server=call.server,
        tool=call.tool,
        body=body,
        until=how.until,
        uses=how.uses,
        made_at=now,
        made_by=by.actor,
        channel=by.channel,
        entry=entry,
    )


def _written(reach: _Reach) -> str:
    return msgspec.json.encode(reach).decode()
