"""Compression: the shared vectors, where a history may be cut, and what survives three of them."""

import asyncio
import random

import msgspec
import pytest
from ground import vectors

from checkrein.doors.chat import Message, Part, Snapshot
from checkrein.doors.chat.compression import (
    Prior,
    Settings,
    Wanted,
    Weighed,
    build_context,
    checked,
    chosen,
    compress,
    create_snapshot,
    latest,
    plan,
    preview,
    weighed,
)
from checkrein.doors.chat.models import Entry, Table, shipped
from checkrein.doors.chat.tokens import count, count_message
from checkrein.errors import ConfigError, InputError

ROWS = [row for row in vectors("compression.jsonl") if "id" in row]
GIVEN = (
    "messages",
    "model_max_input_tokens",
    "settings",
    "force",
    "retention_override",
    "existing_summary",
    "new_summary_tokens",
    "additional_input_tokens",
)
MODELS = Table(
    {**shipped(), "small": Entry(input=1_000, output=200), "middle": Entry(input=4_000, output=500)}
)
SMALL, MIDDLE = MODELS.model("small"), MODELS.model("middle")
KEEP_200 = Settings(retention_tokens=200)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_vectors(row):
    found = msgspec.json.decode(msgspec.json.encode(plan(**{key: row[key] for key in GIVEN})))
    assert {key: found[key] for key in row["expected"]} == row["expected"]
    assert found["reason"]


def test_there_are_vectors():
    assert len(ROWS) >= 24


def turn(number, tokens=100, **more):
    return [Weighed(f"u{number}", "user", tokens), Weighed(f"a{number}", "assistant", tokens, **more)]


def planned(messages, budget=0, **more):
    given = {"model_max_input_tokens": 1_000, "settings": Settings(retention_tokens=budget), "force": True}
    return plan(messages, **(given | more))


def test_the_threshold_is_exact_in_decimals():
    for percent in range(70, 101):
        for limit in (1_000, 999, 128_000, 200_000, 1_047_576):
            found = plan([], model_max_input_tokens=limit, settings=Settings(threshold=percent / 100))
            assert found.threshold_tokens == limit * percent // 100


def test_what_goes_with_every_request_counts_too():
    messages = turn(1, 200) + turn(2, 200)
    assert not planned(messages, force=False, additional_input_tokens=100).needs_compression
    found = planned(
        messages, force=False, additional_input_tokens=100, fixed_tokens=51, new_summary_tokens=10
    )
    assert (found.current_tokens, found.needs_compression, found.compressed) == (951, True, True)
    assert (found.tokens_before, found.tokens_after, found.saved_percent) == (800, 410, 48.8)
    assert not found.still_over
    assert planned(turn(1) + turn(2), fixed_tokens=900).still_over


def test_automatic_compression_can_be_off_and_a_hand_still_compresses():
    off = Settings(retention_tokens=0, auto_compress=False)
    messages = turn(1, 300) + turn(2, 300)
    found = plan(messages, model_max_input_tokens=1_000, settings=off)
    assert (found.needs_compression, found.compressed) == (True, False)
    assert "by hand" in found.reason
    assert plan(messages, model_max_input_tokens=1_000, settings=off, force=True).compressed


def test_an_override_of_nothing_keeps_only_the_last_turn():
    messages = turn(1) + turn(2) + turn(3)
    assert planned(messages, 5_000).retained == ("u1", "a1", "u2", "a2", "u3", "a3")
    for override in (0, -5):
        assert planned(messages, 5_000, retention_override=override).retained == ("u3", "a3")
    assert planned(messages, 0, retention_override=400).retained == ("u2", "a2", "u3", "a3")


def test_a_call_is_never_cut_from_a_result_that_came_turns_later():
    messages = [*turn(1), *turn(2, ties=("c1",)), *turn(3), Weighed("t", "tool", 10, ("c1",)), *turn(4)]
    assert planned(messages, 0).retained == ("u4", "a4")
    # Two turns would fit but for the call of the second, whose result is in the third.
    assert planned(messages, 450).retained == ("u4", "a4")
    assert planned(messages, 610).retained == ("u2", "a2", "u3", "a3", "t", "u4", "a4")


