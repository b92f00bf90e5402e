"""Decides when a conversation is too long, what of it is summarised, and what the model is then sent.

The chat agent and the console call it. No history is ever changed: a snapshot stands for a part of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from checkrein.doors.chat import Message, Part, Snapshot
from checkrein.doors.chat.models import Model
from checkrein.doors.chat.summaries import Summariser, framed, summarise
from checkrein.doors.chat.tokens import DEFAULT, Count, count_message, exact
from checkrein.errors import CheckreinError, ConfigError

THRESHOLD = 0.95
LOWEST, HIGHEST = 0.7, 1.0
MOST_RETAINED = 8_000
# For a preview: a summary is about a tenth of what it stands for.
_SHORTEST_SUMMARY, _LONGEST_SUMMARY = 50, 1_500
_OPEN = ("pending", "running")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """When to compress and how much to keep as it was said."""

    threshold: float = THRESHOLD
    retention_tokens: int = MOST_RETAINED
    auto_compress: bool = True


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a session, a model or the settings file says; None leaves it to the next."""

    threshold: float | None = None
    retention_tokens: int | None = None
    auto_compress: bool | None = None


class Weighed(msgspec.Struct, frozen=True):
    """A message as a plan sees it. `ties` are the tool calls it makes or answers; `open` ones still run."""

    id: str
    role: str
    tokens: int
    ties: tuple[str, ...] = ()
    open: bool = False


_Said = TypeVar("_Said", Message, Weighed)


class Prior(msgspec.Struct, frozen=True):
    """The summary in force: the last message it stands for, and what it takes."""

    cutoff: str
    tokens: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What compressing would do, in numbers. `cutoff` is the last message the summary in force stands for.

    `tokens_after` is the context without what is pending; `still_over` counts everything.
    """

    current_tokens: int
    threshold_tokens: int
    limit: int
    needs_compression: bool
    compressed: bool
    summarised: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()
    cutoff: str | None = None
    prior_summary_included: bool = False
    tokens_before: int = 0
    tokens_after: int = 0
    summary_tokens: int = 0
    still_over: bool = False
    estimated: bool = False
    reason: str = ""

    @property
    def saved_percent(self) -> float:
        saved = self.tokens_before - self.tokens_after
        return round(100 * saved / self.tokens_before, 1) if self.tokens_before else 0.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of compressing. Without a snapshot the history is whole, and `reason` says why."""

    compressed: bool
    original_tokens: int
    new_tokens: int
    reason: str
    failed: bool = False
    snapshot: Snapshot | None = None
    plan: Plan