def test_a_call_that_still_waits_is_kept_with_everything_after_it():
    messages = [*turn(1), *turn(2, ties=("c1",), open=True), *turn(3)]
    assert planned(messages, 0).retained == ("u2", "a2", "u3", "a3")
    ended = [*turn(1), *turn(2, ties=("c1",)), *turn(3)]
    assert planned(ended, 0).retained == ("u3", "a3")
    answered = [*turn(1), *turn(2, ties=("c1",), open=True), Weighed("t", "tool", 10, ("c1",)), *turn(3)]
    assert planned(answered, 0).retained == ("u3", "a3")


def a_history(chance):
    """Turns at random, some with calls that are answered at once, later, or not yet."""
    messages, waiting = [], []
    for number in range(chance.randrange(0, 40)):
        role = chance.choice(("user", "assistant", "assistant", "tool"))
        ties, is_open = (), False
        if role == "assistant" and chance.random() < 0.4:
            ties, is_open = (f"c{number}",), chance.random() < 0.3
            waiting.append(ties[0])
        elif role == "tool" and waiting:
            ties = (waiting.pop(chance.randrange(len(waiting))),)
        messages.append(Weighed(f"m{number}", role, chance.randrange(1, 200), ties, is_open))
    return messages


@pytest.mark.parametrize("seed", range(300))
def test_whatever_the_history_a_plan_keeps_its_promises(seed):
    chance = random.Random(seed)
    messages = a_history(chance)
    budget = chance.randrange(0, 2_000)
    found = planned(messages, budget, new_summary_tokens=7)
    ids = [each.id for each in messages]
    assert list(found.summarised + found.retained) == ids
    if not found.compressed:
        assert found.retained == tuple(ids)
        return
    gone = [each for each in messages if each.id in found.summarised]
    kept = messages[len(gone) :]
    assert kept[0].role == "user"
    assert not {tie for each in gone for tie in each.ties} & {tie for each in kept for tie in each.ties}
    answered = {tie for each in messages if each.role == "tool" for tie in each.ties}
    assert all(set(each.ties) <= answered for each in gone if each.open)
    users = [number for number, each in enumerate(messages) if each.role == "user"]
    assert len(gone) <= users[-1]
    assert found.cutoff == gone[-1].id
    assert found.tokens_after == 7 + sum(each.tokens for each in kept)


def test_ten_thousand_messages_with_ten_thousand_calls_are_planned_in_no_time():
    messages = [
        each for number in range(5_000) for each in turn(number, ties=(f"c{number}", f"d{number // 2}"))
    ]
    assert planned(messages, 1_000_000).retained


# Settings


def test_the_session_wins_over_the_model_and_the_model_over_all():
    everywhere = Wanted(threshold=0.75, retention_tokens=300, auto_compress=False)
    model = msgspec.structs.replace(SMALL, threshold=0.85)
    assert chosen(model) == Settings(threshold=0.85, retention_tokens=125, auto_compress=True)
    assert chosen(model, everywhere=everywhere) == Settings(
        threshold=0.85, retention_tokens=300, auto_compress=False
    )
    session = Wanted(threshold=1.0, retention_tokens=0)
    assert chosen(model, session=session, everywhere=everywhere) == Settings(
        threshold=1.0, retention_tokens=0, auto_compress=False
    )
    assert chosen(MODELS.model("gpt-4o")) == Settings(threshold=0.95, retention_tokens=8_000)


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(threshold=0.69),
        Wanted(threshold=1.01),
        Wanted(threshold=float("nan")),
        Wanted(retention_tokens=-1),
    ],
)
def test_settings_that_cannot_be_right_are_refused(wanted):
    with pytest.raises(ConfigError):
        checked(wanted)
    with pytest.raises(ConfigError):
        chosen(SMALL, session=wanted)


@pytest.mark.parametrize("threshold", [0.7, 0.95, 1.0, 1])
def test_seventy_to_a_hundred_percent(threshold):
    assert checked(Wanted(threshold=threshold)).threshold == threshold


# Messages


def said(number, text, role="user", **more):
    return Message(f"m{number}", role, (Part(text=text),), sequence=number, **more)


def summary_of(text, cutoff, created_at=1.0):
    tokens = count_message(
        build_context([said(1, "x")], Snapshot(id="s", text=text, cutoff="m1", tokens=0, created_at=0.0))[0]
    ).tokens
    return Snapshot(id=f"s{created_at}", text=text, cutoff=cutoff, tokens=tokens, created_at=created_at)


TALK = [
    said(1, "tea " * 100),
    said(2, "yes " * 100, "assistant"),
    said(3, "and?"),
    said(4, "so", "assistant"),
]


def test_messages_are_weighed_with_their_calls():
    call = Part(kind="tool_invocation", tool_call_id="c1", tool_name="x", status="running")
    done = msgspec.structs.replace(call, status="completed", tool_call_id="c2")
    assert weighed(Message("m", "assistant", (call, done))) == Weighed(
        "m", "assistant", 5 + 2 * count("x"), ("c1", "c2"), True
    )
    assert not weighed(Message("m", "assistant", (done,))).open


def test_the_context_is_the_summary_and_what_followed_it():
    snapshot = summary_of("- tea", "m2")
    context = build_context(TALK, snapshot)
    assert [each.id for each in context] == ["summary-s1.0", "m3", "m4"]
    assert (context[0].role, context[0].summary, context[0].sequence) == ("system", True, -1)
    assert "- tea" in context[0].parts[0].text
    assert count_message(context[0]).tokens == snapshot.tokens
    assert build_context(TALK) == tuple(TALK)


def test_without_its_cutoff_a_summary_stands_for_nothing():
    assert build_context(TALK, summary_of("- tea", "gone")) == tuple(TALK)
    deleted = [TALK[0], msgspec.structs.replace(TALK[1], deleted=True), *TALK[2:]]
    assert [each.id for each in build_context(deleted, summary_of("- tea", "m2"))] == ["m1", "m3", "m4"]


def test_the_newest_summary_that_belongs_to_this_branch_is_in_force():
    first, second, elsewhere = summary_of("a", "m1", 1), summary_of("b", "m2", 2), summary_of("c", "x9", 3)
    assert latest(TALK, [second, elsewhere, first]) is second
    assert latest(TALK[:1], [second, elsewhere, first]) is first
    assert latest(TALK, [elsewhere]) is None


def test_a_preview_counts_like_the_gauge_and_says_what_will_happen():
    found = preview(TALK, None, SMALL, KEEP_200, pending_tokens=30, fixed_tokens=40, force=True)
    total = sum(count_message(each).tokens for each in TALK)
    assert (found.tokens_before, found.current_tokens, found.limit) == (total, total + 70, 1_000)
    assert (found.summarised, found.retained) == (("m1", "m2"), ("m3", "m4"))
    assert found.tokens_after < found.tokens_before
    assert found.reason == "2 messages become a summary, the last 2 stay as they are."
    assert found.estimated is False
    assert preview(TALK, None, MODELS.model("claude-opus-5"), KEEP_200).estimated is True


def test_a_summary_made_for_another_model_is_counted_for_this_one():
    snapshot = summary_of("権限評価規則優先度昇順", "m2")
    older = msgspec.structs.replace(SMALL, encoding="cl100k")
    for model in (SMALL, older):
        context = build_context(TALK, snapshot)
        total = sum(count_message(each, model.encoding).tokens for each in context)
        assert preview(TALK, snapshot, model, KEEP_200).tokens_before == total


def test_a_preview_takes_counts_made_before():
    found = preview(TALK, None, SMALL, KEEP_200, weigh=lambda each: Weighed(each.id, each.role, 7))
    assert found.tokens_before == 28


# Carrying it out


class Keeper:
    """A summariser that keeps every line with a fact in what it is given, and nothing else."""

    def __init__(self):
        self.sent = []

    async def __call__(self, text):
        self.sent.append(text)
        return "\n".join(line.strip() for line in text.splitlines() if "FACT" in line) or "- nothing"


def carried_out(messages, snapshot, ask, proposal=None, **more):
    proposal = proposal or preview(messages, snapshot, SMALL, KEEP_200, force=True)
    given = {"snapshot_id": "new", "now": 5.0, "model": SMALL}
    return asyncio.run(compress(messages, snapshot, proposal, ask, **(given | more)))