def chosen(model: Model, *, session: Wanted | None = None, everywhere: Wanted | None = None) -> Settings:
    """The settings in force: the session's, else the model's, else the global ones, else ours."""
    own = Wanted(threshold=model.threshold, retention_tokens=model.retention_tokens)
    ours = Wanted(
        threshold=THRESHOLD, retention_tokens=min(MOST_RETAINED, model.input // 8), auto_compress=True
    )
    layers = [checked(each) for each in (session, own, everywhere, ours) if each is not None]
    found = {
        name: next(value for each in layers if (value := getattr(each, name)) is not None)
        for name in Wanted.__struct_fields__
    }
    return Settings(**found)


def threshold_tokens(most: int, share: float) -> int:
    """More tokens than this are too many; a share as a person wrote it, not as a computer rounds it."""
    return int(most * Decimal(str(share)))


def checked(wanted: Wanted) -> Wanted:
    """The same; raises ConfigError when it cannot be right."""
    threshold, kept = wanted.threshold, wanted.retention_tokens
    if threshold is not None and not LOWEST <= threshold <= HIGHEST:
        raise ConfigError("threshold", threshold, "is out of bounds", "From 0.7 to 1.0: 70 to 100 percent.")
    if kept is not None and kept < 0:
        raise ConfigError("retention_tokens", kept, "is below zero", "0 keeps only the last turn.")
    return wanted


def plan(
    messages: Sequence[Weighed | Mapping[str, Any]],
    *,
    model_max_input_tokens: int,
    settings: Settings | Mapping[str, Any],
    existing_summary: Prior | Mapping[str, Any] | None = None,
    additional_input_tokens: int = 0,
    fixed_tokens: int = 0,
    retention_override: int | None = None,
    new_summary_tokens: int | None = None,
    force: bool = False,
    estimated: bool = False,
) -> Plan:
    """What would be summarised and what kept. Plain mappings of the same shape do as well.

    `fixed_tokens` is what goes with every request (instructions, tool definitions); without
    `new_summary_tokens` the length of the summary is guessed.
    """
    history = msgspec.convert(messages, list[Weighed])
    limits = msgspec.convert(settings, Settings)
    prior = msgspec.convert(existing_summary, Prior | None)
    prior, live = _live(history, prior)
    before = (prior.tokens if prior else 0) + _sum(live)
    threshold = threshold_tokens(model_max_input_tokens, limits.threshold)
    budget = limits.retention_tokens if retention_override is None else max(0, retention_override)
    current = before + fixed_tokens + additional_input_tokens
    needs = current > threshold
    cut = _cut(live, budget)
    reason = _why_not(needs=needs, force=force, automatic=limits.auto_compress, cut=cut, live=live)
    unchanged = Plan(
        current_tokens=current,
        threshold_tokens=threshold,
        limit=model_max_input_tokens,
        needs_compression=needs,
        compressed=False,
        retained=_ids(live),
        cutoff=prior.cutoff if prior else None,
        tokens_before=before,
        tokens_after=before,
        summary_tokens=prior.tokens if prior else 0,
        still_over=needs,
        estimated=estimated,
        reason=reason,
    )
    if reason:
        return unchanged
    if new_summary_tokens is None:
        new_summary_tokens = _guessed(_sum(live[:cut]), prior)
    after = new_summary_tokens + _sum(live[cut:])
    over = after + fixed_tokens + additional_input_tokens > threshold
    return msgspec.structs.replace(
        unchanged,
        compressed=True,
        summarised=_ids(live[:cut]),
        retained=_ids(live[cut:]),
        cutoff=live[cut - 1].id,
        prior_summary_included=prior is not None,
        tokens_after=after,
        summary_tokens=new_summary_tokens,
        still_over=over,
        reason=_promise(cut, len(live) - cut, over=over),
    )


def preview(
    messages: Iterable[Message],
    snapshot: Snapshot | None,
    model: Model,
    settings: Settings,
    *,
    pending_tokens: int = 0,
    fixed_tokens: int = 0,
    retention_override: int | None = None,
    force: bool = False,
    weigh: Callable[[Message], Weighed] | None = None,
) -> Plan:
    """The plan for a conversation, as `compress` will carry it out; the summary's length is guessed."""
    kept = [each for each in messages if not each.deleted]
    weighing = weigh or (lambda each: weighed(each, model.encoding))
    # Counted anew: the model may be another than the one it was made for.
    standing = count_message(_summary(snapshot.id, snapshot.text), model.encoding) if snapshot else Count(0)
    return plan(
        [weighing(each) for each in kept],
        model_max_input_tokens=model.input,
        settings=settings,
        existing_summary=Prior(snapshot.cutoff, standing.tokens) if snapshot else None,
        additional_input_tokens=pending_tokens,
        fixed_tokens=fixed_tokens,
        retention_override=retention_override,
        force=force,
        estimated=model.approximate or not exact(),
    )


async def compress(
    messages: Sequence[Message],
    snapshot: Snapshot | None,
    proposal: Plan,
    ask: Summariser,
    *,
    snapshot_id: str,
    now: float,
    model: Model,
    writer: Model | None = None,
    template: str = "",
) -> Outcome:
    """Carries a plan out for a conversation with `model`; `writer` is the summariser's, when another."""
    # INVARIANT: nothing is taken from the history, whatever the summariser does.
    if not proposal.compressed:
        return _left(proposal, proposal.reason)
    wanted = set(proposal.summarised)
    old = [each for each in messages if each.id in wanted and not each.deleted]
    prior = snapshot.text if snapshot and proposal.prior_summary_included else ""
    if len(old) != len(wanted) or (proposal.prior_summary_included and not prior):
        return _failed(proposal, "The conversation changed meanwhile.")
    room = _room(writer or model)
    try:
        text = await summarise(old, ask, prior=prior, template=template, room=room, encoding=model.encoding)
    except CheckreinError as error:
        return _failed(proposal, f"The summary could not be made: {error}")
    except Exception as error:  # noqa: BLE001 - whatever a provider raises, the user is told
        # The text of a foreign error may hold a key or an address; its name does not.
        return _failed(proposal, f"The summary could not be made ({type(error).__name__}).")
    made = create_snapshot(text, proposal, snapshot_id=snapshot_id, now=now, encoding=model.encoding)
    before, after = proposal.tokens_before, proposal.tokens_after - proposal.summary_tokens + made.tokens
    if after >= before:
        return _failed(proposal, "The summary is no shorter than what it would stand for.")
    said = f"{len(old)} messages are now a summary: {before:,} tokens became {after:,}."
    return Outcome(
        compressed=True, original_tokens=before, new_tokens=after, reason=said, snapshot=made, plan=proposal
    )


def create_snapshot(
    text: str, proposal: Plan, *, snapshot_id: str, now: float, encoding: str = DEFAULT
) -> Snapshot:
    """The value to keep beside the history; it stands for everything up to the plan's cutoff."""
    if not proposal.compressed or proposal.cutoff is None:
        raise ValueError("a plan that summarises nothing makes no snapshot")
    size = count_message(_summary(snapshot_id, text), encoding)
    return Snapshot(
        id=snapshot_id,
        text=text,
        cutoff=proposal.cutoff,
        tokens=size.tokens,
        created_at=now,
        estimated=size.estimated,
    )


def build_context(messages: Iterable[Message], snapshot: Snapshot | None = None) -> tuple[Message, ...]:
    """What the model is sent: the summary, then what followed it; all messages when its cutoff is gone."""
    kept = [each for each in messages if not each.deleted]
    after = _after(kept, snapshot.cutoff) if snapshot else None
    if snapshot is None or after is None:
        return tuple(kept)
    return (_summary(snapshot.id, snapshot.text), *after)


def latest(messages: Iterable[Message], snapshots: Iterable[Snapshot]) -> Snapshot | None:
    """The newest snapshot whose cutoff these messages still hold; other branches have others."""
    held = {each.id for each in messages if not each.deleted}
    return max(
        (each for each in snapshots if each.cutoff in held), key=lambda each: each.created_at, default=None
    )


def weighed(message: Message, encoding: str = DEFAULT, size: Count | None = None) -> Weighed:
    """A message for a plan; `size` where it was counted before."""
    size = size or count_message(message, encoding)
    calls = tuple(part.tool_call_id for part in message.parts if part.tool_call_id)
    return Weighed(message.id, message.role, size.tokens, calls, any(map(_is_open, message.parts)))


def _is_open(part: Part) -> bool:
    return part.kind == "tool_invocation" and part.status in _OPEN


def _summary(snapshot_id: str, text: str) -> Message:
    return Message(f"summary-{snapshot_id}", "system", (Part(text=framed(text)),), sequence=-1, summary=True)


def _live(history: list[Weighed], prior: Prior | None) -> tuple[Prior | None, list[Weighed]]:
    after = _after(history, prior.cutoff) if prior else None
    return (None, history) if after is None else (prior, after)


def _after(messages: list[_Said], cutoff: str) -> list[_Said] | None:
    for number, each in enumerate(messages):
        if each.id == cutoff:
            return messages[number + 1 :]
    return None


def _cut(live: list[Weighed], budget: int) -> int:
    """Where the kept suffix begins: the last turn, then older whole turns while they fit together."""
    starts = _boundaries(live)
    if not starts:
        return 0
    cut, kept = starts[-1], _sum(live[starts[-1] :])
    for start in reversed(starts[:-1]):
        kept += _sum(live[start:cut])
        if kept > budget:
            break
        cut = start
    return cut


def _boundaries(live: list[Weighed]) -> list[int]:
    """Where a cut may be: before a user's message, and nowhere between a tool call and its result."""
    last: dict[str, int] = {}
    for number, each in enumerate(live):
        last.update(dict.fromkeys(each.ties, number))
    found: list[int] = []
    reach = 0
    for number, each in enumerate(live):
        # INVARIANT: a tool call is never cut from its result.
        if number == 0 or (each.role == "user" and reach < number):
            found.append(number)
        answers = [last[tie] for tie in each.ties]
        # The result of a call that still runs is to come, after everything.
        waits = each.open and not (answers and min(answers) > number)
        reach = max(reach, len(live) if waits else 0, *answers)
    return found


def _why_not(*, needs: bool, force: bool, automatic: bool, cut: int, live: list[Weighed]) -> str:
    """Why a plan leaves everything as it is; empty when it does not."""
    if not needs and not force:
        return "The context is within the threshold."
    if not automatic and not force:
        return "The context is over the threshold, and automatic compression is off: compress by hand."
    if cut:
        return ""
    if not live:
        return "There is nothing to summarise."
    return (
        "There is nothing to summarise: the last turn is always kept, and what is kept besides takes it all."
    )


def _promise(summarised: int, kept: int, *, over: bool) -> str:
    said = f"{summarised} messages become a summary, the last {kept} stay as they are."
    return f"{said} The context will still be over the threshold." if over else said


def _guessed(tokens: int, prior: Prior | None) -> int:
    share = min(max(tokens // 10, _SHORTEST_SUMMARY), _LONGEST_SUMMARY)
    return share + (prior.tokens if prior else 0)


def _room(writer: Model) -> int:
    """What a summariser can be sent so that its answer has room too."""
    room = writer.input - writer.output if writer.output < writer.input else writer.input // 2
    return max(1, room * 3 // 4 if writer.approximate else room)


def _failed(proposal: Plan, reason: str) -> Outcome:
    return _left(proposal, f"{reason} Nothing was changed: the history is whole.", failed=True)


def _left(proposal: Plan, reason: str, *, failed: bool = False) -> Outcome:
    return Outcome(
        compressed=False,
        original_tokens=proposal.tokens_before,
        new_tokens=proposal.tokens_before,
        reason=reason,
        failed=failed,
        plan=proposal,
    )


def _sum(messages: Iterable[Weighed]) -> int:
    return sum(each.tokens for each in messages)


def _ids(messages: Iterable[Weighed]) -> tuple[str, ...]:
    return tuple(each.id for each in messages)