def test_what_comes_of_it():
    found = carried_out(TALK, None, Keeper())
    assert (found.compressed, found.failed) == (True, False)
    made = found.snapshot
    assert (made.id, made.cutoff, made.created_at, made.text) == ("new", "m2", 5.0, "- nothing")
    context = build_context(TALK, made)
    assert found.new_tokens == sum(count_message(each).tokens for each in context)
    assert found.original_tokens == sum(count_message(each).tokens for each in TALK)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (TimeoutError("key sk-secret"), "(TimeoutError)"),
        (InputError("The provider said 429.", remedy="Wait."), "429. Wait."),
        ("   ", "answered nothing"),
        ("word " * 3_000, "no shorter"),
    ],
)
def test_failure_leaves_the_history_whole_and_says_so(answer, told):
    async def broken(_text):
        if isinstance(answer, str):
            return answer
        raise answer

    before = list(TALK)
    found = carried_out(TALK, None, broken)
    assert (found.compressed, found.failed, found.snapshot) == (False, True, None)
    assert told in found.reason
    assert "the history is whole" in found.reason
    assert "sk-secret" not in found.reason
    assert before == TALK
    assert found.new_tokens == found.original_tokens
    assert build_context(TALK, found.snapshot) == tuple(TALK)


def test_a_cancelled_compression_is_cancelled():
    async def cancelled(_text):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        carried_out(TALK, None, cancelled)


def test_a_plan_that_does_nothing_asks_nobody():
    ask = Keeper()
    proposal = preview(TALK, None, SMALL, KEEP_200)
    found = carried_out(TALK, None, ask, proposal)
    assert (found.compressed, found.failed, found.reason) == (
        False,
        False,
        "The context is within the threshold.",
    )
    assert not ask.sent
    with pytest.raises(ValueError, match="summarises nothing"):
        create_snapshot("text", proposal, snapshot_id="x", now=1.0)


def test_a_conversation_that_changed_meanwhile_is_left_alone():
    proposal = preview(TALK, None, SMALL, KEEP_200, force=True)
    ask = Keeper()
    found = carried_out(TALK[1:], None, ask, proposal)
    assert found.failed
    assert "changed meanwhile" in found.reason
    deleted = [msgspec.structs.replace(TALK[0], deleted=True), *TALK[1:]]
    assert carried_out(deleted, None, ask, proposal).failed
    second = planned([weighed(each) for each in TALK], 0, existing_summary=Prior("m1", 10))
    assert carried_out(TALK, None, ask, second).failed
    assert not ask.sent


def test_a_template_is_used_and_the_messages_are_still_there():
    ask = Keeper()
    carried_out(TALK, None, ask, template="Only the dates.")
    assert ask.sent[0].startswith("Only the dates.")
    assert "tea tea tea" in ask.sent[0]


def test_a_history_larger_than_the_model_is_summarised_in_pieces():
    talk = [said(number, f"FACT {number}\n" + "word " * 150) for number in range(1, 30)]
    ask = Keeper()
    found = carried_out(talk, None, ask)
    assert found.compressed
    assert len(ask.sent) > 3
    assert all(count(each) <= SMALL.input - SMALL.output for each in ask.sent)
    assert all(f"FACT {number}\n" in found.snapshot.text for number in range(1, 28))


def test_a_fact_told_before_the_first_compression_is_known_after_the_third():
    """The transcript: every compression is given the summary before it and all that followed."""
    talk, snapshots, ask = [], [], Keeper()

    def say(text, role):
        talk.append(said(len(talk) + 1, text, role))

    def converse(fact):
        say(f"FACT: {fact}", "user")
        say("Noted.", "assistant")
        for _ in range(6):
            say("And what of the weather? " * 8, "user")
            say("It rains, as it did before. " * 8, "assistant")

    facts = ["the door code is 4711", "the dog is called Rex", "the train leaves at 7:42"]
    for number, fact in enumerate(facts):
        converse(fact)
        now = latest(talk, snapshots)
        proposal = preview(talk, now, MIDDLE, KEEP_200, force=True)
        assert proposal.prior_summary_included is bool(number)
        found = asyncio.run(
            compress(talk, now, proposal, ask, snapshot_id=str(number), now=float(number), model=MIDDLE)
        )
        assert found.compressed, found.reason
        snapshots.append(found.snapshot)

    assert len({each.cutoff for each in snapshots}) == 3
    context = build_context(talk, latest(talk, snapshots))
    sent = "\n".join(part.text for message in context for part in message.parts)
    assert all(fact in sent for fact in facts)
    assert not any(fact in part.text for fact in facts for each in context[1:] for part in each.parts)
    # What an earlier summary stands for is never told again as messages.
    assert [facts[0] in text.split("## Conversation")[1] for text in ask.sent] == [True, False, False]
    assert sum(count_message(each).tokens for each in context) < 400
